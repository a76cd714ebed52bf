/* generations.c - several checkpoints in a run: what each of them is found to need.
 *
 * A place that is pending stands for every checkpoint that holds its value, wherever it is copied.
 */
#include "cases.h"

static unsigned char kept[BYTES], moved[BYTES], moved_to[BYTES], rewritten[BYTES], summed[BYTES],
    staged[BYTES], staging[BYTES], swapped_a[BYTES], swapped_b[BYTES];
static unsigned char *grown;

static void save(const char *dataset, const char *name, const void *bytes)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s/%s", dataset, name);
    int fd = create(route(whole));
    write_all(fd, bytes, BYTES);
    close(fd);
}

static void checkpoint(const char *dataset)
{
    begin_checkpoint(dataset);
    save(dataset, "kept", kept);
    save(dataset, "rewritten", rewritten);
    save(dataset, "summed", summed);
    memcpy(staging, staged, BYTES);
    save(dataset, "staged", staging);
    complete_checkpoint();
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    grown = malloc(BYTES);
    memset(grown, 7, BYTES);

    begin_checkpoint("first");
    save("first", "kept", kept);
    save("first", "moved", moved);
    save("first", "rewritten", rewritten);
    save("first", "summed", summed);
    memcpy(staging, staged, BYTES);
    save("first", "staged", staging);
    save("first", "swapped_a", swapped_a);
    save("first", "grown", grown);
    complete_checkpoint();

    read_bytes(kept, 0, 10);
    write_bytes(kept, 10, 20);

    begin_checkpoint("second");
    save("second", "kept", kept);
    memcpy(moved_to, moved, BYTES); /* in the bracket: followed */
    memset(moved, 0, BYTES);        /* so that the value lives there only */
    memset(rewritten, 0, BYTES);    /* in the bracket, and then saved: all computed */
    save("second", "rewritten", rewritten);
    save("second", "summed", summed);
    unsigned sum = 0;
    for (int i = 0; i < 50; i++)
        sum += summed[i];
    memcpy(staging, staged, BYTES);
    save("second", "staged", staging);
    for (int i = 0; i < BYTES; i++) { /* values change places */
        unsigned char a = swapped_a[i];
        swapped_a[i] = swapped_b[i];
        swapped_b[i] = a;
    }
    grown = realloc(grown, 200000);
    complete_checkpoint();
    read_here = (unsigned char)sum;

    read_bytes(moved_to, 0, 100);
    write_bytes(moved_to, 100, 200);
    read_bytes(kept, 0, 20);  /* the second checkpoint needs these */
    read_bytes(kept, 20, 30); /* both do */
    write_bytes(kept, 30, 40);
    write_bytes(swapped_a, 0, BYTES);
    read_bytes(swapped_b, 0, 30);
    write_bytes(swapped_b, 30, BYTES);
    write_bytes(staged, 0, 100);
    read_bytes(staging, 50, 60);
    touch(grown);

    checkpoint("third");
    write_bytes(kept, 0, BYTES);
    finish();
    return 0;
}
