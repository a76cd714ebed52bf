/*
 * cg.c - the NAS benchmark CG, classes S and W: the smallest eigenvalue of a random sparse matrix.
 *
 * Inverse power iteration: each iteration solves A z = x by 25 steps of the conjugate gradient
 * method and takes the normalised z as the next x. After the specification (Bailey et al., report
 * RNR-94-007) and the NumPy kernel ../npb/cg.py, with the verification values of NPB 3.
 *
 * The checkpoint holds the iteration and x, which is two elements longer than the matrix has rows,
 * as in the benchmark. The first of them is copied into the work vectors, where nothing looks at
 * it: first access calls it read, although nothing depends on it. The last is never accessed.
 *
 * Tests: test_npb_c.py.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "checkpoint.h"
#include "randlc.h"

#if defined(NPB_CLASS_S)
enum { NA = 1400, NONZEROS = 7 };
#define SHIFT 10.0
#define ZETA 8.5971775078648
#elif defined(NPB_CLASS_W)
enum { NA = 7000, NONZEROS = 8 };
#define SHIFT 12.0
#define ZETA 10.362595087124
#else
#error "define NPB_CLASS_S or NPB_CLASS_W"
#endif

enum {
    ITERATIONS = 15,
    CONJUGATE_STEPS = 25,
    IN_VECTOR = NONZEROS + 1, /* of a generating vector, its own row's element included */
    NZ = NA * IN_VECTOR * IN_VECTOR
};

#define EPSILON 1e-10
#define CONDITION                                                                                  \
    0.1 /* smallest weight of the rank-one terms, and what is added to the diagonal                \
         */

static int it;
static double x[NA + 2], z[NA + 2], p[NA + 2], q[NA + 2], r[NA + 2];

/* The matrix by rows: a[rowstr[i]] to a[rowstr[i + 1] - 1], in columns colidx. */
static double a[NZ];
static int colidx[NZ], rowstr[NA + 1];

/* ------------------------------------------------------------------- matrix */

/* A sparse vector: the matrix is a weighted sum of their outer products. */
typedef struct {
    int elements;
    int column[IN_VECTOR];
    double value[IN_VECTOR];
} Sparse;

static Sparse generating[NA];

static int find_column(const Sparse *vector, int column)
{
    int place = 0;
    while (place < vector->elements && vector->column[place] != column) {
        place++;
    }
    return place;
}

/* Random elements in different random columns, and 0.5 in its own. */
static void generate_vector(int own, uint64_t *state, Sparse *vector)
{
    /* A power of two: every integer below it comes from the same number of random states. */
    int range = 1;
    while (range < NA) {
        range *= 2;
    }
    vector->elements = 0;
    while (vector->elements < NONZEROS) {
        double value = randlc(state);
        int column = (int)(range * randlc(state));
        if (column < NA && find_column(vector, column) == vector->elements) {
            vector->column[vector->elements] = column;
            vector->value[vector->elements++] = value;
        }
    }
    int place = find_column(vector, own);
    vector->column[place] = own;
    vector->value[place] = 0.5;
    vector->elements += place == vector->elements;
}

/* Adds to the element of a row; rows have room for all their terms, and `used` elements so far. */
static void add_element(int row, int column, double value, int used[NA])
{
    int k = rowstr[row], end = rowstr[row] + used[row];
    while (k < end && colidx[k] != column) {
        k++;
    }
    if (k == end) {
        colidx[k] = column;
        used[row]++;
    }
    a[k] += value;
}

static void add_outer_product(int own, double weight, int used[NA])
{
    const Sparse *vector = &generating[own];
    for (int m = 0; m < vector->elements; m++) {
        for (int n = 0; n < vector->elements; n++) {
            double value = weight * vector->value[m] * vector->value[n];
            if (vector->column[m] == own && vector->column[n] == own) {
                value += CONDITION - SHIFT;
            }
            add_element(vector->column[m], vector->column[n], value, used);
        }
    }
}

/* Closes the gaps that rows leave whose elements have several terms. */
static void compact_rows(const int used[NA])
{
    int next = 0;
    for (int row = 0; row < NA; row++) {
        int start = rowstr[row];
        rowstr[row] = next;
        for (int k = start; k < start + used[row]; k++, next++) {
            a[next] = a[k];
            colidx[next] = colidx[k];
        }
    }
    rowstr[NA] = next;
}

static void make_matrix(void)
{
    static int used[NA], room[NA];
    uint64_t state = RANDLC_SEED;
    randlc(&state); /* The benchmark draws one number before it makes the matrix. */
    for (int i = 0; i < NA; i++) {
        generate_vector(i, &state, &generating[i]);
        for (int m = 0; m < generating[i].elements; m++) {
            room[generating[i].column[m]] += generating[i].elements;
        }
    }
    for (int row = 0; row < NA; row++) {
        rowstr[row + 1] = rowstr[row] + room[row];
    }
    const double ratio = pow(CONDITION, 1.0 / NA);
    double weight = 1.0;
    for (int i = 0; i < NA; i++) {
        add_outer_product(i, weight, used);
        weight *= ratio;
    }
    compact_rows(used);
}

/* ---------------------------------------------------------------- iteration */

static double dot(const double left[], const double right[])
{
    double sum = 0.0;
    for (int j = 0; j < NA; j++) {
        sum += left[j] * right[j];
    }
    return sum;
}

static void multiply(const double vector[], double product[])
{
    for (int j = 0; j < NA; j++) {
        double sum = 0.0;
        for (int k = rowstr[j]; k < rowstr[j + 1]; k++) {
            sum += a[k] * vector[colidx[k]];
        }
        product[j] = sum;
    }
}

/* z <- approximate solution of A z = x. */
static void solve(void)
{
    /* The benchmark takes one element more along than the matrix has rows. */
    for (int j = 0; j < NA + 1; j++) {
        q[j] = 0.0;
        z[j] = 0.0;
        r[j] = x[j];
        p[j] = r[j];
    }
    double rho = dot(r, r);
    for (int step = 0; step < CONJUGATE_STEPS; step++) {
        multiply(p, q);
        const double alpha = rho / dot(p, q), previous = rho;
        for (int j = 0; j < NA; j++) {
            z[j] += alpha * p[j];
            r[j] -= alpha * q[j];
        }
        rho = dot(r, r);
        for (int j = 0; j < NA; j++) {
            p[j] = r[j] + rho / previous * p[j];
        }
    }
}

/* One iteration; returns the estimate that belongs to the x it started from. */
static double iterate(void)
{
    solve();
    const double zeta = SHIFT + 1.0 / dot(x, z), scale = 1.0 / sqrt(dot(z, z));
    for (int j = 0; j < NA; j++) {
        x[j] = scale * z[j];
    }
    return zeta;
}

int main(int argc, char **argv)
{
    static const Kernel kernel = {
        .name = "cg",
        .iterations = ITERATIONS,
        .variables = 2,
        .variable = {{&it, sizeof(it)}, {x, sizeof(x)}},
    };
    kernel_begin(&kernel, argc, argv);
    make_matrix();
    for (int j = 0; j < NA + 1; j++) {
        x[j] = 1.0;
    }
    it = 1;
    kernel_resume();
    double zeta = 0.0;
    for (; it <= ITERATIONS; it++) {
        kernel_checkpoint();
        zeta = iterate();
    }
    return kernel_end(kernel_check("zeta", zeta, ZETA, EPSILON));
}
