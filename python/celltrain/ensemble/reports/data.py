"""What a report is made of: the runs of a store as arrays of small numbers, whatever the sweep was."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.pages import words
from celltrain.ensemble.plan.plan import tcps
from celltrain.ensemble.plan_warnings import NETWORKS, lock_step_of_store
from celltrain.ensemble.store.database import axes_of
from celltrain.errors import CelltrainError, Fault, StoreError
from celltrain.running import statistics
from celltrain.running.summary import short_tcp, tcp_line
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.store import Store

#: Largest over smallest value from which an axis is drawn on a logarithmic scale, unless its values are evenly spaced.
WIDE = 20.0
#: Values up to which numbers in a plan's points are drawn as a grid.
MOST_LISTED = 12


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A parameter of the sweep."""

    name: str
    unit: str
    """Empty where the values are words; `1` for pure numbers."""
    meaning: str
    """What it sets: the path into the scenario."""
    values: tuple[float | str, ...] = ()
    """Its different values: numbers from the smallest, words in the order of the plan."""
    sampled: bool = False
    """Whether its values were drawn, so that there is no grid."""
    called: str = ""
    """What people read where there is no room for a path; the name when empty."""

    @property
    def worded(self) -> str:
        """Its name for people."""
        return self.called or self.name

    @property
    def digits(self) -> int:
        """Of its values for people: drawn ones have as many as can be written."""
        return 4 if self.sampled else 6

    @property
    def words(self) -> bool:
        """Whether its values are words."""
        return any(isinstance(value, str) for value in self.values)

    @cached_property
    def logarithmic(self) -> bool:
        """Whether its values are spread better by their ratios than by their differences."""
        values = np.array([] if self.words else self.values, dtype=np.float64)
        if len(values) < 3 or values[0] <= 0 or values[-1] < WIDE * values[0]:
            return False
        steps, ratios = np.diff(values), np.diff(np.log(values))
        return bool(np.std(ratios) / np.mean(ratios) < np.std(steps) / np.mean(steps))


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What was measured in every run."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that has no values."""

    point: int
    """Its place among the points of the report."""
    seed: int
    error: str


@dataclass(frozen=True, kw_only=True)
class Factor:
    """An axis that varies, or several that move together."""

    axis: Axis
    levels: NDArray[np.int64]
    """For each point the place of its value among the axis's."""
    scale: Axis
    """The first of several axes, whose values may be numbers; else the axis itself."""


@dataclass(frozen=True, kw_only=True)
class Data:
    """The runs of one store.

    Runs are rows of `point`, `seed` and `values`; a run that failed is not among them.
    """

    name: str
    """The plan's name."""
    version: str
    profile: str
    plan: Mapping[str, Any]
    """The plan as given."""
    axes: tuple[Axis, ...]
    measures: tuple[Measure, ...]
    points: NDArray[np.int64]
    """The plan's number of each point."""
    levels: NDArray[np.int64]
    """Points by axes: the place of the point's value among `Axis.values`."""
    point: NDArray[np.int64]
    """For each run its place in `points`."""
    seed: NDArray[np.uint64]
    values: NDArray[np.float64]
    """Runs by measures; NaN where a run lacks one."""
    failures: tuple[Failure, ...]
    missing: int | None = None
    """Runs of the plan that are still to be done; None where that is not known."""
    tcp: tuple[str, ...] = ()
    """The TCPs of the points in words; empty if not known."""
    warnings: tuple[str, ...] = ()
    """What to look at before the results are trusted."""

    @property
    def runs(self) -> int:
        """Runs that are there, those that failed among them."""
        return len(self.point) + len(self.failures)

    def value(self, point: int, axis: int) -> float | str:
        """A point's value on an axis."""
        level = int(self.levels[point, axis])
        return self.axes[axis].values[level]

    @cached_property
    def means(self) -> tuple[statistics.Means, ...]:
        """For each measure the means of the points."""
        return tuple(
            statistics.means(self.point[known], self.values[known, i], len(self.points))
            for i, known in enumerate(~np.isnan(self.values.T))
        )

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """What varies: the axes with more than one value, those that move together as one."""
        varying = [i for i, axis in enumerate(self.axes) if len(axis.values) > 1]
        groups: list[list[int]] = []
        for i in varying:
            for group in groups:
                if self._together(group[0], i):
                    group.append(i)
                    break
            else:
                groups.append([i])
        return tuple(self._factor(group) for group in groups)

    def is_network(self, factor: Factor) -> bool:
        """Returns whether an axis, or one of several that move together, changes the network or its TCP."""
        names = factor.axis.name.split(", ")
        paths = (axis.meaning.partition(":")[0] for axis in self.axes if axis.name in names)
        return any(path.partition(".")[0] in NETWORKS for path in paths)

    def _together(self, first: int, second: int) -> bool:
        one, other = self.axes[first], self.axes[second]
        if one.sampled or other.sampled or len(one.values) != len(other.values):
            return False
        return len(np.unique(self.levels[:, [first, second]], axis=0)) == len(one.values)

    def _factor(self, group: Sequence[int]) -> Factor:
        levels = self.levels[:, group[0]]
        if len(group) == 1:
            return Factor(axis=self.axes[group[0]], levels=levels, scale=self.axes[group[0]])
        _, first = np.unique(levels, return_index=True)
        texts = tuple(
            ", ".join(words.valued(self.value(point, i), self.axes[i].unit) for i in group) for point in first
        )
        names = ", ".join(self.axes[i].name for i in group)
        called = ", ".join(self.axes[i].worded for i in group)
        together = Axis(name=names, unit="", meaning="axes that move together", values=texts, called=called)
        return Factor(axis=together, levels=levels, scale=self.axes[group[0]])

    def tcp_line(self, *, short: bool = False) -> str:
        """Returns the line that names the TCPs; `short`: without details if there are several."""
        if not self.tcp:
            return ""
        named = list(dict.fromkeys(map(short_tcp, self.tcp))) if short and len(self.tcp) > 1 else self.tcp
        return tcp_line(named)

    @property
    def seeds_line(self) -> str:
        """How many seeds each point has, in words."""
        fewest, most = self.seeds
        if most == 1:
            return "one seed"
        return f"means of {fewest:,} seeds" if fewest == most else f"means of {fewest:,} to {most:,} seeds"

    @cached_property
    def seeds(self) -> tuple[int, int]:
        """Fewest and most seeds of a point, failed runs not counted."""
        counts = np.bincount(self.point, minlength=len(self.points))
        return (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)


