"""A comparison as data: runs, means and paired differences; whether its measures can be compared."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain import _core
from celltrain.drawing import words
from celltrain.drawing.words import called, counted, valued
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.cases import CENSORED, SUMMARY, Measured, arrow, axis_columns, by_measure, number
from celltrain.ensemble.comparing.pictured import FILE, SCENARIO, Condition, Pictured
from celltrain.ensemble.plan import Axis, Plan
from celltrain.errors import Fault, InputError
from celltrain.model.arguments import checked
from celltrain.model.files import inner, replace, writing
from celltrain.model.grids import LONGEST_WORD, Block, Card, CardMixin, Grid, Line
from celltrain.model.network import tcp_lines
from celltrain.model.paths import seconds
from celltrain.running.statistics import Means, means
from celltrain.running.tables import Column, write_csv
from celltrain.text import as_json, shown

if TYPE_CHECKING:
    import pyarrow as pa


SEED = Column("seed", "uint64", "1", "seed of every random choice of the run")
PRINT = Column("fingerprint", "string", "", "hash of the exact times of all segments (16 hexadecimal digits)")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run without a result; `name` is one of `Compared.names`."""

    name: str
    seed: int
    error: str


#: Notes below a table that explain the marks in the table.
BEYOND = "* significant: the 95 % confidence interval of the paired difference excludes zero"
HALF = "\u00b1: half the 95 % interval of the mean (Student's t over the seeds)"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Compared(CardMixin):
    """Scenarios compared with the same seeds; `celltrain.compare` returns it.

    Attributes:
        what: `scenario`, or the name of the axis whose values are compared.
        scenario: The scenario whose settings are compared; empty if several scenarios are compared.
        names: Names of the scenarios or values; the first is the baseline.
        conditions: The other axes: everything is compared at each combination of their values.
        settings: The combinations: values of `conditions`, with numbers in the units of the axes (s, bit/s, B, cells).
        axis_labels: The user's labels of axes, by name.
        fixed: Axes with a single value, which is set in all scenarios.
        only_where: By name, the axes of `fixed` that only take effect in some cases, and a description of these cases,
            such as `tcp is vanilla`.
        configurations: By name and combination: the scenario with all its settings, as JSON.
        tcp: By name and combination: the TCP in words, such as `vanilla (no fast retransmit, 100 ms ticks)`.
        measures: The measures.
        seeds: The seeds.
        values: By name, combination, seed and measure, in the units of the measures; NaN for missing values.
        censored: For each element of `values`: true if it is only a lower bound.
        fingerprints: By name, combination and seed; an empty text if a run failed.
        ties_only: By name and combination: true if nothing is random except, at most, the order of simultaneous cells.
        failures: The runs that failed.
        delivered: By name, combination and seed: the bytes that all flows delivered; NaN if a run failed.
        rivals: By name and combination: a number, equal for cases that differ only in policies.
        of_check: Warnings that `celltrain check` gives for the scenarios that were run.
        of_plan: Warnings about scenarios that are hard to compare.
        without_running: Number of runs with results copied from other runs, because certificates prove that they are
            equal.
        without_certificate: Reasons why the results of some runs could not be copied to other runs.
    """

    what: str
    scenario: str
    names: tuple[str, ...]
    conditions: tuple[Axis, ...]
    settings: tuple[dict[str, float | str], ...]
    axis_labels: Mapping[str, str]
    fixed: tuple[Axis, ...]
    only_where: dict[str, str]
    configurations: tuple[tuple[str, ...], ...]
    tcp: tuple[tuple[str, ...], ...]
    measures: tuple[Measured, ...]
    seeds: tuple[int, ...]
    values: NDArray[np.float64]
    censored: NDArray[np.bool_]
    fingerprints: NDArray[Any]
    ties_only: NDArray[np.bool_]
    failures: tuple[Failure, ...]
    delivered: NDArray[np.float64]
    rivals: NDArray[np.int64]
    of_check: tuple[str, ...]
    of_plan: tuple[str, ...]
    without_running: int = 0
    without_certificate: tuple[str, ...] = ()

    @property
    def carried_nothing(self) -> NDArray[np.bool_]:
        """True if no flow delivered anything, by name, combination and seed. False if a run failed."""
        return np.asarray(self.delivered == 0)

    @cached_property
    def means(self) -> tuple[Means, ...]:
        """For each measure, the means of all cases, by name and combination."""
        return tuple(self.means_of(self.values[..., i]) for i in range(len(self.measures)))

    def means_of(self, values: NDArray[np.float64]) -> Means:
        """Returns the means of all cases from values by name, combination and seed."""
        cases = len(self.names) * len(self.settings)
        return means(np.repeat(np.arange(cases), len(self.seeds)), values.reshape(-1), cases)

    @cached_property
    def differences(self) -> tuple[Means, ...]:
        """For each measure and case, the mean difference from the first compared name with the same settings and seed.

        Seeds are left out if either value is missing. The differences of the first name from itself are NaN.
        """
        more = self.values - self.values[:1]
        more[0] = np.nan
        return tuple(self.means_of(more[..., i]) for i in range(len(self.measures)))

    def bounds(self, measure: int) -> NDArray[np.bool_]:
        """By name and combination: whether the mean of a measure is only a lower bound."""
        return np.asarray(self.censored[..., measure].any(axis=2))

    @cached_property
    def table(self) -> pa.Table:
        """One row per name, combination and measure: mean, interval, and the paired difference from the first name.

        `low` and `high` are the ends of the mean's 95 % interval (Student's t); `difference_low` and `difference_high`
        are the ends of the interval of the difference. Missing numbers are null. `censored` is the number of values that
        are only lower bounds.
        """
        cases = np.arange(len(self.names) * len(self.settings))
        more = f"mean difference from {self.names[0]}, paired by seed"
        columns = {
            "mean": Column("difference", "float64", "", more),
            "low": Column("difference_low", "float64", "", "lower end of the mean's 95 % interval"),
            "high": Column("difference_high", "float64", "", "upper end of the difference's 95 % interval"),
        }
        measures = [measure.name for measure in self.measures] * len(cases)
        return arrow(
            [
                *self._case_columns(np.repeat(cases, len(self.measures))),
                (Column("measure", "string", "", "name of the measure"), measures),
                *by_measure({name: SUMMARY[name] for name in ("n", "mean", "sd", "low", "high")}, self.means, cases),
                *by_measure(columns, self.differences, cases),
                (CENSORED, self.censored.sum(axis=2).reshape(-1)),
            ]
        )

    @cached_property
    def runs(self) -> pa.Table:
        """One row per run: name, combination, seed, fingerprint, and a column for each measure."""
        prints = self.fingerprints.reshape(-1, len(self.seeds))
        case, seed = np.nonzero(prints != "")
        values = self.values.reshape(*prints.shape, -1)[case, seed]
        of_run = {SEED: np.array(self.seeds, np.uint64)[seed], PRINT: prints[case, seed].tolist()}
        return arrow([*self._case_columns(case), *of_run.items(), *zip(self.measures, values.T, strict=True)])

    @property
    def fixed_line(self) -> str:
        """The settings for all cases, in words."""
        return plan_warnings.fixed_line(self.fixed, self.only_where)

    def places(self) -> Iterator[tuple[int, ...]]:
        """Yields the index of the name and of the combination of each case."""
        yield from np.ndindex(len(self.names), len(self.settings))

    def _case_columns(self, cases: NDArray[np.int64]) -> Iterator[tuple[Column, list[Any]]]:
        names, places = (part.tolist() for part in np.divmod(cases, len(self.settings)))
        yield Column("name", "string", "", "compared case"), [self.names[name] for name in names]
        for column in axis_columns(self.conditions, "string"):
            yield column, [self.settings[place][column.name] for place in places]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the differences."""
        return (*self.doubts, *self.too_few)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """The warnings that more seeds would not remove."""
        return tuple(doubts(self))

    @cached_property
    def too_few(self) -> tuple[str, ...]:
        """A warning if, with few seeds, an interval includes impossible values."""
        return tuple(too_few(self))

    @checked()
    def to_dict(self) -> dict[str, Any]:
        """Returns the answer as `celltrain compare --json` prints it; unknown numbers are None."""
        scenarios: list[dict[str, Any]] = []
        differences: list[dict[str, Any]] = []
        for case, place in enumerate(self.places()):
            name, setting = place
            at = {"settings": self.settings[setting]} if self.conditions else {}
            bounds = [self.bounds(i) for i in range(len(self.measures))]
            means = {
                measure.name: {**ends(own.mean[case], own.half[case]), "n": int(own.n[case]), **censored(known[place])}
                for measure, own, known in zip(self.measures, self.means, bounds, strict=True)
            }
            scenarios.append({"name": self.names[name], **at, "tcp": self.tcp[name][setting], **means})
            if name:
                more = {
                    measure.name: {
                        **ends(own.mean[case], own.half[case]),
                        **censored(known[place] or known[0, place[1]]),
                    }
                    for measure, own, known in zip(self.measures, self.differences, bounds, strict=True)
                }
                differences.append({"name": self.names[name], "baseline": self.names[0], **at, **more})
        return {
            "version": _core.build()["version"],
            "scenario": self.scenario or None,
            "seeds": len(self.seeds),
            "first_seed": self.seeds[0],
            "set": {axis.name: axis.column(0) for axis in self.fixed},
            "set_only_where": self.only_where,
            "scenarios": scenarios,
            "differences": differences,
            "without_running": self.without_running,
            "without_certificate": list(self.without_certificate),
            "failures": [{"name": one.name, "seed": one.seed, "error": one.error} for one in self.failures],
            "warnings": list(self.warnings),
        }

    def to_pandas(self) -> Any:
        """Returns `table` as a pandas DataFrame; needs `pip install celltrain[frames]`."""
        return self.table.to_pandas()

    @checked()
    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Writes the table and the runs as CSV, and three JSON files to a folder; returns the files.

        `comparison.json` is `to_dict`, and `scenarios.json` contains the complete scenario of each case. `figure.json`
        contains what `celltrain plot compare` draws.
        """
        texts = self.configurations
        scenarios = [
            {"name": self.names[name], "settings": self.settings[setting], "scenario": json.loads(texts[name][setting])}
            for name, setting in self.places()
        ]
        with writing(folder):
            target = inner(Path(folder))
            names = ("comparison.csv", "runs.csv", "comparison.json", "scenarios.json", FILE)
            written = [target / name for name in names]
            write_csv(self.table, written[0])
            write_csv(self.runs, written[1])
            replace(written[2], as_json(self.to_dict()) + "\n")
            replace(written[3], as_json(scenarios) + "\n")
            replace(written[4], as_json(self._pictured().to_dict()) + "\n")
        return written

    @checked()
    def plot(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        measures: Sequence[str] | None = None,
        width: str = "page",
        style: str | None = None,
    ) -> Any:
        """Draws means with their 95 % intervals; needs `pip install celltrain[plot]`.

        Args:
            file: File to write: `.svg`, `.pdf` or `.png`. No file is written when None.
            measures: Measures to draw, with a panel for each; when None all, or the first twelve and a note.
            width: `"page"` (7.2 inches), `"column"` (3.5 inches) for a paper's column, or a length such as `"8.5cm"`.
            style: A matplotlib style: a name such as `"grayscale"`, or a file. Celltrain's own when None.

        Returns:
            The matplotlib figure.

        Raises:
            InputError: If a measure, a width or a style is unknown, or the file's suffix is not one of the above.
        """
        return self._pictured().plot(file, measures=measures, width=width, style=style)

    def _pictured(self) -> Pictured:
        return Pictured(
            scenario=self.scenario,
            names=self.names,
            conditions=[
                Condition(
                    name=axis.name,
                    unit=axis.unit,
                    is_number=axis.is_number,
                    count=len(axis),
                    label=self.axis_labels.get(axis.name, ""),
                )
                for axis in self.conditions
            ],
            settings=self.settings,
            fixed=self.fixed_line,
            tcp=self.tcp,
            measures=self.measures,
            seeds=len(self.seeds),
            values=self.values,
            censored=self.censored if self.censored.any() else None,
        )

    def _card(self) -> Card:
        failed = [f"{len(self.failures):,} runs failed and are not included"] if self.failures else []
        heading, *rest = blocks(self)
        assert isinstance(heading, Line), "the first block"
        return Card.of(heading.text, [*(Line(text=one) for one in self.warnings), *rest], failed)

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} seed{'' if len(self.seeds) == 1 else 's'}"
        at = f" at {len(self.settings)} settings" if self.conditions else ""
        return f"Compared({', '.join(self.names)}{at}: {seeds})"


