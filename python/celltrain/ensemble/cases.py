"""The cases of an ensemble, and the function that runs them with their seeds.

Sweeps, searches, comparisons and reproductions call `execute`. To estimate the cost, a few cases are run, or only their
beginning.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from celltrain import _core
from celltrain.ensemble.plan import Plan, canonical, canonical_with_memory
from celltrain.errors import ScenarioError
from celltrain.model.cancel import current
from celltrain.running import Chunk, Recording, Rows, Task, Worker

#: Time limit of a probe in seconds; the time of an unfinished probe is extrapolated from the completed fraction.
PROBE_SECONDS = 2.0
#: Number of points that are probed, spread over the plan.
PROBES = 5
#: Bytes on disk for a run without its measures, and for each measure.
RUN_BYTES, MEASURE_BYTES = 95, 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One scenario of an ensemble.

    Attributes:
        number: Its number, from 0.
        configuration: The canonical scenario as JSON.
        memory: Bytes of memory that a run of the case reserves.
    """

    number: int
    configuration: str
    memory: int

    @classmethod
    def of(cls, number: int, scenario: Mapping[str, Any]) -> Case:
        """Returns the case of a scenario; raises `ScenarioError` if the scenario is refused."""
        configuration, memory = canonical_with_memory(scenario)
        return cls(number=number, configuration=configuration, memory=memory)


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run of a case.

    Attributes:
        case: The case.
        seed: The seed of every random choice.
        key: A unique text that identifies the run.
        measures: Measures of this run; those of the ensemble when None.
    """

    case: Case
    seed: int
    key: str
    measures: tuple[str, ...] | None = None


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
        runs: The runs. A worker may iterate over them on another thread.
        worker: Where to run: threads and processes of this machine, or a cluster.
        take: Called with rows, in any order. Rows of a run may arrive twice.
        measures: Measures of runs that do not define their own.
        limit_s: Real time that a run may take.
        recording: The series to record; None for no series.
        chunk_runs: Runs per chunk; the worker's default when None.
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


class _TookLongError(Exception):
    """A trial run has reached its time limit."""


def trial_run(configuration: str, seed: int, seconds: float) -> tuple[dict[str, Any] | None, float]:
    """Runs a canonical scenario for at most this number of seconds.

    Returns:
        The answer (None if the run was stopped), and the seconds that a whole run takes.
    """
    begun, share = time.monotonic(), 0.0

    def check_time(done: float) -> None:
        nonlocal share
        share = done
        if share > 0 and time.monotonic() - begun > seconds:
            raise _TookLongError

    try:
        text, _ = _core.Scenario(configuration).run(seed, on_progress=check_time, cancel=current())
    except _TookLongError:
        return None, (time.monotonic() - begun) / share
    answer = json.loads(text)
    return answer, float(answer["timing"]["engine_seconds"])


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimated cost of a sweep.

    Attributes:
        points: Points of the plan.
        runs: Number of runs; with `until`, the maximum.
        least_runs: Minimum number of runs.
        probes: Number of runs that the estimate is based on; 0 if none could be run.
        seconds_per_run: Time of a run on one core.
        seconds: Time of all runs on all threads.
        bytes_per_run: Bytes on disk per run, without series.
        bytes: Bytes of all runs.
    """

    points: int
    runs: int
    least_runs: int
    probes: int
    seconds_per_run: float
    seconds: float
    bytes_per_run: float
    bytes: float


def estimate(plan: Plan, threads: int) -> Estimate:
    """Estimates the cost of a plan by running a few points, or their beginning."""
    count, until = len(plan.points), plan.seeds.until
    seconds, characters = [], 0
    for index in sorted({count * i // PROBES + count // (2 * PROBES) for i in range(PROBES)}):
        try:
            text = canonical(plan.points[index].scenario)
        except ScenarioError:
            continue
        seconds.append(trial_run(text, plan.seeds.first, PROBE_SECONDS)[1])
        characters += len(text)
    probes = len(seconds)
    each = sum(seconds) / max(probes, 1)
    size = RUN_BYTES + MEASURE_BYTES * len(plan.measures) + characters / max(probes, 1) * count / plan.runs
    return Estimate(
        points=count,
        runs=plan.runs,
        least_runs=count * (plan.seeds.count if until is None else until.at_least),
        probes=probes,
        seconds_per_run=each,
        seconds=each * plan.runs / min(threads, plan.runs),
        bytes_per_run=size,
        bytes=size * plan.runs,
    )
