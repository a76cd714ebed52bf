/* codec.h - compression of the payload's frames.
 *
 * Codec 0 is not here: its frames are the bytes themselves. Codec 1 is c-blosc2, which is loaded
 * when it is first needed, so that a preloaded shim starts without it. May use error.h. Tests:
 * tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_CODEC_H
#define CRIT_CODEC_H

#include <stddef.h>
#include <stdint.h>

/* Largest frame before compression, and by how much a frame may grow. */
enum { CRIT_CODEC_FRAME = 1 << 20, CRIT_CODEC_GROWTH = 32 };

typedef struct crit_codec crit_codec;

/* Whether the codec is known, built in, and its library can be loaded. Fails with CODEC, in words
 * that say what to install. */
int crit_codec_usable(uint32_t id);

/* Make a compressor or a decompressor of codec `id`, which is not SCR_CRIT_CODEC_NONE.
 *   type_size   bytes per element, 1..255; for the shuffle
 * Fails with CODEC or NOMEM. The caller closes it. */
int crit_codec_open_compressor(uint32_t id, uint32_t type_size, crit_codec **codec);
int crit_codec_open_decompressor(uint32_t id, crit_codec **codec);
void crit_codec_close(crit_codec *codec);

/* Compress `size` bytes, at most CRIT_CODEC_FRAME, into `target` with room for size +
 * CRIT_CODEC_GROWTH. Fails with CODEC. */
int crit_codec_compress(crit_codec *codec, const uint8_t *data, size_t size, uint8_t *target,
                        size_t *stored);

/* Decompress one frame of `stored` bytes, which must give exactly `size` bytes. `offset`: of the
 * frame in its file, for the error. Fails with FORMAT. */
int crit_codec_decompress(crit_codec *codec, const uint8_t *data, size_t stored, uint8_t *target,
                          size_t size, int64_t offset);

#endif
