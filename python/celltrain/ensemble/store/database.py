"""The SQLite file of a store: its tables, its checksums, and connections that read or write it.

`docs/sweeps.md` describes the tables. One connection writes, in transactions; others may read meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from celltrain.ensemble.cases import BY_CASE, RunTable
from celltrain.ensemble.store.folder import is_locked, sync, unwritable
from celltrain.errors import InputError, StoreError, warn
from celltrain.model.files import UnreadableError, json_of
from celltrain.running import RunRecord
from celltrain.text import shown

#: Seconds to wait for another connection, and seconds until a warning.
PATIENCE, SILENCE = 10.0, 2.0
#: Advice for a file that cannot be read.
MEND = "restore it from a backup, or run its plan into a new folder"
_DAMAGED = f"is damaged, or not the database of a store ({{}}): {MEND}"
#: Exceptions raised for values whose type differs from the written type.
DAMAGE = (ValueError, TypeError, OverflowError, KeyError, IndexError, MemoryError)

_TABLES = {
    "about": "(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "totals": "(runs INTEGER NOT NULL, failed INTEGER NOT NULL, repeats INTEGER NOT NULL, checks INTEGER NOT NULL)",
    "measures": "(measure INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, meaning TEXT NOT NULL)",
    "cases": "(point INTEGER PRIMARY KEY, configuration TEXT NOT NULL, checked INTEGER NOT NULL{axes})",
    "runs": (
        "(run INTEGER PRIMARY KEY, point INTEGER NOT NULL, seed INTEGER NOT NULL, run_key BLOB NOT NULL UNIQUE, "
        "fingerprint INTEGER, seconds REAL, error TEXT, checked INTEGER NOT NULL{measures}, UNIQUE (point, seed))"
    ),
    "gaps": "(run INTEGER, measure INTEGER, error TEXT NOT NULL, PRIMARY KEY (run, measure)) WITHOUT ROWID",
    "repeats": (
        "(point INTEGER NOT NULL, seed INTEGER NOT NULL, run_key BLOB NOT NULL, PRIMARY KEY (point, seed)) WITHOUT ROWID"
    ),
    "series": "(run INTEGER PRIMARY KEY, parquet BLOB NOT NULL)",
    "series_checks": "(run INTEGER PRIMARY KEY, checked INTEGER NOT NULL)",
}
#: Table of the runs with results copied from other runs. It is created with the first of them, so stores of earlier
#: versions lack it.
_FILLED = "CREATE TABLE IF NOT EXISTS filled (run INTEGER PRIMARY KEY, from_key BLOB NOT NULL)"
_VIEWS = {
    "rows": (
        "SELECT runs.point AS point{named}, seed, measures.name AS measure, CASE measures.measure{values} END AS value, "
        "lower(hex(run_key)) AS run_key, printf('%016x', fingerprint) AS fingerprint "
        "FROM runs JOIN cases USING (point) CROSS JOIN measures WHERE error IS NULL"
    ),
    "failures": (
        "SELECT point, seed, NULL AS measure, error FROM runs WHERE error IS NOT NULL UNION ALL "
        "SELECT point, seed, name, gaps.error FROM gaps JOIN runs USING (run) JOIN measures USING (measure)"
    ),
}


def axes_of(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A run of a point with the same scenario as an earlier point. Only the run of the earlier point is stored."""
    names = [column["name"] for column in manifest["columns"]]
    axes: list[dict[str, Any]] = manifest["columns"][names.index("point") + 1 : names.index("seed")]
    return axes


