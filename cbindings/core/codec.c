/* codec.c - c-blosc2 (byte shuffle, then zstd), loaded when first needed; see codec.h.
 *
 * Its headers are needed to build this (CRIT_HAVE_BLOSC2, and CRIT_BLOSC2_SONAME: the library that
 * has the same binary interface as they); it is never linked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "codec.h"

#include <stdbool.h>

#include "error.h"

#ifdef CRIT_HAVE_BLOSC2

#include <blosc2.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Of c-blosc2's 1 to 9. On a smooth field of doubles with noise, level 5 saves 1.7 % more at a
 * sixth of the speed, and a checkpoint is waited for. */
enum { LEVEL = 1 };

_Static_assert((int)BLOSC2_MAX_OVERHEAD <= (int)CRIT_CODEC_GROWTH, "a frame can grow by more");

/* The functions that are used, with the types of the header. */
static struct {
    void *library;
    __typeof__(&blosc2_init) init;
    __typeof__(&blosc2_create_cctx) create_cctx;
    __typeof__(&blosc2_create_dctx) create_dctx;
    __typeof__(&blosc2_free_ctx) free_ctx;
    __typeof__(&blosc2_compress_ctx) compress_ctx;
    __typeof__(&blosc2_decompress_ctx) decompress_ctx;
    __typeof__(&blosc2_cbuffer_sizes) cbuffer_sizes;
} blosc;

static char load_error[512];

/* Fetch one function. The pointer to it is stored as one to data, as POSIX has it. */
#define FETCH(member, name)                                                                        \
    (*(void **)&blosc.member = dlsym(blosc.library, name), blosc.member != NULL)

static bool fetch_all(void)
{
    return FETCH(init, "blosc2_init") && FETCH(create_cctx, "blosc2_create_cctx") &&
           FETCH(create_dctx, "blosc2_create_dctx") && FETCH(free_ctx, "blosc2_free_ctx") &&
           FETCH(compress_ctx, "blosc2_compress_ctx") &&
           FETCH(decompress_ctx, "blosc2_decompress_ctx") &&
           FETCH(cbuffer_sizes, "blosc2_cbuffer_sizes");
}

/* Runs once in a process. The name has no slash: the library's own run path (the wheel's place
 * beside the package), LD_LIBRARY_PATH and the system's places are searched. */
static void load(void)
{
    void *library = dlopen(CRIT_BLOSC2_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(load_error, sizeof load_error, "%s", dlerror());
        return;
    }
    blosc.library = library;
    if (!fetch_all()) {
        snprintf(load_error, sizeof load_error, "%s lacks a function: %s", CRIT_BLOSC2_SONAME,
                 dlerror());
        blosc.library = NULL;
        dlclose(library);
        return;
    }
    blosc.init();
}

static bool is_available(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return blosc.library != NULL;
}

static int usable(void)
{
    if (!is_available())
        return crit_fail(SCR_CRIT_ERR_CODEC, CRIT_NO_OFFSET,
                         "codec blosc2-zstd needs the c-blosc2 library: install it (pip install "
                         "blosc2), or put its directory on LD_LIBRARY_PATH (%s)",
                         load_error);
    return SCR_CRIT_OK;
}

struct crit_codec {
    blosc2_context *context;
};

static int open_context(blosc2_context *context, crit_codec **codec)
{
    crit_codec *made = context ? malloc(sizeof *made) : NULL;
    if (made == NULL) {
        if (context != NULL)
            blosc.free_ctx(context);
        return crit_fail(SCR_CRIT_ERR_NOMEM, CRIT_NO_OFFSET, "c-blosc2 cannot make a context");
    }
    made->context = context;
    *codec = made;
    return SCR_CRIT_OK;
}

static int open_compressor(uint32_t type_size, crit_codec **codec)
{
    blosc2_cparams parameters = BLOSC2_CPARAMS_DEFAULTS;
    parameters.compcode = BLOSC_ZSTD;
    parameters.clevel = LEVEL;
    parameters.typesize = (int32_t)type_size;
    parameters.nthreads = 1;
    return open_context(blosc.create_cctx(parameters), codec);
}

