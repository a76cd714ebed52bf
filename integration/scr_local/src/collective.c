/* collective.c - see collective.h. May use MPI, job.h, names.h. */
#include "collective.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "memory.h"
#include "message.h"

#define TAG_NAMES 1

int scrl_all(int condition)
{
    int mine = condition ? 1 : 0;
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, scrl.comm);
    return all;
}

int scrl_from_root(int value)
{
    MPI_Bcast(&value, 1, MPI_INT, 0, scrl.comm);
    return value;
}

static int as_count(size_t length)
{
    if (length > INT_MAX) {
        scrl_abort("a list of %zu bytes is more than the stand-in can send", length);
    }
    return (int)length;
}

char *scrl_text_from_root(const char *text)
{
    int length = scrl.rank == 0 && text ? as_count(strlen(text)) : -1;
    length = scrl_from_root(length);
    if (length < 0) {
        return NULL;
    }
    char *copy = scrl_alloc((size_t)length + 1);
    if (scrl.rank == 0) {
        memcpy(copy, text, (size_t)length);
    }
    MPI_Bcast(copy, length, MPI_CHAR, 0, scrl.comm);
    return copy;
}

int scrl_same_text(const char *text)
{
    char *root = scrl_text_from_root(text);
    int same = text && root ? strcmp(text, root) == 0 : !text && !root;
    free(root);
    return scrl_all(same);
}

scrl_names *scrl_gather_names(const scrl_names *mine)
{
    int head[2] = {as_count(mine->length), mine->count};
    if (scrl.rank != 0) {
        MPI_Send(head, 2, MPI_INT, 0, TAG_NAMES, scrl.comm);
        MPI_Send(mine->bytes, head[0], MPI_CHAR, 0, TAG_NAMES, scrl.comm);
        return NULL;
    }
    scrl_names *all = scrl_alloc((size_t)scrl.ranks * sizeof(*all));
    for (int rank = 0; rank < scrl.ranks; rank++) {
        if (rank > 0) {
            MPI_Recv(head, 2, MPI_INT, rank, TAG_NAMES, scrl.comm, MPI_STATUS_IGNORE);
        }
        all[rank] = (scrl_names){scrl_alloc((size_t)head[0]), (size_t)head[0], head[1]};
        if (rank > 0) {
            MPI_Recv(all[rank].bytes, head[0], MPI_CHAR, rank, TAG_NAMES, scrl.comm,
                     MPI_STATUS_IGNORE);
        } else if (head[0] > 0) {
            memcpy(all[0].bytes, mine->bytes, mine->length);
        }
    }
    return all;
}

void scrl_scatter_names(const scrl_names *all, scrl_names *mine)
{
    int head[2];
    if (scrl.rank != 0) {
        MPI_Recv(head, 2, MPI_INT, 0, TAG_NAMES, scrl.comm, MPI_STATUS_IGNORE);
        *mine = (scrl_names){scrl_alloc((size_t)head[0]), (size_t)head[0], head[1]};
        MPI_Recv(mine->bytes, head[0], MPI_CHAR, 0, TAG_NAMES, scrl.comm, MPI_STATUS_IGNORE);
        return;
    }
    for (int rank = 1; rank < scrl.ranks; rank++) {
        head[0] = as_count(all[rank].length);
        head[1] = all[rank].count;
        MPI_Send(head, 2, MPI_INT, rank, TAG_NAMES, scrl.comm);
        MPI_Send(all[rank].bytes, head[0], MPI_CHAR, rank, TAG_NAMES, scrl.comm);
    }
    *mine = (scrl_names){scrl_alloc(all[0].length), all[0].length, all[0].count};
    if (all[0].length > 0) {
        memcpy(mine->bytes, all[0].bytes, all[0].length);
    }
}

void scrl_free_gathered(scrl_names *all)
{
    for (int rank = 0; all && rank < scrl.ranks; rank++) {
        scrl_names_free(&all[rank]);
    }
    free(all);
}
