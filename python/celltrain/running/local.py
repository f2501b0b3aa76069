"""Runs chunks on threads of this process."""

from __future__ import annotations

import contextvars
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

from celltrain import _core
from celltrain.model.arguments import cores
from celltrain.model.cancel import Cancel, check, current, ended_by
from celltrain.model.expressions import encodable
from celltrain.model.python_policy import allow
from celltrain.running.work import Chunk, Rows

#: Seconds between checks for a cancelled call.
POLL = 0.05


class Local:
    """Runs chunks on the cores of this machine, and prepares the next chunk in the meantime."""

    #: Number of runs in a chunk. Small chunks are prepared quickly; in large ones, threads rarely wait for the last
    #: run.
    chunk_runs = 1024

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or cores()

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk, and passes on rows while other runs go on."""
        stop = Cancel()

        def prepare() -> Chunk | None:
            with ended_by(stop):
                return next(chunks, None)

        chunk = next(chunks, None)
        with ThreadPoolExecutor(max_workers=1) as pool:
            try:
                while chunk is not None:
                    upcoming = pool.submit(contextvars.copy_context().run, prepare)
                    run_rows(chunk, self.threads, take)
                    chunk = _waited(upcoming)
            finally:
                # The thread must not run Python code during interpreter shutdown.
                stop.cancel()


def _waited(upcoming: Future[Chunk | None]) -> Chunk | None:
    """Returns the chunk once it is prepared; raises `CancelledError` if the call was cancelled."""
    while not wait([upcoming], timeout=POLL).done:
        check()
    return upcoming.result()


def run_chunk(chunk: Chunk, threads: int = 1) -> Rows:
    """Runs a chunk to its end. A failed run becomes a row with its error, and all other runs continue."""
    parts: list[Rows] = []
    run_rows(chunk, threads, parts.append)
    return Rows.of(*(record for part in parts for record in part.runs))


def run_rows(chunk: Chunk, threads: int, take: Callable[[Rows], object]) -> None:
    """Runs a chunk on threads of this process. Passes rows to `take` on the calling thread while other runs go on."""
    allow(chunk.modules)
    sets = [chunk.measures if task.measures is None else task.measures for task in chunk.tasks]
    places = {measures: place for place, measures in enumerate(dict.fromkeys(sets))}
    recording = chunk.recording
    _core.run_cases(
        # A time limit includes reading, so the threads that run the scenarios read them again.
        [
            _core.Scenario(text) if scenario is None or chunk.limit_s is not None else scenario
            for text, scenario in itertools.zip_longest(chunk.configurations, chunk.scenarios)
        ],
        [(task.configuration, task.seed, places[measures]) for task, measures in zip(chunk.tasks, sets, strict=True)],
        [encodable(measures) for measures in places],
        threads,
        lambda block: take(chunk.rows(block)),
        limit_s=chunk.limit_s,
        recording=None if recording is None else (recording.trace, recording.step, recording.ports),
        cancel=current(),
    )
