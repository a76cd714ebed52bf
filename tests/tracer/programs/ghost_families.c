/* ghost_families.c - after a checkpoint, every family of MPI calls moves a block of its own.
 *
 * Usage: mpiexec -n 3 ghost_families FOLDER. Each rank checkpoints its blocks (24 doubles for each
 * family) to FOLDER/state.<rank> and names the families, one a line, in FOLDER/families. What is
 * then done with which double is told in test_tracer_mpi.py.
 */
#include "ghost_scr.h"

#include <mpi.h>

#define RANKS 3
#define BLOCK 24

static int rank, left, right;
static volatile double sink;

/* ---- Point to point: one message to one neighbour and one from the other ---- */

typedef struct {
    double *sent;
    int sent_count;
    MPI_Datatype sent_type;
    int to;
    double *received;
    int received_count;
    MPI_Datatype received_type;
    int from;
    int tag;
} message;

#define SENT m->sent, m->sent_count, m->sent_type, m->to, m->tag, MPI_COMM_WORLD
#define RECEIVED m->received, m->received_count, m->received_type, m->from, m->tag, MPI_COMM_WORLD

static void send_recv(const message *m)
{
    /* In a ring somebody must receive first. */
    if (rank == 0)
        MPI_Send(SENT);
    MPI_Recv(RECEIVED, MPI_STATUS_IGNORE);
    if (rank != 0)
        MPI_Send(SENT);
}

static void sendrecv(const message *m)
{
    MPI_Status status;
    MPI_Sendrecv(m->sent, m->sent_count, m->sent_type, m->to, m->tag, m->received,
                 m->received_count, m->received_type, m->from, m->tag, MPI_COMM_WORLD, &status);
}

