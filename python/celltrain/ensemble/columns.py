"""Measures with their units and bounds, and the columns of tables of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from celltrain.errors import StoreError
from celltrain.model.arguments import checked
from celltrain.model.measures import ROWS, RUN
from celltrain.running.tables import Column

if TYPE_CHECKING:
    from celltrain.ensemble.plan import Axis

#: Measures of the whole run.
_RUN = {measure.name: measure for measure in RUN}
_ROWS = {name: {measure.name: measure for measure in measures} for name, measures in ROWS.items()}
#: Functions of several numbers whose result has no unit.
_PURE = ("variation", "fairness")
#: Measures that lie between 0 and 1.
_SHARES = ("efficiency", "fairness", "fairness_max_min", "utilisation", "rm_share")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measure.

    Attributes:
        name: Name or expression.
        unit: `1` for pure numbers; empty if it is not known.
        meaning: The measure in one line.
    """

    name: str
    unit: str
    meaning: str


@checked(StoreError)
def measured(text: str) -> Measured:
    """Returns name, unit and meaning of a measure.

    >>> measured("ports.bottleneck.max_queue_cells").unit
    'cells'
    """
    if text in _RUN:
        return Measured(name=text, unit=_RUN[text].unit, meaning=_RUN[text].meaning)
    # A path is a list, the name of a row, and the measure, whose own name may have a dot.
    path = text.split(".", 2)
    measure = _ROWS.get(path[0], {}).get(path[-1]) if len(path) == 3 else None
    if measure is None or " " in text:
        return Measured(name=text, unit="", meaning=text)
    pure = path[1].startswith(tuple(f"{name}(" for name in _PURE))
    return Measured(name=text, unit="1" if pure else measure.unit, meaning=f"{path[1]}: {measure.meaning}")


def bounds(text: str) -> tuple[float, float]:
    """Returns the smallest and the largest possible value of a measure; infinite for an expression.

    >>> bounds("fairness"), bounds("ports.sw1->sw2.lost_cells"), bounds("goodput_mbps - 3")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    path = text.split(".", 2)
    if " " in text or (text not in _RUN and path[-1] not in _ROWS.get(path[0], {})):
        return -math.inf, math.inf
    function = path[1].partition("(")[0] if len(path) == 3 else ""
    is_share = path[-1] in _SHARES and function not in ("variation", "sum")
    return 0.0, 1.0 if is_share or function == "fairness" else math.inf


def axis_columns(axes: Sequence[Axis], text: str = "name") -> list[Column]:
    """Returns a column for each axis; columns of texts have the kind `text`."""
    return [
        Column(name=axis.name, kind="float64" if axis.is_number else text, unit=axis.unit, meaning=axis.meaning)
        for axis in axes
    ]


def store_columns(axes: Sequence[Axis]) -> list[Column]:
    """Returns the columns of the long table of a store."""
    return [
        _name("run_key", "hash of canonical scenario, seed and version: this run alone has it"),
        Column(name="point", kind="int32", unit="1", meaning="index of the point in the plan"),
        *axis_columns(axes),
        Column(name="seed", kind="uint64", unit="1", meaning="seed of every random choice of the run"),
        _name("measure", "what was measured; null where the run failed"),
        _number("value", "its value, in the unit of the measure; null where it has none"),
        _name("error", "why the run, or the measure, has no value"),
        _name("fingerprint", "16 hex digits that change with any segment's instant"),
        _name("configuration", "the scenario as JSON, every default filled in"),
        _name("version", "of celltrain"),
        _name("profile", "of its build: release or debug"),
    ]


def summary_columns() -> list[Column]:
    """Returns the columns of the means of a store's summary."""
    return [
        Column(name="n", kind="int64", unit="1", meaning="values"),
        _number("mean", "their mean, in the unit of the measure"),
        _number("sd", "their standard deviation; null below two"),
        _number("low", "lower end of the mean's 95 % interval (Student's t); null below two"),
        _number("high", "its upper end"),
    ]


def _name(name: str, meaning: str) -> Column:
    return Column(name=name, kind="name", unit="", meaning=meaning)


def _number(name: str, meaning: str) -> Column:
    return Column(name=name, kind="float64", unit="", meaning=meaning)
