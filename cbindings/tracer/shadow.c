/* shadow.c - first accesses to watched memory: two bits a byte. See shadow.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A page of memory has its states in one block of words; pages are found through a tree of three
 * levels. Beside it stands the table of guards, kept equal to what the pages hold.
 */
#include "shadow.h"

#include <pub_tool_xarray.h>

#define PAGE_BITS 12
#define PAGE_BYTES (1UL << PAGE_BITS)
#define WORD_BYTES 32 /* of memory, whose states one word holds */
#define TABLE_BITS 12
#define TABLE_SLOTS (1UL << TABLE_BITS)
#define ADDRESS_BITS (PAGE_BITS + 3 * TABLE_BITS)
#define GRANULE_BYTES (1UL << SHADOW_GRANULE_BITS)

_Static_assert(SHADOW_GUARD_REACH <= GRANULE_BYTES, "an access meets two granules at most");

/* The low bit of each state in a word. A state has its low bit set in PENDING and WRITTEN, its
 * high bit in READ and WRITTEN. */
#define LOW 0x5555555555555555ULL

typedef struct {
    ULong states[PAGE_BYTES / WORD_BYTES];
} page;

typedef struct {
    void *slots[TABLE_SLOTS];
} table;

UChar shadow_guards[SHADOW_GUARDS + 7];

static table root;          /* of tables of tables of pages */
static XArray *spans;       /* of Addr: address >> SHADOW_SPAN_BITS wherever there are pages */
static page *latest;        /* the page that was found last */
static Addr latest_address; /* where it begins */
static ULong pending_bytes;
static ULong memory_bytes;

/* ---- Pages ---- */

static inline UWord slot_of(Addr address, UInt level)
{
    return (address >> (PAGE_BITS + level * TABLE_BITS)) & (TABLE_SLOTS - 1);
}

static inline Addr page_start(Addr address)
{
    return address & ~(PAGE_BYTES - 1);
}

static page *find_page(Addr address)
{
    if (latest && page_start(address) == latest_address)
        return latest;
    if (address >> ADDRESS_BITS)
        return NULL;
    const table *middle = root.slots[slot_of(address, 2)];
    const table *leaf = middle ? middle->slots[slot_of(address, 1)] : NULL;
    page *found = leaf ? leaf->slots[slot_of(address, 0)] : NULL;
    if (found) {
        latest = found;
        latest_address = page_start(address);
    }
    return found;
}

/* How far the memory goes on, from an address that has no page, for which there is none. */
static SizeT bytes_without_page(Addr address)
{
    SizeT hole = PAGE_BYTES;
    const table *middle = NULL;
    if (address >> ADDRESS_BITS)
        return ~(SizeT)0 - address;
    middle = root.slots[slot_of(address, 2)];
    if (!middle)
        hole <<= 2 * TABLE_BITS;
    else if (!middle->slots[slot_of(address, 1)])
        hole <<= TABLE_BITS;
    return hole - (address & (hole - 1));
}

static void *new_part(SizeT bytes)
{
    memory_bytes += bytes;
    return VG_(calloc)("shadow.part", 1, bytes);
}

static void note_span(Addr address)
{
    const Addr span = address >> SHADOW_SPAN_BITS;
    if (!spans)
        spans = VG_(newXA)(VG_(malloc), "shadow.spans", VG_(free), sizeof(Addr));
    for (Word i = 0; i < VG_(sizeXA)(spans); i++) {
        if (*(Addr *)VG_(indexXA)(spans, i) == span)
            return;
    }
    VG_(addToXA)(spans, &span);
}

static page *find_or_make_page(Addr address)
{
    page *found = find_page(address);
    if (found)
        return found;
    /* No user address of a supported machine lies beyond. */
    tl_assert(address >> ADDRESS_BITS == 0);
    void **slot = &root.slots[slot_of(address, 2)];
    if (!*slot)
        *slot = new_part(sizeof(table));
    slot = &((table *)*slot)->slots[slot_of(address, 1)];
    if (!*slot)
        *slot = new_part(sizeof(table));
    slot = &((table *)*slot)->slots[slot_of(address, 0)];
    *slot = new_part(sizeof(page));
    /* The guard of the granule before depends on this page, too. */
    note_span(address);
    note_span(page_start(address) - 1);
    latest = *slot;
    latest_address = page_start(address);
    return latest;
}

/* ---- Words ---- */

static inline ULong pending_in(ULong states)
{
    return states & ~(states >> 1) & LOW;
}

/* The low bits of the states of bytes [first, first + count) of a word's memory. */
static inline ULong low_bits(SizeT first, SizeT count)
{
    return (LOW >> (2 * (WORD_BYTES - count))) << (2 * first);
}

