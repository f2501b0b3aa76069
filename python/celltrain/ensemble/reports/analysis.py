"""Analysis of one store: main effects, Pareto fronts, and the axes of its figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.axes import COLOURS
from celltrain.drawing.pages import words
from celltrain.ensemble.columns import Measured
from celltrain.ensemble.reports.data import Axis, Data, Factor
from celltrain.errors import Fault, StoreError
from celltrain.running import statistics
from celltrain.running.statistics import Means
from celltrain.text import among

#: Ranges of a sampled axis: the least number of points in each, and the most ranges.
LEAST_POINTS, MOST_RANGES = 4, 8
#: Most values of a third axis that gives panels of maps, if another axis has fewer.
MOST_MAPS = 12
#: Most values of an axis that gives colours of lines, and of one that gives panels of lines.
MOST_COLOURS, MOST_PANELS = len(COLOURS), 6


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Axes of a figure of lines."""

    over: Factor
    by: Factor | None = None
    """Axis that gives colours."""
    panel: Factor | None = None
    """Axis that gives panels."""

    @property
    def named(self) -> list[Factor]:
        """All axes of the figure."""
        return [factor for factor in (self.over, self.by, self.panel) if factor is not None]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Effect of an axis on a measure."""

    factor: Factor
    measure: Measured
    means: Means
    """Means over the points of each value of the axis, or of each range of a sampled one."""
    places: NDArray[np.float64]
    """Values, or the middle of each range; 0, 1, ... for words."""
    of_points: NDArray[np.float64]
    """Mean of each point."""
    share: float
    """Share of the variance of the points' means that lies between the values, 0 to 1."""

    def text(self, level: int, *, unit: bool = False) -> str:
        """Returns a value as text, with its unit for people."""
        axis, place = self.factor.axis, float(self.places[level])
        if axis.words:
            return str(axis.values[level])
        return words.valued(place, axis.unit) if unit else words.plain(place)


@dataclass(frozen=True, kw_only=True)
class Part:
    """Front of one configuration: the points that no other point of the configuration beats in two measures."""

    level: int
    """Place of the configuration among the values of `Front.by`; 0 if there is one front for all."""
    order: NDArray[np.int64]
    """Points on the front, from the best in the first measure."""
    doubtful: NDArray[np.int64]
    """Points whose intervals do not separate them from the front."""


@dataclass(frozen=True, kw_only=True)
class Front:
    """Pareto front of each configuration."""

    x: int
    y: int
    """The measures."""
    larger_x: bool
    larger_y: bool
    """True if larger is better."""
    by: Factor | None
    """Axis whose values have a front each; None if there is one for all points."""
    axes: tuple[Factor, ...]
    """Axes that `by` combines."""
    parts: tuple[Part, ...]

    @property
    def order(self) -> NDArray[np.int64]:
        """Points of all fronts, one configuration after the other."""
        return np.concatenate([part.order for part in self.parts])

    @property
    def doubtful(self) -> NDArray[np.int64]:
        """Points whose intervals do not separate them from the front of their configuration."""
        return np.sort(np.concatenate([part.doubtful for part in self.parts]))

    @property
    def places(self) -> NDArray[np.int64]:
        """Place of each point of `order` on its own front, from 1."""
        return np.concatenate([np.arange(len(part.order)) + 1 for part in self.parts])


