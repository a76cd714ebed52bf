"""Which of many suspects make a run fail, by running it with some of them at a time.

Suspects are numbered from 0; a set of them is a sorted tuple of half-open spans. Knows nothing of programs.
Halves that fail are halved again, the largest first. Where a whole fails and no half of it does, its members
act together: such a set is narrowed down as U. Junker describes (QuickXplain, AAAI 2004), in about
``k log n`` runs for ``k`` of ``n`` members.

May import nothing of the package. Tests: ``tests/test_bisection.py``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""A set of suspects: sorted half-open spans that neither overlap nor touch."""


@dataclass(frozen=True)
class Verdict:
    """The `guilty`; `complete` is False if the runs were used up, so that innocent ones may be among them."""

    guilty: Spans
    complete: bool


class _RunsUsedUpError(Exception):
    pass


def culprits(fails: Callable[[Spans], bool], suspects: Spans, runs: int) -> Verdict:
    """Suspects without which, as far as one failing set after the other tells, the run does not fail.

    Parameters
    ----------
    fails : callable
        Makes a run with the given suspects only; True if it fails.
    suspects : tuple of spans
        A set that fails as a whole.
    runs : int
        How often `fails` may be called. After that, every set known to fail is guilty as a whole.

    Returns
    -------
    Verdict
        Never without a guilty suspect. Removing them need not be enough, as sets that act together may hide
        in what is left: the caller runs with the rest and asks again.
    """
    fails = _counted(fails, runs)
    # Most members first, so that runs are spent evenly if they do not suffice.
    pending = [(-size(suspects), suspects)]
    guilty: list[Spans] = []
    while pending:
        _, block = heapq.heappop(pending)
        if size(block) == 1:
            guilty.append(block)
            continue
        try:
            failing = [half for half in halves(block) if fails(half)]
            if not failing:
                guilty.append(_acting_together(fails, (), False, block))
        except _RunsUsedUpError:
            return Verdict(joined(*guilty, block, *(others for _, others in pending)), False)
        for half in failing:
            heapq.heappush(pending, (-size(half), half))
    return Verdict(joined(*guilty), True)


def _acting_together(
    fails: Callable[[Spans], bool], others: Spans, others_are_new: bool, suspects: Spans
) -> Spans:
    """A smallest part of `suspects` that fails together with `others`; none if those fail by themselves."""
    if others_are_new and fails(others):
        return ()
    if size(suspects) == 1:
        return suspects
    first, second = halves(suspects)
    of_second = _acting_together(fails, joined(others, first), True, second)
    of_first = _acting_together(fails, joined(others, of_second), bool(of_second), first)
    return joined(of_first, of_second)


def _counted(fails: Callable[[Spans], bool], runs: int) -> Callable[[Spans], bool]:
    """`fails` with a memory, which raises when it would be called more than `runs` times."""
    known: dict[Spans, bool] = {}

    def asked(spans: Spans) -> bool:
        if spans not in known:
            if len(known) >= runs:
                raise _RunsUsedUpError
            known[spans] = fails(spans)
        return known[spans]

    return asked


# ---- sets of spans ----


def size(spans: Spans) -> int:
    """Number of members."""
    return sum(stop - start for start, stop in spans)


def halves(spans: Spans) -> tuple[Spans, Spans]:
    """The lower and the upper half of at least two members."""
    left = size(spans) // 2
    lower: list[tuple[int, int]] = []
    upper: list[tuple[int, int]] = []
    for start, stop in spans:
        cut = min(max(start + left, start), stop)
        left -= cut - start
        lower += [(start, cut)] if cut > start else []
        upper += [(cut, stop)] if stop > cut else []
    return tuple(lower), tuple(upper)


def joined(*sets: Spans) -> Spans:
    """All members of the sets."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(span for spans in sets for span in spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return tuple(found)


def without(spans: Spans, removed: Spans) -> Spans:
    """Members of `spans` that are not in `removed`."""
    found: list[tuple[int, int]] = []
    for start, stop in spans:
        for first, last in removed:
            if last <= start or first >= stop:
                continue
            if first > start:
                found.append((start, first))
            start = last
        if start < stop:
            found.append((start, stop))
    return tuple(found)