def ends(mean: float, half: float) -> dict[str, float | None]:
    """Returns a mean and the ends of its interval."""
    return {"mean": number(mean), "low": number(mean - half), "high": number(mean + half)}


def censored(is_bound: bool) -> dict[str, bool]:
    """Returns the key of an answer that marks a mean, or a difference, that depends on a lower bound."""
    return {"censored": True} if is_bound else {}


def blocks(compared: Compared, measures: Sequence[int] | None = None) -> Iterator[Block]:
    """Yields a comparison as the command line prints it, with some of its measures, or all of them if None."""
    chosen = range(len(compared.measures)) if measures is None else measures
    yield Line(text=_heading(compared), style="bold", is_note=True)
    for line in _about(compared):
        yield Line(text=line, is_note=True)
    if _is_single(compared):
        yield _single_grid(compared)
    else:
        grid = Grid(heads=_heads(compared), left=_words(compared), keys=1 + len(compared.conditions))
        for i in chosen:
            measure = compared.measures[i]
            grid.add_group(words.called(measure))
            for row in _rows(compared, i):
                grid.add_row(*row)
        yield grid
    for note in _notes(compared):
        yield Line(text=note, is_note=True)
    # The table of a single scenario has all measures.
    hidden = [one for i, one in enumerate(compared.measures) if i not in chosen and not _is_single(compared)]
    if hidden:
        names = ", ".join(words.called(one, unit=False) for one in hidden)
        yield Line(text=f"Not shown: {names}. Choose with --measures, or show all with --all.")


