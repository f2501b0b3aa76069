"""Imports stores of celltrain 0.2: copies the runs in their Parquet parts to a new store."""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from celltrain.ensemble.store import DATABASE, FORMAT, KIND, OLD_MANIFEST, Store, read_parquet
from celltrain.ensemble.store.database import DAMAGE, Database, Repeat, axes_of, first_line
from celltrain.ensemble.store.folder import SHA256, Kind, checksum
from celltrain.errors import StoreError
from celltrain.model.arguments import checked
from celltrain.model.files import UnreadableError, read_bytes
from celltrain.running import RunRecord

OLD = Kind("store of celltrain 0.2", OLD_MANIFEST, 1, StoreError, unseen=KIND.unseen, needs=KIND.needs)
#: Maximum size of a part or a series, in bytes.
MOST_BYTES = 4 << 30


@checked(StoreError)
def import_store(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> Store:
    """Copies the runs of a store of celltrain 0.2 into a new store, and returns it; raises `StoreError`.

    The new store has the version that made the old store, so only that version can resume it.

    Args:
        old: The folder of the old store. It is not changed.
        new: The folder of the new store, new or empty.
    """
    source, folder = Path(old), Path(new)
    manifest = OLD.read(source)
    if faults := list(OLD.changed(source, manifest)):
        raise StoreError(faults)
    made = {**manifest, "format": FORMAT}
    lock = KIND.begin(folder)
    try:
        seconds, repeats = _of_ledger(source / "ledger.sqlite")
        Database.create(folder / DATABASE, {**made, SHA256: checksum(made)})
        with contextlib.closing(Database(folder / DATABASE, write=True)) as database:
            settings: dict[int, list[float | str]] = {}
            known: set[str] = set()
            for path in sorted((source / "parts").glob("part-*.parquet")):
                records = [one for one in _records(source, path, made, seconds, settings) if one.run_key not in known]
                known.update(record.run_key for record in records)
                database.add(records, (), made["measures"], settings.__getitem__)
            database.add((), repeats, made["measures"], settings.__getitem__)
    except BaseException:
        (folder / DATABASE).unlink(missing_ok=True)
        raise
    finally:
        lock.close()
    return Store.open(folder)


def _records(
    source: Path,
    path: Path,
    manifest: dict[str, Any],
    seconds: dict[str, float],
    settings: dict[int, list[float | str]],
) -> Iterator[RunRecord]:
    """Yields the runs of a part, and adds the axis values of their points to `settings`."""
    with _readable(path):
        rows = read_parquet(read_bytes(path, what="Parquet", most=MOST_BYTES)).to_pylist()
        for key, group in itertools.groupby(rows, operator.itemgetter("run_key")):
            by_measure = {row["measure"]: row for row in group}
            first = next(iter(by_measure.values()))
            settings[first["point"]] = [
                float(first[axis["name"]]) + 0.0 if axis["kind"] == "float64" else str(first[axis["name"]])
                for axis in axes_of(manifest)
            ]
            own = [by_measure.get(name, {}) for name in manifest["measures"]]
            yield RunRecord(
                **{name: first[name] for name in ("point", "seed", "configuration", "fingerprint")},
                run_key=key,
                values=tuple(row.get("value") for row in own),
                problems=None if None in by_measure else tuple(row.get("error") for row in own),
                error=by_measure[None]["error"] or "no reason given" if None in by_measure else None,
                seconds=seconds.get(key, 0.0),
                series=_series(source / "series" / f"{key}.parquet"),
            )


def _series(path: Path) -> bytes | None:
    return read_bytes(path, what="Parquet", most=MOST_BYTES) if path.is_file() else None


def _of_ledger(path: Path) -> tuple[dict[str, float], list[Repeat]]:
    """Returns the durations of the runs by key, and the runs that repeat another point."""
    with (
        _readable(path),
        contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as ledger,
    ):
        seconds = {key.hex(): took or 0.0 for key, took in ledger.execute("SELECT run_key, seconds FROM runs")}
        repeats = [
            Repeat(point, seed, key.hex())
            for point, seed, key in ledger.execute("SELECT point, seed, run_key FROM repeats")
        ]
    return seconds, repeats


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (UnreadableError, sqlite3.Error, pa.ArrowException, OSError, AttributeError, *DAMAGE) as error:
        problem = f"is damaged, or was not written by celltrain 0.2 ({first_line(error)})"
        raise StoreError.of_file(
            path, f"{problem}: repair the store with celltrain 0.2 (its command is store repair)"
        ) from None
