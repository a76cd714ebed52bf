/*
 * heat3d: 3-D advection-diffusion of a temperature u and a concentration c on Cartesian blocks,
 * with two ghost layers and a Runge-Kutta scratch register per field, checkpointing through SCR.
 *
 * It is a stand-in for the many codes that dump whole arrays: ghosts and scratch go into the
 * checkpoint although the next step rewrites both before it reads them.  The claim is kept true
 * here on purpose: `take_step` zeroes the scratch registers first, and every stage refills every
 * ghost (faces, edges and corners) from interior values only.
 *
 * May use: MPI, SCR's public C API, the C library.  heat3d.f90 is the same program in Fortran and
 * computes the same bits; heat3d_twin.py is one block of it in NumPy.  README.md describes the
 * file. Tests: test_heat3d.py beside this file.
 *
 * Method: fourth-order central differences; three-stage low-storage Runge-Kutta of Williamson,
 * J. Comput. Phys. 35 (1980) 48-56 (one register per field).
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "scr.h"

enum { GHOSTS = 2, DEFAULT_EDGE = 28, DEFAULT_STEPS = 60, DEFAULT_EVERY = 10 };
enum { TEMPERATURE, CONCENTRATION, FIELDS };
enum { FORMAT_VERSION = 1 };
enum { STAGES = 3, MAX_RESTART_TRIES = 64 };

static const double PI = 3.14159265358979323846;
static const double DIFFUSIVITY[FIELDS] = {0.02, 0.01};
static const double VELOCITY[3] = {1.0, 0.5, -0.25};
static const double REACTION_RATE = 0.5;
static const double FORCING_FREQUENCY = 9.0;

/* Williamson: register = DECAY * register + dt * rate; field = field + WEIGHT * register. */
static const double DECAY[STAGES] = {0.0, -5.0 / 9.0, -153.0 / 128.0};
static const double WEIGHT[STAGES] = {1.0 / 3.0, 15.0 / 16.0, 8.0 / 15.0};
static const double STAGE_TIME[STAGES] = {0.0, 1.0 / 3.0, 3.0 / 4.0};

typedef struct {
    int global[3]; /* 0: a cube of DEFAULT_EDGE cells per rank */
    long steps;
    long every;
    long die_at;            /* 0: never */
    long die_in_checkpoint; /* 0: never */
    int rank_die;
    long sleep_ms;
    bool legacy;
    bool help;
} Options;

typedef struct {
    MPI_Datatype send_low, send_high, receive_low, receive_high;
} Faces;

/* One rank's block: interior sizes, place in the global grid, neighbours. */
typedef struct {
    MPI_Comm cart;
    int rank, ranks;
    int interior[3], allocated[3], offset[3], global[3];
    int lower[3], upper[3]; /* neighbours' ranks; MPI_PROC_NULL beyond a wall */
    size_t cells;           /* of an array with its ghosts */
    double spacing[3], dt;
    double *profile[3]; /* sin^2(pi x) at the interior cell centres of each axis */
    Faces faces[3];
} Block;

typedef struct {
    double *field[FIELDS];
    double *scratch[FIELDS];
    int64_t step;
    double time;
} State;

/* The file's first 72 bytes; the arrays follow: fields, then scratch. */
typedef struct {
    char magic[8];
    int32_t version;
    int32_t interior[3];
    int32_t ghosts;
    int32_t offset[3];
    int32_t global[3];
    int32_t ranks;
    int64_t step;
    double time;
} Header;
_Static_assert(sizeof(Header) == 72, "the header is written as it lies in memory");

static const char MAGIC[8] = {'H', 'E', 'A', 'T', '3', 'D', '_', 'C'};

/* ------------------------------------------------------------------ errors */

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char text[2 * SCR_MAX_FILENAME];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "heat3d: rank %d: %s\n", rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fail("no memory for %zu elements of %zu bytes; use a smaller --n or more ranks", count,
             size);
    }
    return memory;
}

