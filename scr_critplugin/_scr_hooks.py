"""Python callables as clients of the shim's table of file-list hooks.

A Python exception cannot pass through C. While a call of ``scr_critplugin.scr`` is under way it is kept, the
event is answered as failed, and the call raises it; if compiled code made the call, it is printed.
Imports ``_shim`` and ``errors``. Tests: ``tests/shim/test_shim_python.py``.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from scr_critplugin import _shim
from scr_critplugin.errors import ScrError

# C type of each callback, and what is answered when the callable raises.
_CALLBACKS: dict[str, tuple[str, int | None]] = {
    "initialized": ("void(void *)", None),
    "output_started": ("void(void *, const char *, int)", None),
    "output_routed": ("int(void *, const char *, char *, size_t)", 1),
    "output_completing": ("int(void *, int)", 0),
    "output_completed": ("void(void *, int)", None),
    "restart_started": ("void(void *, const char *)", None),
    "restart_routed": ("int(void *, const char *, char *, size_t)", 1),
    "restart_completed": ("void(void *, int)", None),
    "finalizing": ("void(void *)", None),
}

_calls_under_way = 0
_raised: list[Exception] = []


@contextmanager
def raising() -> Iterator[None]:
    """Run a call into the shim; raise what a hook raised meanwhile.

    Raises
    ------
    ScrError
        From the hook's exception.
    """
    global _calls_under_way
    _calls_under_way += 1
    try:
        yield
    finally:
        _calls_under_way -= 1
    if _raised:
        first = _raised[0]
        _raised.clear()
        raise ScrError(f"a hook raised {type(first).__name__}: {first}") from first


def _keep(error: Exception) -> None:
    if _calls_under_way:
        _raised.append(error)
    else:
        traceback.print_exception(error)


class Hooks:
    """A registered client. It receives events until :meth:`remove`; nobody needs to keep this object."""

    def __init__(self, name: str, callables: dict[str, Callable[..., Any]]) -> None:
        self._shim = _shim.load()
        ffi = self._shim.ffi
        self._name = ffi.new("char[]", os.fsencode(name))
        self._context = ffi.new_handle(self)
        self._callbacks = {event: self._callback(event, function) for event, function in callables.items()}
        hooks = ffi.new("scr_crit_hooks *", {"name": self._name, "context": self._context, **self._callbacks})
        if self._shim.lib.scr_crit_hooks_register(hooks) != 0:
            raise ScrError("the hooks cannot be registered: no memory")
        _registered.add(self)

    def remove(self) -> None:
        """Stop receiving events. A second call does nothing."""
        if self in _registered:
            self._shim.lib.scr_crit_hooks_unregister(self._context)
            _registered.discard(self)

    def _callback(self, event: str, function: Callable[..., Any]) -> Any:
        signature, failed = _CALLBACKS[event]
        answer = getattr(self, f"_{event}", self._plain)

        def call(_context: Any, *arguments: Any) -> Any:
            try:
                return answer(function, *arguments)
            except Exception as error:
                _keep(error)
                return failed

        return self._shim.ffi.callback(signature, call)

    def _text(self, pointer: Any) -> str | None:
        return os.fsdecode(self._shim.ffi.string(pointer)) if pointer else None

    @staticmethod
    def _plain(function: Callable[..., Any]) -> None:
        function()

    def _output_started(self, function: Callable[..., Any], dataset: Any, flags: int) -> None:
        function(self._text(dataset), flags)

    def _output_routed(self, function: Callable[..., Any], name: Any, path: Any, size: int) -> int:
        replaced = function(self._text(name), self._text(path))
        if replaced is None:
            return 0
        encoded = os.fsencode(replaced)
        if len(encoded) >= size:
            raise ScrError(
                f"the hook's path has {len(encoded)} bytes, expected at most {size - 1}", path=replaced
            )
        self._shim.ffi.memmove(path, encoded + b"\0", len(encoded) + 1)
        return 0

    _restart_routed = _output_routed

    @staticmethod
    def _output_completing(function: Callable[..., Any], valid: int) -> int:
        answer = function(bool(valid))
        return valid if answer is None else int(bool(answer))

    @staticmethod
    def _output_completed(function: Callable[..., Any], status: int) -> None:
        function(status == 0)

    def _restart_started(self, function: Callable[..., Any], dataset: Any) -> None:
        function(self._text(dataset))

    @staticmethod
    def _restart_completed(function: Callable[..., Any], valid: int) -> None:
        function(bool(valid))


# The C table holds pointers into these objects.
_registered: set[Hooks] = set()