def of_store(store: Store, measures: Sequence[str] | None = None) -> Data:
    """The data of a store, also of one that another version made or a sweep still writes.

    Args:
        store: The store.
        measures: Those wanted; all when None.

    Raises:
        StoreError: When there is no such measure, nothing has been run yet, or the store cannot be read.
    """
    manifest = store.manifest
    wanted, runs = _wanted(store, measures), store.runs()
    if not len(runs):
        problem = "holds no runs yet: run its plan with celltrain sweep PLAN --store DIR --resume"
        raise StoreError([Fault.of_file(shown(store.path), problem)])
    scattered = _scattered(manifest["plan"])
    # Read off the manifest, not the plan: another version's plan need not be one today.
    axes = [
        Axis(
            name=axis["name"],
            unit=axis["unit"] or ("1" if axis["kind"] == "float64" else ""),
            meaning=words.prose(axis["meaning"]),
            sampled=axis["name"] in scattered,
        )
        for axis in axes_of(manifest)
    ]
    cases, point = np.unique(runs.case, return_inverse=True)
    placed, levels = _levels(axes, [runs.settings[case] for case in cases.tolist()])
    good = ~runs.failed
    return Data(
        name=manifest["name"],
        version=manifest["version"],
        profile=manifest["profile"],
        plan=manifest["plan"],
        axes=placed,
        measures=tuple(_measure(name, **manifest["units"][name]) for name in wanted),
        points=runs.points[cases],
        levels=levels,
        point=point[good],
        seed=runs.seed[good],
        values=runs.values[np.ix_(good, [manifest["measures"].index(name) for name in wanted])],
        failures=tuple(
            Failure(point=int(point[run]), seed=int(runs.seed[run]), error=error or "no reason given")
            for run, error in sorted(runs.errors.items())
        ),
        missing=store.missing(len(runs)),
        tcp=_tcps(store),
        warnings=tuple(lock_step_of_store(store)),
    )


def _levels(
    axes: Sequence[Axis], settings: Sequence[Sequence[float | str]]
) -> tuple[tuple[Axis, ...], NDArray[np.int64]]:
    """The axes with their values, and for each point the places of its settings among them."""
    found, levels = [], np.zeros((len(settings), len(axes)), np.int64)
    called = words.settings([axis.name for axis in axes], [axis.meaning.partition(":")[0] for axis in axes])
    for i, axis in enumerate(axes):
        column = [own[i] for own in settings]
        known = list(dict.fromkeys(column))
        known = known if any(isinstance(value, str) for value in known) else sorted(known)
        places = {value: at for at, value in enumerate(known)}
        levels[:, i] = [places[value] for value in column]
        found.append(replace(axis, values=tuple(known), called=called[i]))
    return tuple(found), levels


def _tcps(store: Store) -> tuple[str, ...]:
    """The TCPs of a store's points; none if another version made it and its plan is not valid today."""
    try:
        return tuple(tcps(store.plan))
    except CelltrainError:
        return ()


def _measure(name: str, unit: str, meaning: str) -> Measure:
    return Measure(name=name, unit=unit, meaning=words.prose(meaning))


def _scattered(plan: Mapping[str, Any]) -> set[str]:
    """The axes whose values are no grid: those of a sample, and of points one by one where they are many."""
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
    faults = []
    for name in measures or ():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            problem = f"is not measured in {shown(store.path)}; {hint}There are {', '.join(known)}"
            faults.append(Fault.of_option("measures", name, problem))
    if faults:
        raise StoreError(faults)
    return list(dict.fromkeys(known if measures is None else measures))