def _heading(compared: Compared) -> str:
    """Returns the heading of a comparison: its names and seeds."""
    seeds = compared.seeds
    range_of_seeds = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    files = [str(value) for axis in compared.conditions if axis.name == SCENARIO for value in axis.labels or ()]
    within = f" in {', '.join(files or [shown(compared.scenario)])}" if files or compared.scenario else ""
    names = []
    for name, empty in zip(compared.names, compared.carried_nothing, strict=True):
        runs = "" if empty.all() else f" in {empty.sum():,} of {empty.size:,} runs"
        names.append(f"{name} (carried nothing{runs})" if empty.any() else name)
    return f"{', '.join(names)}{within}: {range_of_seeds}{'' if len(names) == 1 else ' each'}"


def _about(compared: Compared) -> Iterator[str]:
    """Yields the lines below the heading: the paths of the axes, the fixed settings, and the TCPs."""
    whole = [compared.what, *(axis.name for axis in compared.conditions)]
    varied = [shown(name) for name, head in zip(whole, _heads(compared), strict=False) if name != head]
    if varied:
        yield f"varied: {', '.join(varied)}"
    if compared.fixed:
        yield compared.fixed_line
    tables = [json.loads(text).get("measure", {}) for own in compared.configurations for text in own]
    windows = dict.fromkeys((table.get("from") or "0s", table.get("to") or "the end") for table in tables)
    if list(windows) != [("0s", "the end")]:
        texts = "; ".join(f"from {begin} to {end}" for begin, end in windows)
        yield f"measured {texts}; largest queues refer to the whole run"
    names, own = compared.names, compared.tcp
    if any(axis.name == SCENARIO for axis in compared.conditions):
        names, own = tuple(str(one[SCENARIO]) for one in compared.settings), tuple(zip(*compared.tcp, strict=True))
    if compared.without_running:
        count = compared.fingerprints.size
        yield f"{counted(count, 'run')}, {compared.without_running:,} of them copied from equal runs"
    yield from tcp_lines((name, "; ".join(dict.fromkeys(tcps))) for name, tcps in zip(names, own, strict=True))


