"""What a worker does: a chunk of runs to rows. It writes nothing, and everything it takes and gives can be pickled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from celltrain import _core
from celltrain.cancel import current
from celltrain.expressions import STEP, MeasureError, NoValueError, measure, needs_series, wanted
from celltrain.plan import Recording
from celltrain.running import apart
from celltrain.store import Ran


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One run to do."""

    run_key: str
    point: int
    seed: int
    configuration: int
    """Index into the chunk's."""


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
    """Bytes that a run of each configuration takes; empty where nothing is known of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """What came of some runs, and which celltrain ran them."""

    version: str
    profile: str
    runs: tuple[Ran, ...]


@runtime_checkable
class Worker(Protocol):
    """Whatever runs chunks: threads here, or machines elsewhere."""

    chunk_runs: int
    """How many runs it wants at a time."""

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk, and hands over rows as they come, in any order, on the calling thread.

        Rows may come twice (a machine was lost, and was not); each run comes at least once, or this raises.
        """


def run_chunk(chunk: Chunk, threads: int = 1) -> Rows:
    """Runs a chunk to its end: a run that fails is a row with its error, and the others are run all the same."""
    runs: list[Ran] = []
    stream(chunk, threads, runs.append)
    build = _core.build()
    return Rows(version=build["version"], profile=build["profile"], runs=tuple(runs))


def stream(chunk: Chunk, threads: int, take: Callable[[Ran], object]) -> None:
    """Runs a chunk on threads, and hands over each run as it ends, on the calling thread.

    Runs that take much of the memory there is have processes of their own.
    """
    shared, large = apart.split(chunk)
    if shared.tasks:
        stream_here(shared, threads, take)
    apart.stream(large, threads, take)


def stream_here(chunk: Chunk, threads: int, take: Callable[[Ran], object]) -> None:
    """The same, all of it in this process."""
    recording = chunk.recording
    if recording is None and any(needs_series(text) for text in chunk.measures):
        traced = Recording(trace=("cwnd",), step=STEP, ports=())
    else:
        traced = recording or Recording(trace=(), step=STEP, ports=None)
    reads_scenario = any("scenario." in text for text in chunk.measures)
    scenarios = [json.loads(text) if reads_scenario else None for text in chunk.configurations]

    def on_result(index: int, text: str, series: Mapping[str, Any] | None = None) -> None:
        task = chunk.tasks[index]
        answer = {**json.loads(text), "scenario": scenarios[task.configuration]}
        figures = [evaluate(text, answer, series) for text in chunk.measures]
        problems = tuple(problem for _, problem in figures)
        ran = Ran(
            point=task.point,
            seed=task.seed,
            run_key=task.run_key,
            configuration=chunk.configurations[task.configuration],
            values=tuple(value for value, _ in figures),
            problems=problems if any(problems) else None,
            fingerprint=answer["fingerprint"],
            seconds=answer["engine_seconds"],
            series=None if recording is None or series is None else recorded(series),
        )
        take(ran)

    def on_error(index: int, text: str) -> None:
        task = chunk.tasks[index]
        configuration = chunk.configurations[task.configuration]
        take(
            Ran(
                point=task.point,
                seed=task.seed,
                run_key=task.run_key,
                configuration=configuration,
                error=_in_words(text),
            )
        )

    _core.run_many(
        # Read by the threads that run them: the limit of a run counts from there on.
        [_core.Scenario(text) for text in chunk.configurations],
        [(task.configuration, task.seed) for task in chunk.tasks],
        threads,
        on_result,
        on_error=on_error,
        limit_s=chunk.limit_s,
        trace=traced.trace,
        step=traced.step if traced.trace else None,
        links=traced.ports,
        wanted=wanted(chunk.measures),
        cancel=current(),
    )


def evaluate(text: str, answer: Mapping[str, Any], series: Mapping[str, Any] | None) -> tuple[float | None, str | None]:
    """A measure's value, and why it has none where that is not in the nature of the run."""
    try:
        return measure(text, answer, series), None
    except NoValueError:
        return None, None
    except MeasureError as error:
        return None, str(error)


def recorded(series: Mapping[str, Any]) -> bytes:
    """Series as a Parquet file: time, measure, port, flow and value."""
    import pyarrow as pa

    from celltrain.results import Series
    from celltrain.store.parts import encoded

    tables = []
    for table in Series(series).values():
        measured = [name for name in table.column_names if name not in ("time_s", "port", "flow")]
        for name in measured:
            nothing = pa.nulls(len(table), pa.string()).dictionary_encode()
            tables.append(
                pa.table(
                    {
                        "time_s": table["time_s"],
                        "measure": pa.array([name]).dictionary_encode().take(pa.array([0] * len(table), pa.int32())),
                        "port": table["port"] if "port" in table.column_names else nothing,
                        "flow": table["flow"] if "flow" in table.column_names else nothing,
                        "value": table[name].cast(pa.float64()),
                    }
                )
            )
    return encoded(pa.concat_tables(tables, promote_options="permissive").unify_dictionaries())


def _in_words(text: str) -> str:
    """The core's word on a run that has no result: a refusal comes as its faults."""
    try:
        faults = json.loads(text)["faults"]
    except (ValueError, TypeError, KeyError):
        return text
    return "; ".join(fault["message"] for fault in faults)
