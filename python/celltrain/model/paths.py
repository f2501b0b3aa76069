"""Paths into a scenario, such as `port.bottleneck.buffer`: the values each path takes, also with units."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from celltrain import _core
from celltrain.errors import CelltrainError
from celltrain.model.arguments import checked
from celltrain.text import nearest

#: Most digits of a number with a unit; longer numbers exceed every limit, and may exceed the range of a float.
MOST_DIGITS = 40


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A kind of number with a unit: its name in the schema, and its units."""

    kind: str
    unit: str
    """Unit of the quantity in the columns of a store."""
    units: dict[str, Fraction]
    """Units in terms of `unit`, the finest last: scenarios store whole numbers of the finest."""
    example: str

    def read(self, text: str) -> Fraction:
        """Returns the value in `unit`. The message of a `ValueError` completes a sentence that begins "... is not"."""
        match = re.fullmatch(r"\s*([0-9_]*\.?[0-9_]+|[0-9_]+\.)\s*(\w+)\s*", text)
        if match is None or match[2] not in self.units:
            raise ValueError(self.expected)
        if len(match[1]) > MOST_DIGITS:
            raise ValueError(f"a {self.kind} of at most {MOST_DIGITS} digits")
        return Fraction(Decimal(match[1].replace("_", ""))) * self.units[match[2]]

    def write(self, value: Fraction) -> str:
        """Formats a value as in a scenario, rounded to the finest unit."""
        name, finest = list(self.units.items())[-1]
        return f"{round(value / finest)}{name}"

    @property
    def expected(self) -> str:
        """Description of a valid value."""
        return f'a {self.kind} such as "{self.example}", in {", ".join(self.units)}'


def _units(**units: int) -> dict[str, Fraction]:
    return {name: Fraction(10) ** power for name, power in units.items()}


#: Quantities by their names in the schema.
QUANTITIES = {
    "rate": Quantity(kind="rate", unit="bit/s", units=_units(Gbps=9, Mbps=6, kbps=3, bps=0), example="155.52Mbps"),
    "time": Quantity(kind="time", unit="s", units=_units(s=0, ms=-3, us=-6, ns=-9, ps=-12), example="5us"),
    "size": Quantity(kind="size", unit="B", units=_units(MB=6, kB=3, B=0), example="512B"),
}


def seconds(text: str) -> float:
    """Reads a time in seconds.

    >>> seconds("60s"), seconds("5us")
    (60.0, 5e-06)
    """
    return float(QUANTITIES["time"].read(text))


def exact(number: float) -> Fraction:
    """Converts a number via its decimal digits, so that 0.1 is exactly a tenth."""
    return Fraction(Decimal(repr(number)))


Schema = dict[str, Any]
#: An index into a list. No list has more members than this allows.
_INDEX = re.compile("[0-9]{1,9}")


class UnknownKeyError(CelltrainError):
    """Raised if a path leads to a key that does not exist. The text is a clause that follows the path."""


class NoPlaceError(UnknownKeyError):
    """Raised if a scenario has no place for the value at a path."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path


@dataclass(frozen=True, kw_only=True)
class Key:
    """The schema's entry for a path."""

    path: str
    quantity: Quantity | None
    """Kind of number with a unit, if the key takes one."""
    whole: bool
    """Unit of plain numbers; empty if they have no unit, or if the key takes other values."""
    unit: str
    """Unit of plain numbers; empty if they have none, or if the key takes other values."""
    meaning: str
    is_threshold: bool = False
    """True if the key takes a threshold of a buffer: a share, or a number of cells."""


@checked()
def follow(path: str) -> Key:
    """Returns the key at a path such as `port.bottleneck.buffer`; raises `UnknownKeyError`.

    >>> follow("topology.n_source.link_delay").quantity.kind
    'time'
    """
    place = _place(path)
    every = [one for schema in place for one in _with_choices(schema)]
    kinds = _types(_alternatives(place))
    quantity = next((one["x-quantity"] for one in every if "x-quantity" in one), None)
    if any(
        "string" in _types([one]) and not one.keys() & {"x-quantity", "enum", "const"} for one in _alternatives(place)
    ):
        # The key also accepts other texts, such as the name of a distribution.
        quantity = None
    return Key(
        path=path,
        quantity=QUANTITIES.get(str(quantity)),
        whole="integer" in kinds and "number" not in kinds,
        unit=next((str(one["x-unit"]) for one in every if "x-unit" in one), ""),
        meaning=" ".join(next((one["description"] for one in place if "description" in one), "").split()),
        is_threshold=any("x-threshold" in one for one in every),
    )


