/* copies_driver.c - writes one checkpoint through SCR, or restarts from it, around a test's
 * functions.
 *
 * The test brings prepare (before the checkpoint), write_parts (within the bracket), go_on (after
 * it), and with the argument "restart" read_parts. Each part is a file of its own.
 */
#include "copies.h"

#include <mpi.h>
#include <scr.h>

void read_parts(void) __attribute__((weak));

void part_path(const char *name, char *path)
{
    SCR_Route_file(name, path);
}

static int restart(void)
{
    int have = 0;
    char dataset[SCR_MAX_FILENAME];
    SCR_Have_restart(&have, dataset);
    if (!have)
        return 1;
    SCR_Start_restart(dataset);
    read_parts();
    SCR_Complete_restart(1);
    return 0;
}

static void checkpoint(void)
{
    SCR_Start_output("ckpt", SCR_FLAG_CHECKPOINT);
    write_parts();
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
