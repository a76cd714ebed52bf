/* shared_maps.c - mappings that others may see.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A program has few of them: a plain array.
 */
#include "shared_maps.h"

#include <pub_tool_xarray.h>

static XArray *maps;             /* of shared_map, disjoint */
static Addr free_low, free_high; /* a stretch without maps, found last */

void shared_maps_add(shared_map map)
{
    if (!maps)
        maps = VG_(newXA)(VG_(malloc), "shared_maps", VG_(free), sizeof(shared_map));
    shared_maps_remove(map.start, map.length, NULL);
    VG_(addToXA)(maps, &map);
    free_low = free_high = 0;
}

/* The part of a map from byte `from` to byte `to` of the address space. */
static shared_map part(const shared_map *map, Addr from, Addr to)
{
    shared_map piece = *map;
    piece.start = from > map->start ? from : map->start;
    Addr end = map->start + map->length < to ? map->start + map->length : to;
    piece.length = end > piece.start ? end - piece.start : 0;
    piece.offset = map->offset + (piece.start - map->start);
    return piece;
}

void shared_maps_remove(Addr start, SizeT length, void (*visit)(const shared_map *piece))
{
    Addr end = start + length;
    for (Word i = 0; maps && i < VG_(sizeXA)(maps);) {
        shared_map whole = shared_maps_at(i);
        shared_map piece = part(&whole, start, end);
        if (piece.length == 0) {
            i++;
            continue;
        }
        if (visit)
            visit(&piece);
        VG_(removeIndexXA)(maps, i);
        shared_map before = part(&whole, 0, start), behind = part(&whole, end, ~(Addr)0);
        if (before.length)
            VG_(addToXA)(maps, &before);
        if (behind.length)
            VG_(addToXA)(maps, &behind);
    }
}

void shared_maps_move(Addr from, Addr to, SizeT length)
{
    UWord n = shared_maps_count();
    for (UWord i = 0; i < n; i++) {
        shared_map whole = shared_maps_at(i);
        shared_map piece = part(&whole, from, from + length);
        if (piece.length) {
            piece.start = to + (piece.start - from);
            VG_(addToXA)(maps, &piece);
        }
    }
    free_low = free_high = 0;
}

/* ---- Where there is one ---- */

SizeT shared_maps_piece(Addr address, SizeT limit, shared_map *map)
{
    *map = (shared_map){0};
    for (UWord i = 0; i < shared_maps_count(); i++) {
        const shared_map *each = VG_(indexXA)(maps, i);
        if (address >= each->start && address - each->start < each->length) {
            *map = *each;
            SizeT left = each->length - (address - each->start);
            return left < limit ? left : limit;
        }
        if (each->start > address && each->start - address < limit)
            limit = each->start - address;
    }
    return limit;
}

Bool shared_maps_near(Addr address, SizeT bytes)
{
    if (address >= free_low && address < free_high && bytes <= free_high - address)
        return False;
    Addr low = 0, high = ~(Addr)0;
    for (UWord i = 0; i < shared_maps_count(); i++) {
        const shared_map *each = VG_(indexXA)(maps, i);
        Addr end = each->start + each->length;
        if (address < end && (each->start <= address || each->start - address < bytes))
            return True;
        if (end <= address && end > low)
            low = end;
        if (each->start > address && each->start < high)
            high = each->start;
    }
    free_low = low;
    free_high = high;
    return False;
}

UWord shared_maps_count(void)
{
    return maps ? VG_(sizeXA)(maps) : 0;
}

shared_map shared_maps_at(UWord index)
{
    return *(shared_map *)VG_(indexXA)(maps, index);
}
