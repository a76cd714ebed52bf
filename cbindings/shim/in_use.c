/* in_use.c - see in_use.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A read lease is granted only while nobody can write to the file (fcntl(2), "Leases"): the kernel
 * knows of descriptors and mappings that outlive them, which a look at /proc would have to guess.
 */
#define _GNU_SOURCE
#include "in_use.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool shim_is_open_for_writing(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return false;
    bool refused = fcntl(file, F_SETLEASE, F_RDLCK) != 0;
    bool open_elsewhere = refused && errno == EAGAIN;
    if (!refused)
        fcntl(file, F_SETLEASE, F_UNLCK);
    close(file);
    return open_elsewhere;
}
