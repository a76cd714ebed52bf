/* plan.c - plans as the public header shows them: open, describe, match.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use plan_check.h, plan_rows.h, plan_array.h, glob.h, io.h, error.h.
 * Tests: tests/c/test_plan_open.c, tests/test_plan.py.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "glob.h"
#include "io.h"
#include "plan_array.h"
#include "plan_check.h"
#include "plan_rows.h"

/* Largest plan that is read into memory. */
enum { READ_PLAN = 64 << 20 };

/* ---- Open and close ----------------------------------------------------------------------------
 */

static void release(scr_crit_plan *plan)
{
    if (plan->mapped)
        munmap((void *)plan->bytes, plan->size);
    else
        free((void *)plan->bytes);
    free(plan);
}

/* Validate and hand out, or release. */
static int finish_open(scr_crit_plan *opened, scr_crit_plan **plan)
{
    int status = crit_plan_check(opened);

    if (status == SCR_CRIT_OK)
        *plan = opened;
    else
        release(opened);
    return status;
}

/* Whoever writes into the file later, or truncates it, can neither change what has been validated
 * nor take its pages away (SIGBUS): no mapping is involved. */
static int read_file(int fd, size_t size, scr_crit_plan *plan)
{
    uint8_t *bytes = malloc(size > 0 ? size : 1);

    if (bytes == NULL)
        return crit_fail_memory(size);
    plan->bytes = bytes;
    plan->size = size;
    return crit_read_exactly(fd, 0, bytes, size, "plan");
}

static int map_file(int fd, size_t size, scr_crit_plan *plan)
{
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED)
        return crit_fail_system(errno, CRIT_NO_OFFSET, "plan: cannot be mapped");
    plan->bytes = bytes;
    plan->size = size;
    plan->mapped = true;
    return SCR_CRIT_OK;
}

/* Read or map an open file. */
static int load_file(int fd, scr_crit_plan *plan)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return crit_fail_system(errno, CRIT_NO_OFFSET, "plan: cannot be examined");
    if (!S_ISREG(status.st_mode))
        return crit_fail(SCR_CRIT_ERR_FORMAT, CRIT_NO_OFFSET, "not a plan: it is no regular file");
    return status.st_size <= READ_PLAN ? read_file(fd, (size_t)status.st_size, plan)
                                       : map_file(fd, (size_t)status.st_size, plan);
}

static int open_readonly(const char *path)
{
    int fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not hang us */
    while (fd < 0 && errno == EINTR);
    return fd;
}

int scr_crit_plan_open(const char *path, scr_crit_plan **plan)
{
    scr_crit_plan *opened;
    int fd, status;

    if (path == NULL || plan == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "scr_crit_plan_open: %s is NULL",
                         path == NULL ? "path" : "plan");
    opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return crit_fail_memory(sizeof *opened);
    fd = open_readonly(path);
    if (fd < 0) {
        status = crit_fail_system(errno, CRIT_NO_OFFSET, "plan: cannot be opened");
        free(opened);
        return crit_blame(status, path);
    }
    status = load_file(fd, opened);
    close(fd);
    if (status == SCR_CRIT_OK)
        return crit_blame(finish_open(opened, plan), path);
    release(opened);
    return crit_blame(status, path);
}

int scr_crit_plan_open_memory(const void *data, size_t size, scr_crit_plan **plan)
{
    scr_crit_plan *opened;
    uint8_t *bytes;

    if (plan == NULL || (data == NULL && size > 0))
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "scr_crit_plan_open_memory: %s is NULL",
                         plan == NULL ? "plan" : "data");
    opened = calloc(1, sizeof *opened);
    bytes = malloc(size > 0 ? size : 1);
    if (opened == NULL || bytes == NULL) {
        free(opened);
        free(bytes);
        return crit_fail_memory(sizeof *opened + size);
    }
    if (size > 0)
        memcpy(bytes, data, size);
    opened->bytes = bytes;
    opened->size = size;
    return finish_open(opened, plan);
}

void scr_crit_plan_close(scr_crit_plan *plan)
{
    if (plan != NULL)
        release(plan);
}

/* ---- What is in it -----------------------------------------------------------------------------
 */

uint32_t scr_crit_plan_format(void)
{
    return CRIT_PLAN_VERSION;
}

/* Arguments of a getter: the plan, where to put the answer, and an index below `limit`. */
static int check_getter(const char *what, const scr_crit_plan *plan, const void *out,
                        uint32_t index, uint32_t limit)
{
    if (plan == NULL || out == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "plan %s: %s is NULL", what,
                         plan == NULL ? "plan" : "info");
    if (index >= limit)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                         "plan %s %" PRIu32 " is asked for, there are %" PRIu32, what, index,
                         limit);
    return SCR_CRIT_OK;
}

