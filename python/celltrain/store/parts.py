"""Parts: Parquet files of long rows, one for each run and measure."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, StoreError
from celltrain.files import UnreadableError, opened
from celltrain.running.work import RunRecord
from celltrain.tables import encoded
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.plan import Plan

#: Of a part, or of the series of a run: more than a sweep writes.
MOST_BYTES = 4 << 30
#: Exceptions of reading a damaged file, beside Arrow's own.
DAMAGE = (OSError, IndexError, KeyError, TypeError, ValueError, OverflowError, MemoryError)


def number_of(path: Path) -> int:
    """The number in a part's name."""
    return int(path.stem.removeprefix("part-"))


def named(folder: Path, number: int) -> Path:
    """The part of a number."""
    return folder / f"part-{number:06d}.parquet"


def listed(folder: Path) -> dict[int, Path]:
    """The parts that are there, by number."""
    paths = (path for path in folder.glob("part-*.parquet") if path.stem.removeprefix("part-").isdecimal())
    return dict(sorted((number_of(path), path) for path in paths))


def digest(content: bytes | pa.Buffer) -> str:
    """The sha256 by which a change of a part is found."""
    return hashlib.sha256(content).hexdigest()


def encode(rows: Iterable[RunRecord], plan: Plan, schema: pa.Schema, build: tuple[str, str]) -> bytes:
    """A part: the rows by point, seed and measure, in the columns of the store."""
    import numpy as np
    import pyarrow as pa

    runs = sorted(rows, key=lambda record: (record.point, record.seed))
    lengths = np.array([1 if record.error is not None else len(plan.measures) for record in runs])
    run_of_row = np.repeat(np.arange(len(runs), dtype=np.int32), lengths)
    points = np.array([record.point for record in runs], dtype=np.int32)

    def by_run(values: Sequence[Any]) -> pa.Array:
        """A column whose values are each run's, a text stored once."""
        places = {value: place for place, value in enumerate(dict.fromkeys(values)) if value is not None}
        indices = {value: place for place, value in enumerate(places)}
        codes = np.array([indices.get(value, -1) for value in values], dtype=np.int32)[run_of_row]
        dictionary = pa.array(list(indices), pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), dictionary)

    axes = {point: plan.points.values(point) for point in dict.fromkeys(points.tolist())}
    measures = [None if record.error is not None else place for record in runs for place in _places(record, plan)]
    errors = [
        record.error if record.error is not None else None if record.problems is None else record.problems[place]
        for record in runs
        for place in _places(record, plan)
    ]
    values = [
        None if record.error is not None else record.values[place] for record in runs for place in _places(record, plan)
    ]
    columns = {
        "run_key": by_run([record.run_key for record in runs]),
        "point": pa.array(points[run_of_row]),
        "seed": pa.array(np.array([record.seed for record in runs], dtype=np.uint64)[run_of_row]),
        "measure": pa.DictionaryArray.from_arrays(pa.array(measures, pa.int32()), pa.array(plan.measures, pa.string())),
        "value": pa.array(values, pa.float64()),
        "error": pa.array(errors, pa.string()).dictionary_encode(),
        "fingerprint": by_run([record.fingerprint for record in runs]),
        "configuration": by_run([record.configuration for record in runs]),
        "version": by_run([build[0]] * len(runs)),
        "profile": by_run([build[1]] * len(runs)),
    }
    for place, axis in enumerate(plan.axes):
        own = [axes[record.point][place] for record in runs]
        columns[axis.name] = pa.array(np.array(own, dtype=np.float64)[run_of_row]) if axis.is_number else by_run(own)
    table = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
    return encoded(table)


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A part's rows; raises `StoreError` when it is not whole, however it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    bytes_of = content(path)
    try:
        # On this thread, from memory that is Arrow's own: a thread of Arrow's that lets go of a Python object while the
        # interpreter ends brings the process down.
        file = pq.ParquetFile(pa.BufferReader(bytes_of), page_checksum_verification=True, pre_buffer=False)
        table = file.read(columns=columns, use_threads=False)
        # No page's checksum covers codes beyond their dictionary, invalid texts and names of columns.
        table.validate(full=True)
        missing = set(columns or ()) - set(table.column_names)
        if missing:
            raise pa.ArrowInvalid(f"no column {min(missing)}")
        return table
    except (*DAMAGE, pa.ArrowException) as error:
        raise StoreError([damaged(path, error)]) from None


def content(path: Path) -> pa.Buffer:
    """The bytes of a part, held by no Python object; raises `StoreError`."""
    import pyarrow as pa

    try:
        handle = opened(path, what="Parquet")
    except UnreadableError as error:
        if error.missing:
            raise StoreError(
                [Fault.of_file(shown(path), "is gone; forget its runs with: celltrain store repair")]
            ) from None
        what = f"{error.problem}; set it aside and forget its runs with: celltrain store repair"
        raise StoreError([Fault.of_file(shown(path), what)]) from None
    try:
        with open(handle, "rb", buffering=0) as file:  # noqa: PTH123, a descriptor
            size = os.fstat(handle).st_size
            if size > MOST_BYTES:
                raise ValueError(f"has {size:,} bytes, and a part has at most {MOST_BYTES:,}")
            buffer = pa.allocate_buffer(size)
            place = memoryview(buffer).cast("B")
            while len(place) and (read := file.readinto(place)):
                place = place[read:]
            if len(place):
                raise ValueError("it became shorter while it was read")
            return buffer
    except (*DAMAGE, pa.ArrowException) as error:
        raise StoreError([damaged(path, error)]) from None


def damaged(path: Path, error: BaseException) -> Fault:
    """The fault of a part whose rows cannot be read."""
    problem = f"is cut short or damaged ({_first_line(error)})"
    return Fault.of_file(shown(path), f"{problem}; set it aside and forget its runs with: celltrain store repair")


def _places(record: RunRecord, plan: Plan) -> range:
    return range(1 if record.error is not None else len(plan.measures))


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