/* ------------------------------------------------------------ command line */

static void print_help(void)
{
    printf(
        "usage: heat3d [options]   (under mpiexec)\n"
        "  --n NX NY NZ              interior cells of the global grid (default: %d^3 per rank)\n"
        "  --steps N                 time steps in all (default %d)\n"
        "  --every K                 checkpoint every K steps, 0 = never (default %d)\n"
        "  --die-at STEP             raise SIGKILL after STEP, before its checkpoint\n"
        "  --die-in-checkpoint STEP  raise SIGKILL halfway through writing ckpt.STEP\n"
        "  --rank-die R              the rank that dies (default 0)\n"
        "  --sleep-ms M              pause M milliseconds after each step\n"
        "  --legacy                  use SCR_Start_checkpoint instead of SCR_Start_output\n"
        "  --help                    this text\n"
        "Checkpoints are ckpt.STEP/heat.RANK under the working directory, which must be\n"
        "SCR_PREFIX or lie below it.\n",
        DEFAULT_EDGE, DEFAULT_STEPS, DEFAULT_EVERY);
}

/* Reads argv[*next], of option `name`, as a number in [low, high] and steps *next; false with a
 * reason on stderr. */
static bool take_number(const char *name, char **argv, int *next, long low, long high, bool loud,
                        long *value)
{
    const char *text = argv[*next];
    char *end = NULL;
    errno = 0;
    long number = text != NULL ? strtol(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\0' || errno != 0 || number < low ||
        number > high) {
        if (loud) {
            fprintf(stderr, "heat3d: %s: expected an integer from %ld to %ld, found '%s'\n", name,
                    low, high, text != NULL ? text : "nothing");
        }
        return false;
    }
    *next += 1;
    *value = number;
    return true;
}

static bool take_grid(const char *name, char **argv, int *next, bool loud, Options *options)
{
    for (int axis = 0; axis < 3; axis++) {
        long edge = 0;
        if (!take_number(name, argv, next, 1, INT_MAX / 4, loud, &edge)) {
            return false;
        }
        options->global[axis] = (int)edge;
    }
    return true;
}

