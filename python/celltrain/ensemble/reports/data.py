"""Data of a report: the runs of a store as arrays, whatever the sweep was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.pages import words
from celltrain.ensemble import table
from celltrain.ensemble.plan.plan import tcps
from celltrain.ensemble.plan_warnings import NETWORKS, lock_step_of_store
from celltrain.ensemble.store.database import axes_of
from celltrain.ensemble.table import Measured
from celltrain.errors import CelltrainError, Fault, StoreError
from celltrain.running import statistics
from celltrain.running.statistics import Means
from celltrain.running.summary import short_tcp, tcp_line
from celltrain.text import among, shown

if TYPE_CHECKING:
    from celltrain.ensemble.store import Store

#: Ratio of largest to smallest value from which an axis is logarithmic, unless its values are evenly spaced.
WIDE = 20.0
#: Most numbers in a plan's points that are drawn as a grid.
MOST_LISTED = 12


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A parameter of the sweep."""

    name: str
    unit: str
    """Empty if the values are words; `1` for pure numbers."""
    meaning: str
    """Path into the scenario."""
    values: tuple[float | str, ...] = ()
    """Different values: numbers from the smallest, words in the order of the plan."""
    sampled: bool = False
    """True if the values were drawn at random, without a grid."""
    called: str = ""
    """Short name for people; the name when empty."""

    @property
    def worded(self) -> str:
        """Name for people."""
        return self.called or self.name

    @property
    def words(self) -> bool:
        """True if the values are words."""
        return any(isinstance(value, str) for value in self.values)

    @cached_property
    def places(self) -> NDArray[np.float64]:
        """The values if they are numbers; 0, 1, ... for words."""
        return np.arange(len(self.values), dtype=np.float64) if self.words else np.array(self.values, dtype=np.float64)

    @cached_property
    def logarithmic(self) -> bool:
        """True if the ratios of the values are more even than their differences."""
        values = self.places
        if self.words or len(values) < 3 or values[0] <= 0 or values[-1] < WIDE * values[0]:
            return False
        steps, ratios = np.diff(values), np.diff(np.log(values))
        return bool(np.std(ratios) / np.mean(ratios) < np.std(steps) / np.mean(steps))

    def label(self, level: int) -> str:
        """Returns a value with its unit; random values with fewer digits."""
        return words.valued(self.values[level], self.unit, 4 if self.sampled else 6)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that has no values."""

    point: int
    """Place among the points of the report."""
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True)
class Factor:
    """An axis that varies, or several axes that move together."""

    axis: Axis
    levels: NDArray[np.int64]
    """Place of each point's value among the values of the axis."""
    scale: Axis
    """First of several axes, whose values may be numbers; otherwise the axis itself."""

    def label(self, level: int) -> str:
        """Returns a value with its unit."""
        return words.valued(self.axis.values[level], self.axis.unit)

    def titled(self, level: int) -> str:
        """Returns a value for a place that does not name the axis: a number follows the axis's name."""
        return self.label(level) if self.axis.words else f"{self.axis.worded} {self.label(level)}"


