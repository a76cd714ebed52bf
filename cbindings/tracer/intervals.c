/* intervals.c - intervals kept by pages of 4 KiB of the key space.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A page with one interval holds it in place, so that a long run costs 16 bytes for 4 KiB of keys;
 * a page with more has a sorted array of 12 bytes an interval, which is 1.5 bytes a byte for copies
 * in grains of 8. Pages stand in a radix tree that grows as high as the largest key needs. An
 * interval never crosses a page inside; at the interface neighbours that continue each other are
 * one.
 */
#include "intervals.h"

enum { PAGE_BITS = 12, PAGE_KEYS = 1 << PAGE_BITS, FAN_BITS = 9, FAN = 1 << FAN_BITS };

typedef struct __attribute__((packed, aligned(4))) {
    UShort first, last; /* keys within the page, both inclusive */
    ULong origin;       /* of the first */
} span;

typedef struct __attribute__((packed, aligned(4))) {
    UShort count, capacity; /* capacity: of the array; 0 without one */
    union {
        span only;  /* count is 0 or 1 */
        span *many; /* otherwise */
    } spans;
} page;

typedef struct {
    page pages[FAN];
} leaf;

typedef struct {
    void *below[FAN]; /* nodes, or leaves at the lowest level */
} node;

struct intervals {
    const HChar *cost_centre;
    void *root;  /* a leaf where height is 0, else a node */
    UInt height; /* levels of nodes above the leaves */
    ULong bytes; /* what the map takes */
    /* The leaf that was asked for last: accesses stay near each other. */
    leaf *recent;
    ULong recent_number;
};

/* ---- The tree ---- */

static void *taken(intervals *map, SizeT bytes)
{
    map->bytes += bytes;
    return VG_(calloc)(map->cost_centre, 1, bytes);
}

/* How many leaves a tree of this height reaches, as a power of two; 64 bits hold all of them. */
static UInt reach_bits(UInt height)
{
    UInt bits = height * FAN_BITS;
    return bits < 63 ? bits : 63;
}

static leaf *leaf_find(const intervals *map, ULong number)
{
    if (map->recent && map->recent_number == number)
        return map->recent;
    if (number >> reach_bits(map->height) != 0)
        return NULL;
    void *at = map->root;
    for (UInt level = map->height; at && level > 0; level--)
        at = ((node *)at)->below[(number >> ((level - 1) * FAN_BITS)) & (FAN - 1)];
    if (at) {
        intervals *cache = (intervals *)map; /* what the map holds is unchanged */
        cache->recent = at;
        cache->recent_number = number;
    }
    return at;
}

static leaf *leaf_make(intervals *map, ULong number)
{
    leaf *found = leaf_find(map, number);
    if (found)
        return found;
    while (number >> reach_bits(map->height) != 0) {
        if (map->root) {
            node *higher = taken(map, sizeof(node));
            higher->below[0] = map->root;
            map->root = higher;
        }
        map->height++;
    }
    void **at = &map->root;
    for (UInt level = map->height; level > 0; level--) {
        if (!*at)
            *at = taken(map, sizeof(node));
        at = &((node *)*at)->below[(number >> ((level - 1) * FAN_BITS)) & (FAN - 1)];
    }
    *at = taken(map, sizeof(leaf));
    return *at;
}

static page *page_find(const intervals *map, ULong number)
{
    leaf *holder = leaf_find(map, number >> FAN_BITS);
    return holder ? &holder->pages[number & (FAN - 1)] : NULL;
}

/* First page with an interval at or behind `number`, which becomes its number; below `at`, whose
 * first page is the `base`th. */
static page *page_search(void *at, UInt level, ULong base, ULong *number)
{
    ULong each = level == 0 ? 1 : 1ULL << (level * FAN_BITS);
    ULong k = *number > base ? (*number - base) / each : 0;
    for (; k < FAN; k++) {
        ULong first = base + k * each;
        if (level == 0) {
            page *found = &((leaf *)at)->pages[k];
            if (found->count) {
                *number = first;
                return found;
            }
        } else if (((node *)at)->below[k]) {
            page *found = page_search(((node *)at)->below[k], level - 1, first, number);
            if (found)
                return found;
        }
    }
    return NULL;
}

static page *page_from(const intervals *map, ULong *number)
{
    return map->root ? page_search(map->root, map->height, 0, number) : NULL;
}

static void tree_free(void *at, UInt level)
{
    for (UInt k = 0; k < FAN; k++) {
        if (level == 0) {
            page *held = &((leaf *)at)->pages[k];
            if (held->capacity)
                VG_(free)(held->spans.many);
        } else if (((node *)at)->below[k]) {
            tree_free(((node *)at)->below[k], level - 1);
        }
    }
    VG_(free)(at);
}

/* ---- A page ---- */

static span *page_spans(page *held)
{
    return held->capacity ? held->spans.many : &held->spans.only;
}

