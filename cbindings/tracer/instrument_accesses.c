/* instrument_accesses.c - PHASE_TRACK: every access of a superblock goes to the shadow.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Accesses are gathered and reported together: one test of their guards (shadow.h), one call when a
 * guard speaks. They are reported behind the last of them, but before anything that can leave the
 * superblock. What the superblock has accessed before is not reported again: a superblock runs from
 * its start, and only the first access counts.
 *
 * Tests: tests/tracer/test_tracer_accesses.py.
 */
#include "instrument.h"
#include "phase.h"
#include "shadow.h"

#include <pub_tool_machine.h>
#include <pub_tool_vki.h>

/* ---- What the translated code calls ---- */

/* An access as the calls get it: 12 bits, up to five in a word. A call has six arguments at most on
 * all machines. */
#define KIND_BITS 12
#define KIND_WRITE 0x800
#define KIND_BYTES 0x7ff
#define MOST_GATHERED 5

static void report(UWord kind, Addr address)
{
    const SizeT bytes = kind & KIND_BYTES;
    if (bytes <= SHADOW_GUARD_REACH && !shadow_guarded(address, bytes))
        return; /* the guard spoke for another one */
    if ((kind & KIND_WRITE) || instrument_loads_write)
        shadow_write(address, bytes);
    else
        shadow_read(address, bytes);
}

static void report_1(UWord kinds, Addr a)
{
    report(kinds, a);
}

static void report_2(UWord kinds, Addr a, Addr b)
{
    report(kinds, a);
    report(kinds >> KIND_BITS, b);
}

static void report_3(UWord kinds, Addr a, Addr b, Addr c)
{
    report(kinds, a);
    report_2(kinds >> KIND_BITS, b, c);
}

static void report_4(UWord kinds, Addr a, Addr b, Addr c, Addr d)
{
    report(kinds, a);
    report_3(kinds >> KIND_BITS, b, c, d);
}

static void report_5(UWord kinds, Addr a, Addr b, Addr c, Addr d, Addr e)
{
    report(kinds, a);
    report_4(kinds >> KIND_BITS, b, c, d, e);
}

/* ---- Addresses ---- */

/* A place: what a temporary held when it was computed, plus a distance. */
typedef struct {
    IRTemp root; /* IRTemp_INVALID: an absolute address */
    Long offset;
} place;

typedef struct {
    IRTemp root;
    Long start, end;
} range;

typedef struct {
    IRExpr *address; /* of the range's start */
    range where;
    Bool write;
} gathered_access;

#define MOST_RANGES 64

typedef struct {
    IRSB *out;
    place *places; /* of every temporary of the block */
    range seen[MOST_RANGES];
    UInt seen_count;
    gathered_access gathered[MOST_GATHERED];
    UInt gathered_count;
} tracking;

static Bool faults_are_handled = False; /* by the program, which may go on */

static place place_of(const tracking *state, const IRExpr *atom)
{
    if (atom->tag == Iex_RdTmp)
        return state->places[atom->Iex.RdTmp.tmp];
    tl_assert(atom->tag == Iex_Const);
    return (place){IRTemp_INVALID, (Long)atom->Iex.Const.con->Ico.U64};
}

static void note_sum(tracking *state, IRTemp sum, const IRExpr *base, const IRExpr *distance,
                     Int sign)
{
    if (distance->tag != Iex_Const || base->tag != Iex_RdTmp)
        return;
    state->places[sum] = place_of(state, base);
    state->places[sum].offset += sign * (Long)distance->Iex.Const.con->Ico.U64;
}

