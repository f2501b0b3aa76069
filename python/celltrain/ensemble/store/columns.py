"""The columns of a store: what each holds, in which unit, in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celltrain.errors import StoreError
from celltrain.model.arguments import checked
from celltrain.model.measures import ROWS, RUN
from celltrain.running.tables import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.ensemble.plan import Plan

_FIRST = (
    Column(
        name="run_key",
        kind="name",
        unit="",
        meaning="hash of canonical scenario, seed and version: this run alone has it",
    ),
    Column(name="point", kind="int32", unit="1", meaning="index of the point in the plan"),
)
_LAST = (
    Column(name="seed", kind="uint64", unit="1", meaning="seed of every random choice of the run"),
    Column(name="measure", kind="name", unit="", meaning="what was measured; null where the run failed"),
    Column(
        name="value", kind="float64", unit="", meaning="its value, in the unit of the measure; null where it has none"
    ),
    Column(name="error", kind="name", unit="", meaning="why the run, or the measure, has no value"),
    Column(name="fingerprint", kind="name", unit="", meaning="16 hex digits that change with any segment's instant"),
    Column(name="configuration", kind="name", unit="", meaning="the scenario as JSON, every default filled in"),
    Column(name="version", kind="name", unit="", meaning="of celltrain"),
    Column(name="profile", kind="name", unit="", meaning="of its build: release or debug"),
)

#: Measures of the whole run.
_RUN = {measure.name: measure for measure in RUN}
_ROWS = {name: {measure.name: measure for measure in measures} for name, measures in ROWS.items()}
#: What is made of several numbers and has no unit.
_PURE = ("variation", "fairness")
#: Measures that lie between 0 and 1.
_SHARES = ("efficiency", "fairness", "fairness_max_min", "utilisation", "rm_share")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measure: its unit and one line on what it is."""

    name: str
    unit: str
    """`1` for pure numbers; empty where it is not known."""
    meaning: str


@checked(StoreError)
def measured(text: str) -> Measured:
    """What is known of a measure.

    >>> measured("ports.bottleneck.max_queue_cells").unit
    'cells'
    """
    if text in _RUN:
        return Measured(name=text, unit=_RUN[text].unit, meaning=_RUN[text].meaning)
    # A path is a list, a row's name, and the measure, whose own name may have a dot. An expression, or a row's name with dots, is its own meaning.
    path = text.split(".", 2)
    measure = _ROWS.get(path[0], {}).get(path[-1]) if len(path) == 3 else None
    if measure is None or " " in text:
        return Measured(name=text, unit="", meaning=text)
    pure = path[1].startswith(tuple(f"{name}(" for name in _PURE))
    return Measured(name=text, unit="1" if pure else measure.unit, meaning=f"{path[1]}: {measure.meaning}")


def bounds(text: str) -> tuple[float, float]:
    """The least and the largest possible value of a measure; infinite for an expression, which may have any.

    >>> bounds("fairness"), bounds("ports.sw1->sw2.lost_cells"), bounds("goodput_mbps - 3")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    path = text.split(".", 2)
    if " " in text or (text not in _RUN and path[-1] not in _ROWS.get(path[0], {})):
        return -math.inf, math.inf
    is_variation = len(path) == 3 and path[1].startswith("variation(")
    is_fairness = len(path) == 3 and path[1].startswith("fairness(")
    is_share = path[-1] in _SHARES and not is_variation and not (len(path) == 3 and path[1].startswith("sum("))
    return 0.0, 1.0 if is_share or is_fairness else math.inf


def fixed(plan: Plan) -> list[Column]:
    """Every column of the store of a plan."""
    axes = [
        Column(name=axis.name, kind="float64" if axis.is_number else "name", unit=axis.unit, meaning=axis.meaning)
        for axis in plan.axes
    ]
    return [*_FIRST, *axes, *_LAST]


def schema(columns: Sequence[Column], metadata: dict[str, str]) -> pa.Schema:
    """The Arrow schema of the parts."""
    import pyarrow as pa

    return pa.schema([column.field() for column in columns], metadata=metadata)


def as_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """As in the manifest."""
    return [{"name": c.name, "kind": c.kind, "unit": c.unit, "meaning": c.meaning} for c in columns]
