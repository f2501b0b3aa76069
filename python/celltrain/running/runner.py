"""This machine as a worker, and the choice of a worker for the arguments of a public call."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from celltrain import _core
from celltrain.errors import Fault, PlanError
from celltrain.model.arguments import MOST_JOBS, cores
from celltrain.model.cancel import Cancel, check, ended_by
from celltrain.running.subprocess_runner import run_records
from celltrain.running.work import Chunk, Rows, RunRecord, Worker

if TYPE_CHECKING:
    from distributed import Client

#: Seconds between two checks for a cancelled call while waiting for a chunk.
POLL = 0.05


def worker_of(jobs: int | None, client: Client | None, worker: Worker | None) -> Worker:
    """Returns the worker that the arguments of a public call choose; raises `PlanError` if they contradict each other."""
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise PlanError([Fault.of_option("jobs", jobs, f"is not a number of threads; from 1 to {MOST_JOBS}")])
    chosen = [name for name, value in (("jobs", jobs), ("client", client), ("worker", worker)) if value is not None]
    if len(chosen) > 1:
        raise PlanError([Fault.of_option(chosen[1], "given", f"says where to run, and so does {chosen[0]}: name one")])
    if client is not None:
        from celltrain.running.cluster import Cluster

        return Cluster(client)
    return worker or Local(jobs)


class Local:
    """Runs chunks on the cores of this machine, and prepares the next chunk meanwhile."""

    #: Small enough to be prepared quickly, large enough that threads rarely wait for the last run.
    chunk_runs = 1024

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or cores()

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk, and passes on each run when it ends."""
        build = _core.build()

        def take_one(record: RunRecord) -> None:
            take(Rows(version=build["version"], profile=build["profile"], runs=(record,)))

        stop = Cancel()

        def prepare() -> Chunk | None:
            with ended_by(stop):
                return next(chunks, None)

        chunk = next(chunks, None)
        with ThreadPoolExecutor(max_workers=1) as pool:
            try:
                while chunk is not None:
                    upcoming = pool.submit(contextvars.copy_context().run, prepare)
                    run_records(chunk, self.threads, take_one)
                    chunk = _waited(upcoming)
            finally:
                # The thread must not run Python code while the interpreter ends.
                stop.cancel()


def _waited(upcoming: Future[Chunk | None]) -> Chunk | None:
    """Returns the chunk when it is prepared; raises `CancelledError` if the call was cancelled."""
    while not wait([upcoming], timeout=POLL).done:
        check()
    return upcoming.result()
