/*
 * mg.c - the NAS benchmark MG, classes S and W: multigrid for a periodic Poisson equation.
 *
 * Each iteration is one V-cycle on grids of 2^k points a side and the residual after it. After the
 * specification (Bailey et al., report RNR-94-007) and the NumPy kernel ../npb/mg.py, with the
 * verification values of NPB 3.
 *
 * The checkpoint holds the iteration, the solution u and the residual r. Both arrays hold all
 * levels one behind the other, the finest first, each a cube with one layer of ghosts, and unused
 * elements at the end, since the benchmark estimates the size from above. A V-cycle starts the
 * coarse levels anew; of the finest residual it reads, before it is computed again, nothing with
 * an index 0.
 *
 * Tests: test_npb_c.py.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "checkpoint.h"
#include "randlc.h"

#if defined(NPB_CLASS_S)
enum { LEVELS = 5 };
#define NORM 0.5307707005734e-04
#elif defined(NPB_CLASS_W)
enum { LEVELS = 7 };
#define NORM 0.6467329375339e-05
#else
#error "define NPB_CLASS_S or NPB_CLASS_W"
#endif

enum {
    ITERATIONS = 4,
    CHARGES = 10, /* points of the right-hand side with the value 1, and with -1 */
    FINEST = LEVELS,
    EXTENT = 2 + (1 << LEVELS),
    FINE_ELEMENTS = EXTENT * EXTENT * EXTENT,
    /* The benchmark's estimate of the sum of all levels. */
    ELEMENTS = (FINE_ELEMENTS + EXTENT * EXTENT + 5 * EXTENT + 7 * LEVELS + 6) / 7 * 8
};

#define EPSILON 1e-8

/* Stencil weights by distance: centre, face, edge and corner of the 27-point cube. */
static const double OPERATOR[4] = {-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0};
static const double SMOOTHER[4] = {-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0.0};

static int it;
static double u[ELEMENTS], r[ELEMENTS];
static double v[FINE_ELEMENTS]; /* the right-hand side */

/* ------------------------------------------------------------------- levels */

static int extent_of(int level)
{
    return 2 + (1 << level);
}

static size_t elements_of(int level)
{
    size_t n = (size_t)extent_of(level);
    return n * n * n;
}

/* A level's cube in u or r. */
static double *cube_of(double *levels, int level)
{
    for (int finer = FINEST; finer > level; finer--) {
        levels += elements_of(finer);
    }
    return levels;
}

/* The row of a cube with n elements a side that begins at [i3][i2][0]. */
static double *row(double *cube, int n, int i3, int i2)
{
    return cube + ((size_t)i3 * (size_t)n + (size_t)i2) * (size_t)n;
}

static const double *const_row(const double *cube, int n, int i3, int i2)
{
    return cube + ((size_t)i3 * (size_t)n + (size_t)i2) * (size_t)n;
}

/* Ghosts from the opposite side: within rows, then whole rows, then whole planes, so that edges
 * and corners come along. */
static void fill_ghosts(double *cube, int n)
{
    size_t width = (size_t)n, plane = width * width;
    for (int i3 = 1; i3 < n - 1; i3++) {
        for (int i2 = 1; i2 < n - 1; i2++) {
            double *line = row(cube, n, i3, i2);
            line[0] = line[n - 2];
            line[n - 1] = line[1];
        }
        memcpy(row(cube, n, i3, 0), row(cube, n, i3, n - 2), width * sizeof(double));
        memcpy(row(cube, n, i3, n - 1), row(cube, n, i3, 1), width * sizeof(double));
    }
    memcpy(cube, row(cube, n, n - 2, 0), plane * sizeof(double));
    memcpy(row(cube, n, n - 1, 0), row(cube, n, 1, 0), plane * sizeof(double));
}

/* ----------------------------------------------------------------- stencils */

/* For a row, from element `first`: sums over the four nearest and the four diagonal rows around it.
 */
static void sum_around(const double *cube, int n, int i3, int i2, int first, double *nearest,
                       double *diagonal)
{
    const double *south = const_row(cube, n, i3, i2 - 1), *north = const_row(cube, n, i3, i2 + 1);
    const double *below = const_row(cube, n, i3 - 1, i2), *above = const_row(cube, n, i3 + 1, i2);
    for (int i = first; i < n; i++) {
        nearest[i] = south[i] + north[i] + below[i] + above[i];
        diagonal[i] = below[i - n] + below[i + n] + above[i - n] + above[i + n];
    }
}

