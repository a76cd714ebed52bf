/*
 * dataset.h - what is known of one dataset as a whole. Plain data: it is sent between ranks as
 * bytes and written to the index files as one record.
 */
#ifndef SCRL_DATASET_H
#define SCRL_DATASET_H

#include "scr.h"
#include "textfile.h"

typedef struct {
    int id;            /* counts all datasets, from 1 */
    int checkpoint_id; /* counts checkpoints, from 1; 0 when it is none */
    int flags;         /* SCR_FLAG_... */
    int complete;      /* all ranks said it is valid */
    long long files;   /* over all ranks */
    long long bytes;
    char name[SCR_MAX_FILENAME];
} scrl_dataset;

int scrl_dataset_is_checkpoint(const scrl_dataset *dataset);
int scrl_dataset_is_output(const scrl_dataset *dataset);

/* Adds a record: keyword, the dataset's fields, three numbers of the caller's, the name. */
void scrl_dataset_write(scrl_writer *writer, const char *keyword, const scrl_dataset *dataset,
                        const int extra[3]);

/* Reads what follows the keyword. 0, or -1 after an error message. */
int scrl_dataset_read(scrl_reader *reader, scrl_dataset *dataset, int extra[3]);

#endif
