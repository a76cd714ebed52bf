/*
 * job.h - what every program of this folder does around its own state: MPI, SCR and a digest.
 *
 * A program runs STEPS steps. After each it asks SCR whether to save (SCR_CHECKPOINT_INTERVAL=3 in
 * the tests: after steps 3 and 6), and at its end it prints a digest of the state it still needs.
 * C and C++. May use: MPI, SCR's C API, the C library. Tests: ../test_traced_*.py.
 */
#ifndef TRACED_JOB_H
#define TRACED_JOB_H

#include <mpi.h>
#include <scr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 7 };

static int job_rank;
static uint64_t job_sum = 14695981039346656037u;
static char job_dataset[SCR_MAX_FILENAME];

static inline void job_fail(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", job_rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static inline void job_must(int good, const char *what)
{
    if (!good) {
        job_fail(what);
    }
}

static inline void job_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job_rank);
    job_must(SCR_Init() == SCR_SUCCESS, "SCR_Init");
}

/* The path for this rank's file NAME of the open dataset; the same buffer every time. */
static inline const char *job_path(const char *name)
{
    static char path[SCR_MAX_FILENAME];
    char wanted[2 * SCR_MAX_FILENAME];
    snprintf(wanted, sizeof(wanted), "%s/%s.%d", job_dataset, name, job_rank);
    job_must(SCR_Route_file(wanted, path) == SCR_SUCCESS, "SCR_Route_file");
    return path;
}

/* Whether there is a checkpoint; then the restart is open until job_restarted. */
static inline int job_restarting(void)
{
    int have = 0;
    SCR_Have_restart(&have, job_dataset);
    if (have) {
        job_must(SCR_Start_restart(job_dataset) == SCR_SUCCESS, "SCR_Start_restart");
    }
    return have;
}

static inline void job_restarted(int valid)
{
    job_must(SCR_Complete_restart(valid) == SCR_SUCCESS && valid, "the restart failed");
}

static inline int job_must_save(void)
{
    int flag = 0;
    SCR_Need_checkpoint(&flag);
    return flag;
}

static inline void job_open(int64_t step)
{
    snprintf(job_dataset, sizeof(job_dataset), "ckpt.%d", (int)step);
    job_must(SCR_Start_output(job_dataset, SCR_FLAG_CHECKPOINT) == SCR_SUCCESS, "SCR_Start_output");
}

static inline void job_saved(int valid)
{
    job_must(SCR_Complete_output(valid) == SCR_SUCCESS && valid, "the checkpoint failed");
}

/* The whole run of a program with one file a rank: restarts if it can, takes the steps that are
 * left, saves when SCR says so. `step` is the program's own counter, which take_step and restore
 * set. */
static inline void job_run(const int64_t *step, void (*take_step)(void),
                           int (*save)(const char *path), int (*restore)(const char *path))
{
    if (job_restarting()) {
        job_restarted(restore(job_path("state")));
    }
    while (*step < STEPS) {
        take_step();
        if (job_must_save()) {
            job_open(*step);
            job_saved(save(job_path("state")));
        }
    }
}

/* FNV-1a over the bytes. */
static inline void job_digest(const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t k = 0; k < size; k++) {
        job_sum = (job_sum ^ at[k]) * 1099511628211u;
    }
}

static inline int job_end(void)
{
    printf("digest %d %016llx\n", job_rank, (unsigned long long)job_sum);
    SCR_Finalize();
    MPI_Finalize();
    return 0;
}

#endif
