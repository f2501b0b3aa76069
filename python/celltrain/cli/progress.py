"""Progress bars on a terminal. In a pipe nothing is shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TypeVar

from celltrain.text import shown

P = TypeVar("P")

#: A command that takes less has no bar.
DELAY_SECONDS = 1.0

#: Reports units done, units in all (None: unknown), and the words after the bar.
Report = Callable[[float, float | None, str], None]


@contextmanager
def bar(title: str, *, counts_runs: bool) -> Iterator[Report | None]:
    """Shows a bar after the first second, with the runs done or, if `counts_runs` is false, a percentage.

    Yields None in a pipe.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn

    from celltrain.cli.shell import console

    done = MofNCompleteColumn() if counts_runs else TaskProgressColumn()
    words = TextColumn("runs, {task.fields[rest]}" if counts_runs else "{task.fields[rest]}", markup=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), done, words)
    drawn = Progress(*columns, console=console(stderr=True), transient=True)
    task = drawn.add_task(shown(title), total=None, rest="")
    start = Timer(DELAY_SECONDS, drawn.start)
    start.daemon = True
    start.start()

    def report(completed: float, total: float | None, rest: str) -> None:
        drawn.update(task, completed=completed, total=total, rest=rest)

    try:
        yield report
    finally:
        start.cancel()
        start.join()
        drawn.stop()


@contextmanager
def waiting(title: str) -> Iterator[Callable[[float], None] | None]:
    """Shows how much of something is done, and the time left. Yields a function of that share, or None in a pipe."""
    with bar(title, counts_runs=False) as report:
        if report is None:
            yield None
            return
        from celltrain.drawing.pages.words import left

        began = time.monotonic()

        def tell(share: float) -> None:
            elapsed = time.monotonic() - began
            report(share, 1.0, left(elapsed / share - elapsed if share > 0 else None))

        yield tell


@contextmanager
def runs(title: str, latest: list[P], describe: Callable[[P], tuple[int, int, str]]) -> Iterator[Callable[[P], None]]:
    """Shows how many runs are done, of how many, and words that follow; `latest` keeps the last progress."""
    with bar(title, counts_runs=True) as report:

        def tell(progress: P) -> None:
            latest[:] = [progress]
            if report is not None:
                report(*describe(progress))

        yield tell