/* Follow sums of an address and a constant, so that neighbours are known as such. */
static void note_place(tracking *state, IRTemp target, const IRExpr *value)
{
    state->places[target] = (place){target, 0};
    if (value->tag == Iex_RdTmp) {
        state->places[target] = state->places[value->Iex.RdTmp.tmp];
    } else if (value->tag == Iex_Binop && value->Iex.Binop.op == Iop_Add64) {
        note_sum(state, target, value->Iex.Binop.arg1, value->Iex.Binop.arg2, 1);
        note_sum(state, target, value->Iex.Binop.arg2, value->Iex.Binop.arg1, 1);
    } else if (value->tag == Iex_Binop && value->Iex.Binop.op == Iop_Sub64) {
        note_sum(state, target, value->Iex.Binop.arg1, value->Iex.Binop.arg2, -1);
    }
}

static Bool seen_before(const tracking *state, range where)
{
    for (UInt i = 0; i < state->seen_count; i++) {
        const range *old = &state->seen[i];
        if (old->root == where.root && old->start <= where.start && where.end <= old->end)
            return True;
    }
    return False;
}

static void note_seen(tracking *state, range where)
{
    for (UInt i = 0; i < state->seen_count; i++) {
        range *old = &state->seen[i];
        if (old->root == where.root && old->start <= where.end && where.start <= old->end) {
            old->start = old->start < where.start ? old->start : where.start;
            old->end = old->end > where.end ? old->end : where.end;
            return;
        }
    }
    if (state->seen_count < MOST_RANGES)
        state->seen[state->seen_count++] = where;
}

/* ---- Code that is added ---- */

static IRExpr *constant(ULong value)
{
    return IRExpr_Const(IRConst_U64(value));
}

static IRExpr *computed(IRSB *out, IRType type, IRExpr *value)
{
    const IRTemp temp = newIRTemp(out->tyenv, type);
    addStmtToIRSB(out, IRStmt_WrTmp(temp, value));
    return IRExpr_RdTmp(temp);
}

/* The guard of an address, with what follows it in the table: a 64-bit expression. That wide, so
 * that the load can become part of the instruction that uses it. */
static IRExpr *guard_of(IRSB *out, IRExpr *address)
{
    IRExpr *low = computed(out, Ity_I32, IRExpr_Unop(Iop_64to32, address));
    IRExpr *within = computed(out, Ity_I64, IRExpr_Unop(Iop_32Uto64, low));
    IRExpr *index =
        computed(out, Ity_I64,
                 IRExpr_Binop(Iop_Shr64, within, IRExpr_Const(IRConst_U8(SHADOW_GRANULE_BITS))));
    IRExpr *entry =
        computed(out, Ity_I64, IRExpr_Binop(Iop_Add64, index, constant((Addr)shadow_guards)));
    return computed(out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, entry));
}

/* Whether one of these bits is set in a guard, or in several that were joined. */
static IRExpr *guard_speaks(IRSB *out, IRExpr *guard, UChar mask)
{
    IRExpr *bits = computed(out, Ity_I64, IRExpr_Binop(Iop_And64, guard, constant(mask)));
    return computed(out, Ity_I1, IRExpr_Unop(Iop_CmpNEZ64, bits));
}

static UWord kind_of(SizeT bytes, Bool write)
{
    return bytes | (write ? KIND_WRITE : 0);
}

static void add_call(tracking *state, IRExpr *guard, UInt count, UWord kinds, IRExpr **addresses)
{
    IRExpr **arguments;
    void *function;
    IRExpr *first = constant(kinds);
    switch (count) {
    case 1:
        function = report_1;
        arguments = mkIRExprVec_2(first, addresses[0]);
        break;
    case 2:
        function = report_2;
        arguments = mkIRExprVec_3(first, addresses[0], addresses[1]);
        break;
    case 3:
        function = report_3;
        arguments = mkIRExprVec_4(first, addresses[0], addresses[1], addresses[2]);
        break;
    case 4:
        function = report_4;
        arguments = mkIRExprVec_5(first, addresses[0], addresses[1], addresses[2], addresses[3]);
        break;
    default:
        function = report_5;
        arguments = mkIRExprVec_6(first, addresses[0], addresses[1], addresses[2], addresses[3],
                                  addresses[4]);
    }
    IRDirty *call =
        unsafeIRDirty_0_N(0, "scr_crit_report", VG_(fnptr_to_fnentry)(function), arguments);
    if (guard)
        call->guard = guard;
    addStmtToIRSB(state->out, IRStmt_Dirty(call));
}

