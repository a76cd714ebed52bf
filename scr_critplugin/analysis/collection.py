"""Fewer passes of Python's garbage collector while a program is recorded.

A tape is thousands of small objects that all stay; by default the collector looks through them again and
again (a third of the time of recording NAS BT, class S).

Imports nothing of the package. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000
"""Tens of megabytes at most, before a collection looks at them."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Inside the block, collect garbage after many more new objects; also to be used as a decorator.

    A program that has switched collection off, or made it rarer still, is left as it is.
    """
    first, *others = gc.get_threshold()
    if first:
        gc.set_threshold(max(first, _NEW_OBJECTS), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
