"""Which runs are done, and in which part: an index of the parts, written by the coordinator alone.

Losing it loses nothing but time: `celltrain store repair` makes it again from the parts.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from celltrain.errors import Fault, StoreError
from celltrain.store import parts
from celltrain.text import shown

_TABLES = """
CREATE TABLE parts (number INTEGER PRIMARY KEY, runs INTEGER NOT NULL, bytes INTEGER NOT NULL, digest TEXT NOT NULL);
CREATE TABLE runs (
    point INTEGER NOT NULL, seed INTEGER NOT NULL, run_key BLOB NOT NULL UNIQUE, part INTEGER NOT NULL,
    failed INTEGER NOT NULL, seconds REAL, value REAL,
    PRIMARY KEY (point, seed)
) WITHOUT ROWID;
CREATE TABLE repeats (
    point INTEGER NOT NULL, seed INTEGER NOT NULL, run_key BLOB NOT NULL, PRIMARY KEY (point, seed)
) WITHOUT ROWID;
"""
#: Repeats of a run that is no longer there go with it: another point may be the first to have it.
_ORPHANS = "DELETE FROM repeats WHERE run_key NOT IN (SELECT run_key FROM runs)"
_COLUMNS = {
    "parts": ["number", "runs", "bytes", "digest"],
    "runs": ["point", "seed", "run_key", "part", "failed", "seconds", "value"],
    "repeats": ["point", "seed", "run_key"],
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A run that is done."""

    point: int
    seed: int
    run_key: str
    failed: bool
    seconds: float | None
    """How long it took; None where that is not known any more."""
    value: float | None
    """Of the measure that decides how many seeds there are, where there is one."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part as it was when it was written."""

    runs: int
    bytes: int
    digest: str
    """sha256 of the file."""


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """A run of a point whose scenario an earlier point has: it is that point's run."""

    point: int
    seed: int
    run_key: str


