/* navier_stokes.c - see navier_stokes.h. */
#include "navier_stokes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint.h"

#define EPSILON 1e-8 /* largest relative deviation that the benchmark accepts */

Grid u, rhs;
static Grid forcing;

const double ARTIFICIAL_DIFFUSION[3] = {0.75, 0.75, 1.0};

/* Exact solution: the constants, then for each power 1 to 4 the factors of x, y and z. */
static const double EXACT[13][COMPONENTS] = {
    {2.0, 1.0, 2.0, 2.0, 5.0},      {0.0, 0.0, 2.0, 2.0, 4.0},      {0.0, 0.0, 0.0, 0.0, 3.0},
    {4.0, 0.0, 0.0, 0.0, 2.0},      {5.0, 1.0, 0.0, 0.0, 0.1},      {3.0, 2.0, 2.0, 2.0, 0.4},
    {0.5, 3.0, 3.0, 3.0, 0.3},      {0.02, 0.01, 0.04, 0.03, 0.05}, {0.01, 0.03, 0.03, 0.05, 0.04},
    {0.03, 0.02, 0.05, 0.04, 0.03}, {0.5, 0.4, 0.3, 0.2, 0.1},      {0.4, 0.3, 0.5, 0.1, 0.3},
    {0.3, 0.5, 0.4, 0.3, 0.2},
};

Gas gas_of(const double *conserved)
{
    Gas gas = {.inverse = 1.0 / conserved[0]};
    double squares = 0.0;
    for (int a = 0; a < 3; a++) {
        gas.velocity[a] = conserved[1 + a] * gas.inverse;
        squares += gas.velocity[a] * gas.velocity[a];
    }
    gas.kinetic = 0.5 * squares;
    gas.energy = conserved[4] * gas.inverse;
    return gas;
}

Line line_in(int direction, int a, int b)
{
    const size_t stride[3] = {COMPONENTS, COMPONENTS * PADDED, COMPONENTS * PADDED * PADDED};
    int first = direction == 0 ? 1 : 0, second = direction == 2 ? 1 : 2;
    return (Line){.start = (size_t)a * stride[first] + (size_t)b * stride[second],
                  .stride = stride[direction]};
}

/* ------------------------------------------------------- exact and initial */

static void exact_solution(const double point[3], double value[COMPONENTS])
{
    for (int m = 0; m < COMPONENTS; m++) {
        value[m] = EXACT[0][m];
        for (int a = 0; a < 3; a++) {
            const double x = point[a];
            value[m] += x * (EXACT[1 + a][m] +
                             x * (EXACT[4 + a][m] + x * (EXACT[7 + a][m] + x * EXACT[10 + a][m])));
        }
    }
}

static void exact_at(int k, int j, int i, double value[COMPONENTS])
{
    exact_solution((double[3]){(double)i / LAST, (double)j / LAST, (double)k / LAST}, value);
}

/* The transfinite interpolation of the exact solution on the faces. */
static void interpolate(int k, int j, int i, double value[COMPONENTS])
{
    const double point[3] = {(double)i / LAST, (double)j / LAST, (double)k / LAST};
    double product[COMPONENTS] = {1.0, 1.0, 1.0, 1.0, 1.0};
    for (int a = 0; a < 3; a++) {
        double low[COMPONENTS], high[COMPONENTS], end[3];
        memcpy(end, point, sizeof(end));
        end[a] = 0.0;
        exact_solution(end, low);
        end[a] = 1.0;
        exact_solution(end, high);
        for (int m = 0; m < COMPONENTS; m++) {
            product[m] *= 1.0 - (point[a] * high[m] + (1.0 - point[a]) * low[m]);
        }
    }
    for (int m = 0; m < COMPONENTS; m++) {
        value[m] = 1.0 - product[m];
    }
}

static bool on_face(int k, int j, int i)
{
    return k == 0 || j == 0 || i == 0 || k == LAST || j == LAST || i == LAST;
}

static void fill_exact(void)
{
    for (int k = 0; k < POINTS; k++) {
        for (int j = 0; j < POINTS; j++) {
            for (int i = 0; i < POINTS; i++) {
                exact_at(k, j, i, u[k][j][i]);
            }
        }
    }
}

static void fill_initial(void)
{
    for (int k = 0; k < POINTS; k++) {
        for (int j = 0; j < POINTS; j++) {
            for (int i = 0; i < POINTS; i++) {
                if (!on_face(k, j, i)) {
                    interpolate(k, j, i, u[k][j][i]);
                }
            }
        }
    }
}

void set_up_problem(void)
{
    /* With forcing still zero, rhs of the exact solution is what the forcing has to cancel. */
    fill_exact();
    compute_rhs();
    scale_rhs(-1.0);
    memcpy(forcing, rhs, sizeof(forcing));
    fill_initial();
}

/* -------------------------------------------------------- spatial operator */

/* Along one line: the convective flux, and what is differenced twice. */
typedef struct {
    double flux[POINTS][COMPONENTS], diffused[POINTS][COMPONENTS];
} Terms;

