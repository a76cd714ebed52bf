/* preload_mpi.h - what the parts of the MPI wrappers share.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The wrappers run in the traced program and are built without any mpi.h: arguments are words, and
 * what differs between MPI libraries is asked at run time (preload_mpi_library.c). Parts:
 *
 *   preload_mpi_table.h     which arguments of which call are buffers
 *   preload_mpi.c           the wrappers of that table
 *   preload_mpi_library.c   which MPI it is, its constants and functions
 *   preload_mpi_regions.c   buffers: from arguments to memory, and what the tool is told of them
 *   preload_mpi_requests.c  transfers that complete later: Start, Wait, Test and their kin
 *   preload_mpi_windows.c   one-sided communication
 *   preload_mpi_files.c     MPI-IO
 *   preload_mpi_start.c     MPI_Init: the environment MPI reads, the rank, the transports in use
 *
 * Nothing but the wrappers is visible: the preload comes before the program in every look-up, so
 * that a visible name would take the place of one of the program's own.
 * Tests: tests/tracer/test_tracer_mpi.py.
 */
#ifndef SCR_CRIT_TRACER_PRELOAD_MPI_H
#define SCR_CRIT_TRACER_PRELOAD_MPI_H

#include "requests.h"

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

typedef unsigned long word;

/* ---- The MPI library of this program ---- */

typedef struct {
    word in_place;
    word comm_world, comm_self;
    word byte_type;
    word info_null;
    word op_no_op;
    word status_ignore;
    int proc_null, root; /* MPI_PROC_NULL, MPI_ROOT */
    int cart, graph, dist_graph;
    unsigned handle_bytes; /* 4 where handles are int, else 8 */
    unsigned status_bytes;
    bool is_open_mpi;

    /* Its functions, under their PMPI names. Handles are words: where they are int, the callee
     * takes the low half. Those marked (*) may be NULL in an old MPI. */
    int (*Type_size)(word type, int *size);
    int (*Type_size_x)(word type, long long *size); /* (*) */
    int (*Type_get_extent)(word type, long *lower, long *extent);
    int (*Type_get_true_extent)(word type, long *lower, long *extent);
    int (*Type_dup)(word type, word *copy);
    int (*Type_free)(word *type);
    int (*Type_commit)(word *type);
    int (*Type_create_hindexed)(int count, const int *lengths, const long *displacements, word old,
                                word *made);
    int (*Pack)(const void *buffer, int count, word type, void *packed, int bytes, int *position,
                word comm);
    int (*Pack_size)(int count, word type, word comm, int *bytes);
    int (*Get_count)(const void *status, word type, int *count);
    int (*Get_elements_x)(const void *status, word type, long long *count); /* (*) */
    int (*Test_cancelled)(const void *status, int *flag);
    int (*Initialized)(int *flag);
    int (*Comm_rank)(word comm, int *rank);
    int (*Comm_size)(word comm, int *size);
    int (*Comm_remote_size)(word comm, int *size);
    int (*Comm_test_inter)(word comm, int *flag);
    int (*Topo_test)(word comm, int *status);
    int (*Cartdim_get)(word comm, int *dimensions);
    int (*Cart_shift)(word comm, int direction, int steps, int *source, int *destination);
    int (*Graph_neighbors_count)(word comm, int rank, int *count);
    int (*Graph_neighbors)(word comm, int rank, int most, int *neighbours);
    int (*Dist_graph_neighbors_count)(word comm, int *in, int *out, int *weighted); /* (*) */
    int (*Dist_graph_neighbors)(word comm, int in, int *sources, int *source_weights, int out,
                                int *destinations, int *destination_weights); /* (*) */
    int (*Info_create)(word *info);
    int (*Info_dup)(word info, word *copy);
    int (*Info_set)(word info, const char *key, const char *value);
    int (*Info_get)(word info, const char *key, int most, char *value, int *flag);
    int (*Info_free)(word *info);
    int (*File_get_info)(word file, word *info);
} mpi_library;

/* The library that holds the wrapped function; NULL, after one warning, when it is none that is
 * known: then nothing is marked. */
const mpi_library *mpi_find(OrigFn real);
/* Handles as they stand in an argument and in memory. */
word mpi_handle(const mpi_library *mpi, word argument);
word mpi_handle_at(const mpi_library *mpi, word array, long index);

/* ---- The table's terms (preload_mpi_table.h) ---- */

typedef enum {
    NO_BUFFER,
    ONE,       /* count elements (one, where no count is named) */
    BLOCKS,    /* count elements for each peer, one block behind the other */
    V,         /* counts[] and displacements[] (in extents) for each peer */
    W,         /* counts[], displacements[] (in bytes) and types[] for each peer */
    SUM,       /* the sum of counts[] */
    MINE,      /* counts[own rank] */
    PARTITIONS /* count elements in each of so many partitions */
} buffer_shape;

typedef enum {
    EVERYBODY,
    AT_ROOT,     /* the root only */
    NOT_AT_ROOT, /* everybody else (MPI_Bcast) */
    LEAVES,      /* everybody, root included, but not the root's side of an intercommunicator */
    NOT_FIRST    /* not rank 0 (MPI_Exscan) */
} buffer_holders;

typedef enum { GROUP, SOURCES, TARGETS } buffer_peers; /* the last two: neighbours */

/* Numbers are positions of arguments, from 1; 0 means none. */
typedef struct {
    unsigned char shape;
    unsigned char buffer, count, type;
    unsigned char displacements; /* or the number of partitions */
    unsigned char who;
    unsigned char peers;
} buffer_rule;

