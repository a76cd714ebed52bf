/* filemap.c - see filemap.h. */
#include "filemap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "message.h"
#include "textfile.h"

static scrl_file *find(scrl_filemap *map, const char *path)
{
    for (int i = 0; i < map->count; i++) {
        if (strcmp(map->files[i].path, path) == 0) {
            return &map->files[i];
        }
    }
    return NULL;
}

scrl_file *scrl_filemap_put(scrl_filemap *map, const char *path, const char *origin)
{
    scrl_file *file = find(map, path);
    if (!file) {
        map->files = scrl_grow(map->files, (size_t)(map->count + 1) * sizeof(scrl_file));
        file = &map->files[map->count++];
    }
    *file = (scrl_file){0};
    strcpy(file->path, path);
    strcpy(file->origin, origin);
    return file;
}

void scrl_filemap_remove(scrl_filemap *map, int index)
{
    size_t behind = (size_t)(map->count - index - 1);
    memmove(&map->files[index], &map->files[index + 1], behind * sizeof(scrl_file));
    map->count--;
}

int scrl_file_record(scrl_file *file)
{
    struct stat status;
    if (stat(file->path, &status) != 0) {
        return -1;
    }
    file->size = (long long)status.st_size;
    file->modified_seconds = (long long)status.st_mtim.tv_sec;
    file->modified_nanoseconds = (long long)status.st_mtim.tv_nsec;
    file->mode = (int)status.st_mode;
    return 0;
}

int scrl_file_is_whole(const scrl_file *file)
{
    struct stat status;
    return access(file->path, R_OK) == 0 && stat(file->path, &status) == 0 &&
           (long long)status.st_size == file->size;
}

int scrl_file_is_untouched(const scrl_file *file)
{
    scrl_file now = *file;
    return scrl_file_record(&now) == 0 && now.size == file->size && now.mode == file->mode &&
           now.modified_seconds == file->modified_seconds &&
           now.modified_nanoseconds == file->modified_nanoseconds;
}

static char *map_path(const char *directory, int rank)
{
    return scrl_format("%s/.scr/filemap_%d", directory, rank);
}

int scrl_filemap_save(const scrl_filemap *map, const char *directory, int rank)
{
    scrl_writer writer;
    scrl_writer_start(&writer, "filemap");
    scrl_writer_add(&writer, NULL, "complete %d", map->complete);
    for (int i = 0; i < map->count; i++) {
        const scrl_file *file = &map->files[i];
        scrl_writer_add(&writer, file->path, "file %lld %lld %lld %d", file->size,
                        file->modified_seconds, file->modified_nanoseconds, file->mode);
        scrl_writer_add(&writer, file->origin, "origin");
    }
    char *path = map_path(directory, rank);
    int result = scrl_writer_commit(&writer, path);
    free(path);
    return result;
}

static int read_complete(scrl_reader *reader, scrl_filemap *map)
{
    long long complete = 0;
    if (scrl_reader_number(reader, 0, 1, &complete) != 0) {
        return -1;
    }
    map->complete = (int)complete;
    return 0;
}

static int read_file(scrl_reader *reader, scrl_filemap *map)
{
    scrl_file file = {0};
    long long mode = 0;
    if (scrl_reader_number(reader, 0, LLONG_MAX, &file.size) != 0 ||
        scrl_reader_number(reader, LLONG_MIN, LLONG_MAX, &file.modified_seconds) != 0 ||
        scrl_reader_number(reader, 0, 999999999, &file.modified_nanoseconds) != 0 ||
        scrl_reader_number(reader, 0, INT_MAX, &mode) != 0 ||
        scrl_reader_name(reader, file.path, sizeof(file.path)) != 0) {
        return -1;
    }
    file.mode = (int)mode;
    const char *keyword = scrl_reader_next(reader);
    if (!keyword || strcmp(keyword, "origin") != 0 ||
        scrl_reader_name(reader, file.origin, sizeof(file.origin)) != 0) {
        return -1;
    }
    *scrl_filemap_put(map, file.path, file.origin) = file;
    return 0;
}

static int read_records(scrl_reader *reader, scrl_filemap *map)
{
    const char *keyword;
    while ((keyword = scrl_reader_next(reader)) != NULL) {
        int result = -1;
        if (strcmp(keyword, "complete") == 0) {
            result = read_complete(reader, map);
        } else if (strcmp(keyword, "file") == 0) {
            result = read_file(reader, map);
        }
        if (result != 0) {
            scrl_err("`%s' line %d is not understood", reader->path, reader->number);
            return -1;
        }
    }
    return 0;
}

int scrl_filemap_load(scrl_filemap *map, const char *directory, int rank)
{
    *map = (scrl_filemap){0};
    char *path = map_path(directory, rank);
    scrl_reader reader;
    int result = -1;
    if (scrl_reader_open(&reader, path, "filemap") == SCRL_READ_OK) {
        result = read_records(&reader, map);
        scrl_reader_free(&reader);
    }
    if (result != 0) {
        scrl_filemap_free(map);
    }
    free(path);
    return result;
}

void scrl_filemap_unlink(const char *directory, int rank)
{
    char *path = map_path(directory, rank);
    char *unfinished = scrl_format("%s.new", path); /* of a run that was killed while writing it */
    unlink(path);
    unlink(unfinished);
    free(unfinished);
    free(path);
}

void scrl_filemap_free(scrl_filemap *map)
{
    free(map->files);
    *map = (scrl_filemap){0};
}
