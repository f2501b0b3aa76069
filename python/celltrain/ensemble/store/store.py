"""A store: opened to read by anyone, and to write by one coordinator."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.ensemble.plan import Axis, Plan
from celltrain.ensemble.store import columns, shapes
from celltrain.ensemble.store.check import verify
from celltrain.ensemble.store.columns import Measured, measured
from celltrain.ensemble.store.database import DAMAGE, MEND, Database, Repeat, Totals
from celltrain.ensemble.store.files import Lock, Locked, clear, uninterrupted
from celltrain.ensemble.store.layout import DATABASE, KIND, LOCK, OLD_MANIFEST, axes_of
from celltrain.ensemble.store.runs import Runs, read
from celltrain.errors import Fault, MissingExtraError, StoreError
from celltrain.model.arguments import Answer, checked
from celltrain.model.cards import Card, Carded, Grid
from celltrain.running import RunRecord
from celltrain.running.tables import Column
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa


#: Hexadecimal digits of a run's key.
KEY_DIGITS = 24


class Store(Carded, Locked, Answer):
    """The runs of a plan, in a SQLite file in a folder."""

    _call = "celltrain.sweep or celltrain.Store.open"
    path: Path
    manifest: dict[str, Any]
    """Format, version, profile, plan and its digest, columns and measures."""
    keeper: object = None
    """Owner of a temporary folder, which is deleted with it."""
    _plan: Plan | None
    _database: Database | None = None
    _runs: tuple[Totals, Runs] | None = None

    @checked(StoreError)
    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the store in a folder to read, as `Store.open` does; raises `StoreError`."""
        vars(self).update(vars(type(self).open(path)))

    @classmethod
    def _of(cls, path: Path, manifest: dict[str, Any], plan: Plan | None = None) -> Store:
        made = cls.__new__(cls)
        made.path = path
        made.manifest = manifest
        made._plan = plan
        return made

    # To read.

    @classmethod
    @checked(StoreError)
    def open(cls, path: str | os.PathLike[str], *, changed: bool = False) -> Store:
        """Opens a store to read, also while a sweep writes it; raises `StoreError`.

        Args:
            path: Its folder.
            changed: True to accept a manifest that was changed, to verify the store.
        """
        folder = Path(path)
        manifest = _manifest(folder)
        if not changed and (faults := list(KIND.changed(folder, manifest))):
            raise StoreError(faults)
        return cls._of(folder, manifest)

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return self._plan or Plan.of_document(self.manifest["plan"])

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the plan, one column each."""
        return self.plan.axes

    @property
    def measures(self) -> tuple[Measured, ...]:
        """The measures, with units and meanings."""
        return tuple(map(measured, self.manifest["measures"]))

    @property
    def version(self) -> str:
        """Version of the celltrain that made the store."""
        return str(self.manifest["version"])

    def parts(self) -> list[Path]:
        """Raises `StoreError`: since 0.3 a store has no Parquet files; `celltrain store export` writes one."""
        problem = "is one SQLite file and has no Parquet parts: use celltrain store export, or to_arrow()"
        raise StoreError([Fault.of_file(shown(self.path), problem)])

    @contextlib.contextmanager
    def reading(self) -> Iterator[Database]:
        """Opens the store's file to read."""
        with Database(self.path / DATABASE) as database:
            database.expect(self.manifest)
            yield database

    def runs(self) -> Runs:
        """Returns the runs stored so far, as arrays."""
        with self.reading() as database:
            totals = database.totals()
            if self._runs is None or self._runs[0] != totals:
                self._runs = totals, read(database, self.manifest)
        return self._runs[1]

    def totals(self) -> Totals:
        """Returns the numbers of runs stored so far, without counting them."""
        with self.reading() as database:
            return database.totals()

    @checked(StoreError)
    def table(self, measures: Sequence[str] | None = None) -> pa.Table:
        """Returns one row per run and measure, by point, seed and measure.

        Args:
            measures: Only these; all when None, and the rows of runs that failed.
        """
        return shapes.long(self, measures)

    @checked(StoreError)
    def wide(self, measures: Sequence[str] | None = None) -> pa.Table:
        """Returns one row per run, one column per measure; `error` says why a run has no values."""
        return shapes.wide(self, measures)

    @checked(StoreError)
    def summary(self, measures: Sequence[str] | None = None) -> pa.Table:
        """Returns one row per point and measure: mean, standard deviation, number, and the 95 % interval of the mean.

        The interval is Student's; it is null where there are fewer than two values. A point whose scenario an earlier
        point has too is not there: its runs are that point's.
        """
        return shapes.summary(self, measures)

    @checked(StoreError)
    def missing(self, runs: int) -> int | None:
        """How many runs of the plan are still to be done when so many are; None where the store cannot tell."""
        planned = self.manifest.get("runs")
        if not isinstance(planned, int):
            return None
        return max(0, planned - runs - self.totals().repeats)

    def failures(self) -> pa.Table:
        """Returns the rows of runs that failed."""
        return shapes.failures(self)

    @checked(StoreError)
    def series(self, run_key: str) -> pa.Table:
        """Returns what a run recorded: time, measure, port, flow and value; raises `StoreError` if it recorded nothing."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        key = bytes.fromhex(run_key) if set(run_key) <= set("0123456789abcdef") and len(run_key) == KEY_DIGITS else b""
        with self.reading() as database:
            content = database.series(key)
        if content is None:
            problem = f"has no series of {run_key}: the plan has no [series], or the run is not done"
            raise StoreError([Fault.of_file(shown(self.path), problem)])
        try:
            # On this thread, from memory of Arrow's own: a thread of Arrow's that lets go of a Python object while the
            # interpreter ends brings the process down.
            buffer = pa.allocate_buffer(len(content))
            memoryview(buffer).cast("B")[:] = content
            file = pq.ParquetFile(pa.BufferReader(buffer), page_checksum_verification=True, pre_buffer=False)
            table = file.read(use_threads=False)
            table.validate(full=True)
            return table
        except (*DAMAGE, OSError, pa.ArrowException) as error:
            problem = f"is damaged (the series of {run_key}: {error}): {MEND}"
            raise StoreError([Fault.of_file(shown(self.path / DATABASE), problem)]) from None

    def to_arrow(self, measures: Sequence[str] | None = None) -> pa.Table:
        """The rows as an Arrow table, as `table` gives them."""
        return self.table(measures)

    def to_pandas(self, measures: Sequence[str] | None = None) -> Any:
        """The rows as a pandas data frame; needs pandas."""
        _needed("pandas")
        return self.table(measures).to_pandas(use_threads=False)

    def to_polars(self, measures: Sequence[str] | None = None) -> Any:
        """The rows as a Polars data frame; needs Polars."""
        return _needed("polars").from_arrow(self.table(measures))

    def verify(self) -> list[Fault]:
        """Returns what is wrong: damage, changed values, runs whose key is not theirs."""
        return verify(self)

    def _card(self) -> Card:
        manifest = self.manifest
        totals = self.totals()
        done, failed = totals.runs + totals.repeats, totals.failed
        planned = manifest.get("runs")
        of_all = f" of {planned:,}" if isinstance(planned, int) else ""
        said = f"{done:,}{of_all} runs done{f', {failed:,} of them failed' if failed else ''}"
        return Card(
            title=manifest["name"] or "A store",
            lines=[said, f"in {self.path}, by celltrain {self.version}"],
            grids=[
                Grid(heads=["axis", "what it sets", "unit"], rows=_described(axes_of(manifest)), left=(0, 1, 2)),
                Grid(
                    heads=["measure", "meaning", "unit"],
                    rows=_described([{"name": name, **about} for name, about in manifest["units"].items()]),
                    left=(0, 1, 2),
                ),
            ],
            notes=[".summary() has the means with their intervals, celltrain.report(store) a page about it"],
        )

    def __getstate__(self) -> dict[str, Any]:
        # Arrays are read again.
        return {**vars(self), "_runs": None}

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {self.totals().runs:,} runs)"

    # To write.

    @staticmethod
    def refuse(folder: Path) -> None:
        """Raises `StoreError` unless a store can be made in a folder."""
        _refuse_existing(folder)
        problem = None
        try:
            if folder.exists() and not folder.is_dir():
                problem = "is a file, not a folder"
            elif folder.is_dir() and any(folder.iterdir()) and not _half_made(folder):
                problem = "holds other files: name a folder that is new or empty"
        except OSError as error:
            raise _not_made(folder, error) from None
        if problem is not None:
            raise StoreError([Fault.of_file(shown(folder), problem)])

    @classmethod
    @checked(StoreError)
    def create(cls, path: str | os.PathLike[str], plan: Plan) -> Store:
        """A new store for a plan, open to write; raises `StoreError` where there is something else already."""
        folder = Path(path)
        cls.refuse(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _not_made(folder, error) from None
        store = cls._of(folder, KIND.new(plan, **_facts(plan)), plan)
        store._lock = Lock(folder / LOCK)
        try:
            # Another sweep may have made it meanwhile.
            _refuse_existing(folder)
            clear(folder)
            Database.create(folder / DATABASE, store.manifest)
            store._database = Database(folder / DATABASE, write=True)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    @checked(StoreError)
    def resume(cls, path: str | os.PathLike[str], plan: Plan) -> Store:
        """A store to go on with; raises `StoreError` where it is another plan's, another version's, or not whole.

        One whose creation was killed, or found no room, is created.
        """
        folder = Path(path)
        try:
            manifest = _manifest(folder)
        except StoreError:
            with contextlib.suppress(OSError):
                if _half_made(folder):
                    return cls.create(folder, plan)
            raise
        faults = list(KIND.differences(folder, manifest, plan))
        if faults:
            raise StoreError(faults)
        store = cls._of(folder, manifest, plan)
        store._lock = Lock(folder / LOCK)
        try:
            clear(folder)
            store._database = Database(folder / DATABASE, write=True)
            store._database.expect(manifest)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def database(self) -> Database:
        """The connection that writes; only of a store that is open to write."""
        if self._database is None:
            problem = "is open to read; Store.create and Store.resume open a store to write"
            raise StoreError([Fault.of_file(shown(self.path), problem)])
        return self._database

    @checked(StoreError)
    def write(self, rows: Sequence[RunRecord], repeats: Sequence[Repeat] = ()) -> None:
        """Adds runs, all of them or none; raises `StoreError` if that cannot be done."""
        if rows or repeats:
            with uninterrupted():
                self.database.add(rows, repeats, len(self.plan.measures), self._settings)

    @checked(StoreError)
    def drop_failed(self, worth: Callable[[str], bool]) -> int:
        """Deletes the runs that failed and are worth another try, so that they are missing; returns how many.

        Args:
            worth: Called with the error of a run.

        Raises:
            StoreError: When the store cannot be read or written.
        """
        with uninterrupted():
            return self.database.drop_failed(worth) if self.database.totals().failed else 0

    def close(self) -> None:
        """Lets others write."""
        if self._database is not None:
            self._database.close()
            self._database = None
        super().close()

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of `table` with units and meanings."""
        metadata = {
            "celltrain": json.dumps(
                {key: self.manifest[key] for key in ("format", "version", "profile", "name", "digest")}
            ),
            "measures": json.dumps({one.name: {"unit": one.unit, "meaning": one.meaning} for one in self.measures}),
        }
        return columns.schema([Column(**column) for column in self.manifest["columns"]], metadata)

    def _settings(self, point: int) -> list[float | str]:
        """The values of the axes at a point, as the database has them."""
        values = zip(self.plan.axes, self.plan.points.values(point), strict=True)
        return [float(value) + 0.0 if axis.is_number else str(value) for axis, value in values]


