"""Runs what the numbers of a paper, or a study, need, on all cores, and puts the verdicts together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.model.arguments import MOST_JOBS, checked
from celltrain.model.cancel import Cancel, endable
from celltrain.model.progress import watched
from celltrain.model.writing import replace, writing
from celltrain.papers import claims, score
from celltrain.papers.claims import Claim
from celltrain.papers.outcomes import Outcomes, Progress
from celltrain.papers.paper import STUDY, Number, Paper, PaperError, load
from celltrain.papers.score import Scored
from celltrain.running import cores
from celltrain.text import described

if TYPE_CHECKING:
    from rich.console import Console

#: More runs of a scenario than anybody waits for.
MOST_SEEDS = 1_000_000


class Reproduction:
    """The tables of a paper, run again, or of a study: every number with its ensemble, every claim with its verdict.

    An interrupted reproduction (`interrupted`) holds what the runs that had ended by then can say.
    """

    def __init__(self, paper: Paper, outcomes: Outcomes, numbers: Sequence[Number], seeds: Mapping[str, int]) -> None:
        self.paper = paper
        #: Seeds asked for, by network (under "" where the paper has none).
        self.seeds = dict(seeds)
        self.interrupted = outcomes.interrupted
        #: Seconds of real time, and cells that crossed a link, in all runs.
        self.elapsed_seconds = outcomes.elapsed_seconds
        self.cell_hops = outcomes.cell_hops
        #: For each configuration and seed, the fingerprint of the run.
        self.fingerprints = outcomes.fingerprints
        #: Published numbers and those of the experiments, in the order of the paper.
        self.scored = [
            Scored(
                number=number,
                values=tuple(values[seed] for seed in sorted(values)),
                seeds=tuple(sorted(values)),
            )
            for number in numbers
            if (values := outcomes.values[number.configuration].get(number.result))
        ]

    @property
    def numbers(self) -> list[Scored]:
        """The numbers the paper prints, or all of a study, each with what the seeds gave."""
        return [scored for scored in self.scored if self._is_number(scored)]

    @property
    def experiments(self) -> list[Scored]:
        """Numbers the paper does not print, run for its claims."""
        return [scored for scored in self.scored if not self._is_number(scored)]

    def _is_number(self, scored: Scored) -> bool:
        return scored.number.published is not None or self.paper.kind is STUDY

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
        """How many numbers agree, in all and per table, network and quantity."""
        return score.summary(self.scored)

    @cached_property
    def _judged(self) -> tuple[list[Claim], list[str]]:
        return claims.judge(self.paper, self.scored)

    def to_dict(self) -> dict[str, Any]:
        """The answer of `celltrain reproduce --json`, or of `celltrain study --json`."""
        return {
            self.paper.kind.word: self.paper.id,
            "seeds": max(self.seeds.values()),
            "numbers": [scored.to_dict() for scored in self.numbers],
            "claims": [claim.to_dict() for claim in self.claims],
            "summary": self.summary,
            "seeds_by_network": self.seeds,
            "experiments": [scored.to_dict() for scored in self.experiments],
            "claims_left_out": self.claims_left_out,
            "overrides": self.paper.overrides,
            "interrupted": self.interrupted,
            "cell_hops": self.cell_hops,
            "elapsed_seconds": self.elapsed_seconds,
            "build": _core.build(),
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1)

    def compare(self, *, console: Console | None = None) -> None:
        """Print, table by table, what the paper prints and what the seeds gave; then the summary and the claims."""
        from celltrain.papers.report import show

        show(self, console=console)

    @checked()
    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write everything into a folder: the answer as JSON, numbers and seeds as CSV and Parquet, the figures.

        Figures need matplotlib and are left out where it is not installed, and of what was interrupted: they take seconds, and
        some need runs of their own. Returns the files written.
        """
        with writing(folder):
            return self._write(Path(folder))

    def _write(self, folder: Path) -> list[Path]:
        from celltrain.papers import export, figures

        folder.mkdir(parents=True, exist_ok=True)
        answer = folder / f"{self.paper.kind.command}.json"
        replace(answer, self.to_json() + "\n")
        drawn = figures.available() and not self.interrupted
        return [answer, *export.write(self, folder), *(figures.write(self.paper, self.scored, folder) if drawn else [])]

    def __repr__(self) -> str:
        held = sum(claim.holds for claim in self.claims)
        inside = f"{self.summary['inside']} of {self.summary['scored']} numbers inside"
        printed = any(not table.experiment for table in self.paper.tables)
        return (
            f"Reproduction({self.paper.id!r}, {inside if printed else f'{len(self.scored)} numbers'}, "
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
    """Run a paper's tables again and compare.

    Ctrl-C, or `cancel`, stops the runs and returns what had been done by then, marked as `interrupted`.

    Args:
        paper_id: Such as `"af-96-1269"`; `celltrain list papers` shows them.
        tables: The tables wanted, such as `[1, 2]`; all of them, and the experiments, when None.
        seeds: Seeds 1 to n of every scenario, or n for each network: `{"LAN": 30, "WAN": 3}`.
        jobs: Threads; one for each core when None.
        progress: Called after every run.
        networks: The networks wanted, such as `["LAN"]`; all of them when None.
        overrides: Values set in every scenario by their dotted path, such as `{"switch.tie_order": "fixed"}`: what if
            the paper's authors had chosen otherwise?
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        PaperError: When there is no such paper, table or network, or too few seeds or threads.
        ScenarioError: When a scenario with the overrides is refused.
        CancelledError: When `cancel` ended it before the first run.
    """
    paper = load(paper_id, overrides=overrides)
    return _reproduction(paper, tables=tables, networks=networks, seeds=seeds, jobs=jobs, progress=progress)


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
    """Run a study: tables of our own design, and a verdict on what theory made us expect of them.

    Ctrl-C, or `cancel`, stops the runs and returns what had been done by then, marked as `interrupted`.

    Args:
        study_id: Such as `"different-rtts"`; `celltrain list studies` shows them.
        tables: The tables wanted, such as `["ratios"]`; all of them when None.
        seeds: Seeds 1 to n of every scenario.
        jobs: Threads; one for each core when None.
        progress: Called after every run.
        overrides: Values set in every scenario by their dotted path, such as `{"duration": "1s"}` for a quick look.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        PaperError: When there is no such study or table, or too few seeds or threads.
        ScenarioError: When a scenario with the overrides is refused.
        CancelledError: When `cancel` ended it before the first run.
    """
    paper = load(study_id, kind=STUDY, overrides=overrides)
    return _reproduction(paper, tables=tables, networks=None, seeds=seeds, jobs=jobs, progress=progress)


def _reproduction(
    paper: Paper,
    *,
    tables: Sequence[str | int] | None,
    networks: Sequence[str] | None,
    seeds: int | Mapping[str, int],
    jobs: int | None,
    progress: Callable[[Progress], object] | None,
) -> Reproduction:
    numbers = paper.numbers(tables=tables, networks=networks)
    if not numbers:
        asked = f"tables = {described(tables)} and networks = {described(networks)}"
        raise PaperError(f"{asked} leave no number of {paper.id} to run")
    counts = _seed_counts(numbers, seeds)
    claims.check(paper)
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        raise PaperError(f"jobs = {described(jobs)} is not a number of threads; from 1 to {MOST_JOBS}")
    outcomes = Outcomes(paper, numbers, counts, threads=jobs or cores(), progress=progress)
    outcomes.run()
    return Reproduction(paper, outcomes, numbers, counts)


def _seed_counts(numbers: Sequence[Number], seeds: int | Mapping[str, int]) -> dict[str, int]:
    networks = dict.fromkeys(number.network or "" for number in numbers)
    if not isinstance(seeds, int | Mapping) or isinstance(seeds, bool):
        raise PaperError(f"seeds = {described(seeds)} is not a whole number, or one for each network")
    counts = dict.fromkeys(networks, seeds) if isinstance(seeds, int) else dict(seeds)
    for network in networks:
        if network not in counts:
            raise PaperError(f"seeds = {described(counts)} says nothing of the network {network!r}")
        if not 1 <= counts[network] <= MOST_SEEDS:
            few = "few; at least 1" if counts[network] < 1 else f"many; at most {MOST_SEEDS}"
            raise PaperError(f"seeds = {described(counts[network])} is too {few}")
    return {network: counts[network] for network in networks}
