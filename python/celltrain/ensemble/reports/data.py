"""Data of a report: the runs of any store as arrays, and the effects of its axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing import words
from celltrain.ensemble.cases import Measured, checked_labels
from celltrain.ensemble.plan import tcps
from celltrain.ensemble.plan.reader import labels_of
from celltrain.ensemble.plan_warnings import NETWORKS
from celltrain.ensemble.store.database import axes_of
from celltrain.errors import CelltrainError, Fault, StoreError
from celltrain.model.grids import Grid
from celltrain.model.network import short_tcp, tcp_line
from celltrain.running import statistics
from celltrain.running.statistics import Means
from celltrain.text import among, shown

if TYPE_CHECKING:
    from celltrain.ensemble.store import Store

#: Ratio of largest to smallest value above which an axis is logarithmic, unless its values are evenly spaced.
WIDE = 20.0
#: Maximum number of different values in a plan's `[points]` for an axis to be drawn as a grid.
MOST_LISTED = 12
#: Minimum number of points in each range of a sampled axis, and maximum number of ranges.
LEAST_POINTS, MOST_RANGES = 4, 8
#: Maximum number of values of the axis that determines the panels of heat maps, if there is a choice of axes.
MOST_MAPS = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportAxis:
    """A parameter of the sweep, or several parameters that change together.

    Attributes:
        name: Name of the axis, or names separated by commas.
        unit: Empty if the values are words; `1` for pure numbers.
        meaning: Path into the scenario.
        worded: Name for display, without a unit.
        called: The user's label, with a unit; empty if there is none.
        values: Distinct values: numbers in ascending order, words in the order of the plan.
        levels: Index of each point's value among the values.
        sampled: True if the values were drawn at random, so that they do not form a grid.
        first: First of several axes that move together. Its values may be numbers.
    """

    name: str
    unit: str
    meaning: str
    worded: str
    values: tuple[float | str, ...]
    levels: NDArray[np.int64]
    sampled: bool = False
    first: ReportAxis | None = None
    called: str = ""

    @property
    def names(self) -> list[str]:
        """Names of all axes that change together."""
        return self.name.split(", ")

    @property
    def words(self) -> bool:
        """True if the values are words."""
        return any(isinstance(value, str) for value in self.values)

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """The values if the values are numbers; 0, 1, ... for words."""
        return np.arange(len(self.values), dtype=np.float64) if self.words else np.array(self.values, dtype=np.float64)

    @cached_property
    def logarithmic(self) -> bool:
        """True if the ratios between values are more even than their differences."""
        values = self.places
        if self.words or len(values) < 3 or values[0] <= 0 or values[-1] < WIDE * values[0]:
            return False
        steps, ratios = np.diff(values), np.diff(np.log(values))
        return bool(np.std(ratios) / np.mean(ratios) < np.std(steps) / np.mean(steps))

    def label(self, level: int) -> str:
        """Formats a value with its unit; random values have fewer digits."""
        return words.valued(self.values[level], self.unit, 4 if self.sampled else 6)

    def titled(self, level: int) -> str:
        """Formats a value for a title that does not name the axis. Numbers are preceded by the axis's name."""
        return self.label(level) if self.words else f"{self.worded} {self.label(level)}"


def combination(axes: Sequence[ReportAxis], label: Callable[[ReportAxis, int], str]) -> ReportAxis | None:
    """Combines axes into one whose values are the combinations that have points. Returns None for no axes."""
    if len(axes) < 2:
        return axes[0] if axes else None
    columns, levels = np.unique(np.stack([axis.levels for axis in axes]), axis=1, return_inverse=True)
    rows = columns.T.tolist()
    texts = tuple(", ".join(label(axis, level) for axis, level in zip(axes, row, strict=True)) for row in rows)
    name, worded = (", ".join(getattr(axis, part) for axis in axes) for part in ("name", "worded"))
    levels, meaning = levels.reshape(-1), "axes together"
    return ReportAxis(name=name, unit="", meaning=meaning, worded=worded, values=texts, levels=levels, first=axes[0])


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run without values, because it failed.

    Attributes:
        point: Index among the points of the report.
        seed: Seed of the run.
        error: The reason.
    """

    point: int
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Effect of an axis on a measure.

    Attributes:
        axis: The axis.
        measure: The measure.
        means: Means over the points of each value of the axis, or of each range of a sampled axis.
        places: Values, or the mean of each range; 0, 1, ... for words.
        of_points: Mean of each point.
        share: Fraction of the variance of the points' means explained by the axis, 0 to 1.
    """

    axis: ReportAxis
    measure: Measured
    means: Means
    places: NDArray[np.float64]
    of_points: NDArray[np.float64]
    share: float

    def text(self, level: int, *, unit: bool = False) -> str:
        """Formats a value, optionally with its unit."""
        place = float(self.places[level])
        if self.axis.words:
            return str(self.axis.values[level])
        return words.valued(place, self.axis.unit) if unit else words.plain(place)


