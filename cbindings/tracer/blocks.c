/* blocks.c - the program's heap blocks and mappings.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Every block is a node in a tree by address. A block freed while copies are followed stays in a
 * second tree until the phase ends, for there the origin of a byte is where it stood when the phase
 * began. Tests: tests/tracer/test_tracer_files.py.
 */
#include "blocks.h"

#include "block_lines.h"
#include "origins.h"
#include "phase.h"
#include "watch.h"

#include <valgrind.h>

#include <pub_tool_execontext.h>
#include <pub_tool_oset.h>
#include <pub_tool_replacemalloc.h>

/* The C library's vectorised string functions look up to 127 bytes past a string: not into the
 * block behind it, which would seem to be read. Before and behind each block. */
enum { REDZONE = 64 };

typedef struct {
    Addr start; /* first: the tree's key */
    SizeT bytes;
    ExeContext *made_at;
    Int number;   /* in the trace; -1: not named so far */
    UInt made_in; /* number of the phase that follows copies; 0: made outside of them */
    Bool heap;
} block;

static OSet *live, *freed;    /* of block; freed: in this phase, though made before it */
static UInt phase_number = 1; /* counts the phases that follow copies */
static Int blocks_named;
static XArray *newly_named; /* of block (copies) */

/* An address is equal to the block that holds it. */
static Word compare(const void *key, const void *element)
{
    Addr address = *(const Addr *)key;
    const block *b = element;
    if (address < b->start)
        return -1;
    /* A block of no bytes still has its own address. */
    return address >= b->start + (b->bytes ? b->bytes : 1);
}

static UInt made_now(void)
{
    return phase_follows() ? phase_number : 0;
}

static void forget(OSet *tree, Addr start)
{
    block *b = VG_(OSetGen_Remove)(tree, &start);
    if (b)
        VG_(OSetGen_FreeNode)(tree, b);
}

static block *add(OSet *tree, block values)
{
    block *b = VG_(OSetGen_AllocNode)(tree, sizeof *b);
    *b = values;
    VG_(OSetGen_Insert)(tree, b);
    return b;
}

static block *heap_block(void *p)
{
    Addr start = (Addr)p;
    block *b = VG_(OSetGen_Lookup)(live, &start);
    return b && b->heap && b->start == start ? b : NULL;
}

/* ---- What malloc and its kin do ---- */

static void *allocate(ThreadId tid, SizeT bytes, SizeT align, Bool zeroed)
{
    if ((SSizeT)bytes < 0)
        return NULL;
    void *p = VG_(cli_malloc)(align, bytes);
    if (!p)
        return NULL;
    if (zeroed) {
        VG_(memset)(p, 0, bytes);
        if (phase_follows())
            origins_overwrite((Addr)p, bytes, ORIGIN_DERIVED);
    }
    add(live, (block){(Addr)p, bytes, VG_(record_ExeContext)(tid, 0), -1, made_now(), True});
    return p;
}

/* The block leaves the tree; where copies are followed it can still be found. */
static void bury(block *b)
{
    if (phase_follows() && b->made_in != phase_number && b->bytes &&
        !VG_(OSetGen_Contains)(freed, &b->start))
        add(freed, *b);
    forget(live, b->start);
}

static void release(ThreadId tid, void *p)
{
    (void)tid;
    block *b = heap_block(p);
    if (!b)
        return;
    watch_gone(b->start, b->bytes);
    if (phase_follows())
        origins_forget(b->start, b->bytes);
    bury(b);
    VG_(cli_free)(p);
}

static void *move(ThreadId tid, block *old, SizeT bytes)
{
    void *from = (void *)old->start;
    SizeT kept = bytes < old->bytes ? bytes : old->bytes;
    void *to = allocate(tid, bytes, VG_(clo_alignment), False);
    if (!to)
        return NULL;
    VG_(memcpy)(to, from, kept);
    if (phase_follows())
        origins_move((Addr)from, (Addr)to, kept);
    watch_moved((Addr)from, (Addr)to, kept);
    release(tid, from);
    return to;
}

/* realloc to 0 bytes: up to 3.20 Valgrind itself frees the block, since 3.21 the tool has to. */
#if __VALGRIND_MAJOR__ > 3 || __VALGRIND_MINOR__ >= 21
#define RESIZED_TO_NOTHING_IS_FREED VG_(clo_realloc_zero_bytes_frees)
#else
#define RESIZED_TO_NOTHING_IS_FREED True
#endif

static void *resize(ThreadId tid, void *p, SizeT bytes)
{
    if (!p)
        return allocate(tid, bytes, VG_(clo_alignment), False);
    if (bytes == 0 && RESIZED_TO_NOTHING_IS_FREED) {
        release(tid, p);
        return NULL;
    }
    block *b = heap_block(p);
    if (!b || (SSizeT)bytes < 0)
        return NULL;
    if (bytes > VG_(cli_malloc_usable_size)(p) || bytes < b->bytes / 2)
        return move(tid, b, bytes);
    if (bytes < b->bytes) {
        watch_gone(b->start + bytes, b->bytes - bytes);
        if (phase_follows())
            origins_forget(b->start + bytes, b->bytes - bytes);
    }
    block changed = *b; /* another block as far as names go: made here, of that many bytes */
    bury(b);
    changed.bytes = bytes;
    changed.made_in = made_now();
    changed.made_at = VG_(record_ExeContext)(tid, 0);
    changed.number = -1;
    add(live, changed);
    return p;
}

