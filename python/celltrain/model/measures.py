"""What is measured: every measure of an answer and of the recorded series, as the core's tables have them.

A measure's name, unit and meaning stand in one place, in the crate `celltrain-run`; the columns of all tables, what a plan
may record, the printed tables and the page `docs/measures.md` follow from it.

>>> [measure.unit for measure in PORTS if measure.name == "max_queue_cells"]
['cells']
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from celltrain import _core

__all__ = ["ABR", "CONTRACTS", "EVENTS", "FLOWS", "PORTS", "ROWS", "RUN", "SERIES", "Kind", "Measure", "Series"]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One measure of a run, a flow, a port, a VC, or of a series."""

    name: str
    """A dot separates a group from its member: `file_delay_ms.mean`."""
    kind: str
    """The name of an Arrow type."""
    unit: str
    """Empty for texts, `1` for pure numbers."""
    meaning: str
    heading: str = ""
    """Its heading in tables for people."""
    printed: str = "never"
    """When it is in such a table: `never`, `always`, where rows `differ`, or where some row has it (`present`)."""

    @property
    def column(self) -> str:
        """The name of its column in a table without groups."""
        return self.name.replace(".", "_")

    def of(self, row: Mapping[str, Any]) -> Any:
        """Its value of a row of the answer; None where the row has no such thing."""
        value: Any = row
        for step in self.name.split("."):
            value = None if value is None else value[step]
        return value


@dataclass(frozen=True, kw_only=True)
class Series:
    """One kind of recorded series."""

    name: str
    meaning: str
    over: str
    """What it has a column for: `ports`, `occupancy_columns`, `flows`, `rate_flows` or `edge_flows`."""
    columns: tuple[Measure, ...]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of event."""

    name: str
    meaning: str
    engines: tuple[str, ...]
    """Those that tell of it."""
    columns: tuple[Measure, ...]


def _measures(lines: list[dict[str, str]]) -> tuple[Measure, ...]:
    return tuple(Measure(**line) for line in lines)


_TABLES = json.loads(_core.measures())

#: Of a whole run.
RUN = _measures(_TABLES["run"])
#: Of a connection.
FLOWS = _measures(_TABLES["flows"])
#: Of an output port.
PORTS = _measures(_TABLES["ports"])
#: Of a VC with a contract (GFR).
CONTRACTS = _measures(_TABLES["contracts"])
#: Of a VC whose rate is controlled (ABR).
ABR = _measures(_TABLES["abr"])
#: The lists of an answer by name, and what their rows have.
ROWS = {"flows": FLOWS, "ports": PORTS, "contracts": CONTRACTS, "abr": ABR}
#: What can be recorded, by name.
SERIES = {
    line["name"]: Series(
        name=line["name"], meaning=line["meaning"], over=line["over"], columns=_measures(line["columns"])
    )
    for line in _TABLES["series"]
}
#: The kinds of events, by name.
EVENTS = {
    line["name"]: Kind(
        name=line["name"],
        meaning=line["meaning"],
        engines=tuple(line["engines"]),
        columns=_measures(line["columns"]),
    )
    for line in _TABLES["events"]
}


def result_schema() -> dict[str, Any]:
    """Returns the JSON Schema of the answer of `celltrain run --json`. A value that a run does not have is null.

    >>> result_schema()["properties"]["efficiency"]["type"]
    ['number', 'null']
    """
    lists = {name: {"type": "array", "items": _object(measures)} for name, measures in ROWS.items()}
    whole = _object(RUN)
    whole["properties"] |= lists | {
        "build": {
            "type": "object",
            "properties": {"version": {"type": "string"}, "profile": {"enum": ["release", "debug"]}},
        },
        "tcp": {
            "type": "string",
            "description": "the TCP of the flows, such as: vanilla (no fast retransmit, 100 ms ticks)",
        },
        "format": {
            "const": _TABLES["format"],
            "description": "version of this shape; it grows when a key moves or changes its meaning",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The result of a run",
        **whole,
        "required": sorted(whole["properties"]),
    }


_JSON_TYPES = {"string": "string", "int64": "integer", "float64": "number"}


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
