"""Where united maps came from: the distinct sources and how many maps each stands for.

Maps of ranks differ in rank and time only, so ten thousand of them are one source. Imports nothing of the
package. Tests: ``tests/test_merge.py``, ``tests/test_criticality.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LISTED = 32
"""Distinct sources that are listed; of more only the number of maps is kept."""

_OF_ONE_MAP = ("rank", "date", "dates", "maps")


class Sources:
    """The sources of a union, added one by one; memory does not grow with their number."""

    def __init__(self) -> None:
        self._listed: dict[str, _Source] = {}
        self._more = 0

    def add(self, provenance: Mapping[str, Any]) -> None:
        """Add the provenance of a map; that of a union counts as its sources."""
        nested = provenance.get("union")
        if not isinstance(nested, list) or len(provenance) != 1:
            nested = [provenance]
        for source in nested:
            self._add_one(source if isinstance(source, dict) else {"source": source})

    def provenance(self) -> dict[str, Any]:
        """The provenance of the union: ``{"union": [...]}``."""
        listed = [source.described() for source in self._listed.values()]
        return {"union": [*listed, {"maps": self._more, "sources": "more"}] if self._more else listed}

    def _add_one(self, source: dict[str, Any]) -> None:
        counted = source.get("maps")
        maps = counted if isinstance(counted, int) else 1
        common = {key: value for key, value in source.items() if key not in _OF_ONE_MAP}
        key = json.dumps(common, sort_keys=True)
        if key in self._listed:
            self._listed[key].add(source, maps)
        elif len(self._listed) < LISTED and common != {"sources": "more"}:
            self._listed[key] = _Source(source, common, maps)
        else:
            self._more += maps


class _Source:
    def __init__(self, first: dict[str, Any], common: dict[str, Any], maps: int) -> None:
        self._first = first
        self._common = common
        self._maps = maps
        self._dates = _dates(first)
        self._is_alone = True

    def add(self, source: dict[str, Any], maps: int) -> None:
        self._is_alone = False
        self._maps += maps
        self._dates += _dates(source)
        self._dates = sorted(self._dates)[:: max(1, len(self._dates) - 1)] if self._dates else []

    def described(self) -> dict[str, Any]:
        """The source as it was if it is one map's, else what its maps have in common."""
        if self._is_alone:
            return self._first
        described = {**self._common, "maps": self._maps}
        return {**described, "dates": [self._dates[0], self._dates[-1]]} if self._dates else described


def _dates(source: dict[str, Any]) -> list[str]:
    dates = source.get("dates", [source["date"]] if "date" in source else [])
    return [date for date in dates if isinstance(date, str)] if isinstance(dates, list) else []
