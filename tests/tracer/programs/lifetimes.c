/* lifetimes.c - memory of a checkpoint that goes: before, in and after the last bracket.
 *
 * The last bracket is a checkpoint's or a dump's, as the first argument says; or a restart's, in a
 * run after that.
 */
#include "cases.h"

enum { IN_STEP, UNMAPPED, ASKED, MOVED, BRACKET, AFTER, FINALIZED, AT_EXIT, CASES };
static const char *const names[CASES] = {"in_step", "unmapped", "asked",     "moved",
                                         "bracket", "after",    "finalized", "at_exit"};
static unsigned char *blocks[CASES];

static void save(int which)
{
    char name[32];
    snprintf(name, sizeof name, "first/%s", names[which]);
    int fd = create(route(name));
    write_all(fd, blocks[which], BYTES);
    close(fd);
}

static void at_exit(void)
{
    free(blocks[AT_EXIT]);
}

static void in_bracket(void)
{
    free(blocks[BRACKET]);
    blocks[MOVED] = realloc(blocks[MOVED], 1 << 20);
    MUST(blocks[MOVED]);
}

static void checkpoint_again(void)
{
    int need;
    MUST(SCR_Need_checkpoint(&need) == SCR_SUCCESS && need);
    free(blocks[ASKED]);
    MUST(SCR_Start_output("second", SCR_FLAG_CHECKPOINT) == SCR_SUCCESS);
    int fd = create(route("second/one"));
    write_all(fd, "1", 1);
    in_bracket();
    close(fd);
    complete_checkpoint();
}

static void restart(void)
{
    int have;
    char name[SCR_MAX_FILENAME];
    MUST(SCR_Have_restart(&have, name) == SCR_SUCCESS && have);
    MUST(SCR_Start_restart(name) == SCR_SUCCESS);
    int fd = open(route("second/one"), O_RDONLY);
    char *one = malloc(1);
    MUST(read(fd, one, 1) == 1);
    close(fd);
    MUST(SCR_Complete_restart(1) == SCR_SUCCESS);
    free(one);
}

static void dump(const char *folder)
{
    char path[SCR_MAX_FILENAME];
    snprintf(path, sizeof path, "%s/a.dump", folder);
    int fd = create(path);
    write_all(fd, "1", 1);
    in_bracket();
    close(fd);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    MUST(argc == 3);
    if (strcmp(argv[1], "restart") == 0) {
        restart();
        finish();
        return 0;
    }
    MUST(atexit(at_exit) == 0);
    for (int i = 0; i < CASES; i++) {
        if (i == UNMAPPED)
            blocks[i] =
                mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        else
            blocks[i] = malloc(BYTES);
        memset(blocks[i], 1, BYTES);
    }
    MUST(SCR_Start_output("first", SCR_FLAG_CHECKPOINT) == SCR_SUCCESS);
    for (int i = 0; i < CASES; i++)
        save(i);
    complete_checkpoint();

    free(blocks[IN_STEP]);
    MUST(munmap(blocks[UNMAPPED], BYTES) == 0);
    if (strcmp(argv[1], "checkpoint") == 0)
        checkpoint_again();
    else
        dump(argv[2]);
    write_bytes(blocks[MOVED], 0, BYTES);
    free(blocks[AFTER]);
    MUST(SCR_Finalize() == SCR_SUCCESS);
    free(blocks[FINALIZED]);
    MUST(MPI_Finalize() == MPI_SUCCESS);
    return 0;
}
