/* preload_mpi_files.c - MPI-IO.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * MPI's own system calls bring the bytes to the file and back, and the tool follows them as any
 * others: nothing is marked here. That holds while each process writes and reads its own bytes.
 * Two-phase collective I/O and data sieving would have one process handle bytes of others, so they
 * are switched off: by hints for ROMIO (MPICH, Intel MPI, MVAPICH, and Open MPI on some file
 * systems), by the environment for Open MPI's own (preload_mpi_start.c). Where that fails,
 * everything that goes through MPI-IO counts as used, and the user is warned: the buffers of this
 * process, and what it reads and writes for others meanwhile.
 */
#include "preload_mpi.h"

#include <stdlib.h>
#include <string.h>

static const char *const own_bytes_only[][2] = {
    {"romio_cb_write", "disable"},
    {"romio_cb_read", "disable"},
    {"romio_ds_write", "disable"},
    {"romio_ds_read", "disable"},
};
#define HINTS (sizeof own_bytes_only / sizeof own_bytes_only[0])

static bool bytes_are_exchanged; /* one process may handle bytes of others */
static int files_open;
static int calls_left;  /* non-blocking calls that may go on until no file is open */
static int calls_begun; /* split collective calls without their end */

/* The program's hints with ours over them; info_null when that cannot be made. */
static word overridden(const mpi_library *mpi, word info)
{
    word made = 0;
    int failed = info == mpi->info_null ? mpi->Info_create(&made) : mpi->Info_dup(info, &made);
    if (failed)
        return mpi->info_null;
    for (unsigned i = 0; i < HINTS; i++)
        (void)mpi->Info_set(made, own_bytes_only[i][0], own_bytes_only[i][1]);
    return mpi_handle(mpi, made);
}

static word with_hints(OrigFn real, unsigned words, word *arguments, unsigned info)
{
    const mpi_library *mpi = mpi_find(real);
    if (!mpi)
        return call_real(real, words, arguments);
    word made = overridden(mpi, mpi_handle(mpi, arguments[info]));
    if (made != mpi->info_null)
        arguments[info] = made;
    word result = call_real(real, words, arguments);
    if (made != mpi->info_null)
        mpi->Info_free(&made);
    return result;
}

static bool file_is_exchanged(const mpi_library *mpi, word file)
{
    char value[16] = "";
    int set = 0;
    word info = 0;
    if (mpi->is_open_mpi) {
        const char *chosen = getenv("OMPI_MCA_fcoll");
        return !chosen || strcmp(chosen, "individual") != 0;
    }
    if (mpi->File_get_info(file, &info))
        return true;
    int failed =
        mpi->Info_get(mpi_handle(mpi, info), "romio_cb_write", sizeof value - 1, value, &set);
    mpi->Info_free(&info);
    return failed || !set || strcmp(value, "disable") != 0;
}

static void passing_on(bool begins)
{
    MESSAGE(TRACE_IO_PASSED_ON, begins, 0);
}

