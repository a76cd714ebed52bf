/*
 * api_session.c - SCR_Init, SCR_Finalize, the order of calls, and the calls that only ask.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api.h"
#include "cache.h"
#include "collective.h"
#include "memory.h"
#include "message.h"
#include "need.h"
#include "params.h"
#include "path.h"
#include "transfer.h"

/* The call that ends the current state, or NULL. */
static const char *way_out(scrl_state state)
{
    switch (state) {
    case SCRL_UNINIT:
        return "SCR_Init()";
    case SCRL_RESTART:
        return "SCR_Complete_restart()";
    case SCRL_CHECKPOINT:
        return "SCR_Complete_checkpoint()";
    case SCRL_OUTPUT:
        return "SCR_Complete_output()";
    default:
        return NULL;
    }
}

void scrl_require_idle(const char *call)
{
    const char *first = way_out(scrl.state);
    if (first) {
        scrl_abort("Must call %s before %s", first, call);
    }
}

void scrl_require_open(scrl_state state, const char *start, const char *complete)
{
    if (scrl.state != state) {
        scrl_abort("Must call %s before %s", start, complete);
    }
}

/* Cache and control directories of one node cannot serve several. */
static void require_one_node(void)
{
    if (!scrl_same_text(scrl.host)) {
        scrl_abort("the stand-in for SCR is for one node only, and the ranks are on several");
    }
}

static void make_directory_of_job(const char *purpose, const char *directory, mode_t mode)
{
    if (scrl_make_directories(directory, mode) != 0) {
        scrl_abort("Failed to create %s directory: %s: %s", purpose, directory, strerror(errno));
    }
}

static void make_directories(void)
{
    if (scrl.rank == 0) {
        make_directory_of_job("prefix", scrl.settings.prefix_scr, 0777);
        make_directory_of_job("control", scrl.settings.control, S_IRWXU | S_IRWXG);
        make_directory_of_job("cache", scrl.settings.cache, S_IRWXU | S_IRWXG);
        char *foreign = scrl_format("%s/index.scr", scrl.settings.prefix_scr);
        if (access(foreign, F_OK) == 0) {
            scrl_warn("`%s' belongs to a real SCR; its datasets are not seen here", foreign);
        }
        free(foreign);
    }
    MPI_Barrier(scrl.comm);
}

/*
 * Checks what is in the cache, oldest first. A damaged output dataset makes the checkpoints after
 * it useless: the output would never be written again. Returns 1 when a checkpoint is usable.
 */
static int rebuild_cache(void)
{
    int usable = 0;
    int lost_output = 0;
    for (int place = 0; place < scrl_cache_count();) {
        const scrl_cached *cached = scrl_cache_at(place);
        const scrl_dataset dataset = cached->dataset;
        if (!scrl_cache_is_whole(cached)) {
            lost_output |= scrl_dataset_is_output(&dataset);
            if (scrl.rank == 0) {
                scrl_dbg(1, "Failed to rebuild dataset %d", dataset.id);
            }
            scrl_cache_drop(dataset.id);
            continue;
        }
        if (scrl_dataset_is_checkpoint(&dataset) && !lost_output) {
            usable = 1;
            scrl.dataset_id = dataset.id;
            scrl.checkpoint_id = dataset.checkpoint_id;
            scrl.checkpoint_dataset_id = dataset.id;
        }
        place++;
    }
    scrl_cache_drop_after(scrl.checkpoint_dataset_id);
    return usable;
}

/* What the last run left to be flushed, or everything if that is asked for. */
static void flush_cache(void)
{
    for (int place = 0; place < scrl_cache_count(); place++) {
        int id = scrl_cache_at(place)->dataset.id;
        if (scrl.settings.flush_on_restart) {
            scrl_flush(id);
        } else {
            scrl_flush_if_due(id);
        }
    }
}

static void recover_cache(void)
{
    scrl_cache_load();
    if (scrl.settings.cache_purge) {
        scrl_cache_drop_all();
    }
    if (scrl.settings.prefix_purge) {
        scrl_prefix_delete_all();
    }
    int usable = scrl.settings.distribute && rebuild_cache();
    if (usable) {
        flush_cache();
    }
    if (!usable || scrl.settings.global_restart) {
        scrl_cache_drop_all();
        scrl.dataset_id = 0;
        scrl.checkpoint_id = 0;
        scrl.checkpoint_dataset_id = 0;
    }
    scrl.have_restart = scrl.checkpoint_id > 0;
}

static int is_disabled_by_environment(void)
{
    const char *value = getenv("SCR_ENABLE");
    return value && atoi(value) == 0;
}

int SCR_Init(void)
{
    if (scrl.state != SCRL_UNINIT) {
        scrl_abort("Called SCR_Init() when already initialized");
    }
    scrl.state = SCRL_IDLE;
    scrl.disabled = is_disabled_by_environment();
    if (scrl.disabled) {
        return SCRL_FAILURE;
    }
    scrl_job_connect();
    scrl_params_load();
    scrl_settings_read();
    if (!scrl.settings.enable) {
        scrl.disabled = 1;
        scrl_params_free();
        return SCRL_FAILURE;
    }
    require_one_node();
    make_directories();
    recover_cache();
    scrl_need_start();
    MPI_Barrier(scrl.comm);
    return SCR_SUCCESS;
}

int SCR_Finalize(void)
{
    scrl_require_idle("SCR_Finalize()");
    if (scrl.disabled) {
        scrl_job_reset();
        return SCRL_FAILURE;
    }
    MPI_Barrier(scrl.comm);
    if (scrl.settings.flush > 0) {
        scrl_flush(scrl.checkpoint_dataset_id);
    }
    scrl_cache_forget();
    scrl_params_free();
    scrl_job_reset();
    return SCR_SUCCESS;
}

char *SCR_Get_version(void)
{
    return SCR_VERSION;
}

int SCR_Need_checkpoint(int *flag)
{
    scrl_require_idle("SCR_Need_checkpoint()");
    *flag = 0;
    if (scrl.disabled) {
        return SCRL_FAILURE;
    }
    *flag = scrl_need_checkpoint();
    return SCR_SUCCESS;
}

int SCR_Should_exit(int *flag)
{
    scrl_require_idle("SCR_Should_exit()");
    if (scrl.disabled || !flag) {
        return SCRL_FAILURE;
    }
    *flag = scrl_should_exit();
    return SCR_SUCCESS;
}
