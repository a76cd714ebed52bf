/* review_cases.c - what a reviewer of the tracer found called dead although it is needed. One case
 * a run; those of a restart write their checkpoint first when they find none.
 */
#include "cases.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void save(const char *dataset, const unsigned char *bytes)
{
    begin_checkpoint(dataset);
    int fd = create(route("a"));
    write_all(fd, bytes, BYTES);
    close(fd);
    complete_checkpoint();
}

/* True with the restart begun; else a checkpoint is made for the next run. */
static int restart_begins(const unsigned char *bytes)
{
    int found;
    char dataset[SCR_MAX_FILENAME];
    MUST(SCR_Have_restart(&found, dataset) == SCR_SUCCESS);
    if (found)
        MUST(SCR_Start_restart(dataset) == SCR_SUCCESS);
    else
        save("old", bytes);
    return found;
}
static void restore(unsigned char *bytes)
{
    int fd = open(route("a"), O_RDONLY);
    MUST(read(fd, bytes, BYTES) == BYTES);
    close(fd);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int begun, over;

static void *wait_for_end(void *unused)
{
    pthread_mutex_lock(&mutex);
    begun = 1;
    pthread_cond_signal(&changed);
    while (!over)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}
static pthread_t start_on_own_stack(void)
{
    enum { STACK = 1 << 16 };
    pthread_t thread;
    pthread_attr_t attributes;
    MUST(pthread_attr_init(&attributes) == 0);
    MUST(pthread_attr_setstack(&attributes, aligned_alloc(4096, STACK), STACK) == 0);
    MUST(pthread_create(&thread, &attributes, wait_for_end, NULL) == 0);
    pthread_mutex_lock(&mutex);
    while (!begun)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return thread;
}
static void end_thread(pthread_t thread)
{
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    MUST(pthread_join(thread, NULL) == 0);
}

/* A thread's stack lies in the heap, above the state. */
static void restart_beside_stack_in_heap(void)
{
    unsigned char *state = calloc(1, BYTES);
    pthread_t thread = start_on_own_stack();
    if (restart_begins(state)) {
        restore(state);
        MUST(SCR_Complete_restart(1) == SCR_SUCCESS);
        touch(state);
    }
    end_thread(thread);
}
static void output_beside_stack_in_heap(void)
{
    unsigned char *state = calloc(1, BYTES);
    pthread_t thread = start_on_own_stack();
    save("one", state);
    touch(state);
    end_thread(thread);
}

static unsigned char *pages(void)
{
    unsigned char *made =
        mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(made != MAP_FAILED);
    return made;
}
static unsigned char *moved(unsigned char *from)
{
    unsigned char *to = pages();
    MUST(mremap(from, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    return to;
}

static void restart_into_pages_that_move(void)
{
    unsigned char *state = pages();
    if (restart_begins(state)) {
        restore(state);
        state = moved(state);
        MUST(SCR_Complete_restart(1) == SCR_SUCCESS);
        read_bytes(state, 0, BYTES);
    }
}
/* The only copy of what the first checkpoint holds moves while the second is written. */
static void output_copy_in_pages_that_move(void)
{
    unsigned char *state = calloc(1, BYTES), *copy = pages();
    save("one", state);
    begin_checkpoint("two");
    memcpy(copy, state, BYTES);
    memset(state, 1, BYTES);
    copy = moved(copy);
    int fd = create(route("a"));
    write_all(fd, state, BYTES);
    close(fd);
    complete_checkpoint();
    read_bytes(copy, 0, BYTES);
}

/* The message is shorter than the room for it. */
static void received_in_part(void)
{
    unsigned char *state = calloc(1, BYTES);
    int ends[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    save("one", state);
    MUST(send(ends[0], "0123456789", 10, 0) == 10);
    MUST(recv(ends[1], state, BYTES, 0) == 10);
    read_bytes(state, 0, BYTES);
}

/* A child computes with what the parent overwrites; another one only starts a program. */
static void read_by_a_child(void)
{
    unsigned char *state = calloc(1, BYTES);
    save("one", state);
    pid_t child = fork();
    if (child == 0) {
        read_bytes(state, 0, BYTES);
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0) == child);
    write_bytes(state, 0, BYTES);
}
static void program_started(void)
{
    unsigned char *state = calloc(1, BYTES);
    save("one", state);
    MUST(system("true") == 0);
    write_bytes(state, 0, BYTES);
}

/* An MPI with a peer that is quick: what it puts arrives before the call returns, written by this
 * process's part of MPI. What it got before that nobody saw. */
__attribute__((noipa)) int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info,
                                          MPI_Comm comm, MPI_Win *window)
{
    (void)unit, (void)info, (void)comm;
    write_bytes(base, 0, (size_t)size);
    *window = MPI_WIN_NULL;
    return MPI_SUCCESS;
}
static void expose(unsigned char *bytes)
{
    MPI_Win window;
    MUST(MPI_Win_create(bytes, BYTES, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window) == MPI_SUCCESS);
}
static void window_put_at_once(void)
{
    unsigned char *state = calloc(1, BYTES);
    save("one", state);
    expose(state);
}

static void begin_and_write(const unsigned char *state)
{
    begin_checkpoint("one");
    int fd = create(route("a"));
    write_all(fd, state, BYTES);
    close(fd);
}
static unsigned char *copy_of(const unsigned char *state)
{
    unsigned char *copy = malloc(BYTES);
    memcpy(copy, state, BYTES);
    __asm__ volatile("" : "+r"(copy)::"memory"); /* no compiler leaves it out */
    return copy;
}
/* Of the checkpoint's bytes only a copy is exposed, and that is overwritten before the end. */
static void window_over_copy(void)
{
    unsigned char *state = calloc(1, BYTES);
    begin_and_write(state);
    expose(copy_of(state));
    complete_checkpoint();
    write_bytes(state, 0, BYTES);
}
/* What was written lay in a window, of which nothing but a copy is left at the end. */
static void window_freed_in_checkpoint(void)
{
    unsigned char *state = calloc(1, BYTES);
    expose(state);
    begin_and_write(state);
    unsigned char *copy = copy_of(state);
    free(state);
    complete_checkpoint();
    write_bytes(copy, 0, BYTES);
}
static void window_overwritten_in_checkpoint(void)
{
    unsigned char *state = calloc(1, BYTES);
    expose(state);
    begin_and_write(state);
    unsigned char *copy = copy_of(state);
    write_bytes(state, 0, BYTES);
    complete_checkpoint();
    write_bytes(copy, 0, BYTES);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"restart_beside_stack_in_heap", restart_beside_stack_in_heap},
    {"output_beside_stack_in_heap", output_beside_stack_in_heap},
    {"restart_into_pages_that_move", restart_into_pages_that_move},
    {"output_copy_in_pages_that_move", output_copy_in_pages_that_move},
    {"received_in_part", received_in_part},
    {"read_by_a_child", read_by_a_child},
    {"program_started", program_started},
    {"window_put_at_once", window_put_at_once},
    {"window_over_copy", window_over_copy},
    {"window_freed_in_checkpoint", window_freed_in_checkpoint},
    {"window_overwritten_in_checkpoint", window_overwritten_in_checkpoint},
};

int main(int argc, char **argv)
{
    start(&argc, &argv);
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0)
            cases[i].run();
    }
    finish();
    return 0;
}
