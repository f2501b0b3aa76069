"""A run's numbers as Arrow tables, with the unit and the meaning of each column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from celltrain.errors import NotTracedError
from celltrain.model.files import replacing
from celltrain.model.measures import SERIES, Measure
from celltrain.text import cell, described

if TYPE_CHECKING:
    import pyarrow as pa

Column = Measure
#: Number of rows written to CSV at a time.
_ROWS = 4096
TIME = Column(
    name="time_s",
    kind="float64",
    unit="s",
    meaning="time since the start of the run: a multiple of the step, rounded to the run's clock",
)
PORT = Column("port", "name", "", "the output port, named after its link")
FLOW = Column("flow", "name", "", "the connection")
QUEUE = Column("queue", "name", "", "the queue: the memory, the link and the priority")
#: Columns with the names of a series, by the list that contains these names. Other series are series of connections.
_NAMING = {"ports": PORT, "memory_queues": QUEUE}


def table(rows: Sequence[Mapping[str, Any]], columns: Iterable[Column]) -> pa.Table:
    """Makes a table from the rows of a result; keys without a column are dropped, and missing values are null."""
    import pyarrow as pa

    schema = pa.schema([column.field() for column in columns])
    return pa.Table.from_pylist([flat(row) for row in rows], schema=schema)


#: Columns of the records of requests. Columns of the kind `name` contain indices into a list of names.
REQUESTS = (
    Column("group", "name", "", "the group"),
    Column("number", "int64", "1", "number of the request within its group; the first is 0"),
    Column("query", "int64", "1", "number of the query that is answered, from 0; null unless the group is an incast"),
    Column("from", "name", "", "sending host"),
    Column("to", "name", "", "receiving host"),
    Column("data_vc", "name", "", "the VC of the request's data"),
    Column("ack_vc", "name", "", "the VC of the request's acknowledgements"),
    Column("bytes", "int64", "B", "bytes requested"),
    Column("opened_s", "float64", "s", "time at which the request's connection opened"),
    Column("completed_s", "float64", "s", "arrival time of the last byte; null if the request is incomplete"),
    Column("slowdown", "float64", "1", "completion time relative to the same request alone on its path"),
    Column("segments_sent", "int64", "segments", "data segments sent, retransmissions included"),
    Column("retransmitted_segments", "int64", "segments", "data segments retransmitted; null without TCP or UDP"),
    Column("timeouts", "int64", "1", "expiries of the request's retransmission timer; null with a real stack"),
)
#: List that contains the names, for each column of names.
_NAMES = {"group": "groups", "from": "nodes", "to": "nodes", "data_vc": "vcs", "ack_vc": "vcs"}


def requests(records: Mapping[str, Any]) -> pa.Table:
    """Makes a table of the records of requests. Without records, the table is empty."""
    import numpy as np
    import pyarrow as pa

    schema = pa.schema([column.field() for column in REQUESTS])
    if not records:
        return schema.empty_table()
    arrays = []
    for column in REQUESTS:
        values = records[column.name]
        if column.name in _NAMES:
            names = pa.array(records[_NAMES[column.name]], pa.string())
            arrays.append(pa.DictionaryArray.from_arrays(values, names))
        else:
            # Counts below 0 and NaN times represent missing values.
            is_missing = values < 0 if column.kind == "int64" else np.isnan(values)
            arrays.append(pa.array(values, mask=is_missing))
    return pa.Table.from_arrays(arrays, schema=schema)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turns the groups of a row into columns: `{"delay_ms": {"mean": 1.0}}` gives `delay_ms_mean`."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        columns |= {f"{name}_{key}": part for key, part in inner} or {name: value}
    return columns


def long_table(times: Any, names: Mapping[Column, Sequence[str]], values: Mapping[Column, Any]) -> pa.Table:
    """Makes a table of series, with one row per sample and series.

    Args:
        times: The times of the samples.
        names: For each naming column, the name of each series.
        values: For each measured column, an array of samples by series.
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
        # NaN represents a missing value.
        arrays.append(pa.array(np.ascontiguousarray(array).reshape(-1), from_pandas=True))
        columns.append(column)
    schema = pa.schema([column.field() for column in columns])
    return pa.Table.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)], schema=schema
    )


