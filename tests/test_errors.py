"""The exception tree: what an error says of its place, and that it survives a process boundary."""

from __future__ import annotations

import concurrent.futures
import errno
import multiprocessing
import pickle
from pathlib import Path

import pytest

from scr_critplugin import errors
from scr_critplugin.errors import CritError, MapError, ScrError, StorageError, UnknownVariableError


def all_errors() -> list[type[CritError]]:
    found: list[type[CritError]] = []
    waiting: list[type[CritError]] = [CritError]
    while waiting:
        cls = waiting.pop()
        found.append(cls)
        waiting += cls.__subclasses__()
    return [cls for cls in found if cls.__module__ == errors.__name__]


def test_every_exception_of_the_module_is_a_crit_error() -> None:
    defined = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, Warning)
    }
    assert defined == set(all_errors())
    assert len(defined) > 10


@pytest.mark.parametrize("cls", all_errors())
def test_an_error_says_where(cls: type[CritError]) -> None:
    error = cls("found 3, expected 4", path=Path("a b/ckpt.0"), rank=2, offset=17, key="u")
    assert str(error) == "a b/ckpt.0, rank 2, offset 17, key u: found 3, expected 4"
    assert (error.path, error.rank, error.offset, error.key) == ("a b/ckpt.0", 2, 17, "u")
    assert error.message == "found 3, expected 4"


@pytest.mark.parametrize("cls", all_errors())
def test_an_error_says_only_what_it_knows(cls: type[CritError]) -> None:
    assert str(cls("no space")) == "no space"
    assert str(cls("no space", rank=0)) == "rank 0: no space"
    assert str(cls("no space", offset=0)) == "offset 0: no space"


@pytest.mark.parametrize("cls", all_errors())
def test_an_error_pickles_with_all_it_carries(cls: type[CritError]) -> None:
    error = cls("found 3, expected 4", path="ckpt", rank=2, offset=17, key="u")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_an_error_crosses_a_process_pool() -> None:
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        future = pool.submit(
            pickle.dumps, StorageError("disk is full", errno=errno.ENOSPC, path="/p/ckpt", rank=3)
        )
        again = pickle.loads(future.result())
    assert (again.errno, again.path, again.rank) == (errno.ENOSPC, "/p/ckpt", 3)


def test_errors_are_also_what_a_caller_expects_of_the_kind() -> None:
    storage = StorageError("no space", errno=errno.ENOSPC, path="/p/ckpt")
    assert isinstance(storage, OSError)
    assert storage.errno == errno.ENOSPC
    assert isinstance(ScrError("SCR_Init failed"), RuntimeError)
    unknown = UnknownVariableError("no such variable", key="v")
    assert isinstance(unknown, KeyError)
    assert isinstance(unknown, MapError)
    assert str(unknown) == "key v: no such variable"  # not the repr that a KeyError makes of its message
