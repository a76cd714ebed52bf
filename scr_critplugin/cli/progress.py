"""A progress bar for long work: on a terminal only, on stderr, so that pipes and files stay clean."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

_POLL_SECONDS = 0.2


@contextmanager
def progress(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a bar labelled `what`; yields a function that adds to the work done, in units of `total`."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount: bar.update(task, advance=amount)


@contextmanager
def file_progress(what: str, growing: Path, total: int) -> Iterator[None]:
    """Show a bar that follows the size of a file while another function writes it.

    Parameters
    ----------
    growing : Path
        The file being written (the core's temporary file); it need not exist yet.
    total : int
        Expected size in bytes.
    """
    done = threading.Event()

    def follow(advance: Callable[[float], None]) -> None:
        seen = 0
        while not done.wait(_POLL_SECONDS):
            try:
                size = growing.stat().st_blocks * 512
            except FileNotFoundError:
                continue
            advance(size - seen)
            seen = size

    with progress(what, max(total, 1)) as advance:
        follower = threading.Thread(target=follow, args=(advance,), daemon=True)
        follower.start()
        try:
            yield
        finally:
            done.set()
            follower.join()
