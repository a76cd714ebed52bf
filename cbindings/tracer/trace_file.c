/* trace_file.c - writes PREFIX.trace and PREFIX.runs.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Both are written under temporary names and renamed by trace_close, the runs first: a trace under
 * its final name is whole. The descriptors are above those the program can use, and survive a
 * program that closes all of its own. Tests: tests/tracer/test_tracer_files.py.
 */
#include "trace_file.h"

#include <valgrind.h>

#include <pub_tool_clientstate.h>
#include <pub_tool_libcfile.h>
#include <pub_tool_vki.h>
#include <pub_tool_xarray.h>

/* In coregrind, not in the tools' headers: moves a descriptor out of the program's range; the
 * descriptor of the traced program's file. */
extern Int VG_(safe_fd)(Int oldfd);
extern Int VG_(cl_exec_fd);

enum { BUFFER_BYTES = 1 << 16, LINE_BYTES = 1024 };

typedef struct {
    HChar *name; /* final */
    HChar *temporary;
    Int fd; /* -1: not open */
    UInt used;
    UChar buffer[BUFFER_BYTES];
} output;

static output text = {.fd = -1};
static output runs = {.fd = -1};
static ULong runs_written;

typedef struct {
    UInt kind;
    UInt file;
    ULong offset;
    ULong length;
    ULong address;
    UInt code;
    Int block;
} run_record;

static __attribute__((noreturn)) void fail(const HChar *what, const HChar *name)
{
    VG_(fmsg)
    ("scr_crit: cannot %s %s. Is there space, and may this user write there? The trace is "
     "given up.\n",
     what, name);
    VG_(exit)(1);
}

static HChar *joined(const HChar *prefix, const HChar *suffix)
{
    HChar *name = VG_(malloc)("trace.name", VG_(strlen)(prefix) + VG_(strlen)(suffix) + 1);
    VG_(strcpy)(name, prefix);
    VG_(strcat)(name, suffix);
    return name;
}

static void open_output(output *out, const HChar *prefix, const HChar *suffix)
{
    out->name = joined(prefix, suffix);
    out->temporary = joined(out->name, ".part");
    Int fd = VG_(fd_open)(out->temporary, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0666);
    if (fd < 0)
        fail("create", out->temporary);
    out->fd = VG_(safe_fd)(fd);
    out->used = 0;
}

static void flush(output *out)
{
    UInt done = 0;
    while (done < out->used) {
        Int n = VG_(write)(out->fd, out->buffer + done, out->used - done);
        if (n == -VKI_EINTR)
            continue;
        if (n <= 0)
            fail("write to", out->temporary);
        done += n;
    }
    out->used = 0;
}

static void put(output *out, const void *bytes, UInt count)
{
    const UChar *from = bytes;
    while (count > 0) {
        UInt n = BUFFER_BYTES - out->used;
        if (n > count)
            n = count;
        VG_(memcpy)(out->buffer + out->used, from, n);
        out->used += n;
        from += n;
        count -= n;
        if (out->used == BUFFER_BYTES)
            flush(out);
    }
}

static void put_text(const HChar *chars)
{
    put(&text, chars, VG_(strlen)(chars));
}

/* One field: no blank, no control character, nothing beyond ASCII; never empty. */
static void put_field(const HChar *field)
{
    if (!*field)
        put_text("%");
    for (const UChar *c = (const UChar *)field; *c; c++) {
        if (*c > ' ' && *c < 0x7f && *c != '%') {
            put(&text, c, 1);
        } else {
            HChar escaped[4];
            VG_(snprintf)(escaped, sizeof escaped, "%%%02X", *c);
            put(&text, escaped, 3);
        }
    }
}

const HChar *trace_program(void)
{
    static HChar path[4096];
    if (!path[0]) {
        HChar link[64];
        VG_(sprintf)(link, "/proc/self/fd/%d", VG_(cl_exec_fd));
        SSizeT length = VG_(readlink)(link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        if (length <= 0)
            VG_(snprintf)(path, sizeof path, "%s", VG_(args_the_exename));
    }
    return path;
}

static void program_line(void)
{
    put_text("program ");
    put_field(trace_program());
    put_text(" ");
    put_field(VG_(args_the_exename));
    for (Word i = 0; i < VG_(sizeXA)(VG_(args_for_client)); i++) {
        put_text(" ");
        put_field(*(HChar **)VG_(indexXA)(VG_(args_for_client), i));
    }
    put_text("\n");
}

void trace_open(const HChar *prefix)
{
    open_output(&text, prefix, ".trace");
    open_output(&runs, prefix, ".runs");
    runs_written = 0;
    put_text("scr_crit-trace 1\n");
    trace_line("tool %s valgrind %d.%d", TRACER_VERSION, __VALGRIND_MAJOR__, __VALGRIND_MINOR__);
    program_line();
}

void trace_line(const HChar *format, ...)
{
    if (text.fd < 0)
        return;
    HChar line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    VG_(vsnprintf)(line, sizeof line, format, arguments);
    va_end(arguments);
    put_text(line);
    put_text("\n");
}

void trace_text_line(const HChar *key, const HChar *const *texts, UInt count)
{
    if (text.fd < 0)
        return;
    put_text(key);
    for (UInt i = 0; i < count; i++) {
        put_text(" ");
        put_field(texts[i]);
    }
    put_text("\n");
}

static void put_run(const run_record *record)
{
    if (runs.fd < 0)
        return;
    put(&runs, record, sizeof *record);
    runs_written++;
}

void trace_source(UInt file, ULong offset, ULong length, Addr address, Long block)
{
    run_record record = {RUN_SOURCE, file, offset, length, address, 0, (Int)block};
    put_run(&record);
}

void trace_state(UInt file, ULong offset, ULong length, run_state state, run_reason reason)
{
    run_record record = {RUN_STATE, file, offset, length, 0, (UInt)state | (UInt)reason << 8, -1};
    put_run(&record);
}

static void finish(output *out)
{
    flush(out);
    VG_(close)(out->fd);
    out->fd = -1;
    if (VG_(rename)(out->temporary, out->name) != 0)
        fail("rename the finished trace to", out->name);
}

void trace_close(void)
{
    if (text.fd < 0)
        return;
    trace_line("runs %llu", runs_written);
    put_text("end\n");
    finish(&runs);
    finish(&text);
}

void trace_abandon(void)
{
    if (text.fd >= 0)
        VG_(close)(text.fd);
    if (runs.fd >= 0)
        VG_(close)(runs.fd);
    text.fd = runs.fd = -1;
}
