/*
 * ft.c - the NAS benchmark FT, classes S and W: a diffusion equation by 3-D Fourier transforms.
 *
 * Each iteration multiplies the spectrum by a Gaussian factor, transforms it back and sums 1024
 * elements of the result. After the specification (Bailey et al., report RNR-94-007) and the NumPy
 * kernel ../npb/ft.py, with the verification values of NPB 3.
 *
 * The checkpoint holds the iteration, the spectrum y and the checksums. Arrays have, as in the
 * benchmark, one element of padding in i, which is never accessed; nor is sums[0]. Checksums of
 * iterations to come are overwritten before they are read.
 *
 * Tests: test_npb_c.py.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint.h"
#include "randlc.h"

typedef struct {
    double real, imag;
} dcomplex;

enum { ITERATIONS = 6 };

#if defined(NPB_CLASS_S)
enum { NX = 64, NY = 64, NZ = 64 };
static const dcomplex REFERENCE[ITERATIONS] = {
    {5.546087004964e02, 4.845363331978e02}, {5.546385409189e02, 4.865304269511e02},
    {5.546148406171e02, 4.883910722336e02}, {5.545423607415e02, 4.901273169046e02},
    {5.544255039624e02, 4.917475857993e02}, {5.542683411902e02, 4.932597244941e02},
};
#elif defined(NPB_CLASS_W)
enum { NX = 128, NY = 128, NZ = 32 };
static const dcomplex REFERENCE[ITERATIONS] = {
    {5.673612178944e02, 5.293246849175e02}, {5.631436885271e02, 5.282149986629e02},
    {5.594024089970e02, 5.270996558037e02}, {5.560698047020e02, 5.260027904925e02},
    {5.530898991250e02, 5.249400845633e02}, {5.504159734538e02, 5.239212247086e02},
};
#else
#error "define NPB_CLASS_S or NPB_CLASS_W"
#endif

enum { LONGEST = NX > NY ? (NX > NZ ? NX : NZ) : (NY > NZ ? NY : NZ), CHECKSUM_TERMS = 1024 };
enum { TO_SPECTRUM = 1, FROM_SPECTRUM = -1 }; /* signs of the exponent */

#define EPSILON 1e-12
#define DIFFUSIVITY 1e-6
#define PI 3.14159265358979323846

static int kt;
static dcomplex sums[ITERATIONS + 1];
static dcomplex y[NZ][NY][NX + 1];   /* the spectrum */
static dcomplex xnt[NZ][NY][NX + 1]; /* the field in space */
static double twiddle[NZ][NY][NX + 1];

/* --------------------------------------------------------------- transforms */

/* exp(2 pi i k / LONGEST); shorter lines take every other one, and so on. */
static dcomplex roots[LONGEST];

static void set_roots(void)
{
    for (int k = 0; k < LONGEST; k++) {
        roots[k] = (dcomplex){cos(2.0 * PI * k / LONGEST), sin(2.0 * PI * k / LONGEST)};
    }
}

static dcomplex times(dcomplex left, dcomplex right)
{
    return (dcomplex){left.real * right.real - left.imag * right.imag,
                      left.real * right.imag + left.imag * right.real};
}

/* One stage of Stockham's radix-2 algorithm: `blocks` interleaved transforms of 2 * half points
 * each become twice as many of `half` points. */
static void halve(int sign, int half, int blocks, const dcomplex *from, dcomplex *to)
{
    for (int k = 0; k < half; k++) {
        dcomplex root = roots[k * (LONGEST / (2 * half))];
        root.imag *= sign;
        for (int b = 0; b < blocks; b++) {
            dcomplex low = from[k * blocks + b], high = from[(k + half) * blocks + b];
            dcomplex difference = {low.real - high.real, low.imag - high.imag};
            to[2 * k * blocks + b] = (dcomplex){low.real + high.real, low.imag + high.imag};
            to[(2 * k + 1) * blocks + b] = times(difference, root);
        }
    }
}

/* Transforms a line of n points, a power of two, in place; not normalised. */
static void transform_line(int sign, int n, dcomplex line[])
{
    dcomplex work[LONGEST], *from = line, *to = work;
    for (int half = n / 2, blocks = 1; half >= 1; half /= 2, blocks *= 2) {
        halve(sign, half, blocks, from, to);
        dcomplex *swap = from;
        from = to;
        to = swap;
    }
    if (from != line) {
        memcpy(line, from, (size_t)n * sizeof(*line));
    }
}

