/* api_restart.c - SCR_Have_restart, SCR_Start_restart, SCR_Complete_restart. */
#include <string.h>

#include "api.h"
#include "cache.h"
#include "collective.h"
#include "index.h"
#include "message.h"
#include "transfer.h"

static void forget_numbers(void)
{
    scrl.dataset_id = 0;
    scrl.checkpoint_id = 0;
    scrl.checkpoint_dataset_id = 0;
}

/* The newest checkpoint at hand. (What is in the cache was checked by SCR_Init, or is our own.) */
static int take_from_cache(void)
{
    for (int place = scrl_cache_count() - 1; place >= 0; place--) {
        const scrl_dataset *dataset = &scrl_cache_at(place)->dataset;
        if (scrl_dataset_is_checkpoint(dataset)) {
            scrl.dataset_id = dataset->id;
            scrl.checkpoint_id = dataset->checkpoint_id;
            scrl.checkpoint_dataset_id = dataset->id;
            return 1;
        }
    }
    return 0;
}

static void find_restart(void)
{
    forget_numbers();
    if (!take_from_cache() && scrl.settings.fetch && !scrl_fetch_newest()) {
        scrl_cache_drop_all();
        forget_numbers();
    }
    scrl.have_restart = scrl.checkpoint_id > 0;
}

static void give_name(char *name)
{
    const scrl_cached *cached = scrl_cache_find(scrl.checkpoint_dataset_id);
    if (name && cached) {
        strcpy(name, cached->dataset.name);
    }
}

int SCR_Have_restart(int *flag, char *name)
{
    scrl_require_idle("SCR_Have_restart()");
    *flag = 0;
    if (scrl.disabled) {
        return SCRL_FAILURE;
    }
    MPI_Barrier(scrl.comm);
    if (!scrl.have_restart) {
        find_restart();
    }
    *flag = scrl.have_restart;
    if (scrl.have_restart) {
        give_name(name);
    }
    return SCR_SUCCESS;
}

int SCR_Start_restart(char *name)
{
    scrl_require_idle("SCR_Start_restart()");
    scrl.state = SCRL_RESTART;
    if (!scrl.have_restart) {
        scrl_abort("Can only call SCR_Start_restart() if SCR_Have_restart() indicates a checkpoint "
                   "is available");
    }
    MPI_Barrier(scrl.comm);
    give_name(name);
    return SCR_SUCCESS;
}

/* The checkpoint did not serve: it is not to be offered again, in this run or a later one. */
static void give_up(int id)
{
    const scrl_cached *cached = scrl_cache_find(id);
    if (scrl.rank == 0 && cached) {
        scrl_index index;
        scrl_index_read(&index);
        if (scrl_index_by_name(&index, cached->dataset.name)) {
            scrl_index_mark_failed(&index, cached->dataset.name);
            scrl_index_write(&index);
        }
        scrl_index_free(&index);
    }
    scrl_cache_drop(id);
    forget_numbers();
}

int SCR_Complete_restart(int valid)
{
    scrl_require_open(SCRL_RESTART, "SCR_Start_restart()", "SCR_Complete_restart()");
    scrl.state = SCRL_IDLE;
    scrl.have_restart = 0;
    if (scrl_all(valid)) {
        return SCR_SUCCESS;
    }
    give_up(scrl.dataset_id);
    return SCRL_FAILURE;
}
