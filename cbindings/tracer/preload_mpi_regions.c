/* preload_mpi_regions.c - buffers: from the arguments of a call to memory, and what the tool is
 * told of them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A datatype with gaps is walked by MPI_Pack, whose loads are exactly the bytes of the datatype:
 * for a send buffer they count as reads and the packed copy as used, for a receive buffer loads
 * count as writes while it packs.
 */
#include "preload_mpi.h"

#include <limits.h>
#include <stdlib.h>

/* Packed at a time: small beside what is sent, large beside the cost of a call. */
#define SCRATCH_BYTES (1 << 20)

/* ---- Datatypes ---- */

static bool region_of_type(const mpi_library *mpi, word type, region *made)
{
    long long size = 0;
    int small = 0;
    long lower, true_lower;
    if (mpi->Type_size_x) {
        if (mpi->Type_size_x(type, &size))
            return false;
    } else {
        if (mpi->Type_size(type, &small))
            return false;
        size = small;
    }
    if (mpi->Type_get_extent(type, &lower, &made->extent) ||
        mpi->Type_get_true_extent(type, &true_lower, &made->true_extent))
        return false;
    made->type = type;
    made->size = (long)size;
    made->true_lower = true_lower;
    return true;
}

/* ---- Lists ---- */

static void list_add(region_list *list, word address, long count, const region *typed)
{
    if (count <= 0 || typed->size <= 0)
        return;
    region *place = &list->first;
    if (list->count == 1) {
        list->regions = malloc(2 * sizeof(region));
        if (list->regions)
            list->regions[0] = list->first;
    } else if (list->count >= 2 && (list->count & (list->count - 1)) == 0) {
        region *larger = realloc(list->regions, 2 * (size_t)list->count * sizeof(region));
        if (!larger)
            return;
        list->regions = larger;
    }
    if (list->count > 0) {
        if (!list->regions)
            return;
        place = &list->regions[list->count];
    }
    *place = *typed;
    place->address = address;
    place->count = count;
    place->dense =
        typed->size == typed->true_extent && (count == 1 || typed->size == typed->extent);
    list->count++;
}

static region *list_at(const region_list *list, long index)
{
    return list->count > 1 ? &list->regions[index] : (region *)&list->first;
}

static void list_keep_types(const mpi_library *mpi, region_list *list)
{
    for (long i = 0; i < list->count; i++) {
        region *kept = list_at(list, i);
        word copy = 0;
        if (kept->dense)
            continue;
        kept->type = mpi->Type_dup(kept->type, &copy) == 0 ? mpi_handle(mpi, copy) : 0;
    }
}

static void list_drop(const mpi_library *mpi, region_list *list, bool owns_types)
{
    for (long i = 0; owns_types && i < list->count; i++) {
        region *kept = list_at(list, i);
        if (!kept->dense && kept->type)
            mpi->Type_free(&kept->type);
    }
    free(list->regions);
    list->regions = NULL;
    list->count = 0;
}

/* ---- The communicator's members ---- */

typedef struct {
    bool known;
    bool inter;
    int rank, size; /* size: of the other group in an intercommunicator */
    int own_size;
    int *sources, *targets; /* of a topology; owned */
    int source_count, target_count;
} members;

static void graph_members(const mpi_library *mpi, word comm, int rank, members *who)
{
    int count = 0;
    if (mpi->Graph_neighbors_count(comm, rank, &count) || count <= 0)
        return;
    who->sources = malloc((size_t)count * sizeof(int));
    who->targets = malloc((size_t)count * sizeof(int));
    if (!who->sources || !who->targets || mpi->Graph_neighbors(comm, rank, count, who->sources) ||
        mpi->Graph_neighbors(comm, rank, count, who->targets))
        return;
    who->source_count = who->target_count = count;
}

static void cart_members(const mpi_library *mpi, word comm, members *who)
{
    int dimensions = 0;
    if (mpi->Cartdim_get(comm, &dimensions) || dimensions <= 0)
        return;
    who->sources = malloc(2 * (size_t)dimensions * sizeof(int));
    who->targets = malloc(2 * (size_t)dimensions * sizeof(int));
    if (!who->sources || !who->targets)
        return;
    for (int d = 0; d < dimensions; d++) {
        int *pair = who->sources + 2 * d;
        if (mpi->Cart_shift(comm, d, 1, &pair[0], &pair[1]))
            return;
        who->targets[2 * d] = pair[0];
        who->targets[2 * d + 1] = pair[1];
    }
    who->source_count = who->target_count = 2 * dimensions;
}

