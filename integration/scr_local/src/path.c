/* path.c - see path.h. Knows nothing of the job. */
#include "path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "message.h"

/* Appends the components of `path` to the absolute path in `out`, resolving "." and "..". */
static int append_components(char *out, size_t size, const char *path)
{
    size_t length = strlen(out);
    while (*path) {
        size_t span = strcspn(path, "/");
        if (span == 2 && path[0] == '.' && path[1] == '.') {
            while (length > 0 && out[--length] != '/') {
            }
        } else if (span > 0 && !(span == 1 && path[0] == '.')) {
            if (length + 1 + span >= size) {
                errno = ENAMETOOLONG;
                return -1;
            }
            out[length++] = '/';
            memcpy(out + length, path, span);
            length += span;
        }
        out[length] = '\0';
        path += span;
        path += strspn(path, "/");
    }
    return 0;
}

int scrl_path_absolute(const char *name, char *out, size_t size)
{
    out[0] = '\0';
    if (name[0] != '/') {
        char working[PATH_MAX];
        if (!getcwd(working, sizeof(working)) || append_components(out, size, working) != 0) {
            return -1;
        }
    }
    if (append_components(out, size, name) != 0) {
        return -1;
    }
    if (out[0] == '\0') {
        snprintf(out, size, "/");
    }
    return 0;
}

void scrl_path_join(char *out, size_t size, const char *directory, const char *name)
{
    const char *slash = strcmp(directory, "/") == 0 ? "" : "/";
    int length = snprintf(out, size, "%s%s%s", directory, slash, name);
    if (length < 0 || (size_t)length >= size) {
        scrl_abort("path `%s/%s' is longer than %zu bytes", directory, name, size - 1);
    }
}

const char *scrl_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int scrl_path_is_below(const char *parent, const char *child)
{
    size_t length = strcmp(parent, "/") == 0 ? 0 : strlen(parent);
    return strncmp(parent, child, length) == 0 && child[length] == '/' && child[length + 1] != '\0';
}

/* mkdir that is content with a directory which is there already. */
static int make_directory(const char *directory, mode_t mode)
{
    if (mkdir(directory, mode) == 0) {
        return 0;
    }
    int why = errno;
    struct stat status;
    if (stat(directory, &status) == 0) {
        if (S_ISDIR(status.st_mode)) {
            return 0;
        }
        why = ENOTDIR;
    }
    errno = why;
    return -1;
}

int scrl_make_directories(const char *directory, mode_t mode)
{
    char *path = scrl_strdup(directory);
    int result = 0;
    for (char *at = path + 1; result == 0 && *at; at++) {
        if (*at == '/') {
            *at = '\0';
            result = make_directory(path, mode);
            *at = '/';
        }
    }
    if (result == 0) {
        result = make_directory(path, mode);
    }
    int why = errno;
    free(path);
    errno = why;
    return result;
}

int scrl_make_parents(const char *file, mode_t mode)
{
    const char *base = scrl_path_base(file);
    if (base - file <= 1) {
        return 0; /* directly below the root */
    }
    char *directory = scrl_strdup(file);
    directory[base - file - 1] = '\0';
    int result = scrl_make_directories(directory, mode);
    int why = errno;
    free(directory);
    errno = why;
    return result;
}

void scrl_remove_empty_parents(const char *file, const char *top)
{
    char *directory = scrl_strdup(file);
    char *slash;
    while ((slash = strrchr(directory, '/')) != NULL) {
        *slash = '\0';
        if (!scrl_path_is_below(top, directory) || rmdir(directory) != 0) {
            break;
        }
    }
    free(directory);
}
