/* track_cases.c - what system calls do to memory of a checkpoint afterwards. */
#include "cases.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

enum { CASES = 15 };
static unsigned char arrays[CASES][BYTES];
static char text[BYTES] = "a path that is not there";
static struct iovec vector[16]; /* 256 bytes */

static void save(const char *name, const void *bytes, size_t count)
{
    int fd = create(route(name));
    write_all(fd, bytes, count);
    close(fd);
}

static int pipe_ends[2];
static void interrupt(int signal)
{
    (void)signal;
}
static void *write_later(void *unused)
{
    struct timespec moment = {0, 50000000};
    (void)unused;
    nanosleep(&moment, NULL);
    MUST(pthread_kill(*(pthread_t *)unused, SIGUSR1) == 0);
    nanosleep(&moment, NULL);
    write_all(pipe_ends[1], "0123456789", 10);
    return NULL;
}

/* A read that waits, is interrupted and started anew, and gets less than it asked for. */
static void read_interrupted(unsigned char *bytes)
{
    pthread_t other, self = pthread_self();
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0 && pipe(pipe_ends) == 0);
    MUST(pthread_create(&other, NULL, write_later, &self) == 0);
    MUST(read(pipe_ends[0], bytes, 200) == 10);
    MUST(pthread_join(other, NULL) == 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void exchange(unsigned char *sent, unsigned char *received)
{
    int ends[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    struct iovec out = {sent, 30}, in[2] = {{received, 10}, {received + 100, 50}};
    struct msghdr message = {.msg_iov = &out, .msg_iovlen = 1};
    MUST(sendmsg(ends[0], &message, 0) == 30);
    message.msg_iov = in, message.msg_iovlen = 2;
    MUST(recvmsg(ends[1], &message, 0) == 30);
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    memset(arrays, 1, sizeof arrays);
    MUST(argc == 2);
    int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(file >= 0);
    begin_checkpoint("ck");
    for (int i = 0; i < CASES; i++) {
        char name[32];
        snprintf(name, sizeof name, "ck/%d", i);
        save(name, arrays[i], BYTES);
    }
    save("ck/text", text, BYTES);
    save("ck/vector", vector, sizeof vector);
    complete_checkpoint();

    struct iovec parts[2] = {{arrays[5], 10}, {arrays[5] + 50, 10}};
    write_all(file, arrays[0] + 10, 90);
    MUST(pwrite(file, arrays[1], 50, 500) == 50);
    vector[0] = (struct iovec){arrays[2], 20};
    vector[1] = (struct iovec){arrays[2] + 40, 20};
    MUST(writev(file, vector, 2) == 40);
    MUST(pwritev(file, parts, 2, 0) == 20);
    MUST(ftruncate(file, 0) == 0 && pwrite(file, "0123456789", 10, 0) == 10);
    MUST(pread(file, arrays[3] + 20, 200, 0) == 10); /* there are 10 */
    MUST(lseek(file, 5, SEEK_SET) == 5);
    MUST(read(file, arrays[4], 200) == 5);
    parts[0] = (struct iovec){arrays[6], 4}, parts[1] = (struct iovec){arrays[6] + 100, 100};
    MUST(preadv(file, parts, 2, 0) == 10);
    parts[0] = (struct iovec){arrays[7], 4}, parts[1] = (struct iovec){arrays[7] + 100, 100};
    MUST(preadv2(file, parts, 2, 2, 0) == 8);
    MUST(lseek(file, 0, SEEK_SET) == 0);
    parts[0] = (struct iovec){arrays[8], 4}, parts[1] = (struct iovec){arrays[8] + 100, 100};
    MUST(readv(file, parts, 2) == 10);
    read_interrupted(arrays[9]);
    exchange(arrays[10], arrays[11]);
    MUST(open(text, O_RDONLY) < 0);
    MUST(fstat(file, (struct stat *)arrays[12]) == 0);
    MUST(read(-1, arrays[13], 100) < 0);
    printf("%ld %zu\n", syscall(SYS_getcwd, arrays[14], BYTES), sizeof(struct stat));
    finish();
    return 0;
}