@checked()
def choices(path: str) -> list[str]:
    """Lists the tables of which a path takes exactly one, such as the policies of a port; empty for other paths.

    Raises `UnknownKeyError` if the path does not exist.

    >>> "epd" in choices("port.bottleneck.policy"), choices("port.bottleneck.buffer")
    (True, [])
    """
    # A table that has a single required key looks like a choice between tables, but is not listed as one.
    listed = [inner for schema in _place(path) for one in _with_choices(schema) for inner in one.get("oneOf", [])]
    tables = [list(one.get("properties", {})) for one in listed if "required" in one]
    return [keys[0] for keys in tables if len(keys) == 1]


#: Common names of entries in tables whose names the scenario chooses.
_NAMED = {"port": ["bottleneck", "default"]}


def steps(path: str) -> list[str]:
    """Returns the possible next steps of a path, followed by `.` if they lead to a table, or by `=` if to a value.

    >>> steps("port.bottleneck")
    ['allocator=', 'allocator.', 'buffer=', 'marking.', 'policy=', 'policy.', 'scheduler=', 'scheduler.']
    """
    place = _alternatives(_place(path))
    names = {name for one in place for name in one.get("properties", {})}
    if any(isinstance(one.get("additionalProperties"), dict) for one in place):
        names |= set(_NAMED.get(path, []))
    found = []
    for name in sorted(names):
        inner = f"{path}.{name}" if path else name
        is_table = any("properties" in one or "additionalProperties" in one for one in _alternatives(_place(inner)))
        found += [f"{name}="] if choices(inner) or not is_table else []
        found += [f"{name}."] if is_table else []
    return found


def set_key(scenario: dict[str, Any], path: str, value: Any) -> None:
    """Sets a value at a dotted path. Adds missing tables, and replaces an existing value, even a whole table.

    Members of a list are numbered from 0: `topology.network.links.5.delay`. Raises `NoPlaceError` if a list has no such
    member. A pattern of switches sets the value at every switch that it matches; see `matched`.
    """
    _check_memory(scenario, path)
    for steps in matched(scenario, path):
        _set(scenario, steps, path, value)


def matched(scenario: Mapping[str, Any], path: str) -> list[list[str]]:
    """Returns the steps of a path; with a pattern of switches, the steps for each matching switch that has such a table.

    >>> tables = {"switch": {"tie_order": "fixed", "sw": {"memory": {}}, "other": {}}}
    >>> matched(tables, "switch.*.memory.cells"), matched({}, "switch.*.memory")
    ([['switch', 'sw', 'memory', 'cells']], [['switch', '*', 'memory']])
    """
    steps = path.split(".")
    switches = scenario.get("switch") if len(steps) > 2 and steps[0] == "switch" and "*" in steps[1] else None
    if not isinstance(switches, Mapping):
        return [steps]
    own = _switches_with(switches, steps[2])
    return [["switch", name, *steps[2:]] for name in own if fnmatchcase(name, steps[1])] or [steps]


def _switches_with(switches: Mapping[str, Any], table: str) -> list[str]:
    """Returns the names, or patterns of names, of the switches that have a table."""
    return [name for name, one in switches.items() if isinstance(one, Mapping) and table in one]