/* One less of a counter that several threads change; False if there is none. */
static bool take_one(int *counter)
{
    int seen = __atomic_load_n(counter, __ATOMIC_RELAXED);
    while (seen > 0) {
        if (__atomic_compare_exchange_n(counter, &seen, seen - 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static void add_one(int *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static word on_File_open(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    word result = with_hints(real, 5, arguments, 4);
    if ((int)result == 0)
        add_one(&files_open);
    if (!mpi) {
        bytes_are_exchanged = true;
    } else if ((int)result == 0 && file_is_exchanged(mpi, *(const word *)arguments[5])) {
        static bool told;
        bytes_are_exchanged = true;
        warn_once(&told, "collective MPI-IO could not be made to let each rank handle its own "
                         "bytes: all that is written or read through MPI-IO is kept");
    }
    return result;
}
BY_HAND(File_open, 5)
WRAPPER(File_set_view, 6, with_hints(real, 6, arguments, 6))
WRAPPER(File_set_info, 2, with_hints(real, 2, arguments, 2))

/* ---- Where bytes are exchanged ---- */

static void mark_used(const mpi_library *mpi, const call_rule *rule, const word *arguments)
{
    transfer moved;
    transfer_take(mpi, rule, arguments, false, &moved);
    transfer_mark_read(mpi, &moved);
    transfer_drop(mpi, &moved);
}

/* When a call is over. */
typedef enum {
    AT_RETURN,
    AT_END,  /* its _end */
    AT_CLOSE /* it has a request; when that completes is not asked for */
} call_end;

static word write_or_read(const call_rule *rule, bool reads, call_end end, OrigFn real,
                          word *arguments)
{
    const mpi_library *mpi = bytes_are_exchanged ? mpi_find(real) : NULL;
    if (!mpi)
        return call_real(real, rule->words, arguments);
    if (!reads)
        mark_used(mpi, rule, arguments);
    passing_on(true);
    word result = call_real(real, rule->words, arguments);
    if (end == AT_RETURN)
        passing_on(false);
    else
        add_one(end == AT_END ? &calls_begun : &calls_left);
    if (reads && (int)result == 0)
        mark_used(mpi, rule, arguments);
    return result;
}

static word end_call(OrigFn real, word *arguments)
{
    word result = call_real(real, 3, arguments);
    if (take_one(&calls_begun))
        passing_on(false);
    return result;
}

static word on_File_close(OrigFn real, word *arguments)
{
    word result = call_real(real, 1, arguments);
    if ((int)result == 0 && take_one(&files_open) && files_open == 0) {
        while (take_one(&calls_left))
            passing_on(false);
    }
    return result;
}
BY_HAND(File_close, 1)

/* Positions of buffer, count and datatype. */
#define FILE_CALL(name, n, reads, end, buffer, count, type)                                        \
    static const call_rule rule_##name = {.words = n, .read = {ONE, buffer, count, type}};         \
    WRAPPER(name, n, write_or_read(&rule_##name, reads, end, real, arguments))                     \
    static const call_rule rule_##name##_c = {                                                     \
        .words = n, .read = {ONE, buffer, count, type}, .large = true};                            \
    WRAPPER(name##_c, n, write_or_read(&rule_##name##_c, reads, end, real, arguments))
#define BOTH_WAYS(name, n, end, buffer)                                                            \
    FILE_CALL(File_write##name, n, false, end, buffer, buffer + 1, buffer + 2)                     \
    FILE_CALL(File_read##name, n, true, end, buffer, buffer + 1, buffer + 2)
#define NON_BLOCKING(name, n, buffer)                                                              \
    FILE_CALL(File_iwrite##name, n, false, AT_CLOSE, buffer, buffer + 1, buffer + 2)               \
    FILE_CALL(File_iread##name, n, true, AT_CLOSE, buffer, buffer + 1, buffer + 2)
#define SPLIT(name, n, buffer)                                                                     \
    BOTH_WAYS(name##_begin, n, AT_END, buffer)                                                     \
    WRAPPER(File_write##name##_end, 3, end_call(real, arguments))                                  \
    WRAPPER(File_read##name##_end, 3, end_call(real, arguments))

BOTH_WAYS(, 5, AT_RETURN, 2)
BOTH_WAYS(_at, 6, AT_RETURN, 3)
BOTH_WAYS(_shared, 5, AT_RETURN, 2)
BOTH_WAYS(_all, 5, AT_RETURN, 2)
BOTH_WAYS(_at_all, 6, AT_RETURN, 3)
BOTH_WAYS(_ordered, 5, AT_RETURN, 2)
NON_BLOCKING(, 5, 2)
NON_BLOCKING(_at, 6, 3)
NON_BLOCKING(_shared, 5, 2)
NON_BLOCKING(_all, 5, 2)
NON_BLOCKING(_at_all, 6, 3)
SPLIT(_all, 4, 2)
SPLIT(_at_all, 5, 3)
SPLIT(_ordered, 4, 2)