static void dist_graph_members(const mpi_library *mpi, word comm, members *who)
{
    int in = 0, out = 0, weighted;
    if (!mpi->Dist_graph_neighbors_count || !mpi->Dist_graph_neighbors ||
        mpi->Dist_graph_neighbors_count(comm, &in, &out, &weighted))
        return;
    who->sources = malloc(((size_t)in + 1) * sizeof(int));
    who->targets = malloc(((size_t)out + 1) * sizeof(int));
    int *weights = malloc(((size_t)in + (size_t)out + 2) * sizeof(int));
    if (who->sources && who->targets && weights &&
        mpi->Dist_graph_neighbors(comm, in, who->sources, weights, out, who->targets,
                                  weights + in + 1) == 0) {
        who->source_count = in;
        who->target_count = out;
    }
    free(weights);
}

static void members_take(const mpi_library *mpi, word comm, bool neighbours, members *who)
{
    int inter = 0, topology = 0;
    *who = (members){0};
    if (mpi->Comm_test_inter(comm, &inter) || mpi->Comm_rank(comm, &who->rank) ||
        mpi->Comm_size(comm, &who->own_size))
        return;
    who->inter = inter != 0;
    who->size = who->own_size;
    if (inter && mpi->Comm_remote_size(comm, &who->size))
        return;
    who->known = true;
    if (!neighbours || mpi->Topo_test(comm, &topology))
        return;
    if (topology == mpi->cart)
        cart_members(mpi, comm, who);
    else if (topology == mpi->graph)
        graph_members(mpi, comm, who->rank, who);
    else if (topology == mpi->dist_graph)
        dist_graph_members(mpi, comm, who);
}

static void members_drop(members *who)
{
    free(who->sources);
    free(who->targets);
}

/* ---- From arguments to regions ---- */

/* What one buffer of one call needs. */
typedef struct {
    const mpi_library *mpi;
    const call_rule *rule;
    const word *arguments;
    const members *who;
    long only; /* this peer's block only, or -1 */
    long skip; /* not this peer's block, or -1 */
} taking;

static long number_in(const taking *t, unsigned char position)
{
    if (!position)
        return 1;
    return t->rule->large ? (long)t->arguments[position] : (long)(int)t->arguments[position];
}

static long element_of(word array, long index, bool is_long)
{
    return is_long ? ((const long *)array)[index] : ((const int *)array)[index];
}

static long peer_count(const taking *t, unsigned char peers)
{
    return peers == SOURCES   ? t->who->source_count
           : peers == TARGETS ? t->who->target_count
                              : t->who->size;
}

static bool peer_moves(const taking *t, unsigned char peers, long peer)
{
    if ((t->only >= 0 && peer != t->only) || peer == t->skip)
        return false;
    if (peers == SOURCES)
        return t->who->sources[peer] != t->mpi->proc_null;
    if (peers == TARGETS)
        return t->who->targets[peer] != t->mpi->proc_null;
    return true;
}

static void take_each_peer(const taking *t, const buffer_rule *buffer, word address,
                           region_list *list)
{
    const word *a = t->arguments;
    bool wide_counts = t->rule->large;
    bool wide_displacements = t->rule->large || t->rule->aint;
    region typed = {0};
    if (buffer->shape != W && !region_of_type(t->mpi, mpi_handle(t->mpi, a[buffer->type]), &typed))
        return;
    for (long peer = 0; peer < peer_count(t, buffer->peers); peer++) {
        if (!peer_moves(t, buffer->peers, peer))
            continue;
        long count = buffer->shape == BLOCKS ? number_in(t, buffer->count)
                                             : element_of(a[buffer->count], peer, wide_counts);
        if (count <= 0)
            continue;
        if (buffer->shape == W &&
            !region_of_type(t->mpi, mpi_handle_at(t->mpi, a[buffer->type], peer), &typed))
            continue;
        long offset = buffer->shape == BLOCKS
                          ? peer * count
                          : element_of(a[buffer->displacements], peer, wide_displacements);
        long step = buffer->shape == W ? 1 : typed.extent;
        list_add(list, address + (word)(offset * step), count, &typed);
    }
}

/* Elements of a buffer that is one piece for this process; -1: it is one piece for each peer. */
static long elements_in_one_piece(const taking *t, const buffer_rule *buffer)
{
    const word *a = t->arguments;
    long sum = 0;
    switch (buffer->shape) {
    case ONE:
        return number_in(t, buffer->count);
    case SUM:
        for (long peer = 0; peer < t->who->own_size; peer++)
            sum += element_of(a[buffer->count], peer, t->rule->large);
        return sum;
    case MINE:
        return element_of(a[buffer->count], t->who->rank, t->rule->large);
    case PARTITIONS:
        return number_in(t, buffer->count) * (long)(int)a[buffer->displacements];
    case BLOCKS:
        if (buffer->peers == GROUP && t->only < 0 && t->skip < 0)
            return number_in(t, buffer->count) * t->who->size;
        return -1;
    }
    return -1;
}

