/* trace_file.c - stub
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "trace_file.h"

void trace_open(const HChar *prefix)
{
    (void)prefix;
}
void trace_line(const HChar *format, ...)
{
    (void)format;
}
void trace_text_line(const HChar *key, const HChar *const *texts, UInt count)
{
    (void)key, (void)texts, (void)count;
}
void trace_source(UInt file, ULong offset, ULong length, Addr address, Long block)
{
    (void)file, (void)offset, (void)length, (void)address, (void)block;
}
void trace_state(UInt file, ULong offset, ULong length, run_state state, run_reason reason)
{
    (void)file, (void)offset, (void)length, (void)state, (void)reason;
}
void trace_close(void)
{
}
void trace_abandon(void)
{
}
