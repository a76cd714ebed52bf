/*
 * bt.c - the NAS benchmark BT, classes S and W: Navier-Stokes by block tridiagonal line solves.
 *
 * Each step factors an implicit scheme into three sweeps along x, y and z, each of which solves a
 * block tridiagonal system of 5x5 blocks for every line. After the specification (Bailey et al.,
 * report RNR-94-007) and the NumPy kernel ../npb/bt.py, with the verification values of NPB 3.
 *
 * The checkpoint holds the step and u. Its grid has an even number of points, its array odd
 * extents in j and i: what lies between is never accessed.
 *
 * Tests: test_npb_c.py.
 */
#include <string.h>

#include "checkpoint.h"
#include "navier_stokes.h"

#ifdef NPB_CLASS_S
enum { STEPS = 60 };
#define TIME_STEP 0.010
static const double RESIDUAL[COMPONENTS] = {1.7034283709541311e-01, 1.2975252070034097e-02,
                                            3.2527926989486055e-02, 2.6436421275166801e-02,
                                            1.9211784131744430e-01};
static const double ERROR[COMPONENTS] = {4.9976913345811579e-04, 4.5195666782961927e-05,
                                         7.3973765172921357e-05, 7.3821238632439731e-05,
                                         8.9269630987491446e-04};
#else
enum { STEPS = 200 };
#define TIME_STEP 0.0008
static const double RESIDUAL[COMPONENTS] = {0.1125590409344e03, 0.1180007595731e02,
                                            0.2710329767846e02, 0.2469174937669e02,
                                            0.2638427874317e03};
static const double ERROR[COMPONENTS] = {0.4419655736008e01, 0.4638531260002e00, 0.1011551749967e01,
                                         0.9235878729944e00, 0.1018045837718e02};
#endif

static int step;

typedef double Block[COMPONENTS][COMPONENTS];

/* Jacobians of the convective flux and of the viscous terms at each point of a line. */
static Block convective[POINTS], viscous[POINTS];

/* ---------------------------------------------------------------- Jacobians */

static void set_convective(int direction, const Gas *gas, Block jacobian)
{
    const double normal = gas->velocity[direction];
    memset(jacobian, 0, sizeof(Block));
    jacobian[0][1 + direction] = 1.0;
    for (int a = 0; a < 3; a++) {
        const double *velocity = gas->velocity;
        jacobian[1 + a][0] = -velocity[a] * normal;
        jacobian[1 + a][1 + a] += normal;
        jacobian[1 + a][1 + direction] += velocity[a];
        jacobian[1 + direction][1 + a] -= C2 * velocity[a];
        jacobian[4][1 + a] = -C2 * velocity[a] * normal;
    }
    jacobian[1 + direction][0] += C2 * gas->kinetic;
    jacobian[1 + direction][4] = C2;
    jacobian[4][0] = (2.0 * C2 * gas->kinetic - C1 * gas->energy) * normal;
    jacobian[4][1 + direction] += C1 * gas->energy - C2 * gas->kinetic;
    jacobian[4][4] = C1 * normal;
}

static void set_viscous(int direction, const Gas *gas, Block jacobian)
{
    const double artificial = ARTIFICIAL_DIFFUSION[direction];
    double dissipated = 0.0;
    memset(jacobian, 0, sizeof(Block));
    for (int m = 0; m < COMPONENTS; m++) {
        jacobian[m][m] = artificial;
    }
    for (int a = 0; a < 3; a++) {
        const double factor = C3C4 * (a == direction ? NORMAL_VISCOSITY : 1.0);
        const double weight = factor - C1345, velocity = gas->velocity[a];
        jacobian[1 + a][0] = -factor * velocity * gas->inverse;
        jacobian[1 + a][1 + a] += factor * gas->inverse;
        jacobian[4][1 + a] = weight * velocity * gas->inverse;
        dissipated += weight * velocity * velocity;
    }
    jacobian[4][0] = -(dissipated + C1345 * gas->energy) * gas->inverse;
    jacobian[4][4] += C1345 * gas->inverse;
}

