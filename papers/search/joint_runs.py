"""The data of `joint_search.py`: questions and answers, configurations, rows of a paper's tables, scores.

The questions are in papers/<id>/joint.toml. A configuration is a string with a digit for the answer to each question,
in order; "0" is the default. papers/<id>/joint.csv and the store use these strings. Append new questions at the end.
"""

from __future__ import annotations

import copy
import json
import math
import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from celltrain import _core
from celltrain.model.measures import measure
from celltrain.model.paths import set_key
from celltrain.model.scenario import Reading
from celltrain.papers.paper import Number, Paper, load, matches
from celltrain.papers.score import SLACK, Scored
from paper_page import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Parameters of the probability density of a printed number, as in wan_search.py.
FLOOR, FREEDOM, PRINTED_UNIT = 0.01, 4, 0.01
#: Score of a configuration whose scenario is refused.
REFUSED = -1e6
CONSTANT = math.lgamma((FREEDOM + 1) / 2) - math.lgamma(FREEDOM / 2) - math.log(FREEDOM * math.pi) / 2


@dataclass(frozen=True)
class Question:
    """A choice that the paper leaves open: its id in the register, its name, and its answers (the default first)."""

    id: str
    name: str
    answers: tuple[dict[str, Any], ...]

    def text(self, answer: int) -> str:
        """Returns an answer as text."""
        return f"{self.name} {self.answers[answer]['text']}"


@dataclass(frozen=True)
class Stage:
    """The rows and seeds of a stage, and the fraction of configurations that continue to the next stage."""

    keep: float
    seeds: int
    numbers: tuple[int, ...]
    """Indices into `Space.numbers` of the numbers of this stage and of earlier stages."""
    lock_step: bool
    """The score is the number of exact lock-step rows, not the fit to all numbers."""