@dataclass(frozen=True, kw_only=True)
class Data:
    """The runs of one store.

    Runs are rows of `point`, `seed` and `values`; failed runs are not included.

    Attributes:
        name: Name of the plan.
        version: Version of celltrain that made the store.
        profile: Build profile of that version.
        plan: The plan as written.
        axes: The axes.
        measures: The measures, with units and meanings.
        points: Number of each point in the plan.
        point: Index of each run's point in `points`.
        seed: Seed of each run.
        values: Runs by measures; NaN if a run lacks one.
        censored: Runs by measures: true for values that are only lower bounds.
        failures: Runs without values.
        missing: Number of runs of the plan that are still to be done; None if unknown.
        tcp: Descriptions of the points' TCPs; empty if unknown.
    """

    name: str
    version: str
    profile: str
    plan: Mapping[str, Any]
    axes: tuple[ReportAxis, ...]
    measures: tuple[Measured, ...]
    points: NDArray[np.int64]
    point: NDArray[np.int64]
    seed: NDArray[np.uint64]
    values: NDArray[np.float64]
    censored: NDArray[np.bool_]
    failures: tuple[Failure, ...]
    missing: int | None
    tcp: tuple[str, ...]

    @property
    def runs(self) -> int:
        """Number of runs, including failed ones."""
        return len(self.point) + len(self.failures)

    @property
    def varied(self) -> list[ReportAxis]:
        """Axes with more than one value."""
        return [axis for axis in self.axes if len(axis.values) > 1]

    def grid(
        self,
        means: Sequence[Means],
        points: Iterable[int],
        formatted: Callable[[float, float], str] = words.estimated,
        *,
        counts: bool = False,
    ) -> Grid:
        """Returns a table of means of all measures, with a row for each point, and on request the number of runs."""
        axes = self.varied
        heads = [axis.worded for axis in axes] + ["runs"] * counts
        heads += [words.called(one) for one in self.measures]
        grid = Grid(heads=heads, left=[place for place, axis in enumerate(axes) if axis.words], keys=len(axes))
        for point in points:
            runs = [f"{max(int(own.n[point]) for own in means):,}"] * counts
            settings = [axis.label(int(axis.levels[point])) for axis in axes]
            cells = [formatted(float(own.mean[point]), float(own.half[point])) for own in means]
            bounds = self.bounds[point].tolist()
            grid.add_row(
                *settings,
                *runs,
                *(words.at_least(cell) if is_bound else cell for cell, is_bound in zip(cells, bounds, strict=True)),
            )
        return grid

    def named(self, point: int) -> str:
        """Describes a point by its values."""
        texts = [f"{axis.worded} {words.valued(axis.values[axis.levels[point]], axis.unit)}" for axis in self.axes]
        return ", ".join(texts) or "the only point"

    @cached_property
    def means(self) -> tuple[Means, ...]:
        """Means of the points, by measure."""
        return self.means_of(self.values)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Points by measures: number of values that are only lower bounds.

        If this number is above 0, the mean is also a lower bound.
        """
        counts = np.zeros((len(self.points), len(self.measures)), np.int64)
        np.add.at(counts, self.point, self.censored)
        return counts

    def means_of(self, values: NDArray[np.float64]) -> tuple[Means, ...]:
        """Returns the means of the points, for each column of an array of runs by measures."""
        return tuple(statistics.means(self.point, column, len(self.points)) for column in values.T)

    def over(self, values: NDArray[np.float64], levels: NDArray[np.int64], count: int) -> Means:
        """Returns the means of values by the level of their run's point. All points of a level have the same weight."""
        known = ~np.isnan(values)
        point = self.point[known]
        return statistics.effects(levels[point], point, self.seed[known], values[known], count)

    @cached_property
    def factors(self) -> tuple[ReportAxis, ...]:
        """Axes with more than one value. Axes that change together are combined into one."""
        groups: list[list[ReportAxis]] = []
        for axis in self.varied:
            group = next((group for group in groups if _move_together(group[0], axis)), None)
            if group is None:
                groups.append([axis])
            else:
                group.append(axis)
        return tuple(filter(None, (combination(group, ReportAxis.label) for group in groups)))

    @cached_property
    def grids(self) -> list[ReportAxis]:
        """Factors that were not sampled."""
        return [axis for axis in self.factors if not axis.sampled]

    def factor(self, name: str, option: str) -> ReportAxis:
        """Returns the factor that contains an axis; raises `StoreError` if it is not a grid axis."""
        for axis in self.grids:
            if name in (axis.name, *axis.names):
                return axis
        known = [one for axis in self.grids for one in axis.names]
        raise StoreError.of_option(option, name, f"is not an axis of a grid; {among(name, known)}")

    def is_network(self, factor: ReportAxis) -> bool:
        """Returns whether a factor, or one of the axes combined in it, changes the network or its TCP."""
        paths = (axis.meaning.partition(":")[0] for axis in self.axes if axis.name in factor.names)
        return any(path.partition(".")[0] in NETWORKS for path in paths)

    @cached_property
    def effects(self) -> tuple[tuple[Effect, ...], ...]:
        """Effect of each factor, by measure."""
        return tuple(tuple(self._effect(axis, i) for axis in self.factors) for i in range(len(self.measures)))

    def strongest(self, axes: Sequence[ReportAxis], most: int | None = None) -> list[ReportAxis]:
        """Returns factors by the fraction of variance that they explain, summed over all measures, from the largest."""
        return sorted(axes, key=lambda axis: -self._shares[axis])[:most]

    @cached_property
    def _shares(self) -> dict[ReportAxis, float]:
        every = enumerate(self.factors)
        return {axis: sum(of_measure[place].share for of_measure in self.effects) for place, axis in every}

    @cached_property
    def maps(self) -> tuple[ReportAxis, ReportAxis, ReportAxis | None] | None:
        """Axes of the heat maps: horizontal, vertical, and for panels; None if there are fewer than two grid axes.

        The first two are the numeric axes with most values. Of the rest, the axis with the largest effect determines
        the panels.
        """
        if len(self.grids) < 2:
            return None
        numbers = sorted((axis for axis in self.grids if not axis.words), key=lambda axis: -len(axis.values))
        across, up = (numbers + self.strongest([axis for axis in self.grids if axis.words]))[:2]
        rest = self.strongest([axis for axis in self.grids if axis not in (across, up)])
        few = [axis for axis in rest if len(axis.values) <= MOST_MAPS] or rest
        return across, up, few[0] if few else None

    def slug(self, measure: int) -> str:
        """Returns a unique name of a measure for file names."""
        names = [re.sub(r"[^a-z0-9]+", "-", one.name.lower()).strip("-")[:60] for one in self.measures]
        return names[measure] if names.count(names[measure]) == 1 else f"{names[measure]}-{measure + 1}"

    def tcp_line(self, *, short: bool = False) -> str:
        """Returns a line that describes the TCPs. If `short` and there are several, omits details."""
        if not self.tcp:
            return ""
        return tcp_line(list(dict.fromkeys(map(short_tcp, self.tcp))) if short and len(self.tcp) > 1 else self.tcp)

    @property
    def seeds_line(self) -> str:
        """Number of seeds per point, in words."""
        return "one seed" if self.seeds[1] == 1 else f"means of {self.seed_count} seeds"

    @property
    def seed_count(self) -> str:
        """Number of seeds per point, as a range if it varies."""
        fewest, most = self.seeds
        return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"

    @cached_property
    def seeds(self) -> tuple[int, int]:
        """Smallest and largest number of seeds per point, not counting failed runs."""
        counts = np.bincount(self.point, minlength=len(self.points))
        return (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)

    def _effect(self, axis: ReportAxis, measure: int) -> Effect:
        of_points = self.means[measure].mean
        good = ~np.isnan(of_points)
        if axis.sampled:
            levels, places = _ranges(axis.places[axis.levels])
            means = statistics.means(levels[good], of_points[good], len(places))
        else:
            levels, places = axis.levels, axis.places
            means = self.over(self.values[:, measure], levels, len(places))
        share = statistics.explained(levels[good], of_points[good], len(places))
        about = self.measures[measure]
        return Effect(axis=axis, measure=about, means=means, places=places, of_points=of_points, share=share)


