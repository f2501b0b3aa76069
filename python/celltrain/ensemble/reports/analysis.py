"""What a report says of a store's runs: main effects, the front of two measures, and what moved between two stores."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.pages import words
from celltrain.ensemble.reports.data import Axis, Data, Factor, Measure
from celltrain.errors import Fault, StoreError
from celltrain.running import statistics
from celltrain.running.statistics import Differences, Means

#: Ranges a sampled axis is cut into: so many points at least in each, so many ranges at most.
LEAST_POINTS = 4
MOST_RANGES = 8
#: Values of a third axis up to which it gives panels; axes with more are taken when there is no other.
MOST_PANELS = 12


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What an axis does to a measure."""

    factor: Factor
    measure: Measure
    means: Means
    """For each value of the axis, or range of a sampled one, the mean over its points."""
    places: NDArray[np.float64]
    """The values, or the middle of each range; the numbers from 0 where the values are words."""
    of_points: NDArray[np.float64]
    """The mean of every point."""
    share: float
    """Of the variance of the points' means, the part that lies between the values, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The front of one configuration: of the points that no other point of it beats in two measures."""

    level: int
    """Which configuration: its place among the values of `Front.by`; 0 where there is one front for all."""
    order: NDArray[np.int64]
    """The points of the front, from the best in the first measure."""
    doubtful: NDArray[np.int64]
    """The points that their intervals do not tell from the front."""


@dataclass(frozen=True, kw_only=True)
class Front:
    """The points no other beats in two measures, for each configuration."""

    x: int
    y: int
    """The measures."""
    larger_x: bool
    larger_y: bool
    """Whether larger is better."""
    by: Factor | None
    """Each of its values has a front of its own; None where there is one for all points."""
    axes: tuple[Factor, ...]
    """What `by` is made of."""
    parts: tuple[Part, ...]

    @property
    def order(self) -> NDArray[np.int64]:
        """The points of all fronts, one configuration after the other."""
        return np.concatenate([part.order for part in self.parts])

    @property
    def doubtful(self) -> NDArray[np.int64]:
        """The points that their intervals do not tell from the front of their configuration."""
        return np.sort(np.concatenate([part.doubtful for part in self.parts]))

    @property
    def places(self) -> NDArray[np.int64]:
        """For each of `order` its place on its own front, from 1."""
        return np.concatenate([np.arange(len(part.order)) + 1 for part in self.parts])


class Analysis:
    """Everything a report says of one store.

    Args:
        data: The runs.
        front: The two measures of the Pareto front, one of which larger is better; `-` before one of which smaller is. The
            two are efficiency and fairness when None; then there is none where these were not measured, or for one point.
        front_by: Axes whose combinations have a front each; when None those that make another network, and one front for
            all where this is empty.
    """

    def __init__(self, data: Data, front: Sequence[str] | None = None, front_by: Sequence[str] | None = None) -> None:
        self.data = data
        self.front = self._front(front, front_by)

    @cached_property
    def effects(self) -> tuple[tuple[Effect, ...], ...]:
        """For each measure what each factor does to it."""
        return tuple(
            tuple(self._effect(factor, measure) for factor in self.data.factors)
            for measure in range(len(self.data.measures))
        )

    @cached_property
    def layout(self) -> tuple[Factor, Factor, Factor | None] | None:
        """The axes of the heat maps: across, up, and the one that gives panels; None below two axes with a grid.

        Across and up are the numbers with most values, for words do well as panels; panels go to what matters most.
        """
        grids = [factor for factor in self.data.factors if not factor.axis.sampled]
        if len(grids) < 2:
            return None
        numbers = sorted((f for f in grids if not f.axis.words), key=lambda f: -len(f.axis.values))
        named = self.strongest([f for f in grids if f.axis.words])
        across, up = (numbers + named)[:2]
        rest = self.strongest([f for f in grids if f not in (across, up)])
        few = [f for f in rest if len(f.axis.values) <= MOST_PANELS] or rest
        return across, up, few[0] if few else None

    @cached_property
    def colouring(self) -> Factor | None:
        """The axis that tells the points of the front's figure apart best."""
        panels = () if self.front is None else self.front.axes
        several = self.strongest([one for one in self.data.factors if all(one is not used for used in panels)])
        return several[0] if several else None

    def strongest(self, factors: Sequence[Factor], most: int | None = None) -> list[Factor]:
        """The factors by the share of the differences they make, all measures together, from the largest."""
        shares = {
            id(factor): sum(of_measure[i].share for of_measure in self.effects)
            for i, factor in enumerate(self.data.factors)
        }
        return sorted(factors, key=lambda factor: -shares[id(factor)])[:most]

    def slug(self, measure: int) -> str:
        """A measure's name as part of a file's; no two are the same."""
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
            levels, count = factor.levels, len(axis.values)
            places = np.arange(count, dtype=np.float64) if axis.words else np.array(axis.values, dtype=np.float64)
            known = ~np.isnan(data.values[:, measure])
            point = data.point[known]
            means = statistics.effects(levels[point], point, data.seed[known], data.values[known, measure], count)
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
        parts = tuple(
            self._part(np.flatnonzero(levels == level), level, better) for level in range(int(levels.max()) + 1)
        )
        return Front(x=x, y=y, larger_x=larger_x, larger_y=larger_y, by=combined, axes=axes, parts=parts)

    def _part(self, own: NDArray[np.int64], level: int, better: Sequence[Means]) -> Part:
        """The front of these points alone."""
        first, second = (one.of(own) for one in better)
        front = statistics.pareto_front(first.mean, second.mean)
        order = np.flatnonzero(front)
        order = order[np.lexsort((self.data.points[own[order]], -second.mean[order], -first.mean[order]))]
        sure = np.isnan(first.half) | np.isnan(second.half) | statistics.behind(first, second)
        return Part(level=level, order=own[order], doubtful=own[~front & ~sure])

    def _configurations(self, said: Sequence[str] | None) -> tuple[Factor, ...]:
        """The axes whose combinations have a front each."""
        if said is None:
            factors = [one for one in self.data.factors if not one.axis.sampled and self.data.is_network(one)]
            # Where every point is a network of its own, a front for each would say nothing.
            each = combination(self.data, factors)
            return tuple(factors) if each is not None and np.bincount(each.levels).max() > 1 else ()
        factors = [factor_of(self.data, name, "front-by") for name in said]
        return tuple(one for place, one in enumerate(factors) if all(one is not other for other in factors[:place]))


