/* api_manage.c - SCR_Current, SCR_Drop, SCR_Delete: datasets by name. */
#include <string.h>

#include "api.h"
#include "cache.h"
#include "collective.h"
#include "index.h"
#include "message.h"
#include "transfer.h"

/* Rank 0: makes the named checkpoint current in the index; 0 when there is none. */
static int choose_current(const char *name, scrl_dataset *dataset)
{
    scrl_index index;
    scrl_index_read(&index);
    const scrl_index_entry *entry = scrl_index_by_name(&index, name);
    int found = entry && scrl_dataset_is_checkpoint(&entry->dataset);
    if (found) {
        *dataset = entry->dataset;
        scrl_index_set_current(&index, name);
        for (int i = index.count - 1; scrl.settings.drop_after_current && i >= 0; i--) {
            if (index.entries[i].dataset.id > dataset->id) {
                scrl_index_remove(&index, index.entries[i].dataset.name);
            }
        }
        scrl_index_write(&index);
    }
    scrl_index_free(&index);
    return found;
}

int SCR_Current(const char *name)
{
    scrl_require_idle("SCR_Current()");
    if (scrl.disabled) {
        return SCRL_FAILURE;
    }
    scrl_dataset dataset = {0};
    int found = scrl_from_root(scrl.rank == 0 && choose_current(name, &dataset));
    if (found) {
        MPI_Bcast(&dataset, sizeof(dataset), MPI_BYTE, 0, scrl.comm);
        scrl.dataset_id = dataset.id;
        scrl.checkpoint_id = dataset.checkpoint_id;
        scrl.checkpoint_dataset_id = dataset.id;
        scrl.have_restart = 0; /* the program reads the files by its own means */
        scrl_cache_drop_after(dataset.id);
    }
    return SCR_SUCCESS;
}

int SCR_Drop(const char *name)
{
    scrl_require_idle("SCR_Drop()");
    if (scrl.disabled) {
        return SCRL_FAILURE;
    }
    MPI_Barrier(scrl.comm);
    if (scrl.rank == 0) {
        scrl_index index;
        scrl_index_read(&index);
        if (scrl_index_by_name(&index, name)) {
            scrl_index_remove(&index, name);
            scrl_index_write(&index);
        }
        scrl_index_free(&index);
    }
    MPI_Barrier(scrl.comm);
    return SCR_SUCCESS;
}

int SCR_Delete(const char *name)
{
    scrl_require_idle("SCR_Delete()");
    if (scrl.disabled) {
        return SCRL_FAILURE;
    }
    MPI_Barrier(scrl.comm);
    scrl_cache_drop_name(name);
    int id = 0;
    if (scrl.rank == 0) {
        scrl_index index;
        scrl_index_read(&index);
        const scrl_index_entry *entry = scrl_index_by_name(&index, name);
        id = entry ? entry->dataset.id : 0;
        scrl_index_free(&index);
    }
    id = scrl_from_root(id);
    if (id > 0) {
        scrl_prefix_delete(id, name);
    }
    if (!scrl_cache_find(scrl.checkpoint_dataset_id)) {
        scrl.have_restart = 0; /* it was the one that stood ready: look again when asked */
    }
    return SCR_SUCCESS;
}
