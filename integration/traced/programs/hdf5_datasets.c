/*
 * hdf5_datasets contiguous|chunked: the state in an HDF5 file.
 *
 * Datasets (the library chooses where they stand in the file):
 *   step   int64         critical
 *   u      double 40x50  interior critical, the outermost rows and columns dead (refilled first)
 *   work   double 1000   dead (zeroed first)
 * Everything else in the file is the library's and critical: the restart reads it.
 * `chunked` stores u and work in chunks of 20x25 and 500 with a Fletcher-32 checksum; the checksum
 * is computed from all bytes of a chunk, which are critical for that reason.
 * Prints "at NAME OFFSET" for each contiguous dataset when it saves.
 */
#include <hdf5.h>

#include "job.h"

enum { ROWS = 40, COLS = 50, WORK = 1000 };

static int64_t step;
static double u[ROWS][COLS], work[WORK];

static void take_step(void)
{
    step++;
    for (int j = 1; j < COLS - 1; j++) {
        u[0][j] = u[ROWS - 2][j];
        u[ROWS - 1][j] = u[1][j];
    }
    for (int i = 0; i < ROWS; i++) {
        u[i][0] = 1.0;
        u[i][COLS - 1] = 2.0;
    }
    memset(work, 0, sizeof(work));
    for (int i = 1; i < ROWS - 1; i++) {
        for (int j = 1; j < COLS - 1; j++) {
            u[i][j] =
                0.5 * u[i][j] + 0.125 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
            work[(i * COLS + j) % WORK] += u[i][j];
        }
    }
    for (int k = 0; k < WORK; k++) {
        u[1][1] += work[k] * 1e-6;
    }
}

static int put(hid_t file, const char *name, hid_t type, int rank, const hsize_t *size,
               const hsize_t *chunk, const void *data)
{
    hid_t space = rank ? H5Screate_simple(rank, size, NULL) : H5Screate(H5S_SCALAR);
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    if (chunk != NULL) {
        H5Pset_chunk(how, rank, chunk);
        H5Pset_fletcher32(how);
    }
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    int good = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    if (good && chunk == NULL) {
        printf("at %s %llu\n", name, (unsigned long long)H5Dget_offset(set));
    }
    return H5Dclose(set) >= 0 && H5Pclose(how) >= 0 && H5Sclose(space) >= 0 && good;
}

static int get(hid_t file, const char *name, hid_t type, void *data)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    int good = set >= 0 && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    return set >= 0 && H5Dclose(set) >= 0 && good;
}

static int save(const char *path, int chunked)
{
    const hsize_t size[2] = {ROWS, COLS}, chunk[2] = {ROWS / 2, COLS / 2};
    const hsize_t work_size[1] = {WORK}, work_chunk[1] = {WORK / 2};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    int good = file >= 0 && put(file, "step", H5T_NATIVE_INT64, 0, NULL, NULL, &step);
    good = good && put(file, "u", H5T_NATIVE_DOUBLE, 2, size, chunked ? chunk : NULL, u);
    good = good &&
           put(file, "work", H5T_NATIVE_DOUBLE, 1, work_size, chunked ? work_chunk : NULL, work);
    return file >= 0 && H5Fclose(file) >= 0 && good;
}

static int restore(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    int good = file >= 0 && get(file, "step", H5T_NATIVE_INT64, &step);
    good = good && get(file, "u", H5T_NATIVE_DOUBLE, u);
    good = good && get(file, "work", H5T_NATIVE_DOUBLE, work);
    return file >= 0 && H5Fclose(file) >= 0 && good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    job_must(argc == 2, "usage: hdf5_datasets contiguous|chunked");
    const int chunked = strcmp(argv[1], "chunked") == 0;
    for (int k = 0; k < ROWS * COLS; k++) {
        u[k / COLS][k % COLS] = k % 19;
    }
    if (job_restarting()) {
        job_restarted(restore(job_path("state.h5")));
    }
    while (step < STEPS) {
        take_step();
        if (job_must_save()) {
            job_open(step);
            job_saved(save(job_path("state.h5"), chunked));
        }
    }
    job_digest(u, sizeof(u));
    return job_end();
}