/* A line of n points with a stride, by way of a buffer: neighbours belong together in the cache. */
static void transform_strided(int sign, int n, size_t stride, dcomplex *first)
{
    dcomplex line[LONGEST];
    for (int i = 0; i < n; i++) {
        line[i] = first[(size_t)i * stride];
    }
    transform_line(sign, n, line);
    for (int i = 0; i < n; i++) {
        first[(size_t)i * stride] = line[i];
    }
}

static void transform(int sign, dcomplex field[NZ][NY][NX + 1])
{
    const size_t row = NX + 1, plane = NY * row;
    for (int k = 0; k < NZ; k++) {
        for (int j = 0; j < NY; j++) {
            transform_line(sign, NX, field[k][j]);
        }
        for (int i = 0; i < NX; i++) {
            transform_strided(sign, NY, row, &field[k][0][i]);
        }
    }
    for (int j = 0; j < NY; j++) {
        for (int i = 0; i < NX; i++) {
            transform_strided(sign, NZ, plane, &field[0][j][i]);
        }
    }
}

/* ------------------------------------------------------------------- set-up */

static void set_initial_spectrum(void)
{
    uint64_t state = RANDLC_SEED;
    for (int k = 0; k < NZ; k++) {
        for (int j = 0; j < NY; j++) {
            for (int i = 0; i < NX; i++) {
                y[k][j][i].real = randlc(&state);
                y[k][j][i].imag = randlc(&state);
            }
        }
    }
    transform(TO_SPECTRUM, y);
}

/* The square of the wave number at an index: the upper half counts down to negative ones. */
static double squared_wave_number(int index, int n)
{
    double number = index < n / 2 ? index : index - n;
    return number * number;
}

static void set_twiddle(void)
{
    for (int k = 0; k < NZ; k++) {
        for (int j = 0; j < NY; j++) {
            for (int i = 0; i < NX; i++) {
                double squared = squared_wave_number(k, NZ) + squared_wave_number(j, NY) +
                                 squared_wave_number(i, NX);
                twiddle[k][j][i] = exp(-4.0 * DIFFUSIVITY * PI * PI * squared);
            }
        }
    }
}

/* ---------------------------------------------------------------- iteration */

static void evolve(void)
{
    for (int k = 0; k < NZ; k++) {
        for (int j = 0; j < NY; j++) {
            for (int i = 0; i < NX; i++) {
                y[k][j][i].real *= twiddle[k][j][i];
                y[k][j][i].imag *= twiddle[k][j][i];
                xnt[k][j][i] = y[k][j][i];
            }
        }
    }
}

static dcomplex checksum(void)
{
    const double points = (double)NX * NY * NZ;
    dcomplex sum = {0.0, 0.0};
    for (int term = 1; term <= CHECKSUM_TERMS; term++) {
        dcomplex value = xnt[5 * term % NZ][3 * term % NY][term % NX];
        sum.real += value.real;
        sum.imag += value.imag;
    }
    return (dcomplex){sum.real / points, sum.imag / points};
}

static bool verified(void)
{
    bool close = true;
    for (int i = 1; i <= ITERATIONS; i++) {
        char what[32];
        snprintf(what, sizeof(what), "sums[%d].real", i);
        close = kernel_check(what, sums[i].real, REFERENCE[i - 1].real, EPSILON) && close;
        snprintf(what, sizeof(what), "sums[%d].imag", i);
        close = kernel_check(what, sums[i].imag, REFERENCE[i - 1].imag, EPSILON) && close;
    }
    return close;
}

int main(int argc, char **argv)
{
    static const Kernel kernel = {
        .name = "ft",
        .iterations = ITERATIONS,
        .variables = 3,
        .variable = {{&kt, sizeof(kt)}, {y, sizeof(y)}, {sums, sizeof(sums)}},
    };
    kernel_begin(&kernel, argc, argv);
    set_roots();
    set_twiddle();
    set_initial_spectrum();
    kt = 1;
    kernel_resume();
    for (; kt <= ITERATIONS; kt++) {
        kernel_checkpoint();
        evolve();
        transform(FROM_SPECTRUM, xnt);
        sums[kt] = checksum();
    }
    return kernel_end(verified());
}
