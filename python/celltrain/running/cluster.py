"""Runs chunks on a Dask cluster: each chunk is a task, and chunks that are lost with a machine are resubmitted.

Chunks and results are sent as bytes. Therefore the scheduler does not need celltrain, and a worker with another
version, or without celltrain, can report that.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import CancelledError as Ended
from celltrain.errors import ClusterError, needed
from celltrain.model.arguments import check
from celltrain.model.files import MAX_BYTES, UnreadableError, read_json
from celltrain.running.work import Chunk, Rows
from celltrain.stopping import noted_interrupts
from celltrain.text import described, shown

if TYPE_CHECKING:
    from distributed import Client, Future

#: Target seconds per chunk: about a hundred times the cost of submitting it, and a short wait for the last chunks.
CHUNK_SECONDS = 1.0
#: Number of runs in the first chunks, before the duration of a run is known, and the maximum for later chunks.
FIRST_RUNS, MOST_RUNS = 4, 1024
#: Chunks in flight per thread, so that no thread has to wait for work; and their minimum in total, so that an adaptive
#: cluster scales up.
AHEAD, AT_LEAST = 3, 8
#: Seconds between two checks for finished chunks, and between two counts of the threads.
POLL, COUNT = 0.02, 1.0
#: Number of seconds without workers after which a message reports this.
SILENCE = 5.0
#: Maximum seconds for fetching the rows of a chunk: while working, and after Ctrl-C.
FETCH, LAST_FETCH = 10.0, 2.0
#: Maximum number of times that a chunk dropped by the cluster is resubmitted.
DROPPED = 10
#: Seconds to wait for a scheduler.
TIMEOUT = 5.0


class Cluster:
    """Runs chunks on the workers of a Dask `Client`, one chunk per thread. Workers may come and go.

    Args:
        client: A synchronous client; it stays open.
        note: Called with a message if the cluster has no workers.
    """

    def __init__(self, client: Client, note: Callable[[str], object] | None = None) -> None:
        if getattr(client, "asynchronous", False):
            problem = "is asynchronous, but a sweep is not: create it without asynchronous=True"
            raise ClusterError.of_option("client", client, problem)
        self.chunk_runs = FIRST_RUNS
        self._client, self._note = client, note
        self._address = str(client.scheduler.address)
        self._task = _task()
        self._in_flight: dict[Future[Any], _Parcel] = {}
        #: Chunks to submit again: chunks that the cluster dropped, or single runs of a chunk that killed its workers.
        self._waiting: deque[_Parcel] = deque()
        self._threads = 0
        self._run_seconds: float | None = None
        self._counted = -COUNT
        self._last_worker = time.monotonic()
        self._interrupts: list[int] = []

    def size(self) -> tuple[int, int]:
        """Returns the current numbers of workers and threads."""
        threads = self._client.nthreads()
        return len(threads), sum(threads.values())

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk; raises `ClusterError` if the scheduler is lost or a worker has another celltrain."""
        with noted_interrupts() as self._interrupts:
            self._work(chunks, take)

    def _work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        try:
            while True:
                self._check()
                connected = self._is_connected()
                room = len(self._in_flight) < max(AT_LEAST, AHEAD * self._threads)
                submitted = connected and room and self._submit(chunks)
                taken = self._collect(take, FETCH)
                if not submitted and not taken:
                    if connected and not self._in_flight and not self._waiting:
                        self._check()
                        return
                    time.sleep(POLL)
        except (KeyboardInterrupt, Ended):
            # Rows that the cluster has already finished are also stored.
            self._interrupts = []
            with suppress(Exception):
                self._collect(take, LAST_FETCH)
            raise
        finally:
            if self._in_flight and self._client.status == "running":
                with suppress(Exception):
                    self._client.cancel(list(self._in_flight))
            self._in_flight.clear()
            self._waiting.clear()

    def _check(self) -> None:
        """Raises `KeyboardInterrupt` after Ctrl-C, and `CancelledError` if the call was cancelled."""
        if self._interrupts:
            raise KeyboardInterrupt
        check()

    def _is_connected(self) -> bool:
        """Returns whether the scheduler is connected, and updates the number of threads from time to time."""
        if self._client.status in ("closing", "closed"):
            resume = "start the cluster again, then continue with --resume (resume=True)"
            raise self._error(f"the scheduler was lost; finished runs are kept: {resume}")
        now = time.monotonic()
        if self._client.status != "running":
            return False
        if now - self._counted < COUNT:
            return True
        self._counted = now
        # If the connection is failing, the next check will see this in its status.
        with suppress(Exception):
            _, self._threads = self.size()
        if self._threads:
            self._last_worker = now
        elif self._note is not None and now - self._last_worker > SILENCE:
            self._note(f"{self._address} has no workers: waiting for some")
            self._note = None
        return True

    def _submit(self, chunks: Iterator[Chunk]) -> bool:
        """Submits the next chunk; returns whether a chunk was left."""
        # Suspect runs are submitted one at a time, to find the run that kills workers.
        suspects = any(parcel.alone for parcel in self._in_flight.values())
        parcel = next((parcel for parcel in self._waiting if not (parcel.alone and suspects)), None)
        if parcel is not None:
            self._waiting.remove(parcel)
        elif (chunk := next(chunks, None)) is not None:
            parcel = _Parcel(content=_packed(chunk), runs=len(chunk.runs))
        else:
            return False
        try:
            future = self._client.submit(self._task, parcel.content, _core.build(), pure=False)
        except Exception:
            # If the scheduler was lost, report that error instead.
            self._is_connected()
            raise
        self._in_flight[future] = parcel
        return True

    def _collect(self, take: Callable[[Rows], None], fetch: float) -> bool:
        """Handles chunks that have ended; returns whether any had."""
        ended = {future: future.status for future in self._in_flight if future.status not in ("pending", "lost")}
        handled = 0
        # If a worker is lost with a result, Dask computes the result again.
        for future, status in ended.items():
            if self._interrupts:
                break
            answer: Any = None
            try:
                if status in ("finished", "error"):
                    answer = future.result(timeout=fetch) if status == "finished" else future.exception(timeout=fetch)
            except (Exception, CancelledError, asyncio.CancelledError):
                # The result was lost while it was fetched. The next check will detect this.
                continue
            # The chunk stays in flight until its rows are passed on, because Ctrl-C may interrupt in between.
            parcel = self._in_flight[future]
            if status == "finished":
                self._open(answer, parcel, take)
            elif status == "error":
                self._failed(answer, parcel, take)
            else:
                if parcel.dropped == DROPPED:
                    raise self._error(
                        f"the cluster has dropped a chunk of runs {DROPPED} times; finished runs are kept"
                    )
                self._waiting.appendleft(replace(parcel, dropped=parcel.dropped + 1))
            del self._in_flight[future]
            handled += 1
        return handled > 0

    def _open(self, answer: tuple[bytes | None, Any], parcel: _Parcel, take: Callable[[Rows], None]) -> None:
        """Processes a worker's answer: rows and the seconds they took, or None and the reason."""
        content, seconds_or_reason = answer
        if content is None:
            raise self._error(str(seconds_or_reason))
        each = seconds_or_reason / parcel.runs
        self._run_seconds = each if self._run_seconds is None else 0.8 * self._run_seconds + 0.2 * each
        fitting = CHUNK_SECONDS / max(self._run_seconds, 1e-9)
        self.chunk_runs = max(1, min(MOST_RUNS, 2 * self.chunk_runs, round(min(fitting, MOST_RUNS))))
        take(_unpacked(content))

    def _failed(self, error: BaseException | None, parcel: _Parcel, take: Callable[[Rows], None]) -> None:
        from distributed import KilledWorker

        if not isinstance(error, KilledWorker):
            reason = f"{type(error).__name__}: {error}"
            raise self._error(f"a chunk of runs could not be run ({reason}); finished runs are kept")
        chunk: Chunk = _unpacked(parcel.content)
        if not parcel.alone:
            singles = (replace(chunk, runs=(run,)) for run in chunk.runs)
            self._waiting.extend(_Parcel(content=_packed(single), runs=1, alone=True) for single in singles)
            return
        record = chunk.record(chunk.runs[0], error="the worker died in every attempt")
        take(Rows.of(record))

    def _error(self, problem: str) -> ClusterError:
        return ClusterError.of_file(self._address, problem)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parcel:
    """A chunk as sent to the cluster.

    Attributes:
        content: The pickled chunk, compressed.
        runs: Number of runs in the chunk.
        alone: True for a single run that may have killed its worker.
        dropped: Number of times the cluster has dropped it.
    """

    content: bytes
    runs: int
    alone: bool = False
    dropped: int = 0


