"""Element types as text: NumPy's descr, in JSON and in TOML, where lists stand for tuples.

Imports NumPy only; raises ValueError or TypeError, which the callers turn into errors that name the place.
Tests: ``tests/test_criticality.py``, ``tests/test_layout.py``.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def dtype_to_json(dtype: np.dtype[Any]) -> Any:
    """JSON form of a dtype: its descr with lists for tuples. ValueError where NumPy has no descr."""
    return json.loads(json.dumps(np.lib.format.dtype_to_descr(dtype)))


def dtype_from_json(descr: Any) -> np.dtype[Any]:
    """Inverse of :func:`dtype_to_json`; fields named "" are padding. ValueError or TypeError otherwise."""
    return np.lib.format.descr_to_dtype(_with_tuples(descr))


def require_byte_order(descr: Any) -> None:
    """ValueError if a type in the descr leaves its byte order to the machine, which no file does."""
    if isinstance(descr, list):
        for field in descr:
            require_byte_order(field[1])
    elif np.dtype(descr).byteorder != "|" and descr[:1] not in "<>":
        raise ValueError(f'{descr!r} leaves the byte order open; write "<" or ">" in front of the type')


def _with_tuples(descr: Any) -> Any:
    if isinstance(descr, str):
        return descr
    if not isinstance(descr, list) or not descr:
        raise ValueError(f"found {descr!r} in a dtype")
    fields = []
    for field in descr:
        if not isinstance(field, list) or len(field) not in (2, 3):
            raise ValueError(f"found {field!r} as a field of a dtype")
        name = tuple(field[0]) if isinstance(field[0], list) else field[0]  # a list is (title, name)
        fields.append((name, _with_tuples(field[1]), *(tuple(extents) for extents in field[2:])))
    return fields