class Analysis:
    """Main effects and Pareto fronts of one store.

    Args:
        data: The runs.
        front: The two measures of the Pareto front; `-` before one means that smaller is better. Efficiency and fairness
            when None, if both were measured and there are several points.
        front_by: Axes whose combinations have a front each. When None those that change the network; when empty there is
            one front for all points.
    """

    def __init__(self, data: Data, front: Sequence[str] | None = None, front_by: Sequence[str] | None = None) -> None:
        self.data = data
        self.front = self._front(front, front_by)

    @cached_property
    def effects(self) -> tuple[tuple[Effect, ...], ...]:
        """Effect of each factor, by measure."""
        every = range(len(self.data.measures))
        return tuple(tuple(self._effect(factor, i) for factor in self.data.factors) for i in every)

    @cached_property
    def grids(self) -> list[Factor]:
        """Factors that were not sampled."""
        return [factor for factor in self.data.factors if not factor.axis.sampled]

    @cached_property
    def maps(self) -> tuple[Factor, Factor, Factor | None] | None:
        """Axes of the heat maps: across, up, and the one that gives panels; None with fewer than two grid axes.

        Across and up are the numbers with most values; the axis with the largest effect among the rest gives panels.
        """
        if len(self.grids) < 2:
            return None
        numbers = sorted((f for f in self.grids if not f.axis.words), key=lambda f: -len(f.axis.values))
        across, up = (numbers + self.strongest([f for f in self.grids if f.axis.words]))[:2]
        rest = self.strongest([f for f in self.grids if f not in (across, up)])
        few = [f for f in rest if len(f.axis.values) <= MOST_MAPS] or rest
        return across, up, few[0] if few else None

    @cached_property
    def colouring(self) -> Factor | None:
        """Axis with the largest effect among those that can colour the points of the front's figure."""
        panels = () if self.front is None else self.front.axes
        several = self.strongest([one for one in self.data.factors if all(one is not used for used in panels)])
        return several[0] if several else None

    def strongest(self, factors: Sequence[Factor], most: int | None = None) -> list[Factor]:
        """Returns factors by their share of the variance of all measures, from the largest."""
        shares = {
            id(factor): sum(of_measure[i].share for of_measure in self.effects)
            for i, factor in enumerate(self.data.factors)
        }
        return sorted(factors, key=lambda factor: -shares[id(factor)])[:most]

    def slug(self, measure: int) -> str:
        """Returns a measure's name for file names; no two are the same."""
        names = [re.sub(r"[^a-z0-9]+", "-", one.name.lower()).strip("-")[:60] for one in self.data.measures]
        return names[measure] if names.count(names[measure]) == 1 else f"{names[measure]}-{measure + 1}"

    def _effect(self, factor: Factor, measure: int) -> Effect:
        data, axis = self.data, factor.axis
        of_points = data.means[measure].mean
        good = ~np.isnan(of_points)
        if axis.sampled:
            levels, places = _ranges(np.array(axis.values, dtype=np.float64)[factor.levels])
            means = statistics.means(levels[good], of_points[good], len(places))
        else:
            levels, places = factor.levels, axis.places
            means = data.over(data.values[:, measure], levels, len(places))
        share = statistics.explained(levels[good], of_points[good], len(places))
        about = data.measures[measure]
        return Effect(factor=factor, measure=about, means=means, places=places, of_points=of_points, share=share)

    def _front(self, wanted: Sequence[str] | None, by: Sequence[str] | None) -> Front | None:
        axes = self._configurations(by)
        names = [measure.name for measure in self.data.measures]
        if wanted is None and (not {"efficiency", "fairness"} <= set(names) or len(self.data.points) == 1):
            return None
        pair = ["efficiency", "fairness"] if wanted is None else list(wanted)
        if len(pair) != 2 or pair[0].removeprefix("-") == pair[1].removeprefix("-"):
            problem = (
                "is not two measures; for example efficiency,fairness, or efficiency,-cells.lost where less is better"
            )
            raise StoreError([Fault.of_option("front", ",".join(pair), problem)])
        faults = [
            Fault.of_option("front", name, f"is not among the measures of the report: {', '.join(names)}")
            for name in pair
            if name.removeprefix("-") not in names
        ]
        if faults:
            raise StoreError(faults)
        x, y = (names.index(name.removeprefix("-")) for name in pair)
        larger_x, larger_y = (not name.startswith("-") for name in pair)
        better = [_turned(self.data.means[i], larger) for i, larger in ((x, larger_x), (y, larger_y))]
        combined = combination(self.data, axes)
        levels = np.zeros(len(self.data.points), np.int64) if combined is None else combined.levels
        every = range(int(levels.max()) + 1)
        parts = tuple(self._part(np.flatnonzero(levels == level), level, better) for level in every)
        return Front(x=x, y=y, larger_x=larger_x, larger_y=larger_y, by=combined, axes=axes, parts=parts)

    def _part(self, own: NDArray[np.int64], level: int, better: Sequence[Means]) -> Part:
        """Returns the front of these points."""
        first, second = (one.of(own) for one in better)
        front = statistics.pareto_front(first.mean, second.mean)
        order = np.flatnonzero(front)
        order = order[np.lexsort((self.data.points[own[order]], -second.mean[order], -first.mean[order]))]
        sure = np.isnan(first.half) | np.isnan(second.half) | statistics.behind(first, second)
        return Part(level=level, order=own[order], doubtful=own[~front & ~sure])

    def _configurations(self, names: Sequence[str] | None) -> tuple[Factor, ...]:
        """Returns the axes whose combinations have a front each."""
        if names is None:
            factors = [one for one in self.grids if self.data.is_network(one)]
            # If every point is a network of its own, a front for each would say nothing.
            each = combination(self.data, factors)
            return tuple(factors) if each is not None and np.bincount(each.levels).max() > 1 else ()
        factors = [factor_of(self.data, name, "front-by") for name in names]
        return tuple(one for place, one in enumerate(factors) if all(one is not other for other in factors[:place]))


