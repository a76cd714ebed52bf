/* test_signals.c - a signal every few hundred microseconds, its handler without SA_RESTART, changes
 * nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <sys/time.h>

#include "check.h"
#include "pack.h"
#include "scratch.h"

enum { SIZE = 24 << 20 };

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

static void ring_every(long microseconds)
{
    const struct itimerval often = {{0, microseconds}, {0, microseconds}};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_signal;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static int pack_whole(void)
{
    crit_resolution resolution;
    crit_source source;
    crit_resolution_init(&resolution);
    crit_program_loop_begin(&resolution.program);
    crit_program_keep(&resolution.program, 40);
    crit_program_drop(&resolution.program, 24);
    crit_program_loop_end(&resolution.program, SIZE / 64);
    CHECK_STATUS(crit_resolution_check(&resolution, SIZE), SCR_CRIT_OK);
    CHECK_STATUS(crit_source_open(&source, "whole"), SCR_CRIT_OK);
    const int status = crit_pack(&source, &resolution, "packed", NULL, NULL);
    crit_source_close(&source);
    crit_resolution_free(&resolution);
    return status;
}

int main(void)
{
    uint8_t *bytes = scratch_bytes(SIZE, 11);
    scratch_enter();
    scratch_write("whole", bytes, SIZE);
    ring_every(300);
    CHECK_STATUS(pack_whole(), SCR_CRIT_OK);
    CHECK_STATUS(scr_crit_check("packed", NULL), SCR_CRIT_OK);
    const scr_crit_fill fill = {(const uint8_t *)"\xff", 1};
    CHECK_STATUS(scr_crit_unpack("packed", "target", &fill, NULL), SCR_CRIT_OK);
    CHECK_STATUS(scr_crit_copy("target", "copy"), SCR_CRIT_OK);
    ring_every(0);
    CHECK(signals > 10);
    for (size_t at = 0; at < SIZE; at++)
        if (at % 64 >= 40)
            bytes[at] = 0xff;
    CHECK(scratch_holds("target", bytes, SIZE));
    CHECK(scratch_holds("copy", bytes, SIZE));
    scratch_leave();
    free(bytes);
    return check_result();
}
