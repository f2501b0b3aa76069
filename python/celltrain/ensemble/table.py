"""The runs of an ensemble as a table of cases, seeds and measured values, and statistics computed from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.errors import StoreError
from celltrain.model.arguments import checked
from celltrain.model.measures import ROWS, RUN
from celltrain.running import RunRecord, statistics
from celltrain.running.statistics import Differences, Means
from celltrain.running.tables import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.ensemble.plan import Axis

#: Measures of the whole run.
_RUN = {measure.name: measure for measure in RUN}
_ROWS = {name: {measure.name: measure for measure in measures} for name, measures in ROWS.items()}
#: Aggregate functions whose result has no unit.
_PURE = ("variation", "fairness")
#: Measures that lie between 0 and 1.
_SHARES = ("efficiency", "fairness", "fairness_max_min", "utilisation", "rm_share")


#: A measure: name or expression, unit (`1` for pure numbers, empty if unknown), and meaning in one line.
Measured = Column


@checked(StoreError)
def measured(text: str) -> Measured:
    """Returns name, unit and meaning of a measure.

    >>> measured("ports.bottleneck.max_queue_cells").unit
    'cells'
    """
    if text in _RUN:
        return _number(text, _RUN[text].meaning, _RUN[text].unit)
    # A path consists of a list, the name of a row, and a measure, whose name may contain a dot.
    path = text.split(".", 2)
    measure = _ROWS.get(path[0], {}).get(path[-1]) if len(path) == 3 else None
    if measure is None or " " in text:
        return _number(text, text)
    pure = path[1].startswith(tuple(f"{name}(" for name in _PURE))
    return _number(text, f"{path[1]}: {measure.meaning}", "1" if pure else measure.unit)


def bounds(text: str) -> tuple[float, float]:
    """Returns the smallest and largest possible value of a measure; infinite for an expression.

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
    """Returns a column for each axis; text columns have the kind `text`."""
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


def _name(name: str, meaning: str) -> Column:
    return Column(name=name, kind="name", unit="", meaning=meaning)


def _number(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name=name, kind="float64", unit=unit, meaning=meaning)


#: Columns of means, by attribute of `Means`.
SUMMARY = {
    "n": Column(name="n", kind="int64", unit="1", meaning="values"),
    "mean": _number("mean", "their mean, in the unit of the measure"),
    "sd": _number("sd", "their standard deviation; null below two"),
    "low": _number("low", "lower end of the mean's 95 % interval (Student's t); null below two"),
    "high": _number("high", "its upper end"),
}


def arrow(columns: Iterable[tuple[Column, Any]], metadata: Mapping[str | bytes, str | bytes] | None = None) -> pa.Table:
    """Returns an Arrow table of columns with values: lists, numeric arrays and Arrow arrays. NaN becomes null."""
    import pyarrow as pa

    fields, arrays = [], []
    for column, values in columns:
        field = column.field()
        if isinstance(values, np.ndarray):
            values = pa.array(values, mask=np.isnan(values) if values.dtype.kind == "f" else None)
        elif isinstance(values, list):
            values = pa.array(values, pa.string() if column.kind == "name" else field.type, from_pandas=True)
        arrays.append(values if values.type == field.type else values.cast(field.type))
        fields.append(field)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))


def texts(codes: NDArray[Any], words: Sequence[Any]) -> pa.DictionaryArray:
    """Returns a text column whose dictionary contains only the strings in use, sorted. The code -1 means null."""
    import pyarrow as pa

    used = np.unique(codes[codes >= 0])
    sorted_words = sorted({str(words[code]) for code in used.tolist()})
    places = {word: place for place, word in enumerate(sorted_words)}
    new = np.full(len(words) + 1, -1, dtype=np.int32)
    new[used] = [places[str(words[code])] for code in used.tolist()]
    indices = new[codes]
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), pa.array(sorted_words, pa.string()))


def by_measure(
    columns: Mapping[str, Column], means: Sequence[Means | Differences], rows: NDArray[np.int64]
) -> list[tuple[Column, Any]]:
    """Returns columns of statistics by attribute, with a row for each measure of each case in `rows`."""
    return [
        (column, np.array([getattr(one, name)[rows] for one in means]).T.reshape(-1))
        for name, column in columns.items()
    ]


def number(value: float) -> float | None:
    """Returns a number for an answer; None if it is undefined."""
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """The runs by case and seed.

    Attributes:
        measures: The measures, with units.
        case: Case number of each run, from 0.
        seed: Seed of each run.
        values: Runs by measures; NaN for missing values.
        fingerprint: Fingerprint of each run as a number.
        printed: True for runs with a fingerprint.
        errors: Errors of failed runs, by index.
        gaps: Reasons why a measure has no value, by the indices of run and measure.
    """

    measures: tuple[Measured, ...]
    case: NDArray[np.int64]
    seed: NDArray[np.uint64]
    values: NDArray[np.float64]
    fingerprint: NDArray[np.uint64]
    printed: NDArray[np.bool_]
    errors: Mapping[int, str]
    gaps: Mapping[tuple[int, int], str]

    @classmethod
    def of_records(cls, records: Sequence[RunRecord], measures: Sequence[str]) -> RunTable:
        """Returns the table of runs in memory."""
        ordered = sorted(records, key=lambda record: (record.point, record.seed))
        empty = (None,) * len(measures)
        prints = [record.fingerprint for record in ordered]
        return cls(
            measures=tuple(map(measured, measures)),
            case=np.array([record.point for record in ordered], np.int64),
            seed=np.array([record.seed for record in ordered], np.uint64),
            values=np.array([record.values or empty for record in ordered], np.float64).reshape(-1, len(measures)),
            fingerprint=np.array([int(text or "0", 16) for text in prints], np.uint64),
            printed=np.array([text is not None for text in prints], np.bool_),
            errors={place: record.error for place, record in enumerate(ordered) if record.error is not None},
            gaps={
                (place, measure): problem
                for place, record in enumerate(ordered)
                for measure, problem in enumerate(record.problems or ())
                if problem is not None
            },
        )

    def __len__(self) -> int:
        return len(self.case)

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """True for runs that failed."""
        failed = np.zeros(len(self), np.bool_)
        failed[list(self.errors)] = True
        return failed

    @cached_property
    def fingerprints(self) -> list[str | None]:
        """Fingerprints as 16 hexadecimal digits."""
        both = zip(self.fingerprint.tolist(), self.printed.tolist(), strict=True)
        return [f"{number:016x}" if known else None for number, known in both]


def means(groups: NDArray[np.int64], values: NDArray[np.float64], count: int) -> Means:
    """Returns the means of known values for groups numbered from 0 to `count` - 1."""
    known = ~np.isnan(values)
    return statistics.means(groups[known], values[known], count)


def differences(values: NDArray[np.float64]) -> Differences:
    """Returns the mean difference of each case from the first name in the same setting, paired by seed.

    Pairs with a missing value are left out. The first name's own differences are NaN.

    Args:
        values: By name, setting and seed.
    """
    names, settings, _ = values.shape
    more = values - values[:1]
    more[0] = np.nan
    known = ~np.isnan(more)
    case = np.broadcast_to(np.arange(names * settings).reshape(names, settings, 1), more.shape)
    first = np.broadcast_to(values[:1], values.shape)
    return statistics.paired(case[known], first[known], values[known], names * settings)