def combination(data: Data, factors: Sequence[Factor]) -> Factor | None:
    """Combines axes into one whose values are the combinations that have points; None for no axes."""
    if len(factors) < 2:
        return factors[0] if factors else None
    rows, levels = np.unique(np.stack([factor.levels for factor in factors]), axis=1, return_inverse=True)
    texts = tuple(", ".join(f.titled(int(level)) for f, level in zip(factors, row, strict=True)) for row in rows.T)
    name, called = (", ".join(names) for names in zip(*((f.axis.name, f.axis.worded) for f in factors), strict=True))
    axis = Axis(name=name, unit="", meaning="axes together", values=texts, called=called)
    return Factor(axis=axis, levels=levels.reshape(-1), scale=axis)


def factor_of(data: Data, name: str, option: str) -> Factor:
    """Returns the factor that an axis is, or belongs to; raises `StoreError` if there is none on a grid."""
    for factor in data.factors:
        if name in (factor.axis.name, *factor.axis.name.split(", ")) and not factor.axis.sampled:
            return factor
    known = [one for factor in data.factors if not factor.axis.sampled for one in factor.axis.name.split(", ")]
    raise StoreError([Fault.of_option(option, name, f"is not an axis that is varied on a grid; {among(name, known)}")])


def layout(analysis: Analysis, names: Sequence[str] | None, compared: Factor | None = None) -> Layout | None:
    """Chooses the axes of a figure of lines; None without names and with fewer than two grid axes.

    Args:
        analysis: Analysis of the store.
        names: Up to three axes: the one that lines go over, and those that give colours and panels.
        compared: The axis that gives colours without names.
    """
    if names is not None:
        return _named_layout(analysis.data, names)
    if len(analysis.grids) < 2:
        return None
    grids = analysis.strongest(analysis.grids)
    numbers = [factor for factor in analysis.grids if not factor.scale.words and factor is not compared]
    numbers.sort(key=lambda factor: -len(factor.axis.values))
    first = (numbers or [factor for factor in grids if factor is not compared])[0]
    # Networks give panels: a mean over them says nothing.
    rest = sorted((factor for factor in grids if factor is not first), key=analysis.data.is_network)
    by = compared or next((one for one in rest if len(one.axis.values) <= MOST_COLOURS), None)
    panel = next((one for one in rest[::-1] if one is not by and len(one.axis.values) <= MOST_PANELS), None)
    return Layout(over=first, by=by, panel=panel)


def _named_layout(data: Data, names: Sequence[str]) -> Layout:
    if not 1 <= len(names) <= 3:
        problem = (
            "is not one to three axes: over which, by which colours, by which panels; such as buffer,policy,network"
        )
        raise StoreError([Fault.of_option("lines", ",".join(names), problem)])
    factors = [factor_of(data, name, "lines") for name in names]
    for name, factor, most in zip(names, factors, (None, MOST_COLOURS, MOST_PANELS), strict=False):
        if sum(one is factor for one in factors) > 1:
            problem = "is there twice, or moves together with another of them"
            raise StoreError([Fault.of_option("lines", name, problem)])
        if most is not None and len(factor.axis.values) > most:
            problem = f"has {len(factor.axis.values)} values; {most} are drawn at most"
            raise StoreError([Fault.of_option("lines", name, problem)])
    first, *more = factors
    by, panel = (*more, None, None)[:2]
    return Layout(over=first, by=by, panel=panel)


def named(data: Data, point: int) -> str:
    """Names a point by its values."""
    texts = [f"{axis.worded} {words.valued(data.value(point, i), axis.unit)}" for i, axis in enumerate(data.axes)]
    return ", ".join(texts) or "the only point"


def _ranges(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Divides sampled values into ranges of equally many; returns each value's range, and the mean of each range."""
    distinct, place = np.unique(values, return_inverse=True)
    count = max(1, min(MOST_RANGES, len(distinct) // LEAST_POINTS))
    levels = np.minimum(place * count // len(distinct), count - 1)
    return levels, statistics.means(levels, values, count).mean


def _turned(means: Means, larger: bool) -> Means:
    return means if larger else Means(n=means.n, mean=-means.mean, sd=means.sd, half=means.half)
