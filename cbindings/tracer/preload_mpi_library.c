/* preload_mpi_library.c - which MPI library this is, its constants and its functions.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Three binary interfaces: MPICH's (also Intel MPI, MVAPICH, Cray MPICH), where handles are int;
 * Open MPI's, where they are pointers to its own variables; and the one that MPI 5 standardises.
 * They are told apart by what the library exports.
 */
#include "preload_mpi.h"

#include <dlfcn.h>
#include <string.h>

#ifndef RTLD_DEFAULT
#define RTLD_DEFAULT ((void *)0)
#endif

/* dladdr is declared with _GNU_SOURCE only; both are missing in an old program without libdl. */
typedef struct {
    const char *path;
    void *base;
    const char *symbol;
    void *address;
} symbol_place;
extern int dladdr(const void *address, symbol_place *place) __attribute__((weak));
#pragma weak dlsym
#pragma weak dlopen

static mpi_library the_library;
static enum { NOT_ASKED, KNOWN, UNKNOWN } state = NOT_ASKED;

void warn_once(bool *done, const char *text)
{
    if (__atomic_exchange_n(done, true, __ATOMIC_RELAXED))
        return;
    MESSAGE(TRACE_WARNING, text, 0);
}

static void *handle_of_library(const void *address, symbol_place *place)
{
    if (!dlsym || !dlopen || !dladdr || !dladdr(address, place))
        return NULL;
    /* Already loaded, perhaps into a local scope only (a Python module); or the program itself. */
    void *handle = place->path ? dlopen(place->path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return handle ? handle : dlopen(NULL, RTLD_LAZY);
}

/* ---- Constants ---- */

static void take_mpich(mpi_library *mpi)
{
    mpi->in_place = (word)-1;
    mpi->comm_world = 0x44000000;
    mpi->comm_self = 0x44000001;
    mpi->byte_type = 0x4c00010d;
    mpi->info_null = 0x1c000000;
    mpi->op_no_op = 0x5800000e;
    mpi->status_ignore = 1;
    mpi->proc_null = -1;
    mpi->root = -3;
    mpi->graph = 1, mpi->cart = 2, mpi->dist_graph = 3;
    mpi->handle_bytes = 4;
    mpi->status_bytes = 20;
}

/* A variable of the library: the program may hold the copy that counts (a copy relocation), so the
 * global scope comes first. */
static word variable(void *handle, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return (word)(found ? found : dlsym(handle, name));
}

static void take_open_mpi(mpi_library *mpi, void *handle)
{
    mpi->is_open_mpi = true;
    mpi->in_place = 1;
    mpi->comm_world = variable(handle, "ompi_mpi_comm_world");
    mpi->comm_self = variable(handle, "ompi_mpi_comm_self");
    mpi->byte_type = variable(handle, "ompi_mpi_byte");
    mpi->info_null = variable(handle, "ompi_mpi_info_null");
    mpi->op_no_op = variable(handle, "ompi_mpi_op_no_op");
    mpi->status_ignore = 0;
    mpi->proc_null = -2;
    mpi->root = -4;
    mpi->cart = 1, mpi->graph = 2, mpi->dist_graph = 3;
    mpi->handle_bytes = 8;
    mpi->status_bytes = 24;
}

static void take_standard(mpi_library *mpi)
{
    mpi->in_place = 1;
    mpi->comm_world = 0x101;
    mpi->comm_self = 0x102;
    mpi->byte_type = 0x247;
    mpi->info_null = 0x130;
    mpi->op_no_op = 0x3d;
    mpi->status_ignore = 0;
    mpi->proc_null = -3;
    mpi->root = -4;
    mpi->cart = 211, mpi->graph = 212, mpi->dist_graph = 213;
    mpi->handle_bytes = 8;
    mpi->status_bytes = 32;
}

static bool take_constants(mpi_library *mpi, void *handle, const char *path)
{
    /* By name first: the standard interface may sit on top of a library that exports its own. */
    if (path && strstr(path, "libmpi_abi") && dlsym(handle, "PMPI_Abi_get_version"))
        take_standard(mpi);
    else if (dlsym(handle, "ompi_mpi_comm_world"))
        take_open_mpi(mpi, handle);
    else if (dlsym(handle, "MPIR_Dup_fn")) /* in mpi.h of all of that family: MPI_DUP_FN */
        take_mpich(mpi);
    else
        return false;
    return true;
}

/* ---- Functions ---- */

static bool take_functions(mpi_library *mpi, void *handle)
{
    bool complete = true;
#define TAKE(name) ((mpi->name = (__typeof__(mpi->name))dlsym(handle, "PMPI_" #name)) != NULL)
#define NEED(name) complete = TAKE(name) && complete
    NEED(Type_size);
    (void)TAKE(Type_size_x);
    NEED(Type_get_extent);
    NEED(Type_get_true_extent);
    NEED(Type_dup);
    NEED(Type_free);
    NEED(Type_commit);
    NEED(Type_create_hindexed);
    NEED(Pack);
    NEED(Pack_size);
    NEED(Get_count);
    (void)TAKE(Get_elements_x);
    NEED(Test_cancelled);
    NEED(Initialized);
    NEED(Comm_rank);
    NEED(Comm_size);
    NEED(Comm_remote_size);
    NEED(Comm_test_inter);
    NEED(Topo_test);
    NEED(Cartdim_get);
    NEED(Cart_shift);
    NEED(Graph_neighbors_count);
    NEED(Graph_neighbors);
    (void)TAKE(Dist_graph_neighbors_count);
    (void)TAKE(Dist_graph_neighbors);
    NEED(Info_create);
    NEED(Info_dup);
    NEED(Info_set);
    NEED(Info_get);
    NEED(Info_free);
    NEED(File_get_info);
#undef TAKE
#undef NEED
    return complete;
}

const mpi_library *mpi_find(OrigFn real)
{
    if (state == NOT_ASKED) {
        symbol_place place = {0};
        void *handle = handle_of_library((const void *)real.nraddr, &place);
        if (handle && take_constants(&the_library, handle, place.path) &&
            take_functions(&the_library, handle)) {
            state = KNOWN;
        } else {
            static bool told;
            state = UNKNOWN;
            warn_once(&told,
                      "MPI is linked statically, or a library that is not known: buffers of MPI "
                      "calls are not marked, and what goes by RDMA or single copy is not seen");
        }
    }
    return state == KNOWN ? &the_library : NULL;
}

word mpi_handle(const mpi_library *mpi, word argument)
{
    return mpi->handle_bytes == 4 ? (unsigned)argument : argument;
}

word mpi_handle_at(const mpi_library *mpi, word array, long index)
{
    return mpi->handle_bytes == 4 ? ((const unsigned *)array)[index] : ((const word *)array)[index];
}

/* ---- Calling what was wrapped ---- */

#if defined(__x86_64__)
/* As CALL_FN_W_12W, which is the longest that valgrind.h has. The stack arguments are pushed from
 * the last to the seventh; an odd number of them needs 8 bytes more for the alignment. */
static word call_13(OrigFn real, const word *arguments)
{
    volatile word call[14];
    volatile word result;
    call[0] = real.nraddr;
    for (int i = 1; i <= 13; i++)
        call[i] = arguments[i];
    __asm__ volatile(VALGRIND_CFI_PROLOGUE VALGRIND_ALIGN_STACK
                     "subq $136,%%rsp\n\t"
                     "pushq 104(%%rax)\n\t"
                     "pushq 96(%%rax)\n\t"
                     "pushq 88(%%rax)\n\t"
                     "pushq 80(%%rax)\n\t"
                     "pushq 72(%%rax)\n\t"
                     "pushq 64(%%rax)\n\t"
                     "pushq 56(%%rax)\n\t"
                     "movq 48(%%rax), %%r9\n\t"
                     "movq 40(%%rax), %%r8\n\t"
                     "movq 32(%%rax), %%rcx\n\t"
                     "movq 24(%%rax), %%rdx\n\t"
                     "movq 16(%%rax), %%rsi\n\t"
                     "movq 8(%%rax), %%rdi\n\t"
                     "movq (%%rax), %%rax\n\t" VALGRIND_CALL_NOREDIR_RAX VALGRIND_RESTORE_STACK
                         VALGRIND_CFI_EPILOGUE
                     : "=a"(result)
                     : "a"(&call[0])__FRAME_POINTER
                     : "cc", "memory", __CALLER_SAVED_REGS, "r14", "r15");
    return result;
}
#endif

word call_real(OrigFn real, unsigned words, const word *a)
{
    word result = 0;
    switch (words) {
    case 1:
        CALL_FN_W_W(result, real, a[1]);
        break;
    case 2:
        CALL_FN_W_WW(result, real, a[1], a[2]);
        break;
    case 3:
        CALL_FN_W_WWW(result, real, a[1], a[2], a[3]);
        break;
    case 4:
        CALL_FN_W_WWWW(result, real, a[1], a[2], a[3], a[4]);
        break;
    case 5:
        CALL_FN_W_5W(result, real, a[1], a[2], a[3], a[4], a[5]);
        break;
    case 6:
        CALL_FN_W_6W(result, real, a[1], a[2], a[3], a[4], a[5], a[6]);
        break;
    case 7:
        CALL_FN_W_7W(result, real, a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
        break;
    case 8:
        CALL_FN_W_8W(result, real, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
        break;
    case 9:
        CALL_FN_W_9W(result, real, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
        break;
    case 10:
        CALL_FN_W_10W(result, real, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
        break;
    case 11:
        CALL_FN_W_11W(result, real, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                      a[11]);
        break;
    case 12:
        CALL_FN_W_12W(result, real, a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                      a[11], a[12]);
        break;
#if defined(__x86_64__)
    case 13:
        result = call_13(real, a);
        break;
#endif
    }
    return result;
}
