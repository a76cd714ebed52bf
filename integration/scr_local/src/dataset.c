/* dataset.c - see dataset.h. */
#include "dataset.h"

#include <limits.h>

int scrl_dataset_is_checkpoint(const scrl_dataset *dataset)
{
    return (dataset->flags & SCR_FLAG_CHECKPOINT) != 0;
}

int scrl_dataset_is_output(const scrl_dataset *dataset)
{
    return (dataset->flags & SCR_FLAG_OUTPUT) != 0;
}

void scrl_dataset_write(scrl_writer *writer, const char *keyword, const scrl_dataset *dataset,
                        const int extra[3])
{
    scrl_writer_add(writer, dataset->name, "%s %d %d %d %d %lld %lld %d %d %d", keyword,
                    dataset->id, dataset->checkpoint_id, dataset->flags, dataset->complete,
                    dataset->files, dataset->bytes, extra[0], extra[1], extra[2]);
}

static int read_int(scrl_reader *reader, int low, int high, int *value)
{
    long long number = 0;
    if (scrl_reader_number(reader, low, high, &number) != 0) {
        return -1;
    }
    *value = (int)number;
    return 0;
}

int scrl_dataset_read(scrl_reader *reader, scrl_dataset *dataset, int extra[3])
{
    *dataset = (scrl_dataset){0};
    if (read_int(reader, 1, INT_MAX, &dataset->id) != 0 ||
        read_int(reader, 0, INT_MAX, &dataset->checkpoint_id) != 0 ||
        read_int(reader, 0, INT_MAX, &dataset->flags) != 0 ||
        read_int(reader, 0, 1, &dataset->complete) != 0 ||
        scrl_reader_number(reader, 0, LLONG_MAX, &dataset->files) != 0 ||
        scrl_reader_number(reader, 0, LLONG_MAX, &dataset->bytes) != 0) {
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        if (read_int(reader, 0, INT_MAX, &extra[i]) != 0) {
            return -1;
        }
    }
    return scrl_reader_name(reader, dataset->name, sizeof(dataset->name));
}
