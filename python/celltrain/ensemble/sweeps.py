"""Sweeps: a scenario over many settings and seeds, from Python.

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

from celltrain.ensemble import cautions
from celltrain.ensemble.coordination import Progress, run_plan
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.lock_step import warnings
from celltrain.errors import Fault, PlanError, warn
from celltrain.model.arguments import Time, checked
from celltrain.model.cancel import Cancel, endable
from celltrain.model.progress import watched
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
        base: What is varied: a scenario, the path of one or the name of a shipped one; or a whole `Plan`, and then nothing
            else about the plan is said here.
        over: The axes, crossed with each other: a list of values by its path into the scenario, such as
            `{"port.bottleneck.buffer": [1000, 2000]}`; or by a name of its own a table as in a plan's `[axes]`.
        paired: Tables of axes that move together, as in a plan's `[[paired]]`.
        sample: Axes drawn together, as in a plan's `[sample]`.
        seeds: How many for each setting, or a table as in a plan's `[seeds]`.
        measures: What is kept of every run; efficiency, fairness, losses, the largest queue, timeouts,
            retransmissions and the least goodput of a flow when None.
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

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Epd(threshold=60), duration="20ms")
    >>> short = {"path": "tcp", "values": {"vanilla": ct.Vanilla(), "reno": ct.Reno()}}
    >>> store = ct.sweep(lan, over={"tcp": short, "topology.n_source.link_delay": ["5us", "50us"]}, seeds=2)
    >>> store.summary(["efficiency"]).column_names[:4]
    ['point', 'tcp', 'topology.n_source.link_delay', 'measure']
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
    warn([*cautions.of_store(answer), *warnings(answer)])
    return answer