def _move_together(one: ReportAxis, other: ReportAxis) -> bool:
    if one.sampled or other.sampled or len(one.values) != len(other.values):
        return False
    return len(np.unique(np.stack([one.levels, other.levels]), axis=1).T) == len(one.values)


def _ranges(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Divides sampled values into equally populated ranges; returns each value's range, and the mean of each range."""
    distinct, place = np.unique(values, return_inverse=True)
    count = max(1, min(MOST_RANGES, len(distinct) // LEAST_POINTS))
    levels = np.minimum(place * count // len(distinct), count - 1)
    return levels, statistics.means(levels, values, count).mean


def of_store(store: Store, measures: Sequence[str] | None = None, *, labels: Mapping[str, str] | None = None) -> Data:
    """Reads a store. It may be of another version, or still being written by a sweep.

    Args:
        store: The store.
        measures: Measures to read; all when None.
        labels: Labels of measures by path, and of axes by name; those of the plan when None.

    Raises:
        StoreError: If there is no such measure, nothing has been run yet, or the store cannot be read.
    """
    manifest, known = store.manifest, list(store.manifest["measures"])
    wanted = list(dict.fromkeys(known if measures is None else measures))
    if unknown := [name for name in wanted if name not in known]:
        where = f"is not measured in {shown(store.path)}"
        raise StoreError([Fault.of_option("measures", name, f"{where}; {among(name, known)}") for name in unknown])
    own = labels_of(manifest["plan"].get("measures")) | checked_labels(
        labels or {}, [*known, *(axis["name"] for axis in axes_of(manifest))]
    )
    runs = store.runs()
    if not len(runs):
        problem = "holds no runs yet: run its plan with celltrain sweep PLAN --store DIR --resume"
        raise StoreError.of_file(store.path, problem)
    numbers, point = np.unique(runs.case, return_inverse=True)
    settings = [runs.settings[case] for case in numbers.tolist()]
    good = ~runs.failed
    try:
        tcp = tuple(tcps(store.plan))
    except CelltrainError:
        # The plan comes from another version and is not valid in this version.
        tcp = ()
    return Data(
        name=manifest["name"],
        version=manifest["version"],
        profile=manifest["profile"],
        plan=manifest["plan"],
        axes=tuple(_axes(manifest, list(zip(*settings, strict=True)), own)),
        measures=tuple(
            Measured(
                name=name,
                kind="float64",
                unit=about["unit"],
                meaning=words.prose(about["meaning"]),
                label=own.get(name, ""),
            )
            for name, about in ((name, manifest["units"][name]) for name in wanted)
        ),
        points=runs.points[numbers],
        point=point[good],
        seed=runs.seed[good],
        values=runs.values[np.ix_(good, runs.places(wanted))],
        censored=runs.censored[np.ix_(good, runs.places(wanted))],
        failures=tuple(
            Failure(point=int(point[run]), seed=int(runs.seed[run]), error=error or "no reason given")
            for run, error in sorted(runs.errors.items())
        ),
        missing=store.missing(len(runs)),
        tcp=tcp,
    )


def _axes(
    manifest: Mapping[str, Any], columns: Sequence[Sequence[float | str]], labels: Mapping[str, str]
) -> Iterator[ReportAxis]:
    """Yields the axes of a store with their values. Uses the manifest, as a plan of another version may be invalid."""
    sampled, axes = _sampled(manifest["plan"]), axes_of(manifest)
    names, meanings = [axis["name"] for axis in axes], [words.prose(axis["meaning"]) for axis in axes]
    worded = words.settings(names, [meaning.partition(":")[0] for meaning in meanings])
    for axis, meaning, short, column in zip(axes, meanings, worded, columns, strict=True):
        known = list(dict.fromkeys(column))
        if not any(isinstance(value, str) for value in known):
            known.sort()
        places = {value: place for place, value in enumerate(known)}
        yield ReportAxis(
            name=axis["name"],
            unit=axis["unit"] or ("1" if axis["kind"] == "float64" else ""),
            meaning=meaning,
            worded=words.heading(called) if (called := labels.get(axis["name"], "")) else short,
            called=called,
            values=tuple(known),
            levels=np.array(list(map(places.__getitem__, column)), np.int64),
            sampled=axis["name"] in sampled,
        )


def _sampled(plan: Mapping[str, Any]) -> set[str]:
    """Returns the axes that do not form a grid: sampled axes, and axes with many numbers in a list of points."""
    listed = plan.get("points") or {"axes": {}, "rows": []}
    many = {
        name
        for place, (name, axis) in enumerate(listed["axes"].items())
        if not (isinstance(axis, Mapping) and "values" in axis)
        and len({row[place] for row in listed["rows"] if isinstance(row[place], int | float)}) > MOST_LISTED
    }
    return set((plan.get("sample") or {}).get("axes", {})) | many