static uint32_t rows_of(const scr_crit_plan *plan, enum crit_plan_table table)
{
    return plan == NULL ? 0 : plan->rows[table];
}

int scr_crit_plan_describe(const scr_crit_plan *plan, scr_crit_plan_info *info)
{
    int status = check_getter("description", plan, info, 0, 1);
    crit_plan_header header;

    if (status != SCR_CRIT_OK)
        return status;
    crit_plan_read_header(plan->bytes, &header);
    info->format = header.version;
    info->entries = plan->rows[CRIT_PLAN_ENTRIES];
    info->facts = plan->rows[CRIT_PLAN_FACTS];
    info->bytes = plan->size;
    memcpy(info->digest, header.digest, sizeof info->digest);
    return SCR_CRIT_OK;
}

/* An entry that is asked about. out: where the answer goes, for the check. */
static int find_entry(const scr_crit_plan *plan, uint32_t entry, const void *out,
                      crit_plan_entry *row)
{
    int status = check_getter("entry", plan, out, entry, rows_of(plan, CRIT_PLAN_ENTRIES));

    if (status == SCR_CRIT_OK)
        *row = crit_plan_read_entry(plan, entry);
    return status;
}

int scr_crit_plan_entry(const scr_crit_plan *plan, uint32_t entry, scr_crit_entry_info *info)
{
    crit_plan_entry row;
    int status = find_entry(plan, entry, info, &row);

    if (status != SCR_CRIT_OK)
        return status;
    *info = (scr_crit_entry_info){
        .pattern = crit_plan_string(plan, row.pattern),
        .sections = row.sections,
        .guards = row.guards,
        .checksums = row.fields,
        .min_bytes = row.min_bytes,
        .max_bytes = row.max_bytes,
    };
    return SCR_CRIT_OK;
}

int scr_crit_plan_section(const scr_crit_plan *plan, uint32_t entry, uint32_t section,
                          scr_crit_section_info *info)
{
    crit_plan_entry owner;
    crit_plan_section row;
    uint64_t unit_bytes = 0, unit_kept = 0;
    int status = find_entry(plan, entry, info, &owner);

    if (status == SCR_CRIT_OK)
        status = check_getter("section", plan, info, section, owner.sections);
    if (status != SCR_CRIT_OK)
        return status;
    row = crit_plan_read_section(plan, owner.first_section + section);
    status = crit_plan_unit_measure(plan, &row, &unit_bytes, &unit_kept);
    if (status != SCR_CRIT_OK)
        return status;
    *info = (scr_crit_section_info){
        .name = crit_plan_string(plan, row.name),
        .kind = row.kind,
        .evidence = row.evidence,
        .checkpoints = row.checkpoints,
        .phases = row.phases,
        .type_size = row.type_size,
        .dims = row.dims,
        .boxes = row.boxes,
        .unit_bytes = unit_bytes,
        .unit_kept = unit_kept,
        .rule = crit_plan_string(plan, row.rule),
    };
    return SCR_CRIT_OK;
}

int scr_crit_plan_fact(const scr_crit_plan *plan, uint32_t fact, const char **key,
                       const char **value)
{
    int status = check_getter("fact", plan, key, fact, rows_of(plan, CRIT_PLAN_FACTS));
    crit_plan_fact row;

    if (status == SCR_CRIT_OK && value == NULL)
        status = check_getter("fact", plan, value, 0, 1);
    if (status != SCR_CRIT_OK)
        return status;
    row = crit_plan_read_fact(plan, fact);
    *key = crit_plan_string(plan, row.key);
    *value = crit_plan_string(plan, row.value);
    return SCR_CRIT_OK;
}

/* ---- Match -------------------------------------------------------------------------------------
 */

int scr_crit_plan_match(const scr_crit_plan *plan, const char *path, int rank, const char *dataset,
                        uint32_t *entry, int *tied)
{
    if (plan == NULL || path == NULL || entry == NULL || rank < -1)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                         "scr_crit_plan_match: plan, path or entry is NULL, or rank %d is below -1",
                         rank);
    for (uint32_t i = 0; i < plan->rows[CRIT_PLAN_ENTRIES]; i++) {
        const char *pattern = crit_plan_string(plan, crit_plan_read_entry(plan, i).pattern);

        if (crit_glob_match(pattern, path, rank, dataset)) {
            *entry = i;
            if (tied != NULL)
                *tied = crit_glob_names_rank(pattern);
            return SCR_CRIT_OK;
        }
    }
    return crit_blame(
        crit_fail(SCR_CRIT_ERR_NOMATCH, CRIT_NO_OFFSET,
                  "none of the plan's %" PRIu32 " patterns matches at rank %d, dataset %s",
                  plan->rows[CRIT_PLAN_ENTRIES], rank, dataset == NULL ? "unknown" : dataset),
        path);
}
