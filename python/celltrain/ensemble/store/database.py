"""The SQLite file of a store: one connection writes it, in transactions; others may read it meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.ensemble.store import checks
from celltrain.ensemble.store.files import sync
from celltrain.ensemble.store.layout import statements
from celltrain.errors import Fault, InputError, StoreError
from celltrain.model.files import UnreadableError, json_of
from celltrain.running.work import RunRecord
from celltrain.text import shown

if TYPE_CHECKING:
    from typing_extensions import Self

#: Seconds to wait for another connection.
PATIENCE = 10.0
#: Advice for a file that cannot be read.
MEND = "take it from a backup, or run its plan into a new folder"
#: Exceptions of values that are not of the type they were written with.
DAMAGE = (ValueError, TypeError, OverflowError, KeyError, IndexError, MemoryError)


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """A run of a point whose scenario an earlier point has: it is that point's run."""

    point: int
    seed: int
    run_key: str


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Numbers of runs in a store."""

    runs: int
    """Runs done, failed ones included."""
    failed: int
    repeats: int
    """Runs that are another point's."""
    checks: int
    """Sum of the checksums of all runs, modulo 2^64, as a signed number."""


class Database:
    """A connection to the file of a store, to read or to write."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        """Opens a file that is there; raises `StoreError`."""
        self.path, self._write = path, write
        # A thread that prepares chunks reads too, and may still do so when Ctrl-C closes the connection.
        self._lock = threading.RLock()
        self._refuse_others()
        with self._explained():
            self._connection = self._writable() if write else self._readable()

    @classmethod
    def create(cls, path: Path, manifest: Mapping[str, Any]) -> None:
        """Creates the file of an empty store. It has its name once it is complete."""
        draft = path.with_name(f".{path.name}.tmp")
        with cls._of_file(path)._explained():
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
                measures = zip(manifest["measures"], units, strict=True)
                connection.executemany(
                    "INSERT INTO measures VALUES (?, ?, ?, ?)",
                    [(i + 1, name, of["unit"], of["meaning"]) for i, (name, of) in enumerate(measures)],
                )
                connection.execute("COMMIT")
            draft.replace(path)
            sync(path.parent)

    def close(self) -> None:
        """Closes the connection; the store is one file again unless another connection reads it."""
        with self._lock:
            if self._write:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA busy_timeout = 100")
                    self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # To read.

    def about(self) -> dict[str, Any]:
        """The manifest: versions, plan, columns and measures."""
        with self._explained():
            try:
                return {key: json_of(text) for key, text in self._connection.execute("SELECT key, value FROM about")}
            except UnreadableError as error:
                raise ValueError(error.problem) from None

    def expect(self, manifest: Mapping[str, Any]) -> None:
        """Raises `StoreError` if the tables are not those of a store with this manifest."""
        with self._explained():
            query = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view', 'trigger')"
            found = dict(self._connection.execute(query).fetchall())
            wrong = [name for name, text in statements(manifest).items() if found.get(name) != text]
            triggers = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        if wrong or triggers:
            what = f"its table {wrong[0]} is not as celltrain made it" if wrong else "it has triggers"
            raise StoreError([Fault.of_file(shown(self.path), f"was changed ({what}): {MEND}")])

    def totals(self) -> Totals:
        """Numbers of runs, without counting them."""
        with self._explained():
            rows = self._connection.execute("SELECT runs, failed, repeats, checks FROM totals").fetchmany(2)
            if len(rows) != 1 or not all(isinstance(number, int) for number in rows[0]):
                raise ValueError("it has no totals")
        runs, failed, repeats, total = rows[0]
        return Totals(runs=runs, failed=failed, repeats=repeats, checks=total)

    @contextmanager
    def snapshot(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Gives a function that runs queries, all of which see the store at one instant."""
        with self._explained():
            self._connection.execute("BEGIN")
            try:
                yield self._connection.execute
            finally:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

    def knows(self, run_key: str) -> bool:
        """Returns whether a run is done."""
        with self._explained():
            query = "SELECT 1 FROM runs WHERE run_key = ?"
            return self._connection.execute(query, (bytes.fromhex(run_key),)).fetchone() is not None

    def settled(self, points: range, seeds: range) -> set[tuple[int, int]]:
        """Returns point and seed of every run that is done, or is another point's, of some points and seeds."""
        found: set[tuple[int, int]] = set()
        with self._explained():
            for table in ("runs", "repeats"):
                query = f"SELECT point, seed FROM {table} WHERE point = ? AND seed >= ? AND seed < ?"
                for point in points:
                    found.update(self._connection.execute(query, (point, seeds.start, seeds.stop)))
        return found

    def values(self, measure: int, first: int, last: int) -> dict[int, dict[int, float | None]]:
        """Returns the values of a measure by point and seed, for some points; those of another point's runs too."""
        found: dict[int, dict[int, float | None]] = {}
        column = f"m{measure + 1}"
        queries = (
            f"SELECT point, seed, {column} FROM runs WHERE point >= ? AND point < ?",
            f"SELECT e.point, e.seed, r.{column} FROM repeats e JOIN runs r ON r.run_key = e.run_key "
            "WHERE e.point >= ? AND e.point < ?",
        )
        with self._explained():
            for query in queries:
                for point, seed, value in self._connection.execute(query, (first, last)):
                    found.setdefault(point, {})[seed] = value
        return found

    def series(self, run_key: bytes) -> bytes | None:
        """Returns what a run recorded, as a Parquet file; None if nothing is there."""
        with self._explained():
            query = "SELECT parquet FROM series JOIN runs USING (run) WHERE run_key = ?"
            row = self._connection.execute(query, (run_key,)).fetchone()
        return None if row is None else bytes(row[0])

    def integrity(self) -> list[str]:
        """Returns what SQLite finds wrong with the file."""
        with self._explained():
            found = [str(text) for (text,) in self._connection.execute("PRAGMA integrity_check(5)")]
        return [text for text in found if text != "ok"]

    # To write.

    def add(
        self,
        records: Sequence[RunRecord],
        repeats: Iterable[Repeat],
        measures: int,
        settings: Callable[[int], Sequence[float | str]],
    ) -> None:
        """Adds runs, all of them or none.

        Args:
            records: The runs.
            repeats: Runs that are another point's.
            measures: Number of measures.
            settings: Returns the values of the axes at a point.
        """
        values = np.array(
            [record.values if record.error is None else [None] * measures for record in records], np.float64
        ).reshape(len(records), measures)
        checked = run_checks(records, values)
        cases = {record.point: record.configuration for record in records}
        with self._transaction() as connection:
            [first] = connection.execute("SELECT coalesce(max(run), 0) + 1 FROM runs").fetchone()
            connection.executemany(
                f"INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?{', ?' * measures})",
                (
                    (
                        first + i,
                        r.point,
                        r.seed,
                        bytes.fromhex(r.run_key),
                        _signed(r.fingerprint),
                        r.seconds,
                        r.error,
                        *more,
                    )
                    for i, (r, *more) in enumerate(zip(records, checked.tolist(), *values.T.tolist(), strict=True))
                ),
            )
            for point, configuration in cases.items():
                row = (point, configuration, *settings(point))
                text = f"INSERT OR IGNORE INTO cases VALUES (?, ?, ?{', ?' * (len(row) - 2)})"
                connection.execute(text, (*row[:2], checks.of_texts(*row), *row[2:]))
            for i, record in enumerate(records):
                gaps = [(first + i, place + 1, error) for place, error in _gaps(record)]
                connection.executemany("INSERT INTO gaps VALUES (?, ?, ?)", gaps)
                if record.series is not None:
                    connection.execute("INSERT INTO series VALUES (?, ?)", (first + i, record.series))
            rows = [(repeat.point, repeat.seed, bytes.fromhex(repeat.run_key)) for repeat in repeats]
            repeated = connection.executemany("INSERT OR IGNORE INTO repeats VALUES (?, ?, ?)", rows).rowcount
            failed = sum(record.error is not None for record in records)
            self._count(connection, len(records), failed, max(repeated, 0), int(checked.sum()))

    def drop_failed(self, worth: Callable[[str], bool]) -> int:
        """Deletes the runs that failed and are worth another try; returns how many."""
        with self._transaction() as connection:
            failed = connection.execute("SELECT run, error, checked FROM runs WHERE error IS NOT NULL").fetchall()
            chosen = [(run, checked) for run, error, checked in failed if worth(error)]
            connection.executemany("DELETE FROM runs WHERE run = ?", [(run,) for run, _ in chosen])
            # Without its run a repeat is missing again.
            query = "DELETE FROM repeats WHERE run_key NOT IN (SELECT run_key FROM runs)"
            repeats = connection.execute(query).rowcount if chosen else 0
            self._count(connection, -len(chosen), -len(chosen), -repeats, -sum(checked for _, checked in chosen))
        return len(chosen)

    @staticmethod
    def _count(connection: sqlite3.Connection, runs: int, failed: int, repeats: int, checked: int) -> None:
        [total] = connection.execute("SELECT checks FROM totals").fetchone()
        query = "UPDATE totals SET runs = runs + ?, failed = failed + ?, repeats = repeats + ?, checks = ?"
        connection.execute(query, (runs, failed, repeats, wrapped(total + checked)))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    # Connections and their errors.

    @classmethod
    def _of_file(cls, path: Path) -> Database:
        made = cls.__new__(cls)
        made.path, made._write, made._lock = path, True, threading.RLock()
        return made

    def _connect(self, options: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?{options}"
        connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _writable(self) -> sqlite3.Connection:
        connection = self._connect("mode=rw")
        # A long read by another connection prevents this: then each waits for the other.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _readable(self) -> sqlite3.Connection:
        try:
            return self._connect("mode=ro")
        except sqlite3.OperationalError:
            # A process that was killed has left work to be undone, which takes the right to write.
            with contextlib.suppress(sqlite3.OperationalError):
                return self._connect("mode=rw")
            log = self.path.with_name(f"{self.path.name}-wal")
            if log.exists() and log.stat().st_size:
                raise
            # In a folder without write permission nothing changes.
            return self._connect("immutable=1")

    def _refuse_others(self) -> None:
        problem = None
        if self.path.is_symlink():
            problem = "is a link, and celltrain did not make it: take it away"
        elif self.path.exists() and not self.path.is_file():
            problem = "is not a regular file, and celltrain did not make it: take it away"
        if problem is not None:
            raise StoreError([Fault.of_file(shown(self.path), problem)])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except InputError:
            raise
        except sqlite3.IntegrityError as error:
            problem = f"already has one of these runs ({error}); see what is wrong with: celltrain store verify"
            raise self._fault(problem) from None
        except sqlite3.OperationalError as error:
            if str(error).startswith(("no such", "Could not decode")):
                raise self._fault(f"is damaged, or not the database of a store ({error}): {MEND}") from None
            if self._write:
                problem = f"cannot be written ({error}); what was stored before is whole: mend that, then --resume"
                raise self._fault(problem) from None
            raise self._fault(f"cannot be read ({error})") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            problem = f"cannot be written ({reason}); what was stored before is whole: mend that, then --resume"
            raise self._fault(problem) from None
        except (sqlite3.Error, *DAMAGE) as error:
            raise self._fault(f"is damaged, or not the database of a store ({first_line(error)}): {MEND}") from None

    def _fault(self, problem: str) -> StoreError:
        return StoreError([Fault.of_file(shown(self.path), problem)])


def run_checks(records: Sequence[RunRecord], values: Any) -> Any:
    """Returns the checksums of runs as they are written."""
    keys = np.frombuffer(b"".join(bytes.fromhex(record.run_key) for record in records), np.uint32)
    prints = [_signed(record.fingerprint) or 0 for record in records]
    texts = [
        text_check(record.error) + sum(text_check(place + 1, error) for place, error in _gaps(record))
        for record in records
    ]
    return checks.of_runs(
        [
            np.array([record.point for record in records], np.uint64),
            np.array([record.seed for record in records], np.uint64),
            *keys.reshape(len(records), 3).T.astype(np.uint64),
            np.array(prints, np.int64).view(np.uint64),
            np.array([record.seconds for record in records], np.float64).view(np.uint64),
            np.array(texts, np.uint64),
        ],
        values,
    )


def text_check(*texts: object) -> int:
    """Returns the checksum of texts, or 0 for a single None."""
    return 0 if texts == (None,) else checks.of_texts(*texts)


def wrapped(number: int) -> int:
    """Returns a number modulo 2^64, as a signed one."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _gaps(record: RunRecord) -> list[tuple[int, str]]:
    """The measures without a value, and why."""
    problems = () if record.error is not None else record.problems or ()
    return [(place, problem) for place, problem in enumerate(problems) if problem is not None]


def _signed(fingerprint: str | None) -> int | None:
    return None if fingerprint is None else wrapped(int(fingerprint, 16))


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text."""
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


def size(path: Path) -> int:
    """Bytes of a database, what is not yet merged included."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(os.stat(file).st_size for file in files if file.exists())  # noqa: PTH116