static bool parse_options(char **argv, bool loud, Options *options)
{
    *options = (Options){.steps = DEFAULT_STEPS, .every = DEFAULT_EVERY};
    int next = 1;
    while (argv[next] != NULL) {
        const char *name = argv[next++];
        long rank = 0;
        bool good = true;
        if (strcmp(name, "--n") == 0) {
            good = take_grid(name, argv, &next, loud, options);
        } else if (strcmp(name, "--steps") == 0) {
            good = take_number(name, argv, &next, 0, LONG_MAX, loud, &options->steps);
        } else if (strcmp(name, "--every") == 0) {
            good = take_number(name, argv, &next, 0, LONG_MAX, loud, &options->every);
        } else if (strcmp(name, "--die-at") == 0) {
            good = take_number(name, argv, &next, 1, LONG_MAX, loud, &options->die_at);
        } else if (strcmp(name, "--die-in-checkpoint") == 0) {
            good = take_number(name, argv, &next, 1, LONG_MAX, loud, &options->die_in_checkpoint);
        } else if (strcmp(name, "--rank-die") == 0) {
            good = take_number(name, argv, &next, 0, INT_MAX, loud, &rank);
            options->rank_die = (int)rank;
        } else if (strcmp(name, "--sleep-ms") == 0) {
            good = take_number(name, argv, &next, 0, 1000000, loud, &options->sleep_ms);
        } else if (strcmp(name, "--legacy") == 0) {
            options->legacy = true;
        } else if (strcmp(name, "--help") == 0) {
            options->help = true;
        } else {
            good = false;
            if (loud) {
                fprintf(stderr, "heat3d: unknown option '%s'; see --help\n", name);
            }
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

/* -------------------------------------------------------------------- block */

static MPI_Datatype slab_type(const Block *block, int axis, int start)
{
    /* Axes already exchanged travel with their ghosts, later ones without: edges and corners
     * are filled too, and no stale ghost is ever read. */
    int size[3], origin[3];
    for (int other = 0; other < 3; other++) {
        bool with_ghosts = other < axis;
        size[other] = with_ghosts ? block->allocated[other] : block->interior[other];
        origin[other] = with_ghosts ? 0 : GHOSTS;
    }
    size[axis] = GHOSTS;
    origin[axis] = start;
    MPI_Datatype type;
    MPI_Type_create_subarray(3, block->allocated, size, origin, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void place_axis(Block *block, int axis, int parts, int part)
{
    int share = block->global[axis] / parts;
    int rest = block->global[axis] % parts;
    if (share < GHOSTS) {
        fail("axis %d has %d cells for %d blocks; each needs at least %d: use a larger --n or "
             "fewer ranks",
             axis, block->global[axis], parts, GHOSTS);
    }
    block->interior[axis] = share + (part < rest ? 1 : 0);
    block->offset[axis] = part * share + (part < rest ? part : rest);
    block->allocated[axis] = block->interior[axis] + 2 * GHOSTS;
    block->spacing[axis] = 1.0 / block->global[axis];
    block->profile[axis] = allocate((size_t)block->interior[axis], sizeof(double));
    for (int i = 0; i < block->interior[axis]; i++) {
        double wave = sin(PI * ((block->offset[axis] + i + 0.5) * block->spacing[axis]));
        block->profile[axis][i] = wave * wave;
    }
}

static double stable_time_step(const Block *block)
{
    double finest = fmin(fmin(block->spacing[0], block->spacing[1]), block->spacing[2]);
    double diffusive = 0.1 * (finest * finest) / DIFFUSIVITY[TEMPERATURE];
    double advective = 0.3 * finest / VELOCITY[0];
    return fmin(diffusive, advective);
}

static void create_block(const Options *options, Block *block)
{
    int parts[3] = {0, 0, 0}, place[3];
    int periodic[3] = {1, 1, 0}; /* walls at both ends of the third axis */
    MPI_Comm_rank(MPI_COMM_WORLD, &block->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &block->ranks);
    MPI_Dims_create(block->ranks, 3, parts);
    /* No reordering: a file belongs to the rank of MPI_COMM_WORLD that SCR knows. */
    MPI_Cart_create(MPI_COMM_WORLD, 3, parts, periodic, 0, &block->cart);
    MPI_Cart_coords(block->cart, block->rank, 3, place);
    block->cells = 1;
    for (int axis = 0; axis < 3; axis++) {
        block->global[axis] =
            options->global[axis] > 0 ? options->global[axis] : parts[axis] * DEFAULT_EDGE;
        place_axis(block, axis, parts[axis], place[axis]);
        block->cells *= (size_t)block->allocated[axis];
        MPI_Cart_shift(block->cart, axis, 1, &block->lower[axis], &block->upper[axis]);
    }
    for (int axis = 0; axis < 3; axis++) {
        int n = block->interior[axis];
        block->faces[axis] = (Faces){.send_low = slab_type(block, axis, GHOSTS),
                                     .send_high = slab_type(block, axis, n),
                                     .receive_low = slab_type(block, axis, 0),
                                     .receive_high = slab_type(block, axis, n + GHOSTS)};
    }
    block->dt = stable_time_step(block);
}

static void free_block(Block *block)
{
    for (int axis = 0; axis < 3; axis++) {
        Faces *faces = &block->faces[axis];
        MPI_Type_free(&faces->send_low);
        MPI_Type_free(&faces->send_high);
        MPI_Type_free(&faces->receive_low);
        MPI_Type_free(&faces->receive_high);
        free(block->profile[axis]);
    }
    MPI_Comm_free(&block->cart);
}

/* Index of a cell of an array with ghosts; (i, j, k) count from the first ghost. */
static size_t cell(const Block *block, int i, int j, int k)
{
    return ((size_t)i * (size_t)block->allocated[1] + (size_t)j) * (size_t)block->allocated[2] +
           (size_t)k;
}

static void allocate_state(const Block *block, State *state)
{
    for (int f = 0; f < FIELDS; f++) {
        state->field[f] = allocate(block->cells, sizeof(double));
        state->scratch[f] = allocate(block->cells, sizeof(double));
    }
}

static void free_state(State *state)
{
    for (int f = 0; f < FIELDS; f++) {
        free(state->field[f]);
        free(state->scratch[f]);
    }
}

static void set_initial_state(const Block *block, State *state)
{
    for (int f = 0; f < FIELDS; f++) {
        /* A refused restart may have left parts of a file here. */
        memset(state->field[f], 0, block->cells * sizeof(double));
        memset(state->scratch[f], 0, block->cells * sizeof(double));
    }
    for (int i = 0; i < block->interior[0]; i++) {
        for (int j = 0; j < block->interior[1]; j++) {
            for (int k = 0; k < block->interior[2]; k++) {
                size_t here = cell(block, i + GHOSTS, j + GHOSTS, k + GHOSTS);
                double bump = block->profile[0][i] * block->profile[1][j] * block->profile[2][k];
                state->field[TEMPERATURE][here] = bump;
                state->field[CONCENTRATION][here] =
                    (block->offset[2] + k + 0.5) * block->spacing[2] + 0.1 * bump;
            }
        }
    }
    state->step = 0;
    state->time = 0.0;
}

/* ------------------------------------------------------------------- ghosts */

static void exchange_axis(const Block *block, int axis, double *field)
{
    const Faces *faces = &block->faces[axis];
    MPI_Sendrecv(field, 1, faces->send_high, block->upper[axis], 2 * axis, field, 1,
                 faces->receive_low, block->lower[axis], 2 * axis, block->cart, MPI_STATUS_IGNORE);
    MPI_Sendrecv(field, 1, faces->send_low, block->lower[axis], 2 * axis + 1, field, 1,
                 faces->receive_high, block->upper[axis], 2 * axis + 1, block->cart,
                 MPI_STATUS_IGNORE);
}

/* Values that the fields take on the lower and the upper wall at a time. */
static void wall_values(int field, double time, double *low, double *high)
{
    if (field == TEMPERATURE) {
        *low = 1.0 + 0.25 * sin(FORCING_FREQUENCY * time);
        *high = 0.0;
    } else {
        *low = 0.0;
        *high = 1.0;
    }
}

/* Ghosts behind a wall mirror the interior, so that the mean across the wall is its value. */
static void fill_walls(const Block *block, double low, double high, double *field)
{
    int n = block->interior[2];
    for (int i = 0; i < block->allocated[0]; i++) {
        for (int j = 0; j < block->allocated[1]; j++) {
            double *column = field + cell(block, i, j, 0);
            for (int layer = 0; layer < GHOSTS; layer++) {
                if (block->lower[2] == MPI_PROC_NULL) {
                    column[GHOSTS - 1 - layer] = 2.0 * low - column[GHOSTS + layer];
                }
                if (block->upper[2] == MPI_PROC_NULL) {
                    column[GHOSTS + n + layer] = 2.0 * high - column[GHOSTS + n - 1 - layer];
                }
            }
        }
    }
}

static void fill_ghosts(const Block *block, double time, double *const field[FIELDS])
{
    for (int f = 0; f < FIELDS; f++) {
        for (int axis = 0; axis < 3; axis++) {
            exchange_axis(block, axis, field[f]);
        }
        double low, high;
        wall_values(f, time, &low, &high);
        fill_walls(block, low, high, field[f]);
    }
}

/* ---------------------------------------------------------------- time step */

/* Diffusion minus advection of one field at the cell v points to. */
static double transport(const Block *block, double diffusivity, const double *v)
{
    const ptrdiff_t stride[3] = {(ptrdiff_t)block->allocated[1] * block->allocated[2],
                                 block->allocated[2], 1};
    double curvature = 0.0, drift = 0.0;
    for (int axis = 0; axis < 3; axis++) {
        ptrdiff_t s = stride[axis];
        double h = block->spacing[axis];
        double second = 16.0 * (v[-s] + v[s]) - (v[-2 * s] + v[2 * s]) - 30.0 * v[0];
        double first = 8.0 * (v[s] - v[-s]) - (v[2 * s] - v[-2 * s]);
        curvature = curvature + second / (12.0 * (h * h));
        drift = drift + VELOCITY[axis] * (first / (12.0 * h));
    }
    return diffusivity * curvature - drift;
}

static void accumulate_rates(const Block *block, double time, double decay, State *state)
{
    const double *u = state->field[TEMPERATURE], *c = state->field[CONCENTRATION];
    double *du = state->scratch[TEMPERATURE], *dc = state->scratch[CONCENTRATION];
    double strength = 1.0 + sin(FORCING_FREQUENCY * time);
    for (int i = 0; i < block->interior[0]; i++) {
        for (int j = 0; j < block->interior[1]; j++) {
            double sheet = strength * (block->profile[0][i] * block->profile[1][j]);
            for (int k = 0; k < block->interior[2]; k++) {
                size_t here = cell(block, i + GHOSTS, j + GHOSTS, k + GHOSTS);
                double heat = transport(block, DIFFUSIVITY[TEMPERATURE], u + here) +
                              sheet * block->profile[2][k];
                double mass = transport(block, DIFFUSIVITY[CONCENTRATION], c + here) -
                              REACTION_RATE * (u[here] * c[here]);
                du[here] = decay * du[here] + block->dt * heat;
                dc[here] = decay * dc[here] + block->dt * mass;
            }
        }
    }
}

static void add_registers(const Block *block, double weight, State *state)
{
    for (int f = 0; f < FIELDS; f++) {
        for (int i = GHOSTS; i < GHOSTS + block->interior[0]; i++) {
            for (int j = GHOSTS; j < GHOSTS + block->interior[1]; j++) {
                size_t row = cell(block, i, j, GHOSTS);
                for (int k = 0; k < block->interior[2]; k++) {
                    state->field[f][row + (size_t)k] += weight * state->scratch[f][row + (size_t)k];
                }
            }
        }
    }
}

static void take_step(const Block *block, State *state)
{
    for (int f = 0; f < FIELDS; f++) {
        memset(state->scratch[f], 0, block->cells * sizeof(double));
    }
    for (int stage = 0; stage < STAGES; stage++) {
        double time = state->time + STAGE_TIME[stage] * block->dt;
        fill_ghosts(block, time, state->field);
        accumulate_rates(block, time, DECAY[stage], state);
        add_registers(block, WEIGHT[stage], state);
    }
    state->step += 1;
    state->time = state->time + block->dt;
}

/* --------------------------------------------------------- checkpoint files */

static Header describe(const Block *block, const State *state)
{
    Header header = {.version = FORMAT_VERSION,
                     .ghosts = GHOSTS,
                     .ranks = block->ranks,
                     .step = state->step,
                     .time = state->time};
    memcpy(header.magic, MAGIC, sizeof(MAGIC));
    for (int axis = 0; axis < 3; axis++) {
        header.interior[axis] = block->interior[axis];
        header.offset[axis] = block->offset[axis];
        header.global[axis] = block->global[axis];
    }
    return header;
}

static void die_now(FILE *open_file)
{
    if (open_file != NULL) {
        fflush(open_file);
    }
    raise(SIGKILL);
}

static bool write_file(const char *path, const Block *block, const State *state, bool die_halfway)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        fprintf(stderr, "heat3d: rank %d: %s: cannot create: %s\n", block->rank, path,
                strerror(errno));
        return false;
    }
    Header header = describe(block, state);
    bool good = fwrite(&header, sizeof(header), 1, file) == 1;
    for (int f = 0; f < FIELDS; f++) {
        good = good && fwrite(state->field[f], sizeof(double), block->cells, file) == block->cells;
    }
    if (die_halfway) {
        die_now(file);
    }
    for (int f = 0; f < FIELDS; f++) {
        good =
            good && fwrite(state->scratch[f], sizeof(double), block->cells, file) == block->cells;
    }
    int error = errno;
    if (fclose(file) != 0) {
        error = errno;
        good = false;
    }
    if (!good) {
        fprintf(stderr, "heat3d: rank %d: %s: cannot write: %s\n", block->rank, path,
                strerror(error));
    }
    return good;
}

__attribute__((format(printf, 3, 4))) static bool refuse(const char *path, const Block *block,
                                                         const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "heat3d: rank %d: %s: %s; this checkpoint is refused\n", block->rank, path,
            text);
    return false;
}

/* The header must be the one this rank would write, but for step and time. */
static bool header_fits(const char *path, const Block *block, const Header *found)
{
    State when = {.step = found->step, .time = found->time};
    Header expected = describe(block, &when);
    if (memcmp(found->magic, expected.magic, sizeof(MAGIC)) != 0) {
        return refuse(path, block, "offset 0: magic is '%.8s', expected '%.8s'", found->magic,
                      expected.magic);
    }
    if (memcmp(found, &expected, offsetof(Header, step)) != 0) {
        return refuse(
            path, block,
            "header: version %d, block %dx%dx%d of %dx%dx%d on %d ranks, expected version "
            "%d, block %dx%dx%d of %dx%dx%d on %d ranks (or ghosts or offsets differ)",
            found->version, found->interior[0], found->interior[1], found->interior[2],
            found->global[0], found->global[1], found->global[2], found->ranks, expected.version,
            expected.interior[0], expected.interior[1], expected.interior[2], expected.global[0],
            expected.global[1], expected.global[2], expected.ranks);
    }
    if (found->step < 0 || !isfinite(found->time)) {
        return refuse(path, block, "header: step %lld at time %g makes no sense",
                      (long long)found->step, found->time);
    }
    return true;
}

static bool read_arrays(const char *path, FILE *file, const Block *block, State *state)
{
    for (int f = 0; f < 2 * FIELDS; f++) {
        double *array = f < FIELDS ? state->field[f] : state->scratch[f - FIELDS];
        if (fread(array, sizeof(double), block->cells, file) != block->cells) {
            return refuse(path, block, "array %d: short read", f);
        }
    }
    return true;
}

static bool read_open_file(const char *path, FILE *file, const Block *block, State *state)
{
    off_t expected = (off_t)(sizeof(Header) + 2 * FIELDS * block->cells * sizeof(double));
    struct stat status;
    if (fstat(fileno(file), &status) != 0) {
        return refuse(path, block, "no status: %s", strerror(errno));
    }
    if (status.st_size != expected) {
        return refuse(path, block, "%lld bytes, expected %lld", (long long)status.st_size,
                      (long long)expected);
    }
    Header header;
    if (fread(&header, sizeof(header), 1, file) != 1) {
        return refuse(path, block, "header: short read");
    }
    if (!header_fits(path, block, &header)) {
        return false;
    }
    state->step = header.step;
    state->time = header.time;
    return read_arrays(path, file, block, state);
}

static bool read_file(const char *path, const Block *block, State *state)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return refuse(path, block, "cannot open: %s", strerror(errno));
    }
    bool good = read_open_file(path, file, block, state);
    fclose(file);
    return good;
}

