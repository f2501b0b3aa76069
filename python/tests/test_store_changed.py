"""Changes to any value of a store are detected, and commands wait only briefly for other programs that lock a store."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import time
from contextlib import contextmanager

import pytest
from conftest import fail_runs
from test_store import edited, messages
from test_sweep import PLAN, plan

import celltrain as ct
from celltrain.ensemble.store import Store, database
from celltrain.ensemble.sweeps import run_plan
from celltrain.running import Local

#: Points 0 and 1, and points 2 and 3, have the same scenario, and one seed of each point fails.
SMALL = 'series = { record = ["queue"], step = "2ms" }\n' + PLAN.replace("count = 4", "count = 2").replace(
    '"port.bottleneck.buffer", values = [100, 150, 200]', '"topology.n_source.link_delay", values = ["5us", "0.005ms"]'
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small store with series, failures and repeats."""
    folder = tmp_path_factory.mktemp("whole") / "s"
    with pytest.MonkeyPatch.context() as patch:
        fail_runs(patch)
        run_plan(plan(SMALL), folder, Local(1))
    return folder


def contents(folder):
    """Returns everything that a reader of a store can see."""
    store = Store.open(folder)
    table = store.table()
    series = []
    for key in dict.fromkeys(table["run_key"].to_pylist()):
        with contextlib.suppress(ct.StoreError):
            series.append((key, store.series(key).to_pylist()))
    return table.to_pylist(), store.wide().to_pylist(), series, store.totals()


def others(connection, table, column, value):
    """Yields other values for a column: from another row, of another type, missing, and slightly different."""
    yield from (
        row[0] for row in connection.execute(f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT ? LIMIT 1", (value,))
    )  # fmt: skip
    yield None
    if isinstance(value, bytes):
        yield bytes([*value[:-1], value[-1] ^ 1])
        yield value + b"\0"
    elif isinstance(value, str):
        yield value + "x"
    elif value is not None:
        yield value + 1
    else:
        yield 0


@pytest.mark.slow
def test_the_verify_command_detects_a_change_to_any_value_in_a_store(whole, tmp_path):
    assert messages(whole) == []
    before = contents(whole)
    chance = random.Random(6)
    with edited(whole) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [(table, row[1]) for table in tables for row in connection.execute(f"PRAGMA table_info({table})")]
    assert {table for table, _ in columns} >= {"series", "series_checks", "repeats", "gaps", "runs", "cases", "about"}
    tried = 0
    for table, column in columns:
        with edited(whole) as connection:
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            at = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")].index(column)
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            row = chance.choice(rows) if rows else None
            values = list(others(connection, table, column, row[at])) if row is not None else []
        for value in values:
            copy = shutil.copytree(whole, tmp_path / f"{table}.{column}.{tried}", dirs_exist_ok=True)
            where = " AND ".join(f"{name} IS ?" for name in names)
            try:
                with edited(copy) as connection:
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *row))
                    changed = connection.execute(f"SELECT * FROM {table}").fetchall() != rows
            except sqlite3.IntegrityError:
                continue
            if not changed:
                continue
            tried += 1
            try:
                found = messages(copy)
            except ct.StoreError as error:
                found = [str(error)]
            assert found or contents(copy) == before, (table, column, row[at], value)
    assert tried > 60


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE series SET parquet = (SELECT parquet FROM series ORDER BY run DESC) WHERE run = (SELECT min(run) FROM series)",
        "INSERT INTO series SELECT 99, parquet FROM series LIMIT 1",
        "UPDATE series SET run = 99 WHERE run = (SELECT min(run) FROM series)",
        "DELETE FROM series_checks WHERE run = (SELECT min(run) FROM series)",
        "INSERT INTO gaps VALUES (99, 1, 'x')",
        "UPDATE repeats SET seed = 9 WHERE seed = 3 AND point = 1",
        "UPDATE measures SET unit = 'Mb/s' WHERE measure = 1",
    ],
)
def test_the_verify_command_detects_a_value_copied_from_another_run(tmp_path, change, whole):
    shutil.copytree(whole, tmp_path / "s")
    with edited(tmp_path / "s") as connection:
        assert connection.execute(change).rowcount == 1
    assert len(messages(tmp_path / "s")) >= 1


def test_reading_a_stored_series_that_was_copied_from_another_run_is_refused(tmp_path, whole):
    shutil.copytree(whole, tmp_path / "s")
    with edited(tmp_path / "s") as connection:
        [key] = connection.execute(
            "SELECT lower(hex(run_key)) FROM runs JOIN series USING (run) ORDER BY run"
        ).fetchone()
        connection.execute(
            "UPDATE series SET parquet = (SELECT parquet FROM series ORDER BY run DESC) WHERE run = (SELECT min(run) FROM series)"
        )
    with pytest.raises(ct.StoreError, match="its checksum differs"):
        Store.open(tmp_path / "s").series(key)


@contextmanager
def locked(folder):
    """Locks a store, as another program might."""
    with contextlib.closing(sqlite3.connect(folder / "store.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield connection


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(database, "SILENCE", 0.05)
    monkeypatch.setattr(database, "PATIENCE", 0.3)


def test_a_locked_store_causes_a_notice_after_2_seconds_and_an_error_after_10_seconds():
    assert (database.SILENCE, database.PATIENCE) == (2, 10)


@pytest.mark.parametrize("command", ["store show", "store verify", "report", "sweep", "store export"])
def test_opening_a_locked_store_is_retried_and_a_store_is_never_read_without_its_lock(
    whole, tmp_path, celltrain, impatient, command
):
    shutil.copytree(whole, tmp_path / "s")
    (tmp_path / "plan.toml").write_text(SMALL)
    words = {
        "sweep": ("sweep", tmp_path / "plan.toml", "--store", tmp_path / "s", "--resume"),
        "store export": ("store", "export", tmp_path / "s", "--csv", "--out", tmp_path / "rows.csv"),
    }
    with locked(tmp_path / "s"):
        begun = time.monotonic()
        told = celltrain(*words.get(command, (*command.split(), tmp_path / "s")))
        took = time.monotonic() - begun
    assert (told.code, told.out) == (2, "")
    waits, ends = told.err.splitlines()
    assert waits.endswith("store.sqlite is locked by another program; waiting up to 0.3 s until it is released")
    assert ends.endswith(
        "store.sqlite: is still locked by another program after 0.3 s: close that program, then try again"
    )
    assert took < 8


def test_a_store_lock_that_is_released_soon_causes_only_a_notice(whole, tmp_path, monkeypatch, impatient):
    shutil.copytree(whole, tmp_path / "s")
    with locked(tmp_path / "s") as connection:
        monkeypatch.setattr(database, "warn", lambda messages: connection.execute("ROLLBACK"))
        assert len(Store.open(tmp_path / "s").runs()) == len(Store.open(whole).runs())
