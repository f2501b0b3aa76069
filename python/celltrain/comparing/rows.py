"""A comparison in rows of text: what the command line, `print` and notebooks show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from celltrain.cards import Card, Grid
from celltrain.pages.words import estimated, figure, valued
from celltrain.pages.words import measure as worded

if TYPE_CHECKING:
    from celltrain.comparing.compared import Compared

#: Measures that a card has room for.
MOST_MEASURES = 4
#: What marks a difference, and what the marks mean.
BEYOND = "*: beyond the seeds' spread; the 95 % interval of the differences, paired by seed, leaves zero out"
HALF = "\u00b1: half the 95 % interval of the mean (Student's t over the seeds)"


def heading(compared: Compared) -> str:
    """What was compared, and with which seeds."""
    seeds = compared.seeds
    said = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{', '.join(compared.names)}: {said}{'' if len(compared.names) == 1 else ' each'}"


def is_alone(compared: Compared) -> bool:
    """Whether one scenario was run at one setting, so that nothing stands beside it."""
    return len(compared.names) == 1 and not compared.conditions


def alone(compared: Compared) -> Iterator[list[str]]:
    """Of one scenario: measure, mean, least and largest."""
    for i, (measure, means) in enumerate(zip(compared.measures, compared.means, strict=True)):
        values = compared.values[0, 0, :, i]
        known = values[values == values]
        ends = [figure(float(known.min())), figure(float(known.max()))] if len(known) else ["none", "none"]
        yield [worded(measure.name, measure.unit), estimated(float(means.mean[0]), float(means.half[0])), *ends]


def heads(compared: Compared) -> list[str]:
    """What stands above the rows of a measure: what is compared, its settings, the mean, the difference from the first."""
    against = [] if len(compared.names) == 1 else [f"more than {compared.names[0]}"]
    return [compared.what, *(axis.name for axis in compared.conditions), "mean", *against]


def rows(compared: Compared, measure: int) -> Iterator[list[str]]:
    """Name, settings, mean and difference of each case, the settings one after the other."""
    means, more = compared.means[measure], compared.differences[measure]
    names = len(compared.names)
    for place, settings in enumerate(compared.settings):
        values = [valued(settings[axis.name], axis.unit) for axis in compared.conditions]
        for name in range(names):
            case = name * len(compared.settings) + place
            mean = estimated(float(means.mean[case]), float(means.half[case]))
            difference = float(more.difference[case])
            text = "" if math.isnan(difference) else estimated(difference, float(more.half[case]))
            sign, mark = "+" if difference > 0 else "", " *" if more.beyond[case] else "  "
            against = [] if names == 1 else [f"{sign}{text}{mark}" if text else ""]
            yield [compared.names[name], *values, mean, *against]


def card(compared: Compared) -> Card:
    """A comparison as `print` and notebooks show it."""
    several = len(compared.seeds) > 1
    if is_alone(compared):
        grids = [Grid(heads=["measure", "mean", "least", "largest"], rows=list(alone(compared)))]
        left = 0
    else:
        left = max(0, len(compared.measures) - MOST_MEASURES)
        words = tuple(range(1 + len(compared.conditions)))
        grids = [
            Grid(
                heads=[worded(measure.name, measure.unit), *heads(compared)[1:]],
                rows=list(rows(compared, i)),
                left=words,
            )
            for i, measure in enumerate(compared.measures[:MOST_MEASURES])
        ]
    notes = [
        *([f"{left} more in .table"] if left else []),
        *([f"{len(compared.failures):,} runs failed and count nowhere"] if compared.failures else []),
        *([BEYOND] if several and len(compared.names) > 1 else []),
        *([HALF] if several else []),
    ]
    return Card(title=heading(compared), lines=compared.warnings, grids=grids, notes=notes)
