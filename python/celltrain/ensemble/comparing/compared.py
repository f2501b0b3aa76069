"""The result of a comparison: as tables, as files and as a figure."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from celltrain import _core
from celltrain.drawing import words
from celltrain.ensemble.cases import number
from celltrain.ensemble.comparing.data import SCENARIO, Comparison, doubts, too_few
from celltrain.ensemble.comparing.pictured import FILE, Pictured
from celltrain.model.arguments import Answer, checked
from celltrain.model.files import inner, replace, writing
from celltrain.model.grids import LONGEST_WORD, Block, Card, CardMixin, Grid, Line
from celltrain.model.network import tcp_lines
from celltrain.running.tables import write_csv
from celltrain.text import as_json, shown

#: Notes below a table that explain the marks in it.
BEYOND = "* significant: the 95 % confidence interval of the paired difference excludes zero"
HALF = "\u00b1: half the 95 % interval of the mean (Student's t over the seeds)"


class Compared(CardMixin, Answer, Comparison):
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
        censored: In the same places: whether the value is only a lower bound.
        fingerprints: By name, combination and seed; an empty text if a run failed.
        ties_only: By name and combination: whether nothing is random except, at most, the order of simultaneous cells.
        failures: The runs that failed.
        delivered: By name, combination and seed: the bytes that all flows delivered; NaN if a run failed.
        rivals: By name and combination: a number, equal for cases that differ only in policies.
        of_check: Warnings that `celltrain check` gives for the scenarios that were run.
        of_plan: Warnings about scenarios that are hard to compare.
    """

    _call = "celltrain.compare"

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
            replace(written[4], as_json(Pictured.of(self).to_dict()) + "\n")
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
        return Pictured.of(self).plot(file, measures=measures, width=width, style=style)

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


def blocks(compared: Comparison, measures: Sequence[int] | None = None) -> Iterator[Block]:
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


def _heading(compared: Comparison) -> str:
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


def _about(compared: Comparison) -> Iterator[str]:
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
    yield from tcp_lines((name, "; ".join(dict.fromkeys(tcps))) for name, tcps in zip(names, own, strict=True))


def _heads(compared: Comparison) -> list[str]:
    """Returns the column headings of a measure: name, settings, mean, and difference from the first name."""
    first = compared.names[0] if len(compared.names[0]) <= LONGEST_WORD else "the first"
    against = [] if len(compared.names) == 1 else [f"difference from {first}"]
    axes, own = compared.conditions, compared.axis_labels
    names = [compared.what, *(axis.name for axis in axes)]
    short = words.settings(names, [compared.what, *(axis.path for axis in axes)])
    heads = [words.heading(own[name]) if name in own else head for name, head in zip(names, short, strict=True)]
    return [*heads, "mean", *against]


def _rows(compared: Comparison, measure: int) -> Iterator[list[str]]:
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


def _is_single(compared: Comparison) -> bool:
    """Returns whether a single scenario was run at a single setting."""
    return len(compared.names) == 1 and not compared.conditions


def _single_grid(compared: Comparison) -> Grid:
    """Returns a table with the mean, smallest and largest value of each measure."""
    grid = Grid(heads=["measure", "mean", "least", "largest"])
    for i, (measure, means) in enumerate(zip(compared.measures, compared.means, strict=True)):
        values = compared.values[0, 0, :, i]
        known = values[values == values]
        ends = (
            [words.figure(float(known.min())), words.figure(float(known.max()))]
            if len(known)
            else [words.UNDEFINED, words.UNDEFINED]
        )
        mean = words.estimated(float(means.mean[0]), float(means.half[0]))
        is_bound = bool(compared.bounds(i)[0, 0])
        grid.add_row(words.called(measure), *(words.at_least(one) if is_bound else one for one in (mean, *ends)))
    return grid


def _words(compared: Comparison) -> list[int]:
    """Returns the indices of text columns: the name, and all settings that are not numbers."""
    return [0, *(place for place, axis in enumerate(compared.conditions, 1) if not axis.is_number)]


def _notes(compared: Comparison) -> list[str]:
    """Returns the notes that explain the marks of a table."""
    marks = [words.BOUND] if compared.censored.any() else []
    if len(compared.seeds) == 1:
        return marks
    return [*([BEYOND] if len(compared.names) > 1 else []), HALF, *marks]
