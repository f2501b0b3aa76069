"""The events of a run as Arrow tables, read from the files that the run wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, InputError, NotTracedError
from celltrain.model import files
from celltrain.model.arguments import Answer, checked
from celltrain.model.measures import EVENTS
from celltrain.running.events import FOR_DIAGRAMS, FORMATS, run_of, said
from celltrain.running.tables import column_of
from celltrain.text import described, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.drawing.diagrams import Diagrams


@checked()
def read_events(folder: str | os.PathLike[str]) -> EventLog:
    """The events that a run wrote into a folder, to look at later.

    Args:
        folder: The folder of `celltrain run --events DIR`, or of `celltrain.Events`; its tables are Parquet or CSV.

    Raises:
        InputError: When there is no such folder, or no table of events in it, or tables of several runs.

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
        raise InputError([Fault.of_file(shown(path), problem)])
    log = EventLog._of(path)
    if not len(log):
        problem = "has no tables of events; celltrain run FILE --events DIR writes them"
        raise InputError([Fault.of_file(shown(path), problem)])
    _refuse_mixed(log)
    return log


def _refuse_mixed(log: EventLog) -> None:
    """Refuses a folder whose files are of several runs; raises `InputError`."""
    folder = log.folder
    assert folder is not None
    there = [path for kind in EVENTS for form in FORMATS if (path := folder / f"{kind}.{form}").is_file()]
    if len({path.suffix for path in there}) > 1:
        listed = ", ".join(path.name for path in there)
        raise InputError([Fault.of_file(shown(folder), f"has events in two formats, so of two runs: {listed}")])
    runs: dict[Path, dict[str, str]] = {}
    for path in there:
        if path.suffix == ".parquet" and (run := run_of(path)) is not None:
            runs[path] = run
    if not runs:
        return
    first = next(iter(runs))
    for path, run in runs.items():
        if run != runs[first]:
            problem = (
                f"has events of two runs: {first.name} is of {said(runs[first])}, {path.name} of {said(run)}; "
                "each needs a folder of its own"
            )
            raise InputError([Fault.of_file(shown(folder), problem)])


class EventLog(Answer, Mapping[str, "pa.Table"]):
    """The events of a run by kind: `segments`, `timers`, `frames`, `cells`, `rates`, as far as they were kept.

    A table is read from its file when it is asked for. pandas, polars and duckdb read it without copying.
    """

    _call = "celltrain.read_events"
    _folder: Path | None
    _paths: dict[str, Path]
    _tables: dict[str, pa.Table]
    _facts: dict[str, Any]

    @classmethod
    def _of(cls, folder: Path | None, **facts: Any) -> EventLog:
        """Of the folder of a run, or of a run that kept none; with what is known of the run beyond its events."""
        made = cls.__new__(cls)
        made._folder = folder
        made._paths = {}
        made._tables = {}
        made._facts = facts
        for kind in EVENTS if folder is not None else ():
            for form in FORMATS:
                path = folder / f"{kind}.{form}"  # type: ignore[operator]
                if kind not in made._paths and path.is_file():
                    made._paths[kind] = path
        return made

    @property
    def folder(self) -> Path | None:
        """Where its files are; None of a run that kept no events."""
        return self._folder

    @property
    def plot(self) -> Diagrams:
        """Diagrams of the events; needs `pip install celltrain[plot]`."""
        from celltrain.drawing.diagrams import Diagrams

        return Diagrams(self, self._title(), {**self._written(), **self._facts})

    def __getitem__(self, kind: str) -> pa.Table:
        if not isinstance(kind, str) or kind not in EVENTS:
            raise NotTracedError(f"there is no kind of event {described(kind)}; there are {', '.join(EVENTS)}")
        if self._folder is None:
            problem = f'the run kept no events: run it with events=ct.Events(folder=..., kinds=["{kind}"])'
            raise NotTracedError(problem)
        if kind not in self._paths:
            raise NotTracedError(
                f"the run kept no {kind}, only {', '.join(self)}: name them among the kinds that it keeps"
            )
        if kind not in self._tables:
            self._tables[kind] = _read(self._paths[kind], kind)
        return self._tables[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"EventLog({', '.join(self)})"

    def _written(self) -> dict[str, Any]:
        """The metadata for diagrams of one of its files; CSV has none."""
        for kind in self._paths:
            metadata = self[kind].schema.metadata or {}
            if found := {name: metadata[name.encode()] for name in FOR_DIAGRAMS if name.encode() in metadata}:
                return {name: json.loads(text) for name, text in found.items()}
        return {}

    def _title(self) -> str:
        """The scenario and the seed, as the run or its files have them; the folder's name where none of them says so."""
        facts = {name: self._facts.get(name) for name in ("scenario", "seed")}
        for kind in self._paths if facts["seed"] is None else ():
            metadata = self[kind].schema.metadata or {}
            if b"seed" in metadata:
                facts = {name: metadata.get(name.encode(), b"").decode() for name in facts}
                break
        if facts["seed"] is None:
            return self._folder.name if self._folder is not None else ""
        return f"{facts['scenario'] or 'scenario'}, seed {facts['seed']}"


def _read(path: Path, kind: str) -> pa.Table:
    """The table in a file that `celltrain.running.events` wrote; raises `InputError` for any other."""
    import pyarrow as pa

    columns = [column_of(measure) for measure in EVENTS[kind].columns]
    schema = pa.schema([column.field() for column in columns])
    try:
        handle = files.opened(path, what="table")
        with open(handle, "rb") as file:  # noqa: PTH123, a descriptor
            table = _parquet(file) if path.suffix == ".parquet" else _csv(file, schema)
        if table.column_names != schema.names:
            raise pa.ArrowInvalid("its columns are others")
        return table.cast(schema.with_metadata(table.schema.metadata))
    except files.UnreadableError as error:
        raise InputError([Fault.of_file(shown(path), error.problem)]) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = f"is not a table of {kind} as celltrain writes it ({' '.join(str(error).split())[:200]})"
        raise InputError([Fault.of_file(shown(path), problem)]) from None


def _parquet(file: Any) -> pa.Table:
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    table = parquet.read()
    # What is known at the end of a run only stands there and not in the schema.
    added = {name: text for name, text in (parquet.metadata.metadata or {}).items() if name != b"ARROW:schema"}
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **added})


def _csv(file: Any, schema: pa.Schema) -> pa.Table:
    """A CSV file with the columns that a Parquet file would have; the mark of `celltrain.text.cell` is taken off."""
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv

    is_text = {field.name: pa.types.is_dictionary(field.type) for field in schema}
    types = {field.name: pa.string() if is_text[field.name] else field.type for field in schema}
    options = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    # A name may have a line end.
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    table = pa.csv.read_csv(file, parse_options=parse, convert_options=options)
    for place, name in enumerate(table.column_names):
        if is_text.get(name):
            texts = pa.compute.replace_substring_regex(table[name], "^'", "")
            table = table.set_column(place, name, texts.dictionary_encode())
    return table
