/*
 * navier_stokes.h - what BT and SP share: the problem, its spatial operator and the verified norms.
 *
 * The compressible Navier-Stokes equations on a cube of POINTS points a side, with a forcing term
 * that makes a polynomial the exact steady solution (Bailey et al., report RNR-94-007). The
 * operator is written once for a general direction: x, y and z are 0, 1 and 2, and run along the
 * array index i, j and k.
 *
 * Needs NPB_BT or NPB_SP, and NPB_CLASS_S or NPB_CLASS_W. Tests: test_npb_c.py.
 */
#ifndef NPB_NAVIER_STOKES_H
#define NPB_NAVIER_STOKES_H

#include <stdbool.h>
#include <stddef.h>

enum {
#if defined(NPB_BT) && defined(NPB_CLASS_S)
    POINTS = 12,
#elif defined(NPB_BT) && defined(NPB_CLASS_W)
    POINTS = 24,
#elif defined(NPB_SP) && defined(NPB_CLASS_S)
    POINTS = 12,
#elif defined(NPB_SP) && defined(NPB_CLASS_W)
    POINTS = 36,
#else
#error "define NPB_BT or NPB_SP, and NPB_CLASS_S or NPB_CLASS_W"
#endif
    PADDED = POINTS / 2 * 2 + 1, /* odd, as the benchmark has it: easy on caches */
    LAST = POINTS - 1,
    COMPONENTS = 5
};

typedef double Grid[POINTS][PADDED][PADDED][COMPONENTS];

/* Density, momentum in x, y and z, and energy; and the right-hand side, which becomes the update
 * of the present step. */
extern Grid u, rhs;

/* Constants of the benchmark's gas; C1 is the ratio of specific heats. */
#define C1 1.4
#define C2 0.4
#define C3C4 0.1
#define C1C5 (C1 * 1.4)
#define C1345 (C1C5 * C3C4)
#define NORMAL_VISCOSITY (4.0 / 3.0)
#define DISSIPATION 0.25
extern const double ARTIFICIAL_DIFFUSION[3];

/* What follows from the conserved variables of one point; kinetic and total energy per mass. */
typedef struct {
    double velocity[3], kinetic, energy, inverse; /* inverse: of the density */
} Gas;

Gas gas_of(const double *conserved);

/* One line of the grid: its first point, and the distance of neighbours, in u or in rhs. */
typedef struct {
    size_t start, stride;
} Line;

/* Line number a, b in a direction; a and b count along the other two. */
Line line_in(int direction, int a, int b);
static inline double *at(Grid grid, Line line, int point)
{
    return &grid[0][0][0][0] + line.start + (size_t)point * line.stride;
}

/* Forcing and initial field. */
void set_up_problem(void);
/* rhs <- forcing + spatial terms of u, within the faces. */
void compute_rhs(void);
/* Within the faces: rhs <- rhs * factor. */
void scale_rhs(double factor);
/* Within the faces: u <- u + rhs. */
void add_update(void);
/* Computes rhs anew, and compares the norms of rhs and of the error with the references. */
bool norms_verified(const double residual[COMPONENTS], const double error[COMPONENTS]);

#endif
