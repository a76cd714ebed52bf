/* fuzz_plan.c - the readers of plans on arbitrary bytes; a libFuzzer target.
 *
 * Each input is tried as it is and with its checksums made right, else no mutation would get past
 * them. No input may crash, hang, or read outside; and what is accepted must agree with itself.
 * With clang: -fsanitize=fuzzer,address,undefined. Without: fuzz_main.c is a driver. Run by
 * tests/test_core_fuzz.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan_builder.h"
#include "plan_exercise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *sealed = malloc(size ? size : 1);

    exercise_plan(data, size);
    if (size > 0)
        memcpy(sealed, data, size);
    builder_seal(sealed, size);
    exercise_plan(sealed, size);
    free(sealed);
    return 0;
}
