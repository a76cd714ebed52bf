"""The search for a period in the structure of successive steps.

Steps are compared by digest; recordings are kept only while they may be part of a period.

May import `structure` and the errors. Tests: ``tests/test_recurrence.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from scr_critplugin.analysis.structure import Structure, digest_only, first_difference
from scr_critplugin.errors import ProfileError

LONGEST_PERIOD = 8
"""Each step of a period must be seen twice: this many is found after twice as many steps."""


class Forgettable(Protocol):
    """A recording whose contents can be let go of."""

    def forget(self) -> None:
        """Let go of the contents."""


Recording = TypeVar("Recording", bound=Forgettable)


class PeriodSearch(Generic[Recording]):
    """Takes recordings one by one, until the smallest period is known or there is none up to `longest`.

    Parameters
    ----------
    longest : int
        Longest period to look for.
    agree : callable
        See `Program`: every decision goes through it.

    Attributes
    ----------
    period : int or None
        The period, once each of its steps was seen twice.
    """

    def __init__(self, longest: int, agree: Callable[[bool], bool]) -> None:
        self.period: int | None = None
        self._enough = 0
        self._longest = longest
        self._agree = agree
        self._seen: list[Structure] = []
        self._candidates: list[int] = []
        self._kept: dict[int, Recording] = {}
        self._previous: Structure | None = None
        self._difference: str | None = None

    @property
    def digests(self) -> tuple[bytes, ...]:
        """Digests of the structures taken."""
        return tuple(structure.digest for structure in self._seen)

    @property
    def structures(self) -> tuple[Structure, ...]:
        """Structures of the steps of the period, by digest."""
        return tuple(self._seen[: self.period or 0])

    @property
    def recorded(self) -> int:
        """Number of recordings taken."""
        return len(self._seen)

    @property
    def is_over(self) -> bool:
        """True if no more recordings are needed."""
        return self.period is not None or (not self._candidates and len(self._seen) > self._longest)

    def add(self, recording: Recording, structure: Structure) -> None:
        """Take the next step's recording and its structure."""
        number = len(self._seen)
        if self._previous is not None and self._difference is None:
            self._difference = first_difference(self._previous, structure)
        # Whole only until a difference is known: then digests do.
        self._previous = structure if self._difference is None else None
        self._seen.append(digest_only(structure))
        fresh = [number] if 0 < number <= self._longest else []
        self._candidates = [
            period
            for period in self._candidates + fresh
            if self._agree(structure.digest == self._seen[number - period].digest)
        ]
        self._keep(number, recording)
        self._decide()

    def go_on(self, enough: int) -> None:
        """Do not decide on a period before that many recordings are taken."""
        self._enough = enough
        self._decide()

    def _decide(self) -> None:
        count = len(self._seen)
        seen_twice = [period for period in self._candidates if 2 * period <= count]
        self.period = min(seen_twice, default=None) if count >= self._enough else None

    def cycle(self) -> tuple[Recording, ...]:
        """One recording for each step of the period."""
        period = self.period or 0
        return tuple(self._kept[number] for number in range(period, 2 * period))

    def refusal(self, counters: Sequence[str]) -> ProfileError:
        """The error that says that there is no period, where steps differ and what to do.

        `counters`: variables that change from step to step and may be what steers it.
        """
        steered = f" (it may hang on {', '.join(map(repr, counters))})" if counters else ""
        later = self._later_start()
        settled = "" if later is None else f", or take the checkpoint {later} steps later (at=...)"
        return ProfileError(
            f"the structure of the step changes from one step to the next{steered} and does not repeat "
            f"within {self._longest} steps: {self._difference}. Give the number of steps from the checkpoint "
            f"to the output (steps=...), so that each is analysed{settled}",
            key="steps",
        )

    def _keep(self, number: int, recording: Recording) -> None:
        """Keep the recording if it may be in the second round of a period, and drop those that are not."""
        self._kept[number] = recording
        second_rounds = [range(period, 2 * period) for period in self._candidates]
        for dropped in [kept for kept in self._kept if not any(kept in round_ for round_ in second_rounds)]:
            self._kept.pop(dropped).forget()

    def _later_start(self) -> int | None:
        """Number of steps after which those that were seen do repeat."""
        digests = [structure.digest for structure in self._seen]
        for start in range(1, len(digests) - 1):
            tail = digests[start:]
            for period in range(1, len(tail) // 2 + 1):
                if tail[period:] == tail[:-period]:
                    return start
        return None
