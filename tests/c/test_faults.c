/* test_faults.c - every system call and allocation fails once, at every place where one is made.
 *
 * Whatever fails, the source and an older target stay as they were, no temporary file stays behind,
 * no memory leaks (under a sanitizer), and the status tells what happened. Short transfers and
 * EINTR change nothing at all. Linked with -Wl,--wrap for the functions below; needs real files,
 * which live in $TMPDIR.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <stdarg.h>

#include "check.h"
#include "io.h"
#include "overwrite.h"
#include "pack.h"
#include "scratch.h"

/* ---- Faults ---------------------------------------------------------------------------------- */

enum call {
    CALL_OPEN,
    CALL_PREAD,
    CALL_PWRITE,
    CALL_FSYNC,
    CALL_FTRUNCATE,
    CALL_RENAME,
    CALL_FCHMOD,
    CALL_MALLOC,
    CALLS
};
static const char *const call_names[CALLS] = {"open",      "pread",  "pwrite", "fsync",
                                              "ftruncate", "rename", "fchmod", "malloc"};

static int faulty = -1; /* which call fails */
static int countdown;   /* at its how-manieth time, from 1 on; 0: never again */
static int fault_errno;
static bool disturbed; /* transfers are cut short and interrupted */
static unsigned disturbances;

static bool fails(int call)
{
    if (call != faulty || countdown == 0 || --countdown > 0)
        return false;
    errno = fault_errno;
    return true;
}

/* Cut a transfer short, or say that a signal came first. */
static size_t disturb(size_t size, bool *interrupted)
{
    *interrupted = disturbed && ++disturbances % 3 == 0;
    if (!disturbed || size < 2)
        return size;
    return 1 + disturbances * 2654435761u % (size - 1);
}

int __real_open(const char *path, int flags, ...);
ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t offset);
int __real_fsync(int fd);
int __real_ftruncate(int fd, off_t size);
int __real_rename(const char *from, const char *to);
int __real_fchmod(int fd, mode_t mode);
void *__real_malloc(size_t size);

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(CALL_OPEN) ? -1 : __real_open(path, flags, mode);
}

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset)
{
    bool interrupted;
    size = disturb(size, &interrupted);
    if (interrupted)
        errno = EINTR;
    return interrupted || fails(CALL_PREAD) ? -1 : __real_pread(fd, data, size, offset);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t offset)
{
    bool interrupted;
    size = disturb(size, &interrupted);
    if (interrupted)
        errno = EINTR;
    return interrupted || fails(CALL_PWRITE) ? -1 : __real_pwrite(fd, data, size, offset);
}

static bool interrupted_once(void)
{
    errno = EINTR;
    return disturbed && ++disturbances % 2 == 0;
}

int __wrap_fsync(int fd)
{
    return interrupted_once() || fails(CALL_FSYNC) ? -1 : __real_fsync(fd);
}

int __wrap_ftruncate(int fd, off_t size)
{
    return interrupted_once() || fails(CALL_FTRUNCATE) ? -1 : __real_ftruncate(fd, size);
}

int __wrap_rename(const char *from, const char *to)
{
    return fails(CALL_RENAME) ? -1 : __real_rename(from, to);
}

int __wrap_fchmod(int fd, mode_t mode)
{
    return fails(CALL_FCHMOD) ? -1 : __real_fchmod(fd, mode);
}

void *__wrap_malloc(size_t size)
{
    return fails(CALL_MALLOC) ? NULL : __real_malloc(size);
}

/* ---- Operations ------------------------------------------------------------------------------ */

enum { SIZE = 300000 };

static uint8_t *original; /* the whole file */
static uint8_t *zeroed;   /* the same with zeros in its uncritical bytes */
static uint8_t *packed;   /* and packed */
static size_t packed_size;
static uint32_t codec;

/* Critical: 700 of every 1000 bytes, but nothing in the middle third. */
static void make_resolution(crit_resolution *resolution)
{
    crit_resolution_init(resolution);
    crit_program *program = &resolution->program;
    for (int third = 0; third < 3; third++) {
        if (third == 1) {
            CHECK_STATUS(crit_program_drop(program, SIZE / 3), SCR_CRIT_OK);
            continue;
        }
        CHECK_STATUS(crit_program_loop_begin(program), SCR_CRIT_OK);
        CHECK_STATUS(crit_program_keep(program, 700), SCR_CRIT_OK);
        CHECK_STATUS(crit_program_drop(program, 300), SCR_CRIT_OK);
        CHECK_STATUS(crit_program_loop_end(program, SIZE / 3000), SCR_CRIT_OK);
    }
    CHECK_STATUS(crit_resolution_check(resolution, SIZE), SCR_CRIT_OK);
}

static bool is_critical(size_t at)
{
    return at / (SIZE / 3) != 1 && at % (SIZE / 3) % 1000 < 700;
}

/* Run something on the open source "whole" with its resolution. */
static int on_whole(int (*run)(crit_source *source, const crit_resolution *resolution))
{
    static crit_resolution resolution; /* made once, without faults */
    static bool made;
    const int was_faulty = faulty;
    faulty = -1;
    if (!made)
        make_resolution(&resolution);
    made = true;
    faulty = was_faulty;
    crit_source source;
    int status = crit_source_open(&source, "whole");
    if (status != SCR_CRIT_OK)
        return status;
    status = run(&source, &resolution);
    crit_source_close(&source);
    return status;
}

