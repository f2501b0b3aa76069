"""Where commands run simulations: on threads of this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from celltrain.cli import shell

if TYPE_CHECKING:
    from celltrain.running import Local
    from celltrain.running.cluster import Cluster

#: A longer timeout is probably a typing mistake.
MOST_SECONDS = 24 * 60 * 60


@contextmanager
def worker(
    jobs: int | None, dask: str | None, scheduler_file: Path | None, dask_timeout: str
) -> Iterator[Local | Cluster]:
    """Yields the worker selected by these options.

    Raises:
        InputError: If options conflict.
        ClusterError: If the cluster cannot be reached.
    """
    from celltrain.errors import Fault, InputError

    where = {"--jobs": jobs, "--dask": dask, "--scheduler-file": scheduler_file}
    chosen = [option for option, value in where.items() if value is not None]
    if len(chosen) > 1:
        problem = f"selects where to run, as {chosen[0]} does: give only one"
        raise InputError([Fault.of_option(chosen[1], where[chosen[1]], problem)])
    wait = _seconds("--dask-timeout", dask_timeout)
    if dask is None and scheduler_file is None:
        from celltrain.running import Local

        yield Local(jobs)
        return
    from celltrain.running.cluster import Cluster, connected, scheduler_in

    option = "--dask" if scheduler_file is None else "--scheduler-file"
    address = scheduler_in(scheduler_file, timeout=wait) if scheduler_file is not None else str(dask)
    with connected(address, option=option, timeout=wait) as client:
        yield Cluster(client, shell.complain)


def size(worker: Local | Cluster) -> tuple[int | None, int]:
    """Returns the number of workers (None without a cluster) and the total number of threads."""
    from celltrain.running import Local

    return (None, worker.threads) if isinstance(worker, Local) else worker.size()


def in_words(workers: int | None, threads: int) -> str:
    """Returns the number of workers and threads in words.

    >>> in_words(None, 2)
    '2 threads'
    """
    if workers is None:
        return f"{threads} threads"
    if threads == 0:
        return "one thread (there are no workers yet)"
    return f"the cluster's {threads} threads in {workers} workers"


def size_in_words(size: float) -> str:
    """Formats a number of bytes with a unit.

    >>> size_in_words(129_500), size_in_words(18_500_000), size_in_words(2.04e9)
    ('130 KB', '18.5 MB', '2.04 GB')
    """
    for limit, scale, word in ((1e6, 1e3, "KB"), (1e9, 1e6, "MB"), (float("inf"), 1e9, "GB")):
        if size < limit:
            return f"{size / scale:.3g} {word}"
    return ""


def _seconds(option: str, text: str) -> float:
    from celltrain.errors import Fault, InputError
    from celltrain.model.quantities import seconds

    with suppress(ValueError):
        if 0 < (value := seconds(text)) <= MOST_SECONDS:
            return value
    problem = f"is not a time above 0 and up to {MOST_SECONDS}s (one day), such as 60s or 500ms"
    raise InputError([Fault.of_option(option, text, problem)])
