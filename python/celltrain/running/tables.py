"""A run's numbers as Arrow tables whose columns say their unit and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celltrain.model.measures import ROWS as ROWS_OF_ANSWERS
from celltrain.model.measures import SERIES as KINDS_OF_SERIES
from celltrain.model.measures import Measure
from celltrain.model.writing import replacing
from celltrain.text import cell

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table: what it holds, in which unit."""

    name: str
    kind: str
    """The name of an Arrow type, or `name` for a text that repeats."""
    unit: str
    """Empty where the values are names; `1` for pure numbers."""
    meaning: str

    def field(self) -> pa.Field:
        """As an Arrow field, unit and meaning in its metadata."""
        import pyarrow as pa

        kind = pa.dictionary(pa.int32(), pa.string()) if self.kind == "name" else pa.type_for_alias(self.kind)
        return pa.field(self.name, kind, metadata={"unit": self.unit, "meaning": self.meaning})


def column_of(measure: Measure) -> Column:
    """The column that holds a measure."""
    return Column(name=measure.column, kind=measure.kind, unit=measure.unit, meaning=measure.meaning)


#: Rows that are written as CSV at a time.
_ROWS = 4096
#: The columns of each list of an answer.
ROWS = {name: tuple(map(column_of, measures)) for name, measures in ROWS_OF_ANSWERS.items()}
FLOWS, PORTS, CONTRACTS, ABR = (ROWS[name] for name in ("flows", "ports", "contracts", "abr"))
#: The measured columns of each series.
SERIES = {name: tuple(map(column_of, series.columns)) for name, series in KINDS_OF_SERIES.items()}
TIME = Column(
    name="time_s",
    kind="float64",
    unit="s",
    meaning="time since the start of the run: a multiple of the step, rounded to the clock of the run, and exact as it stands",
)
PORT = Column(name="port", kind="name", unit="", meaning="the output port, named after its link")
FLOW = Column(name="flow", kind="name", unit="", meaning="the connection")


def table(rows: Sequence[Mapping[str, Any]], columns: Iterable[Column]) -> pa.Table:
    """Rows of a result as a table; what is no column is left out, what a row lacks is null."""
    import pyarrow as pa

    schema = pa.schema([column.field() for column in columns])
    return pa.Table.from_pylist([flat(row) for row in rows], schema=schema)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose tables have become columns: `{"delay_ms": {"mean": 1.0}}` gives `delay_ms_mean`."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        columns |= {f"{name}_{key}": part for key, part in inner} or {name: value}
    return columns


def long_table(times: Any, names: Mapping[Column, Sequence[str]], values: Mapping[Column, Any]) -> pa.Table:
    """Series as one row for each instant and name.

    Args:
        times: The instants.
        names: For each naming column, the name of each series.
        values: For each measured column, an array of instants by series.
    """
    import numpy as np
    import pyarrow as pa

    series = len(next(iter(names.values())))
    arrays = [pa.array(np.repeat(times, series))]
    for labels in names.values():
        places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
        indices = np.tile(np.array([places[label] for label in labels], dtype=np.int32), len(times))
        arrays.append(pa.DictionaryArray.from_arrays(indices, pa.array(list(places), pa.string())))
    columns = [TIME, *names]
    for column, array in values.items():
        arrays.append(pa.array(np.ascontiguousarray(array).reshape(-1)))
        columns.append(column)
    schema = pa.schema([column.field() for column in columns])
    return pa.Table.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)], schema=schema
    )


def encoded(table: pa.Table) -> bytes:
    """A table as a Parquet file, in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    statistics = ["point"] if "point" in table.column_names else True
    pq.write_table(table, sink, compression="zstd", write_statistics=statistics, write_page_checksum=True)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def write_csv(table: pa.Table, path: Path) -> None:
    """Writes a table into a folder as CSV, its names and texts so that a spreadsheet runs none of them (`celltrain.text.cell`)."""
    import pyarrow as pa
    import pyarrow.csv

    with replacing(path) as file, pa.csv.CSVWriter(file, csv_schema(table.schema)) as writer:
        for rows in csv_rows(table):
            writer.write_table(rows)


def csv_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a table as CSV has them: names and words are texts."""
    import pyarrow as pa

    return pa.schema([(cell(field.name), pa.string() if _holds_texts(field.type) else field.type) for field in schema])


def csv_rows(table: pa.Table) -> Iterator[pa.Table]:
    """The rows of a table as CSV has them, a few at a time.

    A long name that stands in each of many would be more than a column of texts can hold.
    """
    import pyarrow as pa

    columns = [_cells(column) if _holds_texts(column.type) else column for column in table.columns]
    cells = pa.Table.from_arrays(columns, names=[cell(name) for name in table.column_names])
    schema = csv_schema(table.schema)
    for first in range(0, len(cells), _ROWS):
        yield cells.slice(first, _ROWS).cast(schema)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Writes a table into a folder as Parquet."""
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(table, file)


def _holds_texts(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of a column as cells; each different one is looked at, and held, once."""
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    chunks = [part if pa.types.is_dictionary(part.type) else part.dictionary_encode() for part in column.chunks]
    marked = [
        pa.DictionaryArray.from_arrays(
            part.indices.cast(pa.int32()),
            pa.array([None if one is None else cell(one) for one in part.dictionary.to_pylist()], pa.string()),
        )
        for part in chunks
    ]
    return pa.chunked_array(marked, kind)
