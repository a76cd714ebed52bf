/* plan_utf8.h - one UTF-8 sequence at a time, for strings of plans and for globs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Includes nothing of the core. Tests: tests/c/test_plan_glob.c, tests/c/test_plan_open.c.
 */
#ifndef CRIT_UTF8_H
#define CRIT_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decode the sequence at the start of text (size >= 1 bytes) into *code.
 * Returns its length in bytes; 0 when it is not well-formed UTF-8 (overlong, surrogate, truncated).
 */
size_t crit_utf8_decode(const uint8_t *text, size_t size, uint32_t *code);

#endif
