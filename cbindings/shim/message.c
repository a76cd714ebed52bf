/* message.c - messages in SCR's own form.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_modes.py.
 */
#define _GNU_SOURCE
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scr_crit.h"

/* Two paths of PATH_MAX and words around them fit. */
enum { LINE_SIZE = 10240, HOST_SIZE = 256 };

static int speaking_rank = -1;
static int debug_level;

void shim_message_speaker(int rank, int debug)
{
    speaking_rank = rank;
    debug_level = debug;
}

int shim_message_debug(void)
{
    return debug_level;
}

static void host_name(char *host, size_t size)
{
    if (gethostname(host, size) != 0)
        snprintf(host, size, "?");
    host[size - 1] = '\0';
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void rank_name(char *rank, size_t size)
{
    if (speaking_rank < 0)
        snprintf(rank, size, "?");
    else
        snprintf(rank, size, "%d", speaking_rank);
}

/* Write one line. kind NULL: information, without a place in the source, as SCR's own. */
static void say(FILE *stream, const char *kind, const char *file, int line, const char *format,
                va_list arguments)
{
    char host[HOST_SIZE], rank[16], text[LINE_SIZE];
    host_name(host, sizeof host);
    rank_name(rank, sizeof rank);
    vsnprintf(text, sizeof text, format, arguments);
    char whole[LINE_SIZE + 512];
    if (kind)
        snprintf(whole, sizeof whole, "SCR_CRIT v%s %s: rank %s on %s: %s @ %s:%d\n",
                 SCR_CRIT_VERSION, kind, rank, host, text, base_name(file), line);
    else
        snprintf(whole, sizeof whole, "SCR_CRIT v%s: rank %s on %s: %s\n", SCR_CRIT_VERSION, rank,
                 host, text);
    fputs(whole, stream);
    fflush(stream);
}

void shim_message_report(const char *kind, const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(stderr, kind, file, line, format, arguments);
    va_end(arguments);
}

void shim_message_tell(const char *format, ...)
{
    if (speaking_rank > 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(stdout, NULL, NULL, 0, format, arguments);
    va_end(arguments);
}

void shim_message_debug_at(int level, const char *format, ...)
{
    if (debug_level < level)
        return;
    va_list arguments;
    va_start(arguments, format);
    say(stdout, NULL, NULL, 0, format, arguments);
    va_end(arguments);
}
