/*
 * checkpoint.h - what the kernels do alike: start, checkpoint through SCR, restart, end.
 *
 * A checkpoint is one file a rank, KERNEL.ITERATION/rank_RANK, which holds the kernel's variables
 * one behind the other as they lie in memory. It is written at the top of an iteration, the middle
 * one unless told otherwise.
 *
 * May use: MPI, SCR's public C API, the C library. Tests: test_npb_c.py.
 */
#ifndef NPB_CHECKPOINT_H
#define NPB_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* A checkpoint variable: static memory of the kernel. */
typedef struct {
    void *address;
    size_t bytes;
} Variable;

enum { MOST_VARIABLES = 4 };

/* What a kernel tells of itself. The first variable is the number of the iteration that comes
 * next. */
typedef struct {
    const char *name;
    int iterations;
    int variables;
    Variable variable[MOST_VARIABLES];
} Kernel;

/* Starts MPI and SCR and reads the command line (--help lists it). Ends the process with status 2
 * for an unknown option. `kernel` must live as long as the process. */
void kernel_begin(const Kernel *kernel, int argc, char **argv);

/* Reads the newest checkpoint into the variables; false if there is none, and they are as they
 * were. A checkpoint that cannot be read ends the job: a half-read state must not be computed on.
 * Call it when everything that is not in the checkpoint is set up. */
bool kernel_resume(void);

/* At the top of each iteration: writes a checkpoint if it is time for one, and dies if --die-at
 * says so. */
void kernel_checkpoint(void);

/* One verified value: prints it with all its digits, and its reference. Returns whether it is
 * within the relative deviation `epsilon` of it. */
bool kernel_check(const char *what, double found, double reference, double epsilon);

/* Prints the outcome, stops SCR and MPI. Returns the process's exit status: 0 if verified. */
int kernel_end(bool verified);

#endif
