/* files.c - stub
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "files.h"

void files_begin(const HChar *dataset)
{
    (void)dataset;
}
void files_routed(const HChar *name, const HChar *path)
{
    (void)name, (void)path;
}
void files_written(Int fd, ULong offset, Addr address, SizeT bytes)
{
    (void)fd, (void)offset, (void)address, (void)bytes;
}
void files_written_unseen(Int fd, ULong offset, ULong bytes)
{
    (void)fd, (void)offset, (void)bytes;
}
void files_copied(Int from, ULong from_offset, Int to, ULong to_offset, ULong bytes)
{
    (void)from, (void)from_offset, (void)to, (void)to_offset, (void)bytes;
}
void files_truncated(Int fd, ULong size)
{
    (void)fd, (void)size;
}
Bool files_read(Int fd, ULong offset, Addr address, SizeT bytes)
{
    (void)fd, (void)offset, (void)address, (void)bytes;
    return False;
}
void files_settle_output(void)
{
}
UInt files_count(void)
{
    return 0;
}
trace_file *files_nth(UInt n)
{
    (void)n;
    return NULL;
}
UInt files_number(const trace_file *file)
{
    (void)file;
    return 0;
}
ULong files_size(const trace_file *file)
{
    (void)file;
    return 0;
}
const intervals *files_content(const trace_file *file)
{
    (void)file;
    return NULL;
}
ULong files_at(ULong position, ULong limit, trace_file **file, ULong *offset)
{
    (void)position, (void)file, (void)offset;
    return limit;
}
void files_use(trace_file *file, ULong offset, ULong bytes)
{
    (void)file, (void)offset, (void)bytes;
}
void files_end(void)
{
}