static void take_buffer(const taking *t, const buffer_rule *buffer, word address, region_list *list)
{
    region typed = {0};
    long count = elements_in_one_piece(t, buffer);
    if (count < 0) {
        take_each_peer(t, buffer, address, list);
        return;
    }
    /* A datatype beside a count of 0 need not be valid. */
    if (count == 0 ||
        !region_of_type(t->mpi, mpi_handle(t->mpi, t->arguments[buffer->type]), &typed))
        return;
    list_add(list, address, count, &typed);
}

static bool holds(const taking *t, const buffer_rule *buffer)
{
    if (buffer->shape == NO_BUFFER)
        return false;
    int root = t->rule->root ? (int)t->arguments[t->rule->root] : 0;
    bool is_root = t->who->inter ? root == t->mpi->root : root == t->who->rank;
    switch (buffer->who) {
    case AT_ROOT:
        return is_root;
    case NOT_AT_ROOT:
        return !is_root && root != t->mpi->proc_null;
    case LEAVES:
        return !t->who->inter || root >= 0;
    case NOT_FIRST:
        return t->who->rank > 0;
    }
    return true;
}

static bool peer_is_null(const taking *t, unsigned char position)
{
    return position && (int)t->arguments[position] == t->mpi->proc_null;
}

static void take_in_place(taking *t, transfer *moved)
{
    const call_rule *rule = t->rule;
    word receive = t->arguments[rule->written.buffer];
    switch (rule->in_place) {
    case IN_PLACE_OWN:
        t->only = t->who->rank;
        take_buffer(t, &rule->written, receive, &moved->read);
        t->only = -1;
        t->skip = t->who->rank;
        break;
    case IN_PLACE_STAYS:
        t->skip = t->who->rank;
        break;
    case IN_PLACE_SWAP:
        take_buffer(t, &rule->written, receive, &moved->read);
        break;
    case IN_PLACE_INPUT:
        take_buffer(t, &rule->read, receive, &moved->read);
        break;
    }
}

static void take_read(taking *t, transfer *moved)
{
    const call_rule *rule = t->rule;
    const word *a = t->arguments;
    if (!holds(t, &rule->read) || peer_is_null(t, rule->to))
        return;
    if (rule->op && mpi_handle(t->mpi, a[rule->op]) == t->mpi->op_no_op)
        return;
    if (rule->in_place && a[rule->read.buffer] == t->mpi->in_place) {
        take_in_place(t, moved);
        return;
    }
    /* MPI_Scatter at the root, in place: its own block stays where it is. */
    if (rule->in_place == IN_PLACE_STAYS && rule->written.who == LEAVES &&
        a[rule->written.buffer] == t->mpi->in_place)
        t->skip = t->who->rank;
    take_buffer(t, &rule->read, a[rule->read.buffer], &moved->read);
    if (rule->also_read.shape != NO_BUFFER)
        take_buffer(t, &rule->also_read, a[rule->also_read.buffer], &moved->read);
}

static void take_written(taking *t, transfer *moved)
{
    const call_rule *rule = t->rule;
    if (!holds(t, &rule->written) || peer_is_null(t, rule->from) || rule->unsure)
        return;
    word address = t->arguments[rule->written.buffer];
    if (rule->in_place && address == t->mpi->in_place)
        return;
    take_buffer(t, &rule->written, address, &moved->written);
}

void transfer_take(const mpi_library *mpi, const call_rule *rule, const word *arguments, bool keep,
                   transfer *moved)
{
    members who = {.known = true};
    *moved = (transfer){.comm = mpi->comm_self, .counted = rule->counted};
    if (rule->comm) {
        int initialized = 0;
        word comm = mpi_handle(mpi, arguments[rule->comm]);
        /* Without a world (MPI 4's sessions) there is no MPI_COMM_SELF. */
        if (mpi->Initialized(&initialized) || !initialized)
            moved->comm = comm;
        if (!rule->to && !rule->from)
            members_take(mpi, comm, rule->read.peers != GROUP || rule->written.peers != GROUP,
                         &who);
    }
    if (!who.known)
        return;
    taking t = {mpi, rule, arguments, &who, -1, -1};
    take_read(&t, moved);
    if (rule->written.who == LEAVES) /* MPI_Scatter's own block was the send buffer's */
        t.skip = -1;
    take_written(&t, moved);
    members_drop(&who);

    const buffer_rule *parts = rule->read.shape == PARTITIONS ? &rule->read : &rule->written;
    if (parts->shape == PARTITIONS)
        moved->partitions = (long)(int)arguments[parts->displacements];
    moved->owns_read_types = keep && rule->persistent;
    moved->owns_written_types = keep;
    if (moved->owns_read_types)
        list_keep_types(mpi, &moved->read);
    if (moved->owns_written_types)
        list_keep_types(mpi, &moved->written);
}

