"""Types that are sent to workers and back. All of them can be pickled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from celltrain import _core
from celltrain.model.python_policy import modules_of
from celltrain.running.tables import Series, encoded


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
        scenarios: The same scenarios, read and checked; None for those that a worker has to read, and empty if all are.
        tasks: The runs.
        measures: Measures of each run.
        limit_s: Wall-clock time limit for each run, from reading its scenario to its answer.
        recording: The series to record; None for no series.
        modules: Modules of Python policies that the configurations name.
    """

    configurations: tuple[str, ...]
    scenarios: tuple[_core.Scenario | None, ...] = ()
    tasks: tuple[Task, ...]
    measures: tuple[str, ...]
    limit_s: float | None
    recording: Recording | None
    modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.modules:
            object.__setattr__(self, "modules", modules_of(self.configurations))

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the scenarios itself.
        names = (one.name for one in fields(self) if one.name != "scenarios")
        return partial(Chunk, **{name: getattr(self, name) for name in names}), ()

    def single(self, task: Task) -> Chunk:
        """Returns a chunk with one of the runs."""
        text = self.configurations[task.configuration]
        scenarios = self.scenarios[task.configuration : task.configuration + 1]
        return replace(self, configurations=(text,), scenarios=scenarios, tasks=(replace(task, configuration=0),))

    def record(self, task: Task, **result: Any) -> RunRecord:
        """Returns the record of one of the runs, with its result or its error."""
        text = self.configurations[task.configuration]
        return RunRecord(point=task.point, seed=task.seed, run_key=task.run_key, configuration=text, **result)

    def rows(self, block: _core.Block) -> Rows:
        """Returns the records of a block of runs that have ended."""
        values = block["values"].astype(object)
        values[np.isnan(block["values"])] = None
        errors, unmet, series = dict(block["errors"]), dict(block["unmet"]), dict(block["series"])
        problems: dict[int, list[str | None]] = {}
        bounds: dict[int, list[int]] = {}
        for row, measure, kind, note in block["notes"]:
            problems.setdefault(row, [None] * values.shape[1])[measure] = note
            if kind == "bound":
                bounds.setdefault(row, []).append(measure)
        columns = (block["runs"], values.tolist(), block["fingerprints"], block["seconds"], block["cell_hops"])
        configurations, tasks, count = self.configurations, self.tasks, len(self.measures)
        records = [
            RunRecord(
                point=(task := tasks[run]).point,
                seed=task.seed,
                run_key=task.run_key,
                configuration=configurations[task.configuration],
                values=() if row in errors else tuple(own[: count if task.measures is None else len(task.measures)]),
                problems=tuple(problems[row][: count if task.measures is None else len(task.measures)])
                if row in problems
                else None,
                bounds=tuple(bounds.get(row, ())),
                unmet=tuple(unmet.get(row, ())),
                fingerprint=fingerprint,
                error=_in_words(errors[row]) if row in errors else None,
                seconds=seconds,
                cell_hops=cell_hops,
                series=recorded(series[row]) if row in series else None,
            )
            for row, (run, own, fingerprint, seconds, cell_hops) in enumerate(zip(*columns, strict=True))
        ]
        return Rows.of(*records)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """The result of one run.

    Attributes:
        point: Number of the case.
        seed: Seed of the run.
        run_key: Key of the run.
        configuration: The canonical scenario as JSON.
        values: Values of the measures, in their order; empty if the run failed.
        problems: Reasons why measures have no value, unless they are just undefined in this run; or notes about values
            that depend on open requests.
        bounds: Indices of the measures whose values are only lower bounds.
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
    bounds: tuple[int, ...] = ()
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


def recorded(series: Mapping[str, Any]) -> bytes:
    """Encodes series as a Parquet file with time, measure, port, flow and value."""
    import pyarrow as pa

    tables = []
    for table in Series(series).values():
        measured = [name for name in table.column_names if name not in ("time_s", "port", "flow")]
        for name in measured:
            nothing = pa.nulls(len(table), pa.string()).dictionary_encode()
            repeated = pa.array([name]).dictionary_encode().take(pa.array([0] * len(table), pa.int32()))
            whose = {key: table[key] if key in table.column_names else nothing for key in ("port", "flow")}
            value = table[name].cast(pa.float64())
            tables.append(pa.table({"time_s": table["time_s"], "measure": repeated, **whose, "value": value}))
    return encoded(pa.concat_tables(tables, promote_options="permissive").unify_dictionaries())


def _in_words(text: str) -> str:
    """Returns the core's error as text. For a refused scenario, the core returns JSON with the faults."""
    try:
        faults = json.loads(text)["faults"]
    except (ValueError, TypeError, KeyError):
        return text
    return "; ".join(fault["message"] for fault in faults)


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
