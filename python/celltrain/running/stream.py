"""A chunk to rows: in this process, but for runs that take much of the memory there is."""

from __future__ import annotations

from collections.abc import Callable

from celltrain import _core
from celltrain.running import apart
from celltrain.running.here import stream_here
from celltrain.running.work import Chunk, Rows, RunRecord


def run_chunk(chunk: Chunk, threads: int = 1) -> Rows:
    """Runs a chunk to its end: a run that fails is a row with its error, and the others are run all the same."""
    runs: list[RunRecord] = []
    stream(chunk, threads, runs.append)
    build = _core.build()
    return Rows(version=build["version"], profile=build["profile"], runs=tuple(runs))


def stream(chunk: Chunk, threads: int, take: Callable[[RunRecord], object]) -> None:
    """Runs a chunk on threads, and hands over each run as it ends, on the calling thread.

    Runs that take much of the memory there is have processes of their own.
    """
    shared, large = apart.split(chunk)
    if shared.tasks:
        stream_here(shared, threads, take)
    apart.stream(large, threads, take)
