"""The parameters of a policy for two objectives, from Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.ensemble.tuning.ask import silent_optuna
from celltrain.ensemble.tuning.folder import Folder
from celltrain.ensemble.tuning.plan import TunePlan
from celltrain.ensemble.tuning.result import Tuned
from celltrain.ensemble.tuning.search import Search, TuneProgress
from celltrain.errors import Fault, PlanError, warn
from celltrain.model.arguments import checked
from celltrain.model.cancel import Cancel, endable
from celltrain.model.progress import watched
from celltrain.running import Worker, worker_of

if TYPE_CHECKING:
    from distributed import Client

    from celltrain.model.types import Scenario


@checked(PlanError)
@endable
@watched
def tune(
    base: Scenario | TunePlan | str | os.PathLike[str],
    *,
    parameters: Mapping[str, Any] | None = None,
    objectives: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, Any]] | None = None,
    over: Mapping[str, Any] | None = None,
    trials: int | None = None,
    batch: int | None = None,
    finalists: int | None = None,
    seed: int | None = None,
    seeds: Mapping[str, int] | None = None,
    measures: Sequence[str] | None = None,
    limit: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    jobs: int | None = None,
    client: Client | None = None,
    worker: Worker | None = None,
    progress: Callable[[TuneProgress], object] | None = None,
    cancel: Cancel | None = None,
) -> Tuned:
    """Searches parameters for the Pareto front of two measures, and says what references left on the table.

    Args:
        base: What is tuned: a scenario, the path of one or the name of a shipped one; or a whole `TunePlan`, and then
            nothing else about the plan is said here.
        parameters: What is searched, each a table as in a plan's `[tune.parameters]`: path, from, to, scale, step.
        objectives: Two measures, each "maximize" or "minimize"; efficiency and fairness, as large as can be, when None.
        references: Settings to compare with, by their labels.
        over: Axes: a search of its own for each of their points.
        trials: Settings that each search tries.
        batch: How many of them are asked for together.
        finalists: Settings of each search that are run again to choose among.
        seed: Of what the search draws.
        seeds: How many each stage has: `{"search": 5, "selection": 10, "confirmation": 30}`, and `first`.
        measures: More measures to keep of every run.
        limit: What a run may take in real time, such as `"60s"`, from the reading of its scenario to its answer.
        out: The folder, new or empty; a temporary one, which goes with what is returned, when None.
        resume: Whether to go on with what `out` holds.
        jobs: Threads; one for each core when None.
        client: A Dask cluster's, to run there instead of here; needs `pip install celltrain[cluster]`.
        worker: What runs chunks instead of this machine's threads.
        progress: Called now and then with how far it is.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        PlanError: With everything that is wrong with the plan.
        TuneError: When the folder cannot be made, written or gone on with.
        StoreError: When the runs in it cannot.
        CancelledError: When `cancel` ended it; what is done is in `out`.
    """
    if isinstance(base, TunePlan):
        plan = base
    else:
        said = {
            "parameters": parameters,
            "objectives": objectives or {"efficiency": "maximize", "fairness": "maximize"},
            "references": references,
            "trials": trials,
            "batch": batch,
            "finalists": finalists,
            "seed": seed,
            "seeds": seeds,
        }
        document = {
            "axes": over,
            "measures": measures if measures is None or isinstance(measures, str) else list(measures),
            "limits": None if limit is None else {"time": limit},
            "tune": {key: value for key, value in said.items() if value is not None},
        }
        plan = TunePlan.of(base, {key: value for key, value in document.items() if value is not None})
    if resume and out is None:
        raise PlanError([Fault.of_option("resume", True, "needs the folder it goes on with")])
    where = worker_of(jobs, client, worker)
    keeper = tempfile.TemporaryDirectory(prefix="celltrain-") if out is None else None
    folder = Path(keeper.name) / "tune" if keeper is not None else Path(out or "")
    answer = run_tune(plan, folder, where, resume=resume, progress=progress)
    answer.keeper = keeper
    warn(answer.warnings)
    return answer


def run_tune(
    plan: TunePlan,
    folder: Path,
    worker: Worker,
    *,
    resume: bool = False,
    progress: Callable[[TuneProgress], object] | None = None,
) -> Tuned:
    """Runs a tuning plan into a new folder, or what is missing of it into the one that is there.

    Ctrl-C is raised once what is done is kept.
    """
    silent_optuna()
    with Folder.resume(folder, plan) if resume else Folder.create(folder, plan) as opened:
        return Search(plan, opened, worker, progress).run()
