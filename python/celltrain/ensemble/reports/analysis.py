"""Findings in one store and between two: Pareto fronts, differences from a baseline, changes since another store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing import words
from celltrain.drawing.figure import COLOURS
from celltrain.ensemble.cases import Measured
from celltrain.ensemble.reports.data import Data, ReportAxis, combination
from celltrain.errors import Fault, StoreError
from celltrain.running import statistics
from celltrain.running.statistics import Intervals, Means

#: Maximum number of values of the axis that determines the colours of lines, and of the axis that determines panels.
MOST_COLOURS, MOST_PANELS = len(COLOURS), 6


@dataclass(frozen=True, kw_only=True)
class Front:
    """Pareto front of each configuration: its points that no other of its points beats in both measures.

    Attributes:
        measures: Indices of the measures.
        larger: True for a measure if larger is better.
        by: Axis with a front for each of its values; None if there is one front for all points.
        axes: Axes that `by` combines.
        parts: For each value of `by`, the points on its front, from the best in the first measure.
        doubtful: Points that are not significantly worse than the front of their configuration.
    """

    measures: tuple[int, int]
    larger: tuple[bool, bool]
    by: ReportAxis | None
    axes: tuple[ReportAxis, ...]
    parts: tuple[NDArray[np.int64], ...]
    doubtful: NDArray[np.int64]

    @property
    def order(self) -> NDArray[np.int64]:
        """Points of all fronts, configuration by configuration."""
        return np.concatenate(self.parts)

    @property
    def places(self) -> NDArray[np.int64]:
        """Position of each point of `order` on its own Pareto front, starting at 1."""
        return np.concatenate([np.arange(len(part)) + 1 for part in self.parts])


def front(data: Data, wanted: Sequence[str] | None, by: Sequence[str] | None) -> Front | None:
    """Returns the Pareto fronts of two measures; None if no measures are given and the default ones make no front.

    Args:
        data: The runs.
        wanted: The two measures, with a leading `-` if smaller is better. When None, efficiency and fairness, if both
            were measured and there are several points.
        by: Axes; each combination of their values has its own front. When None, the axes that change the network; when
            empty, one front for all points.
    """
    axes = _configurations(data, by)
    names = [measure.name for measure in data.measures]
    if wanted is None and (not {"efficiency", "fairness"} <= set(names) or len(data.points) == 1):
        return None
    pair = ["efficiency", "fairness"] if wanted is None else list(wanted)
    bare = [name.removeprefix("-") for name in pair]
    if len(bare) != 2 or bare[0] == bare[1]:
        problem = "must be two measures, such as efficiency,fairness; write efficiency,-cells.lost if lower is better"
        raise StoreError.of_option("front", ",".join(pair), problem)
    known = f"is not among the measures of the report: {', '.join(names)}"
    if faults := [
        Fault.of_option("front", name, known) for name, own in zip(pair, bare, strict=True) if own not in names
    ]:
        raise StoreError(faults)
    x, y = map(names.index, bare)
    larger = (not pair[0].startswith("-"), not pair[1].startswith("-"))
    better = [
        one if is_larger else replace(one, mean=-one.mean)
        for one, is_larger in zip((data.means[x], data.means[y]), larger, strict=True)
    ]
    combined = combination(axes, ReportAxis.titled)
    levels = np.zeros(len(data.points), np.int64) if combined is None else combined.levels
    parts = [_part(data, np.flatnonzero(levels == level), better) for level in range(int(levels.max()) + 1)]
    fronts, doubtful = zip(*parts, strict=True)
    together = np.sort(np.concatenate(doubtful))
    return Front(measures=(x, y), larger=larger, by=combined, axes=axes, parts=fronts, doubtful=together)


def _part(data: Data, own: NDArray[np.int64], better: Sequence[Means]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the front among the given points, and the points that are not significantly worse."""
    first, second = (one.of(own) for one in better)
    best = statistics.pareto_front(first.mean, second.mean)
    order = np.flatnonzero(best)
    order = order[np.lexsort((data.points[own[order]], -second.mean[order], -first.mean[order]))]
    sure = np.isnan(first.half) | np.isnan(second.half) | statistics.behind(first, second)
    return own[order], own[~best & ~sure]


