"""The events of a run, written while it goes on: a table a kind, in Parquet or CSV."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import CancelledError, Fault, OutputError, ScenarioError, add_note
from celltrain.model import files
from celltrain.model.arguments import checked, names_of
from celltrain.model.measures import EVENTS
from celltrain.model.writing import making, replacing, writing
from celltrain.running.tables import column_of, csv_rows, csv_schema
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("parquet", "csv")
#: What the core hands over of a column: values, and the words they stand for or None.
Values = tuple[Any, Sequence[str] | None]
#: Takes a block of rows: its kind, and its columns in the order of the table.
Take = Callable[[str, list[Values]], None]


class Events:
    """Which events of a run are kept, and where.

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
        format: str = "parquet",  # noqa: A002, as Arrow has it
    ) -> None:
        """Chooses events.

        Args:
            folder: Gets a file for each kind, such as `segments.parquet`. It is made if needed, and holds no such file
                yet, nor events of another run or in another format.
            kinds: `"segments"`, `"timers"`, `"frames"`, `"cells"`, `"rates"`; all when empty. The last three come from
                the reference engine alone.
            ports: Ports whose frames and cells are kept; when None all ports' frames, and the bottleneck's cells.
            vcs: VCs whose frames, cells and rates are kept, and the segments and timers of their flows; all when None.
            flows: Flows whose segments and timers are kept, and what becomes of their VCs; all when None.
            window: From when to when, such as `"1.2s:1.3s"`; either may be left out. The whole run when None.
            format: `"parquet"`, or `"csv"`.

        Raises:
            ScenarioError: When an option is refused.
        """
        self.folder = Path(folder)
        self.kinds = names_of(kinds) or ()
        self.ports, self.vcs, self.flows = names_of(ports), names_of(vcs), names_of(flows)
        self.window = window
        self.format = format
        self.known: dict[str, Any] = {}
        """Metadata for diagrams: see `FOR_DIAGRAMS`. The run sets it before its files are closed."""
        self.rows: dict[str, int] = {}
        """Rows that were written, by kind: of the last run with this choice."""
        faults = [
            Fault.of_option("kinds", repr(name), f"is not a kind of event; choose from {', '.join(EVENTS)}")
            for name in dict.fromkeys(self.kinds)
            if name not in EVENTS
        ]
        if format not in FORMATS:
            problem = f"is not a format; choose from {', '.join(FORMATS)}"
            faults.append(Fault.of_option("format", repr(format), problem))
        if faults:
            raise ScenarioError(faults)

    def __repr__(self) -> str:
        return f"Events({str(self.folder)!r}, kinds={self.chosen!r})"

    @property
    def chosen(self) -> tuple[str, ...]:
        """The kinds, in the order of the tables."""
        return tuple(name for name in EVENTS if not self.kinds or name in self.kinds)

    @property
    def paths(self) -> list[Path]:
        """The files of the kinds."""
        return [self.folder / f"{name}.{self.format}" for name in self.chosen]

    def engine(self, asked: str | None) -> str:
        """The engine that tells of these kinds: the one that is asked for, or the fast one if it does."""
        needed = [name for name in self.chosen if "fast" not in EVENTS[name].engines]
        if asked == "fast" and needed:
            told = ", ".join(name for name in EVENTS if "fast" in EVENTS[name].engines)
            problem = f"does not look at {', '.join(needed)}: leave it to celltrain to choose, or keep only {told}"
            raise ScenarioError([Fault.of_option("engine", '"fast"', problem)])
        return asked or ("reference" if needed else "fast")

    def asked(self) -> tuple[Any, ...]:
        """As the core takes it."""
        names = (None if one is None else list(one) for one in (self.ports, self.vcs, self.flows))
        return (list(self.kinds), *names, self.window)

    @contextmanager
    def taking(self, run: Mapping[str, str] | None = None, *, is_temporary: bool = False) -> Iterator[Take]:
        """What takes the blocks of a run. The files get their names at the end; after Ctrl-C too, with what there is.

        Args:
            run: What the metadata of the tables say of the run: see `OF_RUN`.
            is_temporary: The caller deletes the files, so an interrupted run does not tell where they are.
        """
        folder = self.folder
        self._refuse_others(run or {})
        ended: BaseException | None = None
        with making(folder), writing(folder), ExitStack() as opening:
            opened = {
                name: opening.enter_context(replacing(path)) for name, path in zip(self.chosen, self.paths, strict=True)
            }
            writer = _Writer(opened, self.format, run or {})
            try:
                yield writer.take
            except (KeyboardInterrupt, CancelledError) as error:
                ended = error
                writer.interrupted = True
            finally:
                writer.at_end = {name: json.dumps(value) for name, value in self.known.items()}
                writer.close()
        self.rows = writer.rows
        if ended is not None:
            if not is_temporary:
                kept = ", ".join(shown(path) for path in self.paths)
                add_note(ended, f"kept until {writer.last:.9g} s, the last event that was written: {kept}")
            raise ended

    def _refuse_others(self, run: Mapping[str, str]) -> None:
        """Refuses a folder that has these files already, or events of another run: one cannot tell them apart later."""
        faults = []
        for kind in EVENTS:
            for form in FORMATS:
                path = self.folder / f"{kind}.{form}"
                if not path.exists() and not path.is_symlink():
                    continue
                problem = None
                if path in self.paths:
                    problem = "is there already; name another folder, or take it away"
                elif form != self.format:
                    problem = f"is of another format than {self.format}; name another folder, or take it away"
                elif form == "csv":
                    problem = "does not say of which run it is, as CSV has no place for it; name another folder"
                elif (other := run_of(path)) is not None and other != dict(run):
                    problem = f"is of another run ({said(other)}, and not {said(run)}); name another folder"
                if problem is not None:
                    faults.append(Fault.of_file(shown(path), problem))
        if faults:
            raise OutputError(faults)


