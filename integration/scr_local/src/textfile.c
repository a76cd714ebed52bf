/*
 * textfile.c - see textfile.h. Knows nothing of MPI or of what the records mean. Tests:
 * test_scr_local.py (names with spaces, damaged index).
 */
#include "textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "message.h"

#define FORMAT_VERSION 1
#define SIZE_LIMIT ((off_t)1 << 30)

static void append(scrl_writer *writer, const char *text)
{
    size_t size = strlen(text);
    writer->text = scrl_grow(writer->text, writer->length + size + 1);
    memcpy(writer->text + writer->length, text, size + 1);
    writer->length += size;
}

void scrl_writer_start(scrl_writer *writer, const char *kind)
{
    *writer = (scrl_writer){0};
    char *head = scrl_format("scr_local %s %d\n", kind, FORMAT_VERSION);
    append(writer, head);
    free(head);
}

static int must_escape(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7f || byte == '%';
}

static void append_name(scrl_writer *writer, const char *name)
{
    char *escaped = scrl_alloc(3 * strlen(name) + 1);
    char *out = escaped;
    for (const char *in = name; *in; in++) {
        if (must_escape((unsigned char)*in)) {
            out += sprintf(out, "%%%02X", (unsigned)(unsigned char)*in);
        } else {
            *out++ = *in;
        }
    }
    append(writer, escaped);
    free(escaped);
}

void scrl_writer_add(scrl_writer *writer, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *fields = scrl_alloc((size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(fields, (size_t)length + 1, format, arguments);
    va_end(arguments);
    append(writer, fields);
    free(fields);
    if (name) {
        append(writer, " ");
        append_name(writer, name);
    }
    append(writer, "\n");
    writer->records++;
}

static int write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(file, bytes, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return -1;
        }
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

static int write_and_sync(const char *path, const char *bytes, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0) {
        return -1;
    }
    int result = write_all(file, bytes, size);
    if (result == 0) {
        result = fsync(file);
    }
    int why = errno;
    if (close(file) != 0 && result == 0) {
        return -1;
    }
    errno = why;
    return result;
}

int scrl_writer_commit(scrl_writer *writer, const char *path)
{
    char *tail = scrl_format("end %d\n", writer->records);
    append(writer, tail);
    free(tail);

    char *beside = scrl_format("%s.new", path);
    int result = write_and_sync(beside, writer->text, writer->length);
    if (result == 0) {
        result = rename(beside, path);
    }
    if (result != 0) {
        scrl_err("cannot write `%s': %s", path, strerror(errno));
        unlink(beside);
    }
    free(beside);
    free(writer->text);
    *writer = (scrl_writer){0};
    return result;
}

/* Reads the file into reader->text with a NUL behind it. */
static scrl_read_status load(scrl_reader *reader)
{
    int file = open(reader->path, O_RDONLY);
    if (file < 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return SCRL_READ_ABSENT;
        }
        scrl_err("cannot open `%s': %s", reader->path, strerror(errno));
        return SCRL_READ_BAD;
    }
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > SIZE_LIMIT) {
        scrl_err("`%s' is not a regular file below 1 GiB", reader->path);
        close(file);
        return SCRL_READ_BAD;
    }
    size_t size = (size_t)status.st_size;
    size_t got = 0;
    reader->text = scrl_alloc(size + 1);
    while (got < size) {
        ssize_t part = read(file, reader->text + got, size - got);
        if (part < 0 && errno == EINTR) {
            continue;
        }
        if (part <= 0) {
            break;
        }
        got += (size_t)part;
    }
    close(file);
    if (got != size || memchr(reader->text, '\0', size)) {
        scrl_err("`%s' cannot be read as text", reader->path);
        return SCRL_READ_BAD;
    }
    return SCRL_READ_OK;
}

