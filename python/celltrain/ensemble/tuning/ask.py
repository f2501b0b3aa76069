"""Chooses the next trials of a search: a pure function of the plan, the configuration, the generation, and the trials before it.

Optuna's samplers have a random state that no storage keeps. Every generation therefore has a new sampler, whose seed is made
of the plan's seed, the configuration and the generation, and a new study of all trials, which is discarded afterwards.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from celltrain.ensemble.plan.axes import draw
from celltrain.ensemble.tuning.plan import Numbers, Parameter, TunePlan
from celltrain.errors import MissingExtraError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

#: Trials with values that a model needs at least.
LEAST_TRIALS = 4


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A setting that was tried."""

    generation: int
    numbers: Numbers
    values: tuple[float, float] | None
    """The objectives' means over the seeds; None if a run failed or has no value."""


def ask(plan: TunePlan, configuration: int, generation: int, history: Sequence[Trial], count: int) -> list[Numbers]:
    """Returns the settings of a generation.

    The first has the references that the search could find, and a Sobol sample. Later ones come from Optuna's
    multi-objective tree-structured Parzen estimator, which counts the others of a batch as running.
    """
    seed = seed_of(plan, configuration, generation)
    if generation == 0:
        known = [
            reference.numbers
            for reference in plan.references
            if all(p.takes(number) for p, number in zip(plan.parameters, reference.numbers, strict=True))
        ][:count]
        shares = draw("sobol", len(plan.parameters), max(count - len(known), 1), seed)
        drawn = [tuple(p.at(float(s)) for p, s in zip(plan.parameters, row, strict=True)) for row in shares]
        return [*known, *drawn][:count]
    optuna = silent_optuna()
    with quiet(optuna):
        # Multivariate: R and Z are good together. Constant liar: a batch does not ask for the same again and again.
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=LEAST_TRIALS
        )
        study = optuna.create_study(directions=_directions(plan), sampler=sampler)
        for trial in history:
            study.add_trial(_frozen(plan, trial))
        space = _distributions(plan)
        asked = [study.ask(space).params for _ in range(count)]
    return [tuple(p.near(float(params[p.name])) for p in plan.parameters) for params in asked]


def seed_of(plan: TunePlan, configuration: int, generation: int) -> int:
    """Returns the sampler's seed, which does not depend on the other configurations of the plan."""
    values = plan.configurations.points[configuration].values
    text = json.dumps([plan.seed, values, generation], sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def write_journal(path: Path, plan: TunePlan, histories: Sequence[Sequence[Trial]]) -> None:
    """Writes the trials for Optuna's own tools: a study for each configuration, in a journal that nothing here reads."""
    optuna = silent_optuna()
    names = [plan.title(configuration) or plan.name or "search" for configuration in range(len(histories))]
    if len(set(names)) < len(names):
        names = [f"{place + 1}: {name}" for place, name in enumerate(names)]
    # A lock of Optuna's would outlive a kill; the folder has its own.
    backend = optuna.storages.journal.JournalFileBackend(str(path), lock_obj=_NoLock())
    with quiet(optuna):
        storage = optuna.storages.JournalStorage(backend)
        for name, history in zip(names, histories, strict=True):
            study = optuna.create_study(
                storage=storage, study_name=name, directions=_directions(plan), load_if_exists=True
            )
            written = len(study.get_trials(deepcopy=False))
            if not written:
                study.set_metric_names([objective.measure for objective in plan.objectives])
            study.add_trials([_frozen(plan, trial) for trial in history[written:]])


def silent_optuna() -> ModuleType:
    """Returns Optuna, imported when it is needed; raises `MissingExtraError` if it is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("tuning needs optuna: pip install 'celltrain[tune]'") from error
    module: ModuleType = optuna
    return module


@contextmanager
def quiet(optuna: ModuleType) -> Iterator[None]:
    """Silences Optuna's log, and its warnings that a feature is experimental."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


class _NoLock:
    """Optuna's interface of a lock."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _directions(plan: TunePlan) -> list[str]:
    return ["maximize" if objective.larger else "minimize" for objective in plan.objectives]


def _frozen(plan: TunePlan, trial: Trial) -> FrozenTrial:
    """Returns a trial as Optuna has it."""
    optuna = silent_optuna()
    params = {
        p.name: round(number) if p.key.whole else float(number)
        for p, number in zip(plan.parameters, trial.numbers, strict=True)
    }
    states = optuna.trial.TrialState
    made: FrozenTrial = optuna.trial.create_trial(
        state=states.FAIL if trial.values is None else states.COMPLETE,
        values=None if trial.values is None else list(trial.values),
        params=params,
        distributions=_distributions(plan),
        user_attrs={"generation": trial.generation},
    )
    return made


def _distributions(plan: TunePlan) -> dict[str, BaseDistribution]:
    """Returns the parameters' ranges as Optuna has them, in the units of a store's columns."""
    return {parameter.name: _distribution(parameter) for parameter in plan.parameters}


def _distribution(parameter: Parameter) -> BaseDistribution:
    of: Any = silent_optuna().distributions
    low, high, log, step = parameter.interval.low, parameter.last, parameter.interval.log, parameter.step
    made: BaseDistribution
    if parameter.key.whole:
        made = of.IntDistribution(round(low), round(high), log=log, step=1 if step is None else round(step))
    else:
        made = of.FloatDistribution(float(low), float(high), log=log, step=None if step is None else float(step))
    return made
