/* shared_maps.h - mappings that others may see: MAP_SHARED files, shared memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_SHARED_MAPS_H
#define SCR_CRIT_TRACER_SHARED_MAPS_H

#include "tool.h"

typedef struct {
    Addr start;
    SizeT length;
    ULong device, inode; /* of the file; 0, 0: none */
    ULong offset;        /* in the file */
} shared_map;

void shared_maps_add(shared_map map);
/* What is mapped there is no longer: visits each piece that goes, before it goes. */
void shared_maps_remove(Addr start, SizeT length, void (*visit)(const shared_map *piece));
/* mremap: what is mapped at `from` is also mapped at `to`. */
void shared_maps_move(Addr from, Addr to, SizeT length);
/* The piece at address that lies in one map, which is copied out, or in none (length 0). */
SizeT shared_maps_piece(Addr address, SizeT limit, shared_map *map);
/* False: no byte there is in any map. Quick where asked again and again for the same neighbourhood.
 */
Bool shared_maps_near(Addr address, SizeT bytes);
UWord shared_maps_count(void);
shared_map shared_maps_at(UWord index);

#endif
