/* instrument_mode.c
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "instrument.h"

Bool instrument_loads_write = False;
void instrument_loads_are_writes(ThreadId tid, Bool on)
{
    (void)tid;
    instrument_loads_write = on;
}
