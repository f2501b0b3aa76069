"""A comparison as text: for the command line, `print` and notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from celltrain.drawing.pages.words import UNDEFINED, estimated, figure, settings, valued
from celltrain.drawing.pages.words import measure as worded
from celltrain.ensemble.comparing.data import Comparison
from celltrain.ensemble.comparing.settings import SCENARIO
from celltrain.model.grids import LONGEST_WORD, Block, Card, Grid, Line
from celltrain.model.grids import Grid as Table
from celltrain.text import shown

#: Measures that a card has room for.
MOST_MEASURES = 4
#: Measures that the command line shows by default.
USUAL = ("efficiency", "fairness")
#: Notes below a table: the marks of differences and means.
BEYOND = "* significant: the 95 % confidence interval of the paired difference excludes zero"
HALF = "\u00b1: half the 95 % interval of the mean (Student's t over the seeds)"
#: Headings of the table of one scenario at one setting.
_SINGLE = ["measure", "mean", "least", "largest"]


def blocks(compared: Comparison, measures: Sequence[int] | None = None) -> Iterator[Block]:
    """Yields a comparison as printed by the command line, with some of its measures; with all if None."""
    chosen = range(len(compared.measures)) if measures is None else measures
    yield Line(text=heading(compared), style="bold", is_note=True)
    for line in about(compared):
        yield Line(text=line, is_note=True)
    if _is_single(compared):
        grid = Table(heads=_SINGLE)
        for row in _single_rows(compared):
            grid.add_row(*row)
    else:
        grid = Table(heads=heads(compared), left=_words(compared), keys=1 + len(compared.conditions))
        for i in chosen:
            measure = compared.measures[i]
            grid.add_group(worded(measure.name, measure.unit))
            for row in rows(compared, i):
                grid.add_row(*row)
    yield grid
    for note in _notes(compared):
        yield Line(text=note, is_note=True)
    if hidden := [one for i, one in enumerate(compared.measures) if i not in chosen]:
        names = ", ".join(worded(one.name) for one in hidden)
        yield Line(text=f"Not shown: {names}. Choose with --measures, or show all with --all.")


def card(compared: Comparison, warnings: Sequence[str]) -> Card:
    """Returns a comparison for `print` and notebooks."""
    notes = []
    if _is_single(compared):
        grids = [Grid(heads=_SINGLE, rows=list(_single_rows(compared)))]
    else:
        left = _words(compared)
        grids = [
            Grid(heads=[worded(one.name, one.unit), *heads(compared)[1:]], rows=list(rows(compared, place)), left=left)
            for place, one in enumerate(compared.measures[:MOST_MEASURES])
        ]
        if hidden := [worded(measure.name) for measure in compared.measures[MOST_MEASURES:]]:
            notes.append(f"Not shown: {', '.join(hidden)}. All are in .table")
    if compared.failures:
        notes.append(f"{len(compared.failures):,} runs failed and count nowhere")
    notes += _notes(compared)
    return Card(title=heading(compared), lines=[*about(compared), *warnings], grids=grids, notes=notes)


def heading(compared: Comparison) -> str:
    """Returns the names and the seeds of a comparison."""
    seeds = compared.seeds
    range_of_seeds = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    files = [str(value) for axis in compared.conditions if axis.name == SCENARIO for value in axis.labels or ()]
    within = f" in {', '.join(files or [shown(compared.scenario)])}" if files or compared.scenario else ""
    names = []
    for name, empty in zip(compared.names, compared.carried_nothing, strict=True):
        runs = "" if empty.all() else f" in {empty.sum():,} of {empty.size:,} runs"
        names.append(f"{name} (carried nothing{runs})" if empty.any() else name)
    return f"{', '.join(names)}{within}: {range_of_seeds}{'' if len(names) == 1 else ' each'}"


def about(compared: Comparison) -> Iterator[str]:
    """Yields lines below the heading: the paths of the axes, the fixed settings, and the TCPs."""
    whole = [compared.what, *(axis.name for axis in compared.conditions)]
    varied = [shown(name) for name, head in zip(whole, heads(compared), strict=False) if name != head]
    if varied:
        yield f"varied: {', '.join(varied)}"
    if compared.fixed:
        yield fixed(compared)
    tables = [json.loads(text).get("measure", {}) for own in compared.configurations for text in own]
    windows = dict.fromkeys((table.get("from") or "0s", table.get("to") or "the end") for table in tables)
    if list(windows) != [("0s", "the end")]:
        texts = "; ".join(f"from {begin} to {end}" for begin, end in windows)
        yield f"measured {texts}; largest queues are of the whole run"
    named: dict[str, list[str]] = {}
    if any(axis.name == SCENARIO for axis in compared.conditions):
        cases = zip([str(one[SCENARIO]) for one in compared.settings], zip(*compared.tcp, strict=True), strict=True)
    else:
        cases = zip(compared.names, compared.tcp, strict=True)
    for name, own in cases:
        names = named.setdefault("; ".join(dict.fromkeys(own)), [])
        names.extend({name} - set(names))
    for tcp, names in named.items():
        yield f"TCP: {tcp}" if len(named) == 1 else f"TCP of {', '.join(map(shown, names))}: {tcp}"


def fixed(compared: Comparison) -> str:
    """Returns the settings for all cases."""
    texts = []
    for axis in compared.fixed:
        only = f" (only where {compared.only_where[axis.name]})" if axis.name in compared.only_where else ""
        texts.append(f"{shown(axis.name)} = {valued(axis.column(0), axis.unit)}{only}")
    return f"set: {', '.join(texts)}"


def heads(compared: Comparison) -> list[str]:
    """Returns the headings of the rows of a measure: name, settings, mean, and difference from the first name."""
    first = compared.names[0] if len(compared.names[0]) <= LONGEST_WORD else "the first"
    against = [] if len(compared.names) == 1 else [f"difference from {first}"]
    axes = compared.conditions
    short = settings([compared.what, *(axis.name for axis in axes)], [compared.what, *(axis.path for axis in axes)])
    return [*short, "mean", *against]


def rows(compared: Comparison, measure: int) -> Iterator[list[str]]:
    """Yields name, settings, mean and difference of each case, setting by setting."""
    means, more = compared.means[measure], compared.differences[measure]
    names = len(compared.names)
    for place, own in enumerate(compared.settings):
        values = [valued(own[axis.name], axis.unit) for axis in compared.conditions]
        for name in range(names):
            case = name * len(compared.settings) + place
            mean = estimated(float(means.mean[case]), float(means.half[case]))
            difference = float(more.difference[case])
            # The first has no difference from itself.
            text = "" if name == 0 else estimated(difference, float(more.half[case]))
            sign, mark = "+" if difference > 0 else "", " *" if more.beyond[case] else "  "
            against = [] if names == 1 else [f"{sign}{text}{mark}" if text else ""]
            yield [compared.names[name], *values, mean, *against]


def _is_single(compared: Comparison) -> bool:
    """Returns whether one scenario was run at one setting."""
    return len(compared.names) == 1 and not compared.conditions


def _single_rows(compared: Comparison) -> Iterator[list[str]]:
    """Yields measure, mean, least and largest of one scenario."""
    for i, (measure, means) in enumerate(zip(compared.measures, compared.means, strict=True)):
        values = compared.values[0, 0, :, i]
        known = values[values == values]
        ends = [figure(float(known.min())), figure(float(known.max()))] if len(known) else [UNDEFINED, UNDEFINED]
        yield [worded(measure.name, measure.unit), estimated(float(means.mean[0]), float(means.half[0])), *ends]


def _words(compared: Comparison) -> list[int]:
    """Returns the columns of words: the names, and settings that are not numbers."""
    return [0, *(place for place, axis in enumerate(compared.conditions, 1) if not axis.is_number)]


def _notes(compared: Comparison) -> list[str]:
    """Returns the notes that explain the marks of a table."""
    if len(compared.seeds) == 1:
        return []
    return [BEYOND, HALF] if len(compared.names) > 1 else [HALF]
