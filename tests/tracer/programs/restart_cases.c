/* restart_cases.c - one restart, many files: each read in its own way; then another checkpoint.
 *
 * "write" makes the checkpoint that a later run without it restarts from.
 */
#include "cases.h"

#include <pthread.h>
#include <sys/socket.h>

static const char *names[] = {"read",   "pread",   "readv",  "preadv", "preadv2", "mmap",
                              "shared", "stdio",   "header", "copied", "again",   "part",
                              "sent",   "threads", "left",   "moved",  "freed"};
enum { CASES = sizeof names / sizeof *names };
static unsigned char arrays[CASES][BYTES];

static int index_of(const char *name)
{
    for (int i = 0; i < CASES; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    exit(4);
}
static unsigned char *array(const char *name)
{
    return arrays[index_of(name)];
}

static const char *path_of(const char *name)
{
    char whole[64];
    snprintf(whole, sizeof whole, "old/%s", name);
    return route(whole);
}
static int open_old(const char *name)
{
    int fd = open(path_of(name), O_RDWR);
    MUST(fd >= 0);
    return fd;
}

static void write_old(void)
{
    MUST(SCR_Start_output("old", SCR_FLAG_CHECKPOINT) == SCR_SUCCESS);
    for (int i = 0; i < CASES; i++) {
        unsigned char bytes[BYTES];
        for (int k = 0; k < BYTES; k++)
            bytes[k] = (unsigned char)k;
        int fd = create(path_of(names[i]));
        write_all(fd, bytes, BYTES);
        close(fd);
    }
    MUST(SCR_Complete_output(1) == SCR_SUCCESS);
}

static unsigned char *private_map, *grown, *given_back;
static int thread_fd;

static void *read_half(void *half)
{
    long offset = 128 * (long)half;
    MUST(pread(thread_fd, array("threads") + offset, 128, offset) == 128);
    return NULL;
}

static void read_plainly(void)
{
    int fd = open_old("read");
    MUST(read(fd, array("read"), 100) == 100 && read(fd, array("read") + 100, 500) == 156);
    close(fd);
    fd = open_old("pread");
    MUST(pread(fd, array("pread"), 128, 128) == 128);
    MUST(pread(fd, array("pread") + 128, 128, 0) == 128);
    close(fd);
    fd = open_old("readv");
    struct iovec two[2] = {{array("readv"), 50}, {array("readv") + 50, 206}};
    MUST(readv(fd, two, 2) == BYTES);
    close(fd);
    fd = open_old("preadv");
    two[0] = (struct iovec){array("preadv") + 10, 20}, two[1] = (struct iovec){array("preadv"), 10};
    MUST(preadv(fd, two, 2, 0) == 30);
    close(fd);
    fd = open_old("preadv2");
    two[0] = (struct iovec){array("preadv2"), 200},
    two[1] = (struct iovec){array("preadv2") + 200, 99};
    MUST(lseek(fd, 6, SEEK_SET) == 6 && preadv2(fd, two, 2, -1, 0) == 250);
    close(fd);
}

static void read_otherwise(void)
{
    int fd = open_old("mmap");
    private_map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    fd = open_old("shared");
    unsigned char *file = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    memcpy(array("shared"), file, BYTES);
    MUST(munmap(file, BYTES) == 0);
    close(fd);
    FILE *stream = fopen(path_of("stdio"), "r");
    MUST(stream && fread(array("stdio"), 1, BYTES, stream) == BYTES);
    fclose(stream);
    fd = open_old("header");
    unsigned char header[16];
    MUST(read(fd, header, 16) == 16);
    if (header[3] != 3) /* the restart code looks at this one */
        exit(5);
    MUST(read(fd, array("header") + 16, 240) == 240);
    close(fd);
    fd = open_old("copied");
    unsigned char *buffer = malloc(BYTES);
    MUST(read(fd, buffer, BYTES) == BYTES);
    for (int i = 0; i < 200; i++) /* the last 56 are dropped */
        array("copied")[199 - i] = buffer[i];
    free(buffer);
    close(fd);
    fd = open_old("again"); /* into the same memory: what came first is dropped */
    MUST(read(fd, array("again"), 100) == 100 && read(fd, array("again"), 100) == 100);
    close(fd);
    fd = open_old("part");
    MUST(lseek(fd, 150, SEEK_SET) == 150 && read(fd, array("part"), 20) == 20);
    close(fd);
}

static void read_into_others(void)
{
    int fd = open_old("sent"), ends[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    off_t from = 10;
    MUST(sendfile(ends[0], fd, &from, 30) == 30);
    close(fd);
    pthread_t threads[2];
    thread_fd = open_old("threads");
    for (long half = 0; half < 2; half++)
        MUST(pthread_create(&threads[half], NULL, read_half, (void *)half) == 0);
    for (int half = 0; half < 2; half++)
        MUST(pthread_join(threads[half], NULL) == 0);
    close(thread_fd);
    fd = open_old("left"); /* written over by this checkpoint's time, in part */
    MUST(read(fd, array("left"), BYTES) == BYTES);
    memset(array("left"), 0, 30);
    close(fd);
    fd = open_old("moved");
    grown = malloc(BYTES);
    MUST(read(fd, grown, BYTES) == BYTES);
    grown = realloc(grown, 100000);
    close(fd);
    fd = open_old("freed");
    given_back = malloc(BYTES);
    MUST(read(fd, given_back, BYTES) == BYTES);
    close(fd);
}

static void restart(void)
{
    int have;
    char name[SCR_MAX_FILENAME];
    MUST(SCR_Have_restart(&have, name) == SCR_SUCCESS && have);
    MUST(SCR_Start_restart(name) == SCR_SUCCESS);
    read_plainly();
    read_otherwise();
    read_into_others();
    MUST(SCR_Complete_restart(1) == SCR_SUCCESS);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (argc > 1) {
        write_old();
        finish();
        return 0;
    }
    restart();
    for (int i = 0; i < CASES; i++)
        touch(arrays[i]);
    touch(private_map);
    touch(grown);
    free(given_back);

    begin_checkpoint("new"); /* the rest is pending for both now: a copy is no read */
    int fd = create(route("new/read"));
    write_all(fd, array("read"), BYTES);
    close(fd);
    complete_checkpoint();
    read_bytes(array("read"), 230, 240);
    write_bytes(array("read"), 240, 250);
    read_bytes(array("read"), 90, 110);
    finish();
    return 0;
}
