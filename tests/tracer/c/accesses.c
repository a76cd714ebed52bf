/* accesses.c - writes a checkpoint, then accesses each of its slots in one way.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Slot k of the file is slot k of `slots`, 64 bytes; what case k does to it stands in the table of
 * test_tracer_accesses.py, with the states that follow. Prints "NUMBER NAME" for each case.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>
#include <scr.h>

#define SLOT 64
#define MOST 128
#define PAGE 4096

/* The last slots lie over a page's end, the first at a page's start. */
static unsigned char slots[MOST][SLOT] __attribute__((aligned(PAGE)));
/* Three pages, of which the file has all. */
static unsigned char pages[3 * PAGE] __attribute__((aligned(PAGE)));
static unsigned char elsewhere[1024] __attribute__((aligned(64)));

/* A load whose value goes nowhere is no access: Valgrind drops it before a tool sees it. */
static volatile long sink;

typedef struct {
    const char *name;
    void (*run)(unsigned char *slot);
} access_case;

#define CASE(name) static void name(unsigned char *slot)
#define ASM(...) __asm__ volatile(__VA_ARGS__)

CASE(load_sizes)
{
    sink += *(volatile char *)(slot + 1);
    sink += *(volatile short *)(slot + 8);
    sink += *(volatile int *)(slot + 16);
    sink += *(volatile long *)(slot + 24);
}

CASE(store_sizes)
{
    *(volatile char *)(slot + 1) = 1;
    *(volatile short *)(slot + 8) = 1;
    *(volatile int *)(slot + 16) = 1;
    *(volatile long *)(slot + 24) = 1;
}

CASE(read_then_written)
{
    sink += *(volatile int *)slot;
    *(volatile int *)slot = 1;
}

CASE(written_then_read)
{
    *(volatile int *)slot = 1;
    sink += *(volatile long *)slot; /* the other four are read first */
}

CASE(incremented)
{
    (*(volatile int *)slot)++;
}

CASE(neighbours_read_and_written) /* in one superblock, in both orders */
{
    volatile int *at = (volatile int *)slot;
    sink += at[0];
    at[1] = 1;
    sink += at[1];
    sink += at[2];
    at[3] = at[2];
    at[0] = 2;
    sink += at[3];
    at[4] = 1;
}

CASE(straddled_granule)
{
    sink += *(volatile long *)(slot + SLOT - 3); /* 3 bytes here, 5 of the next slot */
}

CASE(straddled_into)
{
    (void)slot;
}

CASE(not_taken)
{
    volatile int no = elsewhere[0]; /* 0 */
    if (no)
        *(volatile int *)slot = 1;
}

CASE(library_copy)
{
    memcpy(elsewhere, slot, 24);
    memset(slot + 32, 7, 16);
}

static void *in_thread(void *slot)
{
    sink += *(volatile int *)slot;
    *(volatile int *)((char *)slot + 8) = 1;
    return NULL;
}

CASE(threads)
{
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, slot);
    pthread_join(thread, NULL);
}

