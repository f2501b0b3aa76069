"""The trials of a search: how the next ones are chosen, and the folder that stores them.

The next trials are a pure function of the plan, the configuration, the generation, and the trials before it. Optuna's
samplers have a random state that no storage saves. Every generation therefore uses a new sampler, seeded from the
plan's seed, the configuration and the generation, and a new study of all trials, which is discarded afterwards.

The folder contains the plan, the settings of each generation, a store for each stage, and a journal for Optuna's own
tools.
"""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.ensemble.plan.axes import draw
from celltrain.ensemble.store.folder import Kind, Lock, clear, put, sync
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
FORMAT = 1
MANIFEST, ASKED, RUNS, JOURNAL, LOCK = "tune.json", "asked.json", "runs", "optuna.journal", "lock"
KIND = Kind("search", MANIFEST, FORMAT, TuneError, unseen="in the order of what it says")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A setting that was tried.

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

    The first generation consists of the references that are within the ranges, and a Sobol sample. Later ones come from
    Optuna's multi-objective tree-structured Parzen estimator, which treats the rest of a batch as running.
    """
    # The seed is independent of the other configurations of the plan.
    text = json.dumps([plan.seed, plan.configurations.points[configuration].values, generation], sort_keys=True)
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    parameters = plan.parameters
    if generation == 0:
        known = [
            reference.numbers
            for reference in plan.references
            if all(p.takes(number) for p, number in zip(parameters, reference.numbers, strict=True))
        ][:count]
        shares = draw("sobol", len(parameters), max(count - len(known), 1), seed)
        drawn = [tuple(p.at(float(s)) for p, s in zip(parameters, row, strict=True)) for row in shares]
        return [*known, *drawn][:count]
    optuna = silent_optuna()
    with quiet(optuna):
        # Multivariate: good values of R and Z depend on each other. Constant liar: avoids equal proposals in a batch.
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=LEAST_TRIALS
        )
        study = _study(plan, history, sampler=sampler)
        space = _distributions(plan)
        asked = [study.ask(space).params for _ in range(count)]
    return [tuple(p.near(float(params[p.name])) for p in parameters) for params in asked]


def silent_optuna() -> Any:
    """Imports and returns Optuna; raises `MissingExtraError` if it is not installed."""
    return needed("optuna", "tuning needs optuna: pip install 'celltrain[tune]'")


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Silences Optuna's log, and its warnings about experimental features."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _study(plan: TunePlan, history: Sequence[Trial], **where: Any) -> Any:
    """Returns an Optuna study with the trials of a configuration."""
    optuna, distributions = silent_optuna(), _distributions(plan)
    directions = ["maximize" if objective.larger else "minimize" for objective in plan.objectives]
    study = optuna.create_study(directions=directions, **where)
    study.set_metric_names([objective.measure for objective in plan.objectives])
    states = optuna.trial.TrialState
    for trial in history:
        numbers = zip(plan.parameters, trial.numbers, strict=True)
        made = optuna.trial.create_trial(
            state=states.FAIL if trial.values is None else states.COMPLETE,
            values=None if trial.values is None else list(trial.values),
            params={p.name: round(number) if p.key.whole else float(number) for p, number in numbers},
            distributions=distributions,
            user_attrs={"generation": trial.generation},
        )
        study.add_trial(made)
    return study


def _distributions(plan: TunePlan) -> dict[str, BaseDistribution]:
    """Returns the parameters' ranges as Optuna distributions, in the units of a store's columns."""
    of, made = silent_optuna().distributions, {}
    for p in plan.parameters:
        number: Any = round if p.key.whole else float
        kind = of.IntDistribution if p.key.whole else of.FloatDistribution
        step = number(p.step) if p.step is not None else 1 if p.key.whole else None
        made[p.name] = kind(number(p.interval.low), number(p.last), log=p.interval.log, step=step)
    return made


class Folder:
    """The folder of a search, locked for writing."""

    def __init__(self, path: Path, manifest: dict[str, Any], plan: TunePlan) -> None:
        self.path, self.manifest, self.plan = path, manifest, plan
        #: Settings by generation and configuration.
        self.asked: list[list[list[Numbers]]] = []
        self.lock = Lock(path / LOCK, "search")

    @classmethod
    def create(cls, path: Path, plan: TunePlan) -> Folder:
        """Creates a folder; raises `TuneError` if it already contains other files."""
        try:
            if path.exists() and not path.is_dir():
                raise TuneError.of_file(path, "is a file, not a folder")
            path.mkdir(parents=True, exist_ok=True)
            names = {one.name for one in path.iterdir() if not one.name.startswith(".")}
        except OSError as error:
            raise TuneError.of_file(path, f"cannot be made ({error.strerror})") from None
        # A creation that was killed may have left the lock and an empty folder.
        if MANIFEST not in names and names - {LOCK, RUNS}:
            raise TuneError.of_file(path, "contains other files: name a folder that is new or empty")
        folder = cls(path, KIND.new(plan, optuna=silent_optuna().__version__), plan)
        with folder.lock.released_on_error():
            if (path / MANIFEST).exists():
                raise TuneError.of_file(path, "is already a search: continue it with --resume, or name another folder")
            _refuse_links(path / RUNS)
            (path / RUNS).mkdir(exist_ok=True)
            sync(path)
            put(path / MANIFEST, json.dumps(folder.manifest, indent=1, ensure_ascii=False).encode())
        return folder

    @classmethod
    def resume(cls, path: Path, plan: TunePlan) -> Folder:
        """Opens a folder to continue its search; raises `TuneError` if it belongs to another plan or version."""
        manifest = KIND.read(path)
        if faults := list(KIND.differences(path, manifest, plan)):
            raise TuneError(faults)
        folder = cls(path, manifest, plan)
        with folder.lock.released_on_error():
            clear(path)
            folder.asked = folder._read_asked()
        before, now = manifest["optuna"], silent_optuna().__version__
        if before != now:
            begun = f"{shown(path)} was begun with optuna {before}, and this is {now}"
            warn([f"{begun}: later trials may be others than there"])
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

    def write_journal(self, histories: Sequence[Sequence[Trial]]) -> None:
        """Writes the trials for Optuna's own tools: a study per configuration, in a journal not read by celltrain."""
        path, plan, optuna = self.path / JOURNAL, self.plan, silent_optuna()
        path.unlink(missing_ok=True)
        names = [plan.title(configuration) or plan.name or "search" for configuration in range(len(histories))]
        if len(set(names)) < len(names):
            names = [f"{place + 1}: {name}" for place, name in enumerate(names)]
        # Optuna's own lock would remain after a kill, and the folder is already locked.
        backend = optuna.storages.journal.JournalFileBackend(str(path), lock_obj=threading.Lock())
        with quiet(optuna):
            storage = optuna.storages.JournalStorage(backend)
            for name, history in zip(names, histories, strict=True):
                _study(plan, history, storage=storage, study_name=name)

    def _read_asked(self) -> list[list[list[Numbers]]]:
        path = self.path / ASKED
        if not path.exists():
            return []
        try:
            generations = read_json(path, what="list of trials")["generations"]
            asked = [[[tuple(map(exact, numbers)) for numbers in of] for of in one] for one in generations]
        except (UnreadableError, ValueError, ArithmeticError, TypeError, KeyError) as error:
            raise TuneError.of_file(
                path, f"is not what celltrain wrote ({error}): start again in another folder"
            ) from None
        if any(len(one) != len(self.plan.configurations.points) for one in asked):
            raise TuneError.of_file(path, "has other configurations: start again in another folder")
        return asked


def _refuse_links(*paths: Path) -> None:
    """Raises `TuneError` if a path is a link, which would redirect the writing of runs."""
    if faults := linked(*paths):
        raise TuneError(faults)
