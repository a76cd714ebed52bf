/* blind_mpi.c - an MPI that moves nothing that can be seen: only the wrappers can tell the tracer.
 *
 * Loaded before a real MPI with MPICH's binary interface, for ghost_families.c: every call that
 * moves data succeeds without touching a buffer, as if another process or a network card did it.
 * A message's length is told by its tag, as in that program. Arguments are words.
 */
#include <string.h>

typedef unsigned long word;

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

#define NULL_REQUEST 0x2c000000
#define FIRST_REQUEST 0x70000000
#define STATUS_IGNORE ((int *)1)
#define STATUS_INTS 5

static struct {
    int bytes;
    int persistent;
} requests[4096];
static int used;

static int bytes_of(word tag)
{
    static const int bytes[] = {0, 8, 8, 8, 24, 8, 16};
    return (int)tag >= 0 && (int)tag < 7 ? bytes[(int)tag] : 0;
}

static void set_status(int *status, int bytes)
{
    if (status == STATUS_IGNORE)
        return;
    memset(status, 0, STATUS_INTS * sizeof(int));
    status[0] = bytes;
}

static int new_request(word at, int bytes, int persistent)
{
    requests[used].bytes = bytes;
    requests[used].persistent = persistent;
    *(int *)at = FIRST_REQUEST + used++;
    return 0;
}

static int complete(int *request, int *status)
{
    if (*request < FIRST_REQUEST) {
        set_status(status, 0);
        return 0;
    }
    int index = *request - FIRST_REQUEST;
    set_status(status, requests[index].bytes);
    if (!requests[index].persistent)
        *request = NULL_REQUEST;
    return 1;
}

#define UNUSED_WORDS _Pragma("GCC diagnostic ignored \"-Wunused-parameter\"")
UNUSED_WORDS

#define DONE(name, n)                                                                              \
    int MPI_##name(P##n)                                                                           \
    {                                                                                              \
        return 0;                                                                                  \
    }