#: What the files of one run have in common: the scenario's name, its seed, and a digest of its canonical form.
OF_RUN = ("scenario", "seed", "scenario_sha256")


#: Metadata for diagrams, as JSON: the flows in order, the buffers of the ports, and the TCP in words.
FOR_DIAGRAMS = ("flows", "buffers", "tcp")


def run_of(path: Path) -> dict[str, str] | None:
    """What a Parquet file of events says of its run; None where it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(files.opened(path, what="table"), "rb") as file:  # noqa: PTH123, a descriptor
            metadata = pq.read_schema(file).metadata or {}
    except (files.UnreadableError, pa.ArrowException, OSError, ValueError):
        return None
    names = [name for name in OF_RUN if name.encode() in metadata]
    return {name: metadata[name.encode()].decode(errors="replace") for name in names}


def said(run: Mapping[str, str]) -> str:
    """A run in a few words."""
    digest = run.get("scenario_sha256", "")[:8]
    name, seed = run.get("scenario") or "scenario", run.get("seed", "unknown")
    return f"{shown(name)}, seed {seed}{f', digest {digest}' if digest else ''}"


class _Table:
    """The file of one kind."""

    def __init__(self, kind: str, file: IO[bytes], file_format: str, run: Mapping[str, str]) -> None:
        import pyarrow as pa

        self.columns = [column_of(measure) for measure in EVENTS[kind].columns]
        metadata = {"celltrain": "events", "kind": kind, "meaning": EVENTS[kind].meaning, **run}
        self.schema = pa.schema([column.field() for column in self.columns], metadata=metadata)
        self.writer: Any
        if file_format == "csv":
            import pyarrow.csv

            self.writer = pa.csv.CSVWriter(file, csv_schema(self.schema))
        else:
            import pyarrow.parquet

            words = [column.name for column in self.columns if column.kind == "name"]
            self.writer = pa.parquet.ParquetWriter(
                file,
                self.schema,
                compression="lz4",
                use_dictionary=[*words, *_REPEATING],
                column_encoding={
                    column.name: _ENCODINGS[column.kind]
                    for column in self.columns
                    if column.kind in _ENCODINGS and column.name not in _REPEATING
                },
                write_statistics=["time_s"],
            )
        self.is_csv = file_format == "csv"

    def write(self, values: list[Values]) -> None:
        import pyarrow as pa

        arrays = [_array(field, *one) for field, one in zip(self.schema, values, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=self.schema)
        for rows in csv_rows(table) if self.is_csv else [table]:
            self.writer.write_table(rows)

    def mark(self, metadata: Mapping[str, str]) -> None:
        """Adds to what the file says of itself, at its end; CSV has no place for it, nor has pyarrow before 16."""
        if not self.is_csv and hasattr(self.writer, "add_key_value_metadata"):
            self.writer.add_key_value_metadata(dict(metadata))

    def close(self) -> None:
        self.writer.close()


#: Columns whose values repeat for long.
_REPEATING = ("length", "cwnd", "ssthresh", "flight", "rto_s", "threshold_cells")
#: How Parquet stores numbers that differ from row to row.
_ENCODINGS = {"int64": "DELTA_BINARY_PACKED", "float64": "BYTE_STREAM_SPLIT"}


def _array(field: pa.Field, values: Any, words: Sequence[str] | None) -> pa.Array:
    """The values of a column; what a row lacks, NaN or -1, is null."""
    import numpy as np
    import pyarrow as pa

    if words is not None:
        return pa.DictionaryArray.from_arrays(pa.array(values, mask=values < 0), pa.array(words, pa.string()))
    missing = np.isnan(values) if values.dtype.kind == "f" else values < 0
    return pa.array(values.astype(bool) if field.type == pa.bool_() else values, field.type, mask=missing)


class _Writer:
    """Writes blocks on a thread of its own, while the run goes on; a few wait at most, as pyarrow is imported meanwhile."""

    def __init__(self, files: dict[str, IO[bytes]], file_format: str, run: Mapping[str, str]) -> None:
        self._files = files
        self._format = file_format
        self._run = run
        self._waiting: queue.Queue[tuple[str, list[Values]] | None] = queue.Queue(maxsize=4)
        self._error: BaseException | None = None
        self._ended = False
        self.interrupted = False
        """Whether the run ended before its time."""
        self.at_end: Mapping[str, str] = {}
        """Metadata that are known at the end of the run."""
        self.rows = dict.fromkeys(files, 0)
        self.last = 0.0
        """The instant of the last event."""
        self._thread = threading.Thread(target=self._work, name="celltrain events", daemon=True)
        self._thread.start()

    def take(self, kind: str, columns: list[Values]) -> None:
        """Takes a block; raises what could not be written before."""
        self._waiting.put((kind, columns))
        times = columns[0][0]
        self.rows[kind] += len(times)
        self.last = max(self.last, float(times[-1]))
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Writes what waits, and the ends of the files."""
        self._waiting.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        tables: list[_Table] = []
        try:
            self._write(tables)
        except BaseException as error:
            self._error = error
            # Whoever hands over a block must not wait for ever.
            while self._next() is not None:
                pass
            for table in tables:
                with suppress(Exception):
                    table.close()

    def _next(self) -> tuple[str, list[Values]] | None:
        """The next block; nothing from the last one on."""
        if not self._ended:
            block = self._waiting.get()
            self._ended = block is None
            return block
        return None

    def _write(self, tables: list[_Table]) -> None:
        # pyarrow calls Python from C++: a process that exits meanwhile would abort.
        awaited = _core.AwaitedAtExit()
        # pyarrow is imported here: the run goes on meanwhile.
        with awaited:
            by_kind = {kind: _Table(kind, file, self._format, self._run) for kind, file in self._files.items()}
        tables += by_kind.values()
        while (block := self._next()) is not None:
            kind, columns = block
            with awaited:
                by_kind[kind].write(columns)
        while tables:
            table = tables.pop()
            if self.interrupted:
                table.mark({"interrupted_at_s": f"{self.last:.12g}"})
            if self.at_end:
                table.mark(self.at_end)
            with awaited:
                table.close()
