"""Types that are sent to workers and back. All types can be pickled."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from celltrain import _core
from celltrain.model.arguments import Cancel, check, cores, current, ended_by
from celltrain.model.measures import encodable
from celltrain.model.python_classes import allow, modules_of
from celltrain.running.tables import Series, encoded


class Recording(NamedTuple):
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
class Run:
    """A case and the seed to run it with.

    Attributes:
        point: Number of the case, such as a point of a sweep.
        case: The case. Another process reads its scenario itself.
        seed: The seed.
        key: A key that differs for each run of an execution.
        measures: Measures of this run; those of the execution when None.
    """

    point: int
    case: _core.Case
    seed: int
    key: str
    measures: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Runs that a worker receives together.

    Attributes:
        runs: The runs.
        measures: Measures of each run.
        limit_s: Wall-clock time limit for each run, from reading its scenario to its answer.
        recording: The series to record; None for no series.
        modules: Modules of Python policies that the scenarios name.
        certificates: True to copy results between runs of the chunk that are known to be equal.
    """

    runs: tuple[Run, ...]
    measures: tuple[str, ...]
    limit_s: float | None
    recording: Recording | None
    modules: tuple[str, ...] = ()
    certificates: bool = False

    def __post_init__(self) -> None:
        if not self.modules:
            object.__setattr__(self, "modules", modules_of(case.canonical for case in self.cases.values()))

    @property
    def cases(self) -> dict[int, _core.Case]:
        """The cases of the runs, by number."""
        return {run.point: run.case for run in self.runs}

    def record(self, run: Run, **result: Any) -> RunRecord:
        """Returns the record of one of the runs, with its result or its error."""
        text = run.case.canonical
        return RunRecord(point=run.point, seed=run.seed, run_key=run.key, configuration=text, **result)

    def rows(self, block: _core.Block) -> Rows:
        """Returns the records of a block of runs that have ended."""
        values = block["values"].astype(object)
        values[np.isnan(block["values"])] = None
        errors, unmet, series = dict(block["errors"]), dict(block["unmet"]), dict(block["series"])
        filled_from = {row: self.runs[place].key for row, place in block["filled_from"]}
        uncertified = dict(block["uncertified"])
        problems: dict[int, list[str | None]] = {}
        bounds: dict[int, list[int]] = {}
        for row, measure, kind, note in block["notes"]:
            problems.setdefault(row, [None] * values.shape[1])[measure] = note
            if kind == "bound":
                bounds.setdefault(row, []).append(measure)
        columns = (block["runs"], values.tolist(), block["fingerprints"], block["seconds"], block["cell_hops"])
        runs, count = self.runs, len(self.measures)
        records = [
            RunRecord(
                point=(run := runs[place]).point,
                seed=run.seed,
                run_key=run.key,
                configuration=run.case.canonical,
                values=() if row in errors else tuple(own[: count if run.measures is None else len(run.measures)]),
                problems=tuple(problems[row][: count if run.measures is None else len(run.measures)])
                if row in problems
                else None,
                bounds=tuple(bounds.get(row, ())),
                unmet=tuple(unmet.get(row, ())),
                fingerprint=fingerprint,
                error=_in_words(errors[row]) if row in errors else None,
                seconds=seconds,
                cell_hops=cell_hops,
                filled_from=filled_from.get(row),
                uncertified=uncertified.get(row),
                series=recorded(series[row]) if row in series else None,
            )
            for row, (place, own, fingerprint, seconds, cell_hops) in enumerate(zip(*columns, strict=True))
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
        filled_from: Key of the run from which the result was copied, because its certificate proves that both runs are
            equal; None if the run was simulated.
        uncertified: The reason why the result of this run cannot be copied to other records; None if it might be, or if
            no other run might be the same.
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
    filled_from: str | None = None
    uncertified: str | None = None
    series: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """Records of runs, with the version of celltrain that produced them."""

    version: str
    profile: str
    runs: tuple[RunRecord, ...]

    @classmethod
    def of(cls, *runs: RunRecord) -> Rows:
        """Returns records of runs, with the version of this program."""
        return cls(version=_core.__version__, profile=_core.build()["profile"], runs=runs)


def without_certificate(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """Returns the reasons why results of runs could not be copied to other runs."""
    return tuple(sorted({record.uncertified for record in records if record.uncertified is not None}))


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


# Runs chunks on threads of this process.


#: Seconds between checks for a cancelled call.
POLL = 0.05


class Local:
    """Runs chunks on the cores of this machine, and prepares the next chunk in the meantime."""

    #: Number of runs in a chunk. Small chunks are prepared quickly; in large ones, threads rarely wait for the last
    #: run.
    chunk_runs = 1024

    def __init__(self, threads: int | None = None, *, certificates: bool = True) -> None:
        self.threads, self.certificates = threads or cores(), certificates

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
    cases = chunk.cases
    numbers = {number: place for place, number in enumerate(cases)}
    sets = [chunk.measures if run.measures is None else run.measures for run in chunk.runs]
    places = {measures: place for place, measures in enumerate(dict.fromkeys(sets))}
    _core.run_cases(
        list(cases.values()),
        [(numbers[run.point], run.seed, places[own]) for run, own in zip(chunk.runs, sets, strict=True)],
        [encodable(measures) for measures in places],
        threads,
        lambda block: take(chunk.rows(block)),
        limit_s=chunk.limit_s,
        recording=chunk.recording,
        cancel=current(),
        certificates=chunk.certificates,
    )
