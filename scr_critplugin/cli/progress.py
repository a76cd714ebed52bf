"""Progress of long work: on a terminal only, on stderr, so that pipes and files stay clean."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_POLL_SECONDS = 0.2


@contextmanager
def reading_progress(what: str, total: int) -> Iterator[None]:
    """Show a bar that follows how much this process reads, while the C core works on files.

    Parameters
    ----------
    what : str
        Label of the bar.
    total : int
        Bytes that will be read in all.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
    )
    done = threading.Event()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=max(total, 1))
        begin = _bytes_read()

        def follow() -> None:
            while not done.wait(_POLL_SECONDS):
                bar.update(task, completed=min(_bytes_read() - begin, total))

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            done.set()
            follower.join()


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """Show that `what` goes on and for how long, where nothing tells how much of it is done."""
    with _shown() as progress:
        progress.add_task(what, total=None)
        yield


@contextmanager
def profile_progress(what: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show a bar of a profile; yields the function that the profile tells how far it is (see `profile`)."""
    with _shown(BarColumn(), MofNCompleteColumn()) as progress:
        task = progress.add_task(what, total=None)

        def follow(phase: str, done: int, total: int | None) -> None:
            progress.update(task, description=f"{what}: {phase}", completed=done, total=total)

        yield follow


def _shown(*columns: ProgressColumn) -> Progress:
    """A line on the terminal with a spinner, the task, these columns and the time."""
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        # What the work prints to a file or pipe must get there.
        redirect_stdout=sys.stdout.isatty(),
    )


def _bytes_read() -> int:
    """Bytes that this process has read so far, by the kernel's account (proc(5), ``rchar``)."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    return 0
