/* copy_operations.h - operations whose effect on copies depends on values at run time, and all
 * others.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_COPY_OPERATIONS_H
#define SCR_CRIT_TRACER_COPY_OPERATIONS_H

#include "copy_code.h"

/* The result of an operation; calls are put into the block where rules do not suffice. */
value code_operation(copy_code *code, IRType type, IROp op, IRExpr *const *atoms, UInt count);

#endif
