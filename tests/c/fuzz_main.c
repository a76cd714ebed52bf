/* fuzz_main.c - drives a libFuzzer target where there is no libFuzzer.
 *
 *     fuzz_<target> SEED COUNT CRASH-FILE CORPUS...
 *
 * Runs every corpus file as it is, then COUNT mutations of them, all determined by SEED. What makes
 * the target crash or hang is written to CRASH-FILE: commit it below tests/c/corpus/ by a telling
 * name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 16, SECONDS_EACH = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static uint64_t state;

/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t next_random(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t below(size_t limit)
{
    return (size_t)(next_random() % limit);
}

/* ---- Mutations ------------------------------------------------------------------------------- */

static void flip_bit(input *in)
{
    in->data[below(in->size)] ^= (uint8_t)(1u << below(8));
}

static void set_byte(input *in)
{
    in->data[below(in->size)] = (uint8_t)next_random();
}

/* Numbers at which sums wrap and comparisons turn. */
static void set_number(input *in)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       127,
                                       128,
                                       255,
                                       65535,
                                       1 << 20,
                                       INT32_MAX,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       INT64_MAX,
                                       UINT64_C(1) << 63,
                                       UINT64_MAX};
    const size_t width = (size_t)1 << below(4);
    if (in->size < width)
        return;
    uint64_t number = numbers[below(sizeof numbers / sizeof numbers[0])] + below(3) - 1;
    uint8_t *at = in->data + (below(in->size - width + 1) & ~(width - 1));
    for (size_t i = 0; i < width; i++, number >>= 8)
        at[i] = (uint8_t)number;
}

static void cut(input *in)
{
    in->size -= below(in->size);
}

static void erase(input *in)
{
    const size_t at = below(in->size), n = 1 + below(in->size - at < 16 ? in->size - at : 16);
    if (n >= in->size)
        return;
    memmove(in->data + at, in->data + at + n, in->size - at - n);
    in->size -= n;
}

static void insert(input *in, const input *other)
{
    const size_t at = below(in->size), from = below(other->size);
    size_t n = 1 + below(other->size - from < 64 ? other->size - from : 64);
    if (n > INPUT_MAX - in->size)
        return;
    memmove(in->data + at + n, in->data + at, in->size - at);
    memcpy(in->data + at, other->data + from, n);
    in->size += n;
}

static void overlay(input *in, const input *other)
{
    const size_t at = below(in->size), from = below(other->size);
    size_t n = 1 + below(64);
    n = n < in->size - at ? n : in->size - at;
    n = n < other->size - from ? n : other->size - from;
    memcpy(in->data + at, other->data + from, n);
}

static void mutate(input *in, const input *other)
{
    const size_t times = 1 + below(4);
    for (size_t i = 0; i < times && in->size > 0; i++)
        switch (below(8)) {
        case 0:
        case 1:
            flip_bit(in);
            break;
        case 2:
            set_byte(in);
            break;
        case 3:
            set_number(in);
            break;
        case 4:
            erase(in);
            break;
        case 5:
            insert(in, other);
            break;
        case 6:
            overlay(in, other);
            break;
        default:
            if (below(4) == 0)
                cut(in);
        }
}

/* ---- Running --------------------------------------------------------------------------------- */

static const char *crash_file;
static input current;

static void keep_current(void)
{
    const int fd = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0 && write(fd, current.data, current.size) == (ssize_t)current.size)
        fprintf(stderr, "the input is in %s\n", crash_file);
}

static void die_with_input(int number)
{
    keep_current();
    signal(number, SIG_DFL);
    raise(number == SIGALRM ? SIGABRT : number);
}

/* A sanitizer's run-time library calls this before it ends the process. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void run(const input *in)
{
    current = *in;
    alarm(SECONDS_EACH);
    /* In a block of its own size, so that a sanitizer sees a look beyond the end. */
    uint8_t *copy = malloc(in->size ? in->size : 1);
    memcpy(copy, in->data, in->size);
    LLVMFuzzerTestOneInput(copy, in->size);
    free(copy);
}

static input load(const char *path)
{
    input in = {malloc(INPUT_MAX), 0};
    FILE *file = fopen(path, "rb");
    if (file == NULL || in.data == NULL) {
        perror(path);
        exit(2);
    }
    in.size = fread(in.data, 1, INPUT_MAX, file);
    fclose(file);
    return in;
}

static void run_mutations(const input *corpus, size_t count, unsigned long times)
{
    input work = {malloc(INPUT_MAX), 0};
    for (unsigned long i = 0; i < times; i++) {
        const input *base = &corpus[below(count)], *other = &corpus[below(count)];
        if (base->size == 0 || other->size == 0)
            continue;
        memcpy(work.data, base->data, base->size);
        work.size = base->size;
        mutate(&work, other);
        run(&work);
    }
    free(work.data);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: %s SEED COUNT CRASH-FILE CORPUS...\n", argv[0]);
        return 2;
    }
    const size_t count = (size_t)argc - 4;
    input *corpus = calloc(count, sizeof *corpus);
    state = strtoull(argv[1], NULL, 0);
    crash_file = argv[3];
    signal(SIGALRM, die_with_input);
    signal(SIGABRT, die_with_input);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(keep_current);
    for (size_t i = 0; i < count; i++) {
        corpus[i] = load(argv[4 + i]);
        run(&corpus[i]);
    }
    run_mutations(corpus, count, strtoul(argv[2], NULL, 0));
    for (size_t i = 0; i < count; i++)
        free(corpus[i].data);
    free(corpus);
    printf("%zu files and %s mutations survived\n", count, argv[2]);
    return 0;
}