def _check_memory(scenario: Mapping[str, Any], path: str) -> None:
    """Raises `NoPlaceError` if a path leads into a pool of a memory that the scenario does not describe."""
    first, *steps = path.split(".")
    # A policy file has no topology.
    if "topology" not in scenario or first != "switch" or steps[1:2] != ["memory"] or "pool" not in steps:
        return
    switches = scenario.get("switch")
    known = _switches_with(switches, "memory") if isinstance(switches, Mapping) else []
    if not known:
        problem = (
            "is in a memory, but no ports share a memory in this scenario; choose another one, such as switch-dctcp"
        )
        raise NoPlaceError(path, f"{problem}: celltrain list scenarios")
    if not any(name == steps[0] or fnmatchcase(name, steps[0]) for name in known):
        names = ", ".join(f"switch.{name}.memory" for name in known)
        raise NoPlaceError(path, f"is in another memory; the memory of this scenario is {names}")


def _set(scenario: dict[str, Any], steps: Sequence[str], path: str, value: Any) -> None:
    *parents, last = steps
    place: Any = scenario
    for parent in parents:
        place = place[_member(place, parent, path)] if isinstance(place, list) else place.setdefault(parent, {})
        if not isinstance(place, dict | list):
            raise NoPlaceError(path, f"is inside {parent!r}, which is not a table in this scenario")
    place[_member(place, last, path) if isinstance(place, list) else last] = value


def _member(members: list[Any], step: str, path: str) -> int:
    """Returns the list index that a step gives."""
    if not _INDEX.fullmatch(step) or int(step) >= len(members):
        raise NoPlaceError(path, f"has {step!r}, which is not an index into a list of {len(members):,}, counted from 0")
    return int(step)


@cache
def _schema() -> Schema:
    schema: Schema = json.loads(_core.schema())
    return schema


@lru_cache(maxsize=1000)
def _place(path: str) -> list[Schema]:
    """Returns the schemas of a path's values; raises `UnknownKeyError`."""
    place: list[Schema] = [_schema()]
    walked: list[str] = []
    for step in path.split(".") if path else []:
        below = [inner for one in _alternatives(place) for inner in _below(one, step)]
        if not below:
            raise UnknownKeyError(_unknown(step, _alternatives(place), ".".join(walked)))
        place = below
        walked.append(step)
    return place


def _with_choices(schema: Schema) -> Iterator[Schema]:
    """Yields a schema, the schema to which it refers, and the choices in it."""
    yield schema
    if "$ref" in schema:
        yield from _with_choices(_schema()["$defs"][schema["$ref"].rsplit("/", 1)[-1]])
    for choice in schema.get("oneOf") or schema.get("anyOf") or []:
        yield from _with_choices(choice)


def _alternatives(place: list[Schema]) -> list[Schema]:
    """Returns the schemas at the leaves of all choices."""
    return [one for schema in place for one in _with_choices(schema) if not one.keys() & {"$ref", "oneOf", "anyOf"}]


def _below(schema: Schema, step: str) -> list[Schema]:
    if step in schema.get("properties", {}):
        return [schema["properties"][step]]
    if isinstance(schema.get("additionalProperties"), dict):
        return [schema["additionalProperties"]]
    if "array" in _types([schema]) and _INDEX.fullmatch(step):
        exactly = schema.get("prefixItems")
        return [schema["items"]] if exactly is None else exactly[int(step) : int(step) + 1]
    return []


def _types(schemas: list[Schema]) -> set[str]:
    kinds = [schema.get("type", []) for schema in schemas]
    return {kind for one in kinds for kind in ([one] if isinstance(one, str) else one)}


def _unknown(step: str, place: list[Schema], parent: str) -> str:
    if moved := next((one["x-moved"][step] for one in place if step in one.get("x-moved", {})), ""):
        return f"is now {parent}.{moved}"
    known = sorted({name for one in place for name in one.get("properties", {})})
    if not known and "array" in _types(place):
        return f"is not a setting: {parent} is a list, and {step!r} is not an index into it, counted from 0"
    if not known:
        return f"is not a setting: there is nothing below {parent}"
    near = nearest(step, known)
    # Users often write settings of a port without the port's name.
    if not parent and step in _schema()["$defs"]["PortConfig"]["properties"]:
        near = f"port.bottleneck.{step}"
    listed = f"{f'below {parent}' if parent else 'keys'}: {', '.join(known)}"
    if near:
        return f"is not a setting: {step!r} is unknown; did you mean {near}? Known {listed}"
    return f"is not a setting: {step!r} is unknown; known {listed}"
