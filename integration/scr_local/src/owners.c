/*
 * owners.c - files that several ranks write; see output.h. A shared file must be counted, checked
 * and copied once: the lowest rank that routed it owns it.
 */
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "job.h"
#include "memory.h"
#include "message.h"
#include "output.h"

typedef struct {
    const char *origin; /* place in the prefix directory */
    const char *path;   /* what the program opens */
    int rank;
    int number; /* in the rank's map */
} routed;

static int by_origin_then_rank(const void *left, const void *right)
{
    const routed *a = left;
    const routed *b = right;
    int order = strcmp(a->origin, b->origin);
    return order != 0 ? order : a->rank - b->rank;
}

static int by_path(const void *left, const void *right)
{
    const routed *a = left;
    const routed *b = right;
    return strcmp(a->path, b->path);
}

/* Rank 0: one array of all files. Each list holds origin and path in turn. */
static routed *collect(const scrl_names *lists, int *count)
{
    *count = 0;
    for (int rank = 0; rank < scrl.ranks; rank++) {
        *count += lists[rank].count / 2;
    }
    routed *all = scrl_alloc((size_t)*count * sizeof(routed));
    routed *next = all;
    for (int rank = 0; rank < scrl.ranks; rank++) {
        const char *name = NULL;
        for (int number = 0; number < lists[rank].count / 2; number++) {
            const char *origin = scrl_names_next(&lists[rank], name);
            const char *path = scrl_names_next(&lists[rank], origin);
            *next++ = (routed){origin, path, rank, number};
            name = path;
        }
    }
    return all;
}

/* Rank 0: for each rank the origins that another rank owns. */
static scrl_names *find_not_owned(routed *all, int count)
{
    scrl_names *lists = scrl_alloc((size_t)scrl.ranks * sizeof(scrl_names));
    qsort(all, (size_t)count, sizeof(routed), by_origin_then_rank);
    for (int i = 1; i < count; i++) {
        if (strcmp(all[i].origin, all[i - 1].origin) == 0) {
            scrl_names_add(&lists[all[i].rank], all[i].origin);
        }
    }
    return lists;
}

static void warn_of_collisions(routed *all, int count)
{
    qsort(all, (size_t)count, sizeof(routed), by_path);
    for (int i = 1; i < count; i++) {
        if (strcmp(all[i].path, all[i - 1].path) == 0 &&
            strcmp(all[i].origin, all[i - 1].origin) != 0) {
            scrl_warn(
                "`%s' and `%s' are the same file `%s' in the cache: SCR keeps base names only",
                all[i - 1].origin, all[i].origin, all[i].path);
        }
    }
}

static void give_up(scrl_filemap *map, const char *origin)
{
    for (int i = 0; i < map->count; i++) {
        if (strcmp(map->files[i].origin, origin) == 0) {
            scrl_filemap_remove(map, i);
            return;
        }
    }
}

void scrl_assign_owners(scrl_filemap *map, int bypass)
{
    scrl_names mine = {0};
    for (int i = 0; i < map->count; i++) {
        scrl_names_add(&mine, map->files[i].origin);
        scrl_names_add(&mine, map->files[i].path);
    }
    scrl_names *lists = scrl_gather_names(&mine);
    scrl_names *not_owned = NULL;
    if (scrl.rank == 0) {
        int count;
        routed *all = collect(lists, &count);
        not_owned = find_not_owned(all, count);
        if (!bypass) {
            warn_of_collisions(all, count);
        }
        free(all);
    }
    scrl_names others = {0};
    scrl_scatter_names(not_owned, &others);
    const char *origin = NULL;
    while ((origin = scrl_names_next(&others, origin)) != NULL) {
        give_up(map, origin);
    }
    scrl_names_free(&others);
    scrl_names_free(&mine);
    scrl_free_gathered(lists);
    scrl_free_gathered(not_owned);
}