def _heads(compared: Compared) -> list[str]:
    """Returns the column headings of a measure: name, settings, mean, and difference from the first name."""
    first = compared.names[0] if len(compared.names[0]) <= LONGEST_WORD else "the first"
    against = [] if len(compared.names) == 1 else [f"difference from {first}"]
    axes, own = compared.conditions, compared.axis_labels
    names = [compared.what, *(axis.name for axis in axes)]
    short = words.settings(names, [compared.what, *(axis.path for axis in axes)])
    heads = [words.heading(own[name]) if name in own else head for name, head in zip(names, short, strict=True)]
    return [*heads, "mean", *against]


def _rows(compared: Compared, measure: int) -> Iterator[list[str]]:
    """Yields the name, settings, mean and difference of each case, setting by setting."""
    means, more, bounds = compared.means[measure], compared.differences[measure], compared.bounds(measure)
    for place, own in enumerate(compared.settings):
        values = [words.valued(own[axis.name], axis.unit) for axis in compared.conditions]
        for row, name in enumerate(compared.names):
            case = row * len(compared.settings) + place
            is_bound, of_first = bool(bounds[row, place]), bool(bounds[0, place])
            mean = words.estimated(float(means.mean[case]), float(means.half[case]))
            cells = [name, *values, words.at_least(mean) if is_bound else mean]
            if len(compared.names) > 1:
                difference = words.difference(float(more.mean[case]), float(more.half[case]))
                if is_bound or of_first:
                    difference = words.of_bounds(difference, first=is_bound, second=of_first)
                # The first name is the baseline, so it has no difference.
                cells.append(difference if row else "")
            yield cells


