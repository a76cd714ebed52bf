/* glob.h - file-name patterns of plans; the public entrance is scr_crit_glob.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The patterns' grammar is in docs/format.md, "Patterns". Includes nothing of the core but
 * plan_utf8.h. Tests: tests/c/test_plan_glob.c, tests/test_plan.py.
 */
#ifndef CRIT_GLOB_H
#define CRIT_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Longest path and pattern, without the terminating 0: what PATH_MAX leaves. */
#define CRIT_GLOB_TEXT_MAX 4095

/* Check a pattern. Returns NULL when it is well-formed, else a static string that says what is
 * wrong, and the offset of the fault in *at. */
const char *crit_glob_fault(const char *pattern, size_t *at);

/* Match a well-formed pattern against a whole path. rank -1: unknown; dataset NULL: unknown.
 * Time is bounded by pattern length times path length; nothing is allocated. */
bool crit_glob_match(const char *pattern, const char *path, int rank, const char *dataset);

/* Whether a well-formed pattern contains {rank} or {rank+1}. */
bool crit_glob_names_rank(const char *pattern);

#endif
