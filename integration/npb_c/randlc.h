/*
 * randlc.h - the random numbers of the NAS Parallel Benchmarks: x <- 5^13 x mod 2^46.
 *
 * Bailey et al., report RNR-94-007, computes in halves of 23 bits because it has only doubles;
 * 64-bit integers wrap modulo 2^64, a multiple of 2^46, so they multiply exactly.
 *
 * Tests: the kernels' verification.
 */
#ifndef NPB_RANDLC_H
#define NPB_RANDLC_H

#include <stdint.h>

#define RANDLC_SEED UINT64_C(314159265)

/* Steps *state and returns it divided by 2^46: uniform in (0, 1). */
static inline double randlc(uint64_t *state)
{
    *state = *state * UINT64_C(1220703125) & ((UINT64_C(1) << 46) - 1);
    return (double)*state * 0x1p-46;
}

#endif
