"""Runs that take much memory, each in a process of its own: the death of the process costs one row, not the sweep."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import IO

from celltrain import _core
from celltrain.running.here import stream_here
from celltrain.running.work import Chunk, RunRecord

#: A run that reserves more than this part of the free memory has a process of its own.
SHARE = 0.25
#: The part of the memory that several of them may have together, as one run may.
TOGETHER = 0.75
#: How long a text is, before it.
LENGTH = struct.Struct("<Q")
#: The most characters of a process's error output that are reported.
COMPLAINT = 300


def split(chunk: Chunk) -> tuple[Chunk, Chunk]:
    """The runs of a chunk that share this process, and those that have one of their own."""
    limit = _core.memory_limit()
    if limit is None or not chunk.memory or not sys.executable:
        return chunk, replace(chunk, tasks=())
    large = [chunk.memory[task.configuration] > SHARE * limit for task in chunk.tasks]
    parts = (
        [task for task, is_large in zip(chunk.tasks, large, strict=True) if is_large is wanted]
        for wanted in (False, True)
    )
    shared, apart = (replace(chunk, tasks=tuple(part)) for part in parts)
    return shared, apart


def stream(chunk: Chunk, threads: int, take: Callable[[RunRecord], object]) -> None:
    """Runs each run of a chunk in a process of its own, as many at a time as threads and memory allow.

    Hands over each as it ends, on the calling thread; one whose process died is handed over with the reason as its error.
    """
    if not chunk.tasks:
        return
    limit = _core.memory_limit()
    most = max(chunk.memory[task.configuration] for task in chunk.tasks)
    fitting = threads if limit is None else int(TOGETHER * limit // most)
    children = _Children()
    with ThreadPoolExecutor(max_workers=max(1, min(threads, fitting))) as pool:
        try:
            for done in as_completed([pool.submit(children.run, alone) for alone in _each(chunk)]):
                take(done.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            children.kill()
            raise


def command() -> list[str]:
    """The command that runs a chunk of one run: standard input has the chunk, standard output receives its row."""
    return [sys.executable, "-c", "from celltrain.running.apart import main; main()"]


def main() -> None:
    """Runs the one run that standard input describes."""
    sent, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Other output must not mix with the row.
    os.dup2(2, 1)
    chunk: Chunk = pickle.loads(_read(sent))
    threading.Thread(target=_end_with, args=(sent,), daemon=True).start()
    rows: list[RunRecord] = []
    stream_here(chunk, 1, rows.append)
    _write(answers, pickle.dumps(rows[0]))
    answers.close()


def _each(chunk: Chunk) -> list[Chunk]:
    """The runs of a chunk, each on its own."""
    return [
        replace(
            chunk,
            configurations=(chunk.configurations[task.configuration],),
            memory=(chunk.memory[task.configuration],),
            tasks=(replace(task, configuration=0),),
        )
        for task in chunk.tasks
    ]


class _Children:
    """Processes that are to be killed together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._over = False

    def run(self, chunk: Chunk) -> RunRecord:
        """Runs the one run of a chunk; its row."""
        with self._lock:
            if self._over:
                return _failed(chunk, "was given up")
            child = subprocess.Popen(
                command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
            )
            self._running.add(child)
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None, "all are pipes"
        said: list[bytes] = []
        listener = threading.Thread(target=lambda: said.append(child.stderr.read()), daemon=True)  # type: ignore[union-attr]
        listener.start()
        answer = b""
        try:
            with contextlib.suppress(BrokenPipeError, EOFError):
                _write(child.stdin, pickle.dumps(chunk))
                # Standard input stays open: its end tells the process that this one is gone.
                answer = _read(child.stdout)
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            code = child.wait()
            listener.join()
        finally:
            with self._lock:
                self._running.discard(child)
            child.stdout.close()
            child.stderr.close()
        if answer:
            record: RunRecord = pickle.loads(answer)
            return record
        return _failed(chunk, _how_it_died(code, b"".join(said), chunk.memory[0]))

    def kill(self) -> None:
        """Ends them all, and those to come."""
        with self._lock:
            self._over = True
            for child in self._running:
                child.kill()


def _failed(chunk: Chunk, error: str) -> RunRecord:
    [task] = chunk.tasks
    [configuration] = chunk.configurations
    return RunRecord(point=task.point, seed=task.seed, run_key=task.run_key, configuration=configuration, error=error)


def _how_it_died(code: int, said: bytes, needed: int) -> str:
    size = f"it was to take about {needed / (1 << 30):.1f} GiB of memory"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        reason = ", as a system does that runs out of memory" if name in ("SIGKILL", "SIGABRT") else ""
        return f"its process was killed by {name}{reason}; {size}"
    lines = said.decode("utf-8", "replace").strip().splitlines()
    last = f": {lines[-1][:COMPLAINT]}" if lines else ""
    return f"its process ended without a result, with exit code {code}{last}; {size}"


def _environment() -> dict[str, str]:
    """This process's, with this celltrain before any other, and without the modules of the folder it happens to be in."""
    import celltrain

    package = str(Path(celltrain.__file__).resolve().parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


def _write(stream: IO[bytes], content: bytes) -> None:
    stream.write(LENGTH.pack(len(content)) + content)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    [length] = LENGTH.unpack(_exactly(stream, LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


def _end_with(stream: IO[bytes]) -> None:
    """Ends this process when its parent process is gone."""
    stream.read(1)
    os._exit(1)
