"""Measures of an answer and of the recorded series, from the core's tables.

The name, unit and meaning of each measure are defined in one place, the crate `celltrain-run`. The columns of all
tables, the measures that a plan may record, the printed tables and the page `docs/measures.md` are generated from it.

>>> [measure.unit for measure in PORTS if measure.name == "max_queue_cells"]
['cells']
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import CelltrainError

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = [
    "ABR",
    "CONTRACTS",
    "EVENTS",
    "FLOWS",
    "LINKS",
    "PORTS",
    "ROWS",
    "RUN",
    "SERIES",
    "Kind",
    "Measure",
    "Series",
]


@dataclass(frozen=True)
class Measure:
    """A measure of a run, a flow, a port, a VC or a series; also a column of a table."""

    name: str
    """A dot separates groups from their members: `file_delay_ms.mean`."""
    kind: str
    """Name of an Arrow type, or `name` for a text with many repetitions."""
    unit: str
    """The unit: empty for texts, `1` for dimensionless numbers."""
    meaning: str
    heading: str = ""
    """Heading in printed tables."""
    printed: str = "never"
    """Condition for printing the column: `never`, `always`, rows `differ`, or a value is `present` in some row."""
    on_request: bool = False
    """True if answers contain the measure only on request, such as delays of packets."""
    label: str = ""
    """The user's label in tables and figures; empty if the label is derived from the name."""

    @property
    def column(self) -> str:
        """Name of the column in a table without groups."""
        return self.name.replace(".", "_")

    def of(self, row: Mapping[str, Any]) -> Any:
        """Returns the value in a row of the answer; None if the row has no value."""
        value: Any = row
        for step in self.name.split("."):
            value = None if value is None or (self.on_request and step not in value) else value[step]
        return value

    def as_column(self) -> Measure:
        """Returns the measure with its column's name."""
        return replace(self, name=self.column)

    def field(self) -> pa.Field:
        """Returns the Arrow field of the column, with unit and meaning in the metadata."""
        import pyarrow as pa

        kind = pa.dictionary(pa.int32(), pa.string()) if self.kind == "name" else pa.type_for_alias(self.kind)
        return pa.field(self.name, kind, metadata={"unit": self.unit, "meaning": self.meaning})


@dataclass(frozen=True, kw_only=True)
class Series:
    """An answer has links only if some link has loss rules."""

    name: str
    meaning: str
    over: str
    """List that names the columns: `ports`, `occupancy_columns`, `flows`, `window_flows`, `rate_flows`, `edge_flows` or
    `memory_queues`."""
    columns: tuple[Measure, ...]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of event."""

    name: str
    meaning: str
    engines: list[str]
    """The engines that report events of this kind."""
    columns: tuple[Measure, ...]


def _measures(lines: list[dict[str, Any]]) -> tuple[Measure, ...]:
    return tuple(Measure(**line) for line in lines)


_TABLES = json.loads(_core.measures())

#: The lists of an answer by name, with the measures of their rows: flows, ports, links with loss rules, VCs with a
#: contract (GFR), VCs with a controlled rate (ABR), memories that ports share, their queues, and groups of requests.
LISTS = ("flows", "ports", "links", "contracts", "abr", "memories", "queues", "requests")
ROWS = {name: _measures(_TABLES[name]) for name in LISTS}
FLOWS, PORTS, LINKS, CONTRACTS, ABR, MEMORIES, QUEUES, REQUESTS = ROWS.values()
#: The measures of a whole run.
RUN = _measures(_TABLES["run"])
SERIES = {line["name"]: Series(**{**line, "columns": _measures(line["columns"])}) for line in _TABLES["series"]}
EVENTS = {line["name"]: Kind(**{**line, "columns": _measures(line["columns"])}) for line in _TABLES["events"]}


def result_schema() -> dict[str, Any]:
    """Returns the JSON Schema of the answer of `celltrain run --json`. Values that a run does not have are null.

    >>> result_schema()["properties"]["efficiency"]["type"]
    ['number', 'null']
    """
    lists = {name: {"type": "array", "items": _object(measures)} for name, measures in ROWS.items()}
    whole = _object(RUN)
    build = {
        "version": {"type": "string", "description": "version of celltrain, with the commit if it is known"},
        "commit": {"type": ["string", "null"], "description": "commit of celltrain; null if it was built without git"},
        "profile": {"enum": ["release", "debug"]},
    }
    tcp = "the TCP of the flows, such as: vanilla (no fast retransmit, 100 ms ticks)"
    shape = "version of this format; increases if a key moves or changes its meaning"
    whole["properties"] |= lists | {
        "build": {"type": "object", "properties": build},
        "tcp": {"type": "string", "description": tcp},
        "format": {"const": _TABLES["format"], "description": shape},
    }
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "The result of a run"}
    # An answer has links only if some link has loss rules.
    return {**head, **whole, "required": sorted(set(whole["properties"]) - {"links"})}


_JSON_TYPES = {"string": "string", "int64": "integer", "float64": "number", "bool": "boolean"}


def _object(measures: tuple[Measure, ...]) -> dict[str, Any]:
    """Returns the schema of a row; measures with a dot in their names are grouped in an object, which may be null."""
    properties: dict[str, Any] = {}
    for measure in measures:
        unit = f" ({measure.unit})" if measure.unit not in ("", "1") else ""
        one = {"type": [_JSON_TYPES[measure.kind], "null"], "description": f"{measure.meaning}{unit}"}
        group, _, member = measure.name.partition(".")
        if member:
            properties.setdefault(group, {"type": ["object", "null"], "properties": {}})["properties"][member] = one
        else:
            properties[group] = one
    return {"type": "object", "properties": properties}


# Measure expressions: paths into a result, and arithmetic on them.


#: Number of requests that each statistic needs.
NEEDED = dict(_core.REQUESTS_NEEDED)


class MeasureError(CelltrainError, ValueError):
    """Raised if a text is not a valid measure, or if a run's answer has no such path."""