def _packed(what: Chunk) -> bytes:
    # The scenarios of a plan are very similar, so they compress well together.
    return zlib.compress(pickle.dumps(what), 1)


def _unpacked(content: bytes) -> Any:
    return pickle.loads(zlib.decompress(content))


def _task() -> Callable[[bytes, dict[str, str]], tuple[bytes | None, Any]]:
    """Returns the function that the workers run.

    An inner function is pickled with its code, so a worker with another version of celltrain can run it and report
    that.
    """

    def celltrain_chunk(content: bytes, build: dict[str, str]) -> tuple[bytes | None, Any]:
        import pickle
        import socket
        import time
        import zlib

        from distributed import get_worker

        begun = time.monotonic()
        who = f"worker {get_worker().address} on {socket.gethostname()}"
        try:
            from celltrain import _core

            found = _core.build()
        except ImportError as error:
            return None, f"{who} has no celltrain ({error}): install {build['version']} on all machines"
        if found != build:
            here, there = (f"celltrain {one['version']} ({one['profile']})" for one in (build, found))
            return None, f"{who} runs {there}, but this is {here}: install the same version on all machines"
        try:
            from celltrain.running import run_chunk

            rows = run_chunk(pickle.loads(zlib.decompress(content)))
            return zlib.compress(pickle.dumps(rows), 1), time.monotonic() - begun
        except Exception as error:
            return None, f"{who} could not run a chunk ({type(error).__name__}: {error}); finished runs are kept"

    return celltrain_chunk


