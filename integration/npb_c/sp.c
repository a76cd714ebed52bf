/*
 * sp.c - the NAS benchmark SP, classes S and W: Navier-Stokes by scalar pentadiagonal line solves.
 *
 * Each step factors an implicit scheme into three sweeps and diagonalises each, so that every line
 * has five scalar systems: three with the velocity along the line as eigenvalue, one with the speed
 * of sound added, one with it subtracted. Between the sweeps the update changes from the
 * eigenvectors of one direction to those of the next. After the specification (Bailey et al.,
 * report RNR-94-007) and the NumPy kernel ../npb/sp.py, with the verification values of NPB 3.
 *
 * The checkpoint holds the step and u, with the same padding as in BT.
 *
 * Tests: test_npb_c.py.
 */
#include <math.h>
#include <string.h>

#include "checkpoint.h"
#include "navier_stokes.h"

#ifdef NPB_CLASS_S
enum { STEPS = 100 };
#define TIME_STEP 0.015
static const double RESIDUAL[COMPONENTS] = {2.7470315451339479e-02, 1.0360746705285417e-02,
                                            1.6235745065095532e-02, 1.5840557224455615e-02,
                                            3.4849040609362460e-02};
static const double ERROR[COMPONENTS] = {2.7289258557377227e-05, 1.0364446640837285e-05,
                                         1.6154798287166471e-05, 1.5750704994480102e-05,
                                         3.4177666183390531e-05};
#else
enum { STEPS = 400 };
#define TIME_STEP 0.0015
static const double RESIDUAL[COMPONENTS] = {0.1893253733584e-02, 0.1717075447775e-03,
                                            0.2778153350936e-03, 0.2887475409984e-03,
                                            0.3143611161242e-02};
static const double ERROR[COMPONENTS] = {0.7542088599534e-04, 0.6512852253086e-05,
                                         0.1049092285688e-04, 0.1128838671535e-04,
                                         0.1212845639773e-03};
#endif

#define HALF_ROOT 0.70710678118654752440 /* of two */
#define OUTERMOST (TIME_STEP * DISSIPATION)

static int step;

/* Multiple of the speed of sound in the eigenvalue of each of the five systems. */
static const double SOUND_SIGN[COMPONENTS] = {0.0, 0.0, 0.0, 1.0, -1.0};

typedef double Matrix[COMPONENTS][COMPONENTS];

/* From the eigenvectors of the x-direction to those of y, and from y to z. */
static const Matrix X_TO_Y = {
    {0.0, -1.0, 0.0, 0.0, 0.0},
    {1.0, 0.0, 0.0, 0.0, 0.0},
    {0.0, 0.0, 0.0, HALF_ROOT, -HALF_ROOT},
    {0.0, 0.0, -HALF_ROOT, 0.5, 0.5},
    {0.0, 0.0, HALF_ROOT, 0.5, 0.5},
};
static const Matrix Y_TO_Z = {
    {0.0, 0.0, 0.0, HALF_ROOT, -HALF_ROOT},
    {0.0, 0.0, -1.0, 0.0, 0.0},
    {0.0, 1.0, 0.0, 0.0, 0.0},
    {-HALF_ROOT, 0.0, 0.0, 0.5, 0.5},
    {HALF_ROOT, 0.0, 0.0, 0.5, 0.5},
};

static double speed_of_sound(const Gas *gas)
{
    return sqrt(C1 * C2 * (gas->energy - gas->kinetic));
}

/* ------------------------------------------------------------- eigenvectors */

/* From conserved variables to coordinates in the eigenvectors of x. */
static void into_eigenvectors(const Gas *gas, double update[COMPONENTS])
{
    const double sound = speed_of_sound(gas), density = update[0];
    double scaled[3], work = gas->kinetic * density + update[4];
    for (int a = 0; a < 3; a++) {
        scaled[a] = gas->inverse * (gas->velocity[a] * density - update[1 + a]);
        work -= gas->velocity[a] * update[1 + a];
    }
    const double pressure = C2 * work / (sound * sound);
    const double across = HALF_ROOT * scaled[0];
    const double along = HALF_ROOT * gas->inverse * sound * pressure;
    update[0] = density - pressure;
    update[1] = -scaled[2];
    update[2] = scaled[1];
    update[3] = along - across;
    update[4] = along + across;
}

/* From coordinates in the eigenvectors of z to conserved variables. */
static void out_of_eigenvectors(const Gas *gas, double update[COMPONENTS])
{
    const double sound = speed_of_sound(gas), weight = HALF_ROOT / gas->inverse;
    const double *velocity = gas->velocity;
    const double pressure = weight * (update[3] + update[4]) / sound;
    const double normal = weight * (update[3] - update[4]), density = update[2] + pressure;
    const double shear[2] = {update[0] / gas->inverse, update[1] / gas->inverse};
    update[0] = density;
    update[1] = velocity[0] * density - shear[1];
    update[2] = velocity[1] * density + shear[0];
    update[3] = velocity[2] * density + normal;
    update[4] = velocity[1] * shear[0] - velocity[0] * shear[1] + velocity[2] * normal +
                gas->kinetic * density + sound * sound * pressure / C2;
}

