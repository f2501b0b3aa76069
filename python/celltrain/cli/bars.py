"""How far many runs are, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from celltrain.cli import shell
from celltrain.text import shown

P = TypeVar("P")


@dataclass(frozen=True)
class Bar:
    """What a bar shows."""

    done: int
    total: int
    rest: str


@contextmanager
def bar(name: str, latest: list[P], shows: Callable[[P], Bar]) -> Iterator[Callable[[P], None]]:
    """A bar of runs on a terminal, told of progress; in a pipe nothing is shown. `latest` keeps the last that was told."""

    def keep(progress: P) -> None:
        latest[:] = [progress]

    if not sys.stderr.isatty():
        yield keep
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, {task.fields[rest]}", markup=False),
    )
    with Progress(*columns, console=shell.console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(shown(name), total=None, rest="")

        def show(progress: P) -> None:
            keep(progress)
            now = shows(progress)
            drawn.update(task, completed=now.done, total=now.total, rest=now.rest)

        yield show


def size_in_words(size: float) -> str:
    """A number of bytes for people.

    >>> size_in_words(129_500), size_in_words(18_500_000), size_in_words(2.04e9)
    ('130 KB', '18.5 MB', '2.04 GB')
    """
    for limit, scale, word in ((1e6, 1e3, "KB"), (1e9, 1e6, "MB"), (float("inf"), 1e9, "GB")):
        if size < limit:
            return f"{size / scale:.3g} {word}"
    return ""
