"""``scr_critplugin.tracing``: from the traces of ranks, checkpoints and runs to a plan, on made-up traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traced_runs import RECORD, add_states, save_run
from traces import (
    CRITICAL,
    DEAD,
    DERIVED,
    GONE,
    NEVER,
    READ,
    SHARED,
    UNUSED,
    USED,
    WRITTEN,
    TraceBuilder,
)

from scr_critplugin.criticality import ElementState
from scr_critplugin.errors import NoGainError, TraceError
from scr_critplugin.packed import pack, unpack
from scr_critplugin.tracing.planning import Outcome, make_plan

HEADER = 72
EDGE = 12
GHOSTED = np.full((EDGE, EDGE, EDGE), DEAD, np.uint8)
GHOSTED[2:-2, 2:-2, 2:-2] = CRITICAL
BYTES = GHOSTED.size * 8


def heat_trace(
    rank: int = 0,
    ranks: int = 1,
    checkpoints: tuple[int, ...] = (10, 20),
    masks: tuple[np.ndarray, ...] = (GHOSTED, np.full_like(GHOSTED, DEAD)),
    **options: str,
) -> TraceBuilder:
    """A program that writes a header and one array for each mask, in the pieces that stdio makes of them."""
    trace = TraceBuilder(rank=rank, ranks=ranks, **options)
    blocks = [trace.block(0x10000 * (n + 1), BYTES, f"make@app(app.c:{n + 1})") for n in range(len(masks))]
    for step in checkpoints:
        generation = trace.generation(dataset=f"ckpt.{step}")
        size = HEADER + len(masks) * BYTES
        file = trace.file(generation, f"/p/ckpt.{step}/heat.{rank}", size)
        trace.state(file, 0, HEADER, CRITICAL, DERIVED)
        for number, mask in enumerate(masks):
            start, address = HEADER + number * BYTES, 0x10000 * (number + 1)
            cut = 4096 - HEADER
            trace.source(file, start, cut, address, blocks[number])
            trace.source(file, start + cut, BYTES - cut, address + cut, blocks[number])
            add_states(trace, file, start, mask, 8)
    return trace


def planned(tmp_path: Path, *traces: TraceBuilder, shapes=None, **record) -> Outcome:
    return make_plan([save_run(tmp_path / "run", traces, replace(RECORD, **record))], shapes)


def kept_mask(outcome: Outcome, size: int, folder: Path, name: str, rank: int = 0, dataset="ckpt.10"):
    """Bytes that survive packing and expanding by the plan, asked of the C core itself."""
    source, packed, out = folder / "file", folder / "packed", folder / "out"
    source.write_bytes(b"\x11" * size)
    match = outcome.plan.match(name, rank, dataset)
    pack(source, packed, outcome.plan, entry=match.index)
    unpack(packed, out, fill=b"\xee")
    return np.frombuffer(out.read_bytes(), np.uint8) == 0x11


def test_ghosts_and_scratch_are_found_and_only_they_are_dropped(tmp_path: Path) -> None:
    outcome = planned(tmp_path, heat_trace(), shapes={"app.c:1": (EDGE, EDGE, EDGE * 8)})
    (kind,) = outcome.kinds
    assert kind.pattern == "{dataset}/heat.{rank}"
    assert (kind.checkpoints, kind.files, kind.unmapped) == (2, 1, HEADER)
    u, scratch = kind.variables
    assert (u.name, u.evidence) == ("app.c:1", "observed, 2 checkpoints")
    assert u.dropped == u.dead == BYTES - 8 * (EDGE - 4) ** 3
    assert scratch.dropped == scratch.dead == scratch.nbytes == BYTES
    keep = kept_mask(outcome, kind.nbytes, tmp_path, "ckpt.30/heat.0", dataset="ckpt.30")
    expected = np.concatenate(
        [np.ones(HEADER, bool), np.repeat(GHOSTED.ravel() == CRITICAL, 8), np.zeros(BYTES, bool)]
    )
    assert (keep == expected).all()


def test_a_shape_is_found_in_the_mask_where_nothing_names_it(tmp_path: Path) -> None:
    outcome = planned(tmp_path, heat_trace())
    u = outcome.kinds[0].variables[0]
    assert u.dropped == BYTES - 8 * (EDGE - 4) ** 3
    assert len(u.shape) == 3


@pytest.mark.parametrize(
    "names", [("state_{}.dat", "state_{}_old.dat"), ("state_{}_old.dat", "state_{}.dat")]
)
def test_a_pattern_does_not_take_the_files_of_another_kind(tmp_path: Path, names: tuple[str, str]) -> None:
    """state_*.dat matches state_10_old.dat, too, and the files are of equal size."""
    trace = TraceBuilder()
    blocks = [trace.block(0x10000 * (n + 1), BYTES, f"make@app(app.c:{n + 1})") for n in range(2)]
    for step in (10, 20):
        generation = trace.generation(dataset=f"ckpt.{step}")
        for number, (name, state, reason) in enumerate(
            zip(names, (DEAD, CRITICAL), (WRITTEN, READ), strict=True)
        ):
            file = trace.file(generation, f"/p/{name.format(step)}", BYTES)
            trace.source(file, 0, BYTES, 0x10000 * (number + 1), blocks[number])
            trace.state(file, 0, BYTES // 2, state, reason)
            trace.state(file, BYTES // 2, BYTES // 2, CRITICAL, READ)
    outcome = planned(tmp_path, trace)
    for step in (10, 20):
        for name, keeps in zip(names, (False, True), strict=True):
            path, dataset = name.format(step), f"ckpt.{step}"
            if keeps:
                with pytest.raises(NoGainError):  # it would go through whole
                    kept_mask(outcome, BYTES, tmp_path, path, dataset=dataset)
            else:
                keep = kept_mask(outcome, BYTES, tmp_path, path, dataset=dataset)
                assert (keep == (np.arange(BYTES) >= BYTES // 2)).all()


def test_the_map_holds_what_was_seen(tmp_path: Path) -> None:
    outcome = planned(tmp_path, heat_trace(), shapes={"app.c:1": (EDGE, EDGE, EDGE * 8)})
    u = outcome.kinds[0].map["app.c:1"]
    assert (u.states == np.repeat(GHOSTED, 8, axis=2)).all()
    assert outcome.kinds[0].map.provenance["build_id"] == "1234"


def test_facts_say_what_the_plan_was_made_for(tmp_path: Path) -> None:
    outcome = planned(
        tmp_path,
        heat_trace(),
        environment={"OMP_NUM_THREADS": "2"},
        fingerprints={"in.nml": "sha256:ab"},
        arguments=("--n", "a b"),
    )
    facts = outcome.plan.facts
    assert facts["program.build_id"] == "1234"
    assert facts["program.arguments"] == "--n 'a b'"
    assert facts["environment.OMP_NUM_THREADS"] == "2"
    assert facts["fingerprint.in.nml"] == "sha256:ab"
    assert (facts["ranks"], facts["traced.checkpoints"], facts["traced.restarts"]) == ("1", "2", "0")
    assert (facts["tracer"], facts["valgrind"], facts["traced.window"]) == ("0.1.0", "3.19.0", "end")


def test_a_file_of_another_size_goes_through_whole(tmp_path: Path) -> None:
    from scr_critplugin.errors import NoMatchError

    outcome = planned(tmp_path, heat_trace())
    with pytest.raises(NoMatchError):
        kept_mask(outcome, outcome.kinds[0].nbytes + 8, tmp_path, "ckpt.10/heat.0")


# Ranks, checkpoints, runs ---------------------------------------------------------------------------------


def test_ranks_of_one_layout_share_an_entry_and_critical_anywhere_is_critical(tmp_path: Path) -> None:
    other = GHOSTED.copy()
    other[1, 2:-2, 2:-2] = CRITICAL
    traces = [heat_trace(rank, 3, masks=(other if rank == 2 else GHOSTED,)) for rank in range(3)]
    outcome = planned(tmp_path, *traces)
    (kind,) = outcome.kinds
    assert (kind.files, kind.others, len(outcome.plan.entries)) == (3, 0, 1)
    keep = kept_mask(outcome, kind.nbytes, tmp_path, "ckpt.10/heat.1", rank=1)
    expected = (GHOSTED == CRITICAL) | (other == CRITICAL)
    assert (keep[HEADER:] == np.repeat(expected.ravel(), 8)).all()


def test_what_is_critical_at_one_checkpoint_and_dead_at_another_is_state(tmp_path: Path) -> None:
    trace = heat_trace(checkpoints=(10,), masks=(GHOSTED,))
    later = GHOSTED.copy()
    later[1:-1, 2:-2, 2:-2] = CRITICAL
    generation = trace.generation(dataset="ckpt.20")
    file = trace.file(generation, "/p/ckpt.20/heat.0", HEADER + BYTES)
    trace.source(file, HEADER, BYTES, 0x10000, 0)
    add_states(trace, file, HEADER, later, 8)
    (kind,) = planned(tmp_path, trace).kinds
    (u,) = kind.variables
    assert u.dead == 8 * int((later == DEAD).sum())
    assert (u.dropped, u.unexplained) == (0, u.dead)
    assert "changes from checkpoint to checkpoint" in u.why


def test_memory_that_is_freed_at_the_program_s_end_does_not_count_as_change(tmp_path: Path) -> None:
    trace = heat_trace(checkpoints=(10,), masks=(GHOSTED,))
    file = trace.file(trace.generation(dataset="ckpt.20"), "/p/ckpt.20/heat.0", HEADER + BYTES)
    trace.source(file, HEADER, BYTES, 0x10000, 0)
    trace.state(file, HEADER, BYTES, DEAD, GONE)
    (u,) = planned(tmp_path, trace).kinds[0].variables
    assert u.dropped == 8 * int((GHOSTED == DEAD).sum())


def test_runs_are_united_and_other_layouts_are_left_out(tmp_path: Path) -> None:
    other = GHOSTED.copy()
    other[2, 2, 2] = DEAD
    wider = GHOSTED.copy()
    wider[1:-1, 2:-2, 2:-2] = CRITICAL
    runs = [
        save_run(tmp_path / "a", [heat_trace(masks=(wider,))]),
        save_run(tmp_path / "b", [heat_trace(masks=(GHOSTED, GHOSTED))]),
        save_run(tmp_path / "c", [heat_trace(masks=(other,))], replace(RECORD, arguments=("--steps", "9"))),
    ]
    outcome = make_plan(runs)
    (kind,) = outcome.kinds
    assert kind.checkpoints == 4
    assert kind.variables[0].dead == 8 * int(((other == DEAD) & (wider == DEAD)).sum())
    assert any("another layout" in text for text in outcome.warnings)
    assert outcome.plan.facts["traced.arguments"] == "--steps 3 | --steps 9"


def test_a_layout_that_changes_between_checkpoints_keeps_the_file_whole(tmp_path: Path) -> None:
    trace = heat_trace(checkpoints=(10,))
    generation = trace.generation(dataset="ckpt.20")
    file = trace.file(generation, "/p/ckpt.20/heat.0", HEADER + 8 + 2 * BYTES)
    trace.source(file, HEADER + 8, BYTES, 0x10000, 0)
    add_states(trace, file, HEADER + 8, GHOSTED, 8)
    outcome = planned(tmp_path, trace)
    assert outcome.kinds[0].whole
    assert any("differs from checkpoint to checkpoint" in text for text in outcome.warnings)
    assert sum(each.dropped for each in outcome.kinds[0].variables) == 0


def test_arrays_that_are_swapped_between_checkpoints_have_one_layout(tmp_path: Path) -> None:
    trace = heat_trace(checkpoints=(10,), masks=(GHOSTED, GHOSTED))
    file = trace.file(trace.generation(dataset="ckpt.20"), "/p/ckpt.20/heat.0", HEADER + 2 * BYTES)
    trace.state(file, 0, HEADER, CRITICAL, DERIVED)
    for place, block in ((0, 1), (1, 0)):
        start = HEADER + place * BYTES
        trace.source(file, start, BYTES, 0x10000 * (block + 1), block)
        add_states(trace, file, start, GHOSTED, 8)
    (kind,) = planned(tmp_path, trace).kinds
    assert not kind.whole
    assert kind.checkpoints == 2
    assert [each.name for each in kind.variables] == ["app.c:1", "app.c:2"]
    assert kind.variables[0].dropped == 8 * int((GHOSTED == DEAD).sum())


def test_ranks_of_another_size_go_through_whole_and_are_told(tmp_path: Path) -> None:
    traces = [heat_trace(0, 3), heat_trace(1, 3), heat_trace(2, 3, masks=(GHOSTED,))]
    outcome = planned(tmp_path, *traces)
    (kind,) = outcome.kinds
    assert (kind.files, kind.others) == (2, 1)
    assert any("1 of 3 files have another size" in text for text in outcome.warnings)


def test_two_files_a_rank_are_two_kinds(tmp_path: Path) -> None:
    traces = []
    for rank in range(2):
        trace = heat_trace(rank, 2, masks=(GHOSTED,))
        generation = trace.generation(dataset="ckpt.10")
        file = trace.file(generation, f"/p/ckpt.10/extra.{rank + 1:03}", 5000)
        block = trace.block(0x90000, 5000, "more@app(app.c:99)")
        trace.source(file, 0, 5000, 0x90000, block)
        add_states(trace, file, 0, np.array([CRITICAL] * 1000 + [DEAD] * 4000))
        traces.append(trace)
    outcome = planned(tmp_path, *traces)
    assert [kind.pattern for kind in outcome.kinds] == ["{dataset}/heat.{rank}", "{dataset}/extra.{rank+1}"]
    assert outcome.kinds[1].variables[0].dropped == 4000


def shared_file(
    rank: int, states: np.ndarray, *, also: tuple[int, int, int, int] | None = None
) -> TraceBuilder:
    """A rank that writes its part of a file that all share."""
    trace = TraceBuilder(rank=rank, ranks=2)
    block = trace.block(0x1000, states.size, "make@app(app.c:5)")
    file = trace.file(trace.generation(dataset="d"), "/p/d/all", 2 * states.size)
    trace.source(file, rank * states.size, states.size, 0x1000, block)
    add_states(trace, file, rank * states.size, states)
    if also is not None:
        trace.state(file, *also)
    return trace


def test_parts_of_a_shared_file_are_united_by_offset(tmp_path: Path) -> None:
    own = np.array([CRITICAL] * 2000 + [DEAD] * 3000)
    outcome = planned(tmp_path, shared_file(0, own), shared_file(1, own))
    (kind,) = outcome.kinds
    assert (kind.files, kind.nbytes) == (1, 10000)
    (u,) = kind.variables
    assert (u.name, u.nbytes, u.dropped) == ("app.c:5", 10000, 6000)
    assert any("several ranks may share it" in text for text in outcome.warnings)


def test_interleaved_parts_of_one_static_array_are_the_file_s_array(tmp_path: Path) -> None:
    """Every rank writes its columns of every row, from an array that lies at the same address on all."""
    rows, columns = 40, 256
    traces = []
    for rank in range(2):
        trace = TraceBuilder(rank=rank, ranks=2)
        block = trace.block(0x1000, rows * columns, "make@app(app.c:5)")
        file = trace.file(trace.generation(dataset="d"), "/p/d/all", rows * 2 * columns)
        for row in range(rows):
            start = (2 * row + rank) * columns
            trace.source(file, start, columns, 0x1000 + row * columns, block)
            trace.state(file, start, 64, DEAD, WRITTEN)
            trace.state(file, start + 64, columns - 64, CRITICAL, READ)
        traces.append(trace)
    (kind,) = planned(tmp_path, *traces).kinds
    (u,) = kind.variables
    assert (u.nbytes, u.dropped) == (2 * rows * columns, 2 * rows * 64)


def test_what_any_rank_calls_critical_in_a_shared_file_is_critical(tmp_path: Path) -> None:
    own = np.array([CRITICAL] * 2000 + [DEAD] * 3000)
    outcome = planned(tmp_path, shared_file(0, own, also=(7000, 3000, CRITICAL, READ)), shared_file(1, own))
    assert outcome.kinds[0].variables[0].dropped == 3000


def test_a_gap_that_no_rank_saw_is_critical(tmp_path: Path) -> None:
    trace = heat_trace(checkpoints=(10,), masks=(GHOSTED,))
    trace.records = [each for each in trace.records if each[:4] != b"\x02\0\0\0" or each[24:] == b""]
    outcome = planned(tmp_path, trace)
    assert outcome.kinds[0].variables[0].dropped == 0


# Windows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "exit_code", "dropped"),
    [("end 0 3", 0, True), ("flat -1 3", 0, False), ("finalize -1 3", 0, False), ("end -1 3", 0, False)],
)
def test_unused_goes_only_where_the_program_was_traced_to_its_end(
    tmp_path: Path, window: str, exit_code: int, dropped: bool
) -> None:
    mask = np.where(GHOSTED == DEAD, UNUSED, CRITICAL)
    trace = heat_trace(masks=(mask,), window=window)
    outcome = planned(tmp_path, trace, exit_code=exit_code)
    (u,) = outcome.kinds[0].variables
    assert u.unused == 8 * int((GHOSTED == DEAD).sum())
    assert (u.dropped > 0) is dropped
    assert any("does not reach" in text for text in outcome.warnings) is not dropped


def test_one_rank_that_did_not_end_keeps_the_unused_of_all(tmp_path: Path) -> None:
    mask = np.where(GHOSTED == DEAD, UNUSED, CRITICAL)
    traces = [heat_trace(0, 2, masks=(mask,)), heat_trace(1, 2, masks=(mask,), window="flat -1 3")]
    outcome = planned(tmp_path, *traces)
    assert outcome.kinds[0].variables[0].dropped == 0


# The restart side -----------------------------------------------------------------------------------------


def restart(trace: TraceBuilder, states: np.ndarray, rank: int = 0, dataset: str = "ckpt.10") -> None:
    """A restart that read the array behind the header; the header itself was used."""
    file = trace.file(trace.generation("restart", dataset), f"/p/{dataset}/heat.{rank}", HEADER + BYTES)
    block = trace.block(0x70000, BYTES, "make@app(app.c:1)")
    trace.source(file, HEADER, BYTES, 0x70000, block)
    trace.state(file, 0, HEADER, CRITICAL, USED)
    add_states(trace, file, HEADER, states, 8)


def test_the_restart_side_decides_against_what_could_not_be_followed(tmp_path: Path) -> None:
    trace = heat_trace(checkpoints=(10,), masks=(GHOSTED,))
    trace.records = [each for each in trace.records if each[:4] == b"\1\0\0\0"]
    trace.state(0, 0, HEADER + BYTES, CRITICAL, DERIVED)
    restart(trace, GHOSTED)
    (kind,) = planned(tmp_path, trace).kinds
    assert kind.restarted
    assert kind.variables[0].dropped == 8 * int((GHOSTED == DEAD).sum())


@pytest.mark.parametrize("reason", [READ, SHARED])
def test_a_read_on_the_other_side_stays_critical(tmp_path: Path, reason: int) -> None:
    trace = heat_trace(checkpoints=(10,), masks=(GHOSTED,))
    trace.state(0, HEADER, BYTES, CRITICAL, reason)
    restart(trace, GHOSTED)
    assert planned(tmp_path, trace).kinds[0].variables[0].dropped == 0


def test_bytes_that_no_rank_read_from_the_file_are_critical(tmp_path: Path) -> None:
    trace = heat_trace(checkpoints=(10,), masks=(GHOSTED,))
    file = trace.file(trace.generation("restart", "ckpt.10"), "/p/ckpt.10/heat.0", HEADER + BYTES)
    trace.state(file, HEADER, BYTES // 2, DEAD, WRITTEN)
    (kind,) = planned(tmp_path, trace).kinds
    half = kind.map["app.c:1"].states.ravel()[kind.map["app.c:1"].size // 2 :]
    assert (half == ElementState.CRITICAL).all()


def test_a_rank_that_uses_what_another_only_read_makes_it_critical(tmp_path: Path) -> None:
    traces = [heat_trace(0, 2, (10,), (GHOSTED,)), heat_trace(1, 2, (10,), (GHOSTED,))]
    restart(traces[0], GHOSTED)
    # Rank 1 reads rank 0's file as well, and uses a ghost layer of it.
    used = GHOSTED.copy()
    used[1] = CRITICAL
    restart(traces[1], used)
    restart(traces[1], GHOSTED, rank=1)
    (kind,) = planned(tmp_path, *traces).kinds
    assert kind.variables[0].dead == 8 * int((used == DEAD).sum())


def test_unused_after_a_restart_is_what_the_other_side_says(tmp_path: Path) -> None:
    trace = heat_trace(checkpoints=(10,), masks=(GHOSTED,))
    restart(trace, np.full_like(GHOSTED, UNUSED))
    (kind,) = planned(tmp_path, trace).kinds
    assert kind.variables[0].dropped == 8 * int((GHOSTED == DEAD).sum())


# Closed off -----------------------------------------------------------------------------------------------


def test_a_file_that_seems_dead_throughout_stays_whole(tmp_path: Path) -> None:
    everything = np.full_like(GHOSTED, DEAD)
    outcome = planned(tmp_path, heat_trace(masks=(everything,)))
    assert outcome.kinds[0].whole
    assert any("packed before the checkpoint" in text for text in outcome.warnings)


def test_a_restart_tells_that_it_is_dead_indeed(tmp_path: Path) -> None:
    everything = np.full_like(GHOSTED, DEAD)
    trace = heat_trace(checkpoints=(10,), masks=(everything,))
    restart(trace, everything)
    outcome = planned(tmp_path, trace)
    assert not outcome.kinds[0].whole
    assert outcome.kinds[0].variables[0].dropped == BYTES


def test_irregular_masks_are_state_and_stay(tmp_path: Path) -> None:
    random = np.random.default_rng(1).random(GHOSTED.shape) < 0.5
    mask = np.where(random, DEAD, CRITICAL)
    outcome = planned(tmp_path, heat_trace(masks=(mask,)))
    (u,) = outcome.kinds[0].variables
    assert (u.dropped, u.unexplained) == (0, 8 * int(random.sum()))
    assert outcome.plan.facts["unexplained_bytes"] == str(8 * int(random.sum()))
    assert (outcome.kinds[0].map["app.c:1"].states == DEAD).sum() > 0


def test_a_grid_with_its_coarser_levels_behind_it_has_a_rule_for_each(tmp_path: Path) -> None:
    """As the residual of a multigrid program: one array of one axis, the finest level first."""
    finest = np.full((EDGE, EDGE, EDGE), CRITICAL, np.uint8)
    finest[0] = finest[:, 0] = finest[:, :, 0] = DEAD
    cells = np.concatenate([finest.ravel(), np.full(500, DEAD, np.uint8)])
    trace = TraceBuilder()
    block = trace.block(0x10000, cells.size * 8, "make@app(app.c:1)")
    file = trace.file(trace.generation(dataset="d"), "/p/d/f.0", cells.size * 8)
    trace.source(file, 0, cells.size * 8, 0x10000, block)
    add_states(trace, file, 0, cells, 8)
    outcome = planned(tmp_path, trace)
    (kind,) = outcome.kinds
    (u,) = kind.variables
    assert u.dropped == u.dead == 8 * int((cells == DEAD).sum())
    assert [part.stop for part in u.parts][-1] == u.shape[0]
    keep = kept_mask(outcome, kind.nbytes, tmp_path, "d/f.0", dataset="d")
    assert (keep == np.repeat(cells == CRITICAL, 8)).all()


def test_small_sections_stay(tmp_path: Path) -> None:
    trace = heat_trace(masks=(GHOSTED,))
    file = trace.file(trace.generation(dataset="ckpt.10"), "/p/ckpt.10/small.0", 4000)
    block = trace.block(0x90000, 4000, "more@app(app.c:99)")
    trace.source(file, 0, 4000, 0x90000, block)
    add_states(trace, file, 0, np.array([CRITICAL] * 1000 + [DEAD] * 3000))
    outcome = planned(tmp_path, trace)
    assert outcome.kinds[1].variables[0].dropped == 0
    assert outcome.kinds[1].variables[0].dead == 3000


def test_an_array_cut_by_record_markers_is_one_array(tmp_path: Path) -> None:
    """Planes between Fortran's record markers: the mask is judged as a whole, and every plane is placed."""
    trace = TraceBuilder()
    block = trace.block(0x10000, BYTES, "make@app(app.c:1)")
    plane, step = EDGE * EDGE * 8, EDGE * EDGE * 8 + 8
    file = trace.file(trace.generation(dataset="d"), "/p/d/f.0", EDGE * step)
    keep = np.ones(EDGE * step, bool)
    for k in range(EDGE):
        trace.state(file, k * step, 4, CRITICAL, DERIVED)
        trace.state(file, k * step + 4 + plane, 4, CRITICAL, DERIVED)
        trace.source(file, k * step + 4, plane, 0x10000 + k * plane, block)
        add_states(trace, file, k * step + 4, GHOSTED[k], 8)
        keep[k * step + 4 : k * step + 4 + plane] = np.repeat(GHOSTED[k].ravel() == CRITICAL, 8)
    outcome = planned(tmp_path, trace)
    (kind,) = outcome.kinds
    (u,) = kind.variables
    assert u.dropped == 8 * int((GHOSTED == DEAD).sum())
    assert (kept_mask(outcome, kind.nbytes, tmp_path, "d/f.0", dataset="d") == keep).all()