static int pack_to(crit_source *source, const crit_resolution *resolution)
{
    const scr_crit_pack_options options = {codec, 8};
    return crit_pack(source, resolution, "target", &options, NULL);
}

static int overwrite(crit_source *source, const crit_resolution *resolution)
{
    return crit_overwrite(source, resolution, NULL);
}

static int run_pack(void)
{
    return on_whole(pack_to);
}

static int run_overwrite(void)
{
    return on_whole(overwrite);
}

static int run_unpack(void)
{
    return scr_crit_unpack("packed", "target", NULL, NULL);
}

static int run_copy(void)
{
    return scr_crit_copy("whole", "target");
}

static int run_check(void)
{
    return scr_crit_check("packed", NULL);
}

typedef struct operation {
    const char *name;
    int (*run)(void);
    bool in_place; /* replaces "whole" */
    bool writes;
} operation;

static const operation operations[] = {{"pack", run_pack, false, true},
                                       {"unpack", run_unpack, false, true},
                                       {"overwrite", run_overwrite, true, true},
                                       {"copy", run_copy, false, true},
                                       {"check", run_check, false, false}};

static void set_scene(void)
{
    scratch_write("whole", original, SIZE);
    scratch_write("packed", packed, packed_size);
    scratch_write("target", "older", 5);
}

static bool scene_is_untouched(void)
{
    return scratch_holds("whole", original, SIZE) && scratch_holds("packed", packed, packed_size) &&
           scratch_holds("target", "older", 5) && scratch_count(NULL) == 3;
}

static bool result_is_right(const operation *op)
{
    if (op->run == run_pack)
        return scratch_holds("target", packed, packed_size);
    if (op->run == run_unpack)
        return scratch_holds("target", zeroed, SIZE);
    if (op->run == run_copy)
        return scratch_holds("target", original, SIZE);
    if (op->run == run_overwrite)
        return scratch_holds("whole", zeroed, SIZE);
    return true;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static int expected_status(int call, int error)
{
    if (call == CALL_MALLOC)
        return SCR_CRIT_ERR_NOMEM;
    return error == ENOSPC || error == EDQUOT ? SCR_CRIT_ERR_NOSPACE : SCR_CRIT_ERR_IO;
}

/* Let the n-th such call fail. Returns false when the operation makes fewer. */
static bool fail_at(const operation *op, int call, int error, int n)
{
    set_scene();
    faulty = call;
    fault_errno = error;
    countdown = n;
    const int status = op->run();
    const bool happened = countdown == 0;
    faulty = -1;
    countdown = 0;
    if (!happened) {
        CHECK_STATUS(status, SCR_CRIT_OK);
        CHECK(result_is_right(op));
        return false;
    }
    if (status == SCR_CRIT_OK) { /* only what concerns the directory may be overlooked */
        CHECK(call == CALL_FSYNC || call == CALL_OPEN);
        CHECK(result_is_right(op));
        return true;
    }
    CHECK_STATUS(status, expected_status(call, error));
    CHECK(call == CALL_MALLOC || scr_crit_last_errno() == error);
    if (!scene_is_untouched())
        fprintf(stderr, "%s, %s number %d\n", op->name, call_names[call], n);
    CHECK(scene_is_untouched());
    return true;
}

static void every_call_fails_once(void)
{
    static const int errors[] = {EIO, ENOSPC, EDQUOT};
    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; o++)
        for (int call = 0; call < CALLS; call++)
            for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
                int n = 1;
                while (n < 1000 && fail_at(&operations[o], call, errors[e], n))
                    n++;
                if (e == 0)
                    printf("%s: %s fails at each of %d places\n", operations[o].name,
                           call_names[call], n - 1);
                CHECK(n < 1000);
                CHECK(n > 1 || call > CALL_PREAD); /* every operation opens and reads */
            }
}

static void disturbances_change_nothing(void)
{
    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; o++) {
        set_scene();
        disturbed = true;
        CHECK_STATUS(operations[o].run(), SCR_CRIT_OK);
        disturbed = false;
        CHECK(result_is_right(&operations[o]));
        CHECK(scratch_count(NULL) == 3);
    }
    CHECK(disturbances > 100);
}

static void make_files(void)
{
    struct stat status;
    original = scratch_bytes(SIZE, 5);
    zeroed = malloc(SIZE);
    for (size_t at = 0; at < SIZE; at++)
        zeroed[at] = is_critical(at) ? original[at] : 0;
    scratch_write("whole", original, SIZE);
    CHECK_STATUS(run_pack(), SCR_CRIT_OK);
    CHECK(stat("target", &status) == 0);
    packed_size = (size_t)status.st_size;
    packed = malloc(packed_size);
    FILE *file = fopen("target", "rb");
    CHECK(file != NULL && fread(packed, 1, packed_size, file) == packed_size);
    fclose(file);
}

static void all_cases(void)
{
    make_files();
    every_call_fails_once();
    disturbances_change_nothing();
    free(original);
    free(zeroed);
    free(packed);
}

int main(void)
{
    scratch_enter();
    all_cases();
    if (strstr(scr_crit_codecs(), "blosc2-zstd") != NULL) {
        codec = SCR_CRIT_CODEC_BLOSC2_ZSTD;
        all_cases();
    } else {
        printf("no codec blosc2-zstd here: its cases are left out\n");
    }
    scratch_leave();
    return check_result();
}
