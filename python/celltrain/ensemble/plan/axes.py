"""The axes of a plan, and the points that they span. Values are exact ranges, random draws, or lists."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from celltrain.errors import needed
from celltrain.model.grammar import AS_IS
from celltrain.model.paths import Key, choices, exact, matched, set_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Maximum number of runs of a plan.
MAX_RUNS = 10**8
#: Maximum number of points checked before any run. A point that is refused later becomes a row with its error.
CHECKED_POINTS = 2000
#: Default measures.
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
#: Default measures of each group of requests, by the table of the group.
OF_GROUPS = {
    "requests": ("all.completion_ms_mean", "all.slowdown_mean", "timeouts_per_request"),
    "incast": ("queries.completion_ms_mean", "all.slowdown_mean", "timeouts_per_request"),
}
#: Name prefixes of the default measures that need flows.
OF_FLOWS = ("efficiency", "fairness", "flows.")
#: Default number of seeds.
SEEDS = 10
#: Number of significant digits of values on a logarithmic scale and in a sample. The last digits of computed powers
#: differ between machines, but runs must not.
DIGITS = 9


def defaults(scenario: Mapping[str, Any], measures: Sequence[str] = MEASURES) -> tuple[str, ...]:
    """Returns the default measures of a scenario: some of `measures`, and those of its requests.

    >>> defaults({"topology": {"leaf_spine": {}}, "requests": {"web": {}}}, ["efficiency", "fairness"])[:2]
    ('requests.web.all.completion_ms_mean', 'requests.web.all.slowdown_mean')
    """
    topology = _table(scenario.get("topology"))
    has_flows = "leaf_spine" not in topology and _table(topology.get("network")).get("flows") != []
    own = [text for text in measures if has_flows or not text.startswith(OF_FLOWS)]
    for kind, of_group in OF_GROUPS.items():
        for name in _table(scenario.get(kind)):
            # A measure is a path. Names in a path cannot contain these characters.
            if name and not set(name) & set(".()"):
                own += [f"requests.{name}.{measure}" for measure in of_group]
    return tuple(own)


def _table(given: Any) -> Mapping[str, Any]:
    """Returns the value if it is a table, otherwise an empty table."""
    return given if isinstance(given, Mapping) else {}


def rounded(number: float) -> Fraction:
    """Returns a number with nine significant digits."""
    return exact(float(f"{number:.{DIGITS}g}"))


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An interval of numbers in the unit of the store's column, from which a range, a sample or a search takes values.

    Attributes:
        low: The lower end.
        high: The upper end.
        log: True for a logarithmic scale.
        step: Difference between two values, if it was given.
        whole: True if only whole numbers are drawn.
    """

    low: Fraction
    high: Fraction
    log: bool = False
    step: Fraction | None = None
    whole: bool = False

    @property
    def grid(self) -> Fraction | None:
        """Smallest difference between two values that can be drawn.

        None if every number can, or if the scale is logarithmic.
        """
        return Fraction(1) if self.whole and not self.log and self.step is None else self.step

    @property
    def last(self) -> Fraction:
        """The largest value that can be drawn."""
        grid = self.grid
        return self.high if grid is None else self.low + math.floor((self.high - self.low) / grid) * grid

    def at(self, share: float | Fraction) -> Fraction:
        """Returns the number at a fraction of the interval, 0 to 1."""
        if not self.log:
            return self.low + (self.high - self.low) * Fraction(share)
        return rounded(float(self.low) * float(self.high / self.low) ** float(share))

    def near(self, value: float) -> Fraction:
        """Returns the nearest value that can be drawn: on the grid, or with nine significant digits."""
        if (grid := self.grid) is not None:
            return min(max(self.low + round((exact(value) - self.low) / grid) * grid, self.low), self.last)
        number = rounded(value)
        return min(max(Fraction(round(number)) if self.whole else number, self.low), self.high)

    def draw(self, share: float) -> Fraction:
        """Returns the value at a fraction of the interval, 0 to 1. All values of a grid are equally likely."""
        if (grid := self.grid) is None:
            return self.near(float(self.at(share)))
        count = (self.last - self.low) / grid + 1
        return min(self.low + int(share * count) * grid, self.last)


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberRange:
    """Values of an interval.

    Attributes:
        interval: The interval. If it has no step, the values divide it evenly, or are drawn.
        count: Number of values.
        shares: Fractions of the interval drawn by a sample; None for a range.
    """

    interval: Interval
    count: int
    shares: NDArray[np.float64] | None = None

    def __getitem__(self, index: int) -> Fraction:
        interval, last = self.interval, self.count - 1
        if self.shares is not None:
            return interval.draw(float(self.shares[index]))
        if interval.step is not None:
            return interval.low + index * interval.step
        if index in (0, last):
            return interval.low if index == 0 else interval.high
        return interval.at(Fraction(index, last))


