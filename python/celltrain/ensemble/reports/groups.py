"""A measure over one axis, coloured by a second, in panels by a third; and differences from one value of an axis, paired by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.axes import legible
from celltrain.drawing.pages import words
from celltrain.drawing.pages.drawing import BARS, Drawing, Look
from celltrain.drawing.pages.groups import Across, Group, Panel, lines
from celltrain.drawing.pages.words import measure as worded
from celltrain.drawing.style import COLOURS
from celltrain.ensemble.columns import bounds
from celltrain.ensemble.reports.analysis import Analysis, factor_of, label, titled
from celltrain.ensemble.reports.data import Data, Factor
from celltrain.errors import Fault, StoreError
from celltrain.running import statistics
from celltrain.running.statistics import Means

#: Values of an axis up to which it gives colours, and panels.
MOST_COLOURS = len(COLOURS)
MOST_PANELS = 6


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which axis goes where."""

    over: Factor
    by: Factor | None
    """Gives colours."""
    panel: Factor | None

    @property
    def named(self) -> list[Factor]:
        """Those that there are."""
        return [factor for factor in (self.over, self.by, self.panel) if factor is not None]


@dataclass(frozen=True)
class Baseline:
    """Differences from one value of an axis: of runs that have all other axes and the seed in common."""

    data: Data
    factor: Factor
    level: int
    """The place of the value among the axis's."""

    @property
    def name(self) -> str:
        """The value."""
        return label(self.factor, self.level)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Runs by measures: what each run has more than its partner; NaN for the baseline's own, and without a partner."""
        data = self.data
        others = [factor.levels for factor in data.factors if factor is not self.factor]
        kin = np.unique(np.stack([*others, np.zeros(len(data.points), np.int64)]), axis=1, return_inverse=True)[1]
        kin = kin.reshape(-1)
        own = self.factor.levels == self.level
        base = {int(key): point for point, key in enumerate(kin) if own[point]}
        runs = {
            (int(point), int(seed)): run for run, (point, seed) in enumerate(zip(data.point, data.seed, strict=True))
        }
        partner = np.array(
            [
                -1 if own[point] else runs.get((base.get(int(kin[point]), -1), int(seed)), -1)
                for point, seed in zip(data.point, data.seed, strict=True)
            ],
            dtype=np.int64,
        )
        found: NDArray[np.float64] = np.where(partner[:, None] < 0, np.nan, data.values - data.values[partner])
        return found

    @cached_property
    def of_points(self) -> tuple[Means, ...]:
        """For each measure the mean difference of every point."""
        data = self.data
        return tuple(
            statistics.means(data.point[known], self.values[known, i], len(data.points))
            for i, known in enumerate(~np.isnan(self.values.T))
        )

    @cached_property
    def of_levels(self) -> tuple[Means, ...]:
        """For each measure the mean difference of each value of the axis, over all other axes."""
        return tuple(
            over(self.data, self.values[:, i], self.factor.levels, len(self.factor.axis.values))
            for i in range(len(self.data.measures))
        )

    def beyond(self, measure: int, level: int) -> tuple[int, int, int]:
        """At how many points of a value the difference is significant and positive, at how many negative; points with an interval."""
        above, below = self._significant(measure, level)
        known = (self.factor.levels == level) & ~np.isnan(self.of_points[measure].half)
        return int(above.sum()), int(below.sum()), int(known.sum())

    def warnings(self) -> Iterator[str]:
        """Yields a warning for each value that is above the baseline at some points, and below it at others."""
        for i, measure in enumerate(self.data.measures):
            for level in range(len(self.factor.axis.values)):
                above, below = self._significant(i, level)
                if not above.any() or not below.any():
                    continue
                where = [f" at {words.counted(int(side.sum()), 'point')}" for side in (above, below)]
                if separate := self._separate(above, below):
                    where = [f" with {one}" for one in separate]
                yield (
                    f"{worded(measure.name)}: {label(self.factor, level)} is above {self.name}{where[0]}, and below it{where[1]}: a "
                    "mean over these points says little"
                )

    def _significant(self, measure: int, level: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The points of a value at which the interval of the difference is above zero, and those at which it is below."""
        means, mine = self.of_points[measure], self.factor.levels == level
        with np.errstate(invalid="ignore"):
            return mine & (means.mean > means.half), mine & (means.mean < -means.half)

    def _separate(self, above: NDArray[np.bool_], below: NDArray[np.bool_]) -> tuple[str, str] | None:
        """The values of the one axis that no point above shares with a point below, in words; None if there is no such axis."""
        found = []
        for factor in self.data.factors:
            sides = [np.unique(factor.levels[side]) for side in (above, below)]
            if factor is not self.factor and not np.isin(sides[0], sides[1]).any():
                first, second = (" or ".join(label(factor, level) for level in side.tolist()) for side in sides)
                found.append((f"{factor.axis.worded} = {first}", f"{factor.axis.worded} = {second}"))
        return found[0] if len(found) == 1 else None


def baseline(data: Data, said: str) -> Baseline:
    """The baseline that `AXIS=VALUE` names; raises `StoreError` where there is none such."""
    name, sign, value = (part.strip() for part in said.partition("="))
    if not sign:
        problem = "is not AXIS=VALUE, such as policy=tail_drop"
        raise StoreError([Fault.of_option("baseline", said, problem)])
    factor = factor_of(data, name, "baseline")
    known = [label(factor, level) for level in range(len(factor.axis.values))]
    plain = [str(one) if isinstance(one, str) else words.plain(one) for one in factor.scale.values]
    for names in (known, plain):
        if value in names:
            return Baseline(data, factor, names.index(value))
    raise StoreError([Fault.of_option("baseline", value, f"is not a value of {name}; there are {', '.join(known)}")])


def layout(analysis: Analysis, said: Sequence[str] | None, compared: Factor | None = None) -> Layout | None:
    """Which axis goes where; None where nothing is said and there are not two axes with a grid.

    Args:
        analysis: Of the store.
        said: Up to three axes: over which, by which colours, by which panels.
        compared: The axis that gives colours where nothing is said.
    """
    data = analysis.data
    if said is not None:
        return _said(data, said)
    grids = [factor for factor in data.factors if not factor.axis.sampled]
    if len(grids) < 2:
        return None
    numbers = [factor for factor in grids if not factor.scale.words and factor is not compared]
    numbers.sort(key=lambda factor: -len(factor.axis.values))
    first = (numbers or [factor for factor in analysis.strongest(grids) if factor is not compared])[0]
    rest = [factor for factor in analysis.strongest(grids) if factor is not first]
    # Networks get panels: a mean over them says nothing.
    rest.sort(key=data.is_network)
    by = compared or next((one for one in rest if len(one.axis.values) <= MOST_COLOURS), None)
    panel = next((one for one in rest[::-1] if one is not by and len(one.axis.values) <= MOST_PANELS), None)
    return Layout(over=first, by=by, panel=panel)


def draw(analysis: Analysis, measure: int, chosen: Layout, look: Look, against: Baseline | None = None) -> Drawing:
    """A measure over an axis, or its differences from a baseline."""
    data, about = analysis.data, analysis.data.measures[measure]
    values = data.values[:, measure] if against is None else against.values[:, measure]
    sizes = [1 if one is None else len(one.axis.values) for one in (chosen.panel, chosen.by, chosen.over)]
    levels = [
        np.zeros(len(data.points), np.int64) if f is None else f.levels for f in (chosen.panel, chosen.by, chosen.over)
    ]
    cell = (levels[0] * sizes[1] + levels[1]) * sizes[2] + levels[2]
    means = over(data, values, cell, sizes[0] * sizes[1] * sizes[2])
    shape = tuple(sizes)
    mean, half = means.mean.reshape(shape), means.half.reshape(shape)
    left_out = against.level if against is not None and chosen.by is against.factor else None
    worded = words.measure(about.name, about.unit)
    unit = worded if against is None else f"{worded}\nmore than {legible(against.name, 24)}"
    panels = [
        Panel(
            label=unit,
            limits=bounds(about.name) if against is None else (-math.inf, math.inf),
            title="" if chosen.panel is None else _titled(chosen.panel, place),
            groups=[
                Group(
                    name=about.name if chosen.by is None else label(chosen.by, row),
                    mean=mean[place, row],
                    half=half[place, row],
                )
                for row in range(sizes[1])
                if row != left_out
            ],
        )
        for place in range(sizes[0])
    ]
    figure = lines(
        panels,
        _across(chosen.over),
        look,
        columns=min(sizes[0], 2) if sizes[0] > 1 else 1,
        zero=against is not None,
        marks=BARS if bool((half > 0).any()) else "",
    )
    rest = [one.axis.worded for one in data.factors if all(one is not used for used in chosen.named)]
    also = f" Averaged over {', '.join(rest)}." if rest else ""
    what = "The mean over the seeds" if against is None else "The mean difference, run by run of one seed"
    kind, title = ("lines", "") if against is None else ("differences", f" more than {against.name}")
    return Drawing(
        name=f"{kind}-{analysis.slug(measure)}",
        title=f"{words.measure(about.name)}{title} over {chosen.over.axis.worded}",
        caption=f"{what}, with its 95 % interval.{also}",
        figure=figure,
        look=look,
    )


def over(data: Data, values: NDArray[np.float64], levels: NDArray[np.int64], count: int) -> Means:
    """Means of the runs' values by the level of their point, all points of a level alike."""
    known = ~np.isnan(values)
    point = data.point[known]
    return statistics.effects(levels[point], point, data.seed[known], values[known], count)


def _titled(factor: Factor, level: int) -> str:
    return legible(titled(factor, level), 30)


def _across(factor: Factor) -> Across:
    axis = factor.scale
    if axis.words:
        texts = [label(factor, level) for level in range(len(factor.axis.values))]
        places = np.arange(len(texts), dtype=np.float64)
        return Across(label=words.labelled(factor.axis.worded, ""), places=places, words=texts)
    unit, size = words.ruler(axis.unit, [float(value) for value in axis.values])
    numbers = np.array(axis.values, dtype=np.float64) / size
    text = words.labelled(axis.worded, "" if unit == "1" else unit)
    return Across(label=text, places=numbers, logarithmic=axis.logarithmic)


def _said(data: Data, said: Sequence[str]) -> Layout:
    if not 1 <= len(said) <= 3:
        problem = (
            "is not one to three axes: over which, by which colours, by which panels; such as buffer,policy,network"
        )
        raise StoreError([Fault.of_option("lines", ",".join(said), problem)])
    factors = [factor_of(data, name, "lines") for name in said]
    for name, factor in zip(said, factors, strict=True):
        if sum(one is factor for one in factors) > 1:
            problem = "is there twice, or moves together with another of them"
            raise StoreError([Fault.of_option("lines", name, problem)])
    for name, factor, most in zip(said[1:], factors[1:], (MOST_COLOURS, MOST_PANELS), strict=False):
        if len(factor.axis.values) > most:
            problem = f"has {len(factor.axis.values)} values; {most} are drawn at most"
            raise StoreError([Fault.of_option("lines", name, problem)])
    first, by, panel = (*factors, None, None)[:3]
    assert first is not None, "there is one at least"
    return Layout(over=first, by=by, panel=panel)
