"""Events and captures, written during a run: one table per kind of event, which can be read back, and Wireshark files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import CancelledError, Fault, InputError, NotTracedError, OutputError, ScenarioError, add_note
from celltrain.model import files
from celltrain.model.arguments import checked, names_of
from celltrain.model.files import making, replacing, writing
from celltrain.model.measures import EVENTS
from celltrain.text import described, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.drawing.diagrams import Diagrams

#: Metadata for diagrams, as JSON: the flows in order, the buffers of the ports, and a description of the TCP.
FOR_DIAGRAMS = ("flows", "buffers", "tcp")
#: Exceptions after which the files of a run are kept.
INTERRUPTS = (KeyboardInterrupt, CancelledError)
#: A column from the core: its values, and the list of words that they index, or None for numbers.
Values = tuple[Any, Sequence[str] | None]
#: Function that receives a block of rows: its kind, and its columns in the order of the table.
Take = Callable[[str, list[Values]], None]


class Events:
    """The events of a run to record, and the folder in which to store them.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="10ms")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = ct.run(lan, events=ct.Events(folder, kinds=["segments"], flows=["tcp1"]))
    ...     segments = result.events["segments"]
    >>> result.engine, segments["event"][0].as_py()
    ('fast', 'sent')
    """

    @checked(ScenarioError)
    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        kinds: str | Sequence[str] = (),
        ports: str | Sequence[str] | None = None,
        vcs: str | Sequence[str] | None = None,
        flows: str | Sequence[str] | None = None,
        window: str | None = None,
    ) -> None:
        """Chooses events.

        Args:
            folder: Folder for one file per kind, such as `segments.parquet`. It is made if needed, and must not contain
                event files yet.
            kinds: `"segments"`, `"timers"`, `"frames"`, `"cells"`, `"rates"`; all when empty. Only the reference engine
                reports the last three.
            ports: Ports whose frames and cells are recorded; when None, the frames of all ports and the cells of the
                bottleneck.
            vcs: VCs whose frames, cells and rates are recorded, with the segments and timers of their flows; all when
                None.
            flows: Flows whose segments and timers are recorded, with the events of their VCs; all when None.
            window: Start and end, such as `"1.2s:1.3s"`; either may be left out. The whole run when None.
        """
        self.folder = Path(folder)
        self.kinds = names_of(kinds) or ()
        self.ports, self.vcs, self.flows = names_of(ports), names_of(vcs), names_of(flows)
        self.window = window
        self.known: dict[str, Any] = {}
        """Metadata for diagrams: see `FOR_DIAGRAMS`. The run sets it before its files are closed."""
        self.rows: dict[str, int] = {}
        """Number of rows that the last run with this choice wrote, by kind."""

    def __repr__(self) -> str:
        return f"Events({str(self.folder)!r}, kinds={self.chosen!r})"

    @property
    def chosen(self) -> tuple[str, ...]:
        """The kinds, in the order of the tables."""
        return tuple(name for name in EVENTS if not self.kinds or name in self.kinds)

    @property
    def paths(self) -> list[Path]:
        """The files that receive the events, by kind of event."""
        return [self.folder / f"{name}.parquet" for name in self.chosen]

    def engine(self, requested: str | None) -> str:
        """Returns the engine for these kinds: by default the fast one if it reports all; raises `ScenarioError`."""
        needed = [name for name in self.chosen if "fast" not in EVENTS[name].engines]
        if requested == "fast" and needed:
            reported = ", ".join(name for name in EVENTS if "fast" in EVENTS[name].engines)
            problem = f"does not report {', '.join(needed)}: let celltrain choose the engine, or keep only {reported}"
            raise ScenarioError.of_option("engine", '"fast"', problem)
        return requested or ("reference" if needed else "fast")

    def for_core(self) -> tuple[Any, ...]:
        """Returns the core's arguments for this choice."""
        return (self.kinds, self.ports, self.vcs, self.flows, self.window)

    @contextmanager
    def taking(self, run: Mapping[str, str]) -> Iterator[Take]:
        """Yields a function that writes the blocks of a run.

        The files get their final names at the end, even after Ctrl-C.

        Args:
            run: Facts about the run for the metadata of the tables, such as its seed.
        """
        self._refuse_others()
        with making(self.folder), writing(self.folder), ExitStack() as opening:
            opened = {path.stem: opening.enter_context(replacing(path, kept=INTERRUPTS)) for path in self.paths}
            writer = _Writer(opened, run)
            try:
                yield writer.take
            except INTERRUPTS as error:
                writer.metadata["interrupted_at_s"] = f"{writer.last:.12g}"
                files = ", ".join(shown(path) for path in self.paths)
                add_note(error, f"kept until {writer.last:.9g} s, the last event that was written: {files}")
                raise
            finally:
                writer.metadata |= {name: json.dumps(value) for name, value in self.known.items()}
                writer.close()
        self.rows = writer.rows

    def _refuse_others(self) -> None:
        """Refuses a folder that already contains events, because readers could not distinguish two runs."""
        existing = [path for kind in EVENTS if _exists(path := self.folder / f"{kind}.parquet")]
        if existing:
            problem = "already exists; name another folder, or delete it"
            raise OutputError([Fault.of_file(path, problem) for path in existing])


