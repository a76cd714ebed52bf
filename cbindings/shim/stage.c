/* stage.c - private staging.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Folders are called JOB.RANK.PID@HOST. Orphans of this host are cleared in node-local areas. The
 * area under the prefix is seen by many hosts, whose locks may not be: there each rank clears its
 * own. Tests: tests/shim/test_shim_stage.py.
 */
#define _GNU_SOURCE
#include "stage.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "claim.h"
#include "folder.h"
#include "path.h"
#include "room.h"

enum { JOB_SIZE = 33, HOST_SIZE = 65 };

static struct area {
    char base[SHIM_PATH_SIZE];
    shim_folder folder;
    int error; /* why it cannot be used */
} areas[SHIM_STAGE_AREAS];
static size_t area_count;
static size_t output_areas; /* the first so many may serve output */
static size_t output_area = SHIM_STAGE_AREAS;

static char host[HOST_SIZE], job[JOB_SIZE];
static int own_rank;
static pid_t owner; /* a forked child must not remove its parent's files */
static unsigned long files;

static bool is_of_this_host(const char *name)
{
    const char *at = strrchr(name, '@');
    size_t length = strlen(host);
    /* A further attempt at a name has a number behind the host. */
    return at && strncmp(at + 1, host, length) == 0 && strchr(".", at[1 + length]);
}

static bool is_of_this_rank(const char *name)
{
    int rank;
    const char *dot = strchr(name, '.');
    return dot && sscanf(dot, ".%d.", &rank) == 1 && rank == own_rank;
}

/* One path component without '.' and '@', which separate the parts of a folder's name. */
static void set_word(char *word, size_t size, const char *text)
{
    snprintf(word, size, "%s", text);
    for (char *c = word; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-')
            *c = '_';
}

static bool is_known(const char *base)
{
    for (size_t i = 0; i < area_count; i++)
        if (strcmp(areas[i].base, base) == 0)
            return true;
    return false;
}

static void add_area(const char *base, bool (*mine)(const char *name))
{
    char path[SHIM_PATH_SIZE];
    if (area_count == SHIM_STAGE_AREAS || !shim_path_absolute(base, path, sizeof path) ||
        is_known(path))
        return;
    struct area *area = &areas[area_count];
    strcpy(area->base, path);
    area->folder = (shim_folder){.lock = -1};
    area->error = 0;
    area_count++;
    shim_folder_clear_orphans(area->base, mine);
}

void shim_stage_open(const char *const *bases, size_t outputs, const char *prefix,
                     const char *job_id, int rank)
{
    char under_prefix[SHIM_PATH_SIZE], name[256];
    if (gethostname(name, sizeof name) != 0)
        strcpy(name, "host");
    name[sizeof name - 1] = '\0';
    set_word(host, sizeof host, name);
    set_word(job, sizeof job, job_id);
    own_rank = rank;
    owner = getpid();
    area_count = 0;
    output_area = SHIM_STAGE_AREAS;
    for (size_t i = 0; bases[i]; i++)
        add_area(bases[i], is_of_this_host);
    /* Not the one under the prefix: staging there would write everything twice to it. */
    output_areas = outputs < area_count ? outputs : area_count;
    if (*prefix && shim_path_join(under_prefix, sizeof under_prefix, prefix, ".scr_crit"))
        add_area(under_prefix, is_of_this_rank);
}

/* The folder is made when it is first needed: a run that stages nothing leaves no trace. */
static int use_area(size_t index)
{
    if (index >= area_count)
        return ENOENT;
    struct area *area = &areas[index];
    if (!area->folder.path[0] && !area->error) {
        char name[JOB_SIZE + HOST_SIZE + 32];
        snprintf(name, sizeof name, "%s.%d.%ld@%s", job, own_rank, (long)getpid(), host);
        area->error = shim_folder_make(&area->folder, area->base, name);
    }
    return area->error;
}

size_t shim_stage_areas(void)
{
    return area_count;
}

size_t shim_stage_output_area(void)
{
    for (size_t i = 0; output_area == SHIM_STAGE_AREAS && i < output_areas; i++)
        if (use_area(i) == 0)
            output_area = i;
    return output_area;
}

const char *shim_stage_problem(void)
{
    static char problem[SHIM_PATH_SIZE + 256];
    snprintf(problem, sizeof problem, "no folder for staging");
    if (output_areas > 0)
        snprintf(problem, sizeof problem, "%s: %s", areas[output_areas - 1].base,
                 strerror(areas[output_areas - 1].error));
    return problem;
}

const char *shim_stage_base(size_t area)
{
    return area < area_count ? areas[area].base : "";
}

uint64_t shim_stage_free_bytes(size_t area)
{
    return use_area(area) == 0 ? shim_room(areas[area].folder.path) : UINT64_MAX;
}

bool shim_stage_claim(uint64_t bytes, uint64_t *room)
{
    return output_area >= area_count || shim_claim(&areas[output_area].folder, bytes, room);
}

int shim_stage_reserve(size_t area, const char *base, char *path, size_t size)
{
    int error = use_area(area);
    if (error)
        return error;
    char folder[SHIM_PATH_SIZE];
    int length = snprintf(folder, sizeof folder, "%s/%lu", areas[area].folder.path, ++files);
    if (length < 0 || (size_t)length >= sizeof folder || !shim_path_join(path, size, folder, base))
        return ENAMETOOLONG;
    return mkdir(folder, 0700) == 0 ? 0 : errno;
}

void shim_stage_remove(const char *path)
{
    char folder[SHIM_PATH_SIZE];
    if (getpid() == owner && shim_path_folder(path, folder, sizeof folder))
        shim_folder_remove_tree(folder);
}

void shim_stage_journal(const char *path)
{
    size_t area = shim_stage_output_area();
    if (area < area_count)
        shim_folder_journal(&areas[area].folder, path);
}

void shim_stage_journal_done(void)
{
    if (output_area < area_count)
        shim_folder_journal_done(&areas[output_area].folder);
}

void shim_stage_close(void)
{
    if (getpid() != owner)
        return;
    for (size_t i = 0; i < area_count; i++)
        shim_folder_remove(&areas[i].folder);
    area_count = 0;
    output_area = SHIM_STAGE_AREAS;
}
