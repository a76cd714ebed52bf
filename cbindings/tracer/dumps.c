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

static XArray *open_files; /* of identity */

/* A pattern without a folder is one of names. */
static Bool matches(const HChar *path)
{
    if (VG_(strchr)(option_dump, '/') == NULL) {
        const HChar *name = VG_(strrchr)(path, '/');
        return VG_(string_match)(option_dump, name ? name + 1 : path);
    }
    return VG_(string_match)(option_dump, path);
}

/* Index of the open dump that fd is; -1: none. */
static Word find(Int fd)
{
    struct vg_stat status;
    if (!open_files || VG_(sizeXA)(open_files) == 0 || !files_stat(fd, &status))
        return -1;
    for (Word i = 0; i < VG_(sizeXA)(open_files); i++) {
        const identity *file = VG_(indexXA)(open_files, i);
        if (file->device == status.dev && file->inode == status.ino)
            return i;
    }
    return -1;
}

void dumps_opened(ThreadId tid, Int fd, const HChar *given)
{
    HChar link[64], path[4096];
    struct vg_stat status;
    if (!option_dump || !files_stat(fd, &status))
        return;
    VG_(sprintf)(link, "/proc/self/fd/%d", fd);
    SSizeT length = VG_(readlink)(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if ((!matches(path) && !matches(given)) || find(fd) >= 0)
        return;
    phase_dump_opened(tid, path);
    if (!phase_is_dump())
        return;
    if (!open_files)
        open_files = VG_(newXA)(VG_(malloc), "dumps", VG_(free), sizeof(identity));
    identity added = {status.dev, status.ino};
    VG_(addToXA)(open_files, &added);
}

Bool dumps_has(Int fd)
{
    return find(fd) >= 0;
}

Bool dumps_any(void)
{
    return open_files && VG_(sizeXA)(open_files) > 0;
}

/* Finds which of the dump's files have a descriptor in this process. */
static void find_open(Bool *is_open)
{
    HChar entries[4096] __attribute__((aligned(8)));
    Int n, folder = VG_(fd_open)("/proc/self/fd", VKI_O_RDONLY, 0);
    if (folder < 0)
        return;
    while ((n = VG_(getdents64)(folder, (struct vki_dirent64 *)entries, sizeof entries)) > 0) {
        for (Int at = 0; at < n;) {
            const struct vki_dirent64 *entry = (const struct vki_dirent64 *)(entries + at);
            Word which =
                entry->d_name[0] == '.' ? -1 : find((Int)VG_(strtoll10)(entry->d_name, NULL));
            if (which >= 0)
                is_open[which] = True;
            at += entry->d_reclen;
        }
    }
    VG_(close)(folder);
}

void dumps_closed(ThreadId tid)
{
    if (!dumps_any())
        return;
    Word count = VG_(sizeXA)(open_files);
    Bool *is_open = VG_(calloc)("dumps.open", count, sizeof *is_open);
    find_open(is_open);
    for (Word i = count - 1; i >= 0; i--) {
        if (!is_open[i]) {
            VG_(removeIndexXA)(open_files, i);
            phase_dump_closed(tid);
        }
    }
    VG_(free)(is_open);
}
