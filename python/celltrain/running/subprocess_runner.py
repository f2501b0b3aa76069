"""Runs a chunk on threads, and runs that take much memory in processes: if one dies, a row fails, not the sweep."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from celltrain import _core
from celltrain.running.in_process import run_in_process
from celltrain.running.work import Chunk, Rows, RunRecord

#: A run that reserves more than this share of the free memory gets its own process.
SHARE = 0.25
#: Share of the free memory that such runs may have together, which is also what one run may have.
TOGETHER = 0.75
#: Most characters of a process's error output that are reported.
COMPLAINT = 300


def run_chunk(chunk: Chunk, threads: int = 1) -> Rows:
    """Runs a chunk to its end. A run that fails is a row with its error, and the other runs continue."""
    records: list[RunRecord] = []
    run_records(chunk, threads, records.append)
    build = _core.build()
    return Rows(version=build["version"], profile=build["profile"], runs=tuple(records))


def run_records(chunk: Chunk, threads: int, take: Callable[[RunRecord], object]) -> None:
    """Runs a chunk on threads, large runs in processes, and passes each record to `take` on the calling thread."""
    shared, large = split(chunk)
    if shared.tasks:
        run_in_process(shared, threads, take)
    run_in_processes(large, threads, take)


def split(chunk: Chunk) -> tuple[Chunk, Chunk]:
    """Returns the runs of a chunk that share this process, and the runs that get processes of their own."""
    limit = _core.memory_limit()
    if limit is None or not chunk.memory or not sys.executable:
        return chunk, replace(chunk, tasks=())
    large = {task for task in chunk.tasks if chunk.memory[task.configuration] > SHARE * limit}
    shared = tuple(task for task in chunk.tasks if task not in large)
    return replace(chunk, tasks=shared), replace(chunk, tasks=tuple(task for task in chunk.tasks if task in large))


def run_in_processes(chunk: Chunk, threads: int, take: Callable[[RunRecord], object]) -> None:
    """Runs each run of a chunk in a process of its own, as many at a time as threads and memory allow.

    Passes each run to `take` on the calling thread when it ends. If its process died, the reason is the run's error.
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
    """Returns the command that runs a chunk of one run: it reads the chunk from standard input and writes its row."""
    return [sys.executable, "-c", "from celltrain.running.subprocess_runner import main; main()"]


def main() -> None:
    """Runs the one run that standard input describes."""
    answers = os.fdopen(os.dup(1), "wb")
    # Other output must not mix with the row.
    os.dup2(2, 1)
    chunk: Chunk = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    rows: list[RunRecord] = []
    run_in_process(chunk, 1, rows.append)
    with answers:
        pickle.dump(rows[0], answers)


class Children:
    """Processes that are killed together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._killed = False

    def run(self, chunk: Chunk) -> RunRecord:
        """Runs the one run of a chunk and returns its row."""
        [task] = chunk.tasks
        with tempfile.TemporaryFile() as errors:
            with self._lock:
                if self._killed:
                    return chunk.failed(task, "was given up")
                child = subprocess.Popen(
                    command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=_environment()
                )
                self._running.add(child)
            try:
                return _answer_of(child, chunk)
            except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                errors.seek(0)
                return chunk.failed(task, _cause_of_death(child.wait(), errors.read(), chunk.memory[0]))
            finally:
                with self._lock:
                    self._running.discard(child)

    def kill(self) -> None:
        """Ends all processes; none is started afterwards."""
        with self._lock:
            self._killed = True
            for child in self._running:
                child.kill()


def _answer_of(child: subprocess.Popen[bytes], chunk: Chunk) -> RunRecord:
    assert child.stdin is not None and child.stdout is not None, "both are pipes"
    try:
        pickle.dump(chunk, child.stdin)
        child.stdin.flush()
        # Standard input stays open: its end tells the child that this process is gone.
        record: RunRecord = pickle.load(child.stdout)
        return record
    finally:
        with suppress(BrokenPipeError):
            child.stdin.close()
        child.wait()
        child.stdout.close()


def _cause_of_death(code: int, output: bytes, needed: int) -> str:
    size = f"it was to take about {needed / (1 << 30):.1f} GiB of memory"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        reason = ", as a system does that runs out of memory" if name in ("SIGKILL", "SIGABRT") else ""
        return f"its process was killed by {name}{reason}; {size}"
    lines = output.decode("utf-8", "replace").strip().splitlines()
    last = f": {lines[-1][:COMPLAINT]}" if lines else ""
    return f"its process ended without a result, with exit code {code}{last}; {size}"


def _environment() -> dict[str, str]:
    """Returns this process's environment, with this celltrain first and without the modules of the current folder."""
    import celltrain

    package = str(Path(celltrain.__file__).resolve().parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def _exit_with_parent() -> None:
    """Ends this process when its parent process is gone, which closes standard input."""
    os.read(0, 1)
    os._exit(1)