void transfer_drop(const mpi_library *mpi, transfer *moved)
{
    list_drop(mpi, &moved->read, moved->owns_read_types);
    list_drop(mpi, &moved->written, moved->owns_written_types);
}

/* ---- Telling the tool ---- */

/* MPI_BOTTOM: the datatype's displacements are addresses. Not every MPI_Pack takes that; the same
 * datatype seen from its first byte serves all. */
static bool rebase(const mpi_library *mpi, const region *walked, region *based)
{
    int one = 1;
    long displacement = -walked->true_lower;
    *based = *walked;
    based->address = (word)walked->true_lower;
    based->type = 0;
    if (mpi->Type_create_hindexed(1, &one, &displacement, walked->type, &based->type) ||
        mpi->Type_commit(&based->type))
        return false;
    based->type = mpi_handle(mpi, based->type);
    return true;
}

/* Pack elements in pieces; the packed copies count as read where they are a send buffer's. */
static bool pack(const mpi_library *mpi, const region *walked, word comm, bool written)
{
    long at_once = SCRATCH_BYTES / walked->size;
    at_once = at_once < 1 ? 1 : at_once > walked->count ? walked->count : at_once;
    int bytes = 0;
    if (mpi->Pack_size((int)at_once, walked->type, comm, &bytes))
        return false;
    void *scratch = malloc((size_t)bytes);
    bool done = scratch != NULL;
    for (long first = 0; done && first < walked->count; first += at_once) {
        long now = walked->count - first < at_once ? walked->count - first : at_once;
        int used = 0;
        word from = walked->address + (word)(first * walked->extent);
        if (written)
            MESSAGE(TRACE_LOADS_ARE_WRITES, 1, 0);
        done =
            mpi->Pack((const void *)from, (int)now, walked->type, scratch, bytes, &used, comm) == 0;
        if (written)
            MESSAGE(TRACE_LOADS_ARE_WRITES, 0, 0);
        else if (done)
            MESSAGE(TRACE_READ, scratch, used);
    }
    free(scratch);
    return done;
}

static bool walk(const mpi_library *mpi, const region *gappy, word comm, long count, bool written)
{
    region walked = *gappy;
    if (!walked.type || walked.size > INT_MAX / 2)
        return false;
    bool is_bottom = walked.address == 0;
    if (is_bottom && !rebase(mpi, gappy, &walked))
        return false;
    walked.count = count;
    bool done = pack(mpi, &walked, comm, written);
    if (is_bottom)
        mpi->Type_free(&walked.type);
    return done;
}

static void mark_read(const mpi_library *mpi, const region *read, word comm)
{
    word start = read->address + (word)read->true_lower;
    if (read->dense)
        MESSAGE(TRACE_READ, start, read->count * read->size);
    else if (!walk(mpi, read, comm, read->count, false))
        /* What lies in the gaps is then called read, too: that keeps bytes, and loses none. */
        MESSAGE(TRACE_READ, start, (read->count - 1) * read->extent + read->true_extent);
}

static void mark_written(const mpi_library *mpi, const region *written, word comm, long bytes)
{
    long most = written->count * written->size;
    if (bytes < 0 || bytes > most)
        bytes = most;
    if (bytes == 0)
        return;
    if (written->dense)
        MESSAGE(TRACE_WRITTEN, written->address + (word)written->true_lower, bytes);
    else if (bytes >= written->size)
        (void)walk(mpi, written, comm, bytes / written->size, true);
}

void transfer_mark_read(const mpi_library *mpi, const transfer *moved)
{
    for (long i = 0; i < moved->read.count; i++)
        mark_read(mpi, list_at(&moved->read, i), moved->comm);
}

void transfer_mark_written(const mpi_library *mpi, const transfer *moved, long bytes)
{
    for (long i = 0; i < moved->written.count; i++)
        mark_written(mpi, list_at(&moved->written, i), moved->comm, bytes);
}

void transfer_mark_partition(const mpi_library *mpi, const transfer *moved, long partition,
                             bool written)
{
    const region_list *list = written ? &moved->written : &moved->read;
    if (list->count == 0 || partition < 0 || partition >= moved->partitions)
        return;
    region part = *list_at(list, 0);
    part.count /= moved->partitions;
    part.address += (word)(partition * part.count * part.extent);
    if (written)
        mark_written(mpi, &part, moved->comm, -1);
    else
        mark_read(mpi, &part, moved->comm);
}
