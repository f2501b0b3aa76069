"""A comparison in rows of text: what the command line, `print` and notebooks show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from celltrain.drawing.pages.words import UNDEFINED, estimated, figure, settings, valued
from celltrain.drawing.pages.words import measure as worded
from celltrain.ensemble.comparing.settings import SCENARIO
from celltrain.model.cards import Card, Grid
from celltrain.model.grids import LONGEST_WORD, Block, Line
from celltrain.model.grids import Grid as Table
from celltrain.text import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from celltrain.ensemble.comparing.data import Comparison

#: Measures that a card has room for.
MOST_MEASURES = 4
#: Measures that the command line shows unless others are asked for.
USUAL = ("efficiency", "fairness")
#: What marks a difference, and what the marks mean.
BEYOND = "* significant: the 95 % confidence interval of the paired difference excludes zero"
HALF = "\u00b1: half the 95 % interval of the mean (Student's t over the seeds)"


def heading(compared: Comparison) -> str:
    """What was compared, and with which seeds."""
    seeds = compared.seeds
    said = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    files = [str(value) for axis in compared.conditions if axis.name == SCENARIO for value in axis.labels or ()]
    within = f" in {', '.join(files or [shown(compared.scenario)])}" if files or compared.scenario else ""
    names = [f"{name}{_dead(empty)}" for name, empty in zip(compared.names, compared.carried_nothing, strict=True)]
    return f"{', '.join(names)}{within}: {said}{'' if len(names) == 1 else ' each'}"


def _dead(empty: NDArray[np.bool_]) -> str:
    """A note for the name of what carried nothing in some of its runs."""
    if not empty.any():
        return ""
    return " (carried nothing)" if empty.all() else f" (carried nothing in {empty.sum():,} of {empty.size:,} runs)"


def is_alone(compared: Comparison) -> bool:
    """Whether one scenario was run at one setting, so that nothing stands beside it."""
    return len(compared.names) == 1 and not compared.conditions


def alone(compared: Comparison) -> Iterator[list[str]]:
    """Of one scenario: measure, mean, least and largest."""
    for i, (measure, means) in enumerate(zip(compared.measures, compared.means, strict=True)):
        values = compared.values[0, 0, :, i]
        known = values[values == values]
        ends = [figure(float(known.min())), figure(float(known.max()))] if len(known) else [UNDEFINED, UNDEFINED]
        yield [worded(measure.name, measure.unit), estimated(float(means.mean[0]), float(means.half[0])), *ends]


def heads(compared: Comparison) -> list[str]:
    """Headings of the rows of a measure: what is compared, its settings, the mean, the difference from the first."""
    first = compared.names[0] if len(compared.names[0]) <= LONGEST_WORD else "the first"
    against = [] if len(compared.names) == 1 else [f"difference from {first}"]
    axes = compared.conditions
    short = settings([compared.what, *(axis.name for axis in axes)], [compared.what, *(axis.path for axis in axes)])
    return [*short, "mean", *against]


def about(compared: Comparison) -> Iterator[str]:
    """Lines below the heading: the paths of what is varied, and the TCP of everything that is compared."""
    whole = [compared.what, *(axis.name for axis in compared.conditions)]
    varied = [shown(name) for name, head in zip(whole, heads(compared), strict=False) if name != head]
    if varied:
        yield f"varied: {', '.join(varied)}"
    if compared.fixed:
        yield fixed(compared)
    if window := _window(compared):
        yield window
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


def _window(compared: Comparison) -> str:
    """The measuring windows of the scenarios; empty if all are measured as a whole."""
    tables = [json.loads(text).get("measure", {}) for own in compared.configurations for text in own]
    windows = dict.fromkeys((table.get("from") or "0s", table.get("to") or "the end") for table in tables)
    if list(windows) == [("0s", "the end")]:
        return ""
    said = "; ".join(f"from {begin} to {end}" for begin, end in windows)
    return f"measured {said}; largest queues are of the whole run"


def fixed(compared: Comparison) -> str:
    """What was set for all."""
    said = (
        f"{shown(axis.name)} = {valued(axis.column(0), axis.unit)}{_only(compared, axis.name)}"
        for axis in compared.fixed
    )
    return f"set: {', '.join(said)}"


def _only(compared: Comparison, name: str) -> str:
    return f" (only where {compared.only_where[name]})" if name in compared.only_where else ""


def blocks(compared: Comparison, measures: Sequence[int] | None = None) -> Iterator[Block]:
    """A comparison as the command line prints it, with these of its measures; all of them if None."""
    chosen = range(len(compared.measures)) if measures is None else measures
    yield Line(text=heading(compared), style="bold", is_note=True)
    for line in about(compared):
        yield Line(text=line, is_note=True)
    if is_alone(compared):
        grid = Table(heads=["measure", "mean", "least", "largest"])
        for row in alone(compared):
            grid.add_row(*row)
    else:
        grid = Table(heads=heads(compared), left=_words(compared), keys=1 + len(compared.conditions))
        for i in chosen:
            measure = compared.measures[i]
            grid.add_group(worded(measure.name, measure.unit))
            for row in rows(compared, i):
                grid.add_row(*row)
    yield grid
    if len(compared.seeds) > 1:
        if len(compared.names) > 1:
            yield Line(text=BEYOND, is_note=True)
        yield Line(text=HALF, is_note=True)
    if hidden := [one for i, one in enumerate(compared.measures) if i not in chosen]:
        names = ", ".join(worded(one.name) for one in hidden)
        yield Line(text=f"Not shown: {names}. Choose with --measures, or show all with --all.")


def _words(compared: Comparison) -> list[int]:
    """The columns of words: what is compared, and settings that are not numbers."""
    return [0, *(place for place, axis in enumerate(compared.conditions, 1) if not axis.is_number)]


def rows(compared: Comparison, measure: int) -> Iterator[list[str]]:
    """Name, settings, mean and difference of each case, the settings one after the other."""
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


def card(compared: Comparison, warnings: Sequence[str]) -> Card:
    """A comparison as `print` and notebooks show it."""
    several = len(compared.seeds) > 1
    if is_alone(compared):
        grids = [Grid(heads=["measure", "mean", "least", "largest"], rows=list(alone(compared)))]
        hidden = []
    else:
        hidden = [worded(measure.name) for measure in compared.measures[MOST_MEASURES:]]
        words = _words(compared)
        grids = [
            Grid(
                heads=[worded(measure.name, measure.unit), *heads(compared)[1:]],
                rows=list(rows(compared, i)),
                left=words,
            )
            for i, measure in enumerate(compared.measures[:MOST_MEASURES])
        ]
    notes = [
        *([f"Not shown: {', '.join(hidden)}. All are in .table"] if hidden else []),
        *([f"{len(compared.failures):,} runs failed and count nowhere"] if compared.failures else []),
        *([BEYOND] if several and len(compared.names) > 1 else []),
        *([HALF] if several else []),
    ]
    return Card(title=heading(compared), lines=[*about(compared), *warnings], grids=grids, notes=notes)
