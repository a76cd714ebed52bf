"""The reductions of MPI as `Operation`s: for objects, as mpi4py's lowercase methods have them, and arrays.

May import NumPy and `communication`; mpi4py when called. Tests: ``tests/test_mpi_profile.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scr_critplugin.analysis.communication import Operation
from scr_critplugin.errors import ProfileError

_ELEMENTWISE = ["SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR"]


def of_objects(op: Any) -> Operation:
    """The reduction by `op`, an mpi4py operation or a function of two arguments; None is the sum."""
    from mpi4py import MPI

    op = MPI.SUM if op is None else op
    name = _name(op)
    return Operation(name, op, name in _ELEMENTWISE, _PARTIALS.get(name))


def of_arrays(op: Any) -> Operation:
    """The same, element by element over arrays of one shape."""
    from mpi4py import MPI

    op = MPI.SUM if op is None else op
    name = _name(op)

    def fold(total: Any, operand: Any) -> Any:
        if np.shape(total) != np.shape(operand) or total.dtype != operand.dtype:
            raise ProfileError(
                f"ranks reduce buffers of {total.dtype} {np.shape(total)} and {operand.dtype} "
                f"{np.shape(operand)}"
            )
        # MPI's order: the operand of the lower rank comes first, and the second is overwritten.
        result = operand.copy()
        op.Reduce_local(total, result)
        return result

    return Operation(name, fold, name in _ELEMENTWISE, _PARTIALS.get(name))


def _name(op: Any) -> str:
    from mpi4py import MPI

    for name in (*_ELEMENTWISE, "MAXLOC", "MINLOC", "REPLACE", "NO_OP"):
        if op is getattr(MPI, name) or (isinstance(op, MPI.Op) and op == getattr(MPI, name)):
            return name
    return str(getattr(op, "__name__", "of the program's own"))


def _of_sum(operand: Any, result: Any) -> Any:
    return 1.0


def _of_product(operand: Any, result: Any) -> Any:
    # Of a factor that is zero the result does not tell the product of the others.
    return np.divide(result, operand) if np.all(operand) else None


def _of_extremum(operand: Any, result: Any) -> Any:
    return np.equal(operand, result).astype(float)


_PARTIALS = {"SUM": _of_sum, "PROD": _of_product, "MAX": _of_extremum, "MIN": _of_extremum}