static void set_jacobians(int direction, Line line)
{
    for (int p = 0; p < POINTS; p++) {
        const Gas gas = gas_of(at(u, line, p));
        set_convective(direction, &gas, convective[p]);
        set_viscous(direction, &gas, viscous[p]);
    }
}

/* -------------------------------------------------------------- line solves */

/* block <- identity, columns <- block^-1 columns, value <- block^-1 value; no pivoting. */
static void eliminate_block(Block block, Block columns, double value[COMPONENTS])
{
    for (int p = 0; p < COMPONENTS; p++) {
        const double inverse = 1.0 / block[p][p];
        for (int n = 0; n < COMPONENTS; n++) {
            block[p][n] *= inverse;
            columns[p][n] *= inverse;
        }
        value[p] *= inverse;
        for (int m = 0; m < COMPONENTS; m++) {
            if (m == p) {
                continue;
            }
            const double factor = block[m][p];
            for (int n = 0; n < COMPONENTS; n++) {
                block[m][n] -= factor * block[p][n];
                columns[m][n] -= factor * columns[p][n];
            }
            value[m] -= factor * value[p];
        }
    }
}

/* matrix <- matrix + factor times other, value <- value + factor times vector. */
static void add_product(Block factor, Block other, const double *vector, Block matrix,
                        double *value)
{
    for (int m = 0; m < COMPONENTS; m++) {
        for (int p = 0; p < COMPONENTS; p++) {
            for (int n = 0; n < COMPONENTS; n++) {
                matrix[m][n] += factor[m][p] * other[p][n];
            }
            value[m] += factor[m][p] * vector[p];
        }
    }
}

/* The blocks of row p: the diagonal, what lies above it and, negated, what lies below it. */
static void set_row(int p, Block negated_lower, Block diagonal, Block upper)
{
    const double first = TIME_STEP * 0.5 * LAST, second = TIME_STEP * LAST * LAST;
    for (int m = 0; m < COMPONENTS; m++) {
        for (int n = 0; n < COMPONENTS; n++) {
            negated_lower[m][n] = first * convective[p - 1][m][n] + second * viscous[p - 1][m][n];
            diagonal[m][n] = 2.0 * second * viscous[p][m][n] + (m == n ? 1.0 : 0.0);
            upper[m][n] = first * convective[p + 1][m][n] - second * viscous[p + 1][m][n];
        }
    }
}

/* The update vanishes on the faces, so that a line's system has its interior points only. */
static void solve_line(int direction, Line line)
{
    static Block upper[POINTS];
    set_jacobians(direction, line);
    for (int p = 1; p < LAST; p++) {
        Block negated_lower, diagonal;
        set_row(p, negated_lower, diagonal, upper[p]);
        if (p > 1) {
            add_product(negated_lower, upper[p - 1], at(rhs, line, p - 1), diagonal,
                        at(rhs, line, p));
        }
        eliminate_block(diagonal, upper[p], at(rhs, line, p));
    }
    for (int p = LAST - 2; p >= 1; p--) {
        double *value = at(rhs, line, p);
        const double *next = at(rhs, line, p + 1);
        for (int m = 0; m < COMPONENTS; m++) {
            for (int n = 0; n < COMPONENTS; n++) {
                value[m] -= upper[p][m][n] * next[n];
            }
        }
    }
}

static void take_step(void)
{
    compute_rhs();
    scale_rhs(TIME_STEP);
    for (int direction = 0; direction < 3; direction++) {
        for (int b = 1; b < LAST; b++) {
            for (int a = 1; a < LAST; a++) {
                solve_line(direction, line_in(direction, a, b));
            }
        }
    }
    add_update();
}

int main(int argc, char **argv)
{
    static const Kernel kernel = {
        .name = "bt",
        .iterations = STEPS,
        .variables = 2,
        .variable = {{&step, sizeof(step)}, {u, sizeof(u)}},
    };
    kernel_begin(&kernel, argc, argv);
    set_up_problem();
    step = 1;
    kernel_resume();
    for (; step <= STEPS; step++) {
        kernel_checkpoint();
        take_step();
    }
    return kernel_end(norms_verified(RESIDUAL, ERROR));
}
