/* roots.c - blocks of each kind, and static pointers to them. */
#include "cases.h"

static double *pointer; /* bss */
static struct {
    long before;
    double *data;
    long extents[3];
} descriptor = {1, NULL, {4, 5, 6}}; /* data */
static int unused_number = 5;

__attribute__((noinline)) static double *allocate(size_t count)
{
    double *memory = calloc(count, sizeof *memory);
    MUST(memory);
    return memory;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    pointer = allocate(100);
    descriptor.data = allocate(60);
    double *local = allocate(10);
    char on_stack[64] = "x";
    void *aligned = NULL;
    MUST(posix_memalign(&aligned, 256, 512) == 0 && (uintptr_t)aligned % 256 == 0);
    memset(aligned, 1, 512);
    begin_checkpoint("ck");
    int fd = create(route("ck/a b%c")); /* to be escaped */
    write_all(fd, pointer, 800);
    write_all(fd, descriptor.data, 480);
    write_all(fd, local, 80);
    write_all(fd, &unused_number, sizeof unused_number);
    write_all(fd, on_stack, 64);
    write_all(fd, (char *)aligned + 100, 412);
    close(fd);
    complete_checkpoint();
    printf("%p %p %p %p %p %p %p %p\n", (void *)pointer, (void *)descriptor.data, (void *)local,
           (void *)&unused_number, (void *)on_stack, aligned, (void *)&pointer,
           (void *)&descriptor.data);
    free(local);
    free(aligned);
    finish();
    return 0;
}
