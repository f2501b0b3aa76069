"""Options shared by calls with many runs: the worker, the time limit, progress and cancellation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from celltrain.errors import PlanError
from celltrain.model.arguments import MOST_JOBS, Cancel, Time
from celltrain.running.work import Worker

if TYPE_CHECKING:
    from distributed import Client


class Options(TypedDict, total=False):
    """Options of every call with many runs. All of them may be left out.

    Attributes:
        jobs: Threads; one for each core when None.
        client: A client of a Dask cluster on which to run; needs `pip install celltrain[cluster]`.
        worker: Any other worker that runs chunks.
        limit: Real time that a run may take, such as `"60s"`, from reading its scenario to its answer.
        progress: Called from time to time with the progress: the completed share, 0 to 1, or an object with counts.
        cancel: A handle that ends the call from another thread; see `celltrain.Cancel`.
        certificates: False to simulate every run on this machine, even if it is known to equal another run. A cluster
            always does every run.
    """

    jobs: int | None
    client: Client | None
    worker: Worker | None
    limit: Time | None
    progress: Callable[[Any], object] | None
    cancel: Cancel | None
    certificates: bool


class SweepOptions(Options, total=False):
    """Options of sweeps.

    Attributes:
        retry_failed: True to run failed runs again; needs `resume`.
    """

    retry_failed: bool


class TuneOptions(Options, total=False):
    """Options of searches.

    Attributes:
        trials: Number of settings that each search tries.
        batch: Number of trials that are chosen together.
        finalists: Maximum number of settings of each search that advance to selection.
        seed: Seed of the sampler.
    """

    trials: int | None
    batch: int | None
    finalists: int | None
    seed: int | None


class ReproduceOptions(Options, total=False):
    """Options of reproductions.

    Attributes:
        seed: The first seed, 1 when left out; the others follow.
        resume: True to take the finished runs from `kept`, and run only the others.
    """

    seed: int
    resume: bool


def worker_of(options: Mapping[str, Any]) -> Worker:
    """Returns the worker for the options of a call; raises `PlanError` if they contradict each other."""
    chosen = [name for name in ("jobs", "client", "worker") if options.get(name) is not None]
    jobs, client, certificates = options.get("jobs"), options.get("client"), options.get("certificates", True)
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise PlanError.of_option("jobs", jobs, f"is not a number of threads from 1 to {MOST_JOBS}")
    if len(chosen) > 1:
        raise PlanError.of_option(
            chosen[1], "", f"selects where to run, and so does {chosen[0]}: give only one of these options"
        )
    if client is not None:
        from celltrain.running.cluster import Cluster

        return Cluster(client)
    from celltrain.running.work import Local

    worker: Worker = options.get("worker") or Local(jobs, certificates=certificates)
    return worker
