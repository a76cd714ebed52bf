/*
 * mpi.h - as much of MPI as the stand-in for libscr and programs of one rank use, without messages.
 *
 * Under Valgrind a real MPI takes some seconds to start, and most of this folder's programs have
 * one rank. Programs of several ranks use the real MPI. See serial_mpi.c.
 */
#ifndef SERIAL_MPI_H
#define SERIAL_MPI_H

#ifdef __cplusplus
extern "C" {
#endif

typedef int MPI_Comm;
typedef int MPI_Datatype; /* its size in bytes */
typedef int MPI_Op;
typedef struct {
    int unused;
} MPI_Status;

#define MPI_SUCCESS 0
#define MPI_COMM_NULL 0
#define MPI_COMM_WORLD 1
#define MPI_BYTE 1
#define MPI_CHAR 1
#define MPI_INT 4
#define MPI_LONG_LONG 8
#define MPI_LAND 0
#define MPI_SUM 1
#define MPI_STATUS_IGNORE ((MPI_Status *)0)

int MPI_Init(int *argc, char ***argv);
int MPI_Initialized(int *flag);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm comm, int code);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Barrier(MPI_Comm comm);
int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm);
int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status);
double MPI_Wtime(void);

#ifdef __cplusplus
}
#endif

#endif