@dataclass(frozen=True, kw_only=True)
class Varied:
    """A setting that is varied: a name, which is a column of the store, and a path into the scenario."""

    name: str
    key: Key

    @property
    def path(self) -> str:
        """The path into the scenario."""
        return self.key.path

    @property
    def unit(self) -> str:
        """The unit of the setting's values; empty if the values have no unit."""
        return self.key.unit if self.key.quantity is None else self.key.quantity.unit


@dataclass(frozen=True, kw_only=True)
class Axis(Varied):
    """A setting that is varied, and its values.

    Attributes:
        settings: Listed values, as written in a scenario.
        labels: Labels of these values, if any.
        numbers: Values of a range or a sample.
        place: Keys of the axis in its plan, from the top.
    """

    settings: tuple[Any, ...] = ()
    labels: tuple[str, ...] | None = None
    numbers: NumberRange | None = None
    place: tuple[str | int, ...] = ()

    def __len__(self) -> int:
        return len(self.settings) if self.numbers is None else self.numbers.count

    def setting(self, index: int) -> Any:
        """Returns a value as written in a scenario."""
        return self.settings[index] if self.numbers is None else written(self.numbers[index], self.key)

    def stays(self, index: int) -> bool:
        """Returns whether a value means that the scenario keeps its own setting."""
        return self.numbers is None and self.settings[index] == AS_IS and bool(choices(self.path))

    def column(self, index: int) -> float | str:
        """Returns a value as stored: a plain number unchanged, a quantity in s, bit/s or B, a label as text."""
        if self.labels is not None:
            return self.labels[index]
        setting = self.setting(index)
        return _column(setting, self.key) if self.is_number else _text(setting)

    @cached_property
    def is_number(self) -> bool:
        """True if the column contains numbers."""
        if self.labels is not None:
            return False
        return self.numbers is not None or all(isinstance(_column(one, self.key), float) for one in self.settings)

    @property
    def unit(self) -> str:
        """The unit of the column; empty if the column has no unit."""
        if not self.is_number:
            return ""
        if self.key.is_threshold and self.numbers is None:
            return "cells" if all(setting > 1 for setting in self.settings) else ""
        return super().unit

    @property
    def meaning(self) -> str:
        """The path and the meaning of the setting, in one line."""
        return f"{self.path}: {self.key.meaning}" if self.key.meaning else self.path


def draw(method: str, axes: int, points: int, seed: int) -> NDArray[np.float64]:
    """Returns points in the unit cube, one per row."""
    qmc = needed("scipy.stats.qmc", f"plans with method = \"{method}\" need scipy: pip install 'celltrain[sweep]'")
    if method == "latin_hypercube":
        sample: NDArray[np.float64] = qmc.LatinHypercube(d=axes, seed=seed).random(points)
        return sample
    engine = qmc.Sobol(d=axes, scramble=True, seed=seed)
    # The sequence is balanced only at powers of two, but every prefix is a valid sample.
    whole: NDArray[np.float64] = engine.random_base2(max(points - 1, 0).bit_length())
    return whole[:points]


