"""Runs chunks on threads of this process."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from celltrain import _core
from celltrain.model.arguments import cores
from celltrain.model.cancel import Cancel, check, current, ended_by
from celltrain.model.expressions import STEP, MeasureError, NoValueError, measure, needs_series, note_on_open, wanted
from celltrain.model.python_policy import allow
from celltrain.running.tables import Series, encoded
from celltrain.running.work import Chunk, Recording, Rows, RunRecord

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
        """Runs every chunk, and passes on each record when its run ends."""

        def take_one(record: RunRecord) -> None:
            take(Rows.of(record))

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
                # The thread must not run Python code during interpreter shutdown.
                stop.cancel()


def _waited(upcoming: Future[Chunk | None]) -> Chunk | None:
    """Returns the chunk once it is prepared; raises `CancelledError` if the call was cancelled."""
    while not wait([upcoming], timeout=POLL).done:
        check()
    return upcoming.result()


def run_chunk(chunk: Chunk, threads: int = 1) -> Rows:
    """Runs a chunk to its end. A failed run becomes a row with its error, and all other runs continue."""
    records: list[RunRecord] = []
    run_records(chunk, threads, records.append)
    return Rows.of(*records)


def run_records(chunk: Chunk, threads: int, take: Callable[[RunRecord], object]) -> None:
    """Runs a chunk on threads of this process. Passes each record to `take` on the calling thread when its run ends."""
    allow(chunk.modules)
    recording = chunk.recording
    measures = [chunk.measures if task.measures is None else task.measures for task in chunk.tasks]
    every = list(dict.fromkeys(text for texts in measures for text in texts))
    if recording is None and any(map(needs_series, every)):
        traced = Recording(trace=("cwnd",), step=STEP, ports=())
    else:
        traced = recording or Recording(trace=(), step=STEP, ports=None)
    reads_scenario = any("scenario." in text for text in every)
    scenarios = [json.loads(text) if reads_scenario else None for text in chunk.configurations]

    unmet: dict[int, list[tuple[int, str]]] = {}

    def on_result(index: int, answer_json: str, series: Mapping[str, Any] | None = None) -> None:
        task = chunk.tasks[index]
        answer = {**json.loads(answer_json), "scenario": scenarios[task.configuration]}
        figures = [evaluate(text, answer, series) for text in measures[index]]
        problems = tuple(problem for _, problem in figures)
        record = chunk.record(
            task,
            values=tuple(value for value, _ in figures),
            problems=problems if any(problems) else None,
            unmet=tuple(unmet.pop(index, ())),
            fingerprint=answer["fingerprint"],
            seconds=answer["timing"]["engine_seconds"],
            cell_hops=answer["cell_hops"],
            series=None if recording is None or series is None else recorded(series),
        )
        take(record)

    def on_error(index: int, text: str) -> None:
        take(chunk.record(chunk.tasks[index], error=_in_words(text)))

    _core.run_many(
        # Scenarios are parsed by the threads that run them, so the time limit includes parsing.
        [_core.Scenario(text) for text in chunk.configurations],
        [(task.configuration, task.seed) for task in chunk.tasks],
        threads,
        on_result,
        on_error=on_error,
        limit_s=chunk.limit_s,
        trace=traced.trace,
        step=traced.step if traced.trace else None,
        links=traced.ports,
        wanted=wanted(every),
        cancel=current(),
        on_unmet=unmet.__setitem__,
    )


def evaluate(text: str, answer: Mapping[str, Any], series: Mapping[str, Any] | None) -> tuple[float | None, str | None]:
    """Returns the value of a measure, and a note if it depends on open requests; or None and the reason.

    The reason is None if the measure is just undefined in this run.
    """
    try:
        return measure(text, answer, series), note_on_open(text, answer)
    except NoValueError:
        return None, None
    except MeasureError as error:
        return None, str(error)


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
