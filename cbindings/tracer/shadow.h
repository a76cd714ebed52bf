/* shadow.h - first accesses to watched memory: two bits a byte.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Only pending bytes change: the first access decides. Memory that is not watched costs nothing
 * but a guard in the instrumentation. Addresses are exact over the whole address space; an access
 * may straddle any boundary. At most 0.3 byte for a watched byte.
 * Tests: tests/tracer/test_tracer_shadow.py (built without Valgrind).
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

/* The guard, for instrument_accesses.c: one byte for a granule of memory tells whether an access
 * that begins there can meet a pending byte. Bit 0: the granule itself holds one; bits 1 to 4: the
 * head of the next one does, where an access of up to 8, 16, 32, 64 bytes may reach. Granules that
 * lie 4 GiB apart share a byte, which then speaks for all of them: it may say yes for nothing, and
 * never says no in error. (Four GiB, for then the index is cut out of an address by one 32-bit
 * move.) Eight bytes at any guard can be loaded. */
#define SHADOW_GRANULE_BITS 6
#define SHADOW_SPAN_BITS 32
#define SHADOW_GUARDS (1UL << (SHADOW_SPAN_BITS - SHADOW_GRANULE_BITS))
#define SHADOW_GUARD_REACH 64 /* accesses beyond that are not covered */
extern UChar shadow_guards[SHADOW_GUARDS + 7];

/* The bits of the guard that matter to an access of so many bytes. */
static inline UChar shadow_guard_mask(SizeT bytes)
{
    return bytes <= 1 ? 1 : bytes <= 8 ? 3 : bytes <= 16 ? 7 : bytes <= 32 ? 15 : 31;
}

static inline Bool shadow_guarded(Addr address, SizeT bytes)
{
    const UInt within = (UInt)address;
    return (shadow_guards[within >> SHADOW_GRANULE_BITS] & shadow_guard_mask(bytes)) != 0;
}

#endif