def written(number: Fraction, key: Key) -> Any:
    """Returns a number as written in a scenario: with its unit, as a whole number, or plain."""
    if key.quantity is not None:
        return key.quantity.write(number)
    return round(number) if key.whole else float(number)


def _column(setting: Any, key: Key) -> float | str:
    if isinstance(setting, str) and key.quantity is not None:
        return float(key.quantity.read(setting))
    return float(setting) if isinstance(setting, int | float) and not isinstance(setting, bool) else _text(setting)


def _text(setting: Any) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)


@dataclass(frozen=True, kw_only=True)
class Until:
    """Condition to stop adding seeds to a point: half the width of a mean's 95 % interval is at most `interval`."""

    measure: str
    interval: float
    at_least: int
    at_most: int


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """The number of seeds of each point, and the first seed.

    Attributes:
        first: The first seed; the others follow.
        count: Number of seeds of every point; with `until`, the maximum.
        until: Condition for a point to have enough seeds.
    """

    first: int
    count: int
    until: Until | None = None


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point of a sweep: one combination of all varied settings.

    Attributes:
        index: Number of the point, from 0.
        values: Values by axis, as in the columns of the store.
        scenario: The scenario with these values. It has not been checked.
    """

    index: int
    values: dict[str, float | str]
    scenario: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Axes whose values change together."""

    axes: tuple[Axis, ...]

    def __len__(self) -> int:
        return len(self.axes[0])


@dataclass(frozen=True, kw_only=True)
class Use:
    """For an axis that sets a value inside a table chosen by other axes: the points at which it takes effect.

    Attributes:
        needs: The table that the axis needs and other points lack, such as `tcp.vanilla`; empty if every point has it.
        found: The tables that those points have instead, such as `tcp.reno`.
        by: The axes that choose the table.
        at: Values of these axes at the points where the axis takes effect; empty if it never does.
    """

    needs: str
    found: tuple[str, ...]
    by: tuple[Axis, ...]
    at: tuple[tuple[float | str, ...], ...]

    @property
    def everywhere(self) -> bool:
        """True if the axis takes effect at every point."""
        return not self.needs

    @property
    def nowhere(self) -> str:
        """The fault of an axis that never takes effect, as a clause with `{}` in place of "point" or "case"."""
        return f"changes nothing: no {{}} has {self.needs}; they have {', '.join(self.found)}"


