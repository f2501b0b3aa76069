"""The one loop that runs cases with their seeds: sweeps, searches, comparisons and reproductions call `execute`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from celltrain.ensemble.cases import Case, Run
from celltrain.running import Chunk, Recording, Rows, Task, Worker


def execute(
    runs: Iterable[Run],
    worker: Worker,
    take: Callable[[Rows], None],
    *,
    measures: Sequence[str] = (),
    limit_s: float | None = None,
    recording: Recording | None = None,
    chunk_runs: int | None = None,
) -> None:
    """Runs every run on a worker, and passes the rows to `take` on the calling thread as they arrive.

    Args:
        runs: The runs. They may be generated meanwhile, on another thread.
        worker: The runner: threads and processes of this machine, or a cluster.
        take: Called with rows, in any order. Rows of a run may arrive twice.
        measures: Measures of runs that have no measures of their own.
        limit_s: Real time that a run may take.
        recording: The series to record; None for no series.
        chunk_runs: Runs of a chunk; the number that the worker wants when None.
    """

    def chunks() -> Iterator[Chunk]:
        batch: list[Run] = []
        for run in runs:
            batch.append(run)
            if len(batch) >= (chunk_runs or worker.chunk_runs):
                yield chunk(batch)
                batch = []
        if batch:
            yield chunk(batch)

    def chunk(batch: Sequence[Run]) -> Chunk:
        cases: dict[int, Case] = {run.case.number: run.case for run in batch}
        places = {number: place for place, number in enumerate(cases)}
        return Chunk(
            configurations=tuple(case.configuration for case in cases.values()),
            memory=tuple(case.memory for case in cases.values()),
            tasks=tuple(
                Task(
                    run_key=run.key,
                    point=run.case.number,
                    seed=run.seed,
                    configuration=places[run.case.number],
                    measures=run.measures,
                )
                for run in batch
            ),
            measures=tuple(measures),
            limit_s=limit_s,
            recording=recording,
        )

    worker.work(chunks(), take)
