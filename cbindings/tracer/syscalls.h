/* syscalls.h - what system calls do to files and memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_SYSCALLS_H
#define SCR_CRIT_TRACER_SYSCALLS_H

#include "tool.h"

/* Registers the wrappers and the memory events (pre_mem_read, post_mem_write, munmap, mremap, ...);
 * in pre_clo_init. */
void syscalls_init(void);

#endif
