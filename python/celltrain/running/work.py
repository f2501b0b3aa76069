"""The types that travel to workers and back. All of them can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from celltrain.model.python_policy import modules_of


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The series that every run records."""

    trace: tuple[str, ...]
    step: str
    ports: tuple[str, ...] | None
    """The bottleneck when None."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One run to do."""

    run_key: str
    point: int
    seed: int
    configuration: int
    """Index into the chunk's."""
    measures: tuple[str, ...] | None = None
    """What is wanted of this run; the chunk's measures when None."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Runs that are handed out together."""

    configurations: tuple[str, ...]
    """Canonical scenarios as JSON."""
    tasks: tuple[Task, ...]
    measures: tuple[str, ...]
    limit_s: float | None
    """What each run may take in real time, from the reading of its scenario to its answer."""
    recording: Recording | None
    memory: tuple[int, ...] = ()
    """Bytes that a run of each configuration reserves; empty if they are not known."""
    modules: tuple[str, ...] = ()
    """Modules of Python policies that the configurations name."""

    def __post_init__(self) -> None:
        if not self.modules:
            object.__setattr__(self, "modules", modules_of(self.configurations))


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """What came of one run."""

    point: int
    seed: int
    run_key: str
    configuration: str
    """The canonical scenario as JSON."""
    values: tuple[float | None, ...] = ()
    """Of the measures, in their order; none where the run failed."""
    problems: tuple[str | None, ...] | None = None
    """Why a measure has no value, where one has none for another reason than that there is nothing to measure."""
    fingerprint: str | None = None
    error: str | None = None
    """Why the run failed; None where it did not."""
    seconds: float = 0.0
    """Of real time the engine took."""
    cell_hops: int = 0
    """Cells that crossed a link, counted once a link."""
    series: bytes | None = None
    """What was recorded, as a Parquet file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """The records of some runs, and the version of the celltrain that ran them."""

    version: str
    profile: str
    runs: tuple[RunRecord, ...]


@runtime_checkable
class Worker(Protocol):
    """Whatever runs chunks: threads here, or machines elsewhere."""

    chunk_runs: int
    """How many runs it wants at a time."""

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk, and hands over rows as they come, in any order, on the calling thread.

        Rows may come twice (a machine was lost, and was not); each run comes at least once, or this raises.
        """