typedef enum {
    IN_PLACE_NONE,
    IN_PLACE_OWN,   /* own block of the receive buffer is sent (MPI_Allgather) */
    IN_PLACE_STAYS, /* own block of the receive buffer is left alone (MPI_Gather, MPI_Scatter) */
    IN_PLACE_SWAP,  /* the whole receive buffer is sent first (MPI_Alltoall) */
    IN_PLACE_INPUT  /* the receive buffer takes the send buffer's part (reductions) */
} in_place_meaning;

typedef struct {
    unsigned char words; /* number of arguments */
    buffer_rule read, also_read, written;
    unsigned char comm, root;
    unsigned char to, from; /* a rank that may be MPI_PROC_NULL */
    unsigned char op;       /* MPI_NO_OP reads nothing */
    unsigned char status, request, window;
    unsigned char in_place;
    bool large;      /* counts are MPI_Count, displacements MPI_Aint */
    bool aint;       /* displacements are MPI_Aint, counts as said by large */
    bool persistent; /* communicates at MPI_Start only */
    bool counted;    /* a message, of which the status tells the length */
    bool unsure;     /* a message whose length is not known (MPICH 5 sets no status for it) */
} call_rule;

/* ---- Buffers ---- */

typedef struct {
    word address;
    long count;
    word type;
    long size, extent, true_lower, true_extent;
    bool dense; /* count * size bytes from address + true_lower, without a gap */
} region;

typedef struct {
    region *regions;
    long count;
    region first; /* most lists have one */
} region_list;

/* What a call moves. */
typedef struct {
    region_list read, written;
    word comm;       /* for MPI_Pack */
    long partitions; /* 0: not partitioned */
    bool counted;
    bool owns_read_types, owns_written_types;
} transfer;

/* From the arguments of a call; keep: types are duplicated, since the program may free its own. */
void transfer_take(const mpi_library *mpi, const call_rule *rule, const word *arguments, bool keep,
                   transfer *moved);
void transfer_mark_read(const mpi_library *mpi, const transfer *moved);
/* bytes: as received, or -1 for all. */
void transfer_mark_written(const mpi_library *mpi, const transfer *moved, long bytes);
/* One partition of a partitioned transfer. */
void transfer_mark_partition(const mpi_library *mpi, const transfer *moved, long partition,
                             bool written);
void transfer_drop(const mpi_library *mpi, transfer *moved);

/* ---- Transfers that complete later ---- */

/* Takes over moved. request: address of the handle. */
void requests_add(const mpi_library *mpi, word request, bool persistent, transfer *moved);
/* Bytes received, as a status tells; 0 when the transfer was cancelled. */
long status_bytes_received(const mpi_library *mpi, const void *status);
/* Takes over moved, until the next synchronisation of the window. */
void windows_add(const mpi_library *mpi, word window, transfer *moved);

/* ---- Writing wrappers ---- */

word call_real(OrigFn real, unsigned words, const word *arguments);

#define MESSAGE(request, first, second)                                                            \
    VALGRIND_DO_CLIENT_REQUEST_STMT(request, (first), (second), 0, 0, 0)
void warn_once(bool *done, const char *text);

/* Parameters and arguments of functions with n words. */
#define P1 word a1
#define P2 P1, word a2
#define P3 P2, word a3
#define P4 P3, word a4
#define P5 P4, word a5
#define P6 P5, word a6
#define P7 P6, word a7
#define P8 P7, word a8
#define P9 P8, word a9
#define P10 P9, word a10
#define P11 P10, word a11
#define P12 P11, word a12
#define P13 P12, word a13
#define A1 a1
#define A2 A1, a2
#define A3 A2, a3
#define A4 A3, a4
#define A5 A4, a5
#define A6 A5, a6
#define A7 A6, a7
#define A8 A7, a8
#define A9 A8, a9
#define A10 A9, a10
#define A11 A10, a11
#define A12 A11, a12
#define A13 A12, a13

/* Where MPI functions are looked for: libraries that are called libmpi*, and a program that MPI is
 * linked into. (With * Valgrind would compare every symbol of every library with every name.) */
#define WRAPPED_IN(soname, symbol, body)                                                           \
    extern __typeof__(body) I_WRAP_SONAME_FNNAME_ZU(soname, symbol)                                \
        __attribute__((visibility("default"), alias(#body)));

/* A wrapper of MPI_<name> and PMPI_<name> with so many words: `call` is an expression of real and
 * arguments[1] ... arguments[words]. Most libraries have one function under both names. */
#define WRAPPER(name, words, call)                                                                 \
    static word wrap_##name(P##words) __attribute__((used));                                       \
    static word wrap_##name(P##words)                                                              \
    {                                                                                              \
        OrigFn real;                                                                               \
        VALGRIND_GET_ORIG_FN(real);                                                                \
        word arguments[] = {0, A##words};                                                          \
        return (call);                                                                             \
    }                                                                                              \
    WRAPPED_IN(libmpiZa, MPI_##name, wrap_##name)                                                  \
    WRAPPED_IN(libmpiZa, PMPI_##name, wrap_##name)                                                 \
    WRAPPED_IN(NONE, MPI_##name, wrap_##name)                                                      \
    WRAPPED_IN(NONE, PMPI_##name, wrap_##name)

/* A wrapper by hand. */
#define BY_HAND(name, words) WRAPPER(name, words, on_##name(real, arguments))

#pragma GCC visibility pop
#endif
