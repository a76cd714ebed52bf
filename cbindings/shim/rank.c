/* rank.c - which rank of how many this process is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_rank.py.
 */
#define _GNU_SOURCE
#include "rank.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef SHIM_WRAP
#include "real.h"
#endif

/* ---- MPI ------------------------------------------------------------------------------------ */

/* A communicator is an int in MPICH's ABI and a pointer in Open MPI's: both travel as one register.
 */
typedef int (*rank_function)(void *communicator, int *value);
typedef int (*flag_function)(int *flag);
typedef int (*version_function)(char *text, int *length);

/* MPI_COMM_WORLD of MPICH and all that share its ABI (Intel MPI, MVAPICH, Cray MPICH), and of the
 * ABI that MPI 5.0 standardises (its appendix A). */
#define MPICH_COMM_WORLD ((void *)(intptr_t)0x44000000)
#define STANDARD_COMM_WORLD ((void *)(intptr_t)0x00000101)

#ifdef SHIM_WRAP
/* Weak: an archive must not pull in an MPI, and a static one cannot be seen by dlsym. */
#define WEAK(symbol) extern char symbol[] __attribute__((weak))
WEAK(MPI_Initialized);
WEAK(MPI_Comm_rank);
WEAK(MPI_Comm_size);
WEAK(MPI_Get_library_version);
WEAK(ompi_mpi_comm_world);
#define SYMBOL(name) ((void *)name)
#else
static void *find(const char *symbol)
{
    void *address = dlsym(RTLD_DEFAULT, symbol);
    return address ? address : shim_real_find(symbol);
}
#define SYMBOL(name) find(#name)
#endif

/* The names that libraries of MPICH's ABI give themselves. */
static bool has_mpich_abi(void)
{
    static const char *const families[] = {"MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation"};
    version_function version = (version_function)SYMBOL(MPI_Get_library_version);
    char text[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING is 8192 in MPICH, 256 in Open MPI */
    int length = 0;
    if (!version || version(text, &length) != 0)
        return false;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strstr(text, families[i]))
            return true;
    return false;
}

/* Libraries of the standard ABI are called libmpi_abi; MPICH's gives MPICH's name all the same. */
static bool has_standard_abi(void *function)
{
    Dl_info where;
    return dladdr(function, &where) && where.dli_fname && strstr(where.dli_fname, "mpi_abi");
}

static void *comm_world(void *function)
{
    void *open_mpi = SYMBOL(ompi_mpi_comm_world);
    if (open_mpi)
        return open_mpi;
    if (has_standard_abi(function))
        return STANDARD_COMM_WORLD;
    return has_mpich_abi() ? MPICH_COMM_WORLD : NULL;
}

static bool ask_mpi(shim_rank *found)
{
    flag_function initialized = (flag_function)SYMBOL(MPI_Initialized);
    rank_function rank = (rank_function)SYMBOL(MPI_Comm_rank);
    rank_function size = (rank_function)SYMBOL(MPI_Comm_size);
    int ready = 0;
    if (!initialized || !rank || !size || initialized(&ready) != 0 || !ready)
        return false;
    void *world = comm_world((void *)rank);
    return world && rank(world, &found->rank) == 0 && size(world, &found->size) == 0;
}

/* ---- The launcher's environment ------------------------------------------------------------- */

/* Those that MPI launchers set for each process come before those of batch systems. */
static const struct launcher {
    const char *rank, *size; /* size NULL: the launcher does not tell */
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"PALS_RANKID", NULL},
    {"PMIX_RANK", NULL},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

static bool read_number(const char *variable, int *number)
{
    const char *text = variable ? getenv(variable) : NULL;
    if (!text || !*text)
        return false;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (*end || errno || value < 0 || value > INT_MAX)
        return false;
    *number = (int)value;
    return true;
}

static bool ask_environment(shim_rank *found)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (!read_number(launchers[i].rank, &found->rank))
            continue;
        if (!read_number(launchers[i].size, &found->size))
            found->size = 0;
        return true;
    }
    return false;
}

shim_rank shim_rank_find(void)
{
    shim_rank found;
    if (ask_mpi(&found) || ask_environment(&found))
        return found;
    return (shim_rank){.rank = -1, .size = 0};
}
