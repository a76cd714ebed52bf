/*
 * need.h - is it time for a checkpoint, is it time to stop? Decided by rank 0's clock. Collective,
 * except the two that note what an output cost.
 */
#ifndef SCRL_NEED_H
#define SCRL_NEED_H

/* Starts the clocks, at SCR_Init. */
void scrl_need_start(void);

void scrl_need_output_started(int is_checkpoint);
void scrl_need_output_completed(int is_checkpoint);

/* 1 when SCR_CHECKPOINT_INTERVAL, _SECONDS or _OVERHEAD asks for one, or the job ends soon. */
int scrl_need_checkpoint(void);

/* 1 when no more than SCR_HALT_SECONDS are left until SCR_END_TIME (seconds since 1970). */
int scrl_should_exit(void);

#endif
