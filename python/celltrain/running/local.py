"""Runs chunks on this machine: on threads, and memory-hungry runs in processes, so that a crash affects only one."""

from __future__ import annotations

import contextvars
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import PlanError
from celltrain.model.arguments import MOST_JOBS, cores
from celltrain.model.cancel import Cancel, check, current, ended_by
from celltrain.model.expressions import STEP, MeasureError, NoValueError, lower_bound, measure, needs_series, wanted
from celltrain.model.python_policy import allow
from celltrain.running.tables import Series, encoded
from celltrain.running.work import Chunk, Recording, Rows, RunRecord, Worker

if TYPE_CHECKING:
    from distributed import Client

#: Seconds between checks for a cancelled call. In a child process, seconds between checks that its parent is alive.
POLL, WATCH = 0.05, 0.5
#: A run that reserves more than this share of the free memory gets its own process.
SHARE = 0.25
#: Share of the free memory for all such runs together, which is also the maximum for a single run.
TOGETHER = 0.75
#: Maximum number of characters reported from a process's error output.
COMPLAINT = 300


def worker_of(jobs: int | None, client: Client | None, worker: Worker | None) -> Worker:
    """Returns the worker for the arguments of a public call; raises `PlanError` if they contradict each other."""
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise PlanError.of_option("jobs", jobs, f"is not a number of threads from 1 to {MOST_JOBS}")
    chosen = [name for name, value in (("jobs", jobs), ("client", client), ("worker", worker)) if value is not None]
    if len(chosen) > 1:
        raise PlanError.of_option(
            chosen[1], "", f"selects where to run, as {chosen[0]} does: give only one of these options"
        )
    if client is not None:
        from celltrain.running.cluster import Cluster

        return Cluster(client)
    return worker or Local(jobs)


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
    """Runs a chunk on threads, and large runs in processes. Passes each record to `take` on the calling thread."""
    shared, large = split(chunk)
    if shared.tasks:
        run_in_process(shared, threads, take)
    run_in_processes(large, threads, take)


def split(chunk: Chunk) -> tuple[Chunk, Chunk]:
    """Splits a chunk into the runs that share this process, and the runs that need their own processes."""
    limit = _core.memory_limit()
    if limit is None or not chunk.memory or not sys.executable:
        return chunk, replace(chunk, tasks=())
    large = {task for task in chunk.tasks if chunk.memory[task.configuration] > SHARE * limit}
    shared = tuple(task for task in chunk.tasks if task not in large)
    return replace(chunk, tasks=shared), replace(chunk, tasks=tuple(task for task in chunk.tasks if task in large))


def run_in_processes(chunk: Chunk, threads: int, take: Callable[[RunRecord], object]) -> None:
    """Runs each run of a chunk in its own process, as many at a time as threads and memory allow.

    Passes each record to `take` on the calling thread when its run ends. If a process died, the record's error says
    why.
    """
    if not chunk.tasks:
        return
    limit = _core.memory_limit()
    most = max(chunk.memory[task.configuration] for task in chunk.tasks)
    fitting = threads if limit is None else int(TOGETHER * limit // most)
    children = Children()
    with ThreadPoolExecutor(max_workers=max(1, min(threads, fitting))) as pool:
        try:
            for done in as_completed([pool.submit(children.run, chunk.single(task)) for task in chunk.tasks]):
                take(done.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            children.kill()
            raise


def command() -> list[str]:
    """Returns the command of a child process: it reads a chunk of one run from standard input and writes its record."""
    return [sys.executable, "-c", "from celltrain.running.local import main; main()"]


def main() -> None:
    """Runs the single run that standard input describes. Exits early if the parent process ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # Other output must not be mixed with the record.
    os.dup2(2, 1)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    chunk: Chunk = pickle.load(sys.stdin.buffer)
    rows: list[RunRecord] = []
    run_in_process(chunk, 1, rows.append)
    with answers:
        pickle.dump(rows[0], answers)


class Children:
    """Processes that are killed together if the call ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._killed = False

    def run(self, chunk: Chunk) -> RunRecord:
        """Runs the one run of a chunk and returns its record."""
        [task] = chunk.tasks
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with self._lock:
            if self._killed:
                return chunk.record(task, error="was aborted")
            child = subprocess.Popen(command(), env=_environment(), **pipes)
            self._running.add(child)
        output, errors = child.communicate(pickle.dumps(chunk))
        with self._lock:
            self._running.discard(child)
        try:
            record: RunRecord = pickle.loads(output)
        except (EOFError, pickle.UnpicklingError):
            return chunk.record(task, error=_cause_of_death(child.returncode, errors, chunk.memory[0]))
        return record

    def kill(self) -> None:
        """Kills all processes, and prevents new ones."""
        with self._lock:
            self._killed = True
            for child in self._running:
                child.kill()


def _cause_of_death(code: int, output: bytes, needed: int) -> str:
    size = f"the run was expected to need about {needed / (1 << 30):.1f} GiB of memory"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        if name in ("SIGKILL", "SIGABRT"):
            return f"the process of the run was killed by {name}, possibly for lack of memory; {size}"
        return f"the process of the run was killed by {name}; {size}"
    lines = output.decode("utf-8", "replace").strip().splitlines()
    last = f": {lines[-1][:COMPLAINT]}" if lines else ""
    return f"the process of the run ended without a result, with exit code {code}{last}; {size}"


def _environment() -> dict[str, str]:
    """Returns this process's environment, with this celltrain first and without modules in the current folder."""
    import celltrain

    package = str(Path(celltrain.__file__).resolve().parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def run_in_process(chunk: Chunk, threads: int, take: Callable[[RunRecord], object]) -> None:
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
    """Returns the value of a measure, and a note if it depends on a lower bound; or None and the reason.

    The reason is None if the measure is just undefined in this run.
    """
    try:
        return measure(text, answer, series), lower_bound(text, answer)
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