#define REQUESTED(name, n, bytes, persistent)                                                      \
    int MPI_##name(P##n)                                                                           \
    {                                                                                              \
        return new_request(a##n, bytes, persistent);                                               \
    }
#define COLLECTIVE(name, nonblocking, n, n1, n2)                                                   \
    DONE(name, n)                                                                                  \
    REQUESTED(nonblocking, n1, 0, 0)                                                               \
    REQUESTED(name##_init, n2, 0, 1)

DONE(Send, 6)
DONE(Send_c, 6)
DONE(Ssend, 6)
DONE(Bsend, 6)
DONE(Rsend, 6)
DONE(Barrier, 1)
DONE(Start, 1)
DONE(Startall, 2)
DONE(Cancel, 1)
DONE(Request_free, 1)
DONE(Buffer_attach, 2)
DONE(Buffer_detach, 2)
DONE(Pready, 2)
DONE(Pready_range, 3)
REQUESTED(Isend, 7, 0, 0)
REQUESTED(Issend, 7, 0, 0)
REQUESTED(Ibsend, 7, 0, 0)
REQUESTED(Irsend, 7, 0, 0)
REQUESTED(Send_init, 7, 0, 1)
REQUESTED(Ssend_init, 7, 0, 1)
REQUESTED(Irecv, 7, bytes_of(a5), 0)
REQUESTED(Irecv_c, 7, bytes_of(a5), 0)
REQUESTED(Recv_init, 7, bytes_of(a5), 1)
REQUESTED(Isendrecv, 12, bytes_of(a10), 0)
REQUESTED(Psend_init, 9, 0, 1)
REQUESTED(Precv_init, 9, 0, 1)

int MPI_Recv(P7)
{
    set_status((int *)a7, (int)a4 == -1 ? 0 : bytes_of(a5));
    return 0;
}

int MPI_Sendrecv(P12)
{
    set_status((int *)a12, bytes_of(a10));
    return 0;
}

int MPI_Sendrecv_replace(P9)
{
    set_status((int *)a9, 16);
    return 0;
}

int MPI_Mprobe(P5)
{
    *(int *)a4 = (int)a2;
    return 0;
}

int MPI_Mrecv(P5)
{
    set_status((int *)a5, bytes_of((word) * (int *)a4));
    return 0;
}

int MPI_Imrecv(P5)
{
    return new_request(a5, bytes_of((word) * (int *)a4), 0);
}

/* ---- Completion: everything has always arrived ---- */

int MPI_Wait(P2)
{
    complete((int *)a1, (int *)a2);
    return 0;
}

int MPI_Test(P3)
{
    complete((int *)a1, (int *)a3);
    *(int *)a2 = 1;
    return 0;
}

static int complete_all(word count, word array, word statuses)
{
    for (int i = 0; i < (int)count; i++) {
        int *status = (int *)statuses;
        complete((int *)array + i, status == STATUS_IGNORE ? status : status + STATUS_INTS * i);
    }
    return 0;
}

int MPI_Waitall(P3)
{
    return complete_all(a1, a2, a3);
}

int MPI_Testall(P4)
{
    *(int *)a3 = 1;
    return complete_all(a1, a2, a4);
}

static int complete_first(word count, word array, int *status)
{
    for (int i = 0; i < (int)count; i++) {
        if (complete((int *)array + i, status))
            return i;
    }
    return -32766; /* MPI_UNDEFINED */
}

int MPI_Waitany(P4)
{
    *(int *)a3 = complete_first(a1, a2, (int *)a4);
    return 0;
}

int MPI_Testany(P5)
{
    *(int *)a3 = complete_first(a1, a2, (int *)a5);
    *(int *)a4 = 1;
    return 0;
}

static int complete_some(word count, word array, int *done, int *indices, int *statuses)
{
    *done = 0;
    for (int i = 0; i < (int)count; i++) {
        int *status = statuses == STATUS_IGNORE ? statuses : statuses + STATUS_INTS * *done;
        if (complete((int *)array + i, status))
            indices[(*done)++] = i;
    }
    return 0;
}

int MPI_Waitsome(P5)
{
    return complete_some(a1, a2, (int *)a3, (int *)a4, (int *)a5);
}

int MPI_Testsome(P5)
{
    return complete_some(a1, a2, (int *)a3, (int *)a4, (int *)a5);
}

/* ---- Collectives ---- */

COLLECTIVE(Bcast, Ibcast, 5, 6, 7)
COLLECTIVE(Gather, Igather, 8, 9, 10)
COLLECTIVE(Gatherv, Igatherv, 9, 10, 11)
COLLECTIVE(Scatter, Iscatter, 8, 9, 10)
COLLECTIVE(Scatterv, Iscatterv, 9, 10, 11)
COLLECTIVE(Allgather, Iallgather, 7, 8, 9)
COLLECTIVE(Allgatherv, Iallgatherv, 8, 9, 10)
COLLECTIVE(Alltoall, Ialltoall, 7, 8, 9)
COLLECTIVE(Alltoallv, Ialltoallv, 9, 10, 11)
COLLECTIVE(Alltoallw, Ialltoallw, 9, 10, 11)
COLLECTIVE(Reduce, Ireduce, 7, 8, 9)
COLLECTIVE(Allreduce, Iallreduce, 6, 7, 8)
COLLECTIVE(Reduce_scatter, Ireduce_scatter, 6, 7, 8)
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, 6, 7, 8)
COLLECTIVE(Scan, Iscan, 6, 7, 8)
COLLECTIVE(Exscan, Iexscan, 6, 7, 8)
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, 7, 8, 9)
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, 8, 9, 10)
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, 7, 8, 9)
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, 9, 10, 11)
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, 9, 10, 11)

/* ---- One-sided ---- */

DONE(Put, 8)
DONE(Get, 8)
DONE(Accumulate, 9)
DONE(Get_accumulate, 12)
DONE(Fetch_and_op, 7)
DONE(Compare_and_swap, 7)
REQUESTED(Rput, 9, 0, 0)
REQUESTED(Rget, 9, 0, 0)
REQUESTED(Rget_accumulate, 13, 0, 0)
DONE(Win_fence, 2)
DONE(Win_lock_all, 2)
DONE(Win_unlock_all, 1)
DONE(Win_flush, 2)
DONE(Win_free, 1)

int MPI_Win_create(P6)
{
    *(int *)a6 = 0x71000000;
    return 0;
}