/* result <- source - A solution; source may be the result. */
static void compute_residual(const double *solution, const double *source, double *result, int n)
{
    double nearest[EXTENT], diagonal[EXTENT];
    for (int i3 = 1; i3 < n - 1; i3++) {
        for (int i2 = 1; i2 < n - 1; i2++) {
            const double *own = const_row(solution, n, i3, i2);
            const double *given = const_row(source, n, i3, i2);
            double *out = row(result, n, i3, i2);
            sum_around(solution, n, i3, i2, 0, nearest, diagonal);
            for (int i = 1; i < n - 1; i++) {
                /* The weight of faces is zero. */
                out[i] = given[i] - OPERATOR[0] * own[i] -
                         OPERATOR[2] * (diagonal[i] + nearest[i - 1] + nearest[i + 1]) -
                         OPERATOR[3] * (diagonal[i - 1] + diagonal[i + 1]);
            }
        }
    }
    fill_ghosts(result, n);
}

/* solution <- solution + smoother of the residual */
static void smooth(const double *residual, double *solution, int n)
{
    double nearest[EXTENT], diagonal[EXTENT];
    for (int i3 = 1; i3 < n - 1; i3++) {
        for (int i2 = 1; i2 < n - 1; i2++) {
            const double *own = const_row(residual, n, i3, i2);
            double *out = row(solution, n, i3, i2);
            sum_around(residual, n, i3, i2, 0, nearest, diagonal);
            for (int i = 1; i < n - 1; i++) {
                /* The weight of corners is zero. */
                out[i] = out[i] + SMOOTHER[0] * own[i] +
                         SMOOTHER[1] * (own[i - 1] + own[i + 1] + nearest[i]) +
                         SMOOTHER[2] * (diagonal[i] + nearest[i - 1] + nearest[i + 1]);
            }
        }
    }
    fill_ghosts(solution, n);
}

/* Full weighting; coarse point j lies at fine point 2j, so lower ghosts are never looked at. */
static void restrict_residual(const double *fine, int fine_n, double *coarse, int n)
{
    double nearest[EXTENT], diagonal[EXTENT];
    for (int i3 = 1; i3 < n - 1; i3++) {
        for (int i2 = 1; i2 < n - 1; i2++) {
            const double *own = const_row(fine, fine_n, 2 * i3, 2 * i2);
            double *out = row(coarse, n, i3, i2);
            sum_around(fine, fine_n, 2 * i3, 2 * i2, 1, nearest, diagonal);
            for (int i1 = 1; i1 < n - 1; i1++) {
                int i = 2 * i1;
                out[i1] = 0.5 * own[i] + 0.25 * (own[i - 1] + own[i + 1] + nearest[i]) +
                          0.125 * (nearest[i - 1] + nearest[i + 1] + diagonal[i]) +
                          0.0625 * (diagonal[i - 1] + diagonal[i + 1]);
            }
        }
    }
    fill_ghosts(coarse, n);
}

/* Trilinear interpolation, added to the finer grid, ghosts included: fine point 2i takes coarse
 * point i, the point behind it the mean of coarse points i and i + 1. */
static void add_interpolated(const double *coarse, int n, double *fine, int fine_n)
{
    double sum[EXTENT];
    for (int i3 = 0; i3 < fine_n; i3++) {
        for (int i2 = 0; i2 < fine_n; i2++) {
            const int back = i3 / 2, front = (i3 + 1) / 2, low = i2 / 2, high = (i2 + 1) / 2;
            const double *corner[4] = {
                const_row(coarse, n, back, low), const_row(coarse, n, back, high),
                const_row(coarse, n, front, low), const_row(coarse, n, front, high)};
            double *out = row(fine, fine_n, i3, i2);
            for (int i = 0; i < n; i++) {
                sum[i] = 0.25 * (corner[0][i] + corner[1][i] + corner[2][i] + corner[3][i]);
            }
            for (int i = 0; i < n - 1; i++) {
                out[2 * i] += sum[i];
                out[2 * i + 1] += 0.5 * (sum[i] + sum[i + 1]);
            }
        }
    }
}

