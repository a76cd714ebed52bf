"""Copies of this process: what they keep, what they do not see, and how they end."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from processes import children

from scr_critplugin.analysis import process_copy
from scr_critplugin.analysis.process_copy import ProcessCopy

KEPT: list[int] = []


def remember(number: int) -> list[int]:
    KEPT.append(number)
    return KEPT


def test_copy_keeps_what_it_did_and_touches_nothing_here() -> None:
    KEPT[:] = [1]
    with ProcessCopy(remember) as copy:
        KEPT.append(10)
        assert copy.answer(2, 10.0).result == [1, 2]
        assert copy.answer(3, 10.0, apart=True).result == [1, 2, 3]
        assert copy.answer(4, 10.0).result == [1, 2, 4]
    assert KEPT == [1, 10]


def test_large_questions_and_answers_pass() -> None:
    numbers = np.arange(10**6)
    with ProcessCopy(lambda question: question * 2) as copy:
        assert np.array_equal(copy.answer(numbers, 60.0).result, numbers * 2)


def test_error_is_told_and_the_copy_goes_on() -> None:
    with ProcessCopy(lambda question: 1 // question) as copy:
        answer = copy.answer(0, 10.0)
        assert (answer.kind, answer.words) == (
            "raised",
            "ZeroDivisionError: integer division or modulo by zero",
        )
        assert copy.answer(1, 10.0).result == 1


def loop() -> None:
    for _ in itertools.count():
        pass


ENDS: dict[str, tuple[Callable[[], Any], str]] = {
    "status 3": (lambda: os._exit(3), "ended with status 3"),
    "exit": (lambda: sys.exit(4), "ended with status"),
    "abort": (os.abort, "ended by signal 6"),
    "loop": (loop, "took too long"),
    "sleep": (lambda: time.sleep(1000.0), "took too long"),
}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", ENDS)
def test_lost_copy_is_told(name: str, apart: bool) -> None:
    end, words = ENDS[name]
    with ProcessCopy(lambda question: end() if question else "well") as copy:
        answer = copy.answer(True, 0.3, apart=apart)
        assert answer.kind == "lost"
        assert words in answer.words
        after = copy.answer(False, 10.0)
        assert after.result == ("well" if apart else None)
        assert after.kind == ("done" if apart else "lost")


def test_copy_that_cannot_be_interrupted_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_copy, "GRACE", 0.2)

    def ignore_the_alarm(question: Any) -> None:
        import signal

        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        time.sleep(1000.0)

    with ProcessCopy(ignore_the_alarm) as copy:
        assert copy.answer(None, 0.2).words == "no answer within 0.2 seconds"
        assert copy.answer(None, 0.2).kind == "lost"


def test_what_cannot_be_passed_is_told() -> None:
    with ProcessCopy(lambda question: question) as copy:
        assert "could not be passed on" in copy.answer(lambda: 0, 10.0).words
    with ProcessCopy(lambda question: lambda: 0) as copy:
        assert copy.answer(1, 10.0).kind == "lost"


def test_it_prints_nothing_and_leaves_no_process(capfd: pytest.CaptureFixture[str]) -> None:
    def loud(question: Any) -> None:
        print("printed", flush=True)
        sys.stderr.write("written")
        os.write(1, b"raw")

    before = children()
    with ProcessCopy(loud) as copy:
        assert len(children() - before) == 1
        assert copy.answer(None, 10.0).kind == "done"
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert children() == before
