/* test_error.c - statuses, words and threads (core/error.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <pthread.h>

#include "check.h"
#include "error.h"

static void words_errno_and_offset(void)
{
    CHECK_STATUS(crit_fail(SCR_CRIT_ERR_FORMAT, 12, "found %d", 7), SCR_CRIT_ERR_FORMAT);
    CHECK(strcmp(scr_crit_last_error(), "found 7") == 0);
    CHECK(scr_crit_last_errno() == 0 && scr_crit_last_offset() == 12);
    CHECK_STATUS(crit_fail_system(ENOENT, CRIT_NO_OFFSET, "cannot"), SCR_CRIT_ERR_IO);
    CHECK(strncmp(scr_crit_last_error(), "cannot: ", 8) == 0);
    CHECK(strstr(scr_crit_last_error(), strerror(ENOENT)) != NULL);
    CHECK(scr_crit_last_errno() == ENOENT && scr_crit_last_offset() == -1);
}

static void errno_decides_the_status(void)
{
    CHECK_STATUS(crit_fail_system(ENOSPC, 0, "x"), SCR_CRIT_ERR_NOSPACE);
    CHECK_STATUS(crit_fail_system(EDQUOT, 0, "x"), SCR_CRIT_ERR_NOSPACE);
    CHECK_STATUS(crit_fail_system(ENOMEM, 0, "x"), SCR_CRIT_ERR_NOMEM);
    CHECK_STATUS(crit_fail_system(EIO, 0, "x"), SCR_CRIT_ERR_IO);
    CHECK_STATUS(crit_fail_memory(5), SCR_CRIT_ERR_NOMEM);
}

static void blame_names_the_file_once(void)
{
    crit_fail(SCR_CRIT_ERR_FORMAT, 3, "bad");
    CHECK_STATUS(crit_blame(SCR_CRIT_ERR_FORMAT, "/a/b"), SCR_CRIT_ERR_FORMAT);
    CHECK_STATUS(crit_blame(SCR_CRIT_ERR_FORMAT, "/c"), SCR_CRIT_ERR_FORMAT);
    CHECK(strcmp(scr_crit_last_error(), "/a/b: bad") == 0);
    CHECK(scr_crit_last_offset() == 3);
    crit_fail(SCR_CRIT_ERR_FORMAT, 3, "worse");
    CHECK_STATUS(crit_blame(SCR_CRIT_OK, "/d"), SCR_CRIT_OK);
    CHECK(strcmp(scr_crit_last_error(), "worse") == 0);
}

static void long_words_are_cut_not_overrun(void)
{
    char path[6000];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = '\0';
    crit_fail(SCR_CRIT_ERR_FORMAT, 0, "%s", path);
    crit_blame(SCR_CRIT_ERR_FORMAT, path);
    CHECK(strlen(scr_crit_last_error()) > 4000);
    CHECK(strlen(scr_crit_last_error()) < 6000);
    crit_fail_system(ENOENT, 0, "%s", path);
    CHECK(strstr(scr_crit_last_error(), strerror(ENOENT)) != NULL);
}

static void *fail_elsewhere(void *unused)
{
    CHECK(strcmp(scr_crit_last_error(), "") == 0);
    CHECK(scr_crit_last_offset() == -1);
    crit_fail(SCR_CRIT_ERR_IO, 1, "other thread");
    return unused;
}

static void each_thread_has_its_own(void)
{
    pthread_t thread;
    crit_fail(SCR_CRIT_ERR_FORMAT, 9, "mine");
    pthread_create(&thread, NULL, fail_elsewhere, NULL);
    pthread_join(thread, NULL);
    CHECK(strcmp(scr_crit_last_error(), "mine") == 0);
    CHECK(scr_crit_last_offset() == 9);
}

static void every_status_has_a_name(void)
{
    for (int status = SCR_CRIT_OK; status <= SCR_CRIT_ERR_CHANGED; status++)
        CHECK(strcmp(scr_crit_status_name(status), "unknown") != 0);
    CHECK(strcmp(scr_crit_status_name(-1), "unknown") == 0);
    CHECK(strcmp(scr_crit_status_name(SCR_CRIT_ERR_CHANGED + 1), "unknown") == 0);
}

int main(void)
{
    words_errno_and_offset();
    errno_decides_the_status();
    blame_names_the_file_once();
    long_words_are_cut_not_overrun();
    each_thread_has_its_own();
    every_status_has_a_name();
    return check_result();
}
