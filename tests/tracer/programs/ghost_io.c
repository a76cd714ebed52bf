/* ghost_io.c - a checkpoint that all ranks write into one file with MPI-IO, each its own stripes.
 *
 * Usage: mpiexec -n 2 ghost_io FILE write|write_all|write_at_all|iwrite_all [restart [exchange]].
 * With "exchange" the MPI library is made to have one rank handle bytes of the other. Rank r's 16
 * doubles are stripes of 4, which take turns in the file. Afterwards 0 to 7 are read, 8 to 11
 * overwritten, the rest is left alone. With "restart" the file is then read back the same way, as a
 * restart, and the same is done again.
 */
#include "ghost_scr.h"

#include <mpi.h>

static double state[16];
static volatile double sink;
static int exchange;

static MPI_File open_stripes(const char *path, int rank, int ranks, MPI_Datatype *stripes)
{
    MPI_File file;
    MPI_Info hints;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "romio_cb_write", "enable"); /* the tracer must overrule that */
    if (exchange)
        MPI_Info_set(hints, "romio_no_indep_rw", "true"); /* which it cannot, with this */
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file);
    MPI_Type_vector(4, 4, 4 * ranks, MPI_DOUBLE, stripes);
    MPI_Type_commit(stripes);
    MPI_File_set_view(file, rank * 4 * (MPI_Offset)sizeof(double), MPI_DOUBLE, *stripes, "native",
                      hints);
    MPI_Info_free(&hints);
    return file;
}

static void move(MPI_File file, const char *how, int reads)
{
    MPI_Request request;
    MPI_Status status;
    if (strcmp(how, "write") == 0) {
        if (reads)
            MPI_File_read(file, state, 16, MPI_DOUBLE, &status);
        else
            MPI_File_write(file, state, 16, MPI_DOUBLE, &status);
    } else if (strcmp(how, "write_all") == 0) {
        if (reads)
            MPI_File_read_all(file, state, 16, MPI_DOUBLE, &status);
        else
            MPI_File_write_all(file, state, 16, MPI_DOUBLE, &status);
    } else if (strcmp(how, "write_at_all") == 0) {
        if (reads)
            MPI_File_read_at_all(file, 0, state, 16, MPI_DOUBLE, &status);
        else
            MPI_File_write_at_all(file, 0, state, 16, MPI_DOUBLE, &status);
    } else {
        if (reads)
            MPI_File_iread_all(file, state, 16, MPI_DOUBLE, &request);
        else
            MPI_File_iwrite_all(file, state, 16, MPI_DOUBLE, &request);
        MPI_Wait(&request, &status);
    }
}

static void transfer(const char *path, const char *how, int reads)
{
    int rank, ranks;
    MPI_Datatype stripes;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_File file = open_stripes(path, rank, ranks, &stripes);
    move(file, how, reads);
    MPI_File_close(&file);
    MPI_Type_free(&stripes);
}

static void use(void)
{
    double sum = 0;
    for (int i = 0; i < 8; i++)
        sum += state[i];
    sink = sum;
    for (int i = 8; i < 12; i++)
        ((volatile double *)state)[i] = 1;
}

int main(int argc, char **argv)
{
    int rank;
    char path[1024], name[1024];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 2);
    exchange = argc > 4;
    if (exchange) /* for Open MPI, behind MPI_Init, where the tracer sets it */
        setenv("OMPI_MCA_fcoll", "two_phase", 1);
    for (int i = 0; i < 16; i++)
        state[i] = 100 * rank + i;
    SCR_Start_output("ghost", 1);
    SCR_Route_file(argv[1], path);
    transfer(path, argv[2], 0);
    SCR_Complete_output(1);
    use();
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 3) {
        SCR_Start_restart(name);
        SCR_Route_file(argv[1], path);
        transfer(path, argv[2], 1);
        SCR_Complete_restart(1);
        use();
    }
    MPI_Finalize();
    return 0;
}