class TooFewError(MeasureError):
    """Raised if a run has too few values for a percentile."""


class NoValueError(MeasureError):
    """Raised if this run has no value but others may, such as a mean delay when no file was completed."""


_ERRORS = {"undefined": NoValueError, "too_few": TooFewError, "wrong": MeasureError}


def measure(text: str, answer: Mapping[str, Any]) -> float:
    """Returns the value of a measure in an answer; measures that need a trace are 0.

    >>> measure("flows.sum(*).v / 2", {"flows": [{"name": "a", "v": 3}, {"name": "b", "v": 4}]})
    3.5
    """
    value, kind, message = _core.evaluate(encodable([text])[0], json.dumps(answer))
    if value is None:
        raise _ERRORS[kind](message)
    return value


def check_syntax(text: str) -> None:
    """Raises `MeasureError` unless the text is paths and numbers joined by operators, with at least one path."""
    has_path, _, _ = _parsed(text)
    if not has_path:
        raise MeasureError(f"{text!r} names no measure")


def needs_series(text: str) -> bool:
    """Returns whether a measure needs a trace."""
    try:
        return _parsed(text)[1]
    except MeasureError:
        return False


def is_lower_bound(text: str, note: str) -> bool:
    """Returns whether a note that a store keeps about a measure says that the value is a lower bound.

    A measure computed from lower bounds is not itself a lower bound, unless it is a single path to one or several
    values.

    >>> note = "'a.b_p99' is a lower bound: 3 of 9 requests were open at the end"
    >>> [is_lower_bound(text, note) for text in ("a.b_p99", "a.mean(*).b_p99", "a.fairness(*).b_p99", "a.b_p99 - 1")]
    [True, True, False, False]
    """
    return " is a lower bound: " in note and _parsed(text)[2]


def named(text: str, known: Sequence[str]) -> list[str]:
    """Returns the known names that match a name, a range such as `tcp1-3`, all (`*`), or a pattern."""
    try:
        return _core.named(text, known)
    except ValueError as error:
        raise MeasureError(str(error)) from None


def encodable(texts: Iterable[str]) -> list[str]:
    """Replaces halves of surrogate pairs, which text from JSON may contain, but no name does."""
    return [text.encode(errors="replace").decode() for text in texts]


@lru_cache(maxsize=1000)
def _parsed(text: str) -> tuple[bool, bool, bool]:
    """Returns whether a measure has a path, needs a trace, and is a lower bound if it reads lower bounds."""
    try:
        return _core.parse_measure(encodable([text])[0])
    except ValueError as error:
        raise MeasureError(f"{text!r:.200} {error}") from None
