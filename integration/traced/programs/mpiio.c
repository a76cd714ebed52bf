/*
 * mpiio strided|collective: two ranks write one shared file through MPI-IO.
 *
 * The file: step int64 (written by rank 0; critical), 56 bytes never written, then 16 rows of 64
 * doubles. Rank r owns columns 32 r to 32 r + 31 of every row, through a vector file view. Of each
 * rank's 32 columns the first eight are overwritten by each step before they are read (dead, if the
 * tool can follow the way through the MPI), the others are critical.
 *
 * `strided` writes with MPI_File_write (rank by rank; an MPI may read, merge and write),
 * `collective` with MPI_File_write_all (one rank may write what it got from another).
 */
#include "job.h"

enum { ROWS = 16, COLS = 32, DEAD = 8, HEAD = 64, RANKS = 2 };

static int64_t step;
static double block[ROWS][COLS];

static void take_step(void)
{
    step++;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < DEAD; j++) {
            block[i][j] = (double)step + i + j;
        }
    }
    for (int i = 0; i < ROWS; i++) {
        for (int j = DEAD; j < COLS; j++) {
            block[i][j] = 0.5 * block[i][j] + block[i][j % DEAD];
        }
    }
}

static const char *shared_path(void)
{
    static char path[SCR_MAX_FILENAME];
    char name[2 * SCR_MAX_FILENAME];
    snprintf(name, sizeof(name), "%s/shared", job_dataset);
    job_must(SCR_Route_file(name, path) == SCR_SUCCESS, "SCR_Route_file");
    return path;
}

static int transfer(int write, int collective)
{
    MPI_File file;
    MPI_Datatype columns;
    MPI_Status status;
    const int mode = write ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY;
    const int count = ROWS * COLS;
    if (MPI_File_open(MPI_COMM_WORLD, shared_path(), mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        return 0;
    }
    if (write && job_rank == 0) {
        MPI_File_write_at(file, 0, &step, 1, MPI_INT64_T, &status);
    } else if (!write) {
        MPI_File_read_at(file, 0, &step, 1, MPI_INT64_T, &status);
    }
    MPI_Type_vector(ROWS, COLS, RANKS * COLS, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    MPI_File_set_view(file, HEAD + job_rank * COLS * (int)sizeof(double), MPI_DOUBLE, columns,
                      "native", MPI_INFO_NULL);
    int done;
    if (write) {
        done = collective ? MPI_File_write_all(file, block, count, MPI_DOUBLE, &status)
                          : MPI_File_write(file, block, count, MPI_DOUBLE, &status);
    } else {
        done = collective ? MPI_File_read_all(file, block, count, MPI_DOUBLE, &status)
                          : MPI_File_read(file, block, count, MPI_DOUBLE, &status);
    }
    MPI_Type_free(&columns);
    return MPI_File_close(&file) == MPI_SUCCESS && done == MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    job_must(argc == 2 && ranks == RANKS, "usage: mpiexec -n 2 mpiio strided|collective");
    const int collective = strcmp(argv[1], "collective") == 0;
    for (int k = 0; k < ROWS * COLS; k++) {
        block[k / COLS][k % COLS] = job_rank + k % 10;
    }
    if (job_restarting()) {
        job_restarted(transfer(0, collective));
    }
    while (step < STEPS) {
        take_step();
        if (job_must_save()) {
            job_open(step);
            job_saved(transfer(1, collective));
        }
    }
    job_digest(block, sizeof(block));
    return job_end();
}
