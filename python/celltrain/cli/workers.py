"""Where runs are run: the options that commands with many runs share, and what they come to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import shell
from celltrain.model.arguments import MOST_JOBS

if TYPE_CHECKING:
    from celltrain.running import Local
    from celltrain.running.cluster import Cluster

Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "--threads",
        parser=shell.whole(1, MOST_JOBS),
        metavar="N",
        help="Threads; one for each core when absent.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on the Dask cluster with its scheduler there: tcp://host:8786."),
]
SchedulerFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Run on the Dask cluster whose scheduler wrote this file.")
]
DaskTimeout = Annotated[
    str, typer.Option(metavar="TIME", help="How long to wait for the scheduler, such as 60s; a day at most.")
]
#: A day: who waits longer has mistyped it.
MOST_SECONDS = 24 * 60 * 60


@contextmanager
def worker(
    jobs: int | None, dask: str | None, scheduler_file: Path | None, dask_timeout: str
) -> Iterator[Local | Cluster]:
    """What these options come to: this machine's threads, or a cluster.

    Raises:
        InputError: When they contradict each other.
        ClusterError: When the cluster cannot be reached.
    """
    from celltrain.errors import Fault, InputError

    where = {"--jobs": jobs, "--dask": dask, "--scheduler-file": scheduler_file}
    chosen = [option for option, value in where.items() if value is not None]
    if len(chosen) > 1:
        problem = f"says where to run, and so does {chosen[0]}: give one of them"
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
    """How many machines' workers there are, if this is a cluster, and how many threads in all."""
    from celltrain.running import Local

    return (None, worker.threads) if isinstance(worker, Local) else worker.size()


def in_words(workers: int | None, threads: int) -> str:
    """The same for people.

    >>> in_words(None, 2)
    '2 threads'
    """
    if workers is None:
        return f"{threads} threads"
    if threads == 0:
        return "one thread (there are no workers yet)"
    return f"the cluster's {threads} threads in {workers} workers"


def _seconds(option: str, text: str) -> float:
    from celltrain.errors import Fault, InputError
    from celltrain.model.quantities import seconds

    with suppress(ValueError):
        if 0 < (value := seconds(text)) <= MOST_SECONDS:
            return value
    problem = f"is not a time above 0, such as 60s or 500ms, and at most a day, {MOST_SECONDS}s"
    raise InputError([Fault.of_option(option, text, problem)])
