"""Progress bars on a terminal, shown after the first second. Nothing is shown in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

from celltrain.text import shown

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

P = TypeVar("P")

#: Commands that take less time show no bar.
DELAY_SECONDS = 1.0


@contextmanager
def _bar(title: str, *, counts_runs: bool) -> Iterator[tuple[Progress, TaskID] | None]:
    """Shows a bar with the completed runs, or with a percentage and the time left. Yields None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    from celltrain.cli.shell import console

    runs = (MofNCompleteColumn(), TextColumn("runs, {task.fields[rest]}", markup=False))
    columns = runs if counts_runs else (TaskProgressColumn(), TimeRemainingColumn())
    begin = (TextColumn("{task.description}", markup=False), BarColumn())
    drawn = Progress(*begin, *columns, console=console(stderr=True), transient=True)
    start = Timer(DELAY_SECONDS, drawn.start)
    start.daemon = True
    start.start()
    try:
        yield drawn, drawn.add_task(shown(title), total=None, rest="")
    finally:
        start.cancel()
        start.join()
        drawn.stop()


@contextmanager
def waiting(title: str) -> Iterator[Callable[[float], None] | None]:
    """Shows a percentage and the time left. Yields a function that takes the completed fraction, or None in a pipe."""
    with _bar(title, counts_runs=False) as bar:
        yield None if bar is None else lambda share: bar[0].update(bar[1], completed=share, total=1.0)


@contextmanager
def runs(title: str, latest: list[P], describe: Callable[[P], tuple[int, int, str]]) -> Iterator[Callable[[P], None]]:
    """Shows the completed and total runs, followed by a text. `latest` receives the latest progress."""
    with _bar(title, counts_runs=True) as bar:

        def tell(progress: P) -> None:
            latest[:] = [progress]
            if bar is not None:
                completed, total, rest = describe(progress)
                bar[0].update(bar[1], completed=completed, total=total, rest=rest)

        yield tell
