"""The cases of an ensemble, the function that runs them with their seeds, and the table of their runs.

Sweeps, searches, comparisons and reproductions call `execute`. To estimate the cost, a few cases are run, or only their
beginning.
"""

from __future__ import annotations

import itertools
import json
import math
import operator
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain import _core
from celltrain.ensemble.plan import Axis, Plan, compact
from celltrain.errors import Fault, InputError, ScenarioError, StoreError
from celltrain.model.arguments import checked, current
from celltrain.model.measures import ROWS, RUN
from celltrain.running import Chunk, Local, Recording, Rows, Run, RunRecord, Worker
from celltrain.running.statistics import Means
from celltrain.running.tables import Column
from celltrain.text import among

if TYPE_CHECKING:
    import pyarrow as pa


#: Time limit of a probe in seconds; the time of an unfinished probe is extrapolated from the completed fraction.
PROBE_SECONDS = 2.0
#: Number of points that are tried, spread over the plan.
PROBES = 5
#: Order of runs in tables.
BY_CASE = operator.attrgetter("point", "seed")
#: Bytes on disk for a run without its measures, and for each measure.
RUN_BYTES, MEASURE_BYTES = 95, 10


def case_of(plan: Plan, point: int) -> tuple[_core.Case, str | None]:
    """Returns the case of a point, and the reason if its scenario is refused; its text is then as given."""
    try:
        return plan.case(point), None
    except ScenarioError as error:
        scenario = plan.points[point].scenario
        bare = {key: value for key, value in scenario.items() if key not in ("seed", "name")}
        text = compact(json.loads(json.dumps(bare)))
        return _core.Case(text, text), str(error).replace("\n", "; ")


def execute(
    runs: Iterable[Run],
    worker: Worker,
    take: Callable[[Rows], None],
    *,
    measures: Sequence[str] = (),
    limit_s: float | None = None,
    recording: Recording | None = None,
    chunk_runs: int | None = None,
) -> None:
    """Executes all runs on a worker, and passes the rows to `take` on the calling thread as they arrive.

    Args:
        runs: The runs. A worker may iterate over them on another thread.
        worker: Place of the runs: threads of this process, or a cluster.
        take: Called with rows, in any order. Rows of a run may arrive twice.
        measures: Measures of runs that do not define their own.
        limit_s: Real time that a run may take.
        recording: The series to record; None for no series.
        chunk_runs: Runs per chunk; the worker's default when None.
    """

    def chunks() -> Iterator[Chunk]:
        remaining, measured = iter(runs), tuple(measures)
        certificates = isinstance(worker, Local) and worker.certificates
        while batch := tuple(itertools.islice(remaining, chunk_runs or worker.chunk_runs)):
            yield Chunk(runs=batch, measures=measured, limit_s=limit_s, recording=recording, certificates=certificates)

    worker.work(chunks(), take)


class _TookLongError(Exception):
    """A trial run has reached its time limit."""