class Space:
    """A paper's questions and numbers. If `excluded`, the questions include answers that lock-step rows exclude."""

    def __init__(self, paper_id: str, *, excluded: bool = False) -> None:
        declared = tomllib.loads((ROOT / "papers" / paper_id / "joint.toml").read_text(encoding="utf-8"))
        self.paper_id = paper_id
        self.paper: Paper = load(paper_id)
        self.measure: str = declared["measure"]
        self.networks: list[str] = declared["networks"]
        self.duration: str | None = declared.get("duration")
        """Duration of every screening run, if it differs from the paper's duration."""
        asked = declared["questions"] + (declared["excluded"] if excluded else [])
        self.questions = [Question(q["id"], q["name"], tuple(q["answers"])) for q in asked]
        self.common: dict[str, Any] = declared.get("set", {})
        """Settings of every configuration, also of the defaults."""
        self.version: str = declared["version"]
        """Version of celltrain that made the results."""
        self.confirmation = range(101, 101 + declared.get("confirmation_seeds", 2))
        """Fresh seeds for the best configurations."""
        points: Iterable[Number] = self.paper.table(declared["lock_step"]).numbers if "lock_step" in declared else []
        tolerances = {(*one.row.values(), one.quantity.name): one.tolerance for one in points}
        numbers = self.paper.numbers(tables=declared["tables"], networks=self.networks)
        in_step = [(*number.row.values(), number.quantity.name) in tolerances for number in numbers]
        self.numbers: list[Number] = [
            number for number, own in zip(numbers, in_step, strict=True) if own or (number.scored and not number.point)
        ]
        #: Tolerance of each number of a lock-step row.
        self.lock_step: dict[int, float] = {
            i: tolerances[key]
            for i, number in enumerate(self.numbers)
            if (key := (*number.row.values(), number.quantity.name)) in tolerances
        }
        screened = [i for i, number in enumerate(self.numbers) if number.table in declared["screened"]]
        self.stages: list[Stage] = []
        reached: set[int] = set()
        for entry in declared["stages"]:
            if lock_step := entry["rows"] == "lock_step":
                reached |= set(self.lock_step)
            else:
                reached |= {i for i in screened if any(matches(self.numbers[i].keys, row) for row in entry["rows"])}
            self.stages.append(Stage(entry.get("keep", 1.0), entry["seeds"], tuple(sorted(reached)), lock_step))
        self.default = "0" * len(self.questions)

    def answers(self, configuration: str) -> list[tuple[Question, int]]:
        """Returns the answers that differ from the default."""
        pairs = zip(self.questions, map(int, configuration), strict=True)
        return [(question, answer) for question, answer in pairs if answer]

    def text(self, configuration: str) -> str:
        """Returns a configuration in words."""
        return "; ".join(question.text(answer) for question, answer in self.answers(configuration)) or "the defaults"

    def with_answer(self, place: int, answer: int, configuration: str | None = None) -> str:
        """Returns a configuration with one answer changed, by default in the default configuration."""
        before = configuration or self.default
        return f"{before[:place]}{answer}{before[place + 1 :]}"

    def alone(self) -> list[str]:
        """Returns the configurations with exactly one answer that is not the default."""
        return [
            self.with_answer(place, answer)
            for place, question in enumerate(self.questions)
            for answer in range(1, len(question.answers))
        ]

    def overrides(self, configuration: str, network: str | None, *, whole: bool = False) -> dict[str, Any]:
        """Returns a configuration's values for a network's scenarios. If `whole`, runs have the paper's duration."""
        values: dict[str, Any] = {} if whole or self.duration is None else {"duration": self.duration}
        values |= self.common
        for question, answer in self.answers(configuration):
            declared = question.answers[answer]
            values |= declared.get("set", {}) | declared.get(f"set_{network}", {})
        return values

    def measured_from(self, configuration: str, network: str | None) -> float | None:
        """Returns the time in seconds at which measurement begins; None if it begins at the start."""
        froms = [question.answers[answer].get("measured") for question, answer in self.answers(configuration)]
        return next((begin.get(str(network)) for begin in froms if begin is not None), None)

    def scenarios(self, configuration: str, rows: Iterable[int], *, whole: bool = False) -> dict[int, dict[str, Any]]:
        """Returns the scenario of each row (an index into the paper's configurations) for a configuration."""
        rows = list(rows)
        network = {row: self.paper.configurations[row].network for row in rows}
        overrides = {name: self.overrides(configuration, name, whole=whole) for name in set(network.values())}
        if any("{" in f"{path}{value}" for values in overrides.values() for path, value in values.items()):
            # The values use the paper's own keys, which only the paper's reader can resolve. All networks then have the
            # same values.
            [values] = overrides.values()
            changed = load(self.paper_id, overrides=values)
            tables = list(dict.fromkeys(number.table for number in self.numbers))
            old, new = (paper.numbers(tables=tables, networks=self.networks) for paper in (self.paper, changed))
            place = {before.configuration: after.configuration for before, after in zip(old, new, strict=True)}
            return {row: self.renamed(changed.configurations[place[row]].scenario, configuration) for row in rows}
        scenarios = {}
        for row in rows:
            scenarios[row] = copy.deepcopy(self.paper.configurations[row].scenario)
            for path, value in overrides[network[row]].items():
                set_key(scenarios[row], path, value)
            scenarios[row] = self.renamed(scenarios[row], configuration)
        return scenarios

    def renamed(self, scenario: dict[str, Any], configuration: str) -> dict[str, Any]:
        """Replaces NewReno in a scenario with the TCP variant of an answer."""
        for question, answer in self.answers(configuration):
            variant = question.answers[answer].get("variant")
            if variant is not None and "newreno" in scenario["tcp"]:
                return {**scenario, "tcp": {variant: scenario["tcp"]["newreno"]}}
        return scenario


