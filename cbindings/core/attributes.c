/* attributes.c - see attributes.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "error.h"

/* Linux's limits on the list of names and on one value. */
enum { LIST_SIZE = 64 << 10, VALUE_SIZE = 64 << 10 };

/* Attributes outside these two belong to the file system (striping) or to the system (labels): they
 * are carried where that is allowed, and no loss where it is not. */
static bool is_users(const char *name)
{
    return strncmp(name, "user.", 5) == 0;
}

static bool must_go(const char *name)
{
    return is_users(name) || strcmp(name, "system.posix_acl_access") == 0;
}

static int copy_one(int from, int to, const char *name, void *value)
{
    const ssize_t size = fgetxattr(from, name, value, VALUE_SIZE);
    if (size < 0)
        return errno == ENODATA || !must_go(name)
                   ? SCR_CRIT_OK
                   : crit_fail_system(errno, CRIT_NO_OFFSET,
                                      "cannot read the extended attribute %.200s", name);
    if (fsetxattr(to, name, value, (size_t)size, 0) == 0 || errno == ENOTSUP || !must_go(name))
        return SCR_CRIT_OK;
    return crit_fail_system(errno, CRIT_NO_OFFSET, "cannot set the extended attribute %.200s",
                            name);
}

int crit_copy_attributes(int from, int to, bool all)
{
    const ssize_t any = flistxattr(from, NULL, 0);
    if (any == 0 || (any < 0 && errno == ENOTSUP))
        return SCR_CRIT_OK;
    char *names = malloc(LIST_SIZE + VALUE_SIZE);
    if (names == NULL)
        return crit_fail_memory(LIST_SIZE + VALUE_SIZE);
    const ssize_t size = flistxattr(from, names, LIST_SIZE);
    int status = SCR_CRIT_OK;
    if (size < 0 && errno != ENOTSUP)
        status = crit_fail_system(errno, CRIT_NO_OFFSET, "cannot list extended attributes");
    for (const char *name = names; status == SCR_CRIT_OK && size > 0 && name < names + size;
         name += strlen(name) + 1)
        if (all || is_users(name))
            status = copy_one(from, to, name, names + LIST_SIZE);
    free(names);
    return status;
}
