"""The trials of a search: how the next trials are chosen, and the folder in which trials are stored.

The next trials depend only on the plan, the configuration, the generation and the trials before it. Optuna's samplers
have a random state that no storage saves. Therefore each generation uses a new sampler, seeded from the plan's seed,
the configuration and the generation, and a new study of all trials, which is discarded afterwards.

The folder contains the plan, the settings of each generation, and a store for each stage.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.ensemble.plan.axes import draw
from celltrain.ensemble.store.folder import Kind, Lock, put, sync
from celltrain.ensemble.tuning.plan import Numbers, TunePlan
from celltrain.errors import TuneError, needed, warn
from celltrain.model.files import UnreadableError, linked, read_json
from celltrain.model.paths import exact
from celltrain.text import shown

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

#: Minimum number of trials with values for Optuna's model.
LEAST_TRIALS = 4
#: Format version of the folder and its files.
FORMAT = 2
MANIFEST, ASKED, RUNS = "tune.json", "asked.json", "runs"
_UNSEEN = "in the order of its entries"
KIND = Kind("search", MANIFEST, FORMAT, TuneError, unseen=_UNSEEN, writer="search", folders=(RUNS,))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A setting that was tried in a trial.

    Attributes:
        generation: Number of the trial's generation, from 0.
        numbers: The values of the parameters.
        values: Means of the objectives over the seeds; None if a run failed or has no value.
    """

    generation: int
    numbers: Numbers
    values: tuple[float, float] | None


def ask(plan: TunePlan, configuration: int, generation: int, history: Sequence[Trial], count: int) -> list[Numbers]:
    """Returns the settings of a generation.

    The first generation consists of a Sobol sample and of those references that are within the ranges. Later
    generations come from Optuna's multi-objective tree-structured Parzen estimator, which treats the rest of a batch as
    running.
    """
    # The seed does not depend on the other configurations of the plan.
    text = json.dumps([plan.seed, plan.configurations.points[configuration].values, generation], sort_keys=True)
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    parameters = plan.parameters
    if generation == 0:
        known = [
            reference.numbers
            for reference in plan.references
            if all(
                p.interval.near(float(number)) == number
                for p, number in zip(parameters, reference.numbers, strict=True)
            )
        ][:count]
        shares = draw("sobol", len(parameters), max(count - len(known), 1), seed)
        drawn = [tuple(p.interval.draw(float(s)) for p, s in zip(parameters, row, strict=True)) for row in shares]
        return [*known, *drawn][:count]
    optuna = silent_optuna()
    with quiet(optuna):
        # Multivariate, because good values of R and Z depend on each other. Constant liar, to avoid equal proposals in
        # a batch.
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=LEAST_TRIALS
        )
        directions = ["maximize" if objective.larger else "minimize" for objective in plan.objectives]
        study, space = optuna.create_study(directions=directions, sampler=sampler), _distributions(plan)
        for trial in history:
            made = optuna.trial.create_trial(
                state=optuna.trial.TrialState.FAIL if trial.values is None else optuna.trial.TrialState.COMPLETE,
                values=trial.values,
                params={p.name: p.plain(number) for p, number in zip(parameters, trial.numbers, strict=True)},
                distributions=space,
            )
            study.add_trial(made)
        asked = [study.ask(space).params for _ in range(count)]
    return [tuple(p.interval.near(float(params[p.name])) for p in parameters) for params in asked]


def silent_optuna() -> Any:
    """Imports and returns Optuna; raises `MissingExtraError` if it is not installed."""
    return needed("optuna", "tuning needs optuna: pip install 'celltrain[tune]'")


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Disables Optuna's log, and its warnings about experimental features."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _distributions(plan: TunePlan) -> dict[str, BaseDistribution]:
    """Returns the parameters' ranges as Optuna distributions, in the units of a store's columns."""
    of, made = silent_optuna().distributions, {}
    for p in plan.parameters:
        kind = of.IntDistribution if p.key.whole else of.FloatDistribution
        step = p.plain(p.interval.grid) if p.interval.grid is not None else 1 if p.key.whole else None
        made[p.name] = kind(p.plain(p.interval.low), p.plain(p.interval.last), log=p.interval.log, step=step)
    return made


class Folder:
    """The folder of a search, locked for writing."""

    def __init__(self, path: Path, manifest: dict[str, Any], plan: TunePlan, lock: Lock) -> None:
        self.path, self.manifest, self.plan, self.lock = path, manifest, plan, lock
        #: Settings by generation and configuration.
        self.asked: list[list[list[Numbers]]] = []

    @classmethod
    def create(cls, path: Path, plan: TunePlan) -> Folder:
        """Creates a folder; raises `TuneError` if it is in use."""
        lock = KIND.begin(path)
        with lock.released_on_error():
            manifest = KIND.new(plan, optuna=silent_optuna().__version__)
            _refuse_links(path / RUNS)
            (path / RUNS).mkdir(exist_ok=True)
            sync(path)
            put(path / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())
        return cls(path, manifest, plan, lock)

    @classmethod
    def resume(cls, path: Path, plan: TunePlan) -> Folder:
        """Opens a folder to continue its search; raises `TuneError` if it belongs to another plan or version."""
        manifest = KIND.read(path)
        if faults := list(KIND.differences(path, manifest, plan)):
            raise TuneError(faults)
        folder = cls(path, manifest, plan, KIND.locked(path))
        with folder.lock.released_on_error():
            folder.asked = folder._read_asked()
        before, now = manifest["optuna"], silent_optuna().__version__
        if before != now:
            begun = f"{shown(path)} was begun with optuna {before}, and this is {now}"
            warn([f"{begun}: later trials may differ between the two versions"])
        return folder

    def keep(self, generation: Sequence[Sequence[Numbers]]) -> None:
        """Stores the settings of the next generation before they are run."""
        self.asked.append([list(settings) for settings in generation])
        asked = [[[[float(n) for n in numbers] for numbers in of] for of in one] for one in self.asked]
        content = json.dumps({"parameters": [p.name for p in self.plan.parameters], "generations": asked})
        put(self.path / ASKED, content.encode())

    def stage(self, name: str) -> Path:
        """Returns the path of a stage's store."""
        _refuse_links(self.path / RUNS, self.path / RUNS / name)
        return self.path / RUNS / name

    def _read_asked(self) -> list[list[list[Numbers]]]:
        path = self.path / ASKED
        if not path.exists():
            return []
        try:
            generations = read_json(path, what="list of trials")["generations"]
            asked = [[[tuple(map(exact, numbers)) for numbers in of] for of in one] for one in generations]
        except (UnreadableError, ValueError, ArithmeticError, TypeError, KeyError) as error:
            raise TuneError.of_file(
                path, f"has content that celltrain did not write ({error}): start again in another folder"
            ) from None
        if any(len(one) != len(self.plan.configurations.points) for one in asked):
            raise TuneError.of_file(path, "has other configurations: start again in another folder")
        return asked


def _refuse_links(*paths: Path) -> None:
    """Raises `TuneError` if a path is a link, because a link would redirect the written runs."""
    if faults := linked(*paths):
        raise TuneError(faults)