/* ------------------------------------------------------------------ V-cycle */

static void correct_level(int level)
{
    double *correction = cube_of(u, level), *residual = cube_of(r, level);
    int n = extent_of(level);
    add_interpolated(cube_of(u, level - 1), extent_of(level - 1), correction, n);
    compute_residual(correction, level == FINEST ? v : residual, residual, n);
    smooth(residual, correction, n);
}

static void clear_level(int level)
{
    memset(cube_of(u, level), 0, elements_of(level) * sizeof(double));
}

static void iterate(void)
{
    for (int level = FINEST - 1; level >= 1; level--) {
        restrict_residual(cube_of(r, level + 1), extent_of(level + 1), cube_of(r, level),
                          extent_of(level));
    }
    clear_level(1);
    smooth(cube_of(r, 1), cube_of(u, 1), extent_of(1));
    for (int level = 2; level < FINEST; level++) {
        clear_level(level);
        correct_level(level);
    }
    correct_level(FINEST);
    compute_residual(u, v, r, EXTENT);
}

/* ------------------------------------------------------------------- set-up */

typedef struct {
    double value;
    size_t place;
} Extreme;

/* Keeps `sorted`, which starts with the most extreme value, the ten largest times sign. */
static void keep_extreme(Extreme sorted[CHARGES], Extreme candidate, double sign)
{
    int position = CHARGES;
    while (position > 0 && sign * candidate.value > sign * sorted[position - 1].value) {
        if (position < CHARGES) {
            sorted[position] = sorted[position - 1];
        }
        position--;
    }
    if (position < CHARGES) {
        sorted[position] = candidate;
    }
}

/* 1 at the ten largest of the random numbers, -1 at the ten smallest, and 0 elsewhere. */
static void set_right_hand_side(void)
{
    Extreme largest[CHARGES], smallest[CHARGES];
    for (int c = 0; c < CHARGES; c++) {
        largest[c] = (Extreme){.value = 0.0};
        smallest[c] = (Extreme){.value = 1.0};
    }
    uint64_t state = RANDLC_SEED;
    for (int i3 = 1; i3 < EXTENT - 1; i3++) {
        for (int i2 = 1; i2 < EXTENT - 1; i2++) {
            size_t start = (size_t)(row(v, EXTENT, i3, i2) - v);
            for (int i1 = 1; i1 < EXTENT - 1; i1++) {
                Extreme candidate = {.value = randlc(&state), .place = start + (size_t)i1};
                keep_extreme(largest, candidate, 1.0);
                keep_extreme(smallest, candidate, -1.0);
            }
        }
    }
    for (int c = 0; c < CHARGES; c++) {
        v[largest[c].place] = 1.0;
        v[smallest[c].place] = -1.0;
    }
    fill_ghosts(v, EXTENT);
}

/* With u = 0 the residual is the right-hand side itself. */
static void start_anew(void)
{
    clear_level(FINEST);
    memcpy(r, v, sizeof(v));
}

static void set_up_problem(void)
{
    set_right_hand_side();
    /* As in the benchmark, which warms up with one iteration: it leaves stale coarse levels. */
    start_anew();
    iterate();
    start_anew();
}

static double norm_of_residual(void)
{
    const double points = (double)(EXTENT - 2) * (EXTENT - 2) * (EXTENT - 2);
    double sum = 0.0;
    for (int i3 = 1; i3 < EXTENT - 1; i3++) {
        for (int i2 = 1; i2 < EXTENT - 1; i2++) {
            const double *line = row(r, EXTENT, i3, i2);
            for (int i1 = 1; i1 < EXTENT - 1; i1++) {
                sum += line[i1] * line[i1];
            }
        }
    }
    return sqrt(sum / points);
}

int main(int argc, char **argv)
{
    static const Kernel kernel = {
        .name = "mg",
        .iterations = ITERATIONS,
        .variables = 3,
        .variable = {{&it, sizeof(it)}, {u, sizeof(u)}, {r, sizeof(r)}},
    };
    kernel_begin(&kernel, argc, argv);
    set_up_problem();
    it = 1;
    kernel_resume();
    for (; it <= ITERATIONS; it++) {
        kernel_checkpoint();
        iterate();
    }
    return kernel_end(kernel_check("norm", norm_of_residual(), NORM, EPSILON));
}
