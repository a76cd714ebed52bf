/* intervals.c - stub
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "intervals.h"

struct intervals {
    ULong count;
};
intervals *intervals_new(const HChar *cost_centre)
{
    return VG_(calloc)(cost_centre, 1, sizeof(intervals));
}
void intervals_free(intervals *map)
{
    if (map)
        VG_(free)(map);
}
void intervals_clear(intervals *map)
{
    map->count = 0;
}
void intervals_set(intervals *map, ULong start, ULong length, ULong origin)
{
    (void)map, (void)start, (void)length, (void)origin;
}
ULong intervals_piece(const intervals *map, ULong start, ULong limit, ULong *origin)
{
    (void)map, (void)start;
    *origin = ORIGIN_NONE;
    return limit;
}
Bool intervals_first(const intervals *map, ULong from, ULong *start, ULong *length, ULong *origin)
{
    (void)map, (void)from, (void)start, (void)length, (void)origin;
    return False;
}
ULong intervals_memory(const intervals *map)
{
    (void)map;
    return sizeof(intervals);
}
