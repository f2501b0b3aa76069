"""Reproductions of papers' tables, with a verdict on each number, and studies of our own.

>>> import celltrain as ct
>>> reproduction = ct.reproduce("af-96-1269", tables=[1], networks=["LAN"], seeds=1)
>>> [round(number.mean) for number in reproduction.numbers if number.number.quantity.name == "max_queue_cells"]
[7591, 22831]
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from typing_extensions import Unpack

from celltrain import _core
from celltrain.drawing.words import counted
from celltrain.ensemble.cases import execute, trial_run
from celltrain.ensemble.plan import run_key
from celltrain.ensemble.sweeps import Progress
from celltrain.errors import CancelledError, PaperError, ScenarioError, warn
from celltrain.model import files
from celltrain.model.arguments import check, checked, current
from celltrain.model.files import UnreadableError, read_json, writing
from celltrain.model.measures import encodable
from celltrain.model.scenario import Reading
from celltrain.papers import claims
from celltrain.papers.paper import PAPER, STUDY, Configuration, Number, Paper, grouped, load
from celltrain.papers.report import Reproduction
from celltrain.papers.score import Scored
from celltrain.running import Options, ReproduceOptions, Rows, Run, RunRecord, Worker, without_certificate, worker_of
from celltrain.text import described

__all__ = ["PAPER", "STUDY", "Paper", "PaperError", "Progress", "Reproduction", "Scored", "load", "reproduce", "study"]

#: Wall-clock time of the trial run of a network, in seconds.
PROBE_SECONDS = 0.5
#: Maximum number of runs of a scenario.
MOST_SEEDS = 1_000_000


@checked()
def reproduce(
    paper_id: str,
    *,
    tables: Sequence[str | int] | None = None,
    seeds: int | Mapping[str, int] = 30,
    networks: Sequence[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    rows: Sequence[str] | None = None,
    kept: str | os.PathLike[str] | None = None,
    choices: Sequence[str] = (),
    **options: Unpack[ReproduceOptions],
) -> Reproduction:
    """Runs a paper's tables again and compares the results with the printed numbers.

    Ctrl-C, or `cancel`, stops the runs and returns the results so far, marked as `interrupted`.

    Args:
        paper_id: Id of the paper, such as `"af-96-1269"`; `celltrain list papers` shows all.
        tables: Tables to run, such as `[1, 2]`; all of them, and the experiments, when None.
        seeds: Number of seeds of every scenario, or for each network: `{"LAN": 30, "WAN": 3}`.
        networks: Networks to run, such as `["LAN"]`, in upper or lower case; all of them when None.
        overrides: Settings to change in every scenario, by dotted path, such as `{"switch.tie_order": "fixed"}`, to see
            how much a choice of the paper's authors matters.
        rows: Rows to run, by the values of their keys, such as `["5,1000,epd"]`; all of them when None.
        kept: File to which the finished runs are written at the end, and after Ctrl-C.
        choices: Alternative answers to questions that the paper leaves open, such as `["A-03=event_list"]`; an unknown
            one names those of the paper.
        options: See `celltrain.ReproduceOptions`: jobs, client, worker, limit, progress, cancel, certificates, seed,
            resume.

    Raises:
        InputError: If there is no such paper, table, row or network, or too few seeds or threads.
        ScenarioError: If a scenario is invalid with the overrides.
        CancelledError: If `cancel` ended the call before the first run.
    """
    paper = load(paper_id, overrides=overrides, choices=choices)
    seed, resume = options.get("seed", 1), options.get("resume", False)
    file = None if kept is None else Kept(Path(kept), resume=resume)
    if resume and file is None:
        raise PaperError("resume = True needs kept, the file of the finished runs")
    choice: dict[str, Any] = {"tables": tables, "networks": networks, "rows": rows}
    command = _command(paper, seeds, seed, {"table": tables, "network": networks, "row": rows})
    return run(paper, **choice, seeds=seeds, first=seed, options=options, kept=file, command=command)


@checked()
def study(
    study_id: str,
    *,
    tables: Sequence[str] | None = None,
    seeds: int = 10,
    overrides: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Reproduction:
    """Runs a study: tables of our own design, with verdicts on the expectations from theory.

    Ctrl-C, or `cancel`, stops the runs and returns the results so far, marked as `interrupted`.

    Args:
        study_id: Id of the study, such as `"different-rtts"`; `celltrain list studies` shows all.
        tables: Tables to run, such as `["ratios"]`; all of them when None.
        seeds: Seeds 1 to n of every scenario.
        overrides: Settings to change in every scenario, by dotted path, such as `{"duration": "1s"}` for a quick look.
        options: See `celltrain.Options`: jobs, client, worker, limit, progress, cancel, certificates.

    Raises:
        InputError: If there is no such study or table, or too few seeds or threads.
        ScenarioError: If a scenario is invalid with the overrides.
        CancelledError: If `cancel` ended the call before the first run.
    """
    paper = load(study_id, kind=STUDY, overrides=overrides)
    command = _command(paper, seeds, 1, {"table": tables})
    return run(paper, tables=tables, seeds=seeds, options=options, command=command)


def _command(
    paper: Paper, seeds: int | Mapping[str, int], first: int, chosen: Mapping[str, Sequence[str | int] | None]
) -> str:
    """Returns the command line that gives the same results."""
    words = ["celltrain", paper.kind.command, paper.id]
    for option, values in chosen.items():
        words += [word for value in values or () for word in (f"--{option}", str(value))]
    words += [word for choice in paper.chosen for word in ("--choice", choice.name)]
    implied = {path: value for choice in paper.chosen for path, value in choice.overrides.items()}
    for path, value in ((path, value) for path, value in paper.overrides.items() if implied.get(path) != value):
        words += ["--duration", str(value)] if paper.kind is STUDY else ["--set", f"{path}={value}"]
    counts = dict(seeds) if isinstance(seeds, Mapping) else {"": seeds}
    wan = counts.pop("WAN", None)
    words += [word for count in dict.fromkeys(counts.values()) for word in ("--seeds", str(count))]
    words += ["--wan-seeds" if counts else "--seeds", str(wan)] if wan not in (None, *counts.values()) else []
    return shlex.join([*words, *(["--seed", str(first)] if first != 1 else [])])


def run(
    paper: Paper,
    *,
    tables: Sequence[str | int] | None = None,
    networks: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    seeds: int | Mapping[str, int],
    first: int = 1,
    options: Options,
    kept: Kept | None = None,
    command: str = "",
) -> Reproduction:
    """Runs some tables of a paper or a study."""
    numbers = paper.numbers(tables=tables, networks=networks, rows=rows)
    if not numbers:
        choice = f"tables = {described(tables)} and networks = {described(networks)}"
        raise PaperError(f"{choice} do not select any number of {paper.id}")
    counts = _seed_counts(numbers, seeds)
    claims.check(paper, {number.table for number in numbers})
    worker = worker_of(options)
    started = time.monotonic()
    measures = measures_of(numbers)
    plan = planned(paper, numbers, counts, first)
    records, interrupted = _run(paper, measures, plan, worker, options, kept)
    return Reproduction(
        paper=paper,
        seeds=counts,
        **_scored(numbers, counts, measures, records),
        fingerprints={(record.point, record.seed): record.fingerprint or "" for record in records},
        cell_hops=sum(record.cell_hops for record in records),
        elapsed_seconds=time.monotonic() - started,
        without_running=sum(record.filled_from is not None for record in records),
        without_certificate=without_certificate(records),
        interrupted=interrupted,
        command=command,
    )


def estimate(
    paper: Paper, numbers: Sequence[Number], seeds: Mapping[str, int], *, first: int, threads: int
) -> dict[str, Any]:
    """Estimates the time of a reproduction: runs the beginning of the longest scenario of each network."""
    runs = planned(paper, numbers, seeds, first)
    configurations = [paper.configurations[number] for number, _ in runs]
    seconds, simulated = 0.0, sum(one.duration_s for one in configurations)
    for same in grouped(configurations, lambda one: one.network).values():
        longest = max(same, key=lambda one: one.duration_s)
        took = trial_run(_read(longest), first, PROBE_SECONDS)[1]
        seconds += took / longest.duration_s * sum(one.duration_s for one in same) / min(threads, len(runs))
    counts = {"scenarios": len({number for number, _ in runs}), "runs": len(runs), "simulated_seconds": simulated}
    return {**counts, "seconds": seconds, "threads": threads}


def _seed_counts(numbers: Sequence[Number], seeds: int | Mapping[str, int]) -> dict[str, int]:
    networks = dict.fromkeys(number.network or "" for number in numbers)
    counts = dict.fromkeys(networks, seeds) if isinstance(seeds, int) else dict(seeds)
    for network in networks:
        if network not in counts:
            raise PaperError(f"seeds = {described(counts)} has no entry for the network {network!r}")
        if not 1 <= counts[network] <= MOST_SEEDS:
            few = "few; at least 1" if counts[network] < 1 else f"many; at most {MOST_SEEDS}"
            raise PaperError(f"seeds = {described(counts[network])} is too {few}")
    return {network: counts[network] for network in networks}


def measures_of(numbers: Sequence[Number]) -> dict[int, tuple[str, ...]]:
    """Returns the measures that the given numbers need from each configuration."""
    measures: dict[int, dict[str, None]] = {}
    for number in numbers:
        measures.setdefault(number.configuration, {})[number.result] = None
    return {configuration: tuple(names) for configuration, names in measures.items()}


def planned(paper: Paper, numbers: Sequence[Number], seeds: Mapping[str, int], first: int = 1) -> list[tuple[int, int]]:
    """Returns the runs as pairs of configuration and seed, in the order in which they start.

    Runs are ordered by seed, so that stopping early leaves complete tables. For each seed, the longest runs come first,
    so that at the end no single thread is left with a long run.
    """
    counts: Counter[int] = Counter()
    for number in numbers:
        counts[number.configuration] = max(_requested(number, seeds), counts[number.configuration])
    runs = [(configuration, seed) for configuration, count in counts.items() for seed in range(first, first + count)]
    return sorted(runs, key=lambda run: (run[1], -paper.configurations[run[0]].duration_s))


def _requested(number: Number, seeds: Mapping[str, int]) -> int:
    return min(seeds[number.network or ""], number.most_seeds or MOST_SEEDS)


def _run(
    paper: Paper,
    measures: Mapping[int, tuple[str, ...]],
    planned: Sequence[tuple[int, int]],
    worker: Worker,
    options: Options,
    kept: Kept | None,
) -> tuple[list[RunRecord], bool]:
    """Returns the records of the runs, and whether Ctrl-C or the call's handle stopped them early."""
    started = time.monotonic()
    records: list[RunRecord] = []
    before, progress = 0, options.get("progress")

    def take(rows: Rows) -> None:
        for record in rows.runs:
            if record.error is not None:
                raise ScenarioError.of(f"a run with seed {record.seed} has no result: {record.error}")
            records.append(record)
            if progress is not None:
                elapsed, count = time.monotonic() - started, len(records)
                about: dict[str, Any] = {"elapsed_seconds": elapsed, "rate": (count - before) / max(elapsed, 1e-9)}
                progress(Progress(done=count, total=len(planned), failed=0, repeated=0, **about))

    try:
        cases = {number: _case(paper, number, names) for number, names in measures.items()}
        runs = [
            # The keys of a reproduction's runs come from the text as given.
            Run(
                point=number,
                case=cases[number],
                seed=seed,
                key=run_key(paper.configurations[number].text, seed),
                measures=measures[number],
            )
            for number, seed in planned
        ]
        if kept is not None:
            records += kept.records(runs)
            before, known = len(records), {record.run_key for record in records}
            runs = [run for run in runs if run.key not in known]
        if runs:
            # Submit a single chunk, so that no thread waits for another thread.
            execute(runs, worker, take, chunk_runs=len(runs))
    except (KeyboardInterrupt, CancelledError):
        return records, True
    finally:
        if kept is not None and records:
            kept.write(records, measures)
    return records, False


