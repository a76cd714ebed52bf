/* index.c - the index of the prefix directory, see index.h; the file lists are in filelist.c. */
#include "index.h"

#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "memory.h"
#include "message.h"

static char *index_path(void)
{
    return scrl_format("%s/local.index", scrl.settings.prefix_scr);
}

static int read_records(scrl_reader *reader, scrl_index *index)
{
    const char *keyword;
    while ((keyword = scrl_reader_next(reader)) != NULL) {
        int extra[3];
        scrl_dataset dataset;
        if (strcmp(keyword, "current") == 0) {
            if (scrl_reader_name(reader, index->current, sizeof(index->current)) != 0) {
                return -1;
            }
        } else if (strcmp(keyword, "dataset") == 0) {
            if (scrl_dataset_read(reader, &dataset, extra) != 0) {
                return -1;
            }
            scrl_index_entry *entry = scrl_index_enter(index, &dataset);
            entry->failed = extra[0];
            entry->flushed = extra[1];
            entry->fetched = extra[2];
        } else {
            scrl_err("`%s' line %d: unknown record `%s'", reader->path, reader->number, keyword);
            return -1;
        }
    }
    return 0;
}

void scrl_index_read(scrl_index *index)
{
    *index = (scrl_index){0};
    char *path = index_path();
    scrl_reader reader;
    if (scrl_reader_open(&reader, path, "index") == SCRL_READ_OK) {
        if (read_records(&reader, index) != 0) {
            scrl_index_free(index);
        }
        scrl_reader_free(&reader);
    }
    free(path);
}

int scrl_index_write(const scrl_index *index)
{
    scrl_writer writer;
    scrl_writer_start(&writer, "index");
    if (index->current[0]) {
        scrl_writer_add(&writer, index->current, "current");
    }
    for (int i = 0; i < index->count; i++) {
        const scrl_index_entry *entry = &index->entries[i];
        int extra[3] = {entry->failed, entry->flushed, entry->fetched};
        scrl_dataset_write(&writer, "dataset", &entry->dataset, extra);
    }
    char *path = index_path();
    int result = scrl_writer_commit(&writer, path);
    free(path);
    return result;
}

void scrl_index_free(scrl_index *index)
{
    free(index->entries);
    *index = (scrl_index){0};
}

scrl_index_entry *scrl_index_by_name(scrl_index *index, const char *name)
{
    for (int i = 0; i < index->count; i++) {
        if (strcmp(index->entries[i].dataset.name, name) == 0) {
            return &index->entries[i];
        }
    }
    return NULL;
}

scrl_index_entry *scrl_index_by_id(scrl_index *index, int id)
{
    for (int i = 0; i < index->count; i++) {
        if (index->entries[i].dataset.id == id) {
            return &index->entries[i];
        }
    }
    return NULL;
}

static void take_out(scrl_index *index, scrl_index_entry *entry)
{
    if (entry) {
        *entry = index->entries[--index->count];
    }
}

scrl_index_entry *scrl_index_enter(scrl_index *index, const scrl_dataset *dataset)
{
    take_out(index, scrl_index_by_name(index, dataset->name));
    take_out(index, scrl_index_by_id(index, dataset->id));
    size_t size = (size_t)(index->count + 1) * sizeof(scrl_index_entry);
    index->entries = scrl_grow(index->entries, size);
    scrl_index_entry *entry = &index->entries[index->count++];
    *entry = (scrl_index_entry){.dataset = *dataset};
    return entry;
}

void scrl_index_remove(scrl_index *index, const char *name)
{
    scrl_index_entry *entry = scrl_index_by_name(index, name);
    int was_current = strcmp(index->current, name) == 0;
    int id = entry ? entry->dataset.id : 0;
    take_out(index, entry);
    if (was_current) {
        const scrl_index_entry *before = id > 0 ? scrl_index_newest(index, id) : NULL;
        strcpy(index->current, before ? before->dataset.name : "");
    }
}

void scrl_index_set_current(scrl_index *index, const char *name)
{
    const scrl_index_entry *entry = scrl_index_by_name(index, name);
    if (entry && scrl_dataset_is_checkpoint(&entry->dataset)) {
        strcpy(index->current, entry->dataset.name);
    }
}

void scrl_index_mark_failed(scrl_index *index, const char *name)
{
    scrl_index_entry *entry = scrl_index_by_name(index, name);
    if (entry) {
        entry->failed = 1;
    }
    index->current[0] = '\0';
}

scrl_index_entry *scrl_index_newest(scrl_index *index, int before)
{
    scrl_index_entry *newest = NULL;
    for (int i = 0; i < index->count; i++) {
        scrl_index_entry *entry = &index->entries[i];
        const scrl_dataset *dataset = &entry->dataset;
        int usable = dataset->complete && !entry->failed && scrl_dataset_is_checkpoint(dataset) &&
                     (before == 0 || dataset->id < before);
        if (usable && (!newest || dataset->id > newest->dataset.id)) {
            newest = entry;
        }
    }
    return newest;
}