class Runs:
    """A store of runs in a SQLite file: measured values keyed by configuration, row and seed."""

    def __init__(self, space: Space, path: Path) -> None:
        self.space = space
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(path)
        self.connection.executescript(
            "PRAGMA journal_mode = WAL;"
            "CREATE TABLE IF NOT EXISTS asked (place INTEGER PRIMARY KEY, configuration TEXT UNIQUE, focus TEXT);"
            "CREATE TABLE IF NOT EXISTS runs (configuration TEXT, row INTEGER, seed INTEGER, figures TEXT,"
            " PRIMARY KEY (configuration, row, seed));"
        )
        #: Quantities keyed by configuration, row and seed; None if a run has no result.
        self.figures: dict[tuple[str, int, int], dict[str, float] | None] = {
            (configuration, row, seed): json.loads(figures)
            for configuration, row, seed, figures in self.connection.execute("SELECT * FROM runs")
        }
        self.asked: dict[str, str] = dict(
            self.connection.execute("SELECT configuration, focus FROM asked ORDER BY place")
        )

    def ask(self, configuration: str, focus: str) -> None:
        """Records that the search has tried a configuration."""
        self.asked[configuration] = focus
        self.connection.execute("INSERT INTO asked (configuration, focus) VALUES (?, ?)", (configuration, focus))
        self.connection.commit()

    def run(
        self,
        configuration: str,
        numbers: Sequence[int],
        seeds: Sequence[int],
        threads: int,
        *,
        whole: bool = False,
    ) -> None:
        """Runs the rows that are missing from the store. Each seed is used either for screening or for whole runs."""
        space = self.space
        rows: dict[int, dict[str, str]] = {}
        for number in map(space.numbers.__getitem__, numbers):
            rows.setdefault(number.configuration, {})[number.quantity.name] = number.result
        missing = [(row, seed) for row in rows for seed in seeds if (configuration, row, seed) not in self.figures]
        if not missing:
            return
        scenarios = space.scenarios(configuration, dict.fromkeys(row for row, _ in missing), whole=whole)
        begins = {row: space.measured_from(configuration, space.paper.configurations[row].network) for row in scenarios}
        found: dict[tuple[int, int], dict[str, float] | None] = {}
        # Runs that measure from a later time record series, so they are run separately.
        for begin in dict.fromkeys(begins.values()):
            some = [run for run in missing if begins[run[0]] == begin]
            found |= self._run({run[0]: scenarios[run[0]] for run in some}, some, rows, begin, threads)
        for (row, seed), figures in found.items():
            self.figures[configuration, row, seed] = figures
        self.connection.executemany(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)",
            [(configuration, row, seed, json.dumps(figures)) for (row, seed), figures in found.items()],
        )
        self.connection.commit()

    def _run(
        self,
        scenarios: Mapping[int, dict[str, Any]],
        runs: Sequence[tuple[int, int]],
        rows: Mapping[int, dict[str, str]],
        begin: float | None,
        threads: int,
    ) -> dict[tuple[int, int], dict[str, float] | None]:
        place = {row: index for index, row in enumerate(scenarios)}
        found: dict[tuple[int, int], dict[str, float] | None] = {}
        handles = {}
        for row, scenario in scenarios.items():
            reading = Reading.of_table(scenario, "scenario")
            if reading.case is None:
                return dict.fromkeys(runs)
            handles[row] = reading.case

        def on_result(index: int, text: str, series: Mapping[str, Any] | None = None) -> None:
            row = runs[index][0]
            answer = {**json.loads(text), "scenario": scenarios[row]}
            if begin is None:
                found[runs[index]] = {name: measure(result, answer) for name, result in rows[row].items()}
            else:
                assert series is not None, "the run has recorded a trace"
                late = after(answer, series, begin)
                found[runs[index]] = {name: late[name] for name in rows[row]}

        _core.run_many(
            [handles[row] for row in place],
            [(place[row], seed) for row, seed in runs],
            threads,
            on_result,
            on_error=lambda index, _: found.__setitem__(runs[index], None),
            trace=("delivered",) if begin is not None else (),
            step=f"{round(begin * 1000)}ms" if begin is not None else None,
        )
        return found

    def values(self, configuration: str, number: int, seeds: Sequence[int]) -> list[float] | None:
        """Returns a number's value for each seed; None unless every run has a result."""
        one = self.space.numbers[number]
        figures = [self.figures.get((configuration, one.configuration, seed)) for seed in seeds]
        return None if any(f is None for f in figures) else [f[one.quantity.name] for f in figures if f is not None]

    def close(self) -> None:
        """Closes the file."""
        self.connection.close()


def after(answer: Mapping[str, Any], series: Mapping[str, Any], begin: float) -> dict[str, float]:
    """Computes efficiency and fairness from a time (in seconds) until the end, from the bytes delivered in between."""
    [place] = np.flatnonzero(np.isclose(series["time_s"], begin))
    whole = np.array([flow["delivered_bytes"] for flow in answer["flows"]], dtype=float)
    late = whole - series["delivered_bytes"][place]
    duration = answer["duration_s"]
    share = (late.sum() / whole.sum()) * duration / (duration - begin)
    squares = len(late) * float((late**2).sum())
    return {
        "efficiency": answer["efficiency"] * share,
        "fairness": float(late.sum() ** 2) / squares if squares else 1.0,
    }


