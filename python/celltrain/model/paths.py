"""Paths into a scenario, such as `port.bottleneck.buffer`: the values that each takes, and setting them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from celltrain import _core
from celltrain.errors import CelltrainError
from celltrain.model.arguments import checked
from celltrain.model.quantities import QUANTITIES, Quantity

Schema = dict[str, Any]


class UnknownKeyError(CelltrainError):
    """A path to a key that does not exist; its text is a clause that follows the path."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """The schema's entry for a path."""

    path: str
    quantity: Quantity | None
    """The kind of number with a unit that it takes, if any."""
    whole: bool
    """True if it takes whole numbers only."""
    unit: str
    """The unit of its plain numbers; empty if it has none or takes other values."""
    meaning: str
    is_threshold: bool = False
    """True if it takes a threshold of a buffer: a share, or a number of cells."""


@checked()
def follow(path: str) -> Key:
    """Returns the key at a path such as `port.bottleneck.buffer`; raises `UnknownKeyError`.

    >>> follow("topology.n_source.link_delay").quantity.kind
    'time'
    """
    place = _place(path)
    described = next((one["description"] for one in place if "description" in one), "")
    plain = [plain for one in place for plain in _alternatives(one)]
    kinds = {kind for one in plain for kind in _types(one)}
    quantity = next((one["x-quantity"] for one in plain if "x-quantity" in one), None)
    return Key(
        path=path,
        quantity=None if quantity is None else QUANTITIES[quantity],
        whole="integer" in kinds and "number" not in kinds,
        unit=next((str(one["x-unit"]) for one in [*place, *_resolved_all(place)] if "x-unit" in one), ""),
        meaning=" ".join(described.split()),
        is_threshold=any("x-threshold" in one for choice in place for one in _choices_in(choice)),
    )


@checked()
def choices(path: str) -> list[str]:
    """Lists the tables of which a path takes exactly one, such as the policies of a port; empty for other paths.

    Raises `UnknownKeyError` if the path does not exist.

    >>> "epd" in choices("port.bottleneck.policy"), choices("port.bottleneck.buffer")
    (True, [])
    """
    found = [one for schema in _place(path) for one in _alternatives(schema)]
    tables = [list(one["properties"]) for one in found if list(one.get("properties", {})) == one.get("required")]
    # A table with one required key looks the same, but has no alternatives.
    return [keys[0] for keys in tables if len(keys) == 1] if len(tables) > 1 else []


#: Names for tables that a scenario names itself.
_NAMED = {"port": ["bottleneck", "default"]}


def steps(path: str) -> list[str]:
    """Returns the steps that may follow a path, each with `.` behind it if it leads to a table, or `=` to a value.

    >>> steps("port.bottleneck")
    ['allocator=', 'allocator.', 'buffer=', 'policy=', 'policy.', 'scheduler=', 'scheduler.']
    """
    below: dict[str, list[Schema]] = {}
    for schema in _place(path) if path else [_schema()]:
        for one in _alternatives(schema):
            known = one.get("properties", {})
            if isinstance(one.get("additionalProperties"), dict):
                known = dict.fromkeys(_NAMED.get(path, []), one["additionalProperties"])
            for name, inner in known.items():
                below.setdefault(name, []).extend(_alternatives(inner))
    found = []
    for name in sorted(below):
        is_choice = bool(choices(f"{path}.{name}" if path else name))
        is_table = any("properties" in one or "additionalProperties" in one for one in below[name])
        found += [f"{name}="] if is_choice or not is_table else []
        found += [f"{name}."] if is_table else []
    return found


def set_key(scenario: dict[str, Any], path: str, value: Any) -> None:
    """Sets a value by its dotted path and makes tables on the way; replaces the value at the path, even a whole table.

    Members of a list are numbered from 0: `topology.network.links.5.delay`. Raises `UnknownKeyError` if a list has no such
    member.
    """
    *parents, last = path.split(".")
    place: Any = scenario
    for parent in parents:
        place = place[_member(place, parent, path)] if isinstance(place, list) else place.setdefault(parent, {})
        if not isinstance(place, dict | list):
            raise UnknownKeyError(f"sets {path}, but {parent!r} is not a table in this scenario")
    place[_member(place, last, path) if isinstance(place, list) else last] = value


def _place(path: str) -> list[Schema]:
    """Returns the schemas of a path's values; raises `UnknownKeyError`."""
    place, walked = [_schema()], []
    for step in path.split("."):
        walked.append(step)
        below = [inner for alternative in place for inner in _below(alternative, step)]
        if not below:
            raise UnknownKeyError(_unknown(step, place, ".".join(walked[:-1])))
        place = below
    return place


def _member(members: list[Any], step: str, path: str) -> int:
    """Returns the index that a step of a path writes."""
    if not _is_place(step) or int(step) >= len(members):
        raise UnknownKeyError(f"sets {path}, but {step!r} is not a place in a list of {len(members):,}, counted from 0")
    return int(step)


def _is_place(step: str) -> bool:
    """Returns True if a step of a path is an index of a list; no list has thousands of millions of members."""
    return re.fullmatch("[0-9]{1,9}", step) is not None


@cache
def _schema() -> Schema:
    schema: Schema = json.loads(_core.schema())
    return schema


def _resolve(schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = _schema()["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    return schema


def _resolved_all(place: list[Schema]) -> list[Schema]:
    return [_resolve(one) for one in place]


def _choices_in(schema: Schema) -> Iterator[Schema]:
    """Yields a schema and the choices in it."""
    schema = _resolve(schema)
    yield schema
    for choice in schema.get("oneOf") or schema.get("anyOf") or []:
        yield from _choices_in(choice)


def _alternatives(schema: Schema) -> Iterator[Schema]:
    """Yields the alternatives of a schema."""
    schema = _resolve(schema)
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices is None:
        yield schema
        return
    for choice in choices:
        yield from _alternatives(choice)


def _below(schema: Schema, step: str) -> Iterator[Schema]:
    """Yields the schemas below a step, in each of the alternatives."""
    for one in _alternatives(schema):
        if step in one.get("properties", {}):
            yield one["properties"][step]
        elif isinstance(one.get("additionalProperties"), dict):
            yield one["additionalProperties"]
        elif "array" in _types(one) and _is_place(step):
            exactly = one.get("prefixItems")
            if exactly is None:
                yield one["items"]
            elif int(step) < len(exactly):
                yield exactly[int(step)]


def _types(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _unknown(step: str, place: list[Schema], parent: str) -> str:
    alternatives = [one for schema in place for one in _alternatives(schema)]
    known = sorted({name for one in alternatives for name in one.get("properties", {})})
    if not known and any("array" in _types(one) for one in alternatives):
        return f"is not a setting: {parent} is a list, and {step!r} is not a place in it, counted from 0"
    if not known:
        return f"is not a setting: there is nothing below {parent}"
    near = difflib.get_close_matches(step, known, n=1)
    hint = f"did you mean {near[0]}?" if near else ""
    # Settings of a port are often written without its name.
    if not parent and step in _schema()["$defs"]["PortConfig"]["properties"]:
        hint = f"did you mean port.bottleneck.{step}?"
    listed = f"{f'below {parent}' if parent else 'keys'}: {', '.join(known)}"
    return f"is not a setting: {step!r} is unknown; {f'{hint} Known' if hint else 'known'} {listed}"
