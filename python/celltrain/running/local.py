"""This machine's cores as a worker: threads in the core, no engine of processes."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterator

from celltrain import _core
from celltrain.running.work import Chunk, Rows, stream


class Local:
    """Runs chunks on the cores of this machine, the next one made ready meanwhile."""

    #: Few enough to be made in a blink, many enough that threads seldom wait for the last of them.
    chunk_runs = 1024

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or cores()

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk, and hands over each run as it ends."""
        build = _core.build()
        version, profile = build["version"], build["profile"]
        chunk = next(chunks, None)
        while chunk is not None:
            ahead = _Ahead(chunks)
            stream(chunk, self.threads, lambda ran: take(Rows(version=version, profile=profile, runs=(ran,))))
            chunk = ahead.chunk()


class _Ahead:
    """The next chunk, made on a thread of its own."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunk: Chunk | None = None
        self._error: BaseException | None = None
        self._chunks = chunks
        # Nobody waits for it after Ctrl-C.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._make,), daemon=True)
        self._thread.start()

    def chunk(self) -> Chunk | None:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._chunk

    def _make(self) -> None:
        try:
            self._chunk = next(self._chunks, None)
        except BaseException as error:
            self._error = error


def cores() -> int:
    """Cores this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
