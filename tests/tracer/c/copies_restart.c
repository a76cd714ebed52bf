/* copies_restart.c - states read back: unpacked by way of a buffer, and with a header. */
#include "copies.h"

static uint64_t *unpacked, *headed;
static void *late;

void prepare(void)
{
    unpacked = malloc(ELEMENTS * sizeof(*unpacked));
    headed = malloc(ELEMENTS * sizeof(*headed));
    for (uint64_t k = 0; k < ELEMENTS; k++)
        unpacked[k] = headed[k] = 3 * k + 1;
}

void write_parts(void)
{
    write_part("unpacked", unpacked, ELEMENTS * sizeof(*unpacked));
    write_part("headed", headed, ELEMENTS * sizeof(*headed));
}

OUTLINE static void unpack(uint64_t *restrict to, const uint64_t *restrict from, int n)
{
    for (int k = 0; k < n; k++)
        to[n - 1 - k] = from[k];
}

static void read_unpacked(void)
{
    char path[1024];
    part_path("unpacked", path);
    uint64_t *buffer = malloc(ELEMENTS * sizeof(*buffer));
    int fd = open(path, O_RDONLY);
    if (read(fd, buffer, ELEMENTS * sizeof(*buffer)) != ELEMENTS * sizeof(*buffer))
        abort();
    close(fd);
    unpack(unpacked, buffer, ELEMENTS);
    free(buffer);
}

/* Of the four words of the header the first decides, the third is a size; nobody looks at the rest.
 */
static void read_headed(void)
{
    char path[1024];
    part_path("headed", path);
    FILE *file = fopen(path, "r");
    uint64_t header[4];
    if (fread(header, sizeof(header), 1, file) != 1 || header[0] != 1)
        abort();
    late = malloc(header[2]);
    if (fread(headed + 4, sizeof(*headed), ELEMENTS - 4, file) != ELEMENTS - 4)
        abort();
    fclose(file);
}

void read_parts(void)
{
    read_unpacked();
    read_headed();
}

void go_on(void)
{
    live_on(unpacked, sizeof(*unpacked));
    live_on(headed, sizeof(*headed));
    free(late);
}
