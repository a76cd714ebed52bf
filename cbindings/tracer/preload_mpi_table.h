/* preload_mpi_table.h - the MPI calls that move data, and which of their arguments say where.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Included by preload_mpi.c, which makes a wrapper of each line. Numbers are positions of
 * arguments as in the MPI standard, from 1.
 *
 *   CALL(name, words, ...)         MPI_name with so many arguments
 *   CALL_C(name, words, ...)       the same, and MPI_name_c of MPI 4 with large counts
 *   COLLECTIVE(name, nonblocking, words, words + 1, words + 2, ...)
 *                                  MPI_name, its non-blocking and its persistent form, all with _c
 *
 *   READS, WRITES(shape, buffer, count, type[, displacements][, .who =][, .peers =])
 *   TO, FROM(rank)                 a peer; with MPI_PROC_NULL nothing moves
 */
#define READS(...) .read = {__VA_ARGS__}
#define WRITES(...) .written = {__VA_ARGS__}
#define TO(position) .to = position
#define FROM(position) .from = position
#define COMM(position) .comm = position
#define ROOT(position) .root = position
#define STATUS(position) .status = position, .counted = true
#define REQUEST(position) .request = position
#define WINDOW(position) .window = position

/* clang-format off */

/* ---- Point to point ---- */
CALL_C(Send,  6, READS(ONE, 1, 2, 3), TO(4), COMM(6))
CALL_C(Bsend, 6, READS(ONE, 1, 2, 3), TO(4), COMM(6))
CALL_C(Ssend, 6, READS(ONE, 1, 2, 3), TO(4), COMM(6))
CALL_C(Rsend, 6, READS(ONE, 1, 2, 3), TO(4), COMM(6))
CALL_C(Isend,  7, READS(ONE, 1, 2, 3), TO(4), COMM(6), REQUEST(7))
CALL_C(Ibsend, 7, READS(ONE, 1, 2, 3), TO(4), COMM(6), REQUEST(7))
CALL_C(Issend, 7, READS(ONE, 1, 2, 3), TO(4), COMM(6), REQUEST(7))
CALL_C(Irsend, 7, READS(ONE, 1, 2, 3), TO(4), COMM(6), REQUEST(7))
CALL_C(Send_init,  7, READS(ONE, 1, 2, 3), TO(4), COMM(6), REQUEST(7), .persistent = true)
CALL_C(Bsend_init, 7, READS(ONE, 1, 2, 3), TO(4), COMM(6), REQUEST(7), .persistent = true)
CALL_C(Ssend_init, 7, READS(ONE, 1, 2, 3), TO(4), COMM(6), REQUEST(7), .persistent = true)
CALL_C(Rsend_init, 7, READS(ONE, 1, 2, 3), TO(4), COMM(6), REQUEST(7), .persistent = true)
CALL_C(Recv,  7, WRITES(ONE, 1, 2, 3), FROM(4), COMM(6), STATUS(7))
CALL_C(Mrecv, 5, WRITES(ONE, 1, 2, 3), STATUS(5))
CALL_C(Irecv,  7, WRITES(ONE, 1, 2, 3), FROM(4), COMM(6), REQUEST(7), .counted = true)
CALL_C(Imrecv, 5, WRITES(ONE, 1, 2, 3), REQUEST(5), .counted = true)
CALL_C(Recv_init, 7, WRITES(ONE, 1, 2, 3), FROM(4), COMM(6), REQUEST(7), .counted = true, .persistent = true)
CALL_C(Sendrecv, 12, READS(ONE, 1, 2, 3), TO(4), WRITES(ONE, 6, 7, 8), FROM(9), COMM(11), STATUS(12))
CALL_C(Sendrecv_replace, 9, READS(ONE, 1, 2, 3), TO(4), WRITES(ONE, 1, 2, 3), FROM(6), COMM(8), STATUS(9))
CALL_C(Isendrecv, 12, READS(ONE, 1, 2, 3), TO(4), WRITES(ONE, 6, 7, 8), FROM(9), COMM(11), REQUEST(12), .unsure = true)
CALL_C(Isendrecv_replace, 9, READS(ONE, 1, 2, 3), TO(4), WRITES(ONE, 1, 2, 3), FROM(6), COMM(8), REQUEST(9), .unsure = true)
CALL(Psend_init, 9, READS(PARTITIONS, 1, 3, 4, 2), TO(5), COMM(7), REQUEST(9), .persistent = true, .large = true)
CALL(Precv_init, 9, WRITES(PARTITIONS, 1, 3, 4, 2), FROM(5), COMM(7), REQUEST(9), .persistent = true, .large = true)

