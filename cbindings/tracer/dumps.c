/* dumps.c - files that are checkpoints by their names.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "dumps.h"

#include "files.h"
#include "phase.h"

#include <pub_tool_seqmatch.h>
#include <pub_tool_vki.h>
#include <pub_tool_xarray.h>

typedef struct {
    ULong device, inode;
} identity;

static XArray *open_files; /* of identity: the files of the present dump */

/* A pattern without a folder is one of names. */
static Bool matches(const HChar *path)
{
    if (!option_dump)
        return False;
    if (VG_(strchr)(option_dump, '/') == NULL) {
        const HChar *name = VG_(strrchr)(path, '/');
        return VG_(string_match)(option_dump, name ? name + 1 : path);
    }
    return VG_(string_match)(option_dump, path);
}

static Bool in_dump(void)
{
    return phase == PHASE_OUTPUT && files_dumped();
}

void dumps_opened(ThreadId tid, const HChar *path, const struct vg_stat *status)
{
    if (!matches(path) || (phase_follows() && !in_dump()))
        return;
    if (in_dump()) {
        files_routed(path, path);
    } else {
        phase_dump_opened(tid, path);
        if (phase != PHASE_OUTPUT)
            return;
        files_of_dump();
        if (open_files)
            VG_(deleteXA)(open_files);
        open_files = VG_(newXA)(VG_(malloc), "dumps", VG_(free), sizeof(identity));
    }
    identity added = {status->dev, status->ino};
    VG_(addToXA)(open_files, &added);
}

Bool dumps_any(void)
{
    return open_files != NULL && in_dump();
}

Bool dumps_has(Int fd)
{
    struct vg_stat status;
    if (!dumps_any() || !files_stat(fd, &status))
        return False;
    for (Word i = 0; i < VG_(sizeXA)(open_files); i++) {
        const identity *file = VG_(indexXA)(open_files, i);
        if (file->device == status.dev && file->inode == status.ino)
            return True;
    }
    return False;
}

/* Whether any descriptor of this process is one of the dump's files. */
static Bool still_open(void)
{
    Bool found = False;
    HChar entries[4096] __attribute__((aligned(8)));
    Int folder = VG_(fd_open)("/proc/self/fd", VKI_O_RDONLY, 0);
    for (;;) {
        Int n = folder >= 0 ? VG_(getdents64)(folder, (struct vki_dirent64 *)entries, sizeof entries)
                            : 0;
        if (n <= 0)
            break;
        for (Int at = 0; at < n;) {
            const struct vki_dirent64 *entry = (struct vki_dirent64 *)(entries + at);
            if (entry->d_name[0] != '.' && dumps_has(VG_(strtoll10)(entry->d_name, NULL)))
                found = True;
            at += entry->d_reclen;
        }
    }
    if (folder >= 0)
        VG_(close)(folder);
    return found;
}

void dumps_closed(ThreadId tid)
{
    if (!dumps_any() || still_open())
        return;
    VG_(deleteXA)(open_files);
    open_files = NULL;
    phase_dump_closed(tid);
}
