/* block_lines.c - lines of the trace that say what memory is: block, object, root.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Names come from Valgrind's reading of the debug information; what it cannot tell (variables and
 * their types) is read from the objects' DWARF later, by whoever reads the trace.
 */
#include "block_lines.h"

#include "blocks.h"
#include "trace_file.h"

#include <pub_tool_aspacemgr.h>
#include <pub_tool_debuginfo.h>
#include <pub_tool_libcfile.h>
#include <pub_tool_vki.h>
#include <pub_tool_xarray.h>

enum { FRAME_BYTES = 2048, FRAMES = 40, ROOT_BYTES = 256 };

/* ---- block ---- */

typedef struct {
    HChar *texts[FRAMES];
    UInt count;
} frames;

/* function@object(file:line), as far as known. */
static void describe(UInt n, DiEpoch epoch, Addr ip, void *closure)
{
    frames *all = closure;
    (void)n;
    if (all->count == FRAMES)
        return;
    const HChar *found;
    HChar text[FRAME_BYTES];
    if (!VG_(get_objname)(epoch, ip, &found))
        found = "";
    /* malloc and new themselves, as Valgrind replaces them */
    if (all->count == 0 && VG_(strstr)(found, "vgpreload_"))
        return;
    HChar object[FRAME_BYTES / 2];
    VG_(snprintf)(object, sizeof object, "%s", found);
    if (!VG_(get_fnname)(epoch, ip, &found))
        found = "?";
    Int used = VG_(snprintf)(text, sizeof text, "%.700s@%s", found, object);
    UInt line;
    if (used > 0 && used < FRAME_BYTES - 200 &&
        VG_(get_filename_linenum)(epoch, ip, &found, NULL, &line))
        VG_(snprintf)(text + VG_(strlen)(text), 200, "(%.150s:%u)", found, line);
    all->texts[all->count++] = VG_(strdup)("block_lines.frame", text);
}

void block_line(Int number, const HChar *kind, Addr start, SizeT bytes, ExeContext *made_at)
{
    frames all = {.count = 0};
    VG_(apply_ExeContext)(describe, &all, made_at);
    HChar key[128];
    VG_(snprintf)(key, sizeof key, "block %d %s %lx %lu", number, kind, start, bytes);
    trace_text_line(key, (const HChar *const *)all.texts, all.count);
    for (UInt i = 0; i < all.count; i++)
        VG_(free)(all.texts[i]);
}

/* ---- Segments of the address space ---- */

/* Visits the program's file and anonymous segments in order. */
static void each_segment(void (*visit)(const NSegment *segment, void *closure), void *closure)
{
    Int room = 1024, count;
    Addr *starts = NULL;
    do {
        starts = VG_(realloc)("block_lines.starts", starts, room * sizeof(Addr));
        count = VG_(am_get_segment_starts)(SkFileC | SkAnonC, starts, room);
        room = 2 * room;
    } while (count < 0);
    for (Int i = 0; i < count; i++) {
        const NSegment *segment = VG_(am_find_nsegment)(starts[i]);
        if (segment)
            visit(segment, closure);
    }
    VG_(free)(starts);
}

/* The segments of one object's file. */
typedef struct {
    const HChar *path;
    Addr lowest, highest; /* highest: one behind */
    void (*writable)(Addr start, Addr end);
} object_extent;

static void extend(const NSegment *segment, void *closure)
{
    object_extent *object = closure;
    const HChar *path = segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
    if (!path || VG_(strcmp)(path, object->path) != 0)
        return;
    if (!object->highest)
        object->lowest = segment->start;
    object->highest = segment->end + 1;
    if (object->writable && segment->hasR && segment->hasW)
        object->writable(segment->start, segment->end + 1);
}

/* ---- object ---- */

typedef struct {
    HChar *path;
    PtrdiffT bias;
} told_object;

static XArray *told; /* of told_object */

static Bool was_told(const HChar *path, PtrdiffT bias)
{
    if (!told)
        told = VG_(newXA)(VG_(malloc), "block_lines.told", VG_(free), sizeof(told_object));
    for (Word i = 0; i < VG_(sizeXA)(told); i++) {
        const told_object *t = VG_(indexXA)(told, i);
        if (t->bias == bias && VG_(strcmp)(t->path, path) == 0)
            return True;
    }
    told_object added = {VG_(strdup)("block_lines.path", path), bias};
    VG_(addToXA)(told, &added);
    return False;
}