static void isend_irecv_waitall(const message *m)
{
    MPI_Request requests[2];
    MPI_Irecv(RECEIVED, &requests[0]);
    MPI_Isend(SENT, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void ssend_waitany(const message *m)
{
    MPI_Request requests[7];
    int index;
    for (int i = 0; i < 7; i++)
        requests[i] = MPI_REQUEST_NULL;
    MPI_Irecv(RECEIVED, &requests[5]);
    MPI_Ssend(SENT);
    MPI_Waitany(7, requests, &index, MPI_STATUS_IGNORE);
}

static void bsend_waitsome(const message *m)
{
    static char buffer[4096];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    int done, indices[2], size;
    void *attached;
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Irecv(RECEIVED, &requests[1]);
    MPI_Bsend(SENT);
    MPI_Waitsome(2, requests, &done, indices, statuses);
    MPI_Buffer_detach(&attached, &size);
}

static void rsend_test(const message *m)
{
    MPI_Request request;
    int done = 0;
    MPI_Irecv(RECEIVED, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(SENT);
    while (!done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void issend_testany(const message *m)
{
    MPI_Request requests[2];
    int done = 0, index, all = 0;
    MPI_Irecv(RECEIVED, &requests[0]);
    MPI_Issend(SENT, &requests[1]);
    while (all < 2) {
        MPI_Testany(2, requests, &index, &done, MPI_STATUS_IGNORE);
        all += done;
    }
}

static void irsend_testsome(const message *m)
{
    MPI_Request requests[2];
    int done = 0, indices[2], all = 0;
    MPI_Irecv(RECEIVED, &requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irsend(SENT, &requests[1]);
    while (all < 2) {
        MPI_Testsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
        all += done > 0 ? done : 0;
    }
}

static void ibsend_testall(const message *m)
{
    static char buffer[4096];
    MPI_Request requests[2];
    int done = 0, size;
    void *attached;
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Irecv(RECEIVED, &requests[0]);
    MPI_Ibsend(SENT, &requests[1]);
    while (!done)
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    MPI_Buffer_detach(&attached, &size);
}

static void persistent(const message *m)
{
    MPI_Request requests[2];
    MPI_Recv_init(RECEIVED, &requests[0]);
    MPI_Send_init(SENT, &requests[1]);
    for (int times = 0; times < 2; times++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void persistent_ssend(const message *m)
{
    MPI_Request requests[2];
    MPI_Recv_init(RECEIVED, &requests[0]);
    MPI_Ssend_init(SENT, &requests[1]);
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void mprobe_mrecv(const message *m)
{
    MPI_Request request;
    MPI_Message found;
    MPI_Isend(SENT, &request);
    MPI_Mprobe(m->from, m->tag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    MPI_Mrecv(m->received, m->received_count, m->received_type, &found, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void mprobe_imrecv(const message *m)
{
    MPI_Request requests[2];
    MPI_Message found;
    MPI_Isend(SENT, &requests[0]);
    MPI_Mprobe(m->from, m->tag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    MPI_Imrecv(m->received, m->received_count, m->received_type, &found, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

#if MPI_VERSION >= 4
static void large_counts(const message *m)
{
    MPI_Request request;
    MPI_Irecv_c(m->received, m->received_count, m->received_type, m->from, m->tag, MPI_COMM_WORLD,
                &request);
    MPI_Send_c(m->sent, m->sent_count, m->sent_type, m->to, m->tag, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* MPICH 4.0 frees the datatypes of its own call once too often. */
#if !defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40100300
#define HAVE_ISENDRECV
static void isendrecv(const message *m)
{
    MPI_Request request;
    MPI_Isendrecv(m->sent, m->sent_count, m->sent_type, m->to, m->tag, m->received,
                  m->received_count, m->received_type, m->from, m->tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
#endif
#endif

/* What a stencil does, what is only sent, and what only arrives. */
static void ring(double *b, void (*move)(const message *))
{
    MPI_Datatype every_second, pieces, fields;
    int lengths[] = {1, 1, 1}, places[] = {0, 2, 4};
    MPI_Aint fields_at[] = {0, 2 * sizeof(double)};
    MPI_Datatype field_types[] = {MPI_DOUBLE, MPI_DOUBLE};
    MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &every_second);
    MPI_Type_indexed(3, lengths, places, MPI_DOUBLE, &pieces);
    MPI_Type_create_struct(2, lengths, fields_at, field_types, &fields);
    MPI_Type_commit(&every_second);
    MPI_Type_commit(&pieces);
    MPI_Type_commit(&fields);

    const message messages[] = {
        {b + 1, 1, MPI_DOUBLE, left, b + 5, 1, MPI_DOUBLE, right, 1},
        {b + 4, 1, MPI_DOUBLE, right, b + 0, 1, MPI_DOUBLE, left, 2},
        {b + 6, 1, MPI_DOUBLE, right, b + 7, 1, MPI_DOUBLE, left, 3},
        {b + 8, 1, every_second, right, b + 14, 1, pieces, left, 4},
        /* a message that is shorter than its buffer: 20 and 22 arrive, 21 and 23 do not */
        {b + 6, 1, MPI_DOUBLE, right, b + 20, 2, MPI_DOUBLE, left, 5},
        {b + 1, 2, MPI_DOUBLE, left, b + 22 - 2, 1, fields, right, 6},
    };
    for (unsigned i = 0; i < sizeof messages / sizeof messages[0]; i++)
        move(&messages[i]);
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += b[i];
    sink = sum;
    MPI_Type_free(&every_second);
    MPI_Type_free(&pieces);
    MPI_Type_free(&fields);
}

/* Addresses in the datatype, none in the call. */
static void bottom(double *b)
{
    MPI_Datatype sent, received;
    int lengths[] = {1, 1};
    MPI_Aint from[2], to[2];
    for (int i = 0; i < 2; i++) {
        MPI_Get_address(b + 2 * i, &from[i]);
        MPI_Get_address(b + 8 + 2 * i, &to[i]);
    }
    MPI_Type_create_hindexed(2, lengths, from, MPI_DOUBLE, &sent);
    MPI_Type_create_hindexed(2, lengths, to, MPI_DOUBLE, &received);
    MPI_Type_commit(&sent);
    MPI_Type_commit(&received);
    MPI_Sendrecv(MPI_BOTTOM, 1, sent, right, 6, MPI_BOTTOM, 1, received, left, 6, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Type_free(&sent);
    MPI_Type_free(&received);
}

/* Both ends are replaced: what is sent is read first. */
static void sendrecv_replace(double *b)
{
    MPI_Sendrecv_replace(b, 2, MPI_DOUBLE, right, 1, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* No neighbour: nothing is read and nothing written. */
static void nobody(double *b)
{
    MPI_Request requests[2];
    MPI_Send(b, 1, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(b + 1, 1, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(b + 2, 1, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(b + 3, 1, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* A receive that is cancelled writes nothing. */
static void cancelled(double *b)
{
    MPI_Request request;
    MPI_Irecv(b, 2, MPI_DOUBLE, left, 99, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

#if MPI_VERSION >= 4
static void partitioned(double *b)
{
    MPI_Request requests[2];
    MPI_Precv_init(b + 8, 4, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Psend_init(b, 4, 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    b[3] = 1; /* its partition is not ready yet: this write is allowed, and comes first */
    MPI_Pready(0, requests[1]);
    MPI_Pready_range(1, 3, requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}
#endif

/* ---- Collectives, at once, with a request, and persistent ---- */

typedef enum { NOW, LATER, AGAIN } moment;

#if MPI_VERSION >= 4
#define PERSISTENT(name, ...)                                                                      \
    do {                                                                                           \
        MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request);                                   \
        MPI_Start(&request);                                                                       \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                     \
        MPI_Request_free(&request);                                                                \
    } while (0)
#else
#define PERSISTENT(name, ...) abort()
#endif
#define MOVE(when, name, nonblocking, ...)                                                         \
    do {                                                                                           \
        MPI_Request request;                                                                       \
        if ((when) == NOW) {                                                                       \
            MPI_##name(__VA_ARGS__);                                                               \
        } else if ((when) == LATER) {                                                              \
            MPI_##nonblocking(__VA_ARGS__, &request);                                              \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                 \
        } else {                                                                                   \
            PERSISTENT(name, __VA_ARGS__);                                                         \
        }                                                                                          \
    } while (0)

#define WORLD MPI_COMM_WORLD
#define D MPI_DOUBLE
static const int ones[] = {1, 1, 1}, uneven[] = {1, 2, 1}, spread[] = {0, 2, 5};
static const int every_other[] = {0, 2, 4}, in_bytes[] = {0, 16, 32};
static MPI_Datatype doubles[RANKS];

static void bcast(double *b, moment when)
{
    MOVE(when, Bcast, Ibcast, b, 4, D, 1, WORLD);
}
static void gather(double *b, moment when)
{
    MOVE(when, Gather, Igather, b, 2, D, b + 8, 2, D, 0, WORLD);
}
static void gather_in_place(double *b, moment when)
{
    MOVE(when, Gather, Igather, rank == 0 ? MPI_IN_PLACE : b, 2, D, b + 8, 2, D, 0, WORLD);
}
static void gatherv(double *b, moment when)
{
    MOVE(when, Gatherv, Igatherv, b, uneven[rank], D, b + 8, uneven, spread, D, 0, WORLD);
}
static void scatter(double *b, moment when)
{
    MOVE(when, Scatter, Iscatter, b, 2, D, b + 8, 2, D, 0, WORLD);
}
static void scatter_in_place(double *b, moment when)
{
    MOVE(when, Scatter, Iscatter, b, 2, D, rank == 0 ? MPI_IN_PLACE : b + 8, 2, D, 0, WORLD);
}
static void scatterv(double *b, moment when)
{
    MOVE(when, Scatterv, Iscatterv, b, uneven, spread, D, b + 8, uneven[rank], D, 0, WORLD);
}
static void allgather(double *b, moment when)
{
    MOVE(when, Allgather, Iallgather, b, 2, D, b + 8, 2, D, WORLD);
}
static void allgather_in_place(double *b, moment when)
{
    MOVE(when, Allgather, Iallgather, MPI_IN_PLACE, 0, D, b + 8, 2, D, WORLD);
}
static void allgatherv(double *b, moment when)
{
    MOVE(when, Allgatherv, Iallgatherv, b, uneven[rank], D, b + 8, uneven, spread, D, WORLD);
}
static void alltoall(double *b, moment when)
{
    MOVE(when, Alltoall, Ialltoall, b, 1, D, b + 8, 1, D, WORLD);
}
static void alltoall_in_place(double *b, moment when)
{
    if (when == NOW) /* not everywhere for the others */
        MPI_Alltoall(MPI_IN_PLACE, 0, D, b + 8, 1, D, WORLD);
}
static void alltoallv(double *b, moment when)
{
    MOVE(when, Alltoallv, Ialltoallv, b, ones, every_other, D, b + 8, ones, every_other, D, WORLD);
}
static void alltoallw(double *b, moment when)
{
    MOVE(when, Alltoallw, Ialltoallw, b, ones, in_bytes, doubles, b + 8, ones, in_bytes, doubles,
         WORLD);
}
static void reduce(double *b, moment when)
{
    MOVE(when, Reduce, Ireduce, b, b + 8, 2, D, MPI_SUM, 2, WORLD);
}
static void reduce_in_place(double *b, moment when)
{
    MOVE(when, Reduce, Ireduce, rank == 2 ? MPI_IN_PLACE : b, b + 8, 2, D, MPI_SUM, 2, WORLD);
}
static void allreduce(double *b, moment when)
{
    MOVE(when, Allreduce, Iallreduce, b, b + 8, 2, D, MPI_SUM, WORLD);
}
static void allreduce_in_place(double *b, moment when)
{
    MOVE(when, Allreduce, Iallreduce, MPI_IN_PLACE, b + 8, 2, D, MPI_SUM, WORLD);
}
static void reduce_scatter(double *b, moment when)
{
    MOVE(when, Reduce_scatter, Ireduce_scatter, b, b + 8, uneven, D, MPI_SUM, WORLD);
}
static void reduce_scatter_block(double *b, moment when)
{
    MOVE(when, Reduce_scatter_block, Ireduce_scatter_block, b, b + 8, 1, D, MPI_SUM, WORLD);
}
static void scan(double *b, moment when)
{
    MOVE(when, Scan, Iscan, b, b + 8, 2, D, MPI_SUM, WORLD);
}
static void exscan(double *b, moment when)
{
    MOVE(when, Exscan, Iexscan, b, b + 8, 2, D, MPI_SUM, WORLD);
}

/* ---- Neighbours in a row, without a neighbour at its ends ---- */

static MPI_Comm row;

static void neighbor_allgather(double *b, moment when)
{
    MOVE(when, Neighbor_allgather, Ineighbor_allgather, b, 1, D, b + 8, 1, D, row);
}
static void neighbor_allgatherv(double *b, moment when)
{
    MOVE(when, Neighbor_allgatherv, Ineighbor_allgatherv, b, 1, D, b + 8, ones, every_other, D,
         row);
}
static void neighbor_alltoall(double *b, moment when)
{
    MOVE(when, Neighbor_alltoall, Ineighbor_alltoall, b, 1, D, b + 8, 1, D, row);
}
static void neighbor_alltoallv(double *b, moment when)
{
    MOVE(when, Neighbor_alltoallv, Ineighbor_alltoallv, b, ones, every_other, D, b + 8, ones,
         every_other, D, row);
}
static void neighbor_alltoallw(double *b, moment when)
{
    static const MPI_Aint places[] = {0, 16};
    MOVE(when, Neighbor_alltoallw, Ineighbor_alltoallw, b, ones, places, doubles, b + 8, ones,
         places, doubles, row);
}

/* ---- One-sided ---- */

static void window_put_get(double *b)
{
    MPI_Win window;
    MPI_Win_create(b + 16, 4 * sizeof(double), sizeof(double), MPI_INFO_NULL, WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(b, 1, D, right, 0, 1, D, window);
    MPI_Accumulate(b + 1, 1, D, right, 1, 1, D, MPI_SUM, window);
    MPI_Get(b + 8, 1, D, right, 2, 1, D, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void window_locked(double *b)
{
    MPI_Win window;
    MPI_Request requests[2];
    MPI_Win_create(b + 16, 4 * sizeof(double), sizeof(double), MPI_INFO_NULL, WORLD, &window);
    MPI_Win_lock_all(0, window);
    MPI_Rput(b, 1, D, right, 0, 1, D, window, &requests[0]);
    MPI_Rget(b + 8, 1, D, right, 3, 1, D, window, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Fetch_and_op(b + 1, b + 9, D, right, 1, MPI_SUM, window);
    MPI_Get_accumulate(b + 2, 1, D, b + 10, 1, D, right, 1, 1, D, MPI_SUM, window);
    MPI_Win_flush(right, window);
    MPI_Rget_accumulate(b + 3, 1, D, b + 11, 1, D, right, 1, 1, D, MPI_SUM, window, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    /* the origin is not significant, and not read */
    MPI_Fetch_and_op(b + 4, b + 12, D, right, 2, MPI_NO_OP, window);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static void compare_and_swap(double *b)
{
    MPI_Win window;
    MPI_Win_create(b + 16, 4 * sizeof(double), sizeof(double), MPI_INFO_NULL, WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Compare_and_swap(b, b + 1, b + 8, MPI_INT64_T, right, 0, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

/* ---- All of them ---- */

typedef struct {
    const char *name;
    void (*message)(const message *);
    void (*collective)(double *, moment);
    void (*other)(double *);
} family;

static const family families[] = {
#define RING(name)                                                                                 \
    {                                                                                              \
#name, name, NULL, NULL                                                                    \
    }
#define COLLECTIVE(name)                                                                           \
    {                                                                                              \
#name, NULL, name, NULL                                                                    \
    }
#define OTHER(name)                                                                                \
    {                                                                                              \
#name, NULL, NULL, name                                                                    \
    }
    RING(send_recv),
    RING(sendrecv),
    RING(isend_irecv_waitall),
    RING(ssend_waitany),
    RING(bsend_waitsome),
    RING(rsend_test),
    RING(issend_testany),
    RING(irsend_testsome),
    RING(ibsend_testall),
    RING(persistent),
    RING(persistent_ssend),
    RING(mprobe_mrecv),
    RING(mprobe_imrecv),
    OTHER(bottom),
    OTHER(sendrecv_replace),
    OTHER(nobody),
    OTHER(cancelled),
#if MPI_VERSION >= 4
    RING(large_counts),
    OTHER(partitioned),
#endif
#ifdef HAVE_ISENDRECV
    RING(isendrecv),
#endif
    COLLECTIVE(bcast),
    COLLECTIVE(gather),
    COLLECTIVE(gather_in_place),
    COLLECTIVE(gatherv),
    COLLECTIVE(scatter),
    COLLECTIVE(scatter_in_place),
    COLLECTIVE(scatterv),
    COLLECTIVE(allgather),
    COLLECTIVE(allgather_in_place),
    COLLECTIVE(allgatherv),
    COLLECTIVE(alltoall),
    COLLECTIVE(alltoall_in_place),
    COLLECTIVE(alltoallv),
    COLLECTIVE(alltoallw),
    COLLECTIVE(reduce),
    COLLECTIVE(reduce_in_place),
    COLLECTIVE(allreduce),
    COLLECTIVE(allreduce_in_place),
    COLLECTIVE(reduce_scatter),
    COLLECTIVE(reduce_scatter_block),
    COLLECTIVE(scan),
    COLLECTIVE(exscan),
    COLLECTIVE(neighbor_allgather),
    COLLECTIVE(neighbor_allgatherv),
    COLLECTIVE(neighbor_alltoall),
    COLLECTIVE(neighbor_alltoallv),
    COLLECTIVE(neighbor_alltoallw),
    OTHER(window_put_get),
    OTHER(window_locked),
    OTHER(compare_and_swap),
};
#define FAMILIES ((int)(sizeof families / sizeof families[0]))
#define MOMENTS (MPI_VERSION >= 4 ? 3 : 2)

static double state[FAMILIES * 3][BLOCK];

static int run_all(FILE *names)
{
    static const char *const suffixes[] = {"", ":later", ":again"};
    int used = 0;
    for (int i = 0; i < FAMILIES; i++) {
        for (int when = NOW; when < (families[i].collective ? MOMENTS : 1); when++) {
            double *block = state[used++];
            if (names) {
                fprintf(names, "%s%s\n", families[i].name, suffixes[when]);
                continue;
            }
            if (families[i].message)
                ring(block, families[i].message);
            else if (families[i].collective)
                families[i].collective(block, (moment)when);
            else
                families[i].other(block);
        }
    }
    return used;
}

int main(int argc, char **argv)
{
    int size, one = RANKS, open = 0;
    char path[1024];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    if (argc != 2 || size != RANKS)
        MPI_Abort(WORLD, 2);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    for (int i = 0; i < RANKS; i++)
        doubles[i] = D;
    MPI_Cart_create(WORLD, 1, &one, &open, 0, &row);

    snprintf(path, sizeof path, "%s/families", argv[1]);
    FILE *names = rank == 0 ? fopen(path, "w") : fopen("/dev/null", "w");
    int used = run_all(names);
    fclose(names);
    for (int i = 0; i < used; i++)
        for (int j = 0; j < BLOCK; j++)
            state[i][j] = 100 * rank + j;
    snprintf(path, sizeof path, "%s/state.%d", argv[1], rank);
    ghost_checkpoint(path, state, (size_t)used * sizeof state[0]);

    run_all(NULL);
    MPI_Finalize();
    return 0;
}