def _exists(path: Path) -> bool:
    return path.exists() or path.is_symlink()


#: Columns with long runs of equal values.
_REPEATING = ("length", "cwnd", "ssthresh", "flight", "rto_s", "threshold_cells")
#: Parquet encodings for numbers that differ from row to row.
_ENCODINGS = {"int64": "DELTA_BINARY_PACKED", "float64": "BYTE_STREAM_SPLIT"}


def schema_of(kind: str, metadata: Mapping[str, str] | None = None) -> pa.Schema:
    """Returns the schema of a kind of events."""
    import pyarrow as pa

    return pa.schema([column.field() for column in EVENTS[kind].columns], metadata=metadata)


def block_of(kind: str, columns: Sequence[Values]) -> pa.Table:
    """Converts a block of events from the core to a table."""
    import pyarrow as pa

    schema = schema_of(kind)
    arrays = [_array(field, *column) for field, column in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _table_writer(kind: str, file: IO[bytes], run: Mapping[str, str]) -> Any:
    import pyarrow.parquet as pq

    columns = EVENTS[kind].columns
    schema = schema_of(kind, {"celltrain": "events", "kind": kind, "meaning": EVENTS[kind].meaning, **run})
    varying = [column for column in columns if column.kind in _ENCODINGS and column.name not in _REPEATING]
    encodings = {column.name: _ENCODINGS[column.kind] for column in varying}
    words = [*(column.name for column in columns if column.kind == "name"), *_REPEATING]
    options = {"use_dictionary": words, "column_encoding": encodings, "write_statistics": ["time_s"]}
    return pq.ParquetWriter(file, schema, compression="lz4", **options)


def _array(field: pa.Field, values: Any, words: Sequence[str] | None) -> pa.Array:
    """Converts a column to an Arrow array; NaN and -1 become null."""
    import numpy as np
    import pyarrow as pa

    if words is not None:
        return pa.DictionaryArray.from_arrays(pa.array(values, mask=values < 0), pa.array(words, pa.string()))
    missing = np.isnan(values) if values.dtype.kind == "f" else values < 0
    return pa.array(values.astype(bool) if field.type == pa.bool_() else values, field.type, mask=missing)


class _Writer:
    """Writes blocks during the run."""

    def __init__(self, files: Mapping[str, IO[bytes]], run: Mapping[str, str]) -> None:
        self.metadata: dict[str, str] = {}
        """Information that is known only at the end of the run."""
        self.rows = dict.fromkeys(files, 0)
        self.last = 0.0
        """The time of the last event."""
        # pyarrow calls Python from C++, so if the process exits in the meantime, it aborts.
        self._awaited = _core.AwaitedAtExit()
        self._writers = {kind: _table_writer(kind, file, run) for kind, file in files.items()}

    def take(self, kind: str, columns: list[Values]) -> None:
        """Writes a block."""
        times = columns[0][0]
        self.rows[kind] += len(times)
        self.last = max(self.last, float(times[-1]))
        with self._awaited:
            self._writers[kind].write_table(block_of(kind, columns))

    def close(self) -> None:
        """Completes the files."""
        with self._awaited, ExitStack() as closing:
            for writer in self._writers.values():
                closing.callback(writer.close)
                # pyarrow before 16 cannot store metadata that is known only at the end.
                if self.metadata and hasattr(writer, "add_key_value_metadata"):
                    writer.add_key_value_metadata(dict(self.metadata))


@checked()
def read_events(folder: str | os.PathLike[str]) -> EventLog:
    """Reads the events that a run wrote into a folder.

    Args:
        folder: The folder given to `celltrain run --events DIR` or to `celltrain.Events`.

    Raises:
        InputError: If there is no such folder, or it contains no table of events.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="10ms")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = ct.run(lan, events=ct.Events(folder=folder, kinds=["segments", "timers"]))
    ...     log = ct.read_events(folder)
    ...     segments = log["segments"]
    >>> log, segments.column_names[:4]
    (EventLog(segments, timers), ['time_s', 'flow', 'event', 'reason'])
    """
    path = Path(folder)
    if not path.is_dir():
        problem = "is a file, not a folder of events" if path.exists() else "there is no such folder"
        raise InputError.of_file(path, problem)
    log = EventLog(path)
    if not len(log):
        raise InputError.of_file(path, "has no tables of events; write them with celltrain run FILE --events DIR")
    return log


class EventLog(Mapping[str, "pa.Table"]):
    """The recorded events of a run by kind: `segments`, `timers`, `frames`, `cells`, `rates`.

    Each table is read from its file on first use. pandas, polars and duckdb read it without copying.
    """

    def __init__(self, folder: Path | None, **facts: Any) -> None:
        """Finds the files of a run. `folder` is None if no events were recorded; `facts` describe the run."""
        self.folder = folder
        self._facts = facts
        self._tables: dict[str, pa.Table] = {}
        paths = [folder / f"{kind}.parquet" for kind in EVENTS] if folder else []
        self._paths = {path.stem: path for path in paths if path.is_file()}

    @property
    def plot(self) -> Diagrams:
        """Diagrams of the events; needs `pip install celltrain[plot]`."""
        from celltrain.drawing.diagrams import Diagrams

        of_files = (self[kind].schema.metadata for kind in self)
        written = {key.decode(): text.decode() for key, text in next(filter(None, of_files), {}).items()}
        facts = {**written, **self._facts}
        title = self.folder.name if self.folder is not None else ""
        if "seed" in facts:
            title = f"{facts['scenario'] or 'scenario'}, seed {facts['seed']}"
        for_diagrams = {name: json.loads(written[name]) for name in FOR_DIAGRAMS if name in written}
        return Diagrams(self, title, {**for_diagrams, **self._facts})

    def __getitem__(self, kind: str) -> pa.Table:
        if not isinstance(kind, str) or kind not in EVENTS:
            raise NotTracedError(f"{described(kind)} is not a kind of event; choose from {', '.join(EVENTS)}")
        if self.folder is None:
            problem = f'the run recorded no events: run it with events=ct.Events(folder=..., kinds=["{kind}"])'
            raise NotTracedError(problem)
        if kind not in self._paths:
            raise NotTracedError(f"the run recorded no {kind}, only {', '.join(self)}: add it to the kinds to record")
        if kind not in self._tables:
            self._tables[kind] = _read(self._paths[kind], kind)
        return self._tables[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __repr__(self) -> str:
        return f"EventLog({', '.join(self)})"


def _read(path: Path, kind: str) -> pa.Table:
    """Reads the table in an event file; raises `InputError` for other files."""
    import pyarrow as pa

    schema = schema_of(kind)
    try:
        with files.opened(path, what="table") as file:
            table = _parquet(file)
        if table.column_names != schema.names:
            raise pa.ArrowInvalid("its columns have other names")
        return table.cast(schema.with_metadata(table.schema.metadata))
    except files.UnreadableError as error:
        raise InputError.of_file(path, error.problem) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = f"is not a table of {kind} that celltrain wrote ({' '.join(str(error).split())[:200]})"
        raise InputError.of_file(path, problem) from None


def _parquet(file: Any) -> pa.Table:
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    table = parquet.read()
    # The schema lacks information that became known only at the end of the run.
    added = {name: text for name, text in (parquet.metadata.metadata or {}).items() if name != b"ARROW:schema"}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **added})


