"""The search: generations of trials, selection among the best, and their confirmation, each run as a sweep."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Unpack

from celltrain.drawing.words import valued
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.cases import execute
from celltrain.ensemble.plan import Seeds, compact
from celltrain.ensemble.plan_warnings import DELIVERED
from celltrain.ensemble.store import DATABASE, Store
from celltrain.ensemble.sweeps import Coordinator, Progress
from celltrain.ensemble.tuning.plan import Folder, Numbers, Setting, Trial, TunePlan, ask, silent_optuna
from celltrain.ensemble.tuning.result import Confirmed, Estimate, Left, Searched, Tried, Tuned
from celltrain.errors import PlanError, ScenarioError, warn
from celltrain.model.arguments import check, checked
from celltrain.model.scenario import Reading
from celltrain.running import Rows, Run, TuneOptions, Worker, statistics, worker_of
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

#: Number of confirmation seeds with which tail drop is also run.
MOST_SEEDS = 3
#: A setting that delivers less than this fraction of tail drop's bytes causes a warning.
LEAST_SHARE = 0.5

#: Default objectives of `tune`.
OBJECTIVES = {"efficiency": "maximize", "fairness": "maximize"}

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TuneProgress:
    """The progress of a search.

    Attributes:
        stage: A generation, the selection or the confirmation.
        trials: Trials done, including those of earlier calls.
        total_trials: Total number of trials.
        runs: Runs done.
        most_runs: Maximum number of runs, as far as known.
        failed: Runs that failed.
        elapsed_seconds: Time since the search was started or resumed.
        rate: Runs per second since then; 0 before the first run is done.
    """

    stage: str
    trials: int
    total_trials: int
    runs: int
    most_runs: int
    failed: int
    elapsed_seconds: float
    rate: float

    @property
    def remaining_seconds(self) -> float | None:
        """Maximum remaining time at the current rate; None before the first run is done."""
        return (self.most_runs - self.runs) / self.rate if self.rate > 0 else None


class Runs:
    """The values of all runs of a search, by scenario and seed."""

    def __init__(self, plan: TunePlan) -> None:
        self._plan = plan
        self._texts: dict[Setting, tuple[str, str | None]] = {}
        #: Objectives and bytes delivered; NaN if a run failed or has no value.
        self._values: dict[str, dict[int, list[float]]] = {}
        self._errors: dict[str, str] = {}
        #: Notes of runs, by objective, for objectives that depend on lower bounds.
        self._notes: dict[str, list[str]] = {}
        # By scenario and seed: the objectives that are only lower bounds.
        self._bounds: dict[str, dict[int, set[str]]] = {}
        self.count = self.failed = self.without_running = 0
        #: Reasons why others could not be filled from some runs of this call.
        self.without_certificate: set[str] = set()

    def text(self, setting: Setting) -> tuple[str, str | None]:
        """Returns the canonical scenario of a setting. If refused, returns the scenario as given, and the reason."""
        if setting not in self._texts:
            try:
                self._texts[setting] = self._plan.case(setting).canonical, None
            except ScenarioError as error:
                self._texts[setting] = compact(self._plan.scenario(*setting)), str(error).replace("\n", "; ")
        return self._texts[setting]

    def add(self, store: Store) -> None:
        """Adds the runs of a stage."""
        self.without_running += len(store.database.filled())
        wide = store.wide()
        names = ("configuration", "seed", "error", *(one.measure for one in self._plan.objectives), DELIVERED)
        for text, seed, error, *values in zip(*(wide[name].to_pylist() for name in names), strict=True):
            self._values.setdefault(text, {})[seed] = [math.nan if value is None else value for value in values]
            self.count += 1
            self.failed += values[-1] is None
            if error is not None and None in values:
                self._errors.setdefault(text, error)
        runs, measures = store.runs(), store.manifest["measures"]
        for (run, place), note in runs.gaps.items():
            if place >= 0 and not np.isnan(runs.values[run, place]):
                self._notes.setdefault(measures[place], []).append(note)
        for run, place in np.argwhere(runs.censored).tolist():
            own = self._bounds.setdefault(wide["configuration"][run].as_py(), {})
            own.setdefault(wide["seed"][run].as_py(), set()).add(measures[place])

    def open_requests(self) -> Iterator[str]:
        """Yields a warning for each objective that depends on open requests in some runs."""
        for one in self._plan.objectives:
            if notes := self._notes.get(one.measure):
                yield plan_warnings.on_open(notes, self.count)

    def estimates(self, setting: Setting, seeds: Seeds) -> tuple[Estimate, Estimate] | None:
        """Returns estimates of both objectives; None if a value is unknown."""
        found = estimated(self.values(setting, seeds))
        if found is None:
            return None
        first, second = (
            replace(one, censored=censored) for one, censored in zip(found, self.bounds(setting, seeds), strict=True)
        )
        return first, second

    def bounds(self, setting: Setting, seeds: Seeds) -> tuple[bool, bool]:
        """Returns for each objective whether some of the values are lower bounds."""
        own = self._bounds.get(self.text(setting)[0], {})
        bounded = set().union(*(own.get(seed, set()) for seed in _numbers(seeds)))
        first, second = (about.measure in bounded for about in self._plan.objectives)
        return first, second

    def lacks(self, setting: Setting, seeds: Seeds) -> bool:
        """Returns whether a setting can be run and lacks runs with some of the seeds."""
        text, refusal = self.text(setting)
        return refusal is None and not self._values.get(text, {}).keys() >= set(_numbers(seeds))

    def values(self, setting: Setting, seeds: Seeds) -> Floats:
        """Returns both objectives and the delivered bytes, with a row for each seed; NaN for unknown values."""
        known = self._values.get(self.text(setting)[0], {})
        return np.array([known.get(seed, [math.nan] * 3) for seed in _numbers(seeds)], dtype=np.float64)

    def means(self, setting: Setting, seeds: Seeds) -> tuple[float, float] | None:
        """Returns the means of the objectives; None if a run failed or has no value."""
        first, second, _ = self.values(setting, seeds).mean(axis=0)
        return None if math.isnan(first + second) else (float(first), float(second))

    def better(self, configuration: int, settings: Sequence[Numbers], seeds: Seeds) -> Floats:
        """Returns the mean of each objective, with the sign chosen so that larger is better; NaN if unknown."""
        signs = np.array([[1.0 if objective.larger else -1.0] for objective in self._plan.objectives])
        means = [self.means((configuration, numbers), seeds) or (math.nan, math.nan) for numbers in settings]
        turned: Floats = signs * np.array(means, dtype=np.float64).reshape(-1, 2).T
        return turned

    def reason(self, setting: Setting) -> str | None:
        """Returns the reason why a setting has no values; None if only a measure is undefined in one of its runs."""
        text, refusal = self.text(setting)
        return refusal or self._errors.get(text)

    def error(self, setting: Setting) -> str:
        """Describes the reason why a setting has no values."""
        return self.reason(setting) or "a measure is undefined in one of its runs"


class Search:
    """Runs a tuning plan and writes the results to its folder."""

    def __init__(
        self, plan: TunePlan, folder: Folder, worker: Worker, progress: Callable[[TuneProgress], object] | None = None
    ) -> None:
        self._plan, self._folder, self._worker, self._progress = plan, folder, worker, progress
        self._everywhere = range(len(plan.configurations.points))
        self._runs = Runs(plan)
        #: The trials of each configuration.
        self._histories: list[list[Trial]] = [[] for _ in self._everywhere]
        self._begun, self._new_runs, self._most = time.monotonic(), 0, plan.most_runs

    def run(self) -> Tuned:
        """Runs whatever is missing, and returns the result. On Ctrl-C or an error, completed runs are kept."""
        plan, everywhere = self._plan, self._everywhere
        for generation in range(plan.generations):
            check()
            self._generation(generation)
        references = plan.references.values()
        finalists = [list(dict.fromkeys([*references, *self._finalists(i)])) for i in everywhere]
        at_most = (plan.finalists + len(references)) * len(everywhere)
        self._stage("selection", _flat(finalists), plan.selection, at_most)
        chosen = [self._chosen(i, finalists[i]) for i in everywhere]
        confirmed = [list(dict.fromkeys([*references, *chosen[i]])) for i in everywhere]
        self._stage("confirmation", _flat(confirmed), plan.confirmation, at_most)
        self._report("tail drop")
        middle = tuple(parameter.interval.draw(0.5) for parameter in plan.parameters)
        tail_drop = self._tail_drop([numbers[0] if numbers else middle for numbers in confirmed])
        self._report("done")
        searches = [self._searched(i, confirmed[i], chosen[i]) for i in everywhere]
        warnings = [*self._runs.open_requests(), *(one for i in everywhere for one in self._undefined(i))]
        warnings += [one for i in everywhere for one in self._warnings(i, chosen[i], searches[i], tail_drop.get(i))]
        return Tuned(facts={**self._facts(), "warnings": warnings}, searches=tuple(searches))

    def _generation(self, generation: int) -> None:
        plan, folder = self._plan, self._folder
        count = min(plan.batch, plan.trials - generation * plan.batch)
        if generation == len(folder.asked):
            folder.keep([ask(plan, i, generation, self._histories[i], count) for i in self._everywhere])
        asked = folder.asked[generation]
        self._stage(f"search-{generation + 1:03}", _flat(asked), plan.search, count * len(asked))
        for i, numbers in _flat(asked):
            values = self._runs.means((i, numbers), plan.search)
            self._histories[i].append(Trial(generation=generation, numbers=numbers, values=values))

    def _stage(self, name: str, settings: Sequence[Setting], seeds: Seeds, at_most: int) -> None:
        """Runs, as a sweep into a store, the settings that have not been run with these seeds."""
        wanted: dict[str, Setting] = {}
        for setting in settings:
            if self._runs.lacks(setting, seeds):
                wanted.setdefault(self._runs.text(setting)[0], setting)
        self._most += (len(wanted) - at_most) * seeds.count
        if not wanted:
            return
        path = self._folder.stage(name)
        plan = self._plan.runs(name, list(wanted.values()), seeds)
        for place, setting in enumerate(wanted.values()):
            plan.cases.keep(place, self._plan.case(setting))
        resumed = (path / DATABASE).exists()
        with Store.resume(path, plan) if resumed else Store.create(path, plan) as store:
            before = store.database.totals().runs

            def report(progress: Progress) -> None:
                self._report(name, progress.done, progress.failed, before)

            done = Coordinator(plan, store, self._worker, report).run()
            self._runs.without_certificate.update(done.without_certificate)
            self._new_runs += store.database.totals().runs - before
            self._runs.add(store)

    def _report(self, stage: str, done: int = 0, failed: int = 0, before: int = 0) -> None:
        """Reports progress: `done` runs of the current stage, `before` of them from earlier calls."""
        if self._progress is None:
            return
        elapsed, runs = time.monotonic() - self._begun, self._runs.count + done
        self._progress(
            TuneProgress(
                stage=stage,
                trials=sum(map(len, self._histories)),
                total_trials=self._plan.trials * len(self._histories),
                runs=runs,
                most_runs=max(self._most, runs),
                failed=self._runs.failed + failed,
                elapsed_seconds=elapsed,
                rate=(self._new_runs + done - before) / elapsed if elapsed > 0 else 0.0,
            )
        )

    def _finalists(self, configuration: int) -> list[Numbers]:
        # If several settings have equal values in all runs, keep only the first.
        distinct: dict[bytes, Numbers] = {}
        for trial in self._histories[configuration]:
            values = self._runs.values((configuration, trial.numbers), self._plan.search)
            distinct.setdefault(values[:, :2].tobytes(), trial.numbers)
        settings = list(distinct.values())
        x, y = self._runs.better(configuration, settings, self._plan.search)
        return [settings[i] for i in finalists(x, y, self._plan.finalists)]

    def _chosen(self, configuration: int, settings: Sequence[Numbers]) -> list[Numbers]:
        """Returns the front of the finalists in the selection, from the best in the first objective."""
        x, y = self._runs.better(configuration, settings, self._plan.selection)
        return [settings[i] for i in finalists(x, y, int(statistics.pareto_front(x, y).sum()))]

    def _tail_drop(self, settings: Sequence[Numbers]) -> dict[int, float]:
        """Returns the mean bytes delivered under tail drop, by configuration, for configurations that can be run.

        Args:
            settings: For each configuration, values of the parameters that are not the policy's, such as those of a
                TCP.
        """
        plan = self._plan
        runs: list[Run] = []
        for configuration, numbers in enumerate(settings):
            # A port may need its own policy, for example for a GFR service.
            with suppress(ScenarioError):
                scenario = _under_tail_drop(plan.scenario(configuration, numbers))
                case = Reading.of_table(scenario, "scenario").accepted()
                seeds = list(_numbers(plan.confirmation))[:MOST_SEEDS]
                runs += [
                    Run(point=configuration, case=case, seed=seed, key=f"{configuration}/{seed}") for seed in seeds
                ]
        delivered: dict[int, dict[int, float]] = {}

        def take(rows: Rows) -> None:
            for record in rows.runs:
                if record.values and record.values[0] is not None:
                    delivered.setdefault(record.point, {})[record.seed] = record.values[0]

        execute(runs, self._worker, take, measures=(DELIVERED,), limit_s=plan.limit_s)
        return {configuration: float(np.mean(list(of.values()))) for configuration, of in delivered.items()}

    def _undefined(self, configuration: int) -> Iterator[str]:
        """Yields a warning if the runs of some trials ended without a value in an objective, and the reason is known."""
        plan, trials = self._plan, self._histories[configuration]
        reasons = []
        for trial in trials:
            *objectives, delivered = self._runs.values((configuration, trial.numbers), plan.search).mean(axis=0)
            if np.isnan(objectives).any() and not np.isnan(delivered):
                reasons.append(self._runs.reason((configuration, trial.numbers)))
        if known := [reason for reason in reasons if reason is not None]:
            title = plan.title(configuration)
            where = f"{shown(title)}: " if title else ""
            have = "trial has" if len(known) == 1 else "trials have"
            yield f"{where}{known[0]}; {len(known):,} of {len(trials):,} {have} no value, and cannot be chosen"

    def _warnings(
        self, configuration: int, chosen: Sequence[Numbers], searched: Searched, tail_drop: float | None
    ) -> Iterator[str]:
        """Yields a warning for each setting on the Pareto front whose goodput is far below that of tail drop.

        A policy that delivers almost nothing can still be the best in an objective such as fairness.
        """
        plan, fronts = self._plan, [one.parameters for one in searched.confirmed if one.front]
        for numbers in chosen:
            delivered = self._runs.values((configuration, numbers), plan.confirmation)[:, 2]
            known = delivered[~np.isnan(delivered)]
            if tail_drop is None or not len(known) or known.mean() >= LEAST_SHARE * tail_drop:
                continue
            if plan.named(numbers) in fronts:
                setting = ", ".join(
                    f"{shown(parameter.name)} = {valued(float(number), parameter.unit)}"
                    for parameter, number in zip(plan.parameters, numbers, strict=True)
                )
                where = f"{shown(searched.title)}: " if searched.title else ""
                share = f"{known.mean() / tail_drop:.0%} of the goodput of tail drop"
                yield f"{where}{setting} is on the front and carries {share}; ignore its other measures"

    def _facts(self) -> dict[str, Any]:
        plan, manifest = self._plan, self._folder.manifest
        stages = {"search": plan.search, "selection": plan.selection, "confirmation": plan.confirmation}
        parameters = [
            {
                **{"name": one.name, "path": one.path, "unit": one.unit, "from": float(one.interval.low)},
                **{"to": float(one.interval.last), "scale": "log" if one.interval.log else "linear"},
                "step": None if one.interval.grid is None else float(one.interval.grid),
            }
            for one in plan.parameters
        ]
        counts = {"trials": plan.trials, "batch": plan.batch, "runs": self._runs.count, "failed": self._runs.failed}
        counts["without_running"] = self._runs.without_running
        return {
            "name": plan.name,
            **{key: manifest[key] for key in ("version", "profile", "optuna")},
            "objectives": [asdict(one) for one in plan.objectives],
            "parameters": parameters,
            "references": [{"label": label, "parameters": plan.named(own)} for label, own in plan.references.items()],
            "seeds": {name: {"first": seeds.first, "count": seeds.count} for name, seeds in stages.items()},
            **counts,
            "without_certificate": sorted(self._runs.without_certificate),
        }

    def _searched(self, configuration: int, settings: Sequence[Numbers], chosen: Sequence[Numbers]) -> Searched:
        """Returns the result of one configuration.

        `settings` begins with the references, so that a reference is preferred to an equally good setting.
        """
        plan, runs = self._plan, self._runs
        labels = {numbers: label for label, numbers in plan.references.items()}
        x, y = runs.better(configuration, settings, plan.confirmation)
        front = statistics.pareto_front(x, y)
        confirmed = [
            Confirmed(
                parameters=plan.named(settings[i]),
                estimates=runs.estimates((configuration, settings[i]), plan.confirmation),
                label=labels.get(settings[i]),
                chosen=settings[i] in chosen,
                front=bool(front[i]),
            )
            for i in sorted(range(len(settings)), key=lambda i: (np.isnan(x[i]), -x[i], -y[i]))
        ]
        trials = [
            Tried(
                generation=trial.generation,
                parameters=plan.named(trial.numbers),
                means=trial.values,
                error=None if trial.values is not None else runs.error((configuration, trial.numbers)),
                censored=runs.bounds((configuration, trial.numbers), plan.search),
            )
            for trial in self._histories[configuration]
        ]
        return Searched(
            values=plan.configurations.points[configuration].values,
            title=plan.title(configuration),
            trials=tuple(trials),
            confirmed=tuple(confirmed),
            left=tuple(self._left(configuration, settings)),
        )

    def _left(self, configuration: int, settings: Sequence[Numbers]) -> Iterator[Left]:
        plan = self._plan
        means = self._runs.better(configuration, settings, plan.selection)
        values = [self._runs.values((configuration, numbers), plan.confirmation) for numbers in settings]
        for label, numbers in plan.references.items():
            own = settings.index(numbers)
            for objective in (0, 1):
                place = best(means[objective], means[1 - objective], float(means[1 - objective][own]))
                if place is None:
                    continue
                estimates = self._runs.estimates((configuration, settings[place]), plan.confirmation)
                differences = estimated(values[place] - values[own])
                if estimates is not None and differences is not None:
                    yield Left(
                        reference=label,
                        objective=objective,
                        parameters=plan.named(settings[place]),
                        same=place == own,
                        estimates=estimates,
                        differences=differences,
                    )


def finalists(x: Floats, y: Floats, count: int) -> list[int]:
    """Returns at most `count` points, front by front: the Pareto front, then the front of the rest, and so on.

    From the last front, which may not fit completely, takes points evenly spread along it. Larger is better. Points
    with NaN are never taken.
    """
    chosen: list[int] = []
    left = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    while len(left) and len(chosen) < count:
        layer = left[statistics.pareto_front(x[left], y[left])]
        layer = layer[np.lexsort((layer, -y[layer], -x[layer]))]
        room = min(len(layer), count - len(chosen))
        # Take both ends, or only the middle if there is room for only one point.
        places = [round(i * (len(layer) - 1) / (room - 1)) for i in range(room)] if room > 1 else [len(layer) // 2]
        chosen += [int(layer[place]) for place in places]
        left = np.setdiff1d(left, layer)
    return chosen


def best(x: Floats, y: Floats, least_y: float) -> int | None:
    """Returns the point with the largest x among points with `y >= least_y`.

    If several have it, returns the one with the largest y. None if there is no point.
    """
    enough = np.flatnonzero(np.isfinite(x) & (y >= least_y))
    if not len(enough):
        return None
    return int(enough[np.lexsort((enough, -y[enough], -x[enough]))[0]])


def estimated(values: Floats) -> tuple[Estimate, Estimate] | None:
    """Returns the means of the first two columns with their intervals; None if a value is unknown."""
    if np.isnan(values[:, :2]).any():
        return None
    found = [statistics.mean(values[:, i]) for i in (0, 1)]
    first, second = (Estimate(mean=float(one.mean[0]), half=float(one.half[0])) for one in found)
    return first, second


def _under_tail_drop(scenario: dict[str, Any]) -> dict[str, Any]:
    """Returns the scenario with tail drop at every port for which it sets a policy."""
    ports = {
        name: {**port, "policy": {"tail_drop": {}}} if isinstance(port, dict) and "policy" in port else port
        for name, port in scenario.get("port", {}).items()
    }
    return {**scenario, "port": ports}


def _numbers(seeds: Seeds) -> range:
    return range(seeds.first, seeds.first + seeds.count)


def _flat(settings: Sequence[Sequence[Numbers]]) -> list[Setting]:
    return [(i, numbers) for i, of in enumerate(settings) for numbers in of]


@checked(PlanError)
def tune(
    base: Scenario | TunePlan | str | os.PathLike[str],
    *,
    parameters: Mapping[str, Any] | None = None,
    objectives: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, Any]] | None = None,
    over: Mapping[str, Any] | None = None,
    seeds: Mapping[str, int] | None = None,
    measures: Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    **options: Unpack[TuneOptions],
) -> Tuned:
    """Searches parameters for the Pareto front of two measures, and compares it with references.

    Args:
        base: The scenario to tune, its path, or the name of a shipped one; or a `TunePlan`, which replaces all other
            arguments that describe the plan.
        parameters: The parameters, each a table as in a plan's `[tune.parameters]`: path, from, to, scale, step.
        objectives: Two measures, each "maximize" or "minimize"; efficiency and fairness, both maximized, when None.
        references: Settings to compare with, by label.
        over: Axes. Each of their points has its own search.
        seeds: Number of seeds of each stage: `{"search": 5, "selection": 10, "confirmation": 30}`, and `first`.
        measures: Additional measures to store for every run.
        out: The folder, new or empty. When None, a temporary one that is deleted with the result.
        resume: Continues the search in `out`.
        options: See `celltrain.TuneOptions`: jobs, client, worker, limit, progress, cancel, certificates, trials, batch,
            finalists, seed.

    Raises:
        PlanError: With all faults of the plan.
        TuneError: If the folder cannot be created, written or continued.
        StoreError: If a store in it cannot be written or continued.
        CancelledError: If `cancel` ended the call; `out` contains everything done so far.
    """
    search: dict[str, Any] = {"parameters": parameters, "objectives": objectives or OBJECTIVES}
    search |= {"references": references, "seeds": seeds}
    search |= {name: options.get(name) for name in ("trials", "batch", "finalists", "seed")}
    given = {key: value for key, value in search.items() if value is not None}
    limits = {"time": limit} if (limit := options.get("limit")) is not None else None
    document = {"axes": over, "measures": measures, "limits": limits, "tune": given}
    plan = base if isinstance(base, TunePlan) else TunePlan.of(base, document)
    if resume and out is None:
        raise PlanError.of_option("resume", True, "needs the folder of the search to continue")
    where = worker_of(options)
    keeper = tempfile.TemporaryDirectory(prefix="celltrain-") if out is None else None
    folder = Path(keeper.name) / "tune" if keeper is not None else Path(out or "")
    answer = run_tune(plan, folder, where, resume=resume, progress=options.get("progress"))
    warn(answer.warnings)
    return replace(answer, keeper=keeper)


def run_tune(
    plan: TunePlan,
    folder: Path,
    worker: Worker,
    *,
    resume: bool = False,
    progress: Callable[[TuneProgress], object] | None = None,
) -> Tuned:
    """Runs a tuning plan into a new folder, or its missing runs into an existing one.

    After Ctrl-C, completed work is written before `KeyboardInterrupt` is raised.
    """
    silent_optuna()
    opened = Folder.resume(folder, plan) if resume else Folder.create(folder, plan)
    with closing(opened.lock):
        return Search(plan, opened, worker, progress).run()
