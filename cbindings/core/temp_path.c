/* temp_path.c - the name of the temporary file that belongs to a target.
 *
 * The name depends on the target's last component alone, and its length on nothing: it fits
 * NAME_MAX however long the target's is. Tests: tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

/* FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). */
static uint64_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return hash;
}

int scr_crit_temp_path(const char *target, char *buffer, size_t size)
{
    if (target == NULL || buffer == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "target or buffer is NULL");
    const char *slash = strrchr(target, '/');
    const char *name = slash ? slash + 1 : target;
    const int directory = (int)(name - target);
    if (*name == '\0' || strlen(target) > INT16_MAX)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "'%.200s' is no name of a file", target);
    const int length =
        snprintf(buffer, size, "%.*s.scr_crit.%016" PRIx64, directory, target, hash_name(name));
    if (length < 0 || (size_t)length >= size)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                         "temporary name beside '%.200s' needs %d bytes, there is room for %zu",
                         target, length + 1, size);
    return SCR_CRIT_OK;
}