def _case(paper: Paper, number: int, measures: Sequence[str]) -> _core.Case:
    """Returns the case for a configuration.

    Raises `ScenarioError` if the scenario is invalid, and `PaperError` if its runs do not have a measure.
    """
    check()
    case = _read(paper.configurations[number])
    for text, words in zip(measures, case.problems(encodable(measures), current()), strict=True):
        if words is not None:
            raise PaperError(f"{paper.id}: {text!r} is not a measure of its runs: {words}")
    return case


def _read(configuration: Configuration) -> _core.Case:
    return Reading.of_table(configuration.scenario, "scenario").accepted()


def _scored(
    numbers: Sequence[Number],
    seeds: Mapping[str, int],
    measures: Mapping[int, tuple[str, ...]],
    records: Sequence[RunRecord],
) -> dict[str, Any]:
    """Returns the numbers that have a value for at least one seed as `scored`, and all others as `unfinished`.

    Warns of runs in which a measure is undefined.
    """
    values: dict[tuple[int, str], dict[int, float]] = {}
    undefined: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for record in sorted(records, key=lambda record: record.seed):
        names = measures[record.point]
        for text, value, why in zip(names, record.values, record.problems or [None] * len(names), strict=True):
            if value is None:
                # Either the measure divides by zero, like fairness in a run without delivered data, or a percentile has
                # too few values.
                undefined[text] += 1
                if why is not None:
                    reasons.setdefault(text, f" ({why})")
            else:
                values.setdefault((record.point, text), {})[record.seed] = value
    warn(
        f"{text} is undefined in {counted(count, 'run')} of {len(records):,}; these runs are not "
        f"counted{reasons.get(text, '')}"
        for text, count in undefined.items()
    )
    scored, unfinished = list[Scored](), list[Number]()
    for number in numbers:
        if of_seed := values.get((number.configuration, number.result)):
            seeds_of, count = tuple(of_seed), _requested(number, seeds)
            scored.append(Scored(number=number, values=tuple(of_seed.values()), seeds=seeds_of, requested=count))
        else:
            unfinished.append(number)
    return {"scored": scored, "unfinished": unfinished}


