/*
 * oracle.h - a second way to find first accesses: the compiler's own instrumentation.
 *
 * A program is compiled with -fsanitize=thread, which puts a call before each access to memory, and
 * linked with this runtime instead of the sanitizer's. It is blind to code that was not compiled
 * so, and follows no copies: only for programs that hand their arrays straight to write or fwrite.
 * It exists to check the tracer (../test_traced_oracle.py), and shares nothing with it.
 */
#ifndef TRACED_ORACLE_H
#define TRACED_ORACLE_H

#include <stddef.h>
#include <sys/types.h>

/* saved.c: what was saved, and the first access to each byte of it. */
void oracle_access(const void *address, size_t size, int is_write);
void oracle_gone(const void *address, size_t size);
void oracle_moved(const void *from, const void *to, size_t size);
/* A checkpoint begins; accesses until its end are remembered as uses of what it saves. */
void oracle_begin(void);
void oracle_routed(const char *name, const char *path);
/* Bytes went to a file: part of the checkpoint if it is a routed one, else used. */
void oracle_written(int fd, off_t offset, const void *address, size_t size);
void oracle_complete(void);
/* Writes <folder>/<file name with its slashes as '+'> for each file: one byte of state a byte. */
void oracle_report(const char *folder);

#endif
