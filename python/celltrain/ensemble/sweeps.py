"""Sweeps from Python: run a scenario with many settings and seeds.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.SelectiveDrop(), duration="20ms")
>>> store = ct.sweep(lan, over={"port.bottleneck.policy.selective_drop.z": [0.5, 0.8, 1.1]}, seeds=4)
>>> store.summary(["fairness"])["n"].to_pylist()
[4, 4, 4]
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.ensemble import plan_warnings
from celltrain.ensemble.coordinator import Progress, run_plan
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.store import Store
from celltrain.errors import Fault, PlanError, warn
from celltrain.model.arguments import Time, checked
from celltrain.model.cancel import Cancel, endable, watched
from celltrain.running import Worker, worker_of

if TYPE_CHECKING:
    from distributed import Client

    from celltrain.model.types import Scenario


@checked(PlanError)
@endable
@watched
def sweep(
    base: Scenario | Plan | str | os.PathLike[str],
    *,
    over: Mapping[str, Any] | None = None,
    paired: Sequence[Mapping[str, Any]] = (),
    sample: Mapping[str, Any] | None = None,
    seeds: int | Mapping[str, Any] = 10,
    measures: Sequence[str] | None = None,
    series: Mapping[str, Any] | None = None,
    limit: Time | None = None,
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
        base: The scenario to vary, its path, or the name of a shipped one; or a whole `Plan`, to which the arguments about
            the plan do not apply.
        over: The axes, crossed with each other: lists of values by path into the scenario, such as
        `{"port.bottleneck.buffer": [1000, 2000]}`, or tables by name as in a plan's `[axes]`.
        paired: Tables of axes that move together, as in a plan's `[[paired]]`.
        sample: Axes drawn together, as in a plan's `[sample]`.
        seeds: Number of seeds for each setting, or a table as in a plan's `[seeds]`.
        measures: Measures to store for every run; efficiency, fairness, losses, the largest queue, timeouts,
        retransmissions and the smallest goodput of a flow when None.
        series: Series that every run records, as in a plan's `[series]`.
        limit: Real time that a run may take, such as `"60s"`, from reading its scenario to its answer.
        store: The folder, new or empty. When None, a temporary one that is deleted with the returned store.
        resume: True to continue with `store`. Failed runs count as done, unless they exceeded a time limit that is now
        higher, or ran out of memory of which there is now more; these are run again.
        retry_failed: True to run all failed runs again; needs `resume`.
        jobs: Threads; one for each core when None.
        client: A client of a Dask cluster on which to run; needs `pip install celltrain[cluster]`.
        worker: Any other worker that runs chunks.
        progress: Called from time to time with the progress.
        cancel: A handle that ends the call from another thread; see `celltrain.Cancel`.

    Raises:
        PlanError: With all faults of the plan.
        StoreError: If the store cannot be created, written or continued.
        ClusterError: If the cluster is lost, or its workers run another version; finished runs are kept.
        CancelledError: If `cancel` ended the call; finished runs are in `store`.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Epd(threshold=60), duration="20ms")
    >>> short = {"path": "tcp", "values": {"vanilla": ct.Vanilla(), "reno": ct.Reno()}}
    >>> store = ct.sweep(lan, over={"tcp": short, "topology.n_source.link_delay": ["5us", "50us"]}, seeds=2)
    >>> store.summary(["efficiency"]).column_names[:4]
    ['point', 'tcp', 'topology.n_source.link_delay', 'measure']
    """
    limits = None if limit is None else {"time": limit}
    document = {"axes": over, "paired": paired or None, "sample": sample, "seeds": seeds, "measures": measures}
    plan = base if isinstance(base, Plan) else Plan.of(base, {**document, "series": series, "limits": limits})
    if resume and store is None:
        raise PlanError([Fault.of_option("resume", True, "needs the store to continue")])
    if retry_failed and not resume:
        raise PlanError([Fault.of_option("retry_failed", True, "needs resume=True and the store to continue")])
    where = worker_of(jobs, client, worker)
    keeper = tempfile.TemporaryDirectory(prefix="celltrain-") if store is None else None
    folder = Path(keeper.name) / "store" if keeper is not None else Path(store or "")
    run_plan(plan, folder, where, resume=resume, retry_failed=retry_failed, progress=progress)
    answer = Store._made(**{**vars(Store.open(folder)), "keeper": keeper})
    warn([*plan_warnings.of_store(answer), *plan_warnings.lock_step_of_store(answer)])
    return answer