/* Report what was gathered. */
static void report_gathered(tracking *state)
{
    IRExpr *addresses[MOST_GATHERED];
    IRExpr *guards = NULL;
    UWord kinds = 0;
    UChar mask = 0;
    if (state->gathered_count == 0)
        return;
    for (UInt i = 0; i < state->gathered_count; i++) {
        const gathered_access *access = &state->gathered[i];
        const SizeT bytes = access->where.end - access->where.start;
        IRExpr *own = guard_of(state->out, access->address);
        guards = guards ? computed(state->out, Ity_I64, IRExpr_Binop(Iop_Or64, guards, own)) : own;
        mask |= shadow_guard_mask(bytes);
        addresses[i] = access->address;
        kinds |= kind_of(bytes, access->write) << (i * KIND_BITS);
    }
    add_call(state, guard_speaks(state->out, guards, mask), state->gathered_count, kinds,
             addresses);
    state->gathered_count = 0;
}

/* Make an access part of one that was gathered: only where no access of the other kind lies
 * between, for such two could meet the same byte. */
static Bool joined(tracking *state, range where, IRExpr *address, Bool write)
{
    for (UInt i = state->gathered_count; i-- > 0 && state->gathered[i].write == write;) {
        gathered_access *old = &state->gathered[i];
        if (old->where.root != where.root || old->where.start > where.end ||
            where.start > old->where.end)
            continue;
        const Long start = old->where.start < where.start ? old->where.start : where.start;
        const Long end = old->where.end > where.end ? old->where.end : where.end;
        if (end - start > SHADOW_GUARD_REACH)
            continue;
        if (where.start < old->where.start)
            old->address = address;
        old->where.start = start;
        old->where.end = end;
        return True;
    }
    return False;
}

/* Report one access now, where `condition` holds (NULL: always); of any size. */
static void report_now(tracking *state, IRExpr *address, SizeT bytes, Bool write, IRExpr *condition)
{
    IRExpr *guard = condition;
    report_gathered(state);
    if (bytes <= SHADOW_GUARD_REACH) {
        guard = guard_speaks(state->out, guard_of(state->out, address), shadow_guard_mask(bytes));
        if (condition)
            guard = computed(state->out, Ity_I1, IRExpr_Binop(Iop_And1, guard, condition));
    }
    tl_assert(bytes <= KIND_BYTES);
    add_call(state, guard, 1, kind_of(bytes, write), &address);
}

static void gather(tracking *state, IRExpr *address, SizeT bytes, Bool write)
{
    if (faults_are_handled) {
        report_now(state, address, bytes, write, NULL);
        return;
    }
    const place at = place_of(state, address);
    const range where = {at.root, at.offset, at.offset + (Long)bytes};
    if (seen_before(state, where))
        return;
    note_seen(state, where);
    if (joined(state, where, address, write))
        return;
    if (state->gathered_count == MOST_GATHERED)
        report_gathered(state);
    state->gathered[state->gathered_count++] = (gathered_access){address, where, write};
}

/* ---- Statements ---- */

static SizeT size_of(const tracking *state, const IRExpr *atom)
{
    return sizeofIRType(typeOfIRExpr(state->out->tyenv, atom));
}

static void add_load_guarded(tracking *state, const IRLoadG *load)
{
    IRType result, loaded;
    typeOfIRLoadGOp(load->cvt, &result, &loaded);
    report_now(state, load->addr, sizeofIRType(loaded), False, load->guard);
}

/* A compare-and-swap reads, whether it then writes or not. */
static void add_cas(tracking *state, const IRCAS *cas)
{
    const SizeT half = size_of(state, cas->dataLo);
    report_now(state, cas->addr, cas->dataHi ? 2 * half : half, False, NULL);
}

