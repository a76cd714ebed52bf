/* question.c - questions answered by 1 without a checkpoint following. */
#include "cases.h"

static unsigned char a[BYTES], b[BYTES];

int main(int argc, char **argv)
{
    int need;
    start(&argc, &argv);
    begin_checkpoint("ck");
    int fd = create(route("ck/a"));
    write_all(fd, a, BYTES);
    close(fd);
    complete_checkpoint();
    MUST(SCR_Need_checkpoint(&need) == SCR_SUCCESS && need);
    memcpy(b, a, 128); /* no read */
    read_bytes(a, 200, 210);
    write_bytes(a, 0, 100); /* the first 100 live in b only */
    MUST(SCR_Need_checkpoint(&need) == SCR_SUCCESS && need);
    read_bytes(b, 0, 10);
    write_bytes(b, 10, 20);
    MUST(SCR_Need_checkpoint(&need) == SCR_SUCCESS);
    read_bytes(b, 20, 30);
    write_bytes(b, 30, 128);
    write_bytes(a, 100, 110);
    finish();
    return 0;
}