static Bool is_this_tool(const DebugInfo *di)
{
    return (Addr)is_this_tool - VG_(DebugInfo_get_text_avma)(di) < VG_(DebugInfo_get_text_size)(di);
}

static void object_line(const DebugInfo *di, const HChar *path, PtrdiffT bias)
{
    object_extent object = {.path = path};
    HChar numbers[3][24];
    each_segment(extend, &object);
    if (!object.highest)
        return;
    Addr bss_end = VG_(DebugInfo_get_bss_avma)(di) + VG_(DebugInfo_get_bss_size)(di);
    if (VG_(DebugInfo_get_bss_size)(di) && bss_end > object.highest)
        object.highest = bss_end;
    VG_(snprintf)(numbers[0], sizeof numbers[0], "%lx", (Addr)bias);
    VG_(snprintf)(numbers[1], sizeof numbers[1], "%lx", object.lowest);
    VG_(snprintf)(numbers[2], sizeof numbers[2], "%lx", object.highest);
    const HChar *texts[] = {path, numbers[0], numbers[1], numbers[2]};
    trace_text_line("object", texts, 4);
}

void object_lines(void)
{
    for (const DebugInfo *di = VG_(next_DebugInfo)(NULL); di; di = VG_(next_DebugInfo)(di)) {
        const HChar *path = VG_(DebugInfo_get_filename)(di);
        PtrdiffT bias = VG_(DebugInfo_get_text_bias)(di);
        if (path && !VG_(strstr)(path, "vgpreload_") && !is_this_tool(di) && !was_told(path, bias))
            object_line(di, path, bias);
    }
}

/* ---- root ---- */

typedef struct {
    Addr start;
    Long number;
} target;

static XArray *targets; /* of target, sorted */

static Int by_start(const void *left, const void *right)
{
    const target *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

static void add_target(void *closure, Addr start, Long number)
{
    (void)closure;
    target t = {start, number};
    VG_(addToXA)(targets, &t);
}

static void root_line(Addr address, Addr end, Long number)
{
    HChar hex[2 * ROOT_BYTES + 1];
    SizeT bytes = end - address < ROOT_BYTES ? end - address : ROOT_BYTES;
    for (SizeT i = 0; i < bytes; i++)
        VG_(sprintf)(hex + 2 * i, "%02x", ((const UChar *)address)[i]);
    trace_line("root %lx %lld %s", address, number, hex);
}

static void search_roots(Addr start, Addr end)
{
    Addr least = ((target *)VG_(indexXA)(targets, 0))->start;
    Addr most = ((target *)VG_(indexXA)(targets, VG_(sizeXA)(targets) - 1))->start;
    for (Addr at = (start + 7) & ~(Addr)7; at + 8 <= end; at += 8) {
        target wanted = {*(const Addr *)at, 0};
        if (wanted.start < least || wanted.start > most)
            continue;
        Word first, last;
        if (!VG_(lookupXA)(targets, &wanted, &first, &last))
            continue;
        for (Word i = first; i <= last; i++)
            root_line(at, end, ((target *)VG_(indexXA)(targets, i))->number);
    }
}

/* The program's uninitialised data are no file segment. */
static void search_bss(const HChar *program)
{
    for (const DebugInfo *di = VG_(next_DebugInfo)(NULL); di; di = VG_(next_DebugInfo)(di)) {
        const HChar *path = VG_(DebugInfo_get_filename)(di);
        Addr start = VG_(DebugInfo_get_bss_avma)(di);
        SizeT bytes = VG_(DebugInfo_get_bss_size)(di);
        if (!path || VG_(strcmp)(path, program) != 0 || bytes == 0)
            continue;
        if (VG_(am_is_valid_for_client)(start, bytes, VKI_PROT_READ))
            search_roots(start, start + bytes);
    }
}

void root_lines(void)
{
    targets = VG_(newXA)(VG_(malloc), "block_lines.targets", VG_(free), sizeof(target));
    blocks_newly_named(add_target, NULL);
    VG_(setCmpFnXA)(targets, by_start);
    VG_(sortXA)(targets);
    if (VG_(sizeXA)(targets) > 0) {
        object_extent object = {.path = trace_program(), .writable = search_roots};
        each_segment(extend, &object);
        search_bss(trace_program());
    }
    VG_(deleteXA)(targets);
}