class Ledger:
    """A store's `ledger.sqlite`."""

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path
        # A thread that prepares chunks reads the ledger too, and may still do so when Ctrl-C closes it.
        self._lock = threading.RLock()
        if problem := _not_ours(path, write=write):
            raise self._fault(
                f"{problem}, and celltrain did not make it; make it again from the parts: celltrain store repair"
            )
        with self._telling():
            mode = "rwc" if write else "ro"
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}", uri=True, check_same_thread=False
            )
            # Damaged names and digests are read too: they are not what they should be, which is the fault to be told.
            self._connection.text_factory = lambda text: text.decode(errors="replace")
            if write:
                self._connection.execute("PRAGMA synchronous = FULL")
                if not self._connection.execute("SELECT name FROM sqlite_master").fetchall():
                    self._connection.executescript(f"BEGIN;{_TABLES}COMMIT;")
            for table, columns in _COLUMNS.items():
                found = [row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")]
                if found != columns:
                    self._connection.close()
                    has = f"the columns {', '.join(found)}" if found else "no columns"
                    problem = f"is not a ledger of this celltrain (its table {table} has {has})"
                    raise self._fault(f"{problem}; make it again from the parts: celltrain store repair")

    def close(self) -> None:
        """Gives the file free."""
        with self._lock:
            self._connection.close()

    def parts(self) -> dict[int, Part]:
        """The parts it knows, by number."""
        with self._telling():
            rows = self._connection.execute("SELECT number, runs, bytes, digest FROM parts").fetchall()
        return {number: Part(runs=runs, bytes=size, digest=digest) for number, runs, size, digest in rows}

    def held(self) -> dict[int, int]:
        """How many runs it has of each part, by number; also of parts it does not know."""
        with self._telling():
            return dict(self._connection.execute("SELECT part, count(*) FROM runs GROUP BY part").fetchall())

    def double(self) -> int:
        """The number of runs entered both as done and as another point's, which are counted twice."""
        with self._telling():
            query = "SELECT count(*) FROM repeats JOIN runs USING (point, seed)"
            [count] = self._connection.execute(query).fetchone()
        return int(count)

    def enter(self, number: int, part: Part, entries: Iterable[Entry], repeats: Iterable[Repeat] = ()) -> None:
        """A part and its runs, all or nothing; a run that is there already is a fault."""
        rows = [(e.point, e.seed, bytes.fromhex(e.run_key), number, e.failed, e.seconds, e.value) for e in entries]
        with self._telling(number), self._connection as connection:
            connection.execute("INSERT INTO parts VALUES (?, ?, ?, ?)", (number, part.runs, part.bytes, part.digest))
            connection.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._repeats(connection, repeats)

    def enter_repeats(self, repeats: Iterable[Repeat]) -> None:
        """Runs that need not be run, as an earlier point has them."""
        with self._telling(), self._connection as connection:
            self._repeats(connection, repeats)

    def _repeats(self, connection: sqlite3.Connection, repeats: Iterable[Repeat]) -> None:
        rows = [(r.point, r.seed, bytes.fromhex(r.run_key)) for r in repeats]
        connection.executemany("INSERT OR IGNORE INTO repeats VALUES (?, ?, ?)", rows)

    def knows(self, run_key: str) -> bool:
        """Whether a run is done."""
        with self._telling():
            query = "SELECT 1 FROM runs WHERE run_key = ?"
            return self._connection.execute(query, (bytes.fromhex(run_key),)).fetchone() is not None

    def settled(self, points: range, seeds: range) -> set[tuple[int, int]]:
        """Point and seed of every run that is done, or is another point's, of some points and seeds."""
        found: set[tuple[int, int]] = set()
        with self._telling():
            for table in ("runs", "repeats"):
                query = f"SELECT point, seed FROM {table} WHERE point = ? AND seed >= ? AND seed < ?"
                for point in points:
                    found.update(self._connection.execute(query, (point, seeds.start, seeds.stop)))
        return found

    def values(self, first: int, last: int) -> dict[int, dict[int, float | None]]:
        """Of the measure that decides how many seeds there are: by point and seed; those of another point's too."""
        found: dict[int, dict[int, float | None]] = {}
        queries = (
            "SELECT point, seed, value FROM runs WHERE point >= ? AND point < ?",
            "SELECT e.point, e.seed, r.value FROM repeats e JOIN runs r ON r.run_key = e.run_key "
            "WHERE e.point >= ? AND e.point < ?",
        )
        with self._telling():
            for query in queries:
                for point, seed, value in self._connection.execute(query, (first, last)):
                    found.setdefault(point, {})[seed] = value
        return found

    def counts(self) -> tuple[int, int, float, int]:
        """Runs done, of these failed, the seconds they took, and runs that are another point's."""
        with self._telling():
            row = self._connection.execute("SELECT count(*), sum(failed), total(seconds) FROM runs").fetchone()
            [repeats] = self._connection.execute("SELECT count(*) FROM repeats").fetchone()
        return row[0], row[1] or 0, row[2], repeats

    def snapshot(self) -> tuple[dict[int, Part], dict[int, set[tuple[str, int, int]]]]:
        """The parts it knows and, by part, key, point and seed of the runs it has: both of one instant."""
        entered: dict[int, set[tuple[str, int, int]]] = {}
        with self._telling():
            self._connection.execute("BEGIN")
            try:
                known = self.parts()
                query = "SELECT lower(hex(run_key)), point, seed, part FROM runs"
                for key, point, seed, part in self._connection.execute(query):
                    entered.setdefault(part, set()).add((key, point, seed))
            finally:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.rollback()
        return known, entered

    def parts_with_failures(self) -> list[int]:
        """The numbers of the parts that have runs which failed."""
        with self._telling():
            rows = self._connection.execute("SELECT DISTINCT part FROM runs WHERE failed ORDER BY part").fetchall()
        return [number for (number,) in rows]

    def replace(self, number: int, part: Part, keys: Iterable[str]) -> None:
        """A part that was written anew without some of its runs, all or nothing."""
        rows = [(bytes.fromhex(key), number) for key in keys]
        with self._telling(), self._connection as connection:
            connection.executemany("DELETE FROM runs WHERE run_key = ? AND part = ?", rows)
            connection.execute(
                "UPDATE parts SET runs = ?, bytes = ?, digest = ? WHERE number = ?",
                (part.runs, part.bytes, part.digest, number),
            )
            connection.execute(_ORPHANS)

    def forget(self, numbers: Iterable[int]) -> None:
        """Parts that are no more, with their runs."""
        rows = [(number,) for number in numbers]
        with self._telling(), self._connection as connection:
            connection.executemany("DELETE FROM runs WHERE part = ?", rows)
            connection.executemany("DELETE FROM parts WHERE number = ?", rows)
            connection.execute(_ORPHANS)

    @contextmanager
    def _telling(self, part: int | None = None) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except sqlite3.IntegrityError as error:
            which = "" if part is None else f": {parts.named(Path(), part).name} has runs that another part has"
            problem = f"and the parts disagree{which} ({error}); see which: celltrain store verify, and mend it"
            raise self._fault(f"{problem}: celltrain store repair") from None
        except sqlite3.OperationalError as error:
            problem = f"cannot be used ({error}); what was stored before is whole: mend that, then --resume"
            raise self._fault(problem) from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # A name in it that is no text is quoted in the error, and cannot be.
            raise self._fault(
                f"is not a ledger ({error}); make it again from the parts: celltrain store repair"
            ) from None

    def _fault(self, problem: str) -> StoreError:
        return StoreError([Fault.of_file(shown(self.path), problem)])


def _not_ours(path: Path, *, write: bool) -> str | None:
    """Why a file may not be opened: somebody else's would be written to, or a pipe waited for."""
    if path.is_symlink():
        return "is a link"
    if path.exists() and not path.is_file():
        return "is not a regular file"
    return "has another name as well" if write and path.exists() and path.stat().st_nlink > 1 else None
