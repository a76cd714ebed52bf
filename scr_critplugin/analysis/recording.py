"""Recording a block of a program: autograd's tracer works with traced arrays inside it, and only there.

May import autograd, `boxes`, `dispatch`, `sparse_products`, `stand_ins` and `tape`. Tests:
``tests/test_dependence.py``, ``tests/test_inplace.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import autograd.tracer
import numpy as np
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import Box, isbox, new_box, trace_stack

from scr_critplugin.analysis import dispatch
from scr_critplugin.analysis.boxes import TracedArray, boxed, snapshot
from scr_critplugin.analysis.sparse_products import products_recorded
from scr_critplugin.analysis.stand_ins import StandIns
from scr_critplugin.analysis.tape import Tape

_SCALAR_TYPES = {bool, int, np.bool_, *(t for t in np.sctypeDict.values() if issubclass(t, np.number))}
_OF_SHAPE = {
    "shape",
    "ndim",
    "iscomplexobj",
    "result_type",
    "metadata",
    "parse_einsum_input",
    "isinstance",
    "type",
}


@contextmanager
def recording(
    *users: Any, arrays: bool = False, values: bool = False
) -> Iterator[tuple[Tape, Callable[[str, Any], Any]]]:
    """Trace inside the block: yields the tape, and a function that boxes a state variable given its name.

    In the modules of the functions `users`, and those they use, arrays that NumPy makes can be written to,
    and with `arrays` also arrays that are there already. `values`: calls are recorded with what their
    adjoints need.
    """
    tape = Tape(keeps_values=values)
    mappings, top, getval_of_tracer = dict(Box.type_mappings), trace_stack.top, autograd.tracer.getval
    # Not autograd's own new_trace: that does not unwind when the block raises.
    trace_stack.top = trace = top + 1
    try:
        _switch_to_traced_arrays()
        tape.box = lambda value, node: new_box(value, trace, node)
        stand_ins = StandIns(
            tape, lambda value: new_box(value, trace, tape.constant(value)), dispatch.REPLACED, arrays=arrays
        )
        with products_recorded(), stand_ins.around(users):
            yield tape, lambda name, value: new_box(value, trace, tape.root(name, value))
            tape.refuse_if_unfinished()
    finally:
        tape.closed = True
        trace_stack.top = top
        Box.type_mappings.clear()
        Box.type_mappings.update(mappings)
        autograd.tracer.getval = getval_of_tracer


def _switch_to_traced_arrays() -> None:
    array_types = {value_type for value_type, box in Box.type_mappings.items() if box is ArrayBox}
    # Comparisons, argsort and the like are traced too, so booleans and integers need boxes.
    for value_type in array_types | _SCALAR_TYPES | {TracedArray}:
        Box.type_mappings[value_type] = boxed
    autograd.tracer.getval = _getval_of_untraced_call


def _getval_of_untraced_call(value: Any) -> Any:
    """Stands in for the `getval` by which autograd's `notrace_primitive` takes values out of boxes.

    autograd means functions without a derivative by it; they can depend on the value all the same.
    """
    function = sys._getframe(1).f_locals.get("f_raw")
    name = getattr(function, "__name__", "function")
    while isbox(value):
        if isinstance(value, TracedArray) and name not in _OF_SHAPE:
            value = value._leave(f"untraced {name}")
        else:
            value = value._value
    return value if name in _OF_SHAPE else snapshot(value)
