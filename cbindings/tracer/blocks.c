/* blocks.c - stub
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "blocks.h"

void blocks_init(void)
{
}
Long blocks_find(Addr address, Addr *start, SizeT *bytes)
{
    (void)address, (void)start, (void)bytes;
    return -1;
}
