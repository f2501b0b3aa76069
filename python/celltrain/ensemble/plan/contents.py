"""What a plan says once it is read: its axes, its points, its seeds."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

from celltrain.ensemble.plan.axis import Axis
from celltrain.model.paths import choices, set_key
from celltrain.running import Recording

#: More runs than anybody waits for.
MAX_RUNS = 10**8
#: A plan of more points has its corners checked and so many in between; what is refused later is a row with its error.
CHECKED_POINTS = 2000
#: What is measured where a plan does not say.
MEASURES = (
    "efficiency",
    "fairness",
    "cells.lost",
    "cells.discarded",
    "ports.bottleneck.max_queue_cells",
    "flows.sum(*).timeouts",
    "flows.sum(*).retransmitted_segments",
    "flows.least(*).goodput_mbps",
)
#: Runs of every point where a plan does not say.
SEEDS = 10


@dataclass(frozen=True, kw_only=True)
class Until:
    """Seeds are added to a point until the 95 % interval of a measure's mean is narrow enough."""

    measure: str
    interval: float
    """Half its width."""
    at_least: int
    at_most: int


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """How often each point is run, and with which seeds: `first` and those that follow."""

    first: int
    count: int
    """Of every point; with `until`, the most of any."""
    until: Until | None = None


@dataclass(frozen=True, kw_only=True)
class Point:
    """One setting of everything that is varied."""

    index: int
    values: dict[str, float | str]
    """By axis, as in the store's columns."""
    scenario: dict[str, Any]
    """The scenario with its values set; not checked."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Axes that move together."""

    axes: tuple[Axis, ...]

    def __len__(self) -> int:
        return len(self.axes[0])


