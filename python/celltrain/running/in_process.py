"""Runs a chunk on threads of this process, without writing files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from celltrain import _core
from celltrain.model.cancel import current
from celltrain.model.expressions import STEP, MeasureError, NoValueError, measure, needs_series, wanted
from celltrain.model.python_policy import allow
from celltrain.running.results import Series
from celltrain.running.tables import encoded
from celltrain.running.work import Chunk, Recording, RunRecord


def run_in_process(chunk: Chunk, threads: int, take: Callable[[RunRecord], object]) -> None:
    """Runs a chunk on threads of this process, and passes each run to `take` on the calling thread when it ends."""
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

    def on_result(index: int, answer_json: str, series: Mapping[str, Any] | None = None) -> None:
        task = chunk.tasks[index]
        answer = {**json.loads(answer_json), "scenario": scenarios[task.configuration]}
        figures = [evaluate(text, answer, series) for text in measures[index]]
        problems = tuple(problem for _, problem in figures)
        record = RunRecord(
            point=task.point,
            seed=task.seed,
            run_key=task.run_key,
            configuration=chunk.configurations[task.configuration],
            values=tuple(value for value, _ in figures),
            problems=problems if any(problems) else None,
            fingerprint=answer["fingerprint"],
            seconds=answer["timing"]["engine_seconds"],
            cell_hops=answer["cell_hops"],
            series=None if recording is None or series is None else recorded(series),
        )
        take(record)

    def on_error(index: int, text: str) -> None:
        take(chunk.failed(chunk.tasks[index], _in_words(text)))

    _core.run_many(
        # The threads that run the scenarios also read them: the time limit of a run includes the reading.
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
    )


def evaluate(text: str, answer: Mapping[str, Any], series: Mapping[str, Any] | None) -> tuple[float | None, str | None]:
    """Returns the value of a measure; or None and the reason, unless the measure is undefined in this run."""
    try:
        return measure(text, answer, series), None
    except NoValueError:
        return None, None
    except MeasureError as error:
        return None, str(error)


def recorded(series: Mapping[str, Any]) -> bytes:
    """Returns series as a Parquet file: time, measure, port, flow and value."""
    import pyarrow as pa

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
    """Returns the core's error as text; a refusal arrives as JSON with its faults."""
    try:
        faults = json.loads(text)["faults"]
    except (ValueError, TypeError, KeyError):
        return text
    return "; ".join(fault["message"] for fault in faults)