def trial_run(case: _core.Case, seed: int, seconds: float) -> tuple[dict[str, Any] | None, float]:
    """Runs a scenario for at most this number of seconds.

    Returns:
        The answer (None if the run was stopped), and the time that a whole run takes, in seconds.
    """
    begun, share = time.monotonic(), 0.0

    def check_time(done: float) -> None:
        nonlocal share
        share = done
        if share > 0 and time.monotonic() - begun > seconds:
            raise _TookLongError

    try:
        text, _ = case.run(seed, on_progress=check_time, cancel=current())
    except _TookLongError:
        return None, (time.monotonic() - begun) / share
    answer = json.loads(text)
    return answer, float(answer["timing"]["engine_seconds"])


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The estimated cost of a sweep.

    Attributes:
        points: Points of the plan.
        runs: Number of runs; with `until`, the maximum.
        least_runs: Minimum number of runs.
        probes: Number of runs that the estimate is based on; 0 if none could be run.
        seconds_per_run: Time of a run on one core.
        seconds: Time of all runs on all threads.
        bytes_per_run: Bytes on disk per run, without series.
        bytes: Bytes of all runs.
    """

    points: int
    runs: int
    least_runs: int
    probes: int
    seconds_per_run: float
    seconds: float
    bytes_per_run: float
    bytes: float


def estimate(plan: Plan, threads: int) -> Estimate:
    """Estimates the cost of a plan by running a few points, or their beginning."""
    count, until = len(plan.points), plan.seeds.until
    seconds, characters = [], 0
    for index in sorted({count * i // PROBES + count // (2 * PROBES) for i in range(PROBES)}):
        # A refused point becomes a failed row, which takes no time.
        with suppress(ScenarioError):
            case = plan.case(index)
            seconds.append(trial_run(case, plan.seeds.first, PROBE_SECONDS)[1])
            characters += len(case.canonical)
    probes = len(seconds)
    each = sum(seconds) / max(probes, 1)
    size = RUN_BYTES + MEASURE_BYTES * len(plan.measures) + characters / max(probes, 1) * count / plan.runs
    return Estimate(
        points=count,
        runs=plan.runs,
        least_runs=count * (plan.seeds.count if until is None else until.at_least),
        probes=probes,
        seconds_per_run=each,
        seconds=each * plan.runs / min(threads, plan.runs),
        bytes_per_run=size,
        bytes=size * plan.runs,
    )


#: Measures of the whole run, and of the rows of each list.
_RUN = {measure.name: measure for measure in RUN}
_ROWS = {name: {measure.name: measure for measure in measures} for name, measures in ROWS.items()}
#: Aggregate functions whose result has no unit.
_PURE = ("variation", "fairness")
#: Measures that lie between 0 and 1.
_SHARES = ("efficiency", "fairness", "fairness_max_min", "utilisation", "rm_share")


#: A measure: name or expression, unit (`1` for pure numbers, empty if unknown), and meaning in one line.
Measured = Column


def _found(text: str) -> tuple[Column | None, str]:
    """Returns the measure at a path (None for an expression), and the row or the aggregate function in the path."""
    # A path consists of a list, the name of a row, and a measure, whose name may contain a dot.
    path = text.split(".", 2)
    if text in _RUN or " " in text or len(path) < 3:
        return _RUN.get(text), ""
    return _ROWS.get(path[0], {}).get(path[2]), path[1]


@checked(StoreError)
def measured(text: str) -> Measured:
    """Returns name, unit and meaning of a measure.

    >>> measured("ports.bottleneck.max_queue_cells").unit
    'cells'
    """
    measure, row = _found(text)
    if measure is None:
        return Column(text, "float64", "", text)
    unit = "1" if row.partition("(")[0] in _PURE else measure.unit
    return Column(text, "float64", unit, f"{row}: {measure.meaning}" if row else measure.meaning)


def checked_labels(labels: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """Returns labels of measures by path, and of axes by name; raises `InputError` if one is not among the known."""
    wrong = [path for path in labels if path not in known]
    if wrong:
        raise InputError(
            [
                Fault.of_option("labels", path, f"is neither a measure nor an axis here; {among(path, known)}")
                for path in wrong
            ]
        )
    return dict(labels)


def bounds(text: str) -> tuple[float, float]:
    """Returns the smallest and largest possible value of a measure; infinite for an expression.

    >>> bounds("fairness"), bounds("ports.sw1->sw2.lost_cells"), bounds("goodput_mbps - 3")
    ((0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    measure, row = _found(text)
    if measure is None:
        return -math.inf, math.inf
    function = row.partition("(")[0]
    is_share = measure.name in _SHARES and function not in ("variation", "sum")
    return 0.0, 1.0 if is_share or function == "fairness" else math.inf


def axis_columns(axes: Sequence[Axis], text: str = "name") -> list[Column]:
    """Returns a column for each axis; text columns have the kind `text`."""
    return [Column(axis.name, "float64" if axis.is_number else text, axis.unit, axis.meaning) for axis in axes]


def store_columns(axes: Sequence[Axis]) -> list[Column]:
    """Returns the columns of the long table of a store."""
    return [
        Column("run_key", "name", "", "unique hash of canonical scenario, seed and version"),
        Column("point", "int32", "1", "index of the point in the plan"),
        *axis_columns(axes),
        Column("seed", "uint64", "1", "seed of every random choice of the run"),
        Column("measure", "name", "", "name of the measure; null if the run failed"),
        Column("value", "float64", "", "value, in the unit of the measure; null if it has none"),
        Column("error", "name", "", "why the run or measure has no value, or a note about open requests"),
        Column("fingerprint", "name", "", "hash of the exact times of all segments (16 hexadecimal digits)"),
        Column("configuration", "name", "", "scenario as JSON with all defaults"),
        Column("version", "name", "", "of celltrain"),
        Column("profile", "name", "", "profile of the build: release or debug"),
    ]


#: Columns of means, by attribute of `Means`.
SUMMARY = {
    "n": Column("n", "int64", "1", "values"),
    "mean": Column("mean", "float64", "", "mean of the values, in the unit of the measure"),
    "sd": Column("sd", "float64", "", "standard deviation of the values; null for one value"),
    "low": Column("low", "float64", "", "lower end of the mean's 95 % interval (Student's t); null for one value"),
    "high": Column("high", "float64", "", "upper end of the mean's 95 % interval (Student's t); null for one value"),
}


#: Column of the number of values that are lower bounds.
CENSORED = Column(
    "censored", "int64", "1", "number of values that are only lower bounds; if above 0, the mean is also a lower bound"
)


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
    columns: Mapping[str, Column], means: Sequence[Means], rows: NDArray[np.int64]
) -> list[tuple[Column, Any]]:
    """Returns columns of statistics by attribute, with a row for each measure of each case in `rows`."""
    return [
        (column, np.array([getattr(one, name)[rows] for one in means]).T.reshape(-1))
        for name, column in columns.items()
    ]


def number(value: float) -> float | None:
    """Returns a number for an answer as JSON; None if it is undefined."""
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
        gaps: Reasons why a measure has no value, or depends on open requests, by the indices of run and measure. At -1 - N,
            the warning that rule N of the links never met what it should have lost or delayed.
        bounds: Indices of run and measure of values that are only lower bounds.
    """

    measures: tuple[Measured, ...]
    case: NDArray[np.int64]
    seed: NDArray[np.uint64]
    values: NDArray[np.float64]
    fingerprint: NDArray[np.uint64]
    printed: NDArray[np.bool_]
    errors: Mapping[int, str]
    gaps: Mapping[tuple[int, int], str]
    bounds: Collection[tuple[int, int]] = ()

    @classmethod
    def of_records(cls, records: Sequence[RunRecord], measures: Sequence[str]) -> RunTable:
        """Returns the table of runs in memory."""
        ordered = sorted(records, key=BY_CASE)
        empty = (None,) * len(measures)
        prints = [record.fingerprint for record in ordered]
        gaps: dict[tuple[int, int], str] = {}
        for place, record in enumerate(ordered):
            if record.problems is not None:
                gaps |= {(place, i): text for i, text in enumerate(record.problems) if text is not None}
            if record.unmet:
                gaps |= {(place, -1 - rule): text for rule, text in record.unmet}
        return cls(
            measures=tuple(map(measured, measures)),
            case=np.array([record.point for record in ordered], np.int64),
            seed=np.array([record.seed for record in ordered], np.uint64),
            values=np.array([record.values or empty for record in ordered], np.float64).reshape(-1, len(measures)),
            fingerprint=np.array([int(text or "0", 16) for text in prints], np.uint64),
            printed=np.array([text is not None for text in prints], np.bool_),
            errors={place: record.error for place, record in enumerate(ordered) if record.error is not None},
            gaps=gaps,
            bounds=[(place, measure) for place, record in enumerate(ordered) for measure in record.bounds],
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
    def censored(self) -> NDArray[np.bool_]:
        """Runs by measures: true for values that are only lower bounds."""
        censored = np.zeros(self.values.shape, np.bool_)
        for run, place in self.bounds:
            censored[run, place] = True
        return censored & ~np.isnan(self.values)

    @cached_property
    def fingerprints(self) -> list[str | None]:
        """Fingerprints as 16 hexadecimal digits."""
        both = zip(self.fingerprint.tolist(), self.printed.tolist(), strict=True)
        return [f"{number:016x}" if known else None for number, known in both]
