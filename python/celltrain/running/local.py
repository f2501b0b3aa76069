"""This machine as a worker: threads in the core, and a process of its own for each large run."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator

from celltrain import _core
from celltrain.model.arguments import cores
from celltrain.model.cancel import Cancel, check, ended_by
from celltrain.running.stream import stream
from celltrain.running.work import Chunk, Rows

#: Seconds between two looks at whether the call is to end, while it waits for a chunk.
LOOK = 0.05


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
            try:
                stream(chunk, self.threads, lambda record: take(Rows(version=version, profile=profile, runs=(record,))))
                chunk = ahead.chunk()
            finally:
                ahead.end()


class _Ahead:
    """The next chunk, made on a thread of its own."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunk: Chunk | None = None
        self._error: BaseException | None = None
        self._chunks = chunks
        self._handle = Cancel()
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._make,))
        self._thread.start()

    def chunk(self) -> Chunk | None:
        """The chunk, once it is made."""
        while self._thread.is_alive():
            self._thread.join(LOOK)
            check()
        if self._error is not None:
            raise self._error
        return self._chunk

    def end(self) -> None:
        """Ends the thread, whatever it is about: it must not run any more when the interpreter ends."""
        self._handle.cancel()
        self._thread.join()

    def _make(self) -> None:
        try:
            # Whoever makes chunks asks now and then whether the call is to end.
            with ended_by(self._handle):
                self._chunk = next(self._chunks, None)
        except BaseException as error:
            self._error = error
