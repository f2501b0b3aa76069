"""Where to run, as the arguments of public calls say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celltrain.errors import Fault, PlanError
from celltrain.model.arguments import MOST_JOBS
from celltrain.running.local import Local
from celltrain.running.work import Worker

if TYPE_CHECKING:
    from distributed import Client


def worker_of(jobs: int | None, client: Client | None, worker: Worker | None) -> Worker:
    """The worker that the arguments of `sweep` and `tune` ask for.

    Raises:
        PlanError: When they contradict each other.
    """
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise PlanError([Fault.of_option("jobs", jobs, f"is not a number of threads; from 1 to {MOST_JOBS}")])
    chosen = [name for name, value in (("jobs", jobs), ("client", client), ("worker", worker)) if value is not None]
    if len(chosen) > 1:
        raise PlanError([Fault.of_option(chosen[1], "given", f"says where to run, and so does {chosen[0]}: name one")])
    if client is not None:
        from celltrain.running.cluster import Cluster

        return Cluster(client)
    return worker or Local(jobs)
