/* claim.h - who on this node will need how much of a staging area.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The processes of one node share an area. Each would find enough free space for itself, and all
 * together would fill it: the application's writes would fail. So each claims what it expects to
 * write, in a small file in its private folder, where the others see it. May use folder.h, room.h.
 * Tests: tests/shim/test_shim_bypass.py.
 */
#ifndef SHIM_CLAIM_H
#define SHIM_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "folder.h"

/* Claim `bytes` in all for this process, in place of what it claimed before; 0 gives all back.
 *   room   optional, out: bytes that were free for this process
 * Returns whether they are there, next to what the others claim; if not, the older claim stays.
 * What cannot be found out counts as enough. */
bool shim_claim(const shim_folder *folder, uint64_t bytes, uint64_t *room);

#endif
