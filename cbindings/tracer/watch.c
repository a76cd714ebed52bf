/* watch.c - stub
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "watch.h"

void watch_use(ULong origin, SizeT bytes)
{
    (void)origin, (void)bytes;
}
void watch_overwritten(Addr address, SizeT bytes)
{
    (void)address, (void)bytes;
}
void watch_gone(Addr address, SizeT bytes)
{
    (void)address, (void)bytes;
}
void watch_moved(Addr from, Addr to, SizeT bytes)
{
    (void)from, (void)to, (void)bytes;
}
void watch_shared(Addr address, SizeT bytes)
{
    (void)address, (void)bytes;
}
void watch_output_ended(ThreadId tid)
{
    (void)tid;
}
void watch_restart_ended(ThreadId tid)
{
    (void)tid;
}
void watch_finish(void)
{
}
ULong watch_undecided(void)
{
    return 0;
}
