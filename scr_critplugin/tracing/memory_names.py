"""The names of a rank's memory, as ``sections`` asks for them: by block and by address.

Imports ``naming`` and ``trace_file``. Tests: ``tests/test_tracing_planning.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .naming import Namer, Source
from .trace_file import RankTrace

_NAMELESS = "unknown memory"


class MemoryNames:
    """Names of the blocks and static variables of a trace; `shapes` are the user's, by name.

    Raises
    ------
    TraceError
        A shape does not fit its memory.
    """

    def __init__(self, trace: RankTrace, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._trace = trace
        self._namer = Namer(trace, shapes)
        self._blocks = self._namer.blocks()

    def pieces(self, block: int, start: int, stop: int) -> Iterator[tuple[int, int, Source]]:
        """Run-time addresses from start to stop, cut by source; what has no name is left out."""
        if block >= 0 and not self._is_static(block):
            source = self._blocks[block]
            begin, end = max(start, source.address), min(stop, source.address + source.nbytes)
            if begin < end:
                yield begin, end, source
            return
        for piece in self._namer.static_pieces(start, stop):
            if piece.source.name != _NAMELESS:
                yield piece.start, piece.stop, piece.source

    def _is_static(self, number: int) -> bool:
        """Whether a block is memory of an ELF object, which the loader maps as programs map theirs."""
        block = self._trace.blocks[number]
        return block.kind == "static" or (
            block.kind == "mapping"
            and any(each.lowest <= block.address < each.highest for each in self._trace.objects)
        )