static void *take_malloc(ThreadId tid, SizeT bytes)
{
    return allocate(tid, bytes, VG_(clo_alignment), False);
}

static void *take_calloc(ThreadId tid, SizeT count, SizeT bytes)
{
    if (bytes && count > ~(SizeT)0 / bytes)
        return NULL;
    return allocate(tid, count * bytes, VG_(clo_alignment), True);
}

/* Valgrind 3.22 passes the alignment as the program gave it, too. */
#if __VALGRIND_MAJOR__ > 3 || __VALGRIND_MINOR__ >= 22
static void *take_new_aligned(ThreadId tid, SizeT bytes, SizeT align, SizeT asked)
{
    (void)asked;
    return allocate(tid, bytes, align, False);
}
static void *take_memalign(ThreadId tid, SizeT align, SizeT asked, SizeT bytes)
{
    (void)asked;
    return allocate(tid, bytes, align, False);
}
#else
static void *take_new_aligned(ThreadId tid, SizeT bytes, SizeT align)
{
    return allocate(tid, bytes, align, False);
}
static void *take_memalign(ThreadId tid, SizeT align, SizeT bytes)
{
    return allocate(tid, bytes, align, False);
}
#endif

static void release_aligned(ThreadId tid, void *p, SizeT align)
{
    (void)align;
    release(tid, p);
}

static SizeT usable_size(ThreadId tid, void *p)
{
    (void)tid;
    /* What was asked for: the rest would move unseen in a realloc. */
    block *b = heap_block(p);
    return b ? b->bytes : 0;
}

/* ---- Mappings ---- */

void blocks_mapped(ThreadId tid, Addr address, SizeT bytes)
{
    blocks_unmapped(address, bytes);
    add(live, (block){address, bytes, VG_(record_ExeContext)(tid, 0), -1, made_now(), False});
}

/* Cuts mappings; heap blocks are not touched, they are in mappings of Valgrind's own making. */
void blocks_unmapped(Addr address, SizeT bytes)
{
    Addr end = address + bytes;
    while (address < end) {
        VG_(OSetGen_ResetIterAt)(live, &address);
        block *b = VG_(OSetGen_Next)(live);
        if (!b || b->start >= end)
            break;
        block whole = *b;
        address = whole.start + (whole.bytes ? whole.bytes : 1);
        if (whole.heap)
            continue;
        bury(b);
        Addr first = end - bytes;
        if (whole.start < first) {
            block head = whole;
            head.bytes = first - whole.start;
            add(live, head);
        }
        if (address > end) {
            block tail = whole;
            tail.start = end;
            tail.bytes = address - end;
            tail.number = -1;
            add(live, tail);
        }
    }
}

/* ---- Names ---- */

Long blocks_find(Addr address, Addr *start, SizeT *bytes)
{
    block *b = phase == PHASE_OUTPUT ? VG_(OSetGen_Lookup)(freed, &address) : NULL;
    if (!b)
        b = VG_(OSetGen_Lookup)(live, &address);
    if (!b)
        return -1;
    if (b->number < 0) {
        b->number = blocks_named++;
        block_line(b->number, b->heap ? "heap" : "mapping", b->start, b->bytes, b->made_at);
        VG_(addToXA)(newly_named, b);
    }
    if (start)
        *start = b->start;
    if (bytes)
        *bytes = b->bytes;
    return b->number;
}

void blocks_newly_named(void (*visit)(void *closure, Addr start, Long number), void *closure)
{
    for (Word i = 0; i < VG_(sizeXA)(newly_named); i++) {
        const block *b = VG_(indexXA)(newly_named, i);
        visit(closure, b->start, b->number);
    }
    VG_(deleteXA)(newly_named);
    newly_named = VG_(newXA)(VG_(malloc), "blocks.named", VG_(free), sizeof(block));
}

static OSet *new_tree(void)
{
    return VG_(OSetGen_Create_With_Pool)(0, compare, VG_(malloc), "blocks", VG_(free), 1000,
                                         sizeof(block));
}

void blocks_phase_ended(void)
{
    VG_(OSetGen_Destroy)(freed);
    freed = new_tree();
    phase_number++;
}

void blocks_init(void)
{
    live = new_tree();
    freed = new_tree();
    newly_named = VG_(newXA)(VG_(malloc), "blocks.named", VG_(free), sizeof(block));
    VG_(needs_malloc_replacement)
    (take_malloc, take_malloc, take_new_aligned, take_malloc, take_new_aligned, take_memalign,
     take_calloc, release, release, release_aligned, release, release_aligned, resize, usable_size,
     REDZONE);
}
