/* prefix.c - datasets removed from the prefix directory; see transfer.h. Rank 0 does the work. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "collective.h"
#include "index.h"
#include "job.h"
#include "message.h"
#include "path.h"
#include "transfer.h"

static void remove_files(int id)
{
    scrl_names names;
    if (scrl_filelist_read_all(id, &names) != 0) {
        return; /* a dataset that was never completed has no list: its files stay */
    }
    const char *name = NULL;
    while ((name = scrl_names_next(&names, name)) != NULL) {
        char path[SCR_MAX_FILENAME];
        scrl_path_join(path, sizeof(path), scrl.settings.prefix, name);
        if (unlink(path) != 0 && errno != ENOENT) {
            scrl_err("cannot remove `%s': %s", path, strerror(errno));
        }
        scrl_remove_empty_parents(path, scrl.settings.prefix);
    }
    scrl_names_free(&names);
    scrl_filelist_unlink(id);
}

static void remove_dataset(scrl_index *index, int id, const char *name)
{
    scrl_dbg(1, "Deleting dataset %d `%s' from `%s'", id, name, scrl.settings.prefix);
    remove_files(id);
    scrl_index_remove(index, name);
}

void scrl_prefix_delete(int id, const char *name)
{
    if (scrl.rank == 0) {
        scrl_index index;
        scrl_index_read(&index);
        remove_dataset(&index, id, name);
        scrl_index_write(&index);
        scrl_index_free(&index);
    }
    MPI_Barrier(scrl.comm);
}

void scrl_prefix_keep(int id, int keep)
{
    if (scrl.rank == 0) {
        scrl_index index;
        scrl_index_read(&index);
        int left = keep - 1; /* the newest is one of those kept */
        int before = id;
        scrl_index_entry *entry;
        while ((entry = scrl_index_newest(&index, before)) != NULL) {
            scrl_dataset dataset = entry->dataset;
            before = dataset.id;
            if (left > 0) {
                left--;
            } else if (!scrl_dataset_is_output(&dataset)) {
                remove_dataset(&index, dataset.id, dataset.name);
            }
        }
        scrl_index_write(&index);
        scrl_index_free(&index);
    }
    MPI_Barrier(scrl.comm);
}

void scrl_prefix_delete_all(void)
{
    if (scrl.rank == 0) {
        scrl_index index;
        scrl_index_read(&index);
        while (index.count > 0) {
            scrl_dataset dataset = index.entries[0].dataset;
            remove_dataset(&index, dataset.id, dataset.name);
        }
        scrl_index_write(&index);
        scrl_index_free(&index);
    }
    MPI_Barrier(scrl.comm);
}
