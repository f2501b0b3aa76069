"""Runs a list of cases over a list of senders: the common setup for authors of congestion controls.

>>> import celltrain as ct
>>> answer = ct.bottleneck(["startup-plateau"], senders=["reno"])
>>> answer["cases"][0]["senders"]["reno"]["verdict"]
'holds'

`docs/bottleneck.md` explains cases and senders, `docs/design/bottleneck.md` the choices.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from celltrain import _core
from celltrain.drawing import words
from celltrain.drawing.html import environment, render
from celltrain.ensemble.bottleneck import cases as of_cases
from celltrain.ensemble.bottleneck import senders as of_senders
from celltrain.ensemble.bottleneck.cases import Case, Expectation
from celltrain.ensemble.bottleneck.linux import emulated
from celltrain.ensemble.bottleneck.senders import Sender
from celltrain.ensemble.comparing import wrong_seeds
from celltrain.errors import CancelledError, CelltrainError, CelltrainWarning, Fault, InputError, OutputError
from celltrain.model import files
from celltrain.model.arguments import MOST_JOBS, Cancel, check, checked, cores
from celltrain.model.grids import Block, Grid, Line
from celltrain.model.measures import MeasureError, NoValueError, TooFewError, measure
from celltrain.model.network import Network
from celltrain.model.scenario import Reading, table, to_toml
from celltrain.running import statistics
from celltrain.running.events import Events
from celltrain.running.results import run
from celltrain.text import as_json

__all__ = ["bottleneck"]

#: Verdicts: the expectations hold, or some fails, or the sender cannot do the case.
HOLDS, FAILS, CANNOT = "holds", "fails", "cannot"
#: Measures of each case and sender, with their headings and formats.
MEASURES = {
    "goodput_mbps": ("goodput (Mb/s)", "senders.goodput_mbps"),
    "utilisation": ("utilisation", "ports.bottleneck.utilisation"),
    "delay_ms_p50": ("median delay (ms)", "ports.bottleneck.delay_ms_p50"),
    "delay_ms_p95": ("p95 delay (ms)", "ports.bottleneck.delay_ms_p95"),
    "delay_ms_p99": ("p99 delay (ms)", "ports.bottleneck.delay_ms_p99"),
    "lost_share": ("lost share", "senders.lost_share"),
    "fairness": ("fairness", "senders.fairness"),
    "convergence_s": ("convergence (s)", "senders.convergence_s"),
}
#: Largest number of cases that a line about a sender names.
MOST_NAMES = 4
#: Time between samples of the series from which measures of phases are computed.
STEP = "10ms"


@checked()
def bottleneck(
    cases: Sequence[str] | None = None,
    *,
    senders: Sequence[str] | Mapping[str, Any] | None = None,
    seeds: int = 1,
    first_seed: int = 1,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    qlog: bool = False,
    progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
) -> dict[str, Any]:
    """Runs cases over senders, and judges whether the outcome of each is the expected one.

    Args:
        cases: Names of shipped cases, or files; all shipped ones when None.
        senders: Names such as `cubic`; settings such as `sack:congestion=cubic` or `quic:congestion=new_reno`; a class
            `mine.py:Mine`; or a table of senders by name, each a text, an object of a class of stacks, or a table `tcp`
            or `stack`. When None, all shipped senders that are simulated.
        seeds: Number of runs of each case and sender.
        first_seed: The first seed; the others follow.
        jobs: Threads; one for each core when None.
        out: Folder for the answer, the page, the scenarios, and the event log of each first run.
        qlog: True to write each event log also as qlog.
        progress: Called from time to time with the completed fraction, 0 to 1.
        cancel: A handle that ends the call from another thread; see `celltrain.Cancel`.

    Returns:
        A dict as printed by `celltrain bottleneck --json`. `senders`: `name` and `meaning`. `cases`: `name`, `title`,
        `source`, `tests`, `expect`, and `senders` by name with `verdict` (`holds`, `fails` or `cannot`), `reason`,
        `expectations` with the means of both sides, `measures` with their intervals, and `events`, the folder of the log.

    Raises:
        InputError: With every fault of cases, senders and options.
        CancelledError: If `cancel` ended the call.
    """
    wrong = list(wrong_seeds(seeds, first_seed))
    if jobs is not None and not 1 <= jobs <= MOST_JOBS:
        wrong.append(Fault.of_option("jobs", jobs, f"is not a number of threads from 1 to {MOST_JOBS:,}"))
    if qlog and out is None:
        wrong.append(Fault.of_option("qlog", "True", "needs a folder for the files: name it with out"))
    if wrong:
        raise InputError(wrong)
    chosen, able = of_cases.read_all(cases), of_senders.read_all(senders)
    folder = None if out is None else Path(out)
    if folder is not None:
        environment("report")
        with files.writing(folder):
            if folder.exists() and any(folder.iterdir()):
                raise OutputError.of_file(folder, "is not empty; name another folder, or delete it")
    pairs = {(case.name, sender.name): _Pair(case, sender, folder, qlog=qlog) for case in chosen for sender in able}
    faults = [fault for pair in pairs.values() for fault in pair.faults]
    if faults:
        # All senders share the scenario of a case.
        raise InputError(list(dict.fromkeys(faults)))
    numbers = range(first_seed, first_seed + seeds)
    # The kernel needs the machine for itself.
    simulated = [(pair, seed) for pair in pairs.values() if pair.sender.kernel is None for seed in numbers]
    real = [(pair, seed) for pair in pairs.values() if pair.sender.kernel is not None for seed in numbers]
    done, total = 0, len(simulated) + len(real)

    def count(more: int = 1) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done / max(total, 1))

    with warnings.catch_warnings():
        # A case has settings that some senders do not use, such as marks.
        warnings.simplefilter("ignore", CelltrainWarning)
        _run_all(simulated, jobs or cores(), first_seed, count)
    for pair, seed in real:
        check()
        pair.emulate(seed)
        count()
    answer: dict[str, Any] = {
        "version": _core.build()["version"],
        "seeds": seeds,
        "first_seed": first_seed,
        "senders": [{"name": sender.name, "meaning": sender.meaning} for sender in able],
        "cases": [
            {
                **{key: getattr(case, key) for key in ("name", "title", "source", "tests")},
                "expect": [one.text for one in case.expect],
                "senders": {sender.name: pairs[case.name, sender.name].judged() for sender in able},
            }
            for case in chosen
        ],
    }
    if folder is not None:
        with files.writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            files.replace(folder / "bottleneck.json", as_json(answer).encode())
            files.replace(folder / "index.html", page(answer).encode())
    return answer


def scenario_of(cases: Sequence[str] | None, senders: Sequence[str] | None) -> str:
    """Returns the scenario of a case with a sender as TOML; raises `InputError` unless there is one of each."""
    from celltrain.model.types import Scenario

    chosen, able = of_cases.read_all(cases), of_senders.read_all(senders)
    if len(chosen) != 1 or len(able) != 1:
        problem = f"prints one scenario, but {len(chosen)} cases and {len(able)} senders are selected"
        raise InputError.of_option("--toml", "", f"{problem}: name one case, and one sender with --senders")
    [case], [sender] = chosen, able
    pair = _Pair(case, sender, None, qlog=False)
    if pair.reading is None:
        raise InputError(pair.faults or [Fault.saying(f"{sender.name} cannot do {case.name}: {pair.reason}")])
    return to_toml(Scenario.model_validate(table(pair.reading.accepted())), head=f"{case.title} ({case.source})")


def _run_all(runs: Sequence[tuple[_Pair, int]], jobs: int, first_seed: int, count: Callable[[], object]) -> None:
    """Does runs on threads. Ctrl-C and a cancelled call end the runs at once."""
    handle = Cancel()
    with ThreadPoolExecutor(max(1, jobs)) as threads:
        waiting: set[Future[None]] = {
            threads.submit(pair.run, seed, handle, is_first=seed == first_seed) for pair, seed in runs
        }
        try:
            while waiting:
                ended, waiting = wait(waiting, timeout=0.05, return_when=FIRST_COMPLETED)
                for one in ended:
                    one.result()
                    count()
                check()
        except BaseException:
            handle.cancel()
            for one in waiting:
                one.cancel()
            raise


class _Pair:
    """A case with a sender: its runs, and the verdict."""

    def __init__(self, case: Case, sender: Sender, folder: Path | None, *, qlog: bool) -> None:
        self.case, self.sender, self.qlog = case, sender, qlog
        self.folder = None if folder is None else folder / case.name / sender.name
        self.events: str | None = None
        self.reason = sender.lacks(case)
        self.faults: list[Fault] = []
        self.reading: Reading | None = None
        # By seed. Threads end in any order, which must not change means or reasons.
        self.answers: dict[int, dict[str, Any]] = {}
        self.failed: dict[int, str] = {}
        if not self.reason:
            self._read()

    def _read(self) -> None:
        """Reads the scenario. A faulty sender cannot do the case; a fault of a user's case is the user's."""
        reading = Reading.of_table(self.sender.of_case(self.case), self.case.name)
        if not reading.faults:
            self.reading = reading
            return
        kinds = tuple(f"{kind}." for kind in self.sender.table)
        of_sender = [fault for fault in reading.faults if f"{fault.key}.".startswith(kinds)]
        if of_sender or self.case.is_shipped:
            first = (of_sender or reading.faults)[0]
            self.reason = first.message.removeprefix(f"{self.case.name}: ")
        else:
            self.faults = list(of_cases.faults_of(self.case, reading.faults))

    def run(self, seed: int, cancel: Cancel, *, is_first: bool) -> None:
        """Simulates one seed, and keeps its answer."""
        if self.reading is None or self.reason:
            return
        from celltrain.model.types import Scenario

        scenario = Scenario.model_validate(table(self.reading.accepted()))
        flows = Network.of_core(self.reading.accepted()).flows
        # Of the stacks, only QUIC reports its congestion window.
        windows = ["cwnd"] if any(flow.stack in ("", "quic") for flow in flows) else []
        options: dict[str, Any] = {"trace": ["delivered", "queue", *windows], "step": STEP, "delays": True}
        if self.folder is not None and is_first:
            options["events"] = Events(self.folder, kinds=["segments", "timers"])
            if self.qlog:
                options["qlog"] = self.folder / "run.sqlog"
        try:
            result = run(scenario, seed=seed, cancel=cancel, **options)
        except (CancelledError, OutputError):
            raise
        except CelltrainError as error:
            self.failed[seed] = f"its run with seed {seed} failed: {error}"
            return
        except BaseException as error:
            # A panic in a stack ends this run, not the runs of other senders.
            if type(error).__name__ != "PanicException":
                raise
            self.failed[seed] = f"its run with seed {seed} ended with an internal error: {error}"
            return
        if "events" in options:
            assert self.folder is not None
            files.replace(self.folder / "scenario.toml", to_toml(scenario).encode())
            self.events = f"{self.case.name}/{self.sender.name}"
        answer = result.to_dict()
        self.answers[seed] = {**answer, **of_cases.derived(self.case, answer, _series(result.series))}

    def emulate(self, seed: int) -> None:
        """Runs one seed in real time, and keeps its answer."""
        if self.reading is None or self.reason:
            return
        try:
            answer, series = emulated(self.case, self.sender, self.reading, seed)
        except InputError as error:
            self.reason = error.faults[0].message
            return
        self.answers[seed] = {**answer, **of_cases.derived(self.case, answer, series)}

    def judged(self) -> dict[str, Any]:
        """Returns the verdict with its evidence, and the means of all measures."""
        expectations = []
        self.answers = dict(sorted(self.answers.items()))
        if self.failed:
            self.reason = self.failed[min(self.failed)]
        if not self.reason:
            try:
                expectations = [self._expectation(one) for one in self.case.expect]
            except (NoValueError, TooFewError) as error:
                self.reason = str(error)
            except MeasureError as error:
                if self.sender.kernel is not None:
                    # An emulation lacks some measures of a simulation, such as delays.
                    self.reason = str(error)
                    return self.judged()
                raise InputError.of_file(self.case.file, f"expect: {error}") from None
        verdict = HOLDS if all(one["holds"] for one in expectations) else FAILS
        answers = self._in_order()
        return {
            "verdict": CANNOT if self.reason else verdict,
            "reason": self.reason or None,
            "expectations": expectations,
            "measures": {name: _estimate(_known(text, one) for one in answers) for name, (_, text) in MEASURES.items()},
            "events": self.events,
        }

    def _in_order(self) -> list[dict[str, Any]]:
        """Returns the answers in order of their seeds, so that sums do not depend on which run ends first."""
        return [self.answers[seed] for seed in sorted(self.answers)]

    def _expectation(self, expectation: Expectation) -> dict[str, Any]:
        sides = [expectation.values(answer) for answer in self._in_order()]
        left, right = (_estimate(values) for values in zip(*sides, strict=True))
        return {
            "text": expectation.text,
            "holds": expectation.holds(left["mean"], right["mean"]),
            "left": left,
            "right": right,
            "seeds_held": sum(expectation.holds(*both) for both in sides),
        }


def _series(series: Mapping[str, Any]) -> dict[str, Any]:
    """Returns recorded series as arrays, the series of flows by flow name."""
    queue = series["queue"]
    found: dict[str, Any] = {name: queue[name].to_numpy() for name in queue.column_names if name != "port"}
    for name, column in (("delivered", "delivered_bytes"), ("cwnd", "cwnd_segments")):
        found[column] = {flow: rows for one in {name} & {*series} for flow, rows in _by_flow(series[one], column)}
    return found


def _by_flow(rows: Any, column: str) -> Iterator[tuple[str, Any]]:
    """Yields each flow with its column. The rows of all flows alternate."""
    flows = list(dict.fromkeys(rows["flow"].to_pylist()))
    for place, flow in enumerate(flows):
        yield flow, rows[column].to_numpy()[place :: len(flows)]


def _known(text: str, answer: Mapping[str, Any]) -> float:
    """Returns the value of a measure; NaN if the run has none."""
    try:
        return measure(text, answer)
    except MeasureError:
        return math.nan


def _estimate(values: Any) -> dict[str, Any]:
    found = statistics.mean(list(values))
    mean, half = float(found.mean[0]), float(found.half[0])
    numbers = {"mean": mean, "low": mean - half, "high": mean + half}
    return {name: None if math.isnan(value) else value for name, value in numbers.items()}


# The answer of the bottleneck command in words.


def blocks(answer: Mapping[str, Any], *, brief: bool = False) -> Iterator[Block]:
    """Yields an answer as lines and tables: the verdicts, and unless `brief` what was expected and measured."""
    seeds, last = answer["seeds"], answer["first_seed"] + answer["seeds"] - 1
    senders = [sender["name"] for sender in answer["senders"]]
    counted = words.counted(len(answer["cases"]), "case")
    of_seeds = f"seeds {answer['first_seed']} to {last}" if seeds > 1 else f"seed {last}"
    yield Line(text=f"{counted}, {words.counted(len(senders), 'sender')}, {of_seeds}", style="bold")
    grid = Grid(heads=["case", *senders], left=range(len(senders) + 1))
    for case in answer["cases"]:
        grid.add_row(case["name"], *(case["senders"][name]["verdict"] for name in senders))
    yield grid
    for name in senders:
        reasons: dict[str, list[str]] = {}
        for case in answer["cases"]:
            if reason := case["senders"][name]["reason"]:
                reasons.setdefault(reason, []).append(case["name"])
        for reason, those in reasons.items():
            every = len(answer["cases"])
            where = ", ".join(those) if len(those) <= MOST_NAMES else f"{len(those)} of {every} cases"
            yield Line(text=f"{name} cannot do {where}: {reason}", is_note=True)
    if brief:
        return
    for case in answer["cases"]:
        yield Line(text=f"{case['name']}. {case['title']}", style="bold")
        yield Line(text=f"{case['tests']} Source: {case['source']}", is_note=True)
        evidence = Grid(heads=["sender", "holds", "expected", "measured"], left=range(4))
        for name in senders:
            for one in case["senders"][name]["expectations"]:
                evidence.add_row(name, "yes" if one["holds"] else "no", one["text"], _measured(one, seeds))
        yield evidence
        grid = Grid(heads=["sender", *(heading for heading, _ in MEASURES.values())], left=(0,))
        for name in senders:
            if case["senders"][name]["verdict"] != CANNOT:
                grid.add_row(name, *(_cell(case["senders"][name]["measures"][one]) for one in MEASURES))
        yield grid


def _measured(expectation: Mapping[str, Any], seeds: int) -> str:
    """Returns the values of an expectation; a side that is a number is left out."""
    _, _, right = expectation["text"].rpartition(" ")
    sides = [_cell(expectation["left"])]
    if not right[0].isdigit():
        sides.append(_cell(expectation["right"]))
    held = f"; in {expectation['seeds_held']} of {seeds} seeds" if seeds > 1 else ""
    return f"{' and '.join(sides)}{held}"


def _cell(estimate: Mapping[str, Any]) -> str:
    mean, high = estimate["mean"], estimate["high"]
    return "" if mean is None else words.estimated(mean, math.nan if high is None else high - mean)


def page(answer: Mapping[str, Any]) -> str:
    """Renders an answer as one HTML page, whose cases link to their event logs."""
    senders = [sender["name"] for sender in answer["senders"]]
    verdicts = [one["verdict"] for case in answer["cases"] for one in case["senders"].values()]
    facts = [(f"{verdicts.count(word)} of {len(verdicts)}", text) for word, text in VERDICTS.items()]
    return render(
        "ensemble/bottleneck/bottleneck.html",
        "report",
        title="Bottleneck cases",
        subtitle=f"By celltrain {answer['version']}, {words.counted(answer['seeds'], 'seed')}",
        facts=facts,
        answer=answer,
        senders=senders,
        headings=[heading for heading, _ in MEASURES.values()],
        measures=list(MEASURES),
        shown=_cell,
        measured=lambda one: _measured(one, answer["seeds"]),
    )


#: Descriptions of the verdicts.
VERDICTS = {HOLDS: "as expected", FAILS: "not as expected", CANNOT: "cannot be done"}