@dataclass(frozen=True, kw_only=True)
class Data:
    """The runs of one store.

    Runs are rows of `point`, `seed` and `values`; failed runs are not included.
    """

    name: str
    """Name of the plan."""
    version: str
    profile: str
    plan: Mapping[str, Any]
    """The plan as written."""
    axes: tuple[Axis, ...]
    measures: tuple[Measured, ...]
    points: NDArray[np.int64]
    """Number of each point in the plan."""
    levels: NDArray[np.int64]
    """Points by axes: place of the point's value among `Axis.values`."""
    point: NDArray[np.int64]
    """Place of each run's point in `points`."""
    seed: NDArray[np.uint64]
    values: NDArray[np.float64]
    """Runs by measures; NaN if a run lacks one."""
    failures: tuple[Failure, ...]
    missing: int | None = None
    """Runs of the plan that are still to be done; None if unknown."""
    tcp: tuple[str, ...] = ()
    """TCPs of the points in words; empty if unknown."""
    warnings: tuple[str, ...] = ()
    """Reasons to doubt the results."""

    @property
    def runs(self) -> int:
        """Number of runs, including failed ones."""
        return len(self.point) + len(self.failures)

    def value(self, point: int, axis: int) -> float | str:
        """Returns a point's value on an axis."""
        return self.axes[axis].values[int(self.levels[point, axis])]

    @cached_property
    def means(self) -> tuple[Means, ...]:
        """Means of the points, by measure."""
        return self.means_of(self.values)

    def means_of(self, values: NDArray[np.float64]) -> tuple[Means, ...]:
        """Returns the means of the points, by column of an array of runs by measures."""
        return tuple(table.means(self.point, column, len(self.points)) for column in values.T)

    def over(self, values: NDArray[np.float64], levels: NDArray[np.int64], count: int) -> Means:
        """Returns means of the runs' values by the level of their point; all points of a level have the same weight."""
        known = ~np.isnan(values)
        point = self.point[known]
        return statistics.effects(levels[point], point, self.seed[known], values[known], count)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Axes with more than one value; those that move together are one factor."""
        groups: list[list[int]] = []
        for i in (i for i, axis in enumerate(self.axes) if len(axis.values) > 1):
            group = next((group for group in groups if self._move_together(group[0], i)), None)
            if group is None:
                groups.append([i])
            else:
                group.append(i)
        return tuple(self._factor(group) for group in groups)

    def is_network(self, factor: Factor) -> bool:
        """Returns whether an axis, or one of several that move together, changes the network or its TCP."""
        names = factor.axis.name.split(", ")
        paths = (axis.meaning.partition(":")[0] for axis in self.axes if axis.name in names)
        return any(path.partition(".")[0] in NETWORKS for path in paths)

    def _move_together(self, first: int, second: int) -> bool:
        one, other = self.axes[first], self.axes[second]
        if one.sampled or other.sampled or len(one.values) != len(other.values):
            return False
        return len(np.unique(self.levels[:, [first, second]], axis=0)) == len(one.values)

    def _factor(self, group: Sequence[int]) -> Factor:
        axes, levels = [self.axes[i] for i in group], self.levels[:, group[0]]
        if len(group) == 1:
            return Factor(axis=axes[0], levels=levels, scale=axes[0])
        _, first = np.unique(levels, return_index=True)
        texts = tuple(
            ", ".join(words.valued(self.value(point, i), self.axes[i].unit) for i in group) for point in first
        )
        names, called = (", ".join(texts) for texts in zip(*((axis.name, axis.worded) for axis in axes), strict=True))
        together = Axis(name=names, unit="", meaning="axes that move together", values=texts, called=called)
        return Factor(axis=together, levels=levels, scale=axes[0])

    def tcp_line(self, *, short: bool = False) -> str:
        """Returns the line that names the TCPs; `short`: without details if there are several."""
        if not self.tcp:
            return ""
        named = list(dict.fromkeys(map(short_tcp, self.tcp))) if short and len(self.tcp) > 1 else self.tcp
        return tcp_line(named)

    @property
    def seeds_line(self) -> str:
        """Number of seeds of a point, in words."""
        return "one seed" if self.seeds[1] == 1 else f"means of {self.seed_count} seeds"

    @property
    def seed_count(self) -> str:
        """Fewest and most seeds of a point, or their number if all points have as many."""
        fewest, most = self.seeds
        return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"

    @cached_property
    def seeds(self) -> tuple[int, int]:
        """Fewest and most seeds of a point, without failed runs."""
        counts = np.bincount(self.point, minlength=len(self.points))
        return (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)


def of_store(store: Store, measures: Sequence[str] | None = None) -> Data:
    """Reads a store, including one of another version or one that a sweep is still writing.

    Args:
        store: The store.
        measures: Measures to read; all when None.

    Raises:
        StoreError: If there is no such measure, nothing has been run yet, or the store cannot be read.
    """
    manifest = store.manifest
    wanted, runs = _wanted(store, measures), store.runs()
    if not len(runs):
        problem = "holds no runs yet: run its plan with celltrain sweep PLAN --store DIR --resume"
        raise StoreError([Fault.of_file(shown(store.path), problem)])
    sampled = _sampled(manifest["plan"])
    # From the manifest, not the plan: a plan of another version may not be valid.
    axes = [
        Axis(
            name=axis["name"],
            unit=axis["unit"] or ("1" if axis["kind"] == "float64" else ""),
            meaning=words.prose(axis["meaning"]),
            sampled=axis["name"] in sampled,
        )
        for axis in axes_of(manifest)
    ]
    cases, point = np.unique(runs.case, return_inverse=True)
    settings = [runs.settings[case] for case in cases.tolist()]
    axes = list(_with_values(axes, list(zip(*settings, strict=True))))
    places = [{value: place for place, value in enumerate(axis.values)} for axis in axes]
    levels = [[own[value] for own, value in zip(places, row, strict=True)] for row in settings]
    good = ~runs.failed
    units = {name: manifest["units"][name] for name in wanted}
    try:
        tcp = tuple(tcps(store.plan))
    except CelltrainError:
        # A plan of another version that is not valid in this one.
        tcp = ()
    return Data(
        name=manifest["name"],
        version=manifest["version"],
        profile=manifest["profile"],
        plan=manifest["plan"],
        axes=tuple(axes),
        measures=tuple(
            Measured(name=name, kind="float64", unit=about["unit"], meaning=words.prose(about["meaning"]))
            for name, about in units.items()
        ),
        points=runs.points[cases],
        levels=np.array(levels, np.int64).reshape(len(cases), len(axes)),
        point=point[good],
        seed=runs.seed[good],
        values=runs.values[np.ix_(good, [manifest["measures"].index(name) for name in wanted])],
        failures=tuple(
            Failure(point=int(point[run]), seed=int(runs.seed[run]), error=error or "no reason given")
            for run, error in sorted(runs.errors.items())
        ),
        missing=store.missing(len(runs)),
        tcp=tcp,
        warnings=tuple(lock_step_of_store(store)),
    )


def _with_values(axes: Sequence[Axis], columns: Sequence[Sequence[float | str]]) -> Iterator[Axis]:
    """Yields the axes with their values and short names."""
    called = words.settings([axis.name for axis in axes], [axis.meaning.partition(":")[0] for axis in axes])
    for axis, column, name in zip(axes, columns, called, strict=True):
        known = list(dict.fromkeys(column))
        known = known if any(isinstance(value, str) for value in known) else sorted(known)
        yield replace(axis, values=tuple(known), called=name)


def _sampled(plan: Mapping[str, Any]) -> set[str]:
    """Returns axes without a grid: those of a sample, and of a list of points with many numbers."""
    listed = plan.get("points") or {"axes": {}, "rows": []}
    many = {
        name
        for place, (name, axis) in enumerate(listed["axes"].items())
        if not (isinstance(axis, Mapping) and "values" in axis)
        and len({row[place] for row in listed["rows"] if isinstance(row[place], int | float)}) > MOST_LISTED
    }
    return set((plan.get("sample") or {}).get("axes", {})) | many


def _wanted(store: Store, measures: Sequence[str] | None) -> list[str]:
    known = list(store.manifest["measures"])
    faults = [
        Fault.of_option("measures", name, f"is not measured in {shown(store.path)}; {among(name, known)}")
        for name in measures or ()
        if name not in known
    ]
    if faults:
        raise StoreError(faults)
    return list(dict.fromkeys(known if measures is None else measures))
