"""Evaluates DWARF expressions over a snapshot of memory, exactly or not at all.

Fortran array descriptors describe their bounds by small stack programs (DWARF 5, section 2.5) that read the
descriptor. Registers, frames and memory outside the snapshot are unknown here: then there is no result.
Imports pyelftools only. Tests: ``tests/test_tracing_symbols.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.dwarf.dwarf_expr import DWARFExprParser

_WORD = 1 << 64


class UnknownValueError(Exception):
    """The expression needs what the snapshot does not have; never leaves the package."""


@dataclass(frozen=True)
class Snapshot:
    """Bytes found at a run-time address."""

    address: int
    memory: bytes

    def read(self, address: int, size: int, byteorder: str) -> int:
        """Unsigned integer of `size` bytes; UnknownValueError outside of the snapshot."""
        start = address - self.address
        if start < 0 or start + size > len(self.memory):
            raise UnknownValueError
        return int.from_bytes(self.memory[start : start + size], "little" if byteorder == "little" else "big")


def evaluate(
    expression: Sequence[int],
    parser: DWARFExprParser,
    snapshot: Snapshot,
    object_address: int,
    byteorder: str = "little",
) -> int:
    """Value of the expression as a signed 64-bit integer.

    Parameters
    ----------
    expression : bytes or list of int
    parser : DWARFExprParser
        Of the unit that the expression stands in.
    snapshot : Snapshot
        All memory that may be read.
    object_address : int
        Run-time address of the object the expression belongs to.

    Raises
    ------
    UnknownValueError
        An operation is not known, or needs registers or memory outside of the snapshot.
    """
    machine = _Machine(snapshot, object_address, byteorder)
    try:
        operations = parser.parse_expr(bytes(expression))
    except (ELFError, KeyError, ValueError) as error:
        raise UnknownValueError from error
    for operation in operations:
        machine.run(operation.op_name, operation.args)
    return _signed(machine.pop())


def _signed(value: int) -> int:
    value %= _WORD
    return value - _WORD if value >= _WORD // 2 else value


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise UnknownValueError
    quotient = abs(_signed(left)) // abs(_signed(right))
    return quotient if (_signed(left) < 0) == (_signed(right) < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise UnknownValueError
    return left % right


def _shifted(move: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda value, count: move(value, min(count, 64))


# Operands are unsigned 64-bit integers, results are cut to 64 bits.
_BINARY: dict[str, Callable[[int, int], int]] = {
    "DW_OP_and": lambda left, right: left & right,
    "DW_OP_or": lambda left, right: left | right,
    "DW_OP_xor": lambda left, right: left ^ right,
    "DW_OP_plus": lambda left, right: left + right,
    "DW_OP_minus": lambda left, right: left - right,
    "DW_OP_mul": lambda left, right: left * right,
    "DW_OP_div": _divided,
    "DW_OP_mod": _remainder,
    "DW_OP_shl": _shifted(lambda value, count: value << count),
    "DW_OP_shr": _shifted(lambda value, count: value >> count),
    "DW_OP_shra": _shifted(lambda value, count: _signed(value) >> count),
    "DW_OP_eq": lambda left, right: int(left == right),
    "DW_OP_ne": lambda left, right: int(left != right),
    "DW_OP_ge": lambda left, right: int(_signed(left) >= _signed(right)),
    "DW_OP_gt": lambda left, right: int(_signed(left) > _signed(right)),
    "DW_OP_le": lambda left, right: int(_signed(left) <= _signed(right)),
    "DW_OP_lt": lambda left, right: int(_signed(left) < _signed(right)),
}
_UNARY: dict[str, Callable[[int], int]] = {
    "DW_OP_abs": lambda value: abs(_signed(value)),
    "DW_OP_neg": lambda value: -value,
    "DW_OP_not": lambda value: ~value,
}
_CONSTANTS = {f"DW_OP_const{size}{sign}" for size in (1, 2, 4, 8) for sign in "us"} | {
    "DW_OP_constu",
    "DW_OP_consts",
}


class _Machine:
    """The stack of one evaluation."""

    def __init__(self, snapshot: Snapshot, object_address: int, byteorder: str) -> None:
        self.snapshot = snapshot
        self.object_address = object_address
        self.byteorder = byteorder
        self.stack: list[int] = []

    def push(self, value: int) -> None:
        self.stack.append(value % _WORD)

    def pop(self) -> int:
        return self.pick(0, remove=True)

    def pick(self, depth: int, remove: bool = False) -> int:
        if depth >= len(self.stack):
            raise UnknownValueError
        return self.stack.pop(-1 - depth) if remove else self.stack[-1 - depth]

    def run(self, name: str, args: list[Any]) -> None:
        if name in _BINARY:
            right, left = self.pop(), self.pop()
            self.push(_BINARY[name](left, right))
        elif name in _UNARY:
            self.push(_UNARY[name](self.pop()))
        elif name in _CONSTANTS:
            self.push(args[0])
        elif name.startswith("DW_OP_lit"):
            self.push(int(name.removeprefix("DW_OP_lit")))
        elif name in _MEMORY:
            _MEMORY[name](self, args)
        else:
            raise UnknownValueError


def _deref(machine: _Machine, size: int) -> None:
    machine.push(machine.snapshot.read(machine.pop(), size, machine.byteorder))


def _rotate(machine: _Machine) -> None:
    # The top entry goes below the two that follow it.
    top = machine.pop()
    second, third = machine.pop(), machine.pop()
    machine.stack += [top, third, second]


_MEMORY: dict[str, Callable[[_Machine, list[Any]], object]] = {
    "DW_OP_push_object_address": lambda machine, _: machine.push(machine.object_address),
    "DW_OP_deref": lambda machine, _: _deref(machine, 8),
    "DW_OP_deref_size": lambda machine, args: _deref(machine, args[0]),
    "DW_OP_plus_uconst": lambda machine, args: machine.push(machine.pop() + args[0]),
    "DW_OP_dup": lambda machine, _: machine.push(machine.pick(0)),
    "DW_OP_over": lambda machine, _: machine.push(machine.pick(1)),
    "DW_OP_pick": lambda machine, args: machine.push(machine.pick(args[0])),
    "DW_OP_drop": lambda machine, _: machine.pop(),
    "DW_OP_swap": lambda machine, _: machine.push(machine.pick(1, remove=True)),
    "DW_OP_rot": lambda machine, _: _rotate(machine),
    "DW_OP_nop": lambda machine, _: None,
}