/* ---- Collectives ---- */
COLLECTIVE(Bcast, Ibcast, 5, 6, 7, READS(ONE, 1, 2, 3, .who = AT_ROOT), WRITES(ONE, 1, 2, 3, .who = NOT_AT_ROOT), ROOT(4), COMM(5))
COLLECTIVE(Gather, Igather, 8, 9, 10, READS(ONE, 1, 2, 3, .who = LEAVES), WRITES(BLOCKS, 4, 5, 6, .who = AT_ROOT), ROOT(7), COMM(8), .in_place = IN_PLACE_STAYS)
COLLECTIVE(Gatherv, Igatherv, 9, 10, 11, READS(ONE, 1, 2, 3, .who = LEAVES), WRITES(V, 4, 5, 7, 6, .who = AT_ROOT), ROOT(8), COMM(9), .in_place = IN_PLACE_STAYS)
COLLECTIVE(Scatter, Iscatter, 8, 9, 10, READS(BLOCKS, 1, 2, 3, .who = AT_ROOT), WRITES(ONE, 4, 5, 6, .who = LEAVES), ROOT(7), COMM(8), .in_place = IN_PLACE_STAYS)
COLLECTIVE(Scatterv, Iscatterv, 9, 10, 11, READS(V, 1, 2, 4, 3, .who = AT_ROOT), WRITES(ONE, 5, 6, 7, .who = LEAVES), ROOT(8), COMM(9), .in_place = IN_PLACE_STAYS)
COLLECTIVE(Allgather, Iallgather, 7, 8, 9, READS(ONE, 1, 2, 3), WRITES(BLOCKS, 4, 5, 6), COMM(7), .in_place = IN_PLACE_OWN)
COLLECTIVE(Allgatherv, Iallgatherv, 8, 9, 10, READS(ONE, 1, 2, 3), WRITES(V, 4, 5, 7, 6), COMM(8), .in_place = IN_PLACE_OWN)
COLLECTIVE(Alltoall, Ialltoall, 7, 8, 9, READS(BLOCKS, 1, 2, 3), WRITES(BLOCKS, 4, 5, 6), COMM(7), .in_place = IN_PLACE_SWAP)
COLLECTIVE(Alltoallv, Ialltoallv, 9, 10, 11, READS(V, 1, 2, 4, 3), WRITES(V, 5, 6, 8, 7), COMM(9), .in_place = IN_PLACE_SWAP)
COLLECTIVE(Alltoallw, Ialltoallw, 9, 10, 11, READS(W, 1, 2, 4, 3), WRITES(W, 5, 6, 8, 7), COMM(9), .in_place = IN_PLACE_SWAP)
COLLECTIVE(Reduce, Ireduce, 7, 8, 9, READS(ONE, 1, 3, 4, .who = LEAVES), WRITES(ONE, 2, 3, 4, .who = AT_ROOT), ROOT(6), COMM(7), .in_place = IN_PLACE_INPUT)
COLLECTIVE(Allreduce, Iallreduce, 6, 7, 8, READS(ONE, 1, 3, 4), WRITES(ONE, 2, 3, 4), COMM(6), .in_place = IN_PLACE_INPUT)
COLLECTIVE(Reduce_scatter, Ireduce_scatter, 6, 7, 8, READS(SUM, 1, 3, 4), WRITES(MINE, 2, 3, 4), COMM(6), .in_place = IN_PLACE_INPUT)
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, 6, 7, 8, READS(BLOCKS, 1, 3, 4), WRITES(ONE, 2, 3, 4), COMM(6), .in_place = IN_PLACE_INPUT)
COLLECTIVE(Scan, Iscan, 6, 7, 8, READS(ONE, 1, 3, 4), WRITES(ONE, 2, 3, 4), COMM(6), .in_place = IN_PLACE_INPUT)
COLLECTIVE(Exscan, Iexscan, 6, 7, 8, READS(ONE, 1, 3, 4), WRITES(ONE, 2, 3, 4, .who = NOT_FIRST), COMM(6), .in_place = IN_PLACE_INPUT)

/* ---- Neighbours ---- */
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, 7, 8, 9, READS(ONE, 1, 2, 3), WRITES(BLOCKS, 4, 5, 6, .peers = SOURCES), COMM(7))
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, 8, 9, 10, READS(ONE, 1, 2, 3), WRITES(V, 4, 5, 7, 6, .peers = SOURCES), COMM(8))
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, 7, 8, 9, READS(BLOCKS, 1, 2, 3, .peers = TARGETS), WRITES(BLOCKS, 4, 5, 6, .peers = SOURCES), COMM(7))
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, 9, 10, 11, READS(V, 1, 2, 4, 3, .peers = TARGETS), WRITES(V, 5, 6, 8, 7, .peers = SOURCES), COMM(9))
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, 9, 10, 11, READS(W, 1, 2, 4, 3, .peers = TARGETS), WRITES(W, 5, 6, 8, 7, .peers = SOURCES), COMM(9), .aint = true)

/* ---- One-sided: the origin's buffers (windows: preload_mpi_windows.c) ---- */
CALL_C(Put, 8, READS(ONE, 1, 2, 3), TO(4), WINDOW(8))
CALL_C(Get, 8, WRITES(ONE, 1, 2, 3), FROM(4), WINDOW(8))
CALL_C(Accumulate, 9, READS(ONE, 1, 2, 3), TO(4), .op = 8, WINDOW(9))
CALL_C(Get_accumulate, 12, READS(ONE, 1, 2, 3), TO(7), WRITES(ONE, 4, 5, 6), FROM(7), .op = 11, WINDOW(12))
CALL(Fetch_and_op, 7, READS(ONE, 1, 0, 3), TO(4), WRITES(ONE, 2, 0, 3), FROM(4), .op = 6, WINDOW(7))
CALL(Compare_and_swap, 7, READS(ONE, 1, 0, 4), .also_read = {ONE, 2, 0, 4}, TO(5), WRITES(ONE, 3, 0, 4), FROM(5), WINDOW(7))
CALL_C(Rput, 9, READS(ONE, 1, 2, 3), TO(4), REQUEST(9))
CALL_C(Rget, 9, WRITES(ONE, 1, 2, 3), FROM(4), REQUEST(9))
CALL_C(Raccumulate, 10, READS(ONE, 1, 2, 3), TO(4), .op = 8, REQUEST(10))
#if defined(__x86_64__) /* call_real() knows 13 words there only */
CALL_C(Rget_accumulate, 13, READS(ONE, 1, 2, 3), TO(7), WRITES(ONE, 4, 5, 6), FROM(7), .op = 11, REQUEST(13))
#endif

/* clang-format on */

#undef READS
#undef WRITES
#undef TO
#undef FROM
#undef COMM
#undef ROOT
#undef STATUS
#undef REQUEST
#undef WINDOW