static void add_llsc(tracking *state, const IRStmt *statement)
{
    IRExpr *stored = statement->Ist.LLSC.storedata;
    const SizeT bytes =
        stored ? size_of(state, stored)
               : (SizeT)sizeofIRType(typeOfIRTemp(state->out->tyenv, statement->Ist.LLSC.result));
    report_now(state, statement->Ist.LLSC.addr, bytes, stored != NULL, NULL);
}

static void add_dirty(tracking *state, const IRDirty *dirty)
{
    if (dirty->mFx != Ifx_None)
        report_now(state, dirty->mAddr, dirty->mSize, dirty->mFx == Ifx_Write, dirty->guard);
}

/* An exit that raises a signal is as rare as one that an access itself raises:
 * instrument_signal_delivered. */
static Bool raises_fault(IRJumpKind kind)
{
    return kind == Ijk_SigSEGV || kind == Ijk_SigBUS || kind == Ijk_SigILL || kind == Ijk_SigTRAP ||
           kind == Ijk_SigFPE_IntDiv || kind == Ijk_SigFPE_IntOvf;
}

static void add_accesses(tracking *state, IRStmt *statement)
{
    switch (statement->tag) {
    case Ist_WrTmp: {
        const IRExpr *value = statement->Ist.WrTmp.data;
        note_place(state, statement->Ist.WrTmp.tmp, value);
        if (value->tag == Iex_Load)
            gather(state, value->Iex.Load.addr, sizeofIRType(value->Iex.Load.ty), False);
        break;
    }
    case Ist_Store:
        gather(state, statement->Ist.Store.addr, size_of(state, statement->Ist.Store.data), True);
        break;
    case Ist_LoadG:
        add_load_guarded(state, statement->Ist.LoadG.details);
        break;
    case Ist_StoreG: {
        const IRStoreG *store = statement->Ist.StoreG.details;
        report_now(state, store->addr, size_of(state, store->data), True, store->guard);
        break;
    }
    case Ist_CAS:
        add_cas(state, statement->Ist.CAS.details);
        break;
    case Ist_LLSC:
        add_llsc(state, statement);
        break;
    case Ist_Dirty:
        add_dirty(state, statement->Ist.Dirty.details);
        break;
    case Ist_Exit:
        if (!raises_fault(statement->Ist.Exit.jk))
            report_gathered(state);
        break;
    default:
        break;
    }
}

/* Temporaries that no followed sum sets stand for themselves. */
static place *fresh_places(UInt count)
{
    static place *places;
    static UInt room;
    if (count > room) {
        places = VG_(realloc)("accesses.places", places, count * sizeof(place));
        room = count;
    }
    for (UInt i = 0; i < count; i++)
        places[i] = (place){i, 0};
    return places;
}

IRSB *instrument_accesses(IRSB *block, const VexGuestLayout *layout)
{
    static tracking state; /* one translation at a time */
    (void)layout;
    state.out = deepCopyIRSBExceptStmts(block);
    state.places = fresh_places(block->tyenv->types_used);
    state.seen_count = state.gathered_count = 0;
    for (Int i = 0; i < block->stmts_used; i++) {
        add_accesses(&state, block->stmts[i]);
        addStmtToIRSB(state.out, block->stmts[i]);
    }
    report_gathered(&state);
    return state.out;
}

/* Signals that an instruction can raise: the rest of its superblock does not run. */
static Bool is_fault(Int number)
{
    return number == VKI_SIGSEGV || number == VKI_SIGBUS || number == VKI_SIGFPE ||
           number == VKI_SIGILL || number == VKI_SIGTRAP;
}

void instrument_signal_delivered(Int number)
{
    if (faults_are_handled || !is_fault(number))
        return;
    if (shadow_pending() > 0) {
        tool_warn("the program handles SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGTRAP; what was "
                  "undecided when the first one came counts as needed");
        shadow_read(0, ~(SizeT)0);
    }
    faults_are_handled = True;
    phase_discard_translations();
}
