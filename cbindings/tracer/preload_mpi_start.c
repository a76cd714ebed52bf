/* preload_mpi_start.c - MPI_Init: the environment that MPI reads, the rank, and what carries the
 * messages.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "preload_mpi.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Other processes would read or write memory unseen; one rank would write bytes of others. UCX is
 * left alone: MPICH 4.0 hangs in MPI_Finalize at times when UCX may not use CMA, and the wrappers
 * cover what moves that way. */
static const char *const settings[][2] = {
    /* "none" leaves Open MPI 4.1 without one-sided communication; emulated by messages is as good.
     */
    {"OMPI_MCA_btl_vader_single_copy_mechanism", "emulated"},
    {"OMPI_MCA_smsc", "^cma,xpmem,knem"},
    {"MPIR_CVAR_CH4_CMA_ENABLE", "0"},
    {"MPIR_CVAR_CH4_XPMEM_ENABLE", "0"},
    {"FI_SHM_DISABLE_CMA", "1"},
    {"FI_SHM_USE_XPMEM", "0"},
    {"PSM_KASSIST_MODE", "none"},
    {"PSM2_KASSIST_MODE", "none"},
    {"PSM3_KASSIST_MODE", "none"},
    {"MV2_SMP_USE_CMA", "0"},
    {"MV2_SMP_USE_LIMIC2", "0"},
    {"I_MPI_SHM_LMT", "shm"},
    {"MPICH_SMP_SINGLE_COPY_MODE", "NONE"},
    {"OMPI_MCA_fcoll", "individual"},
    {"OMPI_MCA_fbtl_posix_write_datasieving", "0"},
    {"OMPI_MCA_fbtl_posix_read_datasieving", "0"},
};

/* The launcher sets these, too; this is for a Valgrind that was started by hand. */
static void prepare_environment(void)
{
    for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++)
        setenv(settings[i][0], settings[i][1], 1);
}

/* Devices through which memory is read and written without this process's doing. */
static const char *const devices[] = {"/dev/infiniband/uverbs",
                                      "/dev/hfi1",
                                      "/dev/ipath",
                                      "/dev/cxi",
                                      "/dev/kgni",
                                      "/dev/knem",
                                      "/dev/xpmem"};

static bool is_such_device(const char *path)
{
    for (unsigned i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        if (strncmp(path, devices[i], strlen(devices[i])) == 0)
            return true;
    }
    return false;
}

static void warn_of_devices(void)
{
    static bool told;
    char path[256];
    DIR *files = opendir("/proc/self/fd");
    if (!files)
        return;
    for (struct dirent *entry = readdir(files); entry; entry = readdir(files)) {
        ssize_t length = readlinkat(dirfd(files), entry->d_name, path, sizeof path - 1);
        if (length <= 0)
            continue;
        path[length] = '\0';
        if (is_such_device(path))
            warn_once(&told, "MPI uses a device that reads and writes memory unseen (RDMA, KNEM or "
                             "XPMEM): buffers of MPI calls are covered, other users of it are not");
    }
    closedir(files);
}

static word start(OrigFn real, unsigned words, word *arguments)
{
    static bool told;
    const mpi_library *mpi = mpi_find(real);
    prepare_environment();
    word result = call_real(real, words, arguments);
    int rank, ranks;
    if (!mpi || (int)result != 0 || __atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        return result;
    if (mpi->Comm_rank(mpi->comm_world, &rank) == 0 && mpi->Comm_size(mpi->comm_world, &ranks) == 0)
        MESSAGE(TRACE_RANK, rank, ranks);
    warn_of_devices();
    return result;
}

WRAPPER(Init, 2, start(real, 2, arguments))
WRAPPER(Init_thread, 4, start(real, 4, arguments))

static word on_Session_init(OrigFn real, word *arguments)
{
    prepare_environment();
    word result = call_real(real, 3, arguments);
    if ((int)result == 0)
        warn_of_devices();
    return result;
}
BY_HAND(Session_init, 3)