class Series(Mapping[str, "pa.Table"]):
    """The series that a run recorded, by name: `queue`, `occupancy`, `cwnd`, `delivered`, `acr`, `edge`, `memory`."""

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        self._recorded = recorded
        self._tables: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if not isinstance(name, str) or name not in self._tables:
            times, _, arrays = self.raw(name)
            columns = dict(zip(SERIES[name].columns, arrays, strict=True))
            self._tables[name] = long_table(times, self._names(name), columns)
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in SERIES if SERIES[name].columns[0].name in self._recorded)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"Series({', '.join(self)})"

    def raw(self, name: str) -> tuple[Any, list[str], list[Any]]:
        """Returns the times, the names of the series, and for each measure an array of times by series."""
        if not isinstance(name, str) or name not in SERIES:
            raise NotTracedError(f"{described(name)} is not a series; choose from {', '.join(SERIES)}")
        if name not in list(self):
            raise NotTracedError(f'the run did not record {name}: run it with trace=["{name}"]')
        arrays = [self._recorded[column.name] for column in SERIES[name].columns]
        labels = [" at ".join(reversed(names)) for names in zip(*self._names(name).values(), strict=True)]
        return self._recorded["time_s"], labels, arrays

    def flows(self, name: str) -> list[str]:
        """Returns the flow of each column of a series; empty for series of ports or queues."""
        return self._names(name).get(FLOW, [])

    def _names(self, name: str) -> dict[Measure, list[str]]:
        """For each column of names, returns the name of each series."""
        over = SERIES[name].over
        if over == "occupancy_columns":
            ports, flows = zip(*self._recorded[over], strict=True) if self._recorded[over] else ((), ())
            return {PORT: list(ports), FLOW: list(flows)}
        return {_NAMING.get(over, FLOW): list(self._recorded[over])}


def encoded(table: pa.Table) -> bytes:
    """Encodes a table as a Parquet file in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    statistics = ["point"] if "point" in table.column_names else True
    pq.write_table(table, sink, compression="zstd", write_statistics=statistics, write_page_checksum=True)
    content: bytes = sink.getvalue().to_pybytes()
    return content


# All CSV output is written by this module. Texts and column names are escaped, so that no spreadsheet runs them as
# formulas.


def write_csv(table: pa.Table, path: Path) -> None:
    """Writes a table as a CSV file."""
    with replacing(path) as file:
        _write_table(table, file)


def as_csv(rows: pa.Table | Iterable[Mapping[str, Any]]) -> str:
    """Returns a table, or rows, as CSV. A nested value of a row has a column such as `cells.lost`.

    >>> print(as_csv([{"flow": "=1+1", "cells": {"lost": 3}}, {"flow": "tcp2", "cells": {"lost": None}}]), end="")
    flow,cells.lost
    '=1+1,3
    tcp2,
    """
    if hasattr(rows, "to_pylist"):
        content = io.BytesIO()
        _write_table(rows, content)
        return content.getvalue().decode()
    nested = [_nested(row) for row in rows]
    names = list(dict.fromkeys(name for row in nested for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(cell, names))
    writer.writerows([_cell(row.get(name)) for name in names] for row in nested)
    return text.getvalue()


def _nested(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= _nested(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        value = "; ".join(map(str, value))
    return cell(value) if isinstance(value, str) else value


def _write_table(table: pa.Table, file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.csv

    with pa.csv.CSVWriter(file, csv_schema(table.schema)) as writer:
        for rows in csv_rows(table):
            writer.write_table(rows)


def csv_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the CSV schema of a table: names and words become texts."""
    import pyarrow as pa

    return pa.schema([(cell(field.name), pa.string() if _holds_texts(field.type) else field.type) for field in schema])


def csv_rows(table: pa.Table) -> Iterator[pa.Table]:
    """Yields CSV rows in small batches: with a long name in every row, a column would exceed the limit of Arrow."""
    import pyarrow as pa

    columns = [_cells(column) if _holds_texts(column.type) else column for column in table.columns]
    cells = pa.Table.from_arrays(columns, names=[cell(name) for name in table.column_names])
    schema = csv_schema(table.schema)
    for first in range(0, len(cells), _ROWS):
        yield cells.slice(first, _ROWS).cast(schema)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Writes a table as Parquet."""
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(table, file)


def _holds_texts(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Converts the texts of a column to CSV cells; each distinct text is converted and stored once."""
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    marked = []
    for part in column.chunks:
        encoded = part if pa.types.is_dictionary(part.type) else part.dictionary_encode()
        texts = pa.array([None if one is None else cell(one) for one in encoded.dictionary.to_pylist()], pa.string())
        marked.append(pa.DictionaryArray.from_arrays(encoded.indices.cast(pa.int32()), texts))
    return pa.chunked_array(marked, kind)
