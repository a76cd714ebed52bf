/* passed_on.c - files that are written and read for other processes, as an MPI library may do.
 *
 * Usage: passed_on [restart]. "apart" is moved while the tool is told so, "own" otherwise.
 */
#include "cases.h"

#include "requests.h"

static unsigned char apart[BYTES], own[BYTES], copy[BYTES];

static void pass_on(int begins)
{
    VALGRIND_DO_CLIENT_REQUEST_STMT(TRACE_IO_PASSED_ON, begins, 0, 0, 0, 0);
}

static void move(const char *name, unsigned char *bytes, int reads)
{
    int fd = reads ? open(route(name), O_RDONLY) : create(route(name));
    MUST(fd >= 0);
    if (reads)
        MUST(read(fd, bytes, BYTES) == BYTES);
    else
        write_all(fd, bytes, BYTES);
    close(fd);
}

static void move_all(int reads)
{
    pass_on(1);
    pass_on(1); /* of another thread */
    pass_on(0);
    move("ck/apart", apart, reads);
    pass_on(0);
    pass_on(0); /* one too many changes nothing */
    move("ck/own", own, reads);
}

int main(int argc, char **argv)
{
    int have;
    char name[SCR_MAX_FILENAME];
    start(&argc, &argv);
    if (argc > 1) {
        MUST(SCR_Have_restart(&have, name) == SCR_SUCCESS && have);
        MUST(SCR_Start_restart(name) == SCR_SUCCESS);
        move_all(1);
        MUST(SCR_Complete_restart(1) == SCR_SUCCESS);
    } else {
        begin_checkpoint("ck");
        move_all(0);
        /* Read for another process, of a file that is being written. */
        int fd = create(route("ck/back"));
        write_all(fd, copy, BYTES);
        pass_on(1);
        MUST(pread(fd, (unsigned char[100]){0}, 100, 0) == 100);
        pass_on(0);
        close(fd);
        complete_checkpoint();
    }
    write_bytes(apart, 0, BYTES);
    write_bytes(own, 0, BYTES);
    write_bytes(copy, 0, BYTES);
    finish();
    return 0;
}