static void terms_at(int direction, const double *conserved, double flux[COMPONENTS],
                     double diffused[COMPONENTS])
{
    const double scale = (double)LAST * LAST;
    const double viscosity = C3C4 * scale, artificial = ARTIFICIAL_DIFFUSION[direction] * scale;
    const Gas gas = gas_of(conserved);
    const double normal = gas.velocity[direction];
    const double pressure = C2 * (conserved[4] - conserved[0] * gas.kinetic);

    flux[0] = conserved[0] * normal;
    diffused[0] = artificial * conserved[0];
    for (int a = 0; a < 3; a++) {
        double factor = a == direction ? NORMAL_VISCOSITY : 1.0;
        flux[1 + a] = conserved[1 + a] * normal;
        diffused[1 + a] = artificial * conserved[1 + a] + viscosity * factor * gas.velocity[a];
    }
    flux[1 + direction] += pressure;
    flux[4] = (conserved[4] + pressure) * normal;
    diffused[4] =
        artificial * conserved[4] +
        viscosity * ((1.0 - C1C5) * gas.kinetic + normal * normal / 6.0 + C1C5 * gas.energy);
}

/* Fourth difference of component m; beside a face the stencils are one-sided, so that it never
 * looks at the faces themselves. */
static double fourth_difference(Line line, int point, int m)
{
    double weight = point == 1 || point == LAST - 1 ? 5.0 : 6.0;
    double sum = weight * at(u, line, point)[m];
    if (point > 1) {
        sum -= 4.0 * at(u, line, point - 1)[m];
    }
    if (point > 2) {
        sum += at(u, line, point - 2)[m];
    }
    if (point < LAST - 1) {
        sum -= 4.0 * at(u, line, point + 1)[m];
    }
    if (point < LAST - 2) {
        sum += at(u, line, point + 2)[m];
    }
    return sum;
}

static void add_line(int direction, Line line)
{
    Terms terms;
    for (int p = 0; p < POINTS; p++) {
        terms_at(direction, at(u, line, p), terms.flux[p], terms.diffused[p]);
    }
    for (int p = 1; p < LAST; p++) {
        double *sum = at(rhs, line, p);
        for (int m = 0; m < COMPONENTS; m++) {
            sum[m] +=
                -0.5 * LAST * (terms.flux[p + 1][m] - terms.flux[p - 1][m]) +
                (terms.diffused[p + 1][m] - 2.0 * terms.diffused[p][m] + terms.diffused[p - 1][m]) -
                DISSIPATION * fourth_difference(line, p, m);
        }
    }
}

void compute_rhs(void)
{
    memcpy(rhs, forcing, sizeof(rhs));
    for (int direction = 0; direction < 3; direction++) {
        for (int b = 1; b < LAST; b++) {
            for (int a = 1; a < LAST; a++) {
                add_line(direction, line_in(direction, a, b));
            }
        }
    }
}

/* ------------------------------------------------------------------ updates */

void scale_rhs(double factor)
{
    for (int k = 1; k < LAST; k++) {
        for (int j = 1; j < LAST; j++) {
            for (int i = 1; i < LAST; i++) {
                for (int m = 0; m < COMPONENTS; m++) {
                    rhs[k][j][i][m] *= factor;
                }
            }
        }
    }
}

void add_update(void)
{
    for (int k = 1; k < LAST; k++) {
        for (int j = 1; j < LAST; j++) {
            for (int i = 1; i < LAST; i++) {
                for (int m = 0; m < COMPONENTS; m++) {
                    u[k][j][i][m] += rhs[k][j][i][m];
                }
            }
        }
    }
}

/* ------------------------------------------------------------- verification */

/* The error's norm takes in the whole grid; the residual vanishes on the faces. */
static void sum_squares(double residual[COMPONENTS], double error[COMPONENTS])
{
    for (int k = 0; k < POINTS; k++) {
        for (int j = 0; j < POINTS; j++) {
            for (int i = 0; i < POINTS; i++) {
                double exact[COMPONENTS];
                exact_at(k, j, i, exact);
                for (int m = 0; m < COMPONENTS; m++) {
                    double difference = u[k][j][i][m] - exact[m];
                    error[m] += difference * difference;
                    residual[m] += rhs[k][j][i][m] * rhs[k][j][i][m];
                }
            }
        }
    }
}

static bool compare_norms(const char *name, const double sum[COMPONENTS],
                          const double reference[COMPONENTS])
{
    const double points = (double)(POINTS - 2) * (POINTS - 2) * (POINTS - 2);
    bool close = true;
    for (int m = 0; m < COMPONENTS; m++) {
        char what[32];
        snprintf(what, sizeof(what), "%s[%d]", name, m);
        close = kernel_check(what, sqrt(sum[m] / points), reference[m], EPSILON) && close;
    }
    return close;
}

bool norms_verified(const double residual[COMPONENTS], const double error[COMPONENTS])
{
    double residual_sum[COMPONENTS] = {0.0}, error_sum[COMPONENTS] = {0.0};
    compute_rhs();
    sum_squares(residual_sum, error_sum);
    bool close = compare_norms("residual", residual_sum, residual);
    return compare_norms("error", error_sum, error) && close;
}
