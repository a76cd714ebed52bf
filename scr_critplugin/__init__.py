"""Element-wise checkpoint reduction for SCR.

The names below are loaded on first use (PEP 562): a program on 10,000 ranks that only needs
``scr_critplugin.scr`` must not pay for autograd or the C core at import.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "ElementState": "criticality",
    "Variable": "criticality",
    "CriticalityMap": "criticality",
    "Layout": "layout",
    "Plan": "plan",
    "compile_plan": "plan",
    "pack": "packed",
    "unpack": "packed",
    "inspect": "packed",
    "check": "packed",
    "profile": "analysis",
    "Profile": "analysis",
    "CritError": "errors",
    "__version__": "_version",
}

__all__ = [name for name in _HOME if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