static inline UInt count_bits(ULong low)
{
    /* No popcount: the instruction is not in every machine's baseline. */
    low = (low & 0x3333333333333333ULL) + (low >> 2 & 0x3333333333333333ULL);
    low = (low & 0x0f0f0f0f0f0f0f0fULL) + (low >> 4 & 0x0f0f0f0f0f0f0f0fULL);
    return low * 0x0101010101010101ULL >> 56;
}

static inline SizeT smaller(SizeT a, SizeT b)
{
    return a < b ? a : b;
}

/* ---- Guards ---- */

/* What the pages say of the granule that begins at this address. */
static UChar granule_guard(Addr granule)
{
    const page *own = find_page(granule);
    ULong low = 0;
    UChar guard = 0;
    if (own) {
        const ULong *states = &own->states[(granule & (PAGE_BYTES - 1)) / WORD_BYTES];
        for (UInt i = 0; i < GRANULE_BYTES / WORD_BYTES; i++)
            low |= pending_in(states[i]);
    }
    guard = low != 0;
    const Addr next = granule + GRANULE_BYTES;
    const page *after = next & (PAGE_BYTES - 1) ? own : find_page(next);
    if (after) {
        const ULong *states = &after->states[(next & (PAGE_BYTES - 1)) / WORD_BYTES];
        const ULong head = pending_in(states[0]);
        guard |= (head & low_bits(0, 7)) ? 2 : 0;
        guard |= (head & low_bits(7, 8)) ? 4 : 0;
        guard |= (head & low_bits(15, 16)) ? 8 : 0;
        guard |= ((head & low_bits(31, 1)) || (pending_in(states[1]) & low_bits(0, 31))) ? 16 : 0;
    }
    return guard;
}

static void refresh_guard(Addr granule)
{
    const Addr within = granule & ((1UL << SHADOW_SPAN_BITS) - 1);
    UChar guard = 0;
    for (Word i = 0; i < VG_(sizeXA)(spans); i++) {
        const Addr span = *(Addr *)VG_(indexXA)(spans, i);
        guard |= granule_guard(span << SHADOW_SPAN_BITS | within);
    }
    shadow_guards[within >> SHADOW_GRANULE_BITS] = guard;
}

/* The states of these bytes changed. */
static void refresh_guards(Addr address, SizeT bytes)
{
    const Addr first = address & ~(GRANULE_BYTES - 1);
    if (address - first < SHADOW_GUARD_REACH)
        refresh_guard(first - GRANULE_BYTES);
    for (Addr granule = first; granule - first < address - first + bytes; granule += GRANULE_BYTES)
        refresh_guard(granule);
}

/* ---- Changes ---- */

/* Give bytes of one page a state. */
static void assign_in_page(page *target, SizeT offset, SizeT bytes, shadow_state state)
{
    while (bytes > 0) {
        const SizeT first = offset % WORD_BYTES;
        const SizeT count = smaller(bytes, WORD_BYTES - first);
        const ULong low = low_bits(first, count);
        ULong *states = &target->states[offset / WORD_BYTES];
        pending_bytes -= count_bits(pending_in(*states) & low);
        *states = (*states & ~(low * 3)) | low * state;
        if (state == SHADOW_PENDING)
            pending_bytes += count;
        offset += count;
        bytes -= count;
    }
}

static void assign(Addr address, SizeT bytes, shadow_state state)
{
    while (bytes > 0) {
        const SizeT offset = address & (PAGE_BYTES - 1);
        page *target = state == SHADOW_NONE ? find_page(address) : find_or_make_page(address);
        SizeT part = smaller(bytes, PAGE_BYTES - offset);
        if (target) {
            assign_in_page(target, offset, part, state);
            refresh_guards(address, part);
        } else {
            part = smaller(bytes, bytes_without_page(address));
        }
        address += part;
        bytes -= part;
    }
}

/* Decide what is pending of these bytes of one page; whether anything was. */
static Bool decide_in_page(page *target, SizeT offset, SizeT bytes, Bool written)
{
    ULong any = 0;
    while (bytes > 0) {
        const SizeT first = offset % WORD_BYTES;
        const SizeT count = smaller(bytes, WORD_BYTES - first);
        ULong *states = &target->states[offset / WORD_BYTES];
        const ULong chosen = pending_in(*states) & low_bits(first, count);
        if (chosen) {
            /* 01 becomes 10 (read) or 11 (written) */
            *states ^= written ? chosen << 1 : chosen * 3;
            pending_bytes -= count_bits(chosen);
            any |= chosen;
        }
        offset += count;
        bytes -= count;
    }
    return any != 0;
}

