/* message.h - what the shim says, in SCR's own form.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *     SCR_CRIT v0.1.0 WARNING: rank 2 on host: text @ filter.c:120
 *
 * Errors and warnings go to stderr, from every rank. Information goes to stdout, as SCR's does, and
 * from rank 0 alone. Each message is one write, so that lines of several ranks do not mix. Uses
 * nothing of the shim. Tests: tests/shim/test_shim_modes.py.
 */
#ifndef SHIM_MESSAGE_H
#define SHIM_MESSAGE_H

/* Who speaks, and from which level of SCR_CRIT_DEBUG on. rank -1: not known. */
void shim_message_speaker(int rank, int debug);

/* Level of SCR_CRIT_DEBUG in force. */
int shim_message_debug(void);

#define SHIM_ERROR(...) shim_message_report("ERROR", __FILE__, __LINE__, __VA_ARGS__)
#define SHIM_WARNING(...) shim_message_report("WARNING", __FILE__, __LINE__, __VA_ARGS__)

/* Behind the macros. */
void shim_message_report(const char *kind, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Information, from rank 0 (or an unknown rank) alone. */
void shim_message_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Information from every rank when SCR_CRIT_DEBUG is at least `level`. */
void shim_message_debug_at(int level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
