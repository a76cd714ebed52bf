/* shared.c - notice, without communication, that two ranks write one file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_shared.py.
 */
#define _GNU_SOURCE
#include "shared.h"

#include <fcntl.h>
#include <unistd.h>

#include "path.h"
#include "scr_crit.h"
#include "stage.h"

/* The mark is called like the temporary file of the temporary file, which is never written. */
static bool mark_path(const char *path, char *mark)
{
    char temporary[SHIM_PATH_SIZE];
    return scr_crit_temp_path(path, temporary, sizeof temporary) == SCR_CRIT_OK &&
           scr_crit_temp_path(temporary, mark, SHIM_PATH_SIZE) == SCR_CRIT_OK;
}

void shim_shared_mark(const char *path)
{
    char mark[SHIM_PATH_SIZE];
    if (!mark_path(path, mark))
        return;
    shim_stage_journal(mark);
    int descriptor = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor >= 0)
        close(descriptor);
}

void shim_shared_unmark(const char *path)
{
    char mark[SHIM_PATH_SIZE];
    if (mark_path(path, mark))
        unlink(mark);
}

bool shim_shared_is_marked(const char *path)
{
    char mark[SHIM_PATH_SIZE];
    return mark_path(path, mark) && access(mark, F_OK) == 0;
}
