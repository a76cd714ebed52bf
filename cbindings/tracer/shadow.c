/* shadow.c
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "shadow.h"

void shadow_watch(Addr address, SizeT bytes)
{
    (void)address, (void)bytes;
}
void shadow_read(Addr address, SizeT bytes)
{
    (void)address, (void)bytes;
}
void shadow_write(Addr address, SizeT bytes)
{
    (void)address, (void)bytes;
}
void shadow_move(Addr from, Addr to, SizeT bytes)
{
    (void)from, (void)to, (void)bytes;
}
SizeT shadow_piece(Addr address, SizeT limit, shadow_state *state)
{
    (void)address;
    *state = SHADOW_NONE;
    return limit;
}
void shadow_clear(void)
{
}
ULong shadow_pending(void)
{
    return 0;
}
ULong shadow_memory(void)
{
    return 0;
}
