/* origins.c - stub
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "origins.h"

static intervals *written;
void origins_begin(void)
{
    written = intervals_new("origins.written");
}
void origins_end(void)
{
    intervals_free(written);
    written = NULL;
}
SizeT origins_piece(Addr address, SizeT limit, ULong *origin)
{
    *origin = address;
    return limit;
}
void origins_overwrite(Addr address, SizeT bytes, ULong origin)
{
    (void)address, (void)bytes, (void)origin;
}
void origins_move(Addr from, Addr to, SizeT bytes)
{
    (void)from, (void)to, (void)bytes;
}
void origins_forget(Addr address, SizeT bytes)
{
    (void)address, (void)bytes;
}
void origins_use(Addr address, SizeT bytes)
{
    (void)address, (void)bytes;
}
void origins_use_registers(ThreadId tid)
{
    (void)tid;
}
const intervals *origins_written(void)
{
    return written;
}
