/* test_output.c - files that appear complete or not at all (core/output.h), and their temporary
 * names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>

#include "check.h"
#include "io.h"
#include "output.h"
#include "scratch.h"

static void committed_file_has_its_name(void)
{
    crit_output output;
    CHECK_STATUS(crit_output_begin(&output, "target", 0600), SCR_CRIT_OK);
    CHECK(access("target", F_OK) != 0);
    CHECK_STATUS(crit_write_at(output.fd, 0, "new", 3), SCR_CRIT_OK);
    CHECK_STATUS(crit_output_commit(&output), SCR_CRIT_OK);
    crit_output_close(&output);
    CHECK(scratch_holds("target", "new", 3));
    CHECK(scratch_count(NULL) == 1);
}

static void abandoned_file_leaves_the_old(void)
{
    crit_output output;
    scratch_write("target", "old", 3);
    CHECK_STATUS(crit_output_begin(&output, "target", 0600), SCR_CRIT_OK);
    CHECK_STATUS(crit_write_at(output.fd, 0, "new", 3), SCR_CRIT_OK);
    crit_output_close(&output);
    CHECK(scratch_holds("target", "old", 3));
    CHECK(scratch_count(NULL) == 1);
}

/* A writer that died leaves its temporary file; it must not be in anybody's way. */
static void leftover_is_cleared(void)
{
    char temporary[PATH_MAX];
    crit_output output;
    CHECK_STATUS(scr_crit_temp_path("target", temporary, sizeof temporary), SCR_CRIT_OK);
    scratch_write(temporary, "half written, longer than what follows", 38);
    CHECK_STATUS(crit_output_begin(&output, "target", 0600), SCR_CRIT_OK);
    CHECK_STATUS(crit_write_at(output.fd, 0, "new", 3), SCR_CRIT_OK);
    CHECK_STATUS(crit_output_commit(&output), SCR_CRIT_OK);
    crit_output_close(&output);
    CHECK(scratch_holds("target", "new", 3));
    /* A symbolic link in its place is not followed. */
    scratch_write("innocent", "mine", 4);
    CHECK(symlink("innocent", temporary) == 0);
    CHECK_STATUS(crit_output_begin(&output, "target", 0600), SCR_CRIT_OK);
    crit_output_close(&output);
    CHECK(scratch_holds("innocent", "mine", 4));
    unlink("innocent");
    CHECK(scratch_count(NULL) == 1);
}

static void living_writer_is_left_alone(void)
{
    crit_output first, second;
    CHECK_STATUS(crit_output_begin(&first, "target", 0600), SCR_CRIT_OK);
    CHECK_STATUS(crit_output_begin(&second, "target", 0600), SCR_CRIT_ERR_IO);
    CHECK(scr_crit_last_errno() == EBUSY);
    crit_output_close(&second);
    CHECK_STATUS(crit_write_at(first.fd, 0, "first", 5), SCR_CRIT_OK);
    CHECK_STATUS(crit_output_commit(&first), SCR_CRIT_OK);
    crit_output_close(&first);
    CHECK(scratch_holds("target", "first", 5));
    CHECK_STATUS(crit_output_begin(&second, "target", 0600), SCR_CRIT_OK);
    crit_output_close(&second);
}

/* Where locks do not work, somebody may have taken the temporary name: what lies there is not ours
 * to rename, nor to remove. */
static void stolen_name_is_not_committed(void)
{
    crit_output output;
    scratch_write("target", "old", 3);
    CHECK_STATUS(crit_output_begin(&output, "target", 0600), SCR_CRIT_OK);
    scratch_write("thief", "half", 4);
    CHECK(rename("thief", output.temporary) == 0);
    CHECK_STATUS(crit_output_commit(&output), SCR_CRIT_ERR_IO);
    CHECK(scr_crit_last_errno() == EBUSY);
    crit_output_close(&output);
    CHECK(scratch_holds("target", "old", 3));
    CHECK(scratch_holds(output.temporary, "half", 4));
    unlink(output.temporary);
}

static void mode_is_carried_over(void)
{
    crit_output output;
    struct stat status;
    scratch_write("model", "x", 1);
    CHECK(chmod("model", 0640) == 0 && stat("model", &status) == 0);
    const int fd = open("model", O_RDONLY);
    CHECK_STATUS(crit_output_begin(&output, "target", 0600), SCR_CRIT_OK);
    CHECK_STATUS(crit_output_adopt(&output, fd, &status), SCR_CRIT_OK);
    CHECK_STATUS(crit_output_commit(&output), SCR_CRIT_OK);
    crit_output_close(&output);
    close(fd);
    CHECK(stat("target", &status) == 0 && (status.st_mode & 07777) == 0640);
    unlink("model");
}

static void temporary_names(void)
{
    char name[PATH_MAX], other[PATH_MAX], target[300];
    CHECK_STATUS(scr_crit_temp_path("/a/b/c", name, sizeof name), SCR_CRIT_OK);
    CHECK(strncmp(name, "/a/b/.scr_crit.", 15) == 0 && strlen(name) == 15 + 16);
    CHECK_STATUS(scr_crit_temp_path("c", other, sizeof other), SCR_CRIT_OK);
    CHECK(strcmp(name + 5, other) == 0); /* the last component alone */
    CHECK_STATUS(scr_crit_temp_path("d", other, sizeof other), SCR_CRIT_OK);
    CHECK(strcmp(name + 5, other) != 0);
    memset(target, 'x', NAME_MAX);
    target[NAME_MAX] = '\0';
    CHECK_STATUS(scr_crit_temp_path(target, name, sizeof name), SCR_CRIT_OK);
    CHECK(strlen(name) < NAME_MAX);
    CHECK_STATUS(scr_crit_temp_path("/a/b/c", name, 31), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_temp_path("/a/b/c", name, 32), SCR_CRIT_OK);
    CHECK_STATUS(scr_crit_temp_path("/a/b/", name, sizeof name), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_temp_path("", name, sizeof name), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_temp_path(NULL, name, sizeof name), SCR_CRIT_ERR_ARG);
}

static void impossible_targets_fail(void)
{
    crit_output output;
    CHECK_STATUS(crit_output_begin(&output, "no/such/folder/file", 0600), SCR_CRIT_ERR_IO);
    CHECK(scr_crit_last_errno() == ENOENT);
    crit_output_close(&output);
    CHECK(mkdir("folder", 0700) == 0); /* a folder of the target's name */
    CHECK_STATUS(crit_output_begin(&output, "folder", 0600), SCR_CRIT_OK);
    CHECK_STATUS(crit_output_commit(&output), SCR_CRIT_ERR_IO);
    CHECK(scr_crit_last_errno() == EISDIR);
    crit_output_close(&output);
    CHECK(scratch_count(NULL) == 2); /* the folder and "target" */
}

int main(void)
{
    scratch_enter();
    committed_file_has_its_name();
    abandoned_file_leaves_the_old();
    leftover_is_cleared();
    living_writer_is_left_alone();
    stolen_name_is_not_committed();
    mode_is_carried_over();
    temporary_names();
    impossible_targets_fail();
    scratch_leave();
    return check_result();
}
