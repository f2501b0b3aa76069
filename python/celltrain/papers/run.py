"""Runs the scenarios of a paper, or a study, on all cores, and collects the numbers and the verdicts."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.drawing.pages.words import counted
from celltrain.ensemble.cases import Case, Run
from celltrain.ensemble.execute import execute
from celltrain.errors import CancelledError, Fault, ScenarioError, warn
from celltrain.model.arguments import MOST_JOBS, checked, cores
from celltrain.model.cancel import Cancel, check, endable
from celltrain.model.expressions import needs_series, outlined, problem
from celltrain.model.progress import watched
from celltrain.model.scenario import Reading
from celltrain.model.writing import replace, writing
from celltrain.papers import claims, score
from celltrain.papers.claims import Claim
from celltrain.papers.expansion import load
from celltrain.papers.paper import STUDY, Number, Paper, PaperError
from celltrain.papers.score import Scored
from celltrain.running import Local, Rows, RunRecord
from celltrain.text import described

if TYPE_CHECKING:
    from rich.console import Console

#: Largest number of runs of a scenario.
MOST_SEEDS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a reproduction.

    Attributes:
        done: Runs that have ended.
        total: Runs in all.
        elapsed_seconds: Real time since the start.
        remaining_seconds: Estimate of the real time to come.
    """

    done: int
    total: int
    elapsed_seconds: float
    remaining_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Reproduction:
    """The tables of a paper, or of a study, run again: every number with its ensemble, every claim with its verdict.

    Attributes:
        seeds: Requested seeds, by network (under "" if the paper has none).
        scored: Printed numbers and those of the experiments, in the order of the paper, as far as they were run.
        fingerprints: Fingerprint of each run, by configuration and seed.
        cell_hops: Cells that crossed a link, in all runs.
        elapsed_seconds: Real time of all runs.
        interrupted: True if not all runs had ended.
    """

    paper: Paper
    seeds: Mapping[str, int]
    scored: Sequence[Scored]
    fingerprints: Mapping[tuple[int, int], str] = field(default_factory=dict)
    cell_hops: int = 0
    elapsed_seconds: float = 0.0
    interrupted: bool = False

    @property
    def numbers(self) -> list[Scored]:
        """The printed numbers, or all numbers of a study."""
        return [s for s in self.scored if s.number.published is not None or self.paper.kind is STUDY]

    @property
    def experiments(self) -> list[Scored]:
        """Numbers without a printed value, run for the paper's claims."""
        return [s for s in self.scored if s.number.published is None and self.paper.kind is not STUDY]

    @property
    def claims(self) -> list[Claim]:
        """The verdict on every claim whose rows were all run."""
        return self._judged[0]

    @property
    def claims_left_out(self) -> list[str]:
        """The claims that need rows that were not run."""
        return self._judged[1]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Numbers that agree, in all and by table, network and quantity."""
        return score.summary(self.scored)

    @cached_property
    def _judged(self) -> tuple[list[Claim], list[str]]:
        return claims.judge(self.paper, self.scored)

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain reproduce --json`, or of `celltrain study --json`."""
        return {
            self.paper.kind.word: self.paper.id,
            "seeds": max(self.seeds.values()),
            "numbers": [scored.to_dict() for scored in self.numbers],
            "claims": [claim.to_dict() for claim in self.claims],
            "summary": self.summary,
            "seeds_by_network": dict(self.seeds),
            "experiments": [scored.to_dict() for scored in self.experiments],
            "claims_left_out": self.claims_left_out,
            "overrides": self.paper.overrides,
            "interrupted": self.interrupted,
            "cell_hops": self.cell_hops,
            "elapsed_seconds": self.elapsed_seconds,
            "build": _core.build(),
        }

    def to_json(self) -> str:
        """Returns the answer as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1)

    def compare(self, *, console: Console | None = None) -> None:
        """Prints each table with the printed values and ours, then the summary and the claims."""
        from celltrain.papers.report import show

        show(self, console=console)

    @checked()
    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes everything into a folder: the answer as JSON, numbers and seeds as CSV and Parquet, the figures.

        There are no figures without matplotlib, nor of an interrupted reproduction: they take seconds, and some need runs of
        their own. Returns the files written.
        """
        from celltrain.papers import export, figures

        path = Path(folder)
        with writing(folder):
            path.mkdir(parents=True, exist_ok=True)
            answer = path / f"{self.paper.kind.command}.json"
            replace(answer, self.to_json() + "\n")
            drawn = figures.available() and not self.interrupted
            return [answer, *export.write(self, path), *(figures.write(self.paper, self.scored, path) if drawn else [])]

    def __repr__(self) -> str:
        held = sum(claim.holds for claim in self.claims)
        inside = f"{self.summary['inside']} of {self.summary['scored']} numbers inside"
        return (
            f"Reproduction({self.paper.id!r}, {inside if self.paper.has_print else f'{len(self.scored)} numbers'}, "
            f"{held} of {len(self.claims)} claims hold{', interrupted' if self.interrupted else ''})"
        )