CASE(atomics)
{
    __atomic_fetch_add((int *)slot, 1, __ATOMIC_SEQ_CST);
    long expected = 99;
    __atomic_compare_exchange_n((long *)(slot + 8), &expected, 1, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    __atomic_store_n((int *)(slot + 24), 1, __ATOMIC_RELEASE);
    sink += __atomic_load_n((int *)(slot + 32), __ATOMIC_ACQUIRE);
}

CASE(untouched)
{
    __builtin_prefetch(slot);
}

#ifdef __x86_64__
CASE(sse)
{
    ASM("movups (%0), %%xmm0; movups %%xmm0, 24(%0)" : : "r"(slot) : "xmm0", "memory");
}

CASE(avx)
{
    ASM("vmovups (%0), %%ymm0; vmovups %%ymm0, 32(%0)" : : "r"(slot) : "xmm0", "memory");
}

CASE(x87)
{
    ASM("fldt (%0); fstpt 16(%0); fldl 32(%0); fstps 40(%0); fnstcw 48(%0); fldcw 50(%0)"
        :
        : "r"(slot)
        : "memory");
}

CASE(masked_load)
{
    float sum[8];
    static const int mask[8] __attribute__((aligned(32))) = {-1, 0, -1, 0, 0, 0, 0, -1};
    ASM("vmovdqa (%1), %%ymm1; vmaskmovps (%0), %%ymm1, %%ymm0; vmovups %%ymm0, (%2)"
        :
        : "r"(slot), "r"(mask), "r"(sum)
        : "xmm0", "xmm1", "memory");
}

CASE(masked_store)
{
    static const int mask[8] __attribute__((aligned(32))) = {-1, 0, -1, 0, 0, 0, 0, -1};
    ASM("vmovdqa (%1), %%ymm1; vpmaskmovd %%ymm0, %%ymm1, (%0)"
        :
        : "r"(slot), "r"(mask)
        : "xmm0", "xmm1", "memory");
}

CASE(gathered)
{
    static const int indices[4] __attribute__((aligned(16))) = {0, 3, 6, 9};
    ASM("vpcmpeqd %%xmm2, %%xmm2, %%xmm2; vmovdqa (%1), %%xmm1;"
        "vpgatherdd %%xmm2, (%0,%%xmm1,4), %%xmm0; vmovups %%xmm0, (%2)"
        :
        : "r"(slot), "r"(indices), "r"(elsewhere)
        : "xmm0", "xmm1", "xmm2", "memory");
}

CASE(string_moves)
{
    unsigned char *from = slot, *to = slot + 32;
    unsigned long count = 9;
    ASM("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    to = slot + 48;
    count = 2;
    ASM("rep stosl" : "+D"(to), "+c"(count) : "a"(0) : "memory");
}

CASE(compare_and_swap_wide)
{
    unsigned long low = 1, high = 2;
    ASM("lock cmpxchg16b (%2)"
        : "+a"(low), "+d"(high)
        : "r"(slot), "b"(0L), "c"(0L)
        : "memory", "cc");
    ASM("cmpxchg8b 32(%2)" : "+a"(low), "+d"(high) : "r"(slot), "b"(0L), "c"(0L) : "memory", "cc");
}

CASE(exchanged)
{
    long value = 1;
    ASM("xchgq %0, (%1); lock xaddl %k0, 16(%1); lock btsl $3, 24(%1)"
        : "+r"(value)
        : "r"(slot)
        : "memory", "cc");
}

CASE(not_temporal)
{
    ASM("movntdq %%xmm0, (%0); movntiq %1, 24(%0)" : : "r"(slot), "r"(1L) : "memory");
}

CASE(masked_bytes)
{
    static const unsigned char mask[16] __attribute__((aligned(16))) = {0x80, 0, 0x80, 0x80};
    ASM("movdqa (%1), %%xmm1; maskmovdqu %%xmm0, %%xmm1"
        :
        : "D"(slot), "r"(mask)
        : "xmm1", "memory");
}

CASE(moved_conditionally) /* cmov loads in either case */
{
    long value = 0;
    ASM("testl %k0, %k0; cmovnzq (%1), %0" : "+r"(value) : "r"(slot) : "cc");
    sink += value;
}

CASE(control_and_status)
{
    ASM("stmxcsr (%0); ldmxcsr (%0); stmxcsr 16(%0)" : : "r"(slot) : "memory");
}

CASE(pushed_and_popped)
{
    ASM("xchgq %0, %%rsp; pushq $1; popq %%rax; pushq $2; popq %%rax; xchgq %0, %%rsp"
        :
        : "r"(slot + 32)
        : "rax", "memory");
}

CASE(environment_saved) /* 28 bytes */
{
    ASM("fnstenv (%0)" : : "r"(slot) : "memory");
}
#endif

static const access_case cases[] = {
#define LISTED(name)                                                                               \
    {                                                                                              \
#name, name                                                                                \
    }
    LISTED(load_sizes),
    LISTED(store_sizes),
    LISTED(read_then_written),
    LISTED(written_then_read),
    LISTED(incremented),
    LISTED(neighbours_read_and_written),
    LISTED(straddled_granule),
    LISTED(straddled_into),
    LISTED(not_taken),
    LISTED(library_copy),
    LISTED(threads),
    LISTED(atomics),
    LISTED(untouched),
#ifdef __x86_64__
    LISTED(sse),
    LISTED(avx),
    LISTED(x87),
    LISTED(masked_load),
    LISTED(masked_store),
    LISTED(gathered),
    LISTED(string_moves),
    LISTED(compare_and_swap_wide),
    LISTED(exchanged),
    LISTED(not_temporal),
    LISTED(masked_bytes),
    LISTED(moved_conditionally),
    LISTED(control_and_status),
    LISTED(pushed_and_popped),
    LISTED(environment_saved),
#endif
};
enum { CASES = sizeof cases / sizeof *cases };

/* Accesses over the ends of pages, of every size: at -1, -3, ... from them. */
static void access_pages(void)
{
    sink += *(volatile short *)(pages + PAGE - 1);
    *(volatile long *)(pages + 2 * PAGE - 3) = 1;
#ifdef __x86_64__
    ASM("fxsave (%0)" : : "r"(pages + 512) : "memory");
    ASM("vmovups (%0), %%ymm0; vmovups %%ymm0, (%1)"
        :
        : "r"(pages + PAGE - 40), "r"(elsewhere)
        : "xmm0", "memory");
    ASM("vmovups %%ymm0, (%0)" : : "r"(pages + 2 * PAGE - 16) : "xmm0", "memory");
#endif
}

static void write_checkpoint(const unsigned char *on_stack)
{
    char path[SCR_MAX_FILENAME];
    SCR_Start_output("accesses", SCR_FLAG_CHECKPOINT);
    SCR_Route_file("accesses.bin", path);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (fd < 0 || write(fd, slots, CASES * SLOT) != CASES * SLOT ||
        write(fd, pages, sizeof pages) != sizeof pages || write(fd, on_stack, SLOT) != SLOT) {
        perror(path);
        exit(1);
    }
    close(fd);
    SCR_Complete_output(1);
}

int main(int argc, char **argv)
{
    unsigned char on_stack[SLOT];
    MPI_Init(&argc, &argv);
    SCR_Init();
    memset(on_stack, 1, sizeof on_stack);
    for (int i = 0; i < CASES; i++) {
        memset(slots[i], 0, SLOT);
        printf("%d %s\n", i, cases[i].name);
    }
    fflush(stdout);
    write_checkpoint(on_stack);
    for (int i = 0; i < CASES; i++)
        cases[i].run(slots[i]);
    access_pages();
    load_sizes(on_stack);
    SCR_Finalize();
    MPI_Finalize();
    exit(0); /* from here: what follows main would reuse its frame */
}
