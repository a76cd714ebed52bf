/* copies_parts.c - many ways to write a state, each a part with a state of its own.
 *
 * What becomes of each byte is stated in test_tracer_copies.py.
 */
#include "copies.h"

#include <pthread.h>
#include <sched.h>

static void *states[64];
static size_t sizes[64];
static int count;

/* A new state of ELEMENTS elements. */
static void *new_state(size_t element)
{
    states[count] = malloc(ELEMENTS * element);
    sizes[count] = element;
    return states[count++];
}

static void *for_threads, *lowest_only;

/* ---- Write calls ---- */

static void raw(double *state)
{
    write_part("raw", state, ELEMENTS * sizeof(double));
}

static void stdio(const char *name, double *state, int items)
{
    char path[1024];
    part_path(name, path);
    FILE *file = fopen(path, "w");
    for (int k = 0; k < ELEMENTS; k += items)
        fwrite(&state[k], sizeof(double), k + items < ELEMENTS ? items : ELEMENTS - k, file);
    fclose(file);
}

/* ---- Pack loops ---- */

#define PACKS(type)                                                                                \
    OUTLINE static void pack_1_##type(type *restrict to, const type *restrict from, int n)         \
    {                                                                                              \
        for (int k = 0; k < n; k++)                                                                \
            to[k] = from[k];                                                                       \
    }                                                                                              \
    OUTLINE static void pack_2_##type(type *restrict to, const type *restrict from, int n)         \
    {                                                                                              \
        for (int k = 0; k < n; k++)                                                                \
            to[k] = from[2 * k + 1];                                                               \
    }                                                                                              \
    OUTLINE static void pack_3_##type(type *restrict to, const type *restrict from, int n)         \
    {                                                                                              \
        for (int k = 0; k < n; k++)                                                                \
            to[k] = from[3 * k];                                                                   \
    }                                                                                              \
    OUTLINE static void pack_back_##type(type *restrict to, const type *restrict from, int n)      \
    {                                                                                              \
        for (int k = 0; k < n; k++)                                                                \
            to[k] = from[n - 1 - k];                                                               \
    }                                                                                              \
    static type *state_##type;                                                                     \
    static void packs_##type(void)                                                                 \
    {                                                                                              \
        const type *state = state_##type;                                                          \
        type *buffer = malloc(272 * sizeof(type));                                                 \
        pack_1_##type(buffer, state, 96);                                                          \
        pack_2_##type(buffer + 96, state, 48);                                                     \
        pack_3_##type(buffer + 144, state, 32);                                                    \
        pack_back_##type(buffer + 176, state, 96);                                                 \
        write_part("packs_" #type, buffer, 272 * sizeof(type));                                    \
        free(buffer);                                                                              \
    }
PACKS(double)
PACKS(float)
PACKS(int32_t)
PACKS(uint16_t)
PACKS(uint8_t)

OUTLINE static void fetch(double *restrict to, const double *restrict from,
                          const int *restrict index)
{
    for (int k = 0; k < ELEMENTS; k++)
        to[k] = from[index[k]];
}

static void gather(double *state)
{
    double *buffer = malloc(ELEMENTS * sizeof(double));
    int index[ELEMENTS];
    for (int k = 0; k < ELEMENTS; k++)
        index[k] = 7 * k % ELEMENTS;
    fetch(buffer, state, index);
    write_part("gather", buffer, ELEMENTS * sizeof(double));
    free(buffer);
}

/* ---- Structs ---- */

typedef struct {
    double x, y, z;
} triple;

OUTLINE static triple turned(triple t)
{
    return (triple){t.y, t.z, t.x};
}

OUTLINE static void transpose(triple *restrict to, const double *restrict x,
                              const double *restrict y, const double *restrict z, int n)
{
    for (int k = 0; k < n; k++)
        to[k] = (triple){x[k], y[k], z[k]};
}

static void structs(double *state)
{
    triple *buffer = malloc(64 * sizeof(triple));
    for (int k = 0; k < 32; k++)
        buffer[k] = turned(((triple *)state)[k]);
    transpose(buffer + 32, state, state + 32, state + 63, 32);
    write_part("structs", buffer, 64 * sizeof(triple));
    free(buffer);
}

/* ---- Within the state ---- */

OUTLINE static void swap(double *one, double *other)
{
    double kept = *one;
    *one = *other;
    *other = kept;
}

static void swapped(double *state)
{
    for (int k = 0; k < ELEMENTS; k += 2)
        swap(&state[k], &state[k + 1]);
    write_part("swapped", state, ELEMENTS * sizeof(double));
    for (int k = 0; k < ELEMENTS; k += 2)
        swap(&state[k], &state[k + 1]);
}

/* ---- Bytes in another order ---- */

#define TURN(bits)                                                                                 \
    OUTLINE static void turn_##bits(uint##bits##_t *restrict to,                                   \
                                    const uint##bits##_t *restrict from, int n)                    \
    {                                                                                              \
        for (int k = 0; k < n; k++)                                                                \
            to[k] = __builtin_bswap##bits(from[k]);                                                \
    }
TURN(64)
TURN(32)
TURN(16)

static void turned_bytes(void *state)
{
    char *buffer = malloc(3 * 768);
    turn_64((uint64_t *)buffer, state, 96);
    turn_32((uint32_t *)(buffer + 768), state, 192);
    turn_16((uint16_t *)(buffer + 2 * 768), state, 384);
    write_part("turned_bytes", buffer, 3 * 768);
    free(buffer);
}

OUTLINE static void serialise(unsigned char *restrict to, const uint64_t *restrict from, int n)
{
    for (int k = 0; k < n; k++) {
        for (int j = 0; j < 8; j++)
            to[8 * k + j] = (unsigned char)(from[k] >> 8 * j);
    }
}

static void shifted_bytes(uint64_t *state)
{
    unsigned char *buffer = malloc(8 * ELEMENTS);
    serialise(buffer, state, ELEMENTS);
    write_part("shifted_bytes", buffer, 8 * ELEMENTS);
    free(buffer);
}

/* ---- Choices ---- */

OUTLINE static void choose(double *restrict to, const double *restrict yes,
                           const double *restrict no, const int *restrict by, int n)
{
    for (int k = 0; k < n; k++)
        to[k] = by[k] ? yes[k] : no[k];
}

static void chosen(double *state)
{
    double *buffer = malloc(48 * sizeof(double));
    int by[48];
    for (int k = 0; k < 48; k++)
        by[k] = k % 3 == 0;
    choose(buffer, state, state + 47, by, 48);
    write_part("chosen", buffer, 48 * sizeof(double));
    free(buffer);
}

/* ---- The C library, and single instructions ---- */

static int as_they_are(const void *one, const void *other)
{
    return one < other ? -1 : 1;
}

static void library(double *state)
{
    enum { BYTES = ELEMENTS * sizeof(double), WAYS = 6 };
    static volatile size_t step = 24;
    char *buffer = malloc(WAYS * BYTES + 16), *at = buffer;
    memcpy(at, state, BYTES);
    at += BYTES;
    for (size_t k = 0; k < BYTES; k += step)
        memcpy(at + k, (char *)state + k, step);
    at += BYTES;
    memcpy(at + 8, state, BYTES);
    memmove(at, at + 8, BYTES);
    at += BYTES;
    char *grown = malloc(16);
    memcpy(grown, state, 16);
    grown = realloc(grown, 8192);
    memcpy(grown + 16, (char *)state + 16, BYTES - 16);
    memcpy(at, grown, BYTES);
    free(grown);
    at += BYTES;
    qsort(memcpy(at, state, BYTES), ELEMENTS / 4, 4 * sizeof(double), as_they_are);
    at += BYTES;
    strncpy(at, "", BYTES);
    memcpy(at, state, BYTES);
#ifdef __x86_64__
    void *to = at, *from = state;
    size_t n = BYTES;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    to = at, from = state, n = 20;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    __asm__ volatile("fldl %1; fstpl %0" : "=m"(*(double *)at) : "m"(*state));
    __asm__ volatile("movq %1, %%mm0; movq %%mm0, %0; emms"
                     : "=m"(((double *)at)[1])
                     : "m"(state[1])
                     : "mm0");
    uint64_t word;
    __asm__ volatile("push %1; pop %0" : "=r"(word) : "m"(state[2]));
    ((uint64_t *)at)[2] = word;
    to = at + 24, from = (char *)state + 24;
    __asm__ volatile("movb (%0), %%ah\n\tmovb %%ah, (%1)" : : "S"(from), "D"(to) : "rax", "memory");
#endif
    write_part("library", buffer, WAYS * BYTES);
    free(buffer);
}

/* ---- What is no copy ---- */

OUTLINE static void round_all(float *restrict to, const double *restrict from, int n)
{
    for (int k = 0; k < n; k++)
        to[k] = (float)from[k];
}

static void rounded(double *state)
{
    char *buffer = malloc(128 + ELEMENTS * sizeof(double));
    round_all((float *)buffer, state, 32);
    memcpy(buffer + 128, state, ELEMENTS * sizeof(double));
    write_part("rounded", buffer, 128 + ELEMENTS * sizeof(double));
    free(buffer);
}

OUTLINE static uint64_t sum_of(const uint64_t *from, int n)
{
    uint64_t sum = 0;
    for (int k = 0; k < n; k++)
        sum ^= from[k];
    return sum;
}

static void summed(uint64_t *state)
{
    uint64_t *buffer = malloc(8 * ELEMENTS + 8);
    memcpy(buffer, state, 8 * ELEMENTS);
    buffer[ELEMENTS] = sum_of(buffer, 20);
    write_part("summed", buffer, 8 * ELEMENTS + 8);
    free(buffer);
}

OUTLINE static void widen(int64_t *to, const int32_t *from, int n)
{
    for (int k = 0; k < n; k++)
        to[k] = from[k];
}

OUTLINE static void keep_sign(int32_t *to, const int32_t *from, int n)
{
    for (int k = 0; k < n; k++)
        to[k] = (int32_t)((int64_t)from[k] >> 32);
}

static void widened(int32_t *state)
{
    char *buffer = malloc(204);
    widen((int64_t *)buffer, state, 10);
    keep_sign((int32_t *)(buffer + 80), state + 10, 10);
    memcpy(buffer + 120, state, 84);
    write_part("widened", buffer, 204);
    free(buffer);
}

static volatile int table[300];

OUTLINE static int branch(const int *by)
{
    return *by > 2 ? (int)strlen("more") : 0;
}

static void decided(int *state)
{
    char path[1024];
    part_path("decided", path);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    table[0] = branch(&state[0]);
    table[state[2]] = 1;
    lseek(fd, ((volatile int *)state)[4], SEEK_SET);
    void *volatile block = malloc((size_t)((volatile int *)state)[6]);
    free(block);
    if (pwrite(fd, state, ELEMENTS * sizeof(int), 0) < 0)
        abort();
    close(fd);
}

/* ---- Threads ---- */

enum { THREADS = 4 };
static double *packed;

static void *pack_part(void *argument)
{
    const double *state = for_threads;
    int first = (int)(intptr_t)argument * (ELEMENTS / THREADS);
    for (int k = first; k < first + ELEMENTS / THREADS; k++) {
#ifdef __x86_64__
        __asm__ volatile("mov %1, %%rbx\n\t"
                         "mov $24, %%eax\n\t" /* sched_yield: the value waits in a register */
                         "syscall\n\t"
                         "mov %%rbx, %0"
                         : "=m"(packed[k])
                         : "m"(state[k])
                         : "rax", "rbx", "rcx", "r11", "memory");
#else
        sched_yield();
        packed[k] = state[k];
#endif
    }
    return NULL;
}

static void threads(void)
{
    pthread_t started[THREADS];
    packed = malloc(ELEMENTS * sizeof(double));
    for (int t = 0; t < THREADS; t++)
        pthread_create(&started[t], NULL, pack_part, (void *)(intptr_t)t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(started[t], NULL);
    write_part("threads", packed, ELEMENTS * sizeof(double));
    free(packed);
}

/* ---- All ---- */

static void *filled(size_t element)
{
    void *state = new_state(element);
    fill(state, ELEMENTS * element);
    return state;
}

static void (*const with_double[])(double *) = {raw,    gather,  structs, swapped,
                                                chosen, library, rounded};
enum { WITH_DOUBLE = sizeof(with_double) / sizeof(with_double[0]) };
static double *doubles[WITH_DOUBLE], *streams[3];
static uint64_t *words[2];
static int32_t *integers[2];

void prepare(void)
{
    for (int k = 0; k < WITH_DOUBLE; k++)
        doubles[k] = filled(sizeof(double));
    for (int k = 0; k < 3; k++)
        streams[k] = filled(sizeof(double));
    for (int k = 0; k < 2; k++) {
        words[k] = filled(sizeof(uint64_t));
        integers[k] = filled(sizeof(int32_t));
    }
    for (int k = 0; k < ELEMENTS; k++)
        integers[1][k] = k + 10;
    for_threads = filled(sizeof(double));
    state_double = filled(sizeof(double));
    state_float = filled(sizeof(float));
    state_int32_t = filled(sizeof(int32_t));
    state_uint16_t = filled(sizeof(uint16_t));
    state_uint8_t = filled(sizeof(uint8_t));
    lowest_only = malloc(768);
    fill(lowest_only, 768);
}

void write_parts(void)
{
    for (int k = 0; k < WITH_DOUBLE; k++)
        with_double[k](doubles[k]);
    stdio("stdio_1", streams[0], 1);
    stdio("stdio_7", streams[1], 7);
    stdio("stdio_all", streams[2], ELEMENTS);
    packs_double();
    packs_float();
    packs_int32_t();
    packs_uint16_t();
    packs_uint8_t();
    turned_bytes(lowest_only);
    shifted_bytes(words[0]);
    summed(words[1]);
    widened(integers[0]);
    decided(integers[1]);
    threads();
}

void go_on(void)
{
    for (int k = 0; k < count; k++)
        live_on(states[k], sizes[k]);
    for (int k = 0; k < 768; k += 8)
        clear_bytes((char *)lowest_only + k, 1);
    read_bytes(lowest_only, 768);
}
