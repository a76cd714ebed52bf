"""Syntax of file-name patterns, as ``docs/format.md`` defines it ("Patterns").

Only checks: the matching is the C core's, so that there is one authority. Imports nothing but the errors.
Tests: ``tests/test_layout.py``.
"""

from __future__ import annotations

import re

from .errors import LayoutError

_LONGEST = 4095
_TOKEN = re.compile(
    r"(?P<rank>\{rank(?:\+1)?\})"
    r"|(?P<dataset>\{dataset\})"
    r"|\[[!^]?(?P<set>\]?[^\]]*)\]"
    r"|(?P<plain>[^\[{])"
)


def check_pattern(pattern: str) -> None:
    """Refuse a malformed pattern.

    Raises
    ------
    LayoutError
        Says what is wrong, and where in the pattern.
    """
    if not pattern or len(pattern.encode("utf-8", "surrogatepass")) > _LONGEST:
        raise _fault(pattern, f"expected 1 to {_LONGEST} bytes")
    if not pattern.isprintable():
        raise _fault(pattern, "expected printable characters")
    _check_tokens(pattern)
    folders = pattern.split("/")
    if pattern.startswith("/"):
        raise _fault(pattern, "expected a path relative to the prefix, without a leading /")
    for folder in folders:
        if folder in ("", ".", ".."):
            raise _fault(pattern, f"found {folder!r} between slashes, expected a name")


def _check_tokens(pattern: str) -> None:
    position = 0
    after_rank = False
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            what = (
                "a set without its ]"
                if pattern[position] == "["
                else "braces, expected {rank}, {rank+1} or {dataset}"
            )
            raise _fault(pattern, f"found {what} at {pattern[position:]!r} ([[] and [{{] are the characters)")
        if token["set"] is not None:
            _check_set(pattern, token["set"])
        if token["rank"] and after_rank:
            raise _fault(pattern, "found a rank next to a rank, which cannot be told apart")
        after_rank = token["rank"] is not None
        position = token.end()


def _check_set(pattern: str, items: str) -> None:
    if not items:
        raise _fault(pattern, "found an empty set, expected characters between [ and ]")
    if "/" in items:
        raise _fault(pattern, "found / in a set, which never matches it")
    for low, high in re.findall(r"(.)-(.)", items):
        if low > high:
            raise _fault(pattern, f"found the range {low}-{high}, expected it ascending")


def _fault(pattern: str, what: str) -> LayoutError:
    return LayoutError(f"found {pattern!r}: {what}", key="pattern")