/* Moves to the next line. 0 when there is none, or when its end is missing. */
static int next_line(scrl_reader *reader)
{
    char *end = strchr(reader->next, '\n');
    if (!end) {
        return 0;
    }
    *end = '\0';
    reader->line = reader->next;
    reader->next = end + 1;
    reader->number++;
    return 1;
}

/* Checks the last line against the number of lines before it; fills reader->records. */
static int check_tail(scrl_reader *reader)
{
    size_t length = strlen(reader->next);
    if (length == 0 || reader->next[length - 1] != '\n') {
        return 0;
    }
    char *last = reader->next + length - 1;
    while (last > reader->next && last[-1] != '\n') {
        last--;
    }
    int lines = 0;
    for (char *at = reader->next; at < last; at++) {
        lines += *at == '\n';
    }
    char *expected = scrl_format("end %d\n", lines);
    int same = strcmp(expected, last) == 0;
    free(expected);
    reader->records = lines;
    return same;
}

scrl_read_status scrl_reader_open(scrl_reader *reader, const char *path, const char *kind)
{
    *reader = (scrl_reader){.path = path};
    scrl_read_status status = load(reader);
    if (status == SCRL_READ_OK) {
        char *head = scrl_format("scr_local %s %d", kind, FORMAT_VERSION);
        reader->next = reader->text;
        if (!next_line(reader) || strcmp(reader->line, head) != 0) {
            scrl_err("`%s' does not begin with `%s'", path, head);
            status = SCRL_READ_BAD;
        } else if (!check_tail(reader)) {
            scrl_err("`%s' is cut off: its last line does not give the number of its records",
                     path);
            status = SCRL_READ_BAD;
        }
        free(head);
    }
    if (status != SCRL_READ_OK) {
        scrl_reader_free(reader);
    }
    return status;
}

const char *scrl_reader_next(scrl_reader *reader)
{
    if (reader->records == 0 || !next_line(reader)) {
        return NULL;
    }
    reader->records--;
    char *keyword = reader->line;
    reader->line += strcspn(reader->line, " ");
    if (*reader->line) {
        *reader->line++ = '\0';
    }
    return keyword;
}

int scrl_reader_number(scrl_reader *reader, long long low, long long high, long long *value)
{
    char *end = reader->line;
    errno = 0;
    *value = strtoll(reader->line, &end, 10);
    int is_number = end != reader->line && (*end == ' ' || *end == '\0');
    if (!is_number || errno || *value < low || *value > high || reader->line[0] == ' ') {
        scrl_err("`%s' line %d: expected a number from %lld to %lld, found `%s'", reader->path,
                 reader->number, low, high, reader->line);
        return -1;
    }
    reader->line = *end ? end + 1 : end;
    return 0;
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Takes one byte of an escaped name; -1 when the escape is wrong or stands for NUL. */
static int next_byte(const char **at)
{
    const char *text = *at;
    if (*text != '%') {
        *at = text + 1;
        return (unsigned char)*text;
    }
    int high = hex_digit(text[1]);
    int low = high < 0 ? -1 : hex_digit(text[2]);
    if (low < 0 || (high == 0 && low == 0)) {
        return -1;
    }
    *at = text + 3;
    return high * 16 + low;
}

int scrl_reader_name(scrl_reader *reader, char *name, size_t size)
{
    size_t length = 0;
    const char *at = reader->line;
    while (*at) {
        int byte = next_byte(&at);
        if (byte < 0 || length + 1 >= size) {
            scrl_err("`%s' line %d: expected a name of less than %zu bytes, found `%s'",
                     reader->path, reader->number, size, reader->line);
            return -1;
        }
        name[length++] = (char)byte;
    }
    name[length] = '\0';
    reader->line += strlen(reader->line);
    if (length == 0) {
        scrl_err("`%s' line %d: a name is missing", reader->path, reader->number);
        return -1;
    }
    return 0;
}

void scrl_reader_free(scrl_reader *reader)
{
    free(reader->text);
    reader->text = NULL;
}
