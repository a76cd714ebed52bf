/* need.c - see need.h. */
#include "need.h"

#include <stdlib.h>
#include <time.h>

#include "collective.h"
#include "job.h"

static struct {
    int calls;       /* of SCR_Need_checkpoint */
    double started;  /* when the checkpoint being written was started */
    double finished; /* when the last one was completed, or SCR_Init */
    int checkpoints; /* completed */
    double cost;     /* seconds spent on them */
} need;

void scrl_need_start(void)
{
    need.calls = 0;
    need.checkpoints = 0;
    need.cost = 0.0;
    need.finished = MPI_Wtime();
}

void scrl_need_output_started(int is_checkpoint)
{
    if (is_checkpoint) {
        need.started = MPI_Wtime();
    }
}

void scrl_need_output_completed(int is_checkpoint)
{
    if (is_checkpoint) {
        need.finished = MPI_Wtime();
        need.cost += need.finished - need.started;
        need.checkpoints++;
    }
}

/* Would a checkpoint now cost less than the allowed part of the time since the last one? */
static int is_affordable(double now)
{
    if (scrl.settings.checkpoint_overhead <= 0) {
        return 0;
    }
    if (need.checkpoints == 0) {
        return 1; /* to learn what one costs */
    }
    double cost = need.cost / need.checkpoints;
    double percent = 100.0 * cost / (now - need.finished + cost);
    return percent < scrl.settings.checkpoint_overhead;
}

static int is_time_to_stop(void)
{
    const char *end = getenv("SCR_END_TIME");
    if (scrl.settings.halt_seconds <= 0 || !end) {
        return 0;
    }
    long long end_time = strtoll(end, NULL, 10);
    return end_time > 0 && end_time - (long long)time(NULL) <= scrl.settings.halt_seconds;
}

int scrl_need_checkpoint(void)
{
    const scrl_settings *settings = &scrl.settings;
    need.calls++;
    double now = MPI_Wtime();
    int wanted = is_time_to_stop();
    if (settings->checkpoint_interval > 0 && need.calls % settings->checkpoint_interval == 0) {
        wanted = 1;
    }
    if (settings->checkpoint_seconds > 0 && now - need.finished >= settings->checkpoint_seconds) {
        wanted = 1;
    }
    if (is_affordable(now)) {
        wanted = 1;
    }
    return scrl_from_root(wanted);
}

int scrl_should_exit(void)
{
    return scrl_from_root(is_time_to_stop());
}
