"""The search itself: generations of trials, the choice among the best, and their confirmation, each a sweep of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celltrain.ensemble.coordinator import Coordinator, Progress
from celltrain.ensemble.plan import Seeds, canonical
from celltrain.ensemble.plan.plan import compact
from celltrain.ensemble.plan_warnings import DELIVERED
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.store import DATABASE
from celltrain.ensemble.tuning import analysis, tail_drop
from celltrain.ensemble.tuning.ask import Trial, ask
from celltrain.ensemble.tuning.folder import Folder
from celltrain.ensemble.tuning.plan import Numbers, TunePlan
from celltrain.errors import ScenarioError
from celltrain.model.cancel import check
from celltrain.running import Worker, statistics

SELECTION, CONFIRMATION = "selection", "confirmation"

#: A setting of a configuration.
Setting = tuple[int, Numbers]


@dataclass(frozen=True, kw_only=True)
class TuneProgress:
    """How far a search is."""

    stage: str
    """What is being run: a generation, the selection or the confirmation."""
    trials: int
    """Trials done, those of earlier calls included."""
    total_trials: int
    runs: int
    """Runs done."""
    most_runs: int
    """Runs there can be, as far as is known."""
    failed: int
    """Runs that failed."""
    elapsed_seconds: float
    rate: float
    """Runs a second since it was begun or resumed; 0 before the first."""

    @property
    def remaining_seconds(self) -> float | None:
        """How long the rest will take if it goes on so, at most; None before the first run is done."""
        return (self.most_runs - self.runs) / self.rate if self.rate > 0 else None


class Found:
    """Everything that was run: values by scenario and seed."""

    def __init__(self, plan: TunePlan) -> None:
        self._plan = plan
        self._texts: dict[Setting, tuple[str, str | None]] = {}
        self._values: dict[str, dict[int, tuple[float | None, ...]]] = {}
        self._delivered: dict[str, dict[int, float]] = {}
        self._errors: dict[str, str] = {}
        self.runs = 0
        self.failed = 0

    def text(self, setting: Setting) -> tuple[str, str | None]:
        """The canonical scenario of a setting; or the scenario as it was set, and why it is refused."""
        if setting not in self._texts:
            scenario = self._plan.scenario(*setting)
            try:
                self._texts[setting] = canonical(scenario), None
            except ScenarioError as error:
                self._texts[setting] = compact(json.loads(json.dumps(scenario))), str(error).replace("\n", "; ")
        return self._texts[setting]

    def add(self, store: Store) -> None:
        """The runs of a stage."""
        wide = store.wide()
        names = ("configuration", "seed", "error", DELIVERED, *self._plan.measures)
        columns = [wide[name].to_pylist() for name in names]
        for text, seed, error, delivered, *values in zip(*columns, strict=True):
            self._values.setdefault(text, {})[seed] = tuple(values)
            self.runs += 1
            if error is not None:
                self._errors.setdefault(text, error)
            if delivered is None:
                self.failed += 1
            else:
                self._delivered.setdefault(text, {})[seed] = delivered

    def lacks(self, setting: Setting, seeds: Seeds) -> bool:
        """Whether a setting can be run and has not been, with some of the seeds."""
        text, refusal = self.text(setting)
        known = self._values.get(text, {})
        return refusal is None and any(seed not in known for seed in range(seeds.first, seeds.first + seeds.count))

    def values(self, setting: Setting, seeds: Seeds) -> NDArray[np.float64] | None:
        """Seeds by objectives; None where a run failed, or has no value."""
        known = self._values.get(self.text(setting)[0], {})
        rows = [known.get(seed, (None, None))[:2] for seed in range(seeds.first, seeds.first + seeds.count)]
        if any(value is None for row in rows for value in row):
            return None
        return np.array(rows, dtype=np.float64)

    def delivered(self, setting: Setting, seeds: Seeds) -> float | None:
        """Bytes that a run of a setting delivers on average; None if it was not run with these seeds."""
        known = self._delivered.get(self.text(setting)[0], {})
        found = [known[seed] for seed in range(seeds.first, seeds.first + seeds.count) if seed in known]
        return float(np.mean(found)) if found else None

    def error(self, setting: Setting) -> str:
        """Why a setting has no values."""
        text, refusal = self.text(setting)
        return refusal or self._errors.get(text, "a measure is undefined in one of its runs")


class Search:
    """Runs a tuning plan into its folder."""

    def __init__(
        self,
        plan: TunePlan,
        folder: Folder,
        worker: Worker,
        progress: Callable[[TuneProgress], object] | None = None,
    ) -> None:
        self._plan, self._folder, self._worker, self._tell = plan, folder, worker, progress
        self.found = Found(plan)
        self.histories: list[list[Trial]] = [[] for _ in range(len(plan.configurations.points))]
        """The trials of each configuration."""
        self.chosen: list[list[Numbers]] = []
        """What selection took on to confirmation, for each configuration."""
        self.tail_drop: list[float | None] = []
        """Bytes that a run delivers under tail drop, for each configuration."""
        self.optuna: str = folder.manifest["optuna"]
        """The version that was asked."""
        self._begun, self._now, self._most = time.monotonic(), 0, plan.most_runs

    def run(self) -> None:
        """Runs what is missing. However it ends, what is done is kept; Ctrl-C and errors are raised then."""
        plan, folder = self._plan, self._folder
        everywhere = range(len(self.histories))
        for generation in range(plan.generations):
            check()
            count = min(plan.batch, plan.trials - generation * plan.batch)
            if generation == len(folder.asked):
                folder.keep([ask(plan, i, generation, self.histories[i], count) for i in everywhere])
            asked = folder.asked[generation]
            self._stage(
                f"search-{generation + 1:03}",
                [(i, numbers) for i in everywhere for numbers in asked[i]],
                plan.search,
                at_most=count * len(everywhere),
            )
            for i in everywhere:
                for numbers in asked[i]:
                    values = self._means((i, numbers), plan.search)
                    self.histories[i].append(Trial(generation=generation, numbers=numbers, values=values))
            folder.note(self.histories)
        references = [reference.numbers for reference in plan.references]
        last = plan.finalists + len(references)
        finalists = [list(dict.fromkeys([*references, *self._finalists(i)])) for i in everywhere]
        self._stage(SELECTION, _flat(finalists), plan.selection, at_most=last * len(everywhere))
        self.chosen = [self._chosen(i, finalists[i]) for i in everywhere]
        confirmed = [list(dict.fromkeys([*references, *self.chosen[i]])) for i in everywhere]
        self._stage(CONFIRMATION, _flat(confirmed), plan.confirmation, at_most=last * len(everywhere))
        self._report("tail drop", None)
        middle = tuple(parameter.at(0.5) for parameter in plan.parameters)
        others = [numbers[0] if numbers else middle for numbers in confirmed]
        self.tail_drop = tail_drop.delivered(plan, self._worker, others)
        self._report("done", None)

    def better(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the objectives, the last axis, turned so that larger is better."""
        turned: NDArray[np.float64] = values * [
            1.0 if objective.larger else -1.0 for objective in self._plan.objectives
        ]
        return turned

    def means(self, settings: Sequence[Setting], seeds: Seeds) -> NDArray[np.float64]:
        """Settings by objectives; NaN where there is none."""
        found = [self._means(setting, seeds) or (np.nan, np.nan) for setting in settings]
        return np.array(found, dtype=np.float64).reshape(-1, 2)

    def _means(self, setting: Setting, seeds: Seeds) -> tuple[float, float] | None:
        values = self.found.values(setting, seeds)
        if values is None:
            return None
        first, second = values.mean(axis=0)
        return float(first), float(second)

    def _finalists(self, configuration: int) -> list[Numbers]:
        # Of settings that make no difference in any run, the first stands for all.
        alike: dict[bytes, Numbers] = {}
        for trial in self.histories[configuration]:
            values = self.found.values((configuration, trial.numbers), self._plan.search)
            if values is not None:
                alike.setdefault(values.tobytes(), trial.numbers)
        settings = list(alike.values())
        means = self.better(self.means([(configuration, numbers) for numbers in settings], self._plan.search))
        return [settings[i] for i in analysis.finalists(means[:, 0], means[:, 1], self._plan.finalists)]

    def _chosen(self, configuration: int, finalists: Sequence[Numbers]) -> list[Numbers]:
        """The front of the finalists by the seeds of selection, from the best in the first objective."""
        means = self.better(self.means([(configuration, numbers) for numbers in finalists], self._plan.selection))
        front = np.flatnonzero(statistics.pareto_front(means[:, 0], means[:, 1]))
        return [finalists[i] for i in front[np.lexsort((front, -means[front, 1], -means[front, 0]))]]

    def _stage(self, name: str, settings: Sequence[Setting], seeds: Seeds, *, at_most: int) -> None:
        """Runs settings that were not run with these seeds, as a sweep into a store."""
        wanted: dict[str, Setting] = {}
        for setting in settings:
            if self.found.lacks(setting, seeds):
                wanted.setdefault(self.found.text(setting)[0], setting)
        self._most += (len(wanted) - at_most) * seeds.count
        if not wanted:
            return
        path = self._folder.stage(name)
        plan = self._plan.runs(name, list(wanted.values()), seeds)
        resumed = (path / DATABASE).exists()
        with Store.resume(path, plan) if resumed else Store.create(path, plan) as store:
            before = store.database.totals().runs
            Coordinator(plan, store, self._worker, lambda progress: self._report(name, progress, before)).run()
            self._now += store.database.totals().runs - before
            self.found.add(store)

    def _report(self, stage: str, progress: Progress | None, before: int = 0) -> None:
        if self._tell is None:
            return
        elapsed = time.monotonic() - self._begun
        here = 0 if progress is None else progress.done
        now = self._now + (0 if progress is None else progress.done - before)
        runs = self.found.runs + here
        self._tell(
            TuneProgress(
                stage=stage,
                trials=sum(map(len, self.histories)),
                total_trials=self._plan.trials * len(self.histories),
                runs=runs,
                most_runs=max(self._most, runs),
                failed=self.found.failed + (0 if progress is None else progress.failed),
                elapsed_seconds=elapsed,
                rate=now / elapsed if elapsed > 0 else 0.0,
            )
        )


def _flat(settings: Sequence[Sequence[Numbers]]) -> list[Setting]:
    return [(i, numbers) for i, of in enumerate(settings) for numbers in of]
