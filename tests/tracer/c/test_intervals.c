/* test_intervals.c - the interval map against a plain array with one origin a key.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Usage: test_intervals <seed> <rounds>
 */
#include "native.h"
#include "intervals.h"

enum { KEYS = 5 * 4096, WINDOWS = 6 };

/* Windows of the key space; each map is tried in all of them at once. */
static const ULong window_start[WINDOWS] = {
    0,
    (1ULL << 21) - 2 * 4096,      /* over the end of a leaf of the tree */
    0x7ffc12345000ULL,            /* a stack */
    (1ULL << 62) - 2 * 4096 + 17, /* not on a page */
    (1ULL << 63) - 4096,          /* the highest bit */
    0 - (ULong)KEYS,              /* the last keys there are */
};
static ULong model[WINDOWS][KEYS];

static ULong random_state;

static ULong random_below(ULong limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % limit;
}

static ULong random_origin(ULong near)
{
    switch (random_below(6)) {
    case 0:
        return ORIGIN_NONE;
    case 1:
        return ORIGIN_DERIVED;
    case 2:
        return ORIGIN_FILE | (near % KEYS); /* often continues a neighbour */
    case 3:
        return ORIGIN_FILE | random_below(1ULL << 40);
    case 4:
        return 0x1000000 + near % KEYS;
    default:
        return 1 + random_below(1ULL << 47);
    }
}

static ULong random_length(void)
{
    switch (random_below(4)) {
    case 0:
        return 1 + random_below(4);
    case 1:
        return 8;
    case 2:
        return 1 + random_below(200);
    default:
        return 1 + random_below(3 * 4096);
    }
}

static void set_both(intervals *map, UInt window, ULong key, ULong length, ULong origin)
{
    intervals_set(map, window_start[window] + key, length, origin);
    for (ULong k = 0; k < length; k++)
        model[window][key + k] = origin_at(origin, k);
}

/* How far the origin at `key` goes on in the model. */
static ULong model_piece(UInt window, ULong key, ULong limit)
{
    ULong length = 1;
    while (length < limit && key + length < KEYS &&
           model[window][key + length] == origin_at(model[window][key], length))
        length++;
    return length;
}

static void check_piece(const intervals *map, UInt window, ULong key, ULong limit)
{
    ULong origin = 12345;
    ULong length = intervals_piece(map, window_start[window] + key, limit, &origin);
    CHECK(origin == model[window][key], "window %u key %llu: %llx, expected %llx", window, key,
          origin, model[window][key]);
    ULong expected = model_piece(window, key, limit);
    CHECK(length == expected, "window %u key %llu limit %llu: %llu, expected %llu", window, key,
          limit, length, expected);
}

/* The walk shows every interval of every window once, as long as it is, in order. */
static void check_walk(const intervals *map)
{
    ULong from = 0, start, length, origin;
    for (UInt window = 0; window < WINDOWS; window++) {
        for (ULong key = 0; key < KEYS;) {
            ULong expected = model_piece(window, key, KEYS);
            if (model[window][key] != ORIGIN_NONE) {
                CHECK(intervals_first(map, from, &start, &length, &origin), "window %u key %llu",
                      window, key);
                CHECK(start == window_start[window] + key, "window %u: %llx, expected %llx", window,
                      start, window_start[window] + key);
                CHECK(length == expected, "window %u key %llu: %llu, expected %llu", window, key,
                      length, expected);
                CHECK(origin == model[window][key], "window %u key %llu: %llx", window, key,
                      origin);
                /* From anywhere inside, the interval is the same. */
                ULong start2, length2, origin2;
                CHECK(intervals_first(map, start + random_below(length), &start2, &length2,
                                      &origin2) &&
                          start2 == start && length2 == length && origin2 == origin,
                      "window %u key %llu: %llx + %llu, expected %llx + %llu", window, key, start2,
                      length2, start, length);
                from = start + length; /* 0 behind the last key */
            }
            key += expected;
        }
    }
    CHECK(from == 0 || !intervals_first(map, from, &start, &length, &origin), "more at %llx",
          start);
}