class Capture:
    """Packets or cells to capture, and the pcapng file for them, to read with Wireshark, tshark, tcptrace or scapy.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="10ms")
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "run.pcapng")
    ...     result = ct.run(lan, pcap=ct.Capture(file, flows=["tcp1"]))
    ...     magic = file.read_bytes()[:4]
    >>> result.engine, magic.hex()
    ('reference', '0a0d0d0a')
    """

    @checked(ScenarioError)
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        kind: str = "ip",
        at: str | None = None,
        ports: str | Sequence[str] | None = None,
        vcs: str | Sequence[str] | None = None,
        flows: str | Sequence[str] | None = None,
        window: str | None = None,
    ) -> None:
        """Chooses packets or cells.

        Args:
            path: The file, which must not exist. Packets at both ends get two files: `run.pcapng` becomes
                `run-sender.pcapng` and `run-receiver.pcapng`.
            kind: `"ip"` for IPv4 packets at hosts, `"aal5"` for the same in AAL5 frames with VPI and VCI, `"cells"` for
                cells at ports with all their 53 bytes, `"wireshark_cells"` for cells without their HEC, whose headers
                Wireshark shows. Comments on packets at hosts name the place of a loss; these packets then come from the
                reference engine, as cells do. With `engine="fast"` there are no such comments.
            at: For packets `"sender"`, `"receiver"` or `"both"`: the hosts that are observed; the senders' when None.
                For cells `"out"`, `"in"` or `"both"`: departures from a port, arrivals at it with a comment on losses, or both; departures when None.
            ports: Ports whose cells are captured; the bottleneck when None.
            vcs: VCs whose cells, or whose flows' packets, are captured; all when None.
            flows: Flows whose packets or cells are captured; all flows and requests when None. Packets of requests are
                captured only if neither flows nor VCs are chosen.
            window: Start and end, such as `"1.2s:1.3s"`; either may be left out. The whole run when None.
        """
        self.path = Path(path)
        self.kind, self.at, self.window = kind, at, window
        self.ports, self.vcs, self.flows = names_of(ports), names_of(vcs), names_of(flows)
        #: After a run, the number of packets or cells in each file, without the handshakes at its beginning.
        self.packets: dict[Path, int] = {}

    def __repr__(self) -> str:
        return f"Capture({str(self.path)!r}, kind={self.kind!r})"

    @property
    def of_cells(self) -> bool:
        """True for cells at ports, False for packets at hosts."""
        return self.kind.endswith("cells")

    def by_file(self) -> list[Capture]:
        """Returns the captures of single files.

        In a common file, programs would take arrivals at the other end for retransmissions.
        """
        if self.of_cells or self.at != "both":
            return [self]
        chosen: Any = {"kind": self.kind, "vcs": self.vcs, "flows": self.flows, "window": self.window}
        ends = ("sender", "receiver")
        return [Capture(self.path.with_stem(f"{self.path.stem}-{end}"), at=end, **chosen) for end in ends]

    def count(self, packets: list[int]) -> None:
        """Records the number of packets or cells in each file."""
        self.packets = dict(zip(self.paths, packets, strict=True))

    @property
    def paths(self) -> list[Path]:
        """The files of the capture."""
        return [one.path for one in self.by_file()]

    def engine(self, requested: str | None) -> str:
        """Returns the engine for this capture: by default the reference engine, which reports losses."""
        if requested == "fast" and self.of_cells:
            problem = "does not report single cells: let celltrain choose the engine, or capture packets at hosts"
            raise ScenarioError.of_option("engine", '"fast"', problem)
        return requested or "reference"

    def for_core(self) -> tuple[Any, ...]:
        """Returns the core's arguments for this capture."""
        return (self.kind, self.at, self.ports, self.vcs, self.flows, self.window)

    @contextmanager
    def taking(self) -> Iterator[Callable[[bytes], object]]:
        """Yields a function that writes bytes to the file.

        The file gets its final name at the end, even after Ctrl-C.
        """
        if _exists(self.path):
            raise OutputError.of_file(str(self.path), "already exists; name another file, or delete it")
        with making(self.path.parent), writing(self.path), replacing(self.path, kept=INTERRUPTS) as file:

            def take(data: bytes) -> None:
                # Errors from this block must name this file and no other file of the run.
                with writing(self.path):
                    file.write(data)

            try:
                yield take
            except INTERRUPTS as error:
                add_note(error, f"kept the packets captured until then: {shown(self.path)}")
                raise