static void decide(Addr address, SizeT bytes, Bool written)
{
    while (bytes > 0 && pending_bytes > 0) {
        const SizeT offset = address & (PAGE_BYTES - 1);
        page *target = find_page(address);
        SizeT part = smaller(bytes, PAGE_BYTES - offset);
        if (!target)
            part = smaller(bytes, bytes_without_page(address));
        else if (decide_in_page(target, offset, part, written))
            refresh_guards(address, part);
        address += part;
        bytes -= part;
    }
}

void shadow_watch(Addr address, SizeT bytes)
{
    assign(address, bytes, SHADOW_PENDING);
}

void shadow_read(Addr address, SizeT bytes)
{
    decide(address, bytes, False);
}

void shadow_write(Addr address, SizeT bytes)
{
    decide(address, bytes, True);
}

typedef struct {
    SizeT length;
    shadow_state state;
} piece;

/* All pieces are taken before the first is laid down: the places may overlap. */
void shadow_move(Addr from, Addr to, SizeT bytes)
{
    XArray *pieces = VG_(newXA)(VG_(malloc), "shadow.move", VG_(free), sizeof(piece));
    for (SizeT done = 0; done < bytes;) {
        piece taken;
        taken.length = shadow_piece(from + done, bytes - done, &taken.state);
        VG_(addToXA)(pieces, &taken);
        done += taken.length;
    }
    assign(from, bytes, SHADOW_NONE);
    for (Word i = 0; i < VG_(sizeXA)(pieces); i++) {
        const piece *laid = VG_(indexXA)(pieces, i);
        assign(to, laid->length, laid->state);
        to += laid->length;
    }
    VG_(deleteXA)(pieces);
}

/* ---- Looking ---- */

/* Bytes from `offset` to the end of the page that have the state of the first. */
static SizeT piece_in_page(const page *looked_at, SizeT offset, shadow_state state)
{
    const SizeT start = offset;
    while (offset < PAGE_BYTES) {
        const SizeT first = offset % WORD_BYTES;
        const ULong other = looked_at->states[offset / WORD_BYTES] ^ LOW * state;
        const ULong different = (other | other >> 1) & LOW & low_bits(first, WORD_BYTES - first);
        if (different)
            return offset - first + __builtin_ctzll(different) / 2 - start;
        offset += WORD_BYTES - first;
    }
    return PAGE_BYTES - start;
}

static shadow_state state_of(const page *looked_at, Addr address)
{
    const SizeT offset = address & (PAGE_BYTES - 1);
    if (!looked_at)
        return SHADOW_NONE;
    return looked_at->states[offset / WORD_BYTES] >> (2 * (offset % WORD_BYTES)) & 3;
}

SizeT shadow_piece(Addr address, SizeT limit, shadow_state *state)
{
    const page *looked_at = find_page(address);
    SizeT length = 0;
    *state = state_of(looked_at, address);
    for (;;) {
        const SizeT offset = (address + length) & (PAGE_BYTES - 1);
        const SizeT possible =
            looked_at ? PAGE_BYTES - offset : bytes_without_page(address + length);
        const SizeT same = looked_at ? piece_in_page(looked_at, offset, *state) : possible;
        if (same >= limit - length)
            return limit;
        length += same;
        if (same < possible)
            return length;
        looked_at = find_page(address + length);
        if (state_of(looked_at, address + length) != *state)
            return length;
    }
}

/* ---- All of it ---- */

static void clear_guards_of_page(UWord page_number)
{
    const UWord granules = PAGE_BYTES / GRANULE_BYTES;
    const UWord first = page_number * granules;
    /* and the guard of the granule before */
    for (UWord i = 0; i <= granules; i++)
        shadow_guards[(first + i - 1) & (SHADOW_GUARDS - 1)] = 0;
}

static void clear_leaf(table *leaf, UWord first_page)
{
    for (UWord i = 0; i < TABLE_SLOTS; i++) {
        if (leaf->slots[i]) {
            clear_guards_of_page(first_page + i);
            VG_(free)(leaf->slots[i]);
        }
    }
    VG_(free)(leaf);
}

void shadow_clear(void)
{
    for (UWord i = 0; i < TABLE_SLOTS; i++) {
        table *middle = root.slots[i];
        if (!middle)
            continue;
        for (UWord k = 0; k < TABLE_SLOTS; k++) {
            if (middle->slots[k])
                clear_leaf(middle->slots[k], (i << TABLE_BITS | k) << TABLE_BITS);
        }
        VG_(free)(middle);
        root.slots[i] = NULL;
    }
    if (spans)
        VG_(dropTailXA)(spans, VG_(sizeXA)(spans));
    latest = NULL;
    pending_bytes = memory_bytes = 0;
}

ULong shadow_pending(void)
{
    return pending_bytes;
}

ULong shadow_memory(void)
{
    /* one guard stands for a granule */
    return memory_bytes + memory_bytes * WORD_BYTES / sizeof(ULong) / GRANULE_BYTES;
}
