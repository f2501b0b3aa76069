"""A checked plan and its points."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from celltrain import _core
from celltrain.arguments import checked
from celltrain.errors import Fault, PlanError, ScenarioError
from celltrain.paths import set_key
from celltrain.plan.axis import Axis, Drawn
from celltrain.scenario import Reading, table

if TYPE_CHECKING:
    from celltrain.models import Scenario

#: More runs than anybody waits for.
MAX_RUNS = 10**8
#: What is measured where a plan does not say.
MEASURES = (
    "efficiency",
    "fairness",
    "cells.lost",
    "cells.discarded",
    "ports.bottleneck.max_queue_cells",
    "flows.sum(*).timeouts",
    "flows.sum(*).retransmitted_segments",
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
class Recording:
    """The series that every run records."""

    trace: tuple[str, ...]
    step: str
    ports: tuple[str, ...] | None
    """The bottleneck when None."""


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
class Plan:
    """A checked plan."""

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

    @classmethod
    @checked(PlanError)
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """The plan in a TOML file; raises `PlanError` with everything that is wrong with it."""
        from celltrain.plan.reader import read_file

        return read_file(Path(path))

    @classmethod
    @checked(PlanError)
    def of_toml(cls, text: str, *, file: str = "plan", folder: str | os.PathLike[str] = ".") -> Plan:
        """The plan in a text; `folder` is where the scenario it names stands."""
        from celltrain.plan.reader import read_toml

        return read_toml(text, file, Path(folder))

    @classmethod
    @checked(PlanError)
    def of(cls, base: Scenario | str | os.PathLike[str], document: Mapping[str, Any], *, file: str = "sweep") -> Plan:
        """The plan of a scenario and everything else as in a file, as Python values."""
        from celltrain.plan.reader import read_values

        return read_values(base, document, file)

    @classmethod
    @checked(PlanError)
    def of_document(cls, document: Mapping[str, Any]) -> Plan:
        """The plan again whose `document` this is."""
        from celltrain.plan.reader import read_again

        return read_again(document)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All that is varied, in the order of the columns."""
        return tuple(axis for group in self.groups for axis in group.axes)

    @cached_property
    def points(self) -> Points:
        """The points, each made when it is asked for."""
        return Points(self)

    @property
    def runs(self) -> int:
        """Runs in all; with `until`, the most there can be."""
        return len(self.points) * self.seeds.count

    @cached_property
    def digest(self) -> str:
        """16 hex digits that change when anything does that changes which runs there are, or what of them is kept."""
        said = {key: value for key, value in self.document.items() if key not in ("name", "limits")}
        # Another version of scipy may draw another sample.
        drawn = [
            [axis.name, hashlib.sha256(axis.numbers.shares.tobytes()).hexdigest()]
            for axis in self.axes
            if isinstance(axis.numbers, Drawn)
        ]
        text = json.dumps([said, self.measures, drawn], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Points(Sequence[Point]):
    """The points of a plan, none of them in memory."""

    def __init__(self, plan: Plan) -> None:
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
        scenario = copy.deepcopy(self._plan.base)
        values: dict[str, float | str] = {}
        for axis, place in self.places(index):
            values[axis.name] = axis.column(place)
            set_key(scenario, axis.path, copy.deepcopy(axis.setting(place)))
        return Point(index=index, values=values, scenario=scenario)

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


@checked(ScenarioError)
def canonical(scenario: Mapping[str, Any]) -> str:
    """A scenario as the one text that stands for it: every default filled in, keys sorted, without seed and name.

    Raises `ScenarioError` when it is refused.

    >>> from celltrain import load
    >>> text = canonical(load("scenarios/lan-epd.toml").to_dict())
    >>> text[:8]
    '{"aal5":'
    """
    return canonical_with_memory(scenario)[0]


def canonical_with_memory(scenario: Mapping[str, Any]) -> tuple[str, int]:
    """The same, and the bytes of memory that a run of it takes."""
    reading = Reading.of_table(scenario, "scenario")
    accepted = table(reading.accepted())
    text = compact({key: value for key, value in accepted.items() if key not in ("seed", "name")})
    return text, reading.memory_bytes or 0


def compact(value: Any) -> str:
    """JSON with sorted keys and nothing between."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@checked(PlanError)
def run_key(configuration: str, seed: int, *, version: str | None = None) -> str:
    """24 hex digits that stand for one run: of its canonical scenario, its seed, and the version (this one's)."""
    if not 0 <= seed < 1 << 64:
        raise PlanError([Fault.of_option("seed", seed, "is not a whole number from 0 to 2^64 - 1")])
    text = f"{version or _core.build()['version']}\n{seed}\n{configuration}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]
