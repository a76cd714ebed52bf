/*
 * output.h - a dataset from its start to its completion, for SCR_Start/Complete_checkpoint and
 * SCR_Start/Complete_output alike. Collective.
 */
#ifndef SCRL_OUTPUT_H
#define SCRL_OUTPUT_H

#include "filemap.h"

/* Gives the new dataset a number, makes room and directories. `name` may be NULL. */
void scrl_output_start(const char *name, int flags);

/* Records the files and decides on validity; SCR_SUCCESS or a failure, the same on all ranks. */
int scrl_output_complete(int valid);

/*
 * Leaves every file that several ranks routed with one rank only. Warns when files of different
 * places in the prefix got the same path in the cache, where SCR keeps base names only.
 */
void scrl_assign_owners(scrl_filemap *map, int bypass);

#endif
