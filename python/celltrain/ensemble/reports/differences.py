"""Differences within a store, from one value of an axis, and between two stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.pages import words
from celltrain.ensemble.reports.analysis import factor_of, named
from celltrain.ensemble.reports.data import Data, Factor
from celltrain.ensemble.table import Measured
from celltrain.errors import Fault, StoreError
from celltrain.running import statistics
from celltrain.running.statistics import Differences, Means


@dataclass(frozen=True)
class Baseline:
    """Differences from one value of an axis, between runs with the same seed and the same values of all other axes."""

    data: Data
    factor: Factor
    level: int
    """Place of the value among the values of the axis."""

    @property
    def name(self) -> str:
        """The value."""
        return self.factor.label(self.level)

    @property
    def others(self) -> list[int]:
        """Places of the other values."""
        return [level for level in range(len(self.factor.axis.values)) if level != self.level]

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Runs by measures: each run less its partner; NaN for runs of the baseline, and without a partner."""
        data = self.data
        others = [factor.levels for factor in data.factors if factor is not self.factor]
        rows = np.stack([*others, np.zeros(len(data.points), np.int64)])
        group = np.unique(rows, axis=1, return_inverse=True)[1].reshape(-1)
        own = self.factor.levels == self.level
        base = {int(key): point for point, key in enumerate(group) if own[point]}
        runs = {key: run for run, key in enumerate(zip(data.point.tolist(), data.seed.tolist(), strict=True))}
        partners = [-1 if own[point] else runs.get((base.get(int(group[point]), -1), seed), -1) for point, seed in runs]
        partner = np.array(partners, dtype=np.int64)
        more: NDArray[np.float64] = np.where(partner[:, None] < 0, np.nan, data.values - data.values[partner])
        return more

    @cached_property
    def of_points(self) -> tuple[Means, ...]:
        """Mean difference of every point, by measure."""
        return self.data.means_of(self.values)

    @cached_property
    def of_levels(self) -> tuple[Means, ...]:
        """Mean difference of each value of the axis over all other axes, by measure."""
        count = len(self.factor.axis.values)
        return tuple(self.data.over(column, self.factor.levels, count) for column in self.values.T)

    def beyond(self, measure: int, level: int) -> tuple[int, int, int]:
        """Counts the points of a value with a significant positive difference, a negative one, and any interval."""
        above, below = self._significant(measure, level)
        known = (self.factor.levels == level) & ~np.isnan(self.of_points[measure].half)
        return int(above.sum()), int(below.sum()), int(known.sum())

    def warnings(self) -> Iterator[str]:
        """Yields a warning for each value that is above the baseline at some points, and below it at others."""
        for i, measure in enumerate(self.data.measures):
            for level in self.others:
                above, below = self._significant(i, level)
                if not above.any() or not below.any():
                    continue
                where = [f" at {words.counted(int(side.sum()), 'point')}" for side in (above, below)]
                if separate := self._separate(above, below):
                    where = [f" with {one}" for one in separate]
                value = f"{words.measure(measure.name)}: {self.factor.label(level)}"
                places = f"is above {self.name}{where[0]}, and below it{where[1]}"
                yield f"{value} {places}: a mean over these points says little"

    def _significant(self, measure: int, level: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Returns the points of a value whose interval of the difference is above zero, and those whose interval is below."""
        means, mine = self.of_points[measure], self.factor.levels == level
        with np.errstate(invalid="ignore"):
            return mine & (means.mean > means.half), mine & (means.mean < -means.half)

    def _separate(self, above: NDArray[np.bool_], below: NDArray[np.bool_]) -> tuple[str, str] | None:
        """Returns values of the only axis that separates the points above from those below; None if there is none."""
        found = []
        for factor in self.data.factors:
            sides = [np.unique(factor.levels[side]) for side in (above, below)]
            if factor is not self.factor and not np.isin(sides[0], sides[1]).any():
                first, second = (" or ".join(factor.label(level) for level in side.tolist()) for side in sides)
                found.append((f"{factor.axis.worded} = {first}", f"{factor.axis.worded} = {second}"))
        return found[0] if len(found) == 1 else None


def baseline(data: Data, text: str) -> Baseline:
    """Parses `AXIS=VALUE`; raises `StoreError` if there is no such axis or value."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not sign:
        problem = "is not AXIS=VALUE, such as policy=tail_drop"
        raise StoreError([Fault.of_option("baseline", text, problem)])
    factor = factor_of(data, name, "baseline")
    known = [factor.label(level) for level in range(len(factor.axis.values))]
    plain = [str(one) if isinstance(one, str) else words.plain(one) for one in factor.scale.values]
    for names in (known, plain):
        if value in names:
            return Baseline(data, factor, names.index(value))
    raise StoreError([Fault.of_option("baseline", value, f"is not a value of {name}; there are {', '.join(known)}")])


@dataclass(frozen=True, kw_only=True)
class Moved:
    """Change of a measure between two stores, for each point in both."""

    first: Means
    second: Means
    differences: Differences
    paired: NDArray[np.bool_]
    """True if the point's difference is paired by seed; its interval is Welch's otherwise."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two stores with the same axes, point by point."""

    first: str
    second: str
    """Names of the stores."""
    data: Data
    """Data of the first store."""
    points: NDArray[np.int64]
    """Points in both stores, as places in `data`."""
    measures: tuple[tuple[Measured, Moved], ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    """Points in one store only, in words."""

    @property
    def paired(self) -> int:
        """Number of points with the same seeds in both stores."""
        return int(self.measures[0][1].paired.sum()) if self.measures else 0

    @property
    def tried(self) -> int:
        """Number of differences with an interval."""
        return sum(int((~np.isnan(moved.differences.half)).sum()) for _, moved in self.measures)

    @property
    def beyond(self) -> int:
        """Number of differences beyond the seeds' spread."""
        return sum(int(moved.differences.beyond.sum()) for _, moved in self.measures)


def compare(first: Data, second: Data, names: tuple[str, str]) -> Comparison:
    """Compares two stores; raises `StoreError` if their axes or measures differ."""
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
    # A point is paired if both stores have exactly the same seeds for it.
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
    """Returns the settings of each point, independent of its number, with numbers to twelve digits."""
    places = [[axis.name for axis in data.axes].index(name) for name in axes]
    texts = [[v if isinstance(v, str) else f"{v:.12g}" for v in data.axes[i].values] for i in places]
    return [
        tuple(of_axis[level] for of_axis, level in zip(texts, row, strict=True))
        for row in data.levels[:, places].tolist()
    ]