def _is_single(compared: Compared) -> bool:
    """Returns whether a single scenario was run at a single setting."""
    return len(compared.names) == 1 and not compared.conditions


def _single_grid(compared: Compared) -> Grid:
    """Returns a table with the mean, smallest and largest value of each measure."""
    grid = Grid(heads=["measure", "mean", "least", "largest"])
    for i, (measure, own) in enumerate(zip(compared.measures, compared.means, strict=True)):
        values = compared.values[0, 0, :, i]
        known = values[values == values]
        ends = (
            [words.figure(float(known.min())), words.figure(float(known.max()))]
            if len(known)
            else [words.UNDEFINED, words.UNDEFINED]
        )
        mean = words.estimated(float(own.mean[0]), float(own.half[0]))
        is_bound = bool(compared.bounds(i)[0, 0])
        grid.add_row(words.called(measure), *(words.at_least(one) if is_bound else one for one in (mean, *ends)))
    return grid


def _words(compared: Compared) -> list[int]:
    """Returns the indices of text columns: the name, and all settings that are not numbers."""
    return [0, *(place for place, axis in enumerate(compared.conditions, 1) if not axis.is_number)]


def _notes(compared: Compared) -> list[str]:
    """Returns the notes that explain the marks of a table."""
    marks = [words.BOUND] if compared.censored.any() else []
    if len(compared.seeds) == 1:
        return marks
    return [*([BEYOND] if len(compared.names) > 1 else []), HALF, *marks]


# Doubts about a comparison.


#: Measures that count formula results that were not numbers.
REPLACED = tuple(f"{rows}.sum(*).replaced_results" for rows in ("ports", "flows", "memories"))
#: Measures that count the decisions by which the policies of memories change a run.
DECIDED = tuple(f"memories.sum(*).{count}" for count in ("refused_cells", "pushed_out_cells", "pauses"))
#: Measures that are added to the requested measures in any case.
ADDITIONAL = (*REPLACED, *DECIDED, plan_warnings.DELIVERED)
#: With fewer seeds, an interval can be so wide that it includes impossible values, such as a fraction above 1.
FEWEST_SEEDS = 5
#: Measures that lie between 0 and 1.
SHARES = ("efficiency", "fairness", "fairness_max_min")

# Checks before the runs.


def check_comparable(sides: Sequence[tuple[str, Plan]], *, within: bool = False) -> list[str]:
    """Returns warnings about scenarios that are hard to compare. The first scenario is the baseline.

    Args:
        sides: Scenarios by name.
        within: True if policies are compared within each scenario, so that the networks may differ.

    Raises:
        InputError: If a measure has different meanings in two scenarios.
    """
    (name, plan), *others = sides
    varied = [axis for axis in plan.axes if len(axis) > 1]
    warnings = []
    if not others and varied and varied[0].path == "duration":
        warnings.append(
            "runs of different lengths are compared: counts, such as lost cells, grow with the length of a run"
        )
    faults: list[Fault] = []
    first = _settings(plan)
    for other, own in others:
        second = _settings(own)
        faults.extend(_faults((name, first), (other, second), plan.measures))
        if not within and first["topology"] != second["topology"]:
            warnings.append(
                f"{other} and {name} are different networks: efficiency and fairness are not comparable, and a difference "
                "between them is not due to the policy alone"
            )
    if faults:
        raise InputError(faults)
    return warnings


