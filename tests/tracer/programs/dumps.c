/* dumps.c - files that are checkpoints by name, outside SCR's brackets. Argument: a folder. */
#include "cases.h"

static unsigned char first[BYTES], second[BYTES], later[BYTES], plain[BYTES];

static int open_in(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return create(path);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    int other = open_in(argv[1], "other.dat"); /* does not match */
    write_all(other, plain, BYTES);
    close(other);

    int one = open_in(argv[1], "dump.1"), copy = dup(one); /* two files of one dump */
    write_all(one, first, BYTES);
    close(one);
    int two = open_in(argv[1], "dump.2");
    write_all(two, second, BYTES);
    close(two);
    write_all(copy, first, 10);
    close(copy); /* here the dump ends */
    touch(first);
    touch(second);

    FILE *stream = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/dump.3", argv[1]);
    stream = fopen(path, "w");
    MUST(stream && fwrite(later, 1, BYTES, stream) == BYTES && fclose(stream) == 0);
    write_bytes(later, 0, BYTES);
    read_bytes(second, 200, 210);
    return 0;
}