def _configurations(data: Data, names: Sequence[str] | None) -> tuple[ReportAxis, ...]:
    """Returns the axes for which each combination of values has its own front."""
    if names is not None:
        return tuple(dict.fromkeys(data.factor(name, "front-by") for name in names))
    axes = tuple(axis for axis in data.grids if data.is_network(axis))
    # If every point has a different network, each front would consist of a single point.
    each = combination(axes, ReportAxis.titled)
    return axes if each is not None and np.bincount(each.levels).max() > 1 else ()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Axes used in a line plot.

    Attributes:
        over: Horizontal axis.
        by: Axis that determines the colours.
        panel: Axis that determines the panels.
    """

    over: ReportAxis
    by: ReportAxis | None = None
    panel: ReportAxis | None = None


def layout(data: Data, names: Sequence[str] | None, compared: ReportAxis | None = None) -> Layout | None:
    """Chooses the axes of a line plot. Returns None if no names are given and there are fewer than two grid axes.

    Args:
        data: The runs.
        names: Up to three axes: the x axis, and those that determine colours and panels.
        compared: The axis that determines the colours if no names are given.
    """
    if names is not None:
        return _named_layout(data, names)
    if len(data.grids) < 2:
        return None
    grids = data.strongest(data.grids)
    numbers = [axis for axis in data.grids if not (axis.first or axis).words and axis is not compared]
    numbers.sort(key=lambda axis: -len(axis.values))
    over = (numbers or [axis for axis in grids if axis is not compared])[0]
    # Prefer networks for panels, as a mean over different networks is meaningless.
    rest = sorted((axis for axis in grids if axis is not over), key=data.is_network)
    by = compared or next((axis for axis in rest if len(axis.values) <= MOST_COLOURS), None)
    panel = next((axis for axis in rest[::-1] if axis is not by and len(axis.values) <= MOST_PANELS), None)
    return Layout(over=over, by=by, panel=panel)


def _named_layout(data: Data, names: Sequence[str]) -> Layout:
    if not 1 <= len(names) <= 3:
        problem = "is not a list of one to three axes (for x, colours and panels), such as buffer,policy,network"
        raise StoreError.of_option("lines", ",".join(names), problem)
    axes = [data.factor(name, "lines") for name in names]
    for name, axis, most in zip(names, axes, (len(data.points), MOST_COLOURS, MOST_PANELS), strict=False):
        problem = ""
        if axes.count(axis) > 1:
            problem = "appears twice, or is paired with another of these axes; leave it out"
        elif len(axis.values) > most:
            problem = f"has {len(axis.values)} values; at most {most} can be drawn"
        if problem:
            raise StoreError.of_option("lines", name, problem)
    return Layout(**dict(zip(("over", "by", "panel"), axes, strict=False)))


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Differences from one value of an axis, between runs with the same seed and the same values of all other axes.

    Attributes:
        data: The runs.
        axis: The axis.
        level: Index of the value among the values of the axis.
    """

    data: Data
    axis: ReportAxis
    level: int

    @property
    def name(self) -> str:
        """The value."""
        return self.axis.label(self.level)

    @property
    def others(self) -> list[int]:
        """Indices of the values other than the baseline."""
        return [level for level in range(len(self.axis.values)) if level != self.level]

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Runs by measures: each run minus its partner. NaN for runs of the baseline or without a partner."""
        data = self.data
        others = [axis.levels for axis in data.factors if axis is not self.axis]
        rows = np.stack([*others, np.zeros(len(data.points), np.int64)])
        group = np.unique(rows, axis=1, return_inverse=True)[1].reshape(-1)
        own = self.axis.levels == self.level
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
        """Mean difference of each value of the axis, over all other axes, by measure."""
        return tuple(self.data.over(column, self.axis.levels, len(self.axis.values)) for column in self.values.T)

    def counts(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yields each measure and value with counts of points: significantly above, below, and with an interval."""
        for measure, means in enumerate(self.of_points):
            for level in self.others:
                known = (self.axis.levels == level) & ~np.isnan(means.half)
                above, below = self._significant(measure, level)
                yield measure, level, int(above.sum()), int(below.sum()), int(known.sum())

    def warnings(self) -> Iterator[str]:
        """Yields a warning for each value that lies above the baseline at some points and below it at others."""
        for i, level, at_above, at_below, _ in self.counts():
            if not at_above or not at_below:
                continue
            where = [f" at {words.counted(count, 'point')}" for count in (at_above, at_below)]
            if separate := self._separate(*self._significant(i, level)):
                where = [f" with {one}" for one in separate]
            value = f"{words.called(self.data.measures[i], unit=False)}: {self.axis.label(level)}"
            places = f"is above {self.name}{where[0]}, and below it{where[1]}"
            yield f"{value} {places}: a mean over these points says little"

    def _significant(self, measure: int, level: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Returns the points of a value whose difference is significantly above zero, and those significantly below."""
        means, mine = self.of_points[measure], self.axis.levels == level
        with np.errstate(invalid="ignore"):
            return mine & (means.mean > means.half), mine & (means.mean < -means.half)

    def _separate(self, above: NDArray[np.bool_], below: NDArray[np.bool_]) -> tuple[str, str] | None:
        """Returns the values of the only axis that separates points above the baseline from those below, or None."""
        found = []
        for axis in self.data.factors:
            sides = [np.unique(axis.levels[side]) for side in (above, below)]
            if axis is not self.axis and not np.isin(sides[0], sides[1]).any():
                first, second = (" or ".join(axis.label(level) for level in side.tolist()) for side in sides)
                found.append((f"{axis.worded} = {first}", f"{axis.worded} = {second}"))
        return found[0] if len(found) == 1 else None


def baseline(data: Data, text: str) -> Baseline:
    """Parses `AXIS=VALUE`; raises `StoreError` for an unknown axis or value."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not sign:
        raise StoreError.of_option("baseline", text, "is not AXIS=VALUE, such as policy=tail_drop")
    axis = data.factor(name, "baseline")
    known = [axis.label(level) for level in range(len(axis.values))]
    plain = [str(one) if isinstance(one, str) else words.plain(one) for one in (axis.first or axis).values]
    for names in (known, plain):
        if value in names:
            return Baseline(data=data, axis=axis, level=names.index(value))
    raise StoreError.of_option("baseline", value, f"is not a value of {name}; choose from {', '.join(known)}")


@dataclass(frozen=True, kw_only=True)
class Moved:
    """Change of a measure between two stores, for each point in both.

    Attributes:
        measure: The measure.
        first: Means in the first store.
        second: Means in the second store.
        differences: Second mean minus the first.
        paired: True if the point's difference is paired by seed; otherwise the interval is Welch's.
        bounds: By store: True for means that are only lower bounds.
    """

    measure: Measured
    first: Means
    second: Means
    differences: Intervals
    paired: NDArray[np.bool_]
    bounds: NDArray[np.bool_]

    @property
    def interval(self) -> NDArray[np.str_]:
        """Kind of interval of each difference."""
        return np.where(self.paired, "paired", "Welch")

    @property
    def beyond(self) -> int:
        """Number of significant differences."""
        return int(self.differences.beyond.sum())

    @property
    def order(self) -> NDArray[np.int64]:
        """Indices of the points, the most significant change first."""
        differences = self.differences
        with np.errstate(invalid="ignore", divide="ignore"):
            sureness = np.abs(differences.mean) / differences.half
        sureness = np.where(differences.mean == 0, 0.0, np.nan_to_num(sureness, nan=-1.0, posinf=np.inf))
        return np.argsort(-sureness, kind="stable")


@dataclass(frozen=True, kw_only=True)
class StoreComparison:
    """Two stores with the same axes, point by point.

    Attributes:
        first: Name of the first store.
        second: Name of the second store.
        data: Data of the first store.
        points: Points in both stores, as indices into `data`.
        measures: Changes of the measures.
        only_first: Points in the first store only, in words.
        only_second: Points in the second store only, in words.
    """

    first: str
    second: str
    data: Data
    points: NDArray[np.int64]
    measures: tuple[Moved, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def paired(self) -> int:
        """Number of points that have the same seeds in both stores."""
        return int(self.measures[0].paired.sum()) if self.measures else 0

    @property
    def tried(self) -> int:
        """Number of differences with an interval."""
        return sum(int((~np.isnan(moved.differences.half)).sum()) for moved in self.measures)

    @property
    def beyond(self) -> int:
        """Number of significant differences."""
        return sum(moved.beyond for moved in self.measures)


def compare(first: Data, second: Data, names: tuple[str, str]) -> StoreComparison:
    """Compares two stores; raises `StoreError` if their axes or measures differ."""
    if faults := list(_differences(first, second, names)):
        raise StoreError(faults)
    axes = [axis.name for axis in first.axes]
    keys, others = _keys(first, axes), _keys(second, axes)
    places, known = {key: place for place, key in enumerate(others)}, set(keys)
    both = np.array([place for place, key in enumerate(keys) if key in places], dtype=np.int64)
    if not len(both):
        problem = f"have no point in common: they have different values of {', '.join(axes) or 'everything'}"
        raise StoreError.of_file(f"{names[0]} and {names[1]}", problem)
    other = np.array([places[keys[place]] for place in both], dtype=np.int64)
    measures = [measure.name for measure in second.measures]
    order = [measures.index(measure.name) for measure in first.measures]
    point, values = _aligned([(first, both, list(range(len(order)))), (second, other, order)])
    bounds = np.stack([first.bounds[both], second.bounds[other][:, order]]) > 0
    return StoreComparison(
        first=names[0],
        second=names[1],
        data=first,
        points=both,
        measures=tuple(_moved(one, point, values[..., i], bounds[..., i]) for i, one in enumerate(first.measures)),
        only_first=tuple(first.named(place) for place, key in enumerate(keys) if key not in places),
        only_second=tuple(second.named(place) for place, key in enumerate(others) if key not in known),
    )


def _aligned(
    sides: Sequence[tuple[Data, NDArray[np.int64], Sequence[int]]],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Returns the point of each run that either store has, and the values by store, run and measure.

    Args:
        sides: The data of each store, its points, and its measures. Points with the same index are compared.
    """
    points, seeds, values = [], [], []
    for data, own, measures in sides:
        place = np.full(len(data.points), -1)
        place[own] = np.arange(len(own))
        point = place[data.point]
        points.append(point[point >= 0])
        seeds.append(data.seed[point >= 0])
        values.append(data.values[:, measures][point >= 0])
    different, seed = np.unique(np.concatenate(seeds), return_inverse=True)
    runs, places = np.unique(np.concatenate(points) * len(different) + seed, return_inverse=True)
    made = np.full((2, len(runs), len(sides[0][2])), np.nan)
    for aligned, of_store, at in zip(made, values, np.split(places, [len(values[0])]), strict=True):
        aligned[at] = of_store
    return runs // max(len(different), 1), made


def _moved(
    measure: Measured, point: NDArray[np.int64], values: NDArray[np.float64], bounds: NDArray[np.bool_]
) -> Moved:
    """Returns the change of a measure, from its values by store and run, and lower bounds by store and point."""
    count = bounds.shape[1]
    first, second, by_pair = (statistics.means(point, own, count) for own in (*values, values[1] - values[0]))
    # A point is paired if both stores have results for exactly the same seeds at this point.
    paired = (by_pair.n == first.n) & (by_pair.n == second.n) & (by_pair.n > 0)
    welch = statistics.welch(first, second)
    mean, half = (np.where(paired, getattr(by_pair, end), getattr(welch, end)) for end in ("mean", "half"))
    differences = Intervals(mean=mean, half=half)
    return Moved(measure=measure, first=first, second=second, differences=differences, paired=paired, bounds=bounds)


def _differences(first: Data, second: Data, names: tuple[str, str]) -> Iterator[Fault]:
    both = f"{names[0]} and {names[1]}"
    for what in ("axes", "measures"):
        own, others = ({one.name for one in getattr(data, what)} for data in (first, second))
        if own != others:
            alone = zip(names, (own - others, others - own), strict=True)
            told = "; ".join(f"{store} alone has {', '.join(sorted(more))}" for store, more in alone if more)
            problem = f"cannot be compared: their {what} differ ({told})"
            if what == "measures" and own & others:
                problem += "; use --measures to select measures that both have"
            yield Fault.of_file(both, problem)
    one, other = (
        {axis.name: axis.unit for axis in data.axes} | {measure.name: measure.unit for measure in data.measures}
        for data in (first, second)
    )
    for name in sorted(one.keys() & other.keys()):
        if one[name] != other[name]:
            problem = f"cannot be compared: {name} is in {one[name] or 'words'} and in {other[name] or 'words'}"
            yield Fault.of_file(both, problem)


def _keys(data: Data, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the settings of each point as texts, with numbers rounded to twelve digits, to match two stores."""
    axes = {axis.name: axis for axis in data.axes}
    columns = [
        [str(axis.values[level]) if axis.words else f"{axis.values[level]:.12g}" for level in axis.levels.tolist()]
        for axis in map(axes.__getitem__, names)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * len(data.points)