def _settings(plan: Plan) -> dict[str, Any]:
    """Returns the scenario of a plan's first point, with all defaults filled in."""
    settings: dict[str, Any] = json.loads(plan.case(0).canonical)
    return settings


def _faults(
    one: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]], measures: Sequence[str]
) -> Iterator[Fault]:
    """Yields a fault for each setting that gives measures different meanings in two scenarios."""
    (first, of_first), (second, of_second) = one, other
    durations = [str(settings["duration"]) for settings in (of_first, of_second)]
    if seconds(durations[0]) != seconds(durations[1]):
        problem = (
            f"lasts {durations[1]}, but {first} lasts {durations[0]}: rates and counts would cover different times. "
            f"Give all scenarios the same length, such as --vary duration={durations[0]}"
        )
        yield Fault.of_option(second, "", problem)
    options = [settings.get("measure", {}) for settings in (of_first, of_second)]
    for key in sorted(options[0].keys() | options[1].keys()):
        values = [one.get(key) for one in options]
        # The file size affects only the delays of files. All other settings affect all measures.
        wanted = [text for text in measures if text not in ADDITIONAL]
        concerned = [text for text in wanted if key != "file_size" or "file_delay" in text]
        if values[0] != values[1] and concerned:
            written = [json.dumps(value) if value is not None else "nothing" for value in values]
            problem = (
                f"has measure.{key} = {written[1]}, but {first} {written[0]}: {', '.join(concerned)} would not mean the same. "
                f"Give all the same value, such as --vary measure.{key}=..."
            )
            yield Fault.of_option(second, "", problem)


# Checks after the runs.


def not_numbers(names: Sequence[str], replaced: NDArray[np.float64]) -> Iterator[str]:
    """Yields a warning for each name whose formulas had results that were not numbers."""
    for name, counts in zip(names, replaced, strict=True):
        if (count := np.nansum(counts)) > 0:
            yield (
                f"{shown(name)}: {counted(int(count), 'result')} of its formulas had to be replaced, because they were not numbers "
                "(for example after a division by zero); docs/models/formula.md lists the replacements"
            )


def doubts(compared: Compared) -> Iterator[str]:
    """Yields the warnings that more seeds would not remove."""
    for name, empty in zip(compared.names, compared.carried_nothing, strict=True):
        if count := int(empty.sum()):
            yield plan_warnings.carried_nothing(shown(name), count, empty.size)
    yield from _little(compared)
    yield from compared.of_check
    yield from compared.of_plan
    yield from _without_effect(compared)
    yield from _indistinct(compared)


def too_few(compared: Compared) -> Iterator[str]:
    """Yields a warning if, with few seeds, an interval includes impossible values: Student's interval is unbounded."""
    if not 1 < len(compared.seeds) < FEWEST_SEEDS:
        return
    wide = []
    for place, (measure, known) in enumerate(zip(compared.measures, compared.means, strict=True)):
        values = compared.values[..., place]
        below = bool((values >= 0).any() and not (values < 0).any() and (known.low < 0).any())
        if below or (measure.name in SHARES and bool((known.high > 1).any())):
            wide.append(called(measure, unit=False))
    if wide:
        yield f"{few(len(compared.seeds))} ({', '.join(wide)}). Use {FEWEST_SEEDS} seeds or more"


def few(seeds: int) -> str:
    """Returns the beginning of a warning about few seeds."""
    return f"{seeds} seeds are few: 95 % intervals extend beyond possible values"


def _little(compared: Compared) -> Iterator[str]:
    """Yields a warning for each name that carries much less than another in the same network, at its worst setting."""
    carried = compared.means_of(compared.delivered).mean
    worst: dict[int, tuple[float, int, int]] = {}
    for case, (share, best) in plan_warnings.little(carried, compared.rivals.reshape(-1)).items():
        name, setting = divmod(case, len(compared.settings))
        worst[name] = min(worst.get(name, (1.0, 0, 0)), (share, best, setting))
    for name, (share, best, setting) in sorted(worst.items()):
        rival, elsewhere = divmod(best, len(compared.settings))
        other = shown(compared.names[rival])
        own, at = shown(compared.names[name]), _at(compared, setting)
        yield plan_warnings.carries_little(
            f"{own} at {at}" if at else own,
            share,
            other if elsewhere == setting else f"{other} at {_at(compared, elsewhere)}",
        )