@dataclass(frozen=True, kw_only=True)
class Design:
    """A scenario, and groups of axes that are crossed with each other; the last group varies fastest."""

    base: dict[str, Any]
    groups: tuple[Group, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order of the columns."""
        return tuple(axis for group in self.groups for axis in group.axes)

    @cached_property
    def points(self) -> Points:
        """The points of the axes."""
        return Points(self)

    @cached_property
    def uses(self) -> dict[str, Use]:
        """The axes that set a value inside a table chosen by another axis, by name."""
        return {axis.name: self._use(axis) for axis in self.axes if self._inside[axis.name]}

    @cached_property
    def _inside(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """For each axis, the tables around it that another axis chooses: the path of the choice, and the table needed.

        For example, Selective Drop's Z has no effect at points at which an axis of policies has chosen EPD.
        """
        found: dict[str, tuple[tuple[str, str], ...]] = {}
        for axis in self.axes:
            steps = axis.path.split(".")
            above = [".".join(steps[:count]) for count in range(1, len(steps))]
            made = [path for path in above if any(f"{path}.".startswith(f"{one.path}.") for one in self.axes)]
            found[axis.name] = tuple((path, steps[path.count(".") + 1]) for path in made if choices(path))
        return found

    def _use(self, used: Axis) -> Use:
        needed = self._inside[used.name]
        by = [axis for axis in self.axes if any(f"{path}.".startswith(f"{axis.path}.") for path, _ in needed)]
        options: list[list[list[tuple[Axis, int]]]] = []
        for group in self.groups:
            own = [axis for axis in by if axis in group.axes]
            # Axes that change together may repeat a combination of values, so use each combination only once.
            seen = {tuple(axis.column(place) for axis in own): place for place in reversed(range(len(group)))}
            options.append([[(axis, place) for axis in own] for place in sorted(seen.values())] if own else [[]])
        at, found, needs = [], dict[str, None](), ""
        for parts in itertools.product(*options):
            places = [pair for part in parts for pair in part]
            scenario = self.scenario(places)
            lacking = next((choice for choice in needed if not _chosen(scenario, *choice)), None)
            if lacking is None or _kept(scenario, used, lacking):
                at.append(tuple(axis.column(place) for axis, place in places))
            else:
                needs = needs or ".".join(lacking)
                found.update(dict.fromkeys(f"{lacking[0]}.{table}" for table in _at(scenario, lacking[0])))
        return Use(needs=needs, found=tuple(found), by=tuple(by), at=tuple(at))

    def scenario(self, places: Sequence[tuple[Axis, int]]) -> dict[str, Any]:
        """Returns the scenario with each axis at the value with this index."""
        scenario = copy.deepcopy(self.base)
        # Set whole tables before settings inside them, whatever the order of the axes in the plan.
        for axis, place in sorted(places, key=lambda one: one[0].path.count(".")):
            if not axis.stays(place) and all(_chosen(scenario, *choice) for choice in self._inside[axis.name]):
                set_key(scenario, axis.path, copy.deepcopy(axis.setting(place)))
        return scenario


class Points:
    """The points of a grid, which are computed on access and not kept in memory."""

    def __init__(self, grid: Design) -> None:
        self._grid, self._length = grid, math.prod(map(len, grid.groups))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Point:
        if not -self._length <= index < self._length:
            raise IndexError(f"point {index} of {self._length}")
        index %= self._length
        places = self.places(index)
        values = {axis.name: axis.column(place) for axis, place in places}
        return Point(index=index, values=values, scenario=self._grid.scenario(places))

    def __iter__(self) -> Iterator[Point]:
        return map(self.__getitem__, range(self._length))

    def values(self, index: int) -> tuple[float | str, ...]:
        """Returns the values of the axes at a point, as stored."""
        return tuple(axis.column(place) for axis, place in self.places(index))

    def places(self, index: int) -> list[tuple[Axis, int]]:
        """Returns the axes at a point, each with the index of its value."""
        places: list[tuple[Axis, int]] = []
        for group in reversed(self._grid.groups):
            index, place = divmod(index, len(group))
            places[:0] = [(axis, place) for axis in group.axes]
        return places


def _at(scenario: Any, path: str) -> dict[str, Any]:
    """Returns the table at a path, or an empty table if there is none."""
    for step in matched(scenario, path)[0]:
        scenario = scenario.get(step) if isinstance(scenario, dict) else None
    return scenario if isinstance(scenario, dict) else {}


def _chosen(scenario: dict[str, Any], path: str, table: str) -> bool:
    """Returns whether this table can be set at a path: either it is the chosen table, or no table has been chosen."""
    tables = _at(scenario, path)
    return not tables or table in tables


def _kept(scenario: dict[str, Any], axis: Axis, lacking: tuple[str, str]) -> bool:
    """Returns whether the chosen table is the axis's only value.

    A TCP named by text keeps the other settings of the scenario.
    """
    path, table = lacking
    parent, _, name = axis.path.removeprefix(f"{path}.{table}.").rpartition(".")
    other = ".".join(filter(None, (path, next(iter(_at(scenario, path)), ""), parent)))
    return len(axis) == 1 and _at(scenario, other).get(name) == axis.setting(0)