/* Index of the first interval that ends at or behind key. */
static UInt spans_search(const span *spans, UInt count, UInt key)
{
    if (count == 0 || spans[count - 1].last < key)
        return count; /* filling upwards is the common case */
    UInt low = 0, high = count - 1;
    while (low < high) {
        UInt middle = (low + high) / 2;
        if (spans[middle].last < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Steps that meet 512 intervals, grains of 8, exactly. */
static UInt capacity_for(UInt count)
{
    UInt step = count <= 16 ? 4 : 32;
    return (count + step - 1) / step * step;
}

/* Make room for `count` intervals, of which the present ones stay. */
static void page_resize(intervals *map, page *held, UInt count)
{
    UInt capacity = count > 1 ? capacity_for(count) : 0;
    if (count > 1 && capacity <= held->capacity && capacity >= held->capacity / 4)
        return;
    span *old = held->capacity ? held->spans.many : NULL;
    map->bytes += capacity * sizeof(span);
    map->bytes -= held->capacity * sizeof(span);
    if (capacity == 0) {
        if (old) {
            span kept = old[0];
            VG_(free)(old);
            held->spans.only = kept;
        }
    } else if (old) {
        held->spans.many = VG_(realloc)(map->cost_centre, old, capacity * sizeof(span));
    } else {
        span *many = VG_(malloc)(map->cost_centre, capacity * sizeof(span));
        many[0] = held->spans.only;
        held->spans.many = many;
    }
    held->capacity = (UShort)capacity;
}

/* Put `size` intervals in the place of those from `low` to before `high`. */
static void page_replace(intervals *map, page *held, UInt low, UInt high, const span *put,
                         UInt size)
{
    UInt count = held->count, after = count - (high - low) + size;
    if (after > count)
        page_resize(map, held, after);
    span *spans = page_spans(held);
    if (high != low + size && high < count)
        VG_(memmove)(spans + low + size, spans + high, (count - high) * sizeof(span));
    for (UInt k = 0; k < size; k++)
        spans[low + k] = put[k];
    held->count = (UShort)after;
    if (after < count)
        page_resize(map, held, after);
}

static Bool span_continues(const span *left, const span *right)
{
    UInt length = (UInt)left->last + 1 - left->first;
    return right->first == left->last + 1 && origin_at(left->origin, length) == right->origin;
}

static void spans_append(span *list, UInt *size, span more)
{
    if (*size && span_continues(&list[*size - 1], &more))
        list[*size - 1].last = more.last;
    else
        list[(*size)++] = more;
}

/* Whether the keys have this origin already. */
static Bool span_says(const span *known, UInt first, UInt last, ULong origin)
{
    return known->first <= first && last <= known->last &&
           origin_at(known->origin, first - known->first) == origin;
}

static void page_set(intervals *map, page *held, UInt first, UInt last, ULong origin)
{
    const span *spans = page_spans(held);
    UInt count = held->count;
    UInt low = spans_search(spans, count, first), high = low, size = 0;
    if (low < count && span_says(&spans[low], first, last, origin))
        return;
    while (high < count && spans[high].first <= last)
        high++;
    span put[3];
    /* The neighbours are put anew, cut or joined. */
    if (low < high && spans[low].first < first) {
        put[size] = spans[low];
        put[size++].last = (UShort)(first - 1);
    } else if (low > 0 && (UInt)spans[low - 1].last + 1 == first) {
        put[size++] = spans[--low];
    }
    if (origin != ORIGIN_NONE)
        spans_append(put, &size, (span){(UShort)first, (UShort)last, origin});
    if (high > 0 && spans[high - 1].last > last) {
        span rest = spans[high - 1];
        rest.origin = origin_at(rest.origin, last + 1 - rest.first);
        rest.first = (UShort)(last + 1);
        spans_append(put, &size, rest);
    } else if (high < count && spans[high].first == last + 1) {
        spans_append(put, &size, spans[high++]);
    }
    page_replace(map, held, low, high, put, size);
}

/* ---- The interface ---- */

intervals *intervals_new(const HChar *cost_centre)
{
    intervals *map = VG_(calloc)(cost_centre, 1, sizeof(intervals));
    map->cost_centre = cost_centre;
    map->bytes = sizeof(intervals);
    return map;
}

void intervals_clear(intervals *map)
{
    if (map->root)
        tree_free(map->root, map->height);
    map->root = NULL;
    map->recent = NULL;
    map->height = 0;
    map->bytes = sizeof(intervals);
}

void intervals_free(intervals *map)
{
    if (!map)
        return;
    intervals_clear(map);
    VG_(free)(map);
}

static void remove_range(intervals *map, ULong start, ULong last)
{
    ULong number = start >> PAGE_BITS;
    page *held;
    while ((held = page_from(map, &number)) != NULL && number <= last >> PAGE_BITS) {
        ULong base = number << PAGE_BITS;
        UInt from = start > base ? (UInt)(start - base) : 0;
        UInt to = last - base < PAGE_KEYS ? (UInt)(last - base) : PAGE_KEYS - 1;
        page_set(map, held, from, to, ORIGIN_NONE);
        if (++number > last >> PAGE_BITS)
            break;
    }
}

void intervals_set(intervals *map, ULong start, ULong length, ULong origin)
{
    if (length == 0)
        return;
    ULong last = start + length - 1;
    if (last < start)
        last = ~0ULL;
    if (origin == ORIGIN_NONE) {
        remove_range(map, start, last);
        return;
    }
    for (ULong at = start;;) {
        ULong end = at | (PAGE_KEYS - 1);
        if (end > last)
            end = last;
        ULong number = at >> PAGE_BITS;
        page *held = &leaf_make(map, number >> FAN_BITS)->pages[number & (FAN - 1)];
        page_set(map, held, (UInt)(at & (PAGE_KEYS - 1)), (UInt)(end & (PAGE_KEYS - 1)),
                 origin_at(origin, at - start));
        if (end == last)
            return;
        at = end + 1;
    }
}

/* Distance from `start`, which has no interval, to the next one: at most limit. */
static ULong gap_length(const intervals *map, ULong start, ULong limit)
{
    ULong number = start >> PAGE_BITS;
    UInt key = (UInt)(start & (PAGE_KEYS - 1));
    page *held = page_find(map, number);
    UInt k = held ? spans_search(page_spans(held), held->count, key) : 0;
    if (held && k < held->count) {
        ULong length = page_spans(held)[k].first - key;
        return length < limit ? length : limit;
    }
    number++;
    if (limit <= PAGE_KEYS - key || number << PAGE_BITS == 0)
        return limit;
    held = page_from(map, &number);
    if (!held)
        return limit;
    ULong length = (number << PAGE_BITS) + page_spans(held)[0].first - start;
    return length < limit ? length : limit;
}

ULong intervals_piece(const intervals *map, ULong start, ULong limit, ULong *origin)
{
    *origin = ORIGIN_NONE;
    if (start != 0 && limit > 0 - start)
        limit = 0 - start; /* up to the last key */
    if (limit == 0)
        return 0;
    ULong number = start >> PAGE_BITS;
    UInt key = (UInt)(start & (PAGE_KEYS - 1));
    page *held = page_find(map, number);
    const span *at = NULL;
    if (held) {
        UInt k = spans_search(page_spans(held), held->count, key);
        at = page_spans(held) + k;
        if (k == held->count || at->first > key)
            at = NULL;
    }
    if (!at)
        return gap_length(map, start, limit);
    *origin = origin_at(at->origin, key - at->first);
    ULong length = (ULong)at->last + 1 - key;
    while (length < limit && at->last == PAGE_KEYS - 1) {
        held = page_find(map, ++number);
        if (!held || held->count == 0)
            break;
        at = page_spans(held);
        if (at->first != 0 || at->origin != origin_at(*origin, length))
            break;
        length += (ULong)at->last + 1;
    }
    return length < limit ? length : limit;
}

/* Where the interval that holds the first key of page `number` begins: in an earlier page, maybe.
 */
static ULong interval_begin(const intervals *map, ULong number, ULong *origin)
{
    for (;;) {
        ULong start = number << PAGE_BITS;
        if (number == 0)
            return start;
        page *held = page_find(map, --number);
        if (!held || held->count == 0)
            return start;
        const span *before = page_spans(held) + held->count - 1;
        UInt length = (UInt)before->last + 1 - before->first;
        if (before->last != PAGE_KEYS - 1 || origin_at(before->origin, length) != *origin)
            return start;
        *origin = before->origin;
        if (before->first != 0)
            return (number << PAGE_BITS) + before->first;
    }
}

Bool intervals_first(const intervals *map, ULong from, ULong *start, ULong *length, ULong *origin)
{
    ULong number = from >> PAGE_BITS;
    page *held = page_from(map, &number);
    if (!held)
        return False;
    UInt k = 0;
    if (number == from >> PAGE_BITS) {
        k = spans_search(page_spans(held), held->count, (UInt)(from & (PAGE_KEYS - 1)));
        if (k == held->count) {
            k = 0;
            number++;
            held = number << PAGE_BITS == 0 ? NULL : page_from(map, &number);
        }
    }
    if (!held)
        return False;
    const span *at = page_spans(held) + k;
    *origin = at->origin;
    *start = (number << PAGE_BITS) + at->first;
    if (at->first == 0)
        *start = interval_begin(map, number, origin);
    ULong same;
    *length = intervals_piece(map, *start, ~0ULL, &same);
    return True;
}

ULong intervals_memory(const intervals *map)
{
    return map->bytes;
}
