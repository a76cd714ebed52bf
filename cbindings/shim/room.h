/* room.h - how much may be written to a file system without harm to anybody.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Uses nothing of the shim. Tests: tests/shim/test_shim_room.py.
 */
#ifndef SHIM_ROOM_H
#define SHIM_ROOM_H

#include <stdint.h>

/* Bytes that may be written below a folder; UINT64_MAX when that cannot be told. A file system in
 * memory, such as /dev/shm, calls free what the application may still need: of it at most half of
 * the memory that this process may still get counts. */
uint64_t shim_room(const char *folder);

#endif
