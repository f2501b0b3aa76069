"""Types that are sent to workers and back. All of them can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from celltrain import _core
from celltrain.model.python_policy import modules_of


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The series that every run records.

    Attributes:
        trace: Names of the series.
        step: Time between two samples.
        ports: Ports whose series are recorded; the bottleneck when None.
    """

    trace: tuple[str, ...]
    step: str
    ports: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One run that a worker should do.

    Attributes:
        run_key: Key of the run.
        point: Number of the case.
        seed: Seed of the run.
        configuration: Index into the configurations of the chunk.
        measures: Measures of this run; those of the chunk when None.
    """

    run_key: str
    point: int
    seed: int
    configuration: int
    measures: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Runs that a worker receives together.

    Attributes:
        configurations: Canonical scenarios as JSON.
        tasks: The runs.
        measures: Measures of each run.
        limit_s: Wall-clock time limit for each run, from reading its scenario to its answer.
        recording: The series to record; None for no series.
        modules: Modules of Python policies that the configurations name.
    """

    configurations: tuple[str, ...]
    tasks: tuple[Task, ...]
    measures: tuple[str, ...]
    limit_s: float | None
    recording: Recording | None
    modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.modules:
            object.__setattr__(self, "modules", modules_of(self.configurations))

    def single(self, task: Task) -> Chunk:
        """Returns a chunk with one of the runs."""
        text = self.configurations[task.configuration]
        return replace(self, configurations=(text,), tasks=(replace(task, configuration=0),))

    def record(self, task: Task, **result: Any) -> RunRecord:
        """Returns the record of one of the runs, with its result or its error."""
        text = self.configurations[task.configuration]
        return RunRecord(point=task.point, seed=task.seed, run_key=task.run_key, configuration=text, **result)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """The result of one run.

    Attributes:
        point: Number of the case.
        seed: Seed of the run.
        run_key: Key of the run.
        configuration: The canonical scenario as JSON.
        values: Values of the measures, in their order; empty if the run failed.
        problems: Reasons why measures have no value, unless they are just undefined in this run, or depend on a lower
            bound.
        unmet: Rules of links that never met what they should have lost or delayed: number and warning.
        fingerprint: 16 hex digits that change if the time of any segment changes.
        error: The reason why the run failed.
        seconds: Wall-clock time that the engine took.
        cell_hops: Number of cell transmissions over links.
        series: The recorded series, as a Parquet file.
    """

    point: int
    seed: int
    run_key: str
    configuration: str
    values: tuple[float | None, ...] = ()
    problems: tuple[str | None, ...] | None = None
    unmet: tuple[tuple[int, str], ...] = ()
    fingerprint: str | None = None
    error: str | None = None
    seconds: float = 0.0
    cell_hops: int = 0
    series: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """Records of runs, with the version of celltrain that produced them."""

    version: str
    profile: str
    runs: tuple[RunRecord, ...]

    @classmethod
    def of(cls, *runs: RunRecord) -> Rows:
        """Returns records of runs of this program."""
        return cls(version=_core.__version__, profile=_core.build()["profile"], runs=runs)


@runtime_checkable
class Worker(Protocol):
    """Anything that runs chunks: threads of this machine, or other machines.

    Attributes:
        chunk_runs: Number of runs that the worker wants in a chunk.
    """

    chunk_runs: int

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk. Passes rows to `take` on the calling thread as they arrive, in any order.

        Rows may arrive twice, for example if a lost machine comes back. Each run arrives at least once, or an exception
        is raised.
        """
