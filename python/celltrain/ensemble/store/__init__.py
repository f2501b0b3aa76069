"""The store of a sweep: a SQLite file with its plan and its runs.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="20ms")
>>> store = ct.sweep(lan, over={"port.bottleneck.buffer": [100, 200]}, seeds=3)
>>> store.table().num_rows
48
>>> store.summary(["efficiency"]).column_names
['point', 'port.bottleneck.buffer', 'measure', 'n', 'mean', 'sd', 'low', 'high', 'censored']

`docs/sweeps.md` describes its tables, and how to query them in SQL.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from celltrain import _core
from celltrain.ensemble.cases import (
    CENSORED,
    SUMMARY,
    Measured,
    RunTable,
    arrow,
    by_measure,
    case_of,
    measured,
    store_columns,
    texts,
)
from celltrain.ensemble.plan import Axis, Plan, run_key
from celltrain.ensemble.plan.reader import labels_of
from celltrain.ensemble.store.database import (
    DAMAGE,
    MEND,
    Database,
    Repeat,
    Totals,
    axes_of,
    check_series,
    check_texts,
    checksums,
    size,
    wrapped,
)
from celltrain.ensemble.store.folder import Kind, Lock, uninterrupted
from celltrain.errors import Fault, StoreError, needed
from celltrain.model.arguments import checked
from celltrain.model.grids import Card, CardMixin, Grid
from celltrain.model.measures import is_lower_bound
from celltrain.running import RunRecord
from celltrain.running.statistics import means
from celltrain.running.tables import Column
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa


def schema(manifest: Mapping[str, Any]) -> pa.Schema:
    """Returns the columns of the long table, with units and meanings."""
    import pyarrow as pa

    about = {key: manifest[key] for key in ("format", "version", "profile", "name", "digest")}
    measures = [measured(name) for name in manifest["measures"]]
    units = {one.name: {"unit": one.unit, "meaning": one.meaning} for one in measures}
    fields = [Column(**column).field() for column in manifest["columns"]]
    return pa.schema(fields, metadata={"celltrain": json.dumps(about), "measures": json.dumps(units)})


@dataclass(frozen=True, kw_only=True)
class StoredRuns(RunTable):
    """The runs of a store by point and seed.

    Attributes:
        manifest: The manifest of the store.
        key: Keys of the runs, 12 bytes as three numbers.
        points: Point numbers by case.
        configurations: Scenarios by case.
        settings: Values of the axes by case.
    """

    manifest: Mapping[str, Any]
    key: NDArray[np.uint32]
    points: NDArray[np.int64]
    configurations: Sequence[str]
    settings: Sequence[tuple[float | str, ...]]

    @cached_property
    def point(self) -> NDArray[np.int64]:
        """Point number of each run."""
        return self.points[self.case]

    @cached_property
    def keys(self) -> list[str]:
        """Keys as 24 hexadecimal digits."""
        text = self.key.tobytes().hex()
        return [text[place : place + 24] for place in range(0, len(text), 24)]

    def long(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per run and measure, ordered by point, seed and measure, and one row for each failed run."""
        wanted = np.sort(self.places(measures))
        lengths = np.where(self.failed, int(measures is None), len(wanted))
        run = np.repeat(np.arange(len(self)), lengths)
        first = np.cumsum(lengths) - lengths
        failed = self.failed[run]
        measure = np.full(len(run), -1)
        measure[~failed] = wanted[(np.arange(len(run)) - first[run])[~failed]]
        value = np.full(len(run), np.nan)
        value[~failed] = self.values[run[~failed], measure[~failed]]
        errors = {int(first[at]): text for at, text in self.errors.items()} if measures is None else {}
        place_of = {int(at): place for place, at in enumerate(wanted)}
        errors |= {int(first[at]) + place_of[gap]: text for (at, gap), text in self.gaps.items() if gap in place_of}
        more = {
            "measure": texts(measure, self.manifest["measures"]),
            "value": value,
            "error": _sparse(errors, len(run)),
        }
        return arrow(self._columns(run, more), schema(self.manifest).metadata)

    def wide(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per run, with a column per measure."""
        names, places = self.manifest["measures"], self.places(measures)
        own = [self.measure(names[place]) for place in places]
        # If a run has several errors, only the first is shown. Notes about lower bounds come last.
        gaps = [one for one in self.gaps.items() if one[0][1] >= 0]
        gaps.sort(key=lambda one: (np.isnan(self.values[one[0]]), -one[0][1]))
        told = {run: text for (run, _), text in gaps} | dict(self.errors)
        columns = [*self._columns(np.arange(len(self)), {"error": _sparse(told, len(self))})]
        at = [column.name for column, _ in columns].index("error")
        values = list(zip(own, self.values[:, places].T, strict=True))
        error = columns.pop(at)
        return arrow([*columns, *values, error], schema(self.manifest).metadata)

    def summary(self, measures: Sequence[str] | None) -> pa.Table:
        """Returns one row per point and measure."""
        places = self.places(measures)
        starts = np.flatnonzero(np.diff(self.point, prepend=-1))
        group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(self)))
        wanted = {"point", "measure", *(axis["name"] for axis in axes_of(self.manifest))}
        measure = texts(np.tile(places, len(starts)), self.manifest["measures"])
        columns = self._columns(np.repeat(starts, len(places)), {"measure": measure}, wanted)
        found = [means(group, self.values[:, place], len(starts)) for place in places]
        cases = np.arange(len(starts))
        censored = np.add.reduceat(self.censored[:, places], starts, axis=0, dtype=np.int64)
        return arrow([*columns, *by_measure(SUMMARY, found, cases), (CENSORED, censored.reshape(-1))])

    def places(self, measures: Sequence[str] | None) -> NDArray[np.int64]:
        """Returns the indices of measures, in this order; of all measures when None."""
        known = self.manifest["measures"]
        for name in measures or ():
            if name not in known:
                raise StoreError.of_option("measures", repr(name), f"was not measured; choose from {', '.join(known)}")
        return np.array(
            [known.index(name) for name in dict.fromkeys(known if measures is None else measures)], np.int64
        )

    def measure(self, name: str) -> Column:
        """Returns the store's description of a measure."""
        return Column(name=name, kind="float64", **self.manifest["units"][name])

    def _columns(
        self, rows: NDArray[np.int64], more: Mapping[str, Any], wanted: Collection[str] | None = None
    ) -> Iterator[tuple[Column, Any]]:
        """Yields columns of the long table for the runs at `rows`; `more` contains those that depend on the measure."""
        axes = {axis["name"]: place for place, axis in enumerate(axes_of(self.manifest))}
        case = self.case[rows]
        for about in self.manifest["columns"]:
            column = Column(**about)
            if wanted is not None and column.name not in wanted:
                continue
            if column.name in more:
                yield column, more[column.name]
            elif column.name in axes:
                own = [settings[axes[column.name]] for settings in self.settings]
                yield column, np.array(own, np.float64)[case] if column.kind == "float64" else texts(case, own)
            elif column.name in ("point", "seed"):
                yield column, getattr(self, column.name)[rows]
            elif column.name == "run_key":
                yield column, texts(rows, self.keys)
            elif column.name == "configuration":
                yield column, texts(case, self.configurations)
            elif column.name == "fingerprint":
                different, code = np.unique(self.fingerprint, return_inverse=True)
                codes = np.where(self.printed, code.reshape(-1), -1)
                yield column, texts(codes[rows], [f"{number:016x}" for number in different.tolist()])
            elif column.name in ("version", "profile"):
                yield column, texts(np.zeros(len(rows), np.int64), [self.manifest[column.name]])


def _sparse(words: Mapping[int, str], count: int) -> pa.DictionaryArray:
    """Returns a column with the given texts at their indices, and null elsewhere."""
    different = list(dict.fromkeys(words.values()))
    places = {word: place for place, word in enumerate(different)}
    codes = np.full(count, -1)
    codes[list(words)] = [places[word] for word in words.values()]
    return texts(codes, different)


def read(database: Database, manifest: Mapping[str, Any]) -> StoredRuns:
    """Reads all runs; raises `StoreError` if a run was changed."""
    axes = "".join(f", a{place + 1}" for place in range(len(axes_of(manifest))))
    with database.snapshot() as query:
        totals = database.totals()
        [count] = query("SELECT count(*) FROM runs").fetchone()
        if count != totals.runs:
            raise ValueError(f"it has {count:,} runs, but {totals.runs:,} were written")

        def column(expression: str, kind: Any) -> NDArray[Any]:
            return np.array([value for (value,) in query(f"SELECT {expression} FROM runs ORDER BY run")], kind)

        measures = [column(f"m{place + 1}", np.float64) for place in range(len(manifest["measures"]))]
        keys = b"".join([key for (key,) in query("SELECT run_key FROM runs ORDER BY run")])
        run, point, checked = (column(name, np.int64) for name in ("run", "point", "checked"))
        seconds, key = column("seconds", np.float64), np.frombuffer(keys, np.uint32).reshape(count, 3)
        cases = query(f"SELECT point, configuration, checked{axes} FROM cases ORDER BY point").fetchall()
        for number, configuration, check, *settings in cases:
            if check != check_texts(number, configuration, *settings):
                raise ValueError(f"point {number} has a wrong checksum")
        failed = query("SELECT run, error FROM runs WHERE error IS NOT NULL").fetchall()
        gaps = query("SELECT run, measure, gaps.error FROM gaps JOIN runs USING (run)").fetchall()
        points = np.array([case[0] for case in cases], np.int64)
        runs = StoredRuns(
            measures=tuple(map(measured, manifest["measures"])),
            manifest=manifest,
            case=np.searchsorted(points, point),
            seed=column("seed", np.uint64),
            key=key,
            fingerprint=column("coalesce(fingerprint, 0)", np.int64).view(np.uint64),
            printed=column("fingerprint IS NOT NULL", np.bool_),
            values=np.array(measures, np.float64).reshape(len(measures), count).T,
            errors={int(np.searchsorted(run, number)): error for number, error in failed},
            gaps={(int(np.searchsorted(run, number)), measure - 1): error for number, measure, error in gaps},
            points=points,
            configurations=[case[1] for case in cases],
            settings=[tuple(case[3:]) for case in cases],
        )
        own = checksums(runs, point, key, seconds)
        if not np.array_equal(own, checked):
            wrong = int(np.flatnonzero(own != checked)[0])
            raise ValueError(f"run {key[wrong].tobytes().hex()} has a wrong checksum")
        if wrapped(int(own.sum())) != totals.checks or len(failed) != totals.failed:
            raise ValueError("runs are missing or duplicated")
        if not np.isin(point, points).all():
            raise ValueError("a run's case is missing")
    order = np.lexsort((runs.seed, point))
    new = np.argsort(order)
    columns = ("case", "seed", "key", "fingerprint", "printed", "values")
    moved = {(int(new[place]), measure): error for (place, measure), error in runs.gaps.items()}
    return replace(
        runs,
        **{name: getattr(runs, name)[order] for name in columns},
        errors={int(new[place]): error for place, error in runs.errors.items()},
        gaps=moved,
        bounds=[
            (run, measure)
            for (run, measure), note in moved.items()
            if measure >= 0 and is_lower_bound(runs.measures[measure].name, note)
        ],
    )


__all__ = ["FORMAT", "Measured", "RunRecord", "Store", "measured"]

#: Format version of the folder and its database. Celltrain 0.2 wrote format 1: Parquet parts and a ledger. In the
#: scenarios of format 2, all TCP settings were at the top of their table.
FORMAT = 3
DATABASE = "store.sqlite"
#: The file that identifies a store of format 1.
OLD_MANIFEST = "manifest.json"
_NEEDS = {"measures": list, "columns": list, "units": dict}
_UNSEEN = "in its measures or its sample"
_EXPORT = "celltrain store export {} --csv --out rows.csv"
KIND = Kind("store", DATABASE, FORMAT, StoreError, unseen=_UNSEEN, needs=_NEEDS, export=_EXPORT)
#: Number of hexadecimal digits of a run's key.
KEY_DIGITS = 24


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Store(CardMixin):
    """The runs of a plan, in a SQLite file in a folder.

    Attributes:
        path: The folder.
        manifest: Format, version, profile, the plan and its digest, columns and measures.
        keeper: Owner of a temporary folder, which is deleted with it.
    """

    path: Path
    manifest: dict[str, Any]
    keeper: object = None
    _lock: Lock | None = None
    _database: Database | None = None
    _runs: tuple[Totals, StoredRuns] | None = None

    @checked(StoreError)
    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the store in a folder for reading, like `Store.open`; raises `StoreError`."""
        vars(self).update(vars(type(self).open(path)))

    @classmethod
    def _made(cls, **parts: Any) -> Store:
        """Returns a store with the given attributes."""
        made = cls.__new__(cls)
        vars(made).update(parts)
        return made

    # Reading.

    @classmethod
    @checked(StoreError)
    def open(cls, path: str | os.PathLike[str], *, changed: bool = False) -> Store:
        """Opens a store for reading, even while a sweep writes to it; raises `StoreError`.

        Args:
            path: Its folder.
            changed: True to accept a changed manifest, in order to verify the store.
        """
        folder = Path(path)
        manifest = _manifest(folder)
        if not changed and (faults := list(KIND.changed(folder, manifest))):
            raise StoreError(faults)
        return cls._made(path=folder, manifest=manifest)

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return Plan.of_document(self.manifest["plan"])

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the plan. Each axis is a column."""
        return self.plan.axes

    @property
    def measures(self) -> tuple[Measured, ...]:
        """The measures, with units, meanings and the plan's labels."""
        labels = labels_of(self.manifest["plan"].get("measures"))
        return tuple(replace(measured(name), label=labels.get(name, "")) for name in self.manifest["measures"])

    @property
    def version(self) -> str:
        """Version of celltrain with which the store was made."""
        return str(self.manifest["version"])

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of `table` with units and meanings."""
        return schema(self.manifest)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Database]:
        """Opens the store's file for reading."""
        with contextlib.closing(Database(self.path / DATABASE)) as database:
            database.expect(self.manifest)
            yield database

    def runs(self) -> StoredRuns:
        """Returns all runs stored so far, as arrays."""
        with self.reading() as database:
            totals = database.totals()
            if self._runs is None or self._runs[0] != totals:
                vars(self)["_runs"] = totals, read(database, self.manifest)
        assert self._runs is not None, "read above"
        return self._runs[1]

    def totals(self) -> Totals:
        """Returns the numbers of runs stored so far, without reading the runs."""
        with self.reading() as database:
            return database.totals()

    def filled(self) -> dict[str, str]:
        """Returns the keys of runs with copied results, each with the key of the simulated run."""
        with self.reading() as database:
            return database.filled()

    @checked(StoreError)
    def table(self, measures: Sequence[str] | None = None) -> pa.Table:
        """Returns one row per run and measure, ordered by point, seed and measure.

        Args:
            measures: Measures to return. When None, all measures and the rows of failed runs.
        """
        return self.runs().long(measures)

    @checked(StoreError)
    def wide(self, measures: Sequence[str] | None = None) -> pa.Table:
        """Returns one row per run, with a column per measure; `error` is the reason why a run has no values."""
        return self.runs().wide(measures)

    @checked(StoreError)
    def summary(self, measures: Sequence[str] | None = None) -> pa.Table:
        """Returns one row per point and measure: mean, standard deviation, number, and the 95 % interval of the mean.

        The interval is based on Student's t; it is null for fewer than two values. A point with the same scenario as an
        earlier point is left out, as its runs are stored with that point.
        """
        return self.runs().summary(measures)

    @checked(StoreError)
    def missing(self, runs: int) -> int | None:
        """Returns the number of runs that are still missing after `runs` runs; None if the total is unknown."""
        planned = self.manifest.get("runs")
        return max(0, planned - runs - self.totals().repeats) if isinstance(planned, int) else None

    def failures(self) -> pa.Table:
        """Returns the rows of runs that failed."""
        import pyarrow.compute as pc

        table = self.table()
        return table.filter(pc.is_null(table["measure"]))

    @checked(StoreError)
    def series(self, run_key: str) -> pa.Table:
        """Returns a run's series: time, measure, port, flow and value; raises `StoreError` if it recorded nothing."""
        import pyarrow as pa

        key = bytes.fromhex(run_key) if set(run_key) <= set("0123456789abcdef") and len(run_key) == KEY_DIGITS else b""
        with self.reading() as database:
            found = database.rows(
                "SELECT parquet, series_checks.checked FROM series JOIN runs USING (run) LEFT JOIN series_checks USING (run) "
                "WHERE run_key = ?",
                key,
            )
        if not found:
            raise self._error(f"has no series of {run_key}: the plan has no [series], or the run is not done")
        [(content, check)] = found
        try:
            if check != check_series(run_key, content):
                raise ValueError("its checksum differs")
            return read_parquet(content)
        except (*DAMAGE, OSError, pa.ArrowException) as error:
            problem = f"is damaged (the series of {run_key}: {error}): {MEND}"
            raise StoreError.of_file(self.path / DATABASE, problem) from None

    def to_arrow(self, measures: Sequence[str] | None = None) -> pa.Table:
        """Returns the rows as an Arrow table, like `table`."""
        return self.table(measures)

    def to_pandas(self, measures: Sequence[str] | None = None) -> Any:
        """Returns the rows as a pandas data frame; needs pandas."""
        needed("pandas", "pandas is not installed: pip install 'celltrain[frames]'")
        return self.table(measures).to_pandas(use_threads=False)

    def to_polars(self, measures: Sequence[str] | None = None) -> Any:
        """Returns the rows as a Polars data frame; needs Polars."""
        polars = needed("polars", "polars is not installed: pip install 'celltrain[frames]'")
        return polars.from_arrow(self.table(measures))

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain store show --json`: what was planned, and how much of it is done."""
        about = {key: self.manifest[key] for key in ("name", "version", "profile", "digest", "columns", "measures")}
        # Since version 0.3, a store always has a single file of rows.
        counts = {"points": len(self.plan.points), "runs": len(self.runs()), "runs_planned": self.plan.runs, "parts": 1}
        return {"store": shown(self.path), **about, **counts, "bytes": size(self.path / DATABASE)}

    def verify(self) -> list[Fault]:
        """Returns all faults: damage, changed values, and runs with a wrong key. A sweep may be writing.

        Raises `StoreError` for a store of another version or with a changed manifest.
        """
        version = _core.__version__
        if self.version != version:
            problem = f"was made by celltrain {self.version}, but this is {version}: only the version that made it can verify it"
            raise self._error(f"{problem}; install celltrain {self.version}")
        if faults := list(KIND.changed(self.path, self.manifest)):
            raise StoreError(faults)
        try:
            with self.reading() as database:
                return [*self._wrong_tables(database), *self._wrong_keys(read(database, self.manifest))]
        except StoreError as error:
            return error.faults

    def _wrong_tables(self, database: Database) -> Iterator[Fault]:
        for (text,) in database.rows("PRAGMA integrity_check(5)"):
            if text != "ok":
                yield Fault.of_file(database.path, f"is damaged ({text}): {MEND}")
        with database.snapshot() as query:
            [double] = query("SELECT count(*) FROM repeats JOIN runs USING (point, seed)").fetchone()
            [lost] = query("SELECT count(*) FROM repeats WHERE run_key NOT IN (SELECT run_key FROM runs)").fetchone()
            [count] = query("SELECT count(*) FROM repeats").fetchone()
            if double or lost or count != database.totals().repeats:
                problem = "refers to missing runs of other points, or refers to some runs twice"
                yield Fault.of_file(database.path, f"{problem}: it was changed; {MEND}")
            if self.manifest["plan"].get("series") is not None:
                text = "SELECT count(*) FROM runs WHERE error IS NULL AND run NOT IN (SELECT run FROM series)"
                [missing] = query(text).fetchone()
                if missing:
                    yield Fault.of_file(database.path, f"lacks the series of {missing:,} runs: {MEND}")
            units = {name: (one["unit"], one["meaning"]) for name, one in self.manifest["units"].items()}
            wanted = [(place, name, *units[name]) for place, name in enumerate(self.manifest["measures"], 1)]
            if query("SELECT measure, name, unit, meaning FROM measures ORDER BY measure").fetchall() != wanted:
                yield Fault.of_file(
                    database.path, f"has measures that differ from those of its plan, so it was changed; {MEND}"
                )
            repeats = query("SELECT point, seed, run_key FROM repeats").fetchall()
            text = "SELECT count(*) FROM runs WHERE (error IS NULL) != (fingerprint IS NOT NULL)"
            if query(text).fetchone() != (0,):
                problem = "has a failed run with a fingerprint, or a successful run without one"
                yield Fault.of_file(database.path, f"{problem}: it was changed; {MEND}")
        if wrong := database.wrong_series():
            problem = f"has {len(wrong):,} series with a wrong checksum, such as the series of the run {wrong[0]}"
            yield Fault.of_file(database.path, f"{problem}: it was changed; {MEND}")
        yield from self._wrong_repeats(repeats)

    def _wrong_repeats(self, repeats: Sequence[tuple[int, int, bytes]]) -> Iterator[Fault]:
        configurations: dict[int, str] = {}
        for point, seed, key in repeats:
            if point not in configurations and 0 <= point < len(self.plan.points):
                configurations[point] = case_of(self.plan, point)[0].canonical
            configuration = configurations.get(point)
            if configuration is None or run_key(configuration, seed, version=self.version) != key.hex():
                problem = f"refers, for point {point} and seed {seed}, to a run of another scenario or seed"
                yield Fault.of_file(self.path / DATABASE, f"{problem}: it was changed; {MEND}")
                return

    def _wrong_keys(self, runs: StoredRuns) -> Iterator[Fault]:
        for key, seed, case in zip(runs.keys, runs.seed.tolist(), runs.case.tolist(), strict=True):
            if key != run_key(runs.configurations[case], seed, version=self.version):
                problem = f"holds the run {key}, whose key does not match its scenario and seed"
                yield Fault.of_file(self.path, f"{problem}: it was changed; {MEND}")
                return

    def _card(self) -> Card:
        manifest = self.manifest
        totals = self.totals()
        done, failed = totals.runs + totals.repeats, totals.failed
        planned = manifest.get("runs")
        of_all = f" of {planned:,}" if isinstance(planned, int) else ""
        progress = f"{done:,}{of_all} runs done{f', {failed:,} of them failed' if failed else ''}"
        axes = [[one["name"], one["meaning"], _unit(one)] for one in axes_of(manifest)]
        measures = [[name, one["meaning"], _unit(one)] for name, one in manifest["units"].items()]
        return Card(
            title=manifest["name"] or "A store",
            lines=[progress, f"in {self.path}, by celltrain {self.version}"],
            grids=[
                Grid(heads=["axis", "setting", "unit"], rows=axes, left=(0, 1, 2)),
                Grid(heads=["measure", "meaning", "unit"], rows=measures, left=(0, 1, 2)),
            ],
            notes=[".summary() returns means with their intervals, celltrain.report(store) makes a page"],
        )

    def __getstate__(self) -> dict[str, Any]:
        # Pickling and copying do not include the arrays, which are read again.
        return {**vars(self), "_runs": None}

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {self.totals().runs:,} runs)"

    def _error(self, problem: str) -> StoreError:
        return StoreError.of_file(self.path, problem)

    # Writing.

    @classmethod
    @checked(StoreError)
    def create(cls, path: str | os.PathLike[str], plan: Plan) -> Store:
        """Returns a new store for a plan, open for writing; raises `StoreError` if the folder is in use."""
        folder = Path(path)
        manifest = KIND.new(
            plan,
            # The total number is unknown if the number of seeds depends on the values.
            runs=plan.runs if plan.seeds.until is None else None,
            measures=list(plan.measures),
            columns=[
                {"name": one.name, "kind": one.kind, "unit": one.unit, "meaning": one.meaning}
                for one in store_columns(plan.axes)
            ],
            units={one.name: {"unit": one.unit, "meaning": one.meaning} for one in map(measured, plan.measures)},
        )
        lock = KIND.begin(folder)
        with lock.released_on_error():
            Database.create(folder / DATABASE, manifest)
            return cls._writable(folder, manifest, plan, lock)

    @classmethod
    @checked(StoreError)
    def resume(cls, path: str | os.PathLike[str], plan: Plan) -> Store:
        """Returns a store to continue writing; raises `StoreError` if it is damaged, or has another plan or version.

        Creates the store if an earlier attempt to create it was killed or ran out of disk space.
        """
        folder = Path(path)
        try:
            manifest = _manifest(folder)
        except StoreError:
            with contextlib.suppress(OSError):
                if any(folder.iterdir()) and KIND.is_half_made(folder):
                    return cls.create(folder, plan)
            raise
        if faults := list(KIND.differences(folder, manifest, plan)):
            raise StoreError(faults)
        lock = KIND.locked(folder)
        with lock.released_on_error():
            return cls._writable(folder, manifest, plan, lock)

    @classmethod
    def _writable(cls, folder: Path, manifest: dict[str, Any], plan: Plan, lock: Lock) -> Store:
        database = Database(folder / DATABASE, write=True)
        database.expect(manifest)
        return cls._made(path=folder, manifest=manifest, plan=plan, _lock=lock, _database=database)

    @property
    def database(self) -> Database:
        """The writing connection; raises `StoreError` unless the store is open for writing."""
        if self._lock is None or self._database is None:
            raise self._error("is open for reading; use Store.create or Store.resume to open a store for writing")
        return self._database

    @checked(StoreError)
    def write(self, rows: Sequence[RunRecord], repeats: Sequence[Repeat] = ()) -> None:
        """Adds all given runs or none; raises `StoreError` if the runs cannot be added."""
        self.add(rows, repeats)

    def add(self, rows: Sequence[RunRecord], repeats: Sequence[Repeat]) -> None:
        """Adds runs of a worker, without checking their types."""
        if rows or repeats:
            with uninterrupted():
                self.database.add(rows, repeats, self.plan.measures, self._settings)

    def drop_failed(self) -> None:
        """Deletes failed runs, so that they are missing again; raises `StoreError` if that cannot be done."""
        with uninterrupted():
            self.database.drop_failed()

    def close(self) -> None:
        """Releases the lock, so that other processes can write."""
        if self._lock is not None and self._database is not None:
            self._database.close()
            self._lock.close()
        vars(self).update(_lock=None, _database=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _settings(self, point: int) -> list[float | str]:
        """Returns the values of the axes at a point, as stored in the database."""
        values = zip(self.plan.axes, self.plan.points.values(point), strict=True)
        return [float(value) + 0.0 if axis.is_number else str(value) for axis, value in values]


def read_parquet(content: bytes) -> pa.Table:
    """Reads a Parquet file in memory, and verifies its checksums.

    Uses only this thread and memory owned by Arrow. If an Arrow thread releases a Python object during interpreter
    shutdown, the process crashes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.allocate_buffer(len(content))
    memoryview(buffer).cast("B")[:] = content
    file = pq.ParquetFile(pa.BufferReader(buffer), page_checksum_verification=True, pre_buffer=False)
    table = file.read(use_threads=False)
    table.validate(full=True)
    return table


def _unit(column: dict[str, Any]) -> str:
    """Returns the unit of a column; empty for pure numbers."""
    return "" if column["unit"] == "1" else str(column["unit"])


def _manifest(folder: Path) -> dict[str, Any]:
    """Returns the manifest of a store; raises `StoreError` if there is none that this version can read."""
    path = folder / DATABASE
    if not path.exists() and not path.is_symlink():
        problem = f"is not a store: it has no {DATABASE}" if folder.exists() else "is not there"
        if (folder / OLD_MANIFEST).exists():
            problem = "is a store of celltrain 0.2: export it with that version (celltrain store export)"
        raise StoreError.of_file(folder, problem)
    with contextlib.closing(Database(path)) as database:
        manifest = KIND.understood(folder, database.about())
        database.expect(manifest)
        return manifest
