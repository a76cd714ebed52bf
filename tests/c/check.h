/* check.h - the least that a C test needs: conditions that name themselves when they do not hold.
 *
 * A test is a program: it runs its cases, prints what failed, and exits with 1 if anything did. The
 * runner is tests/test_c_core.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scr_crit.h"

static int check_failures;
static int check_count;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        check_count++;                                                                             \
        if (!(condition)) {                                                                        \
            check_failures++;                                                                      \
            fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, #condition);  \
        }                                                                                          \
    } while (0)

#define CHECK_U64(found, expected)                                                                 \
    do {                                                                                           \
        const uint64_t found_ = (uint64_t)(found), expected_ = (uint64_t)(expected);               \
        check_count++;                                                                             \
        if (found_ != expected_) {                                                                 \
            check_failures++;                                                                      \
            fprintf(stderr, "%s:%d: %s: %s is %" PRIu64 ", expected %" PRIu64 "\n", __FILE__,      \
                    __LINE__, __func__, #found, found_, expected_);                                \
        }                                                                                          \
    } while (0)

/* A status, with the library's words when it is another. */
#define CHECK_STATUS(call, expected)                                                               \
    do {                                                                                           \
        const int status_ = (call);                                                                \
        check_count++;                                                                             \
        if (status_ != (expected)) {                                                               \
            check_failures++;                                                                      \
            fprintf(stderr, "%s:%d: %s: %s gave '%s' (%s), expected '%s'\n", __FILE__, __LINE__,   \
                    __func__, #call, scr_crit_status_name(status_), scr_crit_last_error(),         \
                    scr_crit_status_name(expected));                                               \
        }                                                                                          \
    } while (0)

/* End of main: a test that checked nothing has failed. */
static inline int check_result(void)
{
    printf("%d checks, %d failed\n", check_count, check_failures);
    return check_failures != 0 || check_count == 0;
}

#endif
