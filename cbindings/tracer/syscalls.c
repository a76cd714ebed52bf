/* syscalls.c - stub
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "syscalls.h"

void syscalls_init(void)
{
}