def statements(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Returns the statements that create the tables and views, by name."""
    axes = [(f"a{place}", axis) for place, axis in enumerate(axes_of(manifest), 1)]
    quoted = ['"{}"'.format(axis["name"].replace('"', '""')) for _, axis in axes]
    places = range(1, len(manifest["measures"]) + 1)
    fields = {
        "axes": "".join(f", {column} {'REAL' if axis['kind'] == 'float64' else 'TEXT'}" for column, axis in axes),
        "named": "".join(f", {column} AS {name}" for (column, _), name in zip(axes, quoted, strict=True)),
        "measures": "".join(f", m{place} REAL" for place in places),
        "values": "".join(f" WHEN {place} THEN m{place}" for place in places),
    }
    tables = {name: f"CREATE TABLE {name} {text.format(**fields)}" for name, text in _TABLES.items()}
    return {**tables, **{name: f"CREATE VIEW {name} AS {text.format(**fields)}" for name, text in _VIEWS.items()}}


class Repeat(NamedTuple):
    """A run of a point with the same scenario as an earlier point. Only the run of the earlier point is stored."""

    point: int
    seed: int
    run_key: str


class Totals(NamedTuple):
    """Numbers of runs in a store.

    Attributes:
        runs: Runs done, including failed ones.
        failed: Runs that failed.
        repeats: Runs that repeat a run of another point.
        checks: Sum of the checksums of all runs, modulo 2^64, as a signed number.
    """

    runs: int
    failed: int
    repeats: int
    checks: int


class Database:
    """A connection to a store's file, for reading or writing."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        """Opens an existing file; raises `StoreError`."""
        self.path, self._write = path, write
        #: False for a store of an earlier build, whose series have no checksums.
        # The thread that prepares chunks also reads the store, possibly even while Ctrl-C closes the connection.
        self._lock = threading.RLock()
        if path.is_symlink() or (path.exists() and not path.is_file()):
            what = "is a link" if path.is_symlink() else "is not a regular file"
            raise StoreError.of_file(path, f"{what}, and celltrain did not create it: delete it")
        with self._explained():
            self._connection = self._writable() if write else self._readable()

    @classmethod
    def create(cls, path: Path, manifest: Mapping[str, Any]) -> None:
        """Creates the file of an empty store. It is renamed to its final name once it is complete."""
        draft = path.with_name(f".{path.name}.tmp")
        with _explained(path, writing=True):
            draft.unlink(missing_ok=True)
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = MEMORY")
                connection.execute("BEGIN")
                for statement in statements(manifest).values():
                    connection.execute(statement)
                connection.execute("INSERT INTO totals VALUES (0, 0, 0, 0)")
                texts = [(key, json.dumps(value, ensure_ascii=False)) for key, value in manifest.items()]
                connection.executemany("INSERT INTO about VALUES (?, ?)", texts)
                units = [manifest["units"][name] for name in manifest["measures"]]
                measures = enumerate(zip(manifest["measures"], units, strict=True), 1)
                rows = [(i, name, one["unit"], one["meaning"]) for i, (name, one) in measures]
                connection.executemany("INSERT INTO measures VALUES (?, ?, ?, ?)", rows)
                connection.execute("COMMIT")
            draft.replace(path)
            sync(path.parent)

    def close(self) -> None:
        """Closes the connection. The store is then a single file again, unless another connection reads it."""
        with self._lock:
            if self._write:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA busy_timeout = 100")
                    self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.close()

    # Reading.

    def about(self) -> dict[str, Any]:
        """Returns the manifest: versions, plan, columns and measures."""
        with self._explained():
            try:
                # In a damaged file, values may have types other than the declared types.
                about = self._execute("SELECT key, value FROM about WHERE typeof(value) = 'text'")
                return {key: json_of(text) for key, text in about}
            except UnreadableError as error:
                raise ValueError(error.problem) from None

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Returns the rows of a query."""
        with self._explained():
            return self._execute(query, values).fetchall()

    def expect(self, manifest: Mapping[str, Any]) -> None:
        """Raises `StoreError` unless the tables match this manifest."""
        found = self.rows("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view', 'trigger')")
        made = {name: text for _, name, text in found}
        with self._explained():
            wrong = [name for name, text in statements(manifest).items() if made.get(name) != text]
        has_triggers = any(kind == "trigger" for kind, _, _ in found)
        if wrong or has_triggers:
            what = f"the table {wrong[0]} differs from the one that celltrain created" if wrong else "it has triggers"
            raise StoreError.of_file(self.path, f"was changed ({what}): {MEND}")

    def totals(self) -> Totals:
        """Returns the stored numbers of runs. Reading them is faster than counting runs."""
        rows = self.rows("SELECT runs, failed, repeats, checks FROM totals LIMIT 2")
        if len(rows) != 1 or not all(isinstance(number, int) for number in rows[0]):
            raise StoreError.of_file(self.path, _DAMAGED.format("the table of totals is missing or incomplete"))
        return Totals(*rows[0])

    @contextmanager
    def snapshot(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Yields a function that runs queries on a consistent snapshot of the store."""
        with self._explained():
            self._connection.execute("BEGIN")
            try:
                # The snapshot begins with the first read access.
                self._execute("SELECT 1 FROM totals")
                yield self._connection.execute
            finally:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

    def known(self, run_keys: Sequence[str]) -> set[str]:
        """Returns those of the given run keys that are in the store."""
        keys = [bytes.fromhex(key) for key in run_keys]
        query = f"SELECT lower(hex(run_key)) FROM runs WHERE run_key IN ({', '.join('?' * len(keys))})"
        return {key for (key,) in self.rows(query, *keys)}

    def filled(self) -> dict[str, str]:
        """Returns the keys of runs with copied results, each with the key of the simulated run."""
        if not self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'filled'"):
            return {}
        query = "SELECT lower(hex(run_key)), lower(hex(from_key)) FROM filled JOIN runs USING (run)"
        return dict(self.rows(query))

    def settled(self, points: range, seeds: range) -> set[tuple[int, int]]:
        """For some points and seeds, returns the point and seed of runs that are done or repeat another point."""
        where = "WHERE point >= ? AND point < ? AND seed >= ? AND seed < ?"
        query = f"SELECT point, seed FROM runs {where} UNION ALL SELECT point, seed FROM repeats {where}"
        bounds = (points.start, points.stop, seeds.start, seeds.stop)
        return set(self.rows(query, *bounds, *bounds))

    def values(self, measure: int, first: int, last: int) -> dict[int, dict[int, float | None]]:
        """Returns the values of a measure by point and seed, for some points, including repeats of other points."""
        found: dict[int, dict[int, float | None]] = {}
        query = (
            f"SELECT point, seed, m{measure + 1} FROM runs WHERE point >= ? AND point < ? UNION ALL "
            f"SELECT e.point, e.seed, r.m{measure + 1} FROM repeats e JOIN runs r ON r.run_key = e.run_key "
            "WHERE e.point >= ? AND e.point < ?"
        )
        for point, seed, value in self.rows(query, first, last, first, last):
            found.setdefault(point, {})[seed] = value
        return found

    # Writing.

    def add(
        self,
        records: Sequence[RunRecord],
        repeats: Iterable[Repeat],
        measures: Sequence[str],
        settings: Callable[[int], Sequence[float | str]],
    ) -> None:
        """Adds runs, all of them or none.

        Args:
            records: The runs.
            repeats: Runs that repeat a run of another point.
            measures: Names of the measures.
            settings: Function that returns the values of the axes at a point.
        """
        ordered = sorted(records, key=BY_CASE)
        table = RunTable.of_records(ordered, measures)
        keys = [bytes.fromhex(record.run_key) for record in ordered]
        seconds = np.array([record.seconds for record in ordered], np.float64)
        key = np.frombuffer(b"".join(keys), np.uint32).reshape(-1, 3)
        checked = checksums(table, table.case, key, seconds)
        numbers = zip(table.fingerprint.view(np.int64).tolist(), table.printed.tolist(), strict=True)
        prints = [number if printed else None for number, printed in numbers]
        of_runs = (table.case.tolist(), table.seed.tolist(), keys, prints, seconds.tolist())
        errors = [record.error for record in ordered]
        cases = {record.point: record.configuration for record in ordered}
        with self._transaction() as connection:
            [first] = connection.execute("SELECT coalesce(max(run), 0) + 1 FROM runs").fetchone()
            rows = range(first, first + len(table))
            stored = [rows, *of_runs, errors, checked.tolist(), *table.values.T.tolist()]
            query = f"INSERT INTO runs VALUES (?{', ?' * (len(stored) - 1)})"
            connection.executemany(query, zip(*stored, strict=True))
            for point, configuration in cases.items():
                row = (point, configuration, *settings(point))
                text = f"INSERT OR IGNORE INTO cases VALUES (?, ?, ?{', ?' * (len(row) - 2)})"
                connection.execute(text, (*row[:2], check_texts(*row), *row[2:]))
            named = [(first + place, measure + 1, problem) for (place, measure), problem in table.gaps.items()]
            connection.executemany("INSERT INTO gaps VALUES (?, ?, ?)", named)
            series = [(first + place, one) for place, one in enumerate(ordered) if one.series is not None]
            connection.executemany("INSERT INTO series VALUES (?, ?)", [(run, one.series) for run, one in series])
            checks = [(run, check_series(one.run_key, one.series or b"")) for run, one in series]
            connection.executemany("INSERT INTO series_checks VALUES (?, ?)", checks)
            if filled := [(first + place, one.filled_from) for place, one in enumerate(ordered) if one.filled_from]:
                connection.execute(_FILLED)
                rows_filled = [(run, bytes.fromhex(key)) for run, key in filled]
                connection.executemany("INSERT INTO filled VALUES (?, ?)", rows_filled)
            again = [(point, seed, bytes.fromhex(key)) for point, seed, key in repeats]
            repeated = connection.executemany("INSERT OR IGNORE INTO repeats VALUES (?, ?, ?)", again).rowcount
            self._count(connection, len(table), len(table.errors), max(repeated, 0), int(checked.sum()))

    def wrong_series(self) -> list[str]:
        """Returns the keys of runs whose series differs from the one written, and the numbers of series without a run."""
        with self.snapshot() as query:
            lost = [
                f"number {run}"
                for table in ("series", "series_checks", "gaps")
                for (run,) in query(f"SELECT DISTINCT run FROM {table} WHERE run NOT IN (SELECT run FROM runs)")
            ]
            text = (
                "SELECT lower(hex(run_key)), parquet, series_checks.checked FROM runs LEFT JOIN series USING (run) "
                "LEFT JOIN series_checks USING (run) WHERE parquet IS NOT NULL OR series_checks.checked IS NOT NULL"
            )
            wrong = [key for key, content, check in query(text) if check != check_series(key, content)]
            return lost + wrong

    def drop_failed(self) -> None:
        """Deletes the failed runs."""
        with self._transaction() as connection:
            failed = connection.execute("SELECT checked FROM runs WHERE error IS NOT NULL").fetchall()
            connection.execute("DELETE FROM runs WHERE error IS NOT NULL")
            for table in ("gaps", "series", "series_checks"):
                connection.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT run FROM runs)")
            # Repeats of a deleted run are missing again.
            query = "DELETE FROM repeats WHERE run_key NOT IN (SELECT run_key FROM runs)"
            repeats = connection.execute(query).rowcount if failed else 0
            self._count(connection, -len(failed), -len(failed), -repeats, -sum(checked for (checked,) in failed))

    @staticmethod
    def _count(connection: sqlite3.Connection, runs: int, failed: int, repeats: int, checked: int) -> None:
        [total] = connection.execute("SELECT checks FROM totals").fetchone()
        query = "UPDATE totals SET runs = runs + ?, failed = failed + ?, repeats = repeats + ?, checks = ?"
        connection.execute(query, (runs, failed, repeats, wrapped(total + checked)))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self._execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _connect(self, options: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?{options}"
        connection = sqlite3.connect(uri, uri=True, timeout=SILENCE, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            _patient(connection, self.path, "SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _writable(self) -> sqlite3.Connection:
        connection = self._connect("mode=rw")
        # A long read by another connection prevents this journal mode; the connections then wait for each other.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _readable(self) -> sqlite3.Connection:
        try:
            return self._connect("mode=ro")
        except sqlite3.OperationalError as error:
            if _is_locked(error):
                raise
            # A killed process left a transaction that must be rolled back, which needs write permission.
            with contextlib.suppress(sqlite3.OperationalError):
                return self._connect("mode=rw")
            log = self.path.with_name(f"{self.path.name}-wal")
            if (log.exists() and log.stat().st_size) or is_locked(self.path.parent):
                raise
            # No process writes the file, and its folder is write-protected, so the file cannot change.
            return self._connect("immutable=1")

    def _execute(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return _patient(self._connection, self.path, query, values)

    def _explained(self) -> contextlib.ExitStack:
        """Locks the connection and converts errors to `StoreError`."""
        stack = contextlib.ExitStack()
        stack.enter_context(_explained(self.path, writing=self._write))
        stack.enter_context(self._lock)
        return stack


def _patient(connection: sqlite3.Connection, path: Path, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
    """Runs a query. While another program locks the file, warns after `SILENCE` and gives up after `PATIENCE`."""
    try:
        return connection.execute(query, values)
    except sqlite3.OperationalError as error:
        if not _is_locked(error):
            raise
    warn([f"{shown(path)} is locked by another program; waiting up to {PATIENCE:g} s until it is released"])
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * (PATIENCE - SILENCE))}")
    try:
        return connection.execute(query, values)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(1000 * SILENCE)}")


def _is_locked(error: sqlite3.OperationalError) -> bool:
    return "is locked" in str(error)


@contextmanager
def _explained(path: Path, *, writing: bool) -> Iterator[None]:
    """Converts errors of SQLite and of the operating system to `StoreError`."""
    try:
        yield
    except InputError:
        raise
    except sqlite3.IntegrityError as error:
        problem = f"already has one of these runs ({error}); to see what is wrong, run celltrain store verify"
        raise StoreError.of_file(path, problem) from None
    except sqlite3.OperationalError as error:
        if _is_locked(error):
            problem = f"is still locked by another program after {PATIENCE:g} s: close that program, then try again"
            raise StoreError.of_file(path, problem) from None
        is_damaged = str(error).startswith(("no such", "Could not decode"))
        if writing and not is_damaged:
            raise unwritable(path, error) from None
        problem = _DAMAGED.format(error) if is_damaged else f"cannot be read ({error})"
        raise StoreError.of_file(path, problem) from None
    except OSError as error:
        raise unwritable(path, error) from None
    except (sqlite3.Error, *DAMAGE) as error:
        raise StoreError.of_file(path, _DAMAGED.format(first_line(error))) from None


# Checksums detect changed values, because SQLite itself has no checksums.

#: Constants of the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
#: Represents a missing number.
_MISSING = np.uint64(0x7FF8000000000000)


def checksums(
    runs: RunTable, point: NDArray[np.int64], key: NDArray[np.uint32], seconds: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Returns the checksum of each run.

    Args:
        runs: The runs.
        point: The point of each run.
        key: The key of each run, 12 bytes as three numbers.
        seconds: The duration of each run.
    """
    texts = np.zeros(len(runs), np.uint64)
    for run, error in runs.errors.items():
        texts[run] = check_texts(error)
    for (run, measure), error in runs.gaps.items():
        texts[run] += np.uint64(check_texts(measure + 1, error))
    # SQLite stores -0.0 as 0.0.
    bits = (runs.values + 0.0).view(np.uint64)
    bits[np.isnan(runs.values)] = _MISSING
    numbers = [point.view(np.uint64), runs.seed, *key.T.astype(np.uint64)]
    numbers += [runs.fingerprint, seconds.view(np.uint64), texts, *bits.T]
    total = np.zeros(len(texts), np.uint64)
    for column in numbers:
        total = (total ^ column) + _STEP
        total = (total ^ (total >> np.uint64(30))) * _FIRST
        total = (total ^ (total >> np.uint64(27))) * _SECOND
        total ^= total >> np.uint64(31)
    return total.view(np.int64)


def check_texts(*texts: object) -> int:
    """Returns the checksum of texts and numbers.

    >>> check_texts("a", 1.5)
    1688414130
    """
    return zlib.crc32(repr(texts).encode(errors="surrogatepass"))


def check_series(run_key: str, content: bytes) -> int:
    """Returns the checksum of a run's series. Equal series of different runs have different checksums."""
    return check_texts(run_key, zlib.crc32(content if isinstance(content, bytes) else b""))


def wrapped(number: int) -> int:
    """Returns a number modulo 2^64, as a signed number."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text."""
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


def size(path: Path) -> int:
    """Returns the size of a database in bytes, including its write-ahead log."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(os.stat(file).st_size for file in files if file.exists())  # noqa: PTH116