static int open_decompressor(crit_codec **codec)
{
    blosc2_dparams parameters = BLOSC2_DPARAMS_DEFAULTS;
    parameters.nthreads = 1;
    return open_context(blosc.create_dctx(parameters), codec);
}

void crit_codec_close(crit_codec *codec)
{
    if (codec == NULL)
        return;
    blosc.free_ctx(codec->context);
    free(codec);
}

int crit_codec_compress(crit_codec *codec, const uint8_t *data, size_t size, uint8_t *target,
                        size_t *stored)
{
    const int made = blosc.compress_ctx(codec->context, data, (int32_t)size, target,
                                        (int32_t)(size + CRIT_CODEC_GROWTH));
    if (made <= 0)
        return crit_fail(SCR_CRIT_ERR_CODEC, CRIT_NO_OFFSET,
                         "c-blosc2 cannot compress a frame of %zu bytes (its code %d)", size, made);
    *stored = (size_t)made;
    return SCR_CRIT_OK;
}

int crit_codec_decompress(crit_codec *codec, const uint8_t *data, size_t stored, uint8_t *target,
                          size_t size, int64_t offset)
{
    int32_t whole, packed, block;
    /* The frame's own header is not to be trusted with the size of what it makes. */
    if (stored < BLOSC_MIN_HEADER_LENGTH || stored > CRIT_CODEC_FRAME + CRIT_CODEC_GROWTH ||
        blosc.cbuffer_sizes(data, &whole, &packed, &block) < 0 || packed < 0 || whole < 0 ||
        (size_t)packed != stored || (size_t)whole != size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, offset,
                         "frame at offset %lld is no c-blosc2 chunk of %zu bytes",
                         (long long)offset, size);
    const int made =
        blosc.decompress_ctx(codec->context, data, (int32_t)stored, target, (int32_t)size);
    if (made < 0 || (size_t)made != size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, offset,
                         "frame at offset %lld does not decompress (c-blosc2 code %d)",
                         (long long)offset, made);
    return SCR_CRIT_OK;
}

#else /* built without the headers of c-blosc2 */

static bool is_available(void)
{
    return false;
}

static int usable(void)
{
    return crit_fail(SCR_CRIT_ERR_CODEC, CRIT_NO_OFFSET,
                     "codec blosc2-zstd was not built in: install c-blosc2 with its headers (pip "
                     "install blosc2) and build scr_critplugin again");
}

static int open_compressor(uint32_t type_size, crit_codec **codec)
{
    (void)type_size;
    (void)codec;
    return usable();
}

static int open_decompressor(crit_codec **codec)
{
    (void)codec;
    return usable();
}

void crit_codec_close(crit_codec *codec)
{
    (void)codec;
}

int crit_codec_compress(crit_codec *codec, const uint8_t *data, size_t size, uint8_t *target,
                        size_t *stored)
{
    (void)codec, (void)data, (void)size, (void)target, (void)stored;
    return usable();
}

int crit_codec_decompress(crit_codec *codec, const uint8_t *data, size_t stored, uint8_t *target,
                          size_t size, int64_t offset)
{
    (void)codec, (void)data, (void)stored, (void)target, (void)size, (void)offset;
    return usable();
}

#endif

/* ---- Choice of codec ------------------------------------------------------------------------- */

int crit_codec_usable(uint32_t id)
{
    switch (id) {
    case SCR_CRIT_CODEC_NONE:
        return SCR_CRIT_OK;
    case SCR_CRIT_CODEC_BLOSC2_ZSTD:
        return usable();
    default:
        return crit_fail(SCR_CRIT_ERR_CODEC, CRIT_NO_OFFSET,
                         "codec %u is unknown; this library knows 0 (none) and 1 (blosc2-zstd)",
                         id);
    }
}

int crit_codec_open_compressor(uint32_t id, uint32_t type_size, crit_codec **codec)
{
    const int status = crit_codec_usable(id);
    return status == SCR_CRIT_OK ? open_compressor(type_size, codec) : status;
}

int crit_codec_open_decompressor(uint32_t id, crit_codec **codec)
{
    const int status = crit_codec_usable(id);
    return status == SCR_CRIT_OK ? open_decompressor(codec) : status;
}

const char *scr_crit_codecs(void)
{
    return is_available() ? "none blosc2-zstd" : "none";
}