# Errors ---------------------------------------------------------------------------------------------------


def test_a_program_without_checkpoints_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="SCR_Start_output"):
        planned(tmp_path, TraceBuilder())


def test_files_outside_the_prefix_are_told(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.file(trace.generation(), "/elsewhere/f", 10)
    with pytest.raises(TraceError, match="outside the prefix"):
        planned(tmp_path, trace)


def test_a_shape_for_no_variable_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"app\.c:1, app\.c:2"):
        planned(tmp_path, heat_trace(), shapes={"v": (3, 4)})


def test_warnings_of_the_tracer_name_their_ranks(tmp_path: Path) -> None:
    traces = [heat_trace(rank, 3, masks=(GHOSTED,)) for rank in range(3)]
    for trace in traces[1:]:
        trace.warning("saw an mremap")
    assert "saw an mremap (ranks 1, 2)" in planned(tmp_path, *traces).warnings


# Property -------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(data=st.data())
def test_nothing_that_was_critical_anywhere_is_dropped(data: st.DataObject, tmp_path_factory) -> None:
    """Random states on random ranks and checkpoints: what is dropped was dead or unused in all of them."""
    folder = tmp_path_factory.mktemp("any")
    ranks, cells = data.draw(st.integers(1, 3)), 4800
    critical = np.zeros(cells, bool)
    traces = []
    for rank in range(ranks):
        trace = TraceBuilder(rank=rank, ranks=ranks)
        block = trace.block(0x1000, cells, "make@app(app.c:1)")
        for step in range(data.draw(st.integers(1, 2))):
            file = trace.file(trace.generation(dataset=f"c{step}"), f"/p/c{step}/f.{rank}", cells)
            trace.source(file, 0, cells, 0x1000, block)
            seen = np.zeros(cells, bool)
            for _ in range(data.draw(st.integers(0, 4))):
                start = data.draw(st.integers(0, cells - 1))
                length = data.draw(st.integers(1, cells - start))
                state, reason = data.draw(
                    st.sampled_from([(CRITICAL, READ), (CRITICAL, DERIVED), (DEAD, WRITTEN), (UNUSED, NEVER)])
                )
                trace.state(file, start, length, state, reason)
                seen[start : start + length] = True
                if state == CRITICAL:
                    critical[start : start + length] = True
            critical |= ~seen
        traces.append(trace)
    outcome = planned(folder, *traces)
    (kind,) = outcome.kinds
    if not any(variable.dropped for variable in kind.variables):
        return
    try:
        keep = kept_mask(outcome, cells, folder, "c0/f.0", dataset="c0")
    except NoGainError:  # so few bytes that the file stays whole
        return
    assert (keep | ~critical).all()
    assert int((~keep).sum()) == kind.variables[0].dropped