def _at(compared: Compared, setting: int) -> str:
    """Returns a setting in words."""
    own = compared.settings[setting]
    return ", ".join(f"{shown(axis.name)} = {valued(own[axis.name], axis.unit)}" for axis in compared.conditions)


def _without_effect(compared: Compared) -> Iterator[str]:
    """Yields a warning for names and axes that changed nothing: the fingerprints of all their runs are equal.

    If policies are compared within several scenarios, also reports equal runs in only some of the scenarios.
    """
    prints, dead = compared.fingerprints, compared.carried_nothing
    if not (prints != "").all():
        return
    scenarios = np.array([str(one.get(SCENARIO, "")) for one in compared.settings])
    places = {one: scenarios == one for one in dict.fromkeys(scenarios.tolist())}
    for place, name in enumerate(compared.names):
        said = set[str]()
        for other in range(place):
            equal = (prints[place] == prints[other]).all(axis=-1)
            new = [one for one, here in places.items() if equal[here].all() and not dead[place][here].all()]
            new = [one for one in new if one not in said]
            said.update(new)
            if new:
                where = f" in {', '.join(map(shown, new))}" if len(new) < len(places) else ""
                yield (
                    f"{shown(name)} and {shown(compared.names[other])} give the same runs with every seed{where}: the "
                    "differences between their settings have no effect here"
                )
    codes = np.unique(prints.astype(str), return_inverse=True)[1].reshape(prints.shape).astype(np.int64)
    seeds = np.arange(len(compared.seeds))
    for axis in compared.conditions:
        # Cases that differ only in the given axis have the same number.
        rest = [tuple(value for name, value in one.items() if name != axis.name) for one in compared.settings]
        group = np.array([rest.index(one) for one in rest])[:, None] * len(seeds) + seeds
        pairs = [plan_warnings.equal_pairs(group[~empty], own[~empty]) for own, empty in zip(codes, dead, strict=True)]
        if all(pairs):
            yield plan_warnings.without_effect(shown(axis.name), sum(pairs))
            continue
        for name, count in zip(compared.names, pairs, strict=True):
            if count:
                yield f"{shown(name)}: {plan_warnings.without_effect(shown(axis.name), count)}"


def idle_memories(
    names: Sequence[str], cases: Sequence[str], policies: NDArray[Any], decided: NDArray[np.float64]
) -> Iterator[str]:
    """Yields a warning for each condition under which compared policies of memories decided nothing.

    Args:
        names: The compared settings.
        cases: The conditions in words; an empty text if there is only one.
        policies: The policies of all memories of each scenario as text, by name and condition.
        decided: Cells that memories refused or pushed out and pauses, by name, condition and seed.
    """
    for place, case in enumerate(cases):
        idle = [name for name, own in zip(names, decided[:, place], strict=True) if own.size and (own == 0).all()]
        if len(set(policies[:, place])) == 1 or not idle:
            continue
        where = f"at {case}: " if case else ""
        who = "" if len(idle) == len(names) else f" of {', '.join(map(shown, idle))}"
        yield (
            f"{where}the memory refused nothing and pushed nothing out in any run{who}, so its policy had no effect; "
            "use a smaller memory or more load"
        )


def _indistinct(compared: Compared) -> Iterator[str]:
    """Yields a warning about cases in which seeds hardly differ, so that their intervals mean little."""
    if len(compared.seeds) < plan_warnings.LEAST_SEEDS:
        return
    distinct = np.array([[len(set(runs) - {""}) for runs in row] for row in compared.fingerprints])
    mean, sd = (np.array([getattr(means, name) for means in compared.means]) for name in ("mean", "sd"))
    narrow = plan_warnings.narrow([one.name for one in compared.measures], mean, sd).reshape(distinct.shape)
    indistinct = ((distinct == 1) | (compared.ties_only & narrow)) & ~compared.carried_nothing.all(axis=2)
    if not indistinct.any():
        return
    name, setting = (int(one) for one in np.argwhere(indistinct)[0])
    own = compared.settings[setting]
    words = [compared.names[name], *(valued(own[axis.name], axis.unit) for axis in compared.conditions)]
    tcps = [tcp for own_tcps in compared.tcp for tcp in own_tcps]
    yield plan_warnings.seeds_hardly_matter(
        len(compared.seeds), int(indistinct.sum()), indistinct.size, shown(", ".join(words)), tcps
    )
