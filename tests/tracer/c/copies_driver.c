/* copies_driver.c - writes one checkpoint through SCR, or restarts from it, around a test's functions.
 *
 * The test brings prepare (before the checkpoint), write_checkpoint (within the bracket) and go_on
 * (after it); with the argument "restart", read_checkpoint and go_on.
 */
#include <mpi.h>
#include <scr.h>

#include <stdio.h>
#include <string.h>

void prepare(void);
void write_checkpoint(const char *path);
void read_checkpoint(const char *path) __attribute__((weak));
void go_on(void);

static int restart(void)
{
    int have = 0;
    char dataset[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    SCR_Have_restart(&have, dataset);
    if (!have)
        return 1;
    SCR_Start_restart(dataset);
    SCR_Route_file("state", path);
    read_checkpoint(path);
    SCR_Complete_restart(1);
    return 0;
}

static void checkpoint(void)
{
    char path[SCR_MAX_FILENAME];
    SCR_Start_output("ckpt", SCR_FLAG_CHECKPOINT);
    SCR_Route_file("state", path);
    write_checkpoint(path);
    SCR_Complete_output(1);
}

int main(int argc, char **argv)
{
    int failed = 0;
    MPI_Init(&argc, &argv);
    SCR_Init();
    prepare();
    if (argc > 1 && strcmp(argv[1], "restart") == 0)
        failed = restart();
    else
        checkpoint();
    go_on();
    SCR_Finalize();
    MPI_Finalize();
    return failed;
}
