/* shadow.h - first accesses to watched memory: two bits a byte.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Only pending bytes change: the first access decides. Memory that is not watched costs nothing
 * but a guard in the instrumentation. Addresses are exact over the whole address space; an access
 * may straddle any boundary. At most 0.3 byte for a watched byte.
 */
#ifndef SCR_CRIT_TRACER_SHADOW_H
#define SCR_CRIT_TRACER_SHADOW_H

#include "tool.h"

typedef enum { SHADOW_NONE, SHADOW_PENDING, SHADOW_READ, SHADOW_WRITTEN } shadow_state;

/* These bytes are watched anew: whatever was known of them, they are pending. */
void shadow_watch(Addr address, SizeT bytes);
/* An access. */
void shadow_read(Addr address, SizeT bytes);
void shadow_write(Addr address, SizeT bytes);
/* The states go along with the bytes (realloc); the old place is not watched any more. */
void shadow_move(Addr from, Addr to, SizeT bytes);
/* Length of the piece from `address` that has one state, at most `limit` (which is at least 1). */
SizeT shadow_piece(Addr address, SizeT limit, shadow_state *state);
/* No byte is watched; memory is released. */
void shadow_clear(void);
/* Pending bytes in all, and bytes of memory the shadow takes. */
ULong shadow_pending(void);
ULong shadow_memory(void);

#endif