def combination(data: Data, factors: Sequence[Factor]) -> Factor | None:
    """Axes as one whose values are those combinations that have points; None for no axes."""
    if len(factors) < 2:
        return factors[0] if factors else None
    rows, levels = np.unique(np.stack([factor.levels for factor in factors]), axis=1, return_inverse=True)
    texts = tuple(
        ", ".join(titled(factor, int(level)) for factor, level in zip(factors, row, strict=True)) for row in rows.T
    )
    name, called = (", ".join(names) for names in zip(*((f.axis.name, f.axis.worded) for f in factors), strict=True))
    axis = Axis(name=name, unit="", meaning="axes together", values=texts, called=called)
    return Factor(axis=axis, levels=levels.reshape(-1), scale=axis)


def factor_of(data: Data, name: str, option: str) -> Factor:
    """The factor that an axis is, or belongs to; raises `StoreError`."""
    for factor in data.factors:
        if name in (factor.axis.name, *factor.axis.name.split(", ")) and not factor.axis.sampled:
            return factor
    known = [one for factor in data.factors if not factor.axis.sampled for one in factor.axis.name.split(", ")]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    there = f"There are {', '.join(known)}" if known else "Nothing is varied on a grid"
    raise StoreError([Fault.of_option(option, name, f"is not an axis that is varied on a grid; {hint}{there}")])


def label(factor: Factor, level: int) -> str:
    """A value of an axis with its unit."""
    return words.valued(factor.axis.values[level], factor.axis.unit)


