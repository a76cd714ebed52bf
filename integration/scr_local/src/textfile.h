/*
 * textfile.h - the small text files that the library keeps (index, file lists).
 *
 * Form:   scr_local KIND 1
 *         keyword number number ... name
 *         end COUNT
 * One record a line, fields separated by one space. A name is the last field of its line and may
 * hold anything: '%' and control characters are written as %XX. The last line gives the number of
 * records, so that a cut-off file is known as such.
 * Files are replaced as a whole: written beside, synced, renamed.
 */
#ifndef SCRL_TEXTFILE_H
#define SCRL_TEXTFILE_H

#include <stddef.h>

typedef struct {
    char *text;
    size_t length;
    int records;
} scrl_writer;

void scrl_writer_start(scrl_writer *writer, const char *kind);

/* Adds a line: the formatted fields, then `name` as last field unless it is NULL. */
void scrl_writer_add(scrl_writer *writer, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Ends the text, puts it in place of `path` and frees it. Returns 0; on failure -1 after an error
 * message, with the old file untouched.
 */
int scrl_writer_commit(scrl_writer *writer, const char *path);

typedef enum { SCRL_READ_OK, SCRL_READ_ABSENT, SCRL_READ_BAD } scrl_read_status;

typedef struct {
    char *text;       /* owned */
    const char *path; /* for messages; the caller keeps it alive */
    char *line;       /* what is left of the current line */
    char *next;       /* start of the next line */
    int number;       /* of the current line, from 1 */
    int records;      /* still to come */
} scrl_reader;

/*
 * Reads and checks first and last line. SCRL_READ_BAD comes with an error message. After
 * SCRL_READ_OK end with scrl_reader_free.
 */
scrl_read_status scrl_reader_open(scrl_reader *reader, const char *path, const char *kind);

/* Goes to the next record; gives its keyword, or NULL behind the last. */
const char *scrl_reader_next(scrl_reader *reader);

/* Takes the next field as a number in [low, high]. 0, or -1 after an error message. */
int scrl_reader_number(scrl_reader *reader, long long low, long long high, long long *value);

/* Takes the rest of the line as a name of less than `size` bytes. 0, or -1 after a message. */
int scrl_reader_name(scrl_reader *reader, char *name, size_t size);

void scrl_reader_free(scrl_reader *reader);

#endif
