/* preload_mpi_windows.c - one-sided communication.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Others read and write a window's memory when they like, unseen: it is shared from then on. What
 * MPI_Get and its kin bring has arrived when the origin synchronises.
 */
#include "preload_mpi.h"

#include <sched.h>
#include <stdlib.h>

typedef struct getting {
    struct getting *next;
    word window;
    transfer moved;
} getting;

static getting *under_way;
static char busy;

static void lock(void)
{
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void unlock(void)
{
    __atomic_clear(&busy, __ATOMIC_RELEASE);
}

void windows_add(const mpi_library *mpi, word window, transfer *moved)
{
    getting *added = moved->written.count > 0 ? malloc(sizeof(getting)) : NULL;
    if (!added) {
        transfer_drop(mpi, moved);
        return;
    }
    *added = (getting){.window = mpi_handle(mpi, window), .moved = *moved};
    lock();
    added->next = under_way;
    under_way = added;
    unlock();
}

static void synchronised(const mpi_library *mpi, word window)
{
    getting *arrived = NULL;
    lock();
    for (getting **link = &under_way; *link;) {
        getting *seen = *link;
        if (seen->window == window) {
            *link = seen->next;
            seen->next = arrived;
            arrived = seen;
        } else {
            link = &seen->next;
        }
    }
    unlock();
    while (arrived) {
        getting *gone = arrived;
        arrived = gone->next;
        transfer_mark_written(mpi, &gone->moved, -1);
        transfer_drop(mpi, &gone->moved);
        free(gone);
    }
}

static word synchronise(OrigFn real, unsigned words, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    word result = call_real(real, words, arguments);
    if (mpi && (int)result == 0)
        synchronised(mpi, mpi_handle(mpi, arguments[words])); /* the window is the last argument */
    return result;
}

#define SYNCHRONISES(name, words) WRAPPER(name, words, synchronise(real, words, arguments))
SYNCHRONISES(Win_fence, 2)
SYNCHRONISES(Win_complete, 1)
SYNCHRONISES(Win_unlock, 2)
SYNCHRONISES(Win_unlock_all, 1)
SYNCHRONISES(Win_flush, 2)
SYNCHRONISES(Win_flush_local, 2)
SYNCHRONISES(Win_flush_all, 1)
SYNCHRONISES(Win_flush_local_all, 1)

/* ---- Windows ----
 *
 * Memory that the program gives is shared before MPI has it: a peer that is quicker may read and
 * write it before the call has returned here, and where this process lends a hand (Open MPI without
 * a network that does it) its writing looks like the program's own. Memory that MPI makes has a
 * name only afterwards, and holds nothing of the program's until then.
 */

static word on_Win_create(OrigFn real, word *arguments)
{
    MESSAGE(TRACE_SHARED, arguments[1], arguments[2]);
    return call_real(real, 6, arguments);
}
BY_HAND(Win_create, 6)
WRAPPER(Win_create_c, 6, on_Win_create(real, arguments))

static word on_Win_allocate(OrigFn real, word *arguments)
{
    word result = call_real(real, 6, arguments);
    if ((int)result == 0)
        MESSAGE(TRACE_SHARED, *(const word *)arguments[5], arguments[1]);
    return result;
}
BY_HAND(Win_allocate, 6)
WRAPPER(Win_allocate_c, 6, on_Win_allocate(real, arguments))
WRAPPER(Win_allocate_shared, 6, on_Win_allocate(real, arguments))
WRAPPER(Win_allocate_shared_c, 6, on_Win_allocate(real, arguments))

/* A peer's part of a shared window, which this process may use directly. */
static word on_Win_shared_query(OrigFn real, word *arguments)
{
    word result = call_real(real, 5, arguments);
    if ((int)result == 0 && *(const word *)arguments[5])
        MESSAGE(TRACE_SHARED, *(const word *)arguments[5], *(const word *)arguments[3]);
    return result;
}
BY_HAND(Win_shared_query, 5)
WRAPPER(Win_shared_query_c, 5, on_Win_shared_query(real, arguments))

static word on_Win_attach(OrigFn real, word *arguments)
{
    MESSAGE(TRACE_SHARED, arguments[2], arguments[3]);
    return call_real(real, 3, arguments);
}
BY_HAND(Win_attach, 3)

static word on_Win_free(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    word window = mpi ? mpi_handle_at(mpi, arguments[1], 0) : 0;
    word result = call_real(real, 1, arguments);
    if (mpi && (int)result == 0)
        synchronised(mpi, window);
    return result;
}
BY_HAND(Win_free, 1)
