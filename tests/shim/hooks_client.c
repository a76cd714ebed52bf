/* hooks_client.c - a program with clients of its own in the table of hooks, linked with the shim
 * before SCR.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes one checkpoint, restarts from it, and prints each event that its clients receive: "CLIENT
 * EVENT ...". test_shim_hooks.py runs it; the file's name is its argument. The second argument
 * makes the second client refuse to route ("output", "restart") or both veto the output ("veto").
 */
#include <mpi.h>
#include <scr.h>
#include <scr_crit.h>
#include <stdio.h>
#include <string.h>

static const char *refuse = "";

#define CLIENT ((const char *)context)

static void initialized(void *context)
{
    printf("%s initialized\n", CLIENT);
}

static void output_started(void *context, const char *dataset, int flags)
{
    printf("%s output_started %s %d\n", CLIENT, dataset, flags);
}

static int output_routed(void *context, const char *name, char *path, size_t size)
{
    printf("%s output_routed %s %s %zu\n", CLIENT, name, path, size);
    if (*CLIENT == 'a' && strlen(path) + 2 < size)
        strcat(path, "+a");
    return strcmp(refuse, "output") == 0 && *CLIENT == 'b';
}

static int output_completing(void *context, int valid)
{
    printf("%s output_completing %d\n", CLIENT, valid);
    return valid && strcmp(refuse, "veto") != 0;
}

static void output_completed(void *context, int status)
{
    printf("%s output_completed %d\n", CLIENT, status);
}

static void restart_started(void *context, const char *dataset)
{
    printf("%s restart_started %s\n", CLIENT, dataset);
}

static int restart_routed(void *context, const char *name, char *path, size_t size)
{
    (void)size;
    printf("%s restart_routed %s %s\n", CLIENT, name, path);
    return strcmp(refuse, "restart") == 0 && *CLIENT == 'b';
}

static void restart_completed(void *context, int valid)
{
    printf("%s restart_completed %d\n", CLIENT, valid);
    if (*CLIENT == 'a')
        scr_crit_hooks_unregister(context); /* from within a callback */
}

static void finalizing(void *context)
{
    printf("%s finalizing\n", CLIENT);
}

static void add_client(char *name)
{
    const scr_crit_hooks hooks = {
        name,
        name,
        initialized,
        output_started,
        output_routed,
        output_completing,
        output_completed,
        restart_started,
        restart_routed,
        restart_completed,
        finalizing,
    };
    printf("register %s %d\n", name, scr_crit_hooks_register(&hooks));
}

static void write_checkpoint(const char *name)
{
    char path[SCR_MAX_FILENAME];
    SCR_Start_output("one", SCR_FLAG_CHECKPOINT);
    int status = SCR_Route_file(name, path);
    printf("program routed %d %s\n", status, path);
    FILE *file = fopen(status ? name : path, "wb");
    for (int i = 0; file && i < 6464; i++)
        fputc(i, file);
    if (file)
        fclose(file);
    /* what client a was told to be written lies where it can be found under SCR's own path */
    if (status == 0 && strlen(path) > 2 && strcmp(path + strlen(path) - 2, "+a") == 0) {
        char original[SCR_MAX_FILENAME];
        strcpy(original, path);
        original[strlen(path) - 2] = '\0';
        rename(path, original);
    }
    printf("program completed %d\n", SCR_Complete_output(status == 0));
}

static void restart(const char *name)
{
    int flag = 0;
    char dataset[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    SCR_Have_restart(&flag, dataset);
    if (!flag)
        return;
    SCR_Start_restart(NULL);
    int status = SCR_Route_file(name, path);
    printf("program restarted %d %s\n", status, path);
    printf("program read %d\n", SCR_Complete_restart(1));
}

int main(int argc, char **argv)
{
    static char a[] = "a", b[] = "b", nobody[] = "nobody";
    MPI_Init(&argc, &argv);
    if (argc > 2)
        refuse = argv[2];
    add_client(a);
    add_client(b);
    printf("bad %d %d\n", scr_crit_hooks_register(NULL), scr_crit_hooks_unregister(nobody));
    SCR_Init();
    write_checkpoint(argv[1]);
    restart(argv[1]);
    scr_crit_shim_totals totals;
    scr_crit_shim_get_totals(&totals);
    printf("totals %d %d\n", (int)totals.packed_files, (int)totals.expanded_files);
    SCR_Finalize();
    printf("libscr %s\n", scr_crit_shim_libscr());
    MPI_Finalize();
    return 0;
}
