/* preload_mpi_requests.c - transfers that complete later: Start, Wait, Test and their kin.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A receive buffer counts as written when its request completes, with the length that the status
 * tells; the handle is gone by then, so it is read before the call.
 */
#include "preload_mpi.h"

#include <sched.h>
#include <stdlib.h>

typedef struct pending {
    struct pending *next;
    word request;
    transfer moved;
    bool persistent;
    bool active; /* persistent: started and not complete */
} pending;

/* By the handle's low bits; each list oldest first: some libraries give one handle to several
 * transfers that are complete from the start. */
#define BUCKETS 4096
static pending *buckets[BUCKETS];
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

static pending **bucket_of(word request)
{
    return &buckets[(request ^ request >> 4 ^ request >> 16) % BUCKETS];
}

/* Where the pointer to the oldest transfer of this request is; the lock is held. */
static pending **find(word request)
{
    pending **link = bucket_of(request);
    while (*link && (*link)->request != request)
        link = &(*link)->next;
    return *link ? link : NULL;
}

/* The oldest transfer of this request, or NULL. It stays valid: a request is completed, started or
 * freed by one thread at a time. */
static pending *look_up(word request)
{
    lock();
    pending **link = find(request);
    pending *found = link ? *link : NULL;
    unlock();
    return found;
}

static pending *take_out(word request)
{
    lock();
    pending **link = find(request);
    pending *found = link ? *link : NULL;
    if (found)
        *link = found->next;
    unlock();
    return found;
}

void requests_add(const mpi_library *mpi, word request, bool persistent, transfer *moved)
{
    pending *added = NULL;
    if (moved->written.count > 0 || persistent)
        added = malloc(sizeof(pending));
    if (!added) {
        transfer_drop(mpi, moved);
        return;
    }
    *added = (pending){
        .request = mpi_handle_at(mpi, request, 0), .moved = *moved, .persistent = persistent};
    lock();
    pending **end = bucket_of(added->request);
    while (*end)
        end = &(*end)->next;
    *end = added;
    unlock();
}

static void forget(const mpi_library *mpi, word request)
{
    pending *gone = take_out(request);
    if (gone) {
        transfer_drop(mpi, &gone->moved);
        free(gone);
    }
}

long status_bytes_received(const mpi_library *mpi, const void *status)
{
    int flag = 0, count = 0;
    long long bytes = 0;
    if (mpi->Test_cancelled(status, &flag) || flag)
        return 0;
    if (mpi->Get_elements_x) {
        if (mpi->Get_elements_x(status, mpi->byte_type, &bytes))
            return 0;
    } else {
        if (mpi->Get_count(status, mpi->byte_type, &count))
            return 0;
        bytes = count;
    }
    return bytes < 0 ? 0 : (long)bytes;
}

static void mark(const mpi_library *mpi, const pending *done, const void *status)
{
    long bytes = done->moved.counted ? status_bytes_received(mpi, status) : -1;
    transfer_mark_written(mpi, &done->moved, bytes);
}

static void complete(const mpi_library *mpi, word request, const void *status)
{
    pending *done = look_up(request);
    if (!done)
        return;
    if (!done->persistent) {
        mark(mpi, done, status);
        forget(mpi, request);
    } else if (done->active) {
        done->active = false;
        mark(mpi, done, status);
    }
}

/* ---- Starting ---- */

static void start(const mpi_library *mpi, word request)
{
    pending *started = look_up(request);
    if (!started)
        return;
    started->active = true;
    /* Partitions are given to MPI one by one. */
    if (started->moved.partitions == 0)
        transfer_mark_read(mpi, &started->moved);
}

static word on_Start(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    if (mpi)
        start(mpi, mpi_handle_at(mpi, arguments[1], 0));
    return call_real(real, 1, arguments);
}
BY_HAND(Start, 1)

static word on_Startall(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    for (int i = 0; mpi && i < (int)arguments[1]; i++)
        start(mpi, mpi_handle_at(mpi, arguments[2], i));
    return call_real(real, 2, arguments);
}
BY_HAND(Startall, 2)

static void mark_partition(const mpi_library *mpi, word request, long partition, bool written)
{
    const pending *of = look_up(request);
    if (of)
        transfer_mark_partition(mpi, &of->moved, partition, written);
}

static word on_Pready(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    if (mpi)
        mark_partition(mpi, mpi_handle(mpi, arguments[2]), (int)arguments[1], false);
    return call_real(real, 2, arguments);
}
BY_HAND(Pready, 2)

static word on_Pready_range(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    for (long i = (int)arguments[1]; mpi && i <= (long)(int)arguments[2]; i++)
        mark_partition(mpi, mpi_handle(mpi, arguments[3]), i, false);
    return call_real(real, 3, arguments);
}
BY_HAND(Pready_range, 3)

static word on_Pready_list(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    const int *partitions = (const int *)arguments[2];
    for (int i = 0; mpi && i < (int)arguments[1]; i++)
        mark_partition(mpi, mpi_handle(mpi, arguments[3]), partitions[i], false);
    return call_real(real, 3, arguments);
}
BY_HAND(Pready_list, 3)

static word on_Parrived(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    word result = call_real(real, 3, arguments);
    if (mpi && (int)result == 0 && *(const int *)arguments[3])
        mark_partition(mpi, mpi_handle(mpi, arguments[1]), (int)arguments[2], true);
    return result;
}
BY_HAND(Parrived, 3)