static void multiply(const Matrix matrix, double update[COMPONENTS])
{
    double product[COMPONENTS] = {0.0};
    for (int m = 0; m < COMPONENTS; m++) {
        for (int n = 0; n < COMPONENTS; n++) {
            product[m] += matrix[m][n] * update[n];
        }
    }
    memcpy(update, product, sizeof(product));
}

typedef void (*Change)(const Gas *gas, double update[COMPONENTS]);

static void x_to_y(const Gas *gas, double update[COMPONENTS])
{
    (void)gas; /* the matrix is the same everywhere */
    multiply(X_TO_Y, update);
}

static void y_to_z(const Gas *gas, double update[COMPONENTS])
{
    (void)gas;
    multiply(Y_TO_Z, update);
}

static void change_basis(Change change)
{
    for (int k = 1; k < LAST; k++) {
        for (int j = 1; j < LAST; j++) {
            for (int i = 1; i < LAST; i++) {
                const Gas gas = gas_of(u[k][j][i]);
                change(&gas, rhs[k][j][i]);
            }
        }
    }
}

/* -------------------------------------------------------------- line solves */

/* What the matrices of one line are made of. */
typedef struct {
    double normal[POINTS], sound[POINTS], viscous[POINTS];
} Coefficients;

static void set_coefficients(int direction, Line line, Coefficients *of_line)
{
    for (int p = 0; p < POINTS; p++) {
        const Gas gas = gas_of(at(u, line, p));
        /* The benchmark takes the largest of four radii; with its constants and a positive density
         * it is this one. */
        const double radius = ARTIFICIAL_DIFFUSION[direction] + C1C5 * C3C4 * gas.inverse;
        of_line->normal[p] = gas.velocity[direction];
        of_line->sound[p] = speed_of_sound(&gas);
        of_line->viscous[p] = TIME_STEP * LAST * LAST * radius;
    }
}

static double convective(const Coefficients *of_line, int system, int p)
{
    return TIME_STEP * 0.5 * LAST * (of_line->normal[p] + SOUND_SIGN[system] * of_line->sound[p]);
}

/* One of the five systems of a line, without pivoting; the second bands are OUTERMOST everywhere.
 * The update vanishes on the faces, so that the system has the interior points only. */
static void solve_system(const Coefficients *of_line, int system, Line line)
{
    /* The two upper bands after elimination; zero beyond the ends. */
    double near[POINTS + 2] = {0.0}, far[POINTS + 2] = {0.0};
    for (int p = 1; p < LAST; p++) {
        const bool beside_face = p == 1 || p == LAST - 1;
        double lower =
            -convective(of_line, system, p - 1) - of_line->viscous[p - 1] - 4.0 * OUTERMOST;
        double upper =
            convective(of_line, system, p + 1) - of_line->viscous[p + 1] - 4.0 * OUTERMOST;
        double pivot = 1.0 + 2.0 * of_line->viscous[p] + (beside_face ? 5.0 : 6.0) * OUTERMOST;
        double value = at(rhs, line, p)[system];
        if (p > 2) {
            lower -= OUTERMOST * near[p - 2];
            pivot -= OUTERMOST * far[p - 2];
            value -= OUTERMOST * at(rhs, line, p - 2)[system];
        }
        if (p > 1) {
            upper -= lower * far[p - 1];
            pivot -= lower * near[p - 1];
            value -= lower * at(rhs, line, p - 1)[system];
        }
        near[p] = p < LAST - 1 ? upper / pivot : 0.0;
        far[p] = p < LAST - 2 ? OUTERMOST / pivot : 0.0;
        at(rhs, line, p)[system] = value / pivot;
    }
    for (int p = LAST - 2; p >= 1; p--) {
        double *value = &at(rhs, line, p)[system];
        *value -= near[p] * at(rhs, line, p + 1)[system];
        if (p < LAST - 2) {
            *value -= far[p] * at(rhs, line, p + 2)[system];
        }
    }
}

static void sweep(int direction)
{
    for (int b = 1; b < LAST; b++) {
        for (int a = 1; a < LAST; a++) {
            const Line line = line_in(direction, a, b);
            Coefficients of_line;
            set_coefficients(direction, line, &of_line);
            for (int system = 0; system < COMPONENTS; system++) {
                solve_system(&of_line, system, line);
            }
        }
    }
}

static void take_step(void)
{
    static const Change after[3] = {x_to_y, y_to_z, out_of_eigenvectors};
    compute_rhs();
    scale_rhs(TIME_STEP);
    change_basis(into_eigenvectors);
    for (int direction = 0; direction < 3; direction++) {
        sweep(direction);
        change_basis(after[direction]);
    }
    add_update();
}

int main(int argc, char **argv)
{
    static const Kernel kernel = {
        .name = "sp",
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