/* ---------------------------------------------------------------------- SCR */

static void save_checkpoint(const Block *block, const State *state, const Options *options)
{
    char dataset[64], name[128], path[SCR_MAX_FILENAME];
    snprintf(dataset, sizeof(dataset), "ckpt.%lld", (long long)state->step);
    snprintf(name, sizeof(name), "%s/heat.%d", dataset, block->rank);
    int started =
        options->legacy ? SCR_Start_checkpoint() : SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT);
    if (started != SCR_SUCCESS) {
        fail("SCR would not start checkpoint %s (status %d)", dataset, started);
    }
    bool die = options->die_in_checkpoint == state->step && options->rank_die == block->rank;
    int valid = SCR_Route_file(name, path) == SCR_SUCCESS && write_file(path, block, state, die);
    int completed = options->legacy ? SCR_Complete_checkpoint(valid) : SCR_Complete_output(valid);
    if (completed != SCR_SUCCESS && block->rank == 0) {
        fprintf(stderr, "heat3d: checkpoint %s is not complete (status %d); going on\n", dataset,
                completed);
    }
}

/* Files of different steps must not be mixed, so every rank's step and time must agree. */
static bool ranks_agree(const State *state, bool valid)
{
    double mine[5] = {valid ? 1.0 : 0.0, (double)state->step, -(double)state->step, state->time,
                      -state->time};
    double least[5];
    MPI_Allreduce(mine, least, 5, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return least[0] > 0.0 && least[1] == -least[2] && least[3] == -least[4];
}

static bool try_restart(const Block *block, const Options *options, State *state)
{
    char dataset[SCR_MAX_FILENAME], name[2 * SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    if (SCR_Start_restart(dataset) != SCR_SUCCESS) {
        fail("SCR announced a restart and would not start it");
    }
    if (options->legacy) {
        /* The old calls name datasets themselves; SCR then finds a file by its last component. */
        snprintf(name, sizeof(name), "heat.%d", block->rank);
    } else {
        snprintf(name, sizeof(name), "%s/heat.%d", dataset, block->rank);
    }
    bool valid = false;
    if (strlen(name) >= SCR_MAX_FILENAME || SCR_Route_file(name, path) != SCR_SUCCESS) {
        refuse(name, block, "SCR has no such file");
    } else {
        valid = read_file(path, block, state);
    }
    if (!ranks_agree(state, valid)) {
        valid = false;
    }
    /* SCR_Complete_restart fails on all ranks when one of them could not read its file. */
    if (SCR_Complete_restart(valid ? 1 : 0) != SCR_SUCCESS || !valid) {
        return false;
    }
    if (block->rank == 0) {
        printf("restarted from %s step %lld\n", dataset, (long long)state->step);
    }
    return true;
}

/* Tries SCR's checkpoints from the newest to the oldest, else starts at time zero. */
static void restart_or_begin(const Block *block, const Options *options, State *state)
{
    for (int tries = 0; tries < MAX_RESTART_TRIES; tries++) {
        int have = 0;
        char dataset[SCR_MAX_FILENAME];
        if (SCR_Have_restart(&have, dataset) != SCR_SUCCESS) {
            fail("SCR_Have_restart failed");
        }
        if (!have) {
            break;
        }
        if (try_restart(block, options, state)) {
            return;
        }
    }
    set_initial_state(block, state);
    if (block->rank == 0) {
        printf("fresh start\n");
    }
}

/* ------------------------------------------------------------------- digest */

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
    for (int byte = 0; byte < 8; byte++) {
        hash = (hash ^ ((word >> (8 * byte)) & 0xff)) * UINT64_C(1099511628211);
    }
    return hash;
}

/* FNV-1a over (place in the global grid, bits) of every interior value, joined by exclusive or:
 * equal digests mean equal interiors, on whatever decomposition. */
static uint64_t hash_block(const Block *block, const State *state)
{
    uint64_t joined = 0;
    for (int f = 0; f < FIELDS; f++) {
        for (int i = 0; i < block->interior[0]; i++) {
            for (int j = 0; j < block->interior[1]; j++) {
                for (int k = 0; k < block->interior[2]; k++) {
                    uint64_t place = (uint64_t)(block->offset[0] + i);
                    place = place * (uint64_t)block->global[1] + (uint64_t)(block->offset[1] + j);
                    place = place * (uint64_t)block->global[2] + (uint64_t)(block->offset[2] + k);
                    uint64_t bits;
                    memcpy(&bits, &state->field[f][cell(block, i + GHOSTS, j + GHOSTS, k + GHOSTS)],
                           sizeof(bits));
                    uint64_t hash = hash_word(UINT64_C(14695981039346656037), place * FIELDS + f);
                    joined ^= hash_word(hash, bits);
                }
            }
        }
    }
    return joined;
}

static double sum_of_squares(const Block *block, const State *state)
{
    double sum = 0.0;
    for (int f = 0; f < FIELDS; f++) {
        for (int i = GHOSTS; i < GHOSTS + block->interior[0]; i++) {
            for (int j = GHOSTS; j < GHOSTS + block->interior[1]; j++) {
                for (int k = GHOSTS; k < GHOSTS + block->interior[2]; k++) {
                    double value = state->field[f][cell(block, i, j, k)];
                    sum += value * value;
                }
            }
        }
    }
    return sum;
}

static void print_digest(const Block *block, const State *state)
{
    uint64_t mine = hash_block(block, state), digest = 0;
    MPI_Reduce(&mine, &digest, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
    /* Gathered and added in rank order: MPI may reduce floating-point sums in any order. */
    double part = sum_of_squares(block, state), total = 0.0;
    double *parts = allocate((size_t)block->ranks, sizeof(double));
    MPI_Gather(&part, 1, MPI_DOUBLE, parts, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int rank = 0; rank < block->ranks; rank++) {
        total += parts[rank];
    }
    free(parts);
    if (block->rank == 0) {
        double values = (double)FIELDS * block->global[0] * block->global[1] * block->global[2];
        printf("digest %016llx steps %lld norm %.15e\n", (unsigned long long)digest,
               (long long)state->step, sqrt(total / values));
    }
}

/* --------------------------------------------------------------------- main */

static void pause_for(long milliseconds)
{
    struct timespec left = {.tv_sec = milliseconds / 1000,
                            .tv_nsec = (milliseconds % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static void run(const Block *block, const Options *options, State *state)
{
    while (state->step < options->steps) {
        take_step(block, state);
        if (options->sleep_ms > 0) {
            pause_for(options->sleep_ms);
        }
        if (options->die_at == state->step && options->rank_die == block->rank) {
            die_now(NULL);
        }
        if (options->every > 0 && state->step % options->every == 0) {
            save_checkpoint(block, state, options);
        }
    }
}

static void simulate(const Options *options)
{
    Block block = {0};
    State state = {0};
    create_block(options, &block);
    if (options->rank_die >= block.ranks) {
        fail("--rank-die %d: there are only %d ranks", options->rank_die, block.ranks);
    }
    allocate_state(&block, &state);
    if (SCR_Init() != SCR_SUCCESS) {
        fail(
            "SCR_Init failed; are SCR_PREFIX and its cache directory there, and SCR_ENABLE not 0?");
    }
    restart_or_begin(&block, options, &state);
    fflush(stdout);
    run(&block, options, &state);
    print_digest(&block, &state);
    SCR_Finalize();
    free_state(&state);
    free_block(&block);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, status = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Options options;
    if (!parse_options(argv, rank == 0, &options)) {
        status = 2;
    } else if (options.help) {
        if (rank == 0) {
            print_help();
        }
    } else {
        simulate(&options);
    }
    MPI_Finalize();
    return status;
}