@contextmanager
def connected(address: str, *, option: str = "--dask", timeout: float = TIMEOUT) -> Iterator[Client]:
    """Connects to a scheduler and yields a client, which is closed at the end; raises `ClusterError` if there is none.

    Args:
        address: Address such as `tcp://host:8786`.
        option: Name of the option in error messages.
        timeout: Seconds to wait for the scheduler, also if it is lost later.
    """
    distributed = needed("distributed", "a cluster needs Dask's distributed: pip install celltrain[cluster]")
    # `_missing` reports each error once; Dask would log it many times.
    logging.disable()
    try:
        problem = asyncio.run(_missing(address, timeout))
        try:
            if problem is not None:
                raise OSError(problem)
            client = distributed.Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ImportError) as error:
            advice = "start one with dask scheduler, or check that the address is right and can be reached from here"
            problem = f"is not a scheduler that responds ({error}): {advice}"
            raise ClusterError.of_option(option, address, problem) from None
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=LAST_FETCH)
    finally:
        logging.disable(logging.NOTSET)


def scheduler_in(path: Path, *, timeout: float = TIMEOUT) -> str:
    """Returns the address from a scheduler file, which may appear within `timeout`; raises `ClusterError`."""
    deadline = time.monotonic() + timeout
    while True:
        final = False
        try:
            content = read_json(path, what="scheduler file", most=MAX_BYTES)
            address = content.get("address") if isinstance(content, dict) else None
            if isinstance(address, str) and address:
                return address
            problem = "holds no address" if address is None else f"has {described(address)} as its address"
        except UnreadableError as error:
            problem, final = error.problem, not error.regular
            if error.missing:
                problem = "does not exist: start the scheduler with dask scheduler --scheduler-file, in the same folder"
        if not problem.startswith("does not exist"):
            problem = f"{problem}: it was not written by dask scheduler --scheduler-file"
        # A partly written file may still be completed. Anything but a regular file is an error at once.
        if final or time.monotonic() > deadline:
            raise ClusterError.of_option("--scheduler-file", shown(path), problem)
        time.sleep(0.05)


async def _missing(address: str, timeout: float) -> str | None:
    """Returns the reason why no scheduler answers at the address.

    None if one does. A `Client` would wait forever for other servers.
    """
    from distributed.core import rpc
    from distributed.security import Security

    try:
        arguments = Security().get_connection_args("client")
        async with rpc(address, connection_args=arguments, timeout=timeout) as remote:
            # The attempt to connect below has a separate time limit and a clearer message.
            found = await asyncio.wait_for(remote.identity(), timeout + 0.5)
    except (TimeoutError, asyncio.TimeoutError):
        return f"no answer within {timeout:g} s"
    except Exception as error:
        # Report the innermost error with a message, such as a refused connection or an unknown name.
        causes: list[BaseException] = [error]
        while (cause := causes[-1].__cause__) is not None:
            causes.append(cause)
        return next((text for text in map(str, reversed(causes)) if text), type(error).__name__)
    kind = found.get("type") if isinstance(found, dict) else None
    return None if kind == "Scheduler" else f"it is a {kind}"