@checked()
@endable
@watched
def reproduce(
    paper_id: str,
    *,
    tables: Sequence[str | int] | None = None,
    seeds: int | Mapping[str, int] = 30,
    jobs: int | None = None,
    progress: Callable[[Progress], object] | None = None,
    networks: Sequence[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    cancel: Cancel | None = None,
) -> Reproduction:
    """Runs a paper's tables again and compares.

    Ctrl-C, or `cancel`, stops the runs and returns the results so far, marked as `interrupted`.

    Args:
        paper_id: Such as `"af-96-1269"`; `celltrain list papers` shows them.
        tables: Tables to run, such as `[1, 2]`; all of them, and the experiments, when None.
        seeds: Seeds 1 to n of every scenario, or n for each network: `{"LAN": 30, "WAN": 3}`.
        jobs: Threads; one for each core when None.
        progress: Called after every run.
        networks: Networks to run, such as `["LAN"]`; all of them when None.
        overrides: Values set in every scenario by their dotted path, such as `{"switch.tie_order": "fixed"}`: what if
            the paper's authors had chosen otherwise?
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        PaperError: If there is no such paper, table or network, or too few seeds or threads.
        ScenarioError: If a scenario with the overrides is refused.
        CancelledError: If `cancel` ended it before the first run.
    """
    paper = load(paper_id, overrides=overrides)
    return run(paper, tables=tables, networks=networks, seeds=seeds, jobs=jobs, progress=progress)


@checked()
@endable
@watched
def study(
    study_id: str,
    *,
    tables: Sequence[str] | None = None,
    seeds: int = 10,
    jobs: int | None = None,
    progress: Callable[[Progress], object] | None = None,
    overrides: Mapping[str, Any] | None = None,
    cancel: Cancel | None = None,
) -> Reproduction:
    """Runs a study: tables of our own design, and a verdict on the expectations from theory.

    Ctrl-C, or `cancel`, stops the runs and returns the results so far, marked as `interrupted`.

    Args:
        study_id: Such as `"different-rtts"`; `celltrain list studies` shows them.
        tables: Tables to run, such as `["ratios"]`; all of them when None.
        seeds: Seeds 1 to n of every scenario.
        jobs: Threads; one for each core when None.
        progress: Called after every run.
        overrides: Values set in every scenario by their dotted path, such as `{"duration": "1s"}` for a quick look.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        PaperError: If there is no such study or table, or too few seeds or threads.
        ScenarioError: If a scenario with the overrides is refused.
        CancelledError: If `cancel` ended it before the first run.
    """
    paper = load(study_id, kind=STUDY, overrides=overrides)
    return run(paper, tables=tables, networks=None, seeds=seeds, jobs=jobs, progress=progress)


def run(
    paper: Paper,
    *,
    tables: Sequence[str | int] | None,
    networks: Sequence[str] | None,
    seeds: int | Mapping[str, int],
    jobs: int | None,
    progress: Callable[[Progress], object] | None,
) -> Reproduction:
    """Runs some tables of a paper or a study."""
    numbers = paper.numbers(tables=tables, networks=networks)
    if not numbers:
        choice = f"tables = {described(tables)} and networks = {described(networks)}"
        raise PaperError(f"{choice} leave no number of {paper.id} to run")
    counts = _seed_counts(numbers, seeds)
    claims.check(paper)
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise PaperError(f"jobs = {described(jobs)} is not a number of threads; from 1 to {MOST_JOBS}")
    outcomes = _Outcomes(paper, numbers, counts, progress)
    outcomes.run(Local(jobs or cores()))
    return Reproduction(
        paper=paper,
        seeds=counts,
        scored=outcomes.scored(),
        fingerprints=outcomes.fingerprints,
        cell_hops=outcomes.cell_hops,
        elapsed_seconds=outcomes.elapsed_seconds,
        interrupted=outcomes.interrupted,
    )


def _seed_counts(numbers: Sequence[Number], seeds: int | Mapping[str, int]) -> dict[str, int]:
    networks = dict.fromkeys(number.network or "" for number in numbers)
    counts = dict.fromkeys(networks, seeds) if isinstance(seeds, int) else dict(seeds)
    for network in networks:
        if network not in counts:
            raise PaperError(f"seeds = {described(counts)} says nothing of the network {network!r}")
        if not 1 <= counts[network] <= MOST_SEEDS:
            few = "few; at least 1" if counts[network] < 1 else f"many; at most {MOST_SEEDS}"
            raise PaperError(f"seeds = {described(counts[network])} is too {few}")
    return {network: counts[network] for network in networks}


def measures_of(numbers: Sequence[Number]) -> dict[int, tuple[str, ...]]:
    """Returns the measures of each configuration that some numbers need."""
    measures: dict[int, dict[str, None]] = {}
    for number in numbers:
        measures.setdefault(number.configuration, {})[number.result] = None
    return {configuration: tuple(names) for configuration, names in measures.items()}


def planned(paper: Paper, numbers: Sequence[Number], seeds: Mapping[str, int]) -> list[tuple[int, int]]:
    """Returns the runs, configuration and seed, in the order in which they start.

    Seed by seed, so that stopping early leaves whole tables; within a seed the longest first, so that no long run is left
    for one thread at the end. Runs with series are last, as they take time and memory.
    """
    counts: Counter[int] = Counter()
    for number in numbers:
        count = min(seeds[number.network or ""], number.most_seeds or MOST_SEEDS)
        counts[number.configuration] = max(count, counts[number.configuration])
    measures = measures_of(numbers)
    runs = [(configuration, seed) for configuration, count in counts.items() for seed in range(1, 1 + count)]

    def order(run: tuple[int, int]) -> tuple[bool, int, float]:
        configuration, seed = run
        has_series = any(map(needs_series, measures[configuration]))
        return has_series, seed, -paper.configurations[configuration].duration_s

    return sorted(runs, key=order)


class _Outcomes:
    """Results of the runs so far."""

    def __init__(
        self,
        paper: Paper,
        numbers: Sequence[Number],
        seeds: Mapping[str, int],
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self.paper = paper
        self.numbers = numbers
        self.measures = measures_of(numbers)
        self.runs = planned(paper, numbers, seeds)
        self.progress = progress
        #: Value of each seed, by configuration and measure.
        self.values: dict[tuple[int, str], dict[int, float]] = {}
        self.undefined: Counter[str] = Counter()
        self.fingerprints: dict[tuple[int, int], str] = {}
        self.cell_hops = 0
        self.interrupted = False
        self.started = time.monotonic()
        self.elapsed_seconds = 0.0
        #: Simulated nanoseconds of all runs, and of those that have ended.
        self.work = sum(self._work(configuration) for configuration, _ in self.runs)
        self.work_done = 0

    def _work(self, configuration: int) -> int:
        return 1 + round(1e9 * self.paper.configurations[configuration].duration_s)

    def run(self, worker: Local) -> None:
        """Runs everything at once, so that no thread waits for the others; Ctrl-C or the call's handle ends it early."""
        try:
            cases = {
                number: Case(
                    number=number, configuration=self.paper.configurations[number].text, memory=self._check(number)
                )
                for number in self.measures
            }
            runs = [
                Run(case=cases[number], seed=seed, key=f"{number}/{seed}", measures=self.measures[number])
                for number, seed in self.runs
            ]
            execute(runs, worker, self._take, chunk_runs=len(runs))
        except (KeyboardInterrupt, CancelledError):
            self.interrupted = True
        self.elapsed_seconds = time.monotonic() - self.started
        warn(
            f"{text} is undefined in {counted(count, 'run')} of {len(self.fingerprints):,}; they do not count for it"
            for text, count in self.undefined.items()
        )

    def _check(self, configuration: int) -> int:
        """Returns the bytes that a run of a configuration takes.

        Raises `ScenarioError` if it is refused, and `PaperError` if a measure is not in its answer.
        """
        check()
        scenario = self.paper.configurations[configuration].scenario
        reading = Reading.of_table(scenario, "scenario")
        outline = outlined(reading.accepted(), scenario)
        for text in self.measures[configuration]:
            if words := problem(text, outline):
                raise PaperError(f"{self.paper.id}: {text!r} is not a measure of its runs: {words}")
        return reading.memory_bytes or 0

    def _take(self, rows: Rows) -> None:
        self.elapsed_seconds = time.monotonic() - self.started
        for record in rows.runs:
            self._add(record)
            if self.progress is not None:
                left = (self.work - self.work_done) / self.work_done
                self.progress(
                    Progress(
                        done=len(self.fingerprints),
                        total=len(self.runs),
                        elapsed_seconds=self.elapsed_seconds,
                        remaining_seconds=self.elapsed_seconds * left,
                    )
                )

    def _add(self, record: RunRecord) -> None:
        if record.error is not None:
            raise ScenarioError([Fault.of(f"a run with seed {record.seed} has no result: {record.error}")])
        measures = self.measures[record.point]
        for text, value, why in zip(measures, record.values, record.problems or [None] * len(measures), strict=True):
            if value is not None:
                self.values.setdefault((record.point, text), {})[record.seed] = value
            elif why is not None:
                raise PaperError(why)
            else:
                # A ratio of nothing, such as the fairness of a run that carried nothing: the seed does not count.
                self.undefined[text] += 1
        assert record.fingerprint is not None, "a run without an error has a fingerprint"
        self.fingerprints[record.point, record.seed] = record.fingerprint
        self.cell_hops += record.cell_hops
        self.work_done += self._work(record.point)

    def scored(self) -> list[Scored]:
        """Returns the numbers that some seed has a value for."""
        values = [(number, self.values.get((number.configuration, number.result))) for number in self.numbers]
        return [
            Scored(number=number, values=tuple(of_seed[seed] for seed in sorted(of_seed)), seeds=tuple(sorted(of_seed)))
            for number, of_seed in values
            if of_seed
        ]