static word on_Request_free(OrigFn real, word *arguments)
{
    const mpi_library *mpi = mpi_find(real);
    word request = mpi ? mpi_handle_at(mpi, arguments[1], 0) : 0;
    word result = call_real(real, 1, arguments);
    if (mpi && (int)result == 0)
        forget(mpi, request);
    return result;
}
BY_HAND(Request_free, 1)

/* ---- Completing ---- */

/* The call's requests and statuses, with room for the latter where the program ignores them. */
typedef struct {
    const mpi_library *mpi;
    long count;
    word *requests;
    char *statuses;
    void *owned; /* both, where they are not the few below */
    word few[4 + 4 * 4];
} completing;

static bool completing_begin(completing *c, OrigFn real, long count, word array, word *statuses,
                             long status_count)
{
    c->mpi = mpi_find(real);
    if (!c->mpi || count < 0)
        return false;
    c->count = count;
    c->owned = NULL;
    c->requests = c->few;
    if (count > 4 || status_count > 4) {
        size_t room = (size_t)count * sizeof(word) + (size_t)status_count * c->mpi->status_bytes;
        c->requests = c->owned = malloc(room);
        if (!c->owned)
            return false;
    }
    for (long i = 0; i < count; i++)
        c->requests[i] = mpi_handle_at(c->mpi, array, i);
    if (*statuses == c->mpi->status_ignore)
        *statuses = (word)(c->owned ? c->requests + count : c->few + 4);
    c->statuses = (char *)*statuses;
    return true;
}

/* The request at index completed; its status is the nth. */
static void completing_done(completing *c, long index, long nth)
{
    if (index >= 0 && index < c->count)
        complete(c->mpi, c->requests[index], c->statuses + nth * (long)c->mpi->status_bytes);
}

static void completing_end(completing *c)
{
    free(c->owned);
}

/* Wait, Test: one request; flag: position of the flag, or 0. */
static word complete_one(OrigFn real, unsigned words, word *a, unsigned flag, unsigned status)
{
    completing c;
    if (!completing_begin(&c, real, 1, a[1], &a[status], 1))
        return call_real(real, words, a);
    word result = call_real(real, words, a);
    if ((int)result == 0 && (!flag || *(const int *)a[flag]))
        completing_done(&c, 0, 0);
    completing_end(&c);
    return result;
}

static word on_Wait(OrigFn real, word *arguments)
{
    return complete_one(real, 2, arguments, 0, 2);
}
BY_HAND(Wait, 2)

static word on_Test(OrigFn real, word *arguments)
{
    return complete_one(real, 3, arguments, 2, 3);
}
BY_HAND(Test, 3)

static word complete_any(OrigFn real, unsigned words, word *a, unsigned flag, unsigned status)
{
    completing c;
    if (!completing_begin(&c, real, (int)a[1], a[2], &a[status], 1))
        return call_real(real, words, a);
    word result = call_real(real, words, a);
    if ((int)result == 0 && (!flag || *(const int *)a[flag]))
        completing_done(&c, *(const int *)a[3], 0);
    completing_end(&c);
    return result;
}

static word on_Waitany(OrigFn real, word *arguments)
{
    return complete_any(real, 4, arguments, 0, 4);
}
BY_HAND(Waitany, 4)

static word on_Testany(OrigFn real, word *arguments)
{
    return complete_any(real, 5, arguments, 4, 5);
}
BY_HAND(Testany, 5)

static word complete_all(OrigFn real, unsigned words, word *a, unsigned flag, unsigned status)
{
    completing c;
    if (!completing_begin(&c, real, (int)a[1], a[2], &a[status], (int)a[1]))
        return call_real(real, words, a);
    word result = call_real(real, words, a);
    for (long i = 0; (int)result == 0 && (!flag || *(const int *)a[flag]) && i < c.count; i++)
        completing_done(&c, i, i);
    completing_end(&c);
    return result;
}

static word on_Waitall(OrigFn real, word *arguments)
{
    return complete_all(real, 3, arguments, 0, 3);
}
BY_HAND(Waitall, 3)

static word on_Testall(OrigFn real, word *arguments)
{
    return complete_all(real, 4, arguments, 3, 4);
}
BY_HAND(Testall, 4)

static word complete_some(OrigFn real, word *a)
{
    completing c;
    if (!completing_begin(&c, real, (int)a[1], a[2], &a[5], (int)a[1]))
        return call_real(real, 5, a);
    word result = call_real(real, 5, a);
    int done = (int)result == 0 ? *(const int *)a[3] : 0; /* MPI_UNDEFINED is negative */
    for (int i = 0; i < done; i++)
        completing_done(&c, ((const int *)a[4])[i], i);
    completing_end(&c);
    return result;
}

static word on_Waitsome(OrigFn real, word *arguments)
{
    return complete_some(real, arguments);
}
BY_HAND(Waitsome, 5)

static word on_Testsome(OrigFn real, word *arguments)
{
    return complete_some(real, arguments);
}
BY_HAND(Testsome, 5)

/* Complete, but the request lives on: the program may use the buffer now, and waits later. */
static word on_Request_get_status(OrigFn real, word *a)
{
    const mpi_library *mpi = mpi_find(real);
    word own[8];
    if (!mpi)
        return call_real(real, 3, a);
    if (a[3] == mpi->status_ignore)
        a[3] = (word)own;
    word result = call_real(real, 3, a);
    pending *done = look_up(mpi_handle(mpi, a[1]));
    if ((int)result == 0 && *(const int *)a[2] && done && (!done->persistent || done->active))
        mark(mpi, done, (const void *)a[3]);
    return result;
}
BY_HAND(Request_get_status, 3)
