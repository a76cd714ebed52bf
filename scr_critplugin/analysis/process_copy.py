"""A copy of this process, made by fork, which does work later from where this process was when it was copied.

What a program keeps outside its state (globals, closures, caches, attributes, memory of compiled modules) is
all in the process, so work done in a copy does not touch what this process keeps, and the other way round.

Imports Python's library only. Tests: ``tests/test_process_copy.py``.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import pickle
import select
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, NoReturn

GRACE = 10.0
"""Seconds after its time limit at which a copy that has not ended by itself is given up."""


@dataclass(frozen=True)
class Answer:
    """What came of a piece of work: "done" with a `result`; or "raised" or "lost", and `words` say why."""

    kind: Literal["done", "raised", "lost"]
    result: Any = None
    words: str = ""


class ProcessCopy:
    """A forked copy of this process. Close it, or use it in a ``with`` statement.

    Parameters
    ----------
    work : callable
        Takes a question, returns the result. Both are pickled; what `work` prints is dropped.
    """

    def __init__(self, work: Callable[[Any], Any]) -> None:
        question_end, questions = os.pipe()
        answers, answer_end = os.pipe()
        self._pid = _fork()
        if self._pid == 0:
            _be_copy(work, question_end, answer_end, unused=(questions, answers))
        os.close(question_end)
        os.close(answer_end)
        self._questions: BinaryIO = os.fdopen(questions, "wb")
        self._answers: BinaryIO = os.fdopen(answers, "rb")
        self._lost: str | None = None

    @staticmethod
    def possible() -> bool:
        """True where processes can be forked."""
        return hasattr(os, "fork")

    def answer(self, question: Any, limit: float, *, apart: bool = False) -> Answer:
        """Have the work done on `question`.

        A copy that needs more than `limit` seconds, or crashes, is lost for good; unless the work is done
        `apart`, in a copy of the copy, which then does not see what it did.
        """
        if self._lost is not None:
            return Answer("lost", words=self._lost)
        answer = self._exchange(question, limit, apart)
        if self._pid < 0:
            self._lost = answer.words
        return answer

    def _exchange(self, question: Any, limit: float, apart: bool) -> Answer:
        try:
            pickle.dump((question, limit, apart), self._questions, protocol=pickle.HIGHEST_PROTOCOL)
            self._questions.flush()
        except (OSError, pickle.PicklingError, AttributeError, TypeError) as error:
            # AttributeError and TypeError: what pickle raises for local classes and open files.
            self._end()
            return Answer("lost", words=f"the question could not be passed on ({error})")
        ready, _, _ = select.select([self._answers], [], [], limit + GRACE)
        if not ready:
            self._end()
            return Answer("lost", words=f"no answer within {limit:g} seconds")
        try:
            answer: Answer = pickle.load(self._answers)
        except (EOFError, pickle.UnpicklingError):
            pid, self._pid = self._pid, -1
            _, status = os.waitpid(pid, 0)
            return Answer("lost", words=_end_in_words(status))
        return answer

    def _end(self) -> None:
        if self._pid > 0:
            os.kill(self._pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = -1

    def close(self) -> None:
        """End the copy."""
        with contextlib.suppress(OSError):
            # Closing flushes what a lost copy has not read.
            self._questions.close()
        self._answers.close()
        self._end()

    def __enter__(self) -> ProcessCopy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns of deadlocks if there are other threads. Work that hangs is ended by its time limit.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_copy(
    work: Callable[[Any], Any], question_end: int, answer_end: int, unused: tuple[int, ...]
) -> NoReturn:
    """Answer questions until there are no more. Never returns: the stack above belongs to the original."""
    try:
        for end in unused:
            os.close(end)
        _be_quiet()
        # A collection would touch, and so copy, every page that both processes share.
        gc.freeze()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        with os.fdopen(question_end, "rb") as questions:
            while True:
                question, limit, apart = pickle.load(questions)
                if apart:
                    _answer_apart(work, question, limit, answer_end)
                else:
                    _write(answer_end, _answer(work, question, limit))
                # It may hold large arrays, and the next one may come late or never.
                del question
    finally:
        # Also at the end of the questions, and on KeyboardInterrupt and SystemExit.
        os._exit(0)


def _be_quiet() -> None:
    faulthandler.disable()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    # Python's own may lead elsewhere by now.
    sys.stdout = sys.stderr = os.fdopen(1, "w")


def _answer(work: Callable[[Any], Any], question: Any, limit: float) -> Answer:
    # The alarm ends the process, whatever it hangs in, and even if the original is gone.
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return Answer("done", work(question))
    except Exception as error:
        return Answer("raised", words=f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _answer_apart(work: Callable[[Any], Any], question: Any, limit: float, answer_end: int) -> None:
    pid = _fork()
    if pid == 0:
        try:
            _write(answer_end, _answer(work, question, limit))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        _write(answer_end, Answer("lost", words=_end_in_words(status)))


def _end_in_words(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"the process ended with status {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    return "it took too long" if number == signal.SIGALRM else f"the process ended by signal {number}"


def _write(end: int, answer: Answer) -> None:
    data = pickle.dumps(answer)
    while data:
        data = data[os.write(end, data) :]
