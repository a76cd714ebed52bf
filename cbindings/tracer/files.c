/* files.c - the files of the present phase.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Records by device and inode, and which of them are the generation's. What is written to them is
 * in files_output.c, what is read from them in files_restart.c.
 * Tests: tests/tracer/test_tracer_files.py.
 */
#include "files_record.h"

#include "phase.h"

static XArray *records; /* of trace_file * */
static XArray *routes;  /* of routed_file */
static XArray *chosen;  /* of trace_file *: the generation */
static HChar *dataset_name;
static UInt files_numbered;
static trace_file *last_found;

static XArray *pointers(const HChar *cost_centre)
{
    return VG_(newXA)(VG_(malloc), cost_centre, VG_(free), sizeof(trace_file *));
}

void files_begin(const HChar *dataset)
{
    if (!records) {
        records = pointers("files.records");
        chosen = pointers("files.chosen");
        routes = VG_(newXA)(VG_(malloc), "files.routes", VG_(free), sizeof(routed_file));
    }
    VG_(free)(dataset_name);
    dataset_name = VG_(strdup)("files.dataset", dataset ? dataset : "");
}

const HChar *files_dataset(void)
{
    return dataset_name ? dataset_name : "";
}

static HChar *absolute(const HChar *path)
{
    HChar folder[4096];
    SSizeT length = path[0] == '/' ? 0 : VG_(readlink)("/proc/self/cwd", folder, sizeof folder - 1);
    if (length <= 0)
        return VG_(strdup)("files.path", path);
    folder[length] = 0;
    HChar *whole = VG_(malloc)("files.path", length + 1 + VG_(strlen)(path) + 1);
    VG_(sprintf)(whole, "%s/%s", folder, path);
    return whole;
}

void files_routed(const HChar *name, const HChar *path)
{
    if (!routes)
        return;
    routed_file routed = {VG_(strdup)("files.name", name), absolute(path), NULL};
    VG_(addToXA)(routes, &routed);
    if (phase == PHASE_RESTART)
        files_restart_look();
}

static UInt passed_on; /* begins without an end */

void files_passed_on(Bool begins)
{
    if (begins)
        passed_on++;
    else if (passed_on > 0)
        passed_on--;
}

Bool files_are_passed_on(void)
{
    return passed_on > 0;
}

Bool files_stat(Int fd, struct vg_stat *status)
{
    return fd >= 0 && VG_(fstat)(fd, status) == 0 && VKI_S_ISREG(status->mode);
}

UInt files_recorded(void)
{
    return records ? VG_(sizeXA)(records) : 0;
}

trace_file *files_record(UInt n)
{
    return *(trace_file **)VG_(indexXA)(records, n);
}

trace_file *files_find(ULong device, ULong inode)
{
    if (last_found && last_found->device == device && last_found->inode == inode)
        return last_found;
    for (UInt n = 0; n < files_recorded(); n++) {
        trace_file *file = files_record(n);
        if (file->device == device && file->inode == inode)
            return last_found = file;
    }
    return NULL;
}

trace_file *files_find_or_add(ULong device, ULong inode)
{
    trace_file *file = files_find(device, inode);
    if (file || !records)
        return file;
    file = VG_(calloc)("files.record", 1, sizeof *file);
    file->device = device;
    file->inode = inode;
    file->content = intervals_new("files.content");
    VG_(addToXA)(records, &file);
    return last_found = file;
}

UInt files_routed_count(void)
{
    return routes ? VG_(sizeXA)(routes) : 0;
}

routed_file *files_routed_nth(UInt n)
{
    return VG_(indexXA)(routes, n);
}

void files_choose(trace_file *file, const routed_file *routed, ULong size)
{
    if (file->name)
        return;
    file->name = routed->name;
    file->path = routed->path;
    file->size = size;
    file->number = files_numbered++;
    file->index = VG_(addToXA)(chosen, &file);
}

void files_choose_none(void)
{
    for (UInt n = 0; n < files_count(); n++)
        files_nth(n)->name = files_nth(n)->path = NULL;
    if (chosen)
        VG_(dropTailXA)(chosen, VG_(sizeXA)(chosen));
}

UInt files_count(void)
{
    return chosen ? VG_(sizeXA)(chosen) : 0;
}

trace_file *files_nth(UInt n)
{
    return *(trace_file **)VG_(indexXA)(chosen, n);
}

UInt files_number(const trace_file *file)
{
    return file->number;
}

UInt files_index(const trace_file *file)
{
    return file->index;
}

const HChar *files_name(const trace_file *file)
{
    return file->name;
}

const HChar *files_path(const trace_file *file)
{
    return file->path;
}

ULong files_size(const trace_file *file)
{
    return file->size;
}

const intervals *files_content(const trace_file *file)
{
    return file->content;
}

const intervals *files_seen(const trace_file *file)
{
    return file->seen;
}

Bool files_is_ours(ULong device, ULong inode)
{
    trace_file *file = inode ? files_find(device, inode) : NULL;
    return file && file->name;
}

void files_end(void)
{
    for (UInt n = 0; n < files_recorded(); n++) {
        trace_file *file = files_record(n);
        intervals_free(file->content);
        intervals_free(file->seen);
        VG_(free)(file);
    }
    for (UInt n = 0; n < files_routed_count(); n++) {
        VG_(free)(files_routed_nth(n)->name);
        VG_(free)(files_routed_nth(n)->path);
    }
    if (records) {
        VG_(deleteXA)(records);
        VG_(deleteXA)(chosen);
        VG_(deleteXA)(routes);
        VG_(free)(dataset_name);
    }
    records = chosen = routes = NULL;
    dataset_name = NULL;
    last_found = NULL;
    files_positions_end();
}
