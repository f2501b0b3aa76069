"""What a search tries next: a pure function of the plan, the configuration, the generation, and what is known so far.

Optuna's samplers carry a random state that no storage keeps. So there is a new sampler for every generation, its seed made of the
plan's seed, the configuration and the generation, and a study that is filled with what is known and thrown away after it was asked.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from celltrain.ensemble.plan.axes import draw
from celltrain.ensemble.tuning.plan import Numbers, Parameter, TunePlan
from celltrain.errors import MissingExtraError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

#: Trials with values below which there is nothing to model.
LEAST_TRIALS = 4


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A setting that was tried."""

    generation: int
    numbers: Numbers
    values: tuple[float, float] | None
    """The objectives' means over the seeds; None where a run failed or has no value."""


def ask(plan: TunePlan, configuration: int, generation: int, history: Sequence[Trial], count: int) -> list[Numbers]:
    """The settings of a generation.

    The first has the references, as far as the search could find them, and a Sobol sample; later ones are of Optuna's
    multi-objective tree-structured Parzen estimator, each of a batch told that the ones before it are under way.
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
        study = optuna.create_study(directions=directions(plan), sampler=sampler)
        for trial in history:
            study.add_trial(frozen(plan, trial))
        space = distributions(plan)
        asked = [study.ask(space).params for _ in range(count)]
    return [tuple(p.near(float(params[p.name])) for p in plan.parameters) for params in asked]


def seed_of(plan: TunePlan, configuration: int, generation: int) -> int:
    """The sampler's seed: a search depends on its own configuration, not on which others the plan has."""
    values = plan.configurations.points[configuration].values
    text = json.dumps([plan.seed, values, generation], sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def directions(plan: TunePlan) -> list[str]:
    """Of the objectives, as Optuna calls them."""
    return ["maximize" if objective.larger else "minimize" for objective in plan.objectives]


def distributions(plan: TunePlan) -> dict[str, BaseDistribution]:
    """The parameters' ranges, as Optuna has them, in the units of a store's columns."""
    return {parameter.name: _distribution(parameter) for parameter in plan.parameters}


def frozen(plan: TunePlan, trial: Trial) -> FrozenTrial:
    """A trial as Optuna has it."""
    optuna = silent_optuna()
    params: dict[str, Any] = {
        p.name: round(number) if p.key.whole else float(number)
        for p, number in zip(plan.parameters, trial.numbers, strict=True)
    }
    attributes = {"generation": trial.generation}
    space = distributions(plan)
    states = optuna.trial.TrialState
    made: FrozenTrial
    if trial.values is None:
        made = optuna.trial.create_trial(params=params, distributions=space, state=states.FAIL, user_attrs=attributes)
    else:
        made = optuna.trial.create_trial(
            params=params, distributions=space, values=list(trial.values), user_attrs=attributes
        )
    return made


def silent_optuna() -> ModuleType:
    """Optuna, imported when it is needed; raises `MissingExtraError` where it is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("tuning needs optuna: pip install 'celltrain[tune]'") from error
    module: ModuleType = optuna
    return module


@contextmanager
def quiet(optuna: ModuleType) -> Iterator[None]:
    """Optuna says nothing meanwhile: neither in its log nor that a feature is experimental."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _distribution(parameter: Parameter) -> BaseDistribution:
    optuna = silent_optuna()
    low, high, log = parameter.interval.low, parameter.last, parameter.interval.log
    made: BaseDistribution
    if parameter.key.whole:
        step = 1 if parameter.step is None else round(parameter.step)
        made = optuna.distributions.IntDistribution(round(low), round(high), log=log, step=step)
    else:
        step_size = None if parameter.step is None else float(parameter.step)
        made = optuna.distributions.FloatDistribution(float(low), float(high), log=log, step=step_size)
    return made