# The finished runs of a reproduction in a file, so that an interrupted reproduction can be continued.


#: Name of the file in the folder of `--out`.
NAME = "runs.json"


class _Finished(BaseModel):
    """A finished run in the file."""

    fingerprint: str | None
    cell_hops: int
    seconds: float
    seed: int
    values: dict[str, tuple[float | None, str | None]]
    """Value of each measure, or the reason why it has none."""


class Kept:
    """Finished runs by key.

    The key includes the scenario, the seed and the version, so the file never supplies a different run.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        """If `resume` is true, reads the file; raises `PaperError` if that is impossible, or if the path names no file."""
        if not path.name:
            raise PaperError(f"kept = '{path}' is not the name of a file")
        self.path = path
        self._runs: dict[str, _Finished] = {}
        if not resume:
            return
        try:
            content = read_json(path, what="runs")
            self._runs = {key: _Finished.model_validate(run) for key, run in content["runs"].items()}
        except UnreadableError as error:
            advice = "leave out --resume to begin" if error.missing else "delete this file to begin again"
            raise PaperError(f"{path}: {error.problem}; {advice}") from None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise PaperError(f"{path}: is not a file of runs that celltrain wrote; delete it to begin again") from None

    def records(self, runs: Sequence[Run]) -> list[RunRecord]:
        """Returns the records of the finished runs among the given runs, with all their measures."""
        found = []
        for run in runs:
            before, names = self._runs.get(run.key), run.measures or ()
            if before is not None and before.values.keys() >= {*names}:
                values, problems = zip(*(before.values[name] for name in names), strict=True)
                about: dict[str, Any] = before.model_dump(exclude={"values"}) | {"values": values, "problems": problems}
                about |= {"point": run.point, "seed": run.seed, "run_key": run.key}
                found.append(RunRecord(**about, configuration=run.case.canonical))
        return found

    def write(self, records: Sequence[RunRecord], measures: Mapping[int, Sequence[str]]) -> None:
        """Writes the records, in addition to the runs in the file; raises `OutputError`."""
        for record in records:
            names = measures[record.point]
            problems = record.problems or [None] * len(names)
            values = dict(zip(names, zip(record.values, problems, strict=True), strict=True))
            if record.run_key in self._runs:
                values = {**self._runs[record.run_key].values, **values}
            fields = {name: getattr(record, name) for name in ("fingerprint", "cell_hops", "seconds", "seed")}
            self._runs[record.run_key] = _Finished(**fields, values=values)
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            runs = {key: run.model_dump() for key, run in self._runs.items()}
            files.replace(self.path, json.dumps({"runs": runs}) + "\n")