static void test_random(UInt rounds)
{
    intervals *map = intervals_new("test");
    for (UInt round = 0; round < rounds; round++) {
        if (round % 500 == 499) {
            intervals_clear(map);
            memset(model, 0, sizeof(model));
        }
        UInt window = (UInt)random_below(WINDOWS);
        ULong length = random_length();
        ULong key = random_below(KEYS - length + 1);
        if (random_below(3) == 0)
            key = key / 8 * 8;
        set_both(map, window, key, length, random_origin(key));
        for (UInt k = 0; k < 20; k++) {
            /* Not beyond the window: in the model nothing is known there. */
            key = random_below(KEYS);
            check_piece(map, window, key, 1 + random_below(KEYS - key));
        }
        if (round % 20 == 0)
            check_walk(map);
    }
    intervals_free(map);
    CHECK(native_blocks == 0, "%llu blocks", native_blocks);
}

static void test_empty(void)
{
    intervals *map = intervals_new("test");
    ULong start, length, origin;
    CHECK(!intervals_first(map, 0, &start, &length, &origin), "an empty map");
    CHECK(intervals_piece(map, 77, 1000, &origin) == 1000 && origin == ORIGIN_NONE, "a gap");
    CHECK(intervals_piece(map, 77, 0, &origin) == 0, "no limit, no piece");
    CHECK(intervals_piece(map, ~0ULL, 5, &origin) == 1, "the last key");
    intervals_set(map, 5, 0, 99);
    CHECK(!intervals_first(map, 0, &start, &length, &origin), "nothing was set");
    intervals_set(map, 0, ~0ULL, ORIGIN_NONE);
    CHECK(intervals_memory(map) < 200, "%llu bytes", intervals_memory(map));
    intervals_free(map);
    intervals_free(NULL);
    CHECK(native_blocks == 0, "%llu blocks", native_blocks);
}

/* A direct write of 1 GiB: near nothing, and one interval. */
static void test_long_run(void)
{
    ULong gib = 1ULL << 30, start, length, origin;
    intervals *map = intervals_new("test");
    intervals_set(map, 0x7f0000000123ULL, gib, 0x10000000ULL);
    CHECK(intervals_memory(map) < gib / 100, "%llu bytes", intervals_memory(map));
    CHECK(intervals_first(map, 0, &start, &length, &origin) && start == 0x7f0000000123ULL &&
              length == gib && origin == 0x10000000ULL,
          "%llx + %llx", start, length);
    CHECK(intervals_first(map, start + gib - 1, &start, &length, &origin) && length == gib,
          "from behind");
    intervals_set(map, start + gib / 2, 1, ORIGIN_NONE);
    CHECK(intervals_piece(map, start, ~0ULL, &origin) == gib / 2, "cut");
    intervals_set(map, 0, 1ULL << 62, ORIGIN_NONE);
    CHECK(!intervals_first(map, 0, &start, &length, &origin), "all removed");
    intervals_free(map);
    CHECK(native_blocks == 0, "%llu blocks", native_blocks);
}

/* Copies in grains of 8 bytes that do not continue each other: 1.5 bytes a byte, and the tree. */
static void test_grains(ULong grain, double most)
{
    ULong bytes = 8 << 20, first_key = 0x7f0000000000ULL;
    intervals *map = intervals_new("test");
    for (ULong k = 0; k < bytes / grain; k++)
        intervals_set(map, first_key + k * grain, grain, 0x10000000ULL + 3 * k * grain);
    CHECK((double)intervals_memory(map) <= most * (double)bytes, "grain %llu: %.3f bytes a byte",
          grain, (double)intervals_memory(map) / (double)bytes);
    ULong count = 0, from = 0, start, length, origin;
    while (intervals_first(map, from, &start, &length, &origin)) {
        CHECK(length == grain && origin == 0x10000000ULL + 3 * count * grain, "interval %llu",
              count);
        count++;
        from = start + length;
    }
    CHECK(count == bytes / grain, "%llu intervals", count);
    intervals_free(map);
}

int main(int argc, char **argv)
{
    random_state = 88172645463325252ULL ^ (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) << 20;
    test_empty();
    test_long_run();
    test_grains(8, 1.52);
    test_grains(24, 0.6);
    test_random(argc > 2 ? (UInt)strtoul(argv[2], NULL, 10) : 2000);
    return 0;
}