def titled(factor: Factor, level: int) -> str:
    """A value of an axis where nothing says which axis: numbers have its name before them."""
    return label(factor, level) if factor.axis.words else f"{factor.axis.worded} {label(factor, level)}"


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What a measure did between two stores, for each point both have."""

    first: Means
    second: Means
    differences: Differences
    paired: NDArray[np.bool_]
    """Whether the point's difference is that of pairs of one seed; by Welch's interval otherwise."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two stores of the same axes, point by point."""

    first: str
    second: str
    """What the stores are called."""
    data: Data
    """Of the first store."""
    points: NDArray[np.int64]
    """The points both have, as places in `data`."""
    measures: tuple[tuple[Measure, Moved], ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    """The points that only one of them has, in words."""


def compare(first: Data, second: Data, names: tuple[str, str]) -> Comparison:
    """What moved from one store to another; raises `StoreError` where they have other axes or measures."""
    faults = list(_differences(first, second, names))
    if faults:
        raise StoreError(faults)
    axes = [axis.name for axis in first.axes]
    keys = [_keys(data, axes) for data in (first, second)]
    places = {key: place for place, key in enumerate(keys[1])}
    both = np.array([place for place, key in enumerate(keys[0]) if key in places], dtype=np.int64)
    other = np.array([places[keys[0][place]] for place in both], dtype=np.int64)
    if not len(both):
        problem = f"have no point in common; each has its own values of {', '.join(axes) or 'everything'}"
        raise StoreError([Fault.of_file(f"{names[0]} and {names[1]}", problem)])
    of_second = {measure.name: i for i, measure in enumerate(second.measures)}
    moved = tuple(
        (measure, _moved((first, both, i), (second, other, of_second[measure.name])))
        for i, measure in enumerate(first.measures)
    )
    known = set(keys[0])
    return Comparison(
        first=names[0],
        second=names[1],
        data=first,
        points=both,
        measures=moved,
        only_first=tuple(named(first, place) for place, key in enumerate(keys[0]) if key not in places),
        only_second=tuple(named(second, place) for place, key in enumerate(keys[1]) if key not in known),
    )


def named(data: Data, point: int) -> str:
    """A point by its values."""
    texts = [f"{axis.worded} {words.valued(data.value(point, i), axis.unit)}" for i, axis in enumerate(data.axes)]
    return ", ".join(texts) or "the only point"


def _moved(first: tuple[Data, NDArray[np.int64], int], second: tuple[Data, NDArray[np.int64], int]) -> Moved:
    sides = []
    for data, points, measure in (first, second):
        place = np.full(len(data.points), -1)
        place[points] = np.arange(len(points))
        values = data.values[:, measure]
        good = ~np.isnan(values) & (place[data.point] >= 0)
        order = np.lexsort((data.seed[good], place[data.point[good]]))
        sides.append((place[data.point[good]][order], data.seed[good][order], values[good][order]))
    count = len(first[1])
    (one, one_seeds, one_values), (two, two_seeds, two_values) = sides
    means = [statistics.means(point, values, count) for point, _, values in sides]
    differences = statistics.welch(*means)
    difference, half = differences.difference.copy(), differences.half.copy()
    # A point is paired where both stores have just the same seeds of it.
    seeds, code = np.unique(np.concatenate([one_seeds, two_seeds]), return_inverse=True)
    runs = [point * len(seeds) + own for (point, _, _), own in zip(sides, np.split(code, [len(one)]), strict=True)]
    shared = np.bincount(np.intersect1d(runs[0], runs[1]) // max(len(seeds), 1), minlength=count)
    paired = (shared == means[0].n) & (shared == means[1].n) & (shared > 0)
    by_pair = statistics.paired(one[paired[one]], one_values[paired[one]], two_values[paired[two]], count)
    difference[paired], half[paired] = by_pair.difference[paired], by_pair.half[paired]
    return Moved(
        first=means[0], second=means[1], differences=Differences(difference=difference, half=half), paired=paired
    )


def _differences(first: Data, second: Data, names: tuple[str, str]) -> Iterator[Fault]:
    for what, own, others in (
        ("axes", {axis.name for axis in first.axes}, {axis.name for axis in second.axes}),
        ("measures", {measure.name for measure in first.measures}, {measure.name for measure in second.measures}),
    ):
        if own != others:
            told = [
                f"{store} alone has {', '.join(sorted(more))}"
                for store, more in ((names[0], own - others), (names[1], others - own))
                if more
            ]
            choose = "; choose what both have with --measures" if what == "measures" and own & others else ""
            problem = f"cannot be compared: their {what} differ ({'; '.join(told)}){choose}"
            yield Fault.of_file(f"{names[0]} and {names[1]}", problem)
    one, other = (
        {axis.name: axis.unit for axis in data.axes} | {measure.name: measure.unit for measure in data.measures}
        for data in (first, second)
    )
    for name in sorted(one.keys() & other.keys()):
        if one[name] != other[name]:
            problem = f"cannot be compared: {name} is in {one[name] or 'words'} and in {other[name] or 'words'}"
            yield Fault.of_file(f"{names[0]} and {names[1]}", problem)


def _keys(data: Data, axes: Sequence[str]) -> list[tuple[object, ...]]:
    """What tells each point from the others, whatever its number; numbers to twelve digits."""
    places = [[axis.name for axis in data.axes].index(name) for name in axes]
    texts = [[v if isinstance(v, str) else f"{v:.12g}" for v in data.axes[i].values] for i in places]
    return [
        tuple(of_axis[level] for of_axis, level in zip(texts, row, strict=True))
        for row in data.levels[:, places].tolist()
    ]


def _ranges(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cuts sampled values into ranges of equally many; each value's range, and the mean of each."""
    distinct, place = np.unique(values, return_inverse=True)
    count = max(1, min(MOST_RANGES, len(distinct) // LEAST_POINTS))
    levels = np.minimum(place * count // len(distinct), count - 1)
    return levels, statistics.means(levels, values, count).mean


def _turned(means: Means, larger: bool) -> Means:
    return means if larger else Means(n=means.n, mean=-means.mean, sd=means.sd, half=means.half)
