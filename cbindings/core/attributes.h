/* attributes.h - extended attributes carried from one file to another.
 * May use error.h. Tests: tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_ATTRIBUTES_H
#define CRIT_ATTRIBUTES_H

#include <stdbool.h>

/* Copy the extended attributes of one open file to another; unless `all`, only the user's own
 * ("user."). What the file system does not support, or reserves to itself or to root, is left out;
 * a user attribute or an access list that should go but does not is a failure: IO, NOSPACE or
 * NOMEM. */
int crit_copy_attributes(int from, int to, bool all);

#endif
