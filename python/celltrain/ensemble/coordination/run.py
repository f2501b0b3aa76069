"""A plan into the store of a folder, new or gone on with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from celltrain.ensemble.coordination.coordinator import Coordinator, Progress
from celltrain.ensemble.coordination.retry import has_more
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.store import Store
from celltrain.running import Worker


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