class Scores:
    """The fit of configurations, from the available runs. Higher is better."""

    def __init__(self, runs: Runs, reference: Sequence[int]) -> None:
        self.runs = runs
        self.space = runs.space
        self.reference = reference
        """Seeds of the default configuration. While there are few seeds, their spread is used for all
        configurations."""

    @cached_property
    def spread(self) -> dict[int, float]:
        """Returns the standard deviation, with the defaults, of every number in the last stage."""
        found = {}
        for number in self.space.stages[-1].numbers:
            values = self.runs.values(self.space.default, number, self.reference)
            assert values is not None, "the defaults were run with the reference seeds"
            found[number] = float(np.std(values, ddof=1))
        return found

    def screening(self, configuration: str, stage: int) -> dict[str, float] | None:
        """Returns the score on a stage's rows, keyed by network or quantity; None while rows are missing.

        The score of a stage of lock-step rows is their `exact` number.
        """
        stage_ = self.space.stages[stage]
        seeds = range(1, stage_.seeds + 1)
        if stage_.lock_step:
            exact = self.exact(configuration, seeds)
            return None if exact is None else {"exact": exact}
        return self._sum(configuration, stage_.numbers, list(seeds), own=False)

    def exact(self, configuration: str, seeds: Sequence[int]) -> float | None:
        """Returns the number of lock-step rows whose numbers are all within tolerance, as a mean over the seeds."""
        rows: dict[int, list[int]] = {}
        for place in self.space.lock_step:
            rows.setdefault(self.space.numbers[place].configuration, []).append(place)
        count = 0
        for places in rows.values():
            own = [self.runs.values(configuration, place, seeds) for place in places]
            if None in own:
                return None
            count += sum(
                all(self._near(place, value) for place, value in zip(places, values, strict=True))
                for values in zip(*(values for values in own if values is not None), strict=True)
            )
        return count / len(seeds)

    def chaotic(self, numbers: Iterable[int]) -> list[int]:
        """Returns the numbers without those of the lock-step rows, which only count as exact or not."""
        return [place for place in numbers if place not in self.space.lock_step]

    def _near(self, place: int, value: float) -> bool:
        printed = self.space.numbers[place].published
        assert printed is not None, "only printed numbers get a score"
        return abs(value - printed) <= self.space.lock_step[place] + SLACK

    def final(
        self, configuration: str, seeds: Sequence[int], numbers: Sequence[int] | None = None
    ) -> dict[str, float] | None:
        """Returns the score, using the spread of the given seeds, by default on all rows."""
        return self._sum(configuration, range(len(self.space.numbers)) if numbers is None else numbers, seeds, own=True)

    def inside(self, configuration: str, seeds: Sequence[int], network: str, numbers: Iterable[int]) -> tuple[int, int]:
        """Returns how many of a network's printed numbers the range of the seeds contains, and how many there are."""
        scored = []
        for place in self.chaotic(numbers):
            number = self.space.numbers[place]
            if number.network == network:
                values = self.runs.values(configuration, place, seeds)
                assert values is not None, "these numbers have results"
                scored.append(Scored(number=number, values=tuple(values), seeds=tuple(seeds), requested=len(seeds)))
        return sum(bool(one.inside) for one in scored), len(scored)

    def near(
        self, configuration: str, seeds: Sequence[int], keys: Sequence[str], most: float = 0.02
    ) -> dict[str, tuple[int, int]]:
        """Counts the means near the printed values, and all means, grouped by network, quantity and keys."""
        found: dict[str, tuple[int, int]] = {}
        for place, number in enumerate(self.space.numbers):
            values = self.runs.values(configuration, place, seeds)
            assert values is not None, "these numbers have results"
            assert number.published is not None, "only printed numbers get a score"
            group = " ".join(map(str, [number.network, number.quantity.name, *(number.keys[key] for key in keys)]))
            count, of = found.get(group, (0, 0))
            found[group] = (count + (abs(float(np.mean(values)) - number.published) <= most + SLACK), of + 1)
        return found

    def _sum(
        self, configuration: str, numbers: Iterable[int], seeds: Sequence[int], *, own: bool
    ) -> dict[str, float] | None:
        parts: dict[str, list[float]] = {}
        for place in self.chaotic(numbers):
            number = self.space.numbers[place]
            values = self.runs.values(configuration, place, seeds)
            if values is None:
                return None
            assert number.published is not None, "only printed numbers get a score"
            if self.space.measure == "likelihood":
                group = str(number.network)
                spread = float(np.std(values, ddof=1)) if own else self.spread[place] * math.sqrt(1 + 1 / len(values))
                score = log_likelihood(number.published, float(np.mean(values)), spread)
            else:
                group = number.quantity.name
                score = -abs(float(np.mean(values)) - number.published) / number.published
            parts.setdefault(group, []).append(score)
        total = sum if self.space.measure == "likelihood" else np.mean
        return {group: float(total(scores)) for group, scores in parts.items()}


def log_likelihood(printed: float, mean: float, spread: float) -> float:
    """Returns the log-likelihood of a printed number: a Student density around the mean; see wan_search.py."""
    scale = math.hypot(spread, FLOOR)
    z = (printed - mean) / scale
    return CONSTANT - (FREEDOM + 1) / 2 * math.log1p(z * z / FREEDOM) + math.log(PRINTED_UNIT / scale)
