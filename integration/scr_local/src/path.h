/*
 * path.h - file names: absolute and shortest form, where a file lies, directories made and removed.
 * Names are compared as text, as SCR does: symbolic links are not followed.
 */
#ifndef SCRL_PATH_H
#define SCRL_PATH_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Writes the absolute form of `name` into `out`: working directory in front when it is relative, no
 * ".", "..", double or trailing slash. Returns 0, or -1 with errno set (ENAMETOOLONG when it does
 * not fit).
 */
int scrl_path_absolute(const char *name, char *out, size_t size);

/* Joins with one slash into `out`; ends the job when it does not fit. */
void scrl_path_join(char *out, size_t size, const char *directory, const char *name);

/* The part behind the last slash, within `path`. */
const char *scrl_path_base(const char *path);

/* 1 when the absolute path `child` lies below (and is not) the absolute path `parent`. */
int scrl_path_is_below(const char *parent, const char *child);

/* Makes the directory and its parents. Returns 0, also when it exists, or -1 with errno set. */
int scrl_make_directories(const char *directory, mode_t mode);

/* Makes all directories above the file. Returns 0 or -1 with errno set. */
int scrl_make_parents(const char *file, mode_t mode);

/* Removes the directories above `file` that are empty, up to but not including `top`. */
void scrl_remove_empty_parents(const char *file, const char *top);

#endif