@dataclass(frozen=True, kw_only=True)
class Use:
    """Points at which an axis takes effect, if it sets something in a table that other axes choose."""

    needs: str
    """The table that other points lack, such as `tcp.vanilla`; empty if every point has it."""
    found: tuple[str, ...]
    """The tables that these points have instead, such as `tcp.reno`."""
    by: tuple[Axis, ...]
    """The axes that choose."""
    at: tuple[tuple[float | str, ...], ...]
    """Values of these axes at the points where the axis takes effect; empty if it never does."""

    @property
    def everywhere(self) -> bool:
        """Returns whether the axis takes effect at every point."""
        return not self.needs

    @property
    def nowhere(self) -> str:
        """The problem of an axis that never takes effect, as a clause in which `{}` stands for a point."""
        return f"changes nothing: no {{}} has {self.needs}; they have {', '.join(self.found)}"


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a plan says; `Plan` adds where it comes from."""

    name: str
    measures: tuple[str, ...]
    groups: tuple[Group, ...]
    """Crossed with each other; the last varies fastest."""
    seeds: Seeds
    limit_s: float | None
    """What a run may take in real time."""
    recording: Recording | None
    base: dict[str, Any]
    """The scenario that points change."""
    document: dict[str, Any] = field(repr=False)
    """The plan as it was given, its scenario as a table."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All that is varied, in the order of the columns."""
        return tuple(axis for group in self.groups for axis in group.axes)

    @cached_property
    def points(self) -> Points:
        """The points, each made when it is asked for."""
        return Points(self)

    @cached_property
    def inside(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """For each axis the choices among tables that it stands in and another axis makes: the path, and the table it needs.

        Z of Selective Drop has no place at the points where an axis of policies has chosen EPD.
        """
        found: dict[str, tuple[tuple[str, str], ...]] = {}
        for axis in self.axes:
            steps = axis.path.split(".")
            above = [".".join(steps[:count]) for count in range(1, len(steps))]
            made = [path for path in above if any(f"{path}.".startswith(f"{one.path}.") for one in self.axes)]
            found[axis.name] = tuple((path, steps[path.count(".") + 1]) for path in made if choices(path))
        return found

    @cached_property
    def uses(self) -> dict[str, Use]:
        """By name the axes that set something in a table that another axis chooses."""
        return {axis.name: self._use(axis) for axis in self.axes if self.inside[axis.name]}

    def _use(self, used: Axis) -> Use:
        chosen = self.inside[used.name]
        by = [axis for axis in self.axes if any(f"{path}.".startswith(f"{axis.path}.") for path, _ in chosen)]
        # Of axes that move together each combination of values counts once.
        places: list[list[dict[str, int]]] = []
        for group in self.groups:
            own = [axis for axis in by if axis in group.axes]
            seen = {tuple(axis.column(place) for axis in own): place for place in reversed(range(len(group)))}
            places.append([{axis.name: place for axis in own} for place in sorted(seen.values())] if own else [{}])
        at, found, needs = [], dict[str, None](), ""
        for parts in itertools.product(*places):
            own_places = {name: place for part in parts for name, place in part.items()}
            scenario = self._with([(axis, own_places[axis.name]) for axis in by])
            lacking = next((choice for choice in chosen if not _chosen(scenario, *choice)), None)
            if lacking is None or _kept(scenario, used, lacking):
                at.append(tuple(axis.column(own_places[axis.name]) for axis in by))
                continue
            needs = needs or ".".join(lacking)
            found.update(dict.fromkeys(f"{lacking[0]}.{table}" for table in _tables(scenario, lacking[0])))
        return Use(needs=needs, found=tuple(found), by=tuple(by), at=tuple(at))

    def _with(self, places: Sequence[tuple[Axis, int]]) -> dict[str, Any]:
        """The scenario with axes at these places."""
        scenario = copy.deepcopy(self.base)
        # Whole tables are set before their settings, in whatever order the plan lists the axes.
        for axis, place in sorted(places, key=lambda one: one[0].path.count(".")):
            if axis.stays(place):
                continue
            if all(_chosen(scenario, *choice) for choice in self.inside[axis.name]):
                set_key(scenario, axis.path, copy.deepcopy(axis.setting(place)))
        return scenario

    @property
    def runs(self) -> int:
        """Runs in all; with `until`, the most there can be."""
        return len(self.points) * self.seeds.count


class Points(Sequence[Point]):
    """The points of a plan, none of them in memory."""

    def __init__(self, plan: Contents) -> None:
        self._plan = plan
        self._length = math.prod(len(group) for group in plan.groups)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | Sequence[Point]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(f"point {index} of {self._length}")
        index %= self._length
        places = self.places(index)
        values = {axis.name: axis.column(place) for axis, place in places}
        return Point(index=index, values=values, scenario=self._plan._with(places))

    def values(self, index: int) -> tuple[float | str, ...]:
        """What the columns of the axes hold at a point."""
        return tuple(axis.column(place) for axis, place in self.places(index))

    def __iter__(self) -> Iterator[Point]:
        return (self[index] for index in range(self._length))

    def places(self, index: int) -> list[tuple[Axis, int]]:
        """Where each axis stands at a point."""
        places: list[tuple[Axis, int]] = []
        for group in reversed(self._plan.groups):
            index, place = divmod(index, len(group))
            places[:0] = [(axis, place) for axis in group.axes]
        return places


def _chosen(scenario: dict[str, Any], path: str, table: str) -> bool:
    """Whether a choice among tables leaves room for one of them: it is made so, or not made yet."""
    place = _tables(scenario, path)
    return not place or table in place


def _kept(scenario: dict[str, Any], axis: Axis, lacking: tuple[str, str]) -> bool:
    """Whether another table has the one value of an axis, as a TCP that a text names keeps settings of the scenario's."""
    path, table = lacking
    place: Any = scenario
    for step in [
        *path.split("."),
        *_tables(scenario, path)[:1],
        *axis.path.removeprefix(f"{path}.{table}.").split("."),
    ]:
        place = place.get(step) if isinstance(place, dict) else None
    return len(axis) == 1 and place == axis.setting(0)


def _tables(scenario: dict[str, Any], path: str) -> Sequence[str]:
    """The names of the tables at a path; none if it leads to no table."""
    place: Any = scenario
    for step in path.split("."):
        place = place.get(step) if isinstance(place, dict) else None
    return list(place) if isinstance(place, dict) else []
