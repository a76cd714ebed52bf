/* copy_rules.h - what an operation of Valgrind's intermediate code does to the bytes it is given.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Knows values byte by byte, as they are seen when a block is translated; nothing of the traced
 * program. Tests: tests/tracer/test_tracer_copies.py.
 */
#ifndef SCR_CRIT_TRACER_COPY_RULES_H
#define SCR_CRIT_TRACER_COPY_RULES_H

#include "tool.h"

#include <libvex_ir.h>

/* One byte of a value: computed, a constant, or a copy of what a slot (slots.h) stands for. */
typedef UInt byte_source;
#define BYTE_COMPUTED 0u
#define BYTE_CONSTANT (1u << 31) /* | the constant */
#define BYTE_FROM (1u << 30)     /* | slot: computed from nothing but what stands there */

enum { VALUE_BYTES = 32, OPERANDS = 4 };

typedef struct {
    UInt bytes; /* 0 for a single bit, which is always computed */
    byte_source byte[VALUE_BYTES];
} value;

static inline Bool byte_is_constant(byte_source source)
{
    return (source & BYTE_CONSTANT) != 0;
}
static inline Bool byte_is_slot(byte_source source)
{
    return source != BYTE_COMPUTED && !byte_is_constant(source);
}

/* Bytes of a value of this type. */
UInt type_bytes(IRType type);
value value_computed(IRType type);
value value_constant(const IRConst *constant);

typedef enum { SHIFT_NONE, SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_SIGNED } shift_kind;
/* How an operation shifts, in lanes of so many bytes. */
shift_kind shift_of(IROp operation, UInt *lane);

typedef enum { LOGIC_NONE, LOGIC_AND, LOGIC_OR, LOGIC_XOR } logic_kind;
logic_kind logic_of(IROp operation);

/* Result of an operation; used[k] gets the bytes of operand k that it does not merely copy, one bit
 * a byte. An operation that no rule describes uses all of them. */
value value_of_operation(IROp operation, IRType type, const value *operands, UInt count,
                         UInt used[OPERANDS]);
/* What a conversion of a guarded load makes of the bytes loaded. */
value value_widened(const value *narrow, IRType type, Bool by_sign);

#endif
