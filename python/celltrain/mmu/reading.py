"""Reads tables from files that users write, and stores them in dataclasses. Every fault has its file and line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from celltrain.errors import Fault, InputError
from celltrain.model import shipped
from celltrain.text import among, described, nearest

T = TypeVar("T", bound="Table")

#: Maximum number of faults that are reported for a file.
MOST_FAULTS = 100


class Table(BaseModel):
    """A table of a file. Unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@dataclass(frozen=True)
class Place:
    """A value in a file."""

    file: str
    line: int | None = None
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The file from which a table was read, and the places of its values by their paths, such as `pool.egress.size`."""

    file: str
    places: Mapping[str, Place] = field(default_factory=dict)

    def place(self, path: str) -> Place:
        """Returns the place of a value. If it is unknown, returns the place of the nearest table around the value."""
        above = path
        while above and above not in self.places:
            above = above.rpartition(".")[0]
        found = self.places.get(above, Place(self.file))
        return Place(found.file, found.line, (found.key or above) + path[len(above) :] if above else path)

    def fault(self, path: str, problem: str, value: object = None) -> Fault:
        """Returns the fault of a value. The problem is a clause that follows `key = value`, or the key alone."""
        place = self.place(path)
        text = "" if value is None else value if isinstance(value, str) else described(value)
        return Fault.of(problem, file=place.file, line=place.line, key=place.key, value=text)


def read_toml(path: Path, *, what: str) -> tuple[dict[str, Any], Source]:
    """Reads a TOML file; raises `InputError`."""
    file = str(path)
    table, lines = shipped.toml(shipped.read_text(path, what=what), file)
    # The parser names entries of lists like `port[0]`.
    places = {re.sub(r"\[(\d+)\]", r".\1", key): Place(file, line, key) for key, line in lines.items()}
    return table, Source(file=file, places=places)


def table_of(kind: type[T], table: Mapping[str, Any], source: Source) -> T:
    """Returns the model of a table; raises `InputError` with every wrong key and value."""
    try:
        # In strict mode, pydantic accepts a list as a tuple only in JSON.
        return kind.model_validate_json(json.dumps(table))
    except ValidationError as error:
        raise InputError([_fault(one, kind, source) for one in error.errors()[:MOST_FAULTS]]) from None


def _fault(error: Mapping[str, Any], kind: type, source: Source) -> Fault:
    steps = [str(step) for step in error["loc"]]
    path, value = ".".join(steps), error["input"]
    written = value if isinstance(value, str) else json.dumps(value, default=described)
    if error["type"] == "missing":
        return source.fault(path, "is missing")
    if error["type"] == "extra_forbidden":
        return source.fault(path, f"is not a key here; {among(steps[-1], _keys(kind, steps[:-1]))}")
    wanted = {
        "int_type": "is not a whole number",
        "string_type": "is not a text",
        "bool_type": "is not true or false",
        "tuple_type": "is not a list",
        "dict_type": "is not a table",
        "model_type": "is not a table",
    }
    if isinstance(value, str) and error["type"] in ("int_type", "float_type", "bool_type"):
        plain = "true or false" if error["type"] == "bool_type" else "a number"
        return source.fault(path, f"is text; write {plain} without quotes", json.dumps(value))
    problem = wanted.get(error["type"], f"cannot be used: {error['msg'][:1].lower()}{error['msg'][1:]}")
    if error["type"] == "greater_than_equal":
        problem = f"is below {error['ctx']['ge']}"
    if error["type"] == "literal_error":
        near = nearest(written, re.findall(r"'([^']*)'", error["ctx"]["expected"]))
        problem = f"is none of {error['ctx']['expected']}" + (f"; did you mean {near}?" if near else "")
    return source.fault(path, problem, written)


def _keys(kind: Any, steps: list[str]) -> list[str]:
    """Returns the keys of the table at a path."""
    for step in steps:
        of_table = getattr(kind, "model_fields", {}).get(step)
        kind = get_args(kind)[-1 if get_args(kind)[-1] is not ... else 0] if of_table is None else of_table.annotation
        kind = get_args(kind)[0] if type(None) in get_args(kind) else kind
    return list(kind.model_fields)


def refuse(faults: list[Fault]) -> None:
    """Raises `InputError` if there are faults."""
    if faults:
        raise InputError(faults[:MOST_FAULTS])
