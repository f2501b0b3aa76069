"""A run's numbers as Arrow tables whose columns say their unit and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


def _columns(*rows: tuple[str, str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, kind=kind, unit=unit, meaning=meaning) for name, kind, unit, meaning in rows)


FLOWS = _columns(
    ("name", "string", "", "the connection"),
    ("goodput_mbps", "float64", "Mb/s", "bytes handed to the application in order, each once, over the whole run"),
    ("throughput_mbps", "float64", "Mb/s", "payload of all segments that arrived whole, repetitions included"),
    ("delivered_bytes", "int64", "B", "bytes handed to the application"),
    ("segments_sent", "int64", "segments", "segments sent, retransmissions included"),
    ("retransmitted_segments", "int64", "segments", "segments sent again"),
    ("repeated_segments", "int64", "segments", "segments that arrived and held nothing new"),
    ("timeouts", "int64", "1", "times the retransmission timer ran out"),
    ("fast_retransmits", "int64", "1", "times duplicate acknowledgements started a retransmission"),
    ("cwnd_segments", "float64", "segments", "congestion window at the end; 0 without TCP"),
    ("traffic", "string", "", "what it has to send"),
    ("packets_sent", "int64", "packets", "packets put in; 0 with TCP"),
    ("packets_delivered", "int64", "packets", "packets that arrived whole; 0 with TCP"),
    ("completion_s", "float64", "s", "from its start until all of a file was acknowledged; null while it is not"),
    ("file_delay_ms_mean", "float64", "ms", "mean delay of the files its stream is cut into; null where not asked for"),
    ("file_delay_ms_median", "float64", "ms", "half of these files took no longer"),
    ("file_delay_ms_p95", "float64", "ms", "95 % of these files took no longer"),
    ("file_delay_ms_files", "int64", "files", "files of its stream that are complete"),
    ("max_min_mbps", "float64", "Mb/s", "the goodput it would have at its max-min fair share of the network"),
)
PORTS = _columns(
    ("name", "string", "", "the output port, named after its link"),
    ("buffer_cells", "int64", "cells", "places for waiting cells; null without limit"),
    ("policy", "string", "", "the buffer policy"),
    ("scheduler", "string", "", "the scheduler"),
    ("max_queue_cells", "int64", "cells", "largest number of cells that ever waited, the one in service not counted"),
    ("queue_cells", "int64", "cells", "cells waiting at the end"),
    ("offered_cells", "int64", "cells", "cells that arrived"),
    ("forwarded_cells", "int64", "cells", "cells handed to the transmitter"),
    ("lost_cells", "int64", "cells", "cells lost for want of room"),
    ("lost_overflow_cells", "int64", "cells", "arriving cells lost for want of room"),
    ("lost_pushed_out_cells", "int64", "cells", "waiting cells pushed out for want of room"),
    ("discarded_cells", "int64", "cells", "cells discarded by the policy"),
    ("discarded_frame_cells", "int64", "cells", "cells of frames the policy refused whole"),
    ("discarded_remainder_cells", "int64", "cells", "later cells of frames that had already lost one"),
    ("discarded_frames", "int64", "frames", "frames the policy refused whole"),
    ("cut_frames", "int64", "frames", "frames that lost a cell for want of room"),
    ("utilisation", "float64", "1", "share of the run during which the port transmitted"),
)
CONTRACTS = _columns(
    ("vc", "string", "", "the VC with a contract"),
    ("frames", "int64", "frames", "frames that reached the edge of the network"),
    ("eligible_frames", "int64", "frames", "of these, frames eligible for the guarantee (F-GCRA)"),
    ("tagged_frames", "int64", "frames", "of the others, frames the network tagged (GFR.2)"),
    ("nonconforming_cells", "int64", "cells", "cells faster than PCR or beyond MFS in their frame"),
    ("discarded_frames", "int64", "frames", "frames policies refused whole, before any merge"),
    ("cut_frames", "int64", "frames", "frames that lost a cell for want of room, before any merge"),
)
ABR = _columns(
    ("vc", "string", "", "the VC whose rate is controlled"),
    ("acr_mbps", "float64", "Mb/s", "ACR at the end, cells included"),
    ("forward_rm_cells", "int64", "cells", "forward RM cells its source sent in rate"),
    ("out_of_rate_rm_cells", "int64", "cells", "forward RM cells its source sent out of rate"),
    ("returned_rm_cells", "int64", "cells", "backward RM cells that came back to it"),
    ("rm_share", "float64", "1", "RM cells, of both directions' loops, among the cells it sent"),
)
TIME = Column(name="time_s", kind="float64", unit="s", meaning="time since the start of the run")
PORT = Column(name="port", kind="name", unit="", meaning="the output port, named after its link")
FLOW = Column(name="flow", kind="name", unit="", meaning="the connection")
QUEUE = Column(name="queue_cells", kind="uint32", unit="cells", meaning="cells waiting, the one in service not counted")
OCCUPANCY = Column(name="occupancy_cells", kind="uint32", unit="cells", meaning="the connection's cells waiting there")
CWND = Column(name="cwnd_segments", kind="float64", unit="segments", meaning="congestion window")
DELIVERED = Column(
    name="delivered_bytes", kind="uint64", unit="bytes", meaning="handed to the application since the start, each once"
)
ACR = Column(name="acr_mbps", kind="float64", unit="Mb/s", meaning="ACR, cells included")
EDGE_PACKETS = Column(
    name="edge_packets", kind="uint32", unit="packets", meaning="QL: packets at the edge device, or at the ABR source"
)
EDGE_PHASE = Column(name="edge_phase", kind="uint32", unit="1", meaning="phase of the adaptive discard algorithm")
EDGE_LD_ACR = Column(name="edge_ld_acr_mbps", kind="float64", unit="Mb/s", meaning="its LD_ACR")
EDGE_P_CTR = Column(name="edge_p_ctr", kind="uint32", unit="packets", meaning="its P_CTR")
SSTHRESH = Column(name="ssthresh_segments", kind="float64", unit="segments", meaning="slow start threshold")


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


def write_csv(table: pa.Table, path: Path) -> None:
    """Writes a table as CSV, its names and texts so that a spreadsheet runs none of them (`celltrain.text.cell`)."""
    import pyarrow as pa
    import pyarrow.csv

    columns = [_cells(column) if _holds_texts(column.type) else column for column in table.columns]
    pa.csv.write_csv(pa.Table.from_arrays(columns, names=[cell(name) for name in table.column_names]), path)


def _holds_texts(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of a column as cells; each different one is looked at once."""
    import pyarrow as pa

    chunks = [part if pa.types.is_dictionary(part.type) else part.dictionary_encode() for part in column.chunks]
    marked = (
        pa.DictionaryArray.from_arrays(
            part.indices,
            pa.array([None if one is None else cell(one) for one in part.dictionary.to_pylist()], pa.string()),
        )
        for part in chunks
    )
    return pa.chunked_array([part.dictionary_decode() for part in marked], pa.string())
