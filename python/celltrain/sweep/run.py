"""`celltrain.sweep`: a scenario over many settings and seeds, from Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.arguments import MOST_JOBS, checked
from celltrain.cancel import Cancel, endable
from celltrain.errors import Fault, PlanError
from celltrain.plan import Plan
from celltrain.store import Store
from celltrain.sweep.coordinator import Coordinator, Progress
from celltrain.sweep.local import Local
from celltrain.sweep.retry import has_more
from celltrain.sweep.work import Worker

if TYPE_CHECKING:
    from distributed import Client

    from celltrain.models import Scenario


@checked(PlanError)
@endable
def sweep(
    base: Scenario | Plan | str | os.PathLike[str],
    *,
    over: Mapping[str, Any] | None = None,
    paired: Sequence[Mapping[str, Any]] = (),
    sample: Mapping[str, Any] | None = None,
    seeds: int | Mapping[str, Any] = 10,
    measures: Sequence[str] | None = None,
    series: Mapping[str, Any] | None = None,
    limit: str | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    jobs: int | None = None,
    client: Client | None = None,
    worker: Worker | None = None,
    progress: Callable[[Progress], object] | None = None,
    cancel: Cancel | None = None,
) -> Store:
    """Runs a scenario over every combination of settings, each with several seeds; returns the store of the results.

    Args:
        base: What is varied: a scenario, the path of one or the name of a shipped one; or a whole `Plan`, and then nothing
            else about the plan is said here.
        over: The axes, crossed with each other: a list of values by its path into the scenario, such as
            `{"port.bottleneck.buffer": [1000, 2000]}`; or by a name of its own a table as in a plan's `[axes]`.
        paired: Tables of axes that move together, as in a plan's `[[paired]]`.
        sample: Axes drawn together, as in a plan's `[sample]`; needs `pip install celltrain[sweep]`.
        seeds: How many for each setting, or a table as in a plan's `[seeds]`.
        measures: What is kept of every run; efficiency, fairness, losses, the largest queue, timeouts and retransmissions
            when None.
        series: What every run records, as in a plan's `[series]`.
        limit: What a run may take in real time, such as `"60s"`, from the reading of its scenario to its answer.
        store: The folder, new or empty; a temporary one, which goes with the returned store, when None.
        resume: Whether to go on with what `store` holds. Runs that failed are done, but for those that were past a limit of
            time which is higher now, or did not fit into memory of which there is more now: they are run again.
        retry_failed: Whether to run again every run that failed; needs `resume`.
        jobs: Threads; one for each core when None.
        client: A Dask cluster's, to run there instead of here; needs `pip install celltrain[cluster]`.
        worker: Whatever else runs chunks.
        progress: Called now and then with how far it is.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        PlanError: With everything that is wrong with the plan.
        StoreError: When the store cannot be made, written or gone on with.
        ClusterError: When the cluster is lost, or its workers run another celltrain; what is done is kept.
        CancelledError: When `cancel` ended it; what is done is in `store`.
    """
    if isinstance(base, Plan):
        plan = base
    else:
        said: dict[str, Any] = {
            "axes": over,
            "paired": list(paired) or None,
            "sample": sample,
            "seeds": seeds,
            "measures": measures if measures is None or isinstance(measures, str) else list(measures),
            "series": series,
            "limits": None if limit is None else {"time": limit},
        }
        plan = Plan.of(base, {key: value for key, value in said.items() if value is not None})
    if resume and store is None:
        raise PlanError([Fault.of_option("resume", True, "needs the store it goes on with")])
    if retry_failed and not resume:
        raise PlanError([Fault.of_option("retry_failed", True, "needs resume=True and the store it goes on with")])
    where = worker_of(jobs, client, worker)
    keeper = tempfile.TemporaryDirectory(prefix="celltrain-") if store is None else None
    folder = Path(keeper.name) / "store" if keeper is not None else Path(store or "")
    run_plan(plan, folder, where, resume=resume, retry_failed=retry_failed, progress=progress)
    answer = Store.open(folder)
    answer.keeper = keeper
    return answer


def worker_of(jobs: int | None, client: Client | None, worker: Worker | None) -> Worker:
    """What runs chunks, as the arguments of `sweep` and `tune` say.

    Raises:
        PlanError: When they contradict each other.
    """
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise PlanError([Fault.of_option("jobs", jobs, f"is not a number of threads; from 1 to {MOST_JOBS}")])
    chosen = [name for name, value in (("jobs", jobs), ("client", client), ("worker", worker)) if value is not None]
    if len(chosen) > 1:
        raise PlanError([Fault.of_option(chosen[1], "given", f"says where to run, and so does {chosen[0]}: name one")])
    if client is not None:
        from celltrain.sweep.cluster import Cluster

        return Cluster(client)
    return worker or Local(jobs)


def run_plan(
    plan: Plan,
    folder: Path,
    worker: Worker,
    *,
    resume: bool = False,
    retry_failed: bool = False,
    progress: Callable[[Progress], object] | None = None,
) -> Progress:
    """Runs a plan into a new store, or what is missing of it into the one that is there; returns how far it came.

    Ctrl-C is raised once what is done is in the store. Where it is gone on with, runs that failed for want of what the plan
    gives them now are run again, and with `retry_failed` all that failed.
    """
    with Store.resume(folder, plan) if resume else Store.create(folder, plan) as store:
        if resume:
            store.drop_failed(lambda error: retry_failed or has_more(error, plan))
        return Coordinator(plan, store, worker, progress).run()
