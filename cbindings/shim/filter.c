/* filter.c - the first client of the hooks: joins the output phase and the restart phase to the
 * events.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/.
 */
#define _GNU_SOURCE
#include "filter.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "hooks.h"
#include "message.h"
#include "options.h"
#include "output.h"
#include "restart.h"
#include "stage.h"
#include "totals.h"

static struct filter {
    bool active;
    shim_options options;
    shim_output output;
    shim_restart restart;
} filter;

/* ---- Setting up ----------------------------------------------------------------------------- */

static scr_crit_plan *open_plan(const shim_options *options)
{
    scr_crit_plan *plan = NULL;
    if (scr_crit_plan_open(options->plan, &plan) == SCR_CRIT_OK)
        return plan;
    SHIM_WARNING(
        "no plan can be used, all files are stored whole: %s; set SCR_CRIT_PLAN, or make one with "
        "`scr_crit plan`",
        scr_crit_last_error());
    return NULL;
}

static void open_output(void)
{
    const shim_options *options = &filter.options;
    scr_crit_plan *plan = options->doubtful ? NULL : open_plan(options);
    if (options->rank.rank < 0)
        SHIM_WARNING("neither MPI nor the launcher's environment tells this process's rank: files "
                     "are stored whole");
    if (shim_output_open(&filter.output, options, plan) != SCR_CRIT_OK)
        SHIM_WARNING("no memory for the plan's statistics");
}

static void open_stage(void)
{
    const shim_options *options = &filter.options;
    const char *bases[SHIM_STAGE_BASES + 1] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < SHIM_STAGE_BASES && options->stage[i][0]; i++)
        bases[count++] = options->stage[i];
    shim_stage_open(bases, options->stage_chosen ? 1 : count, options->prefix, options->job,
                    options->rank.rank);
}

static void initialized(void *context)
{
    (void)context;
    shim_totals_reset();
    open_stage();
    open_output();
    filter.restart = (shim_restart){.options = &filter.options};
    shim_message_debug_at(1,
                          "plugin on: rank %d of %d, prefix %s, plan %s, mode %s%s, staging in %s",
                          filter.options.rank.rank, filter.options.rank.size, filter.options.prefix,
                          filter.options.plan, filter.options.zero ? "zero" : "pack",
                          filter.options.dry_run ? " (dry run)" : "", filter.options.stage[0]);
}

static void finalizing(void *context)
{
    (void)context;
    shim_output_end(&filter.output);
    shim_restart_end(&filter.restart);
    shim_totals_report(filter.options.rank);
}

/* ---- Events --------------------------------------------------------------------------------- */

static void output_started(void *context, const char *dataset, int flags)
{
    (void)context, (void)flags;
    shim_output_start(&filter.output, dataset);
}

static int output_routed(void *context, const char *name, char *path, size_t size)
{
    (void)context;
    shim_output_route(&filter.output, name, path, size);
    return 0;
}

static int output_completing(void *context, int valid)
{
    (void)context;
    return shim_output_complete(&filter.output, valid);
}

static void output_completed(void *context, int status)
{
    (void)context, (void)status;
    shim_output_end(&filter.output);
}

static void restart_started(void *context, const char *dataset)
{
    (void)context, (void)dataset;
    shim_restart_end(&filter.restart);
}

static int restart_routed(void *context, const char *name, char *path, size_t size)
{
    (void)context, (void)name;
    return shim_restart_route(&filter.restart, path, size);
}

static void restart_completed(void *context, int valid)
{
    (void)context, (void)valid;
    shim_restart_end(&filter.restart);
}

static const scr_crit_hooks hooks = {
    .name = "filter",
    .context = &filter,
    .initialized = initialized,
    .output_started = output_started,
    .output_routed = output_routed,
    .output_completing = output_completing,
    .output_completed = output_completed,
    .restart_started = restart_started,
    .restart_routed = restart_routed,
    .restart_completed = restart_completed,
    .finalizing = finalizing,
};

void shim_filter_look(const char *path)
{
    static bool told;
    int claims = 0;
    if (!filter.active || told || scr_crit_is_packed(path, &claims) != SCR_CRIT_OK || !claims)
        return;
    told = true;
    SHIM_ERROR(
        "%s is a packed file, and SCR_Route_file hands out its path as it is outside of a restart "
        "phase: call SCR_Start_restart first, expand it with `scr_crit unpack`, or write with "
        "SCR_CRIT_MODE=zero",
        path);
}

/* ---- Start and stop ------------------------------------------------------------------------- */

/* SCR's system-wide file, whose place was compiled into libscr: PREFIX/etc by default, and /etc for
 * /usr. */
static void find_system_file(const char *library, char *path, size_t size)
{
    char folder[SHIM_PATH_SIZE];
    const char *root = getenv("SCR_ROOT");
    if (root && *root)
        snprintf(path, size, "%s/etc/scr.conf", root);
    else if (*library && shim_path_folder(library, folder, sizeof folder))
        snprintf(path, size, "%s/../etc/scr.conf", folder);
    if (access(path, R_OK) != 0)
        snprintf(path, size, "/etc/scr.conf");
}

void shim_filter_start(const char *framework_library)
{
    char system_file[2 * SHIM_PATH_SIZE] = "";
    if (filter.active)
        return;
    find_system_file(framework_library, system_file, sizeof system_file);
    shim_options_read(&filter.options, system_file);
    if (!filter.options.plugin)
        return;
    if (shim_hooks_register_first(&hooks) != SCR_CRIT_OK) {
        SHIM_WARNING("no memory: the plugin stays off");
        return;
    }
    filter.active = true;
}

void shim_filter_stop(void)
{
    shim_config_forget();
    if (!filter.active)
        return;
    filter.active = false;
    scr_crit_hooks_unregister(&filter);
    shim_output_close(&filter.output);
    shim_restart_end(&filter.restart);
    shim_stage_close();
}

/* A program that ends without SCR_Finalize leaves no staged files either. */
__attribute__((destructor)) static void clean_up_at_exit(void)
{
    if (filter.active)
        shim_stage_close();
}
