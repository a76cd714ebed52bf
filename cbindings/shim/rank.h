/* rank.h - which rank of how many this process is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A wrong rank would let two ranks treat one file as their own, so the authority is MPI itself,
 * found at run time without linking to any. What launchers leave in the environment may be stale or
 * inherited (SLURM_PROCID is 0 in every process that mpiexec starts inside one srun task): it is
 * the fallback. May use real.h. Tests: tests/shim/test_shim_rank.py.
 */
#ifndef SHIM_RANK_H
#define SHIM_RANK_H

typedef struct shim_rank {
    int rank; /* -1: not known */
    int size; /* 0: not known */
} shim_rank;

/* Ask MPI, which must be initialised, else the environment. */
shim_rank shim_rank_find(void);

#endif
