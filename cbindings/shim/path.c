/* path.c - file names as text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_paths.py.
 */
#define _GNU_SOURCE
#include "path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Resolve ".", ".." and repeated slashes of an absolute path in place. */
static void simplify(char *path)
{
    char *out = path;
    const char *in = path;
    while (*in) {
        while (*in == '/')
            in++;
        size_t length = strcspn(in, "/");
        if (length == 2 && in[0] == '.' && in[1] == '.') {
            while (out > path && *--out != '/')
                ;
        } else if (length > 0 && !(length == 1 && in[0] == '.')) {
            *out++ = '/';
            memmove(out, in, length);
            out += length;
        }
        in += length;
    }
    if (out == path)
        *out++ = '/';
    *out = '\0';
}

bool shim_path_absolute(const char *name, char *path, size_t size)
{
    if (name[0] == '/') {
        if (strlen(name) >= size)
            return false;
        strcpy(path, name);
    } else {
        char here[SHIM_PATH_SIZE];
        if (!getcwd(here, sizeof here) || !shim_path_join(path, size, here, name))
            return false;
    }
    simplify(path);
    return true;
}

const char *shim_path_below(const char *folder, const char *path)
{
    size_t length = strlen(folder);
    if (length > 0 && folder[length - 1] == '/')
        length--;
    if (strncmp(folder, path, length) != 0 || path[length] != '/' || path[length + 1] == '\0')
        return NULL;
    return path + length + 1;
}

bool shim_path_join(char *path, size_t size, const char *folder, const char *name)
{
    int length = snprintf(path, size, "%s/%s", folder, name);
    return length >= 0 && (size_t)length < size;
}

const char *shim_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool shim_path_folder(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= size)
        return false;
    memcpy(folder, path, length);
    folder[length] = '\0';
    return true;
}

int shim_path_make_folders(const char *folder)
{
    char path[SHIM_PATH_SIZE];
    if (strlen(folder) >= sizeof path)
        return ENAMETOOLONG;
    strcpy(path, folder);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return errno;
        *slash = '/';
    }
    return mkdir(path, 0777) != 0 && errno != EEXIST ? errno : 0;
}