def _described(columns: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Name, meaning and unit of columns; pure numbers have no unit."""
    return [[one["name"], one["meaning"], "" if one["unit"] == "1" else one["unit"]] for one in columns]


def _manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store; raises `StoreError` if there is none that this celltrain reads."""
    path = folder / DATABASE
    if not path.exists() and not path.is_symlink():
        problem = f"is not a store: it has no {DATABASE}" if folder.exists() else "is not there"
        if (folder / OLD_MANIFEST).exists():
            problem = "is a store of celltrain 0.2: make one of this version from it with celltrain store import"
        raise StoreError([Fault.of_file(shown(folder), problem)])
    with Database(path) as database:
        manifest = KIND.understood(folder, database.about())
        database.expect(manifest)
        return manifest


def _refuse_existing(folder: Path) -> None:
    if any((folder / name).exists() for name in (DATABASE, OLD_MANIFEST)):
        problem = "is a store already: go on with it (--resume), or name another folder"
        raise StoreError([Fault.of_file(shown(folder), problem)])


def _half_made(folder: Path) -> bool:
    """Whether the folder holds only the leftovers of a creation that was killed or found no room."""
    names = [one.name for one in folder.iterdir()]
    return bool(names) and all(name == LOCK or (name.startswith(".") and name.endswith(".tmp")) for name in names)


def _needed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(f"{package} is not installed: pip install 'celltrain[frames]'") from None


def _facts(plan: Plan) -> dict[str, Any]:
    """The keys of a store's manifest beyond those of every manifest."""
    return {
        # None: how many there will be follows from what they show.
        "runs": plan.runs if plan.seeds.until is None else None,
        "measures": list(plan.measures),
        "columns": columns.as_json(columns.fixed(plan)),
        "units": {one.name: {"unit": one.unit, "meaning": one.meaning} for one in map(measured, plan.measures)},
    }


def _not_made(folder: Path, error: OSError) -> StoreError:
    reason = (error.strerror or str(error)).lower()
    return StoreError([Fault.of_file(shown(folder), f"cannot be made ({reason})")])
