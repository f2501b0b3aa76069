"""Stores: one SQLite file that is intact after any failure; damage is reported."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sweeps import remade
from test_sweep import PLAN, plan, rows

import celltrain as ct
from celltrain import _core
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.database import Database, Repeat
from celltrain.ensemble.sweeps import run_plan
from celltrain.running import Local
from celltrain.running.statistics import half_width

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has different limits and users")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store of 24 runs."""
    folder = tmp_path_factory.mktemp("made") / "s"
    run_plan(plan(), folder, Local(2))
    return folder


@pytest.fixture
def store(made, tmp_path):
    """A copy of the store that tests can damage."""
    shutil.copytree(made, tmp_path / "s")
    return tmp_path / "s"


@contextmanager
def edited(folder):
    """Opens a connection that changes a store without celltrain."""
    with contextlib.closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        yield connection


def messages(folder):
    return [fault.message for fault in Store.open(folder).verify()]


def test_the_tables_of_a_results_store_contain_descriptions_of_their_columns(made):
    table = Store.open(made).table()
    about = {f.name: {k.decode(): v.decode() for k, v in f.metadata.items()} for f in table.schema}
    assert list(about) == [
        *("run_key", "point", "threshold", "buffer", "seed", "measure", "value", "error"),
        *("fingerprint", "configuration", "version", "profile"),
    ]
    assert all(one["meaning"] for one in about.values())
    assert about["buffer"]["unit"] == "cells"
    told = json.loads(table.schema.metadata[b"celltrain"])
    assert told["version"] == _core.__version__
    measures = json.loads(table.schema.metadata[b"measures"])
    assert measures["ports.bottleneck.max_queue_cells"]["unit"] == "cells"
    manifest = Store.open(made).manifest
    assert [column["name"] for column in manifest["columns"]] == list(about)


def test_the_summary_of_a_results_store_matches_its_rows(made):
    store = Store.open(made)
    by_point: dict[tuple[int, str], list[float]] = {}
    for row in store.table().to_pylist():
        by_point.setdefault((row["point"], row["measure"]), []).append(row["value"])
    found = store.summary().to_pylist()
    assert len(found) == len(by_point) == 48
    for row in found:
        values = by_point[row["point"], row["measure"]]
        mean, sd = statistics.fmean(values), statistics.stdev(values)
        half = half_width(len(values), sd)
        assert row["n"] == 4
        assert [row["mean"], row["sd"], row["low"], row["high"]] == pytest.approx(
            [mean, sd, mean - half, mean + half], rel=1e-12, abs=1e-15
        )
    few = store.table(["fairness", "efficiency"])
    assert set(few["measure"].to_pylist()) == {"fairness", "efficiency"}
    with pytest.raises(ct.StoreError, match="was not measured"):
        store.summary(["speed"])


def test_an_empty_results_store_has_tables_without_rows(tmp_path):
    Store.create(tmp_path / "s", plan()).close()
    store = Store.open(tmp_path / "s")
    assert (len(store.table()), len(store.wide()), len(store.summary()), len(store.failures())) == (0, 0, 0, 0)
    assert store.verify() == []


def test_a_results_store_is_one_file_that_sql_can_query(made):
    assert sorted(path.name for path in made.iterdir()) == ["lock", "store.sqlite"]
    with edited(made) as connection:
        asked = connection.execute(
            "SELECT threshold, seed, value FROM rows WHERE measure = 'efficiency' ORDER BY 1, 2, 3"
        )
        found = asked.fetchall()
        prints = {row[0] for row in connection.execute("SELECT DISTINCT fingerprint FROM rows")}
    wide = Store.open(made).wide().to_pylist()
    assert found == sorted((row["threshold"], row["seed"], row["efficiency"]) for row in wide)
    assert prints == {row["fingerprint"] for row in wide}


def test_a_results_store_has_a_database_view_of_failed_runs(tmp_path, failing):
    run_plan(plan(), tmp_path / "s", Local(2))
    with edited(tmp_path / "s") as connection:
        found = connection.execute("SELECT point, seed, measure, error FROM failures").fetchall()
    assert found == [(point, 4, None, "panicked: made for a test") for point in range(6)]


@pytest.mark.slow
def test_rows_of_a_results_store_can_be_exported_to_files_and_data_frames(made, tmp_path, celltrain):
    store = Store.open(made)
    for kind, read in (("parquet", pa.parquet.read_table), ("csv", pa.csv.read_csv)):
        out = tmp_path / f"rows.{kind}"
        assert celltrain("store", "export", made, f"--{kind}", "--out", out, "--json").json["rows"] == 192
        assert read(out)["value"].to_pylist() == store.table()["value"].to_pylist()
    wide = tmp_path / "wide.parquet"
    assert "24 rows" in celltrain("store", "export", made, "--parquet", "--wide", "--out", wide).out
    assert pa.parquet.read_table(wide).equals(store.wide())
    assert store.to_arrow().equals(store.table())
    assert store.to_pandas(["efficiency"])["value"].tolist() == store.table(["efficiency"])["value"].to_pylist()
    assert store.to_polars(["efficiency"])["value"].to_list() == store.table(["efficiency"])["value"].to_pylist()
    for arguments, words in (
        ([made, "--out", wide], "--parquet or --csv"),
        ([made, "--csv", "--parquet", "--out", wide], "--parquet or --csv"),
        ([made, "--csv"], "--out is missing"),
        ([tmp_path, "--csv", "--out", wide], "has no store.sqlite"),
        ([made, "--csv", "--out", tmp_path / "no" / "file"], "cannot be written"),
    ):
        told = celltrain("store", "export", *arguments)
        assert (told.code, told.err.count("\n"), words in told.err) == (2, 1, True), told.err


def test_a_sweep_refuses_a_folder_that_is_not_a_store_and_a_store_that_already_exists(tmp_path, made):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "manifest.json").write_text("{}")
    already = "is already a store: continue it with --resume, or name another folder"
    for name, words in (
        ("full", "contains other files: name a folder that is new or empty"),
        ("file", "is a file, not a folder"),
        (made, already),
    ):
        with pytest.raises(ct.StoreError) as refusal:
            Store.create(tmp_path / name, plan())
        assert refusal.value.faults[0].problem == words
    for name, words in (
        ("full", "is not a store: it has no store.sqlite"),
        ("nowhere", "is not there"),
        ("old", "is a store of celltrain 0.2: export it with that version (celltrain store export)"),
    ):
        with pytest.raises(ct.StoreError) as refusal:
            Store.open(tmp_path / name)
        assert refusal.value.faults[0].problem == words
    # If the process that creates a store is killed, a new store can still be created.
    half = tmp_path / "half"
    half.mkdir()
    (half / "lock").write_bytes(b"")
    (half / ".store.sqlite.tmp").write_bytes(b"SQLite format 3")
    shutil.copytree(half, tmp_path / "again")
    run_plan(plan(), half, Local(2))
    assert messages(half) == []
    # After a full disk, resuming creates the store.
    run_plan(plan(), tmp_path / "again", Local(2), resume=True)
    assert messages(tmp_path / "again") == []
    assert sorted(path.name for path in half.iterdir()) == ["lock", "store.sqlite"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ct.StoreError, match="is not a store"):
        run_plan(plan(), tmp_path / "empty", Local(2), resume=True)


def test_a_store_of_another_version_or_plan_is_not_resumed_but_can_be_read(store, celltrain):
    with pytest.raises(ct.StoreError, match="another plan: it differs in seeds"):
        run_plan(plan(PLAN.replace("count = 4", "count = 5")), store, Local(2), resume=True)
    remade(store, version="0.0.7")
    with pytest.raises(ct.StoreError) as refusal:
        run_plan(plan(), store, Local(2), resume=True)
    [fault] = refusal.value.faults
    assert fault.problem.startswith("was made by celltrain 0.0.7, but this is ")
    assert "install celltrain 0.0.7 to continue, or name a new folder" in fault.problem
    assert len(Store.open(store).wide()) == 24
    told = celltrain("store", "verify", store)
    assert (told.code, "only the version that made it can verify it" in told.err) == (2, True)
    remade(store, format=99)
    with pytest.raises(ct.StoreError, match="has format 99"):
        Store.open(store)


CHANGES = {
    "a value of the manifest": "UPDATE about SET value = '3' WHERE key = 'runs'",
    "no digest": "DELETE FROM about WHERE key = 'digest'",
    "no JSON": "UPDATE about SET value = '{' WHERE key = 'plan'",
    "another type": "UPDATE about SET value = '[]' WHERE key = 'plan'",
    "a deep nest": f"UPDATE about SET value = '{'[' * 1000}' WHERE key = 'columns'",
    "bytes that are not text": "UPDATE about SET value = CAST(x'fffe00' AS TEXT) WHERE key = 'plan'",
    "a value": "UPDATE runs SET m1 = m1 + 1e-9 WHERE run = 7",
    "a value replaced by text": "UPDATE runs SET m1 = 'much' WHERE run = 7",
    "a value replaced by null": "UPDATE runs SET m1 = NULL WHERE run = 7",
    "a seed": "UPDATE runs SET seed = 99 WHERE run = 7",
    "a point": "UPDATE runs SET point = 0, seed = 50 WHERE run = 24",
    "a fingerprint": "UPDATE runs SET fingerprint = fingerprint + 1 WHERE run = 7",
    "a key": "UPDATE runs SET run_key = x'000102030405060708090a0b' WHERE run = 7",
    "a short key": "UPDATE runs SET run_key = x'0001' WHERE run = 7",
    "an error": "UPDATE runs SET error = 'other' WHERE run = 7",
    "a run less": "DELETE FROM runs WHERE run = 7",
    "no runs": "DELETE FROM runs",
    "no case": "DELETE FROM cases WHERE point = 2",
    "a case": "UPDATE cases SET a1 = 55 WHERE point = 2",
    "a configuration": "UPDATE cases SET configuration = '{}' WHERE point = 2",
    "the totals": "UPDATE totals SET runs = 23",
    "no totals": "DELETE FROM totals",
    "no table": "DROP TABLE runs",
    "another table": "ALTER TABLE runs RENAME COLUMN seconds TO minutes",
    "another view": "DROP VIEW rows",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
}


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("change", CHANGES)
def test_commands_refuse_a_store_whose_result_rows_were_changed_by_another_program(store, change, celltrain):
    with edited(store) as connection:
        connection.execute(CHANGES[change])
    for command in (["store", "show"], ["report"], ["store", "export", "--csv", "--out", store / "out.csv"]):
        told = celltrain(*command, store)
        assert (told.code, told.out, "Traceback" in told.err) == (2, "", False), command
        assert told.err.startswith(f"{store}"), told.err
    told = celltrain("store", "verify", store)
    assert (told.code, told.out) in ((1, ""), (2, ""))
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    "content", [b"", b"this is not a database, but it is long enough to be inspected" * 200, b"SQLite format 3\0"]
)
@pytest.mark.parametrize("command", ["show", "verify", "resume"])
def test_the_error_for_a_store_file_in_another_format_states_that_it_is_no_database(
    store, tmp_path, celltrain, content, command
):
    (store / "store.sqlite").write_bytes(content)
    (tmp_path / "plan.toml").write_text(PLAN)
    resume = ("sweep", tmp_path / "plan.toml", "--store", store, "--resume")
    told = celltrain(*(resume if command == "resume" else ("store", command, store)))
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1), told.err
    assert f"{store / 'store.sqlite'}: is " in told.err
    assert "restore it from a backup, or run its plan into a new folder" in told.err
    assert (store / "store.sqlite").read_bytes() == content


@pytest.mark.slow
def test_a_store_file_with_flipped_bits_never_returns_a_wrong_row(made, tmp_path):
    chance = random.Random(20)
    before = Store.open(made).table()
    found = 0
    whole = (made / "store.sqlite").read_bytes()
    for attempt in range(150):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        content = bytearray(whole)
        for _ in range(chance.choice((1, 1, 4))):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (folder / "store.sqlite").write_bytes(content)
        try:
            assert Store.open(folder).table().equals(before)
        except ct.StoreError:
            found += 1
    assert found > 50


def test_a_repeated_run_in_a_store_refers_to_a_run_of_equal_scenario_and_seed(store):
    key = Store.open(store).wide()["run_key"][0].as_py()
    with Store.resume(store, plan()) as writing:
        writing.write([], [Repeat(9, 3, key)])
        assert writing.database.settled(range(9, 10), range(3, 4)) == {(9, 3)}
    assert Store.open(store).totals().repeats == 1
    # The plan has no point 9.
    [message] = messages(store)
    assert "refers, for point 9 and seed 3, to a run of another scenario or seed" in message


def test_a_sweep_can_be_resumed_with_a_plan_that_differs_only_in_its_name_and_limits(store):
    other = plan('name = "other"\nlimits = { time = "60s" }\n' + PLAN)
    assert run_plan(other, store, Local(2), resume=True).done == 24


def test_a_store_has_the_same_tables_whether_rows_are_written_one_by_one_or_together(made, tmp_path):
    with Store.create(tmp_path / "one", plan()) as one, Store.resume(made, plan()) as all_at_once:
        with all_at_once.database.snapshot() as query:
            assert query("SELECT count(*) FROM runs").fetchone() == (24,)
        del one
    shutil.rmtree(tmp_path / "one")

    class Few(Local):
        chunk_runs = 1

    run_plan(plan(), tmp_path / "one", Few(1))
    one, several = Store.open(tmp_path / "one"), Store.open(made)
    assert one.table().equals(several.table())
    assert one.wide().equals(several.wide())
    assert one.summary().equals(several.summary())
    assert one.table(["fairness"]).equals(several.table(["fairness"]))
    assert not one.table(["fairness"]).equals(several.table(["efficiency"]))
    table = one.table()
    for name in ("run_key", "measure", "configuration"):
        texts = table[name].chunk(0).dictionary.to_pylist()
        assert texts == sorted(set(table[name].to_pylist()))
    by = [(row["point"], row["seed"], one.plan.measures.index(row["measure"])) for row in table.to_pylist()]
    assert by == sorted(by)


def test_two_sweeps_cannot_write_to_one_store(store):
    with (
        Store.resume(store, plan()),
        pytest.raises(ct.StoreError, match=rf"is being written by another sweep \(process {os.getpid()}\)"),
    ):
        Store.resume(store, plan())
    Store.resume(store, plan()).close()


def test_the_error_for_a_store_that_cannot_be_resumed_is_a_single_line(store, tmp_path, celltrain):
    file, before = tmp_path / "plan.toml", rows(store)

    def words(text=PLAN):
        file.write_text(text)
        told = celltrain("sweep", file, "--store", store, "--resume")
        assert (told.code, told.out, told.err.count("\n"), "Traceback" in told.err) == (2, "", 1, False), told.err
        return told.err

    assert "another plan: it differs in name, seeds; name a new folder" in words(PLAN.replace("count = 4", "count = 5"))
    with Store.resume(store, plan()):
        assert "is being written by another sweep" in words()
    remade(store, profile="debug")
    assert "was made by a debug build" in words()
    remade(store, version="0.0.7", profile=_core.build()["profile"])
    assert "install celltrain 0.0.7 to continue" in words()
    remade(store, version=_core.__version__)
    assert rows(store) == before
    assert run_plan(plan(), store, Local(2), resume=True).done == 24


def test_a_store_can_be_read_while_another_process_writes_to_it(store):
    with Store.resume(store, plan()):
        assert len(Store.open(store).table()) == 192


def test_during_a_sweep_a_reader_of_the_store_sees_only_complete_writes(tmp_path):
    text = PLAN.replace("count = 4", "count = 60").replace('"5ms"', '"2ms"')
    sweeping = threading.Thread(target=run_plan, args=(plan(text), tmp_path / "s", Local(1)))
    sweeping.start()
    seen = set()
    while sweeping.is_alive():
        with contextlib.suppress(FileNotFoundError):
            if (tmp_path / "s" / "store.sqlite").exists():
                seen.add(len(Store.open(tmp_path / "s").wide()))
    sweeping.join()
    assert len(Store.open(tmp_path / "s").wide()) == 360
    assert seen <= set(range(361))
    assert messages(tmp_path / "s") == []


@pytest.mark.nightly
def test_a_slow_reader_of_a_store_does_not_stop_a_sweep(store, failing):
    with contextlib.closing(Database(store / "store.sqlite")) as reader, reader.snapshot() as query:
        assert query("SELECT count(*) FROM runs").fetchone() == (24,)
        with Store.resume(store, plan()) as writing:
            writing.close()
    assert messages(store) == []


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link"])
@pytest.mark.parametrize("command", ["show", "verify", "resume"])
def test_a_pipe_or_device_in_place_of_a_store_does_not_block_a_command(store, tmp_path, celltrain, kind, command):
    file = store / "store.sqlite"
    file.rename(tmp_path / "mine")
    before = (tmp_path / "mine").read_bytes()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero" if kind == "device" else tmp_path / "mine")
    (tmp_path / "plan.toml").write_text(PLAN)
    resume = ("sweep", tmp_path / "plan.toml", "--store", store, "--resume")
    told = celltrain(*(resume if command == "resume" else ("store", command, store)))
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert "celltrain did not create it: delete it" in told.err
    assert (tmp_path / "mine").read_bytes() == before


IN_A_PROCESS = """
import resource, sys
sys.path.insert(0, {tests!r})
import celltrain.ensemble.sweeps as coordinator
from celltrain.cli import main
coordinator.WRITE_RUNS = 200
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
sys.argv = ["celltrain", "sweep", {plan!r}, "--store", {store!r}, *{more!r}]
main()
"""


@pytest.mark.slow
@pytest.mark.nightly
@POSIX
def test_a_sweep_reports_that_the_disk_is_full_and_loses_no_stored_run(tmp_path):
    text = PLAN.replace("count = 4", "count = 200").replace('"5ms"', '"2ms"')
    (tmp_path / "plan.toml").write_text(text)
    Store.create(tmp_path / "s", plan(text)).close()
    empty = (tmp_path / "s" / "store.sqlite").stat().st_size
    ends, there = [], 0
    # Limits the size of files that this process can write.
    for limit in (empty + 8_000, empty + 150_000, None):
        program = IN_A_PROCESS.format(
            tests=str(Path(__file__).parent),
            limit=limit or -1,
            plan=str(tmp_path / "plan.toml"),
            store=str(tmp_path / "s"),
            more=["--resume"],
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        ends.append((limit, done.returncode, done.stderr))
        assert messages(tmp_path / "s") == [], ends
        assert there <= (there := Store.open(tmp_path / "s").totals().runs), ends
        if limit:
            assert done.returncode == 2, ends
            assert "cannot be written" in done.stderr, ends
            assert "earlier results are intact: fix the problem, then use --resume" in done.stderr, ends
            assert done.stderr.count("\n") == 1, ends
    assert ends[-1][1] == 0, ends
    run_plan(plan(text), tmp_path / "one", Local(2))
    assert rows(tmp_path / "s") == rows(tmp_path / "one")


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("limit", [0, *(pytest.param(limit, marks=pytest.mark.nightly) for limit in (5_000, 20_000))])
def test_a_sweep_that_starts_on_a_full_disk_reports_the_full_disk_and_can_be_resumed(tmp_path, limit):
    (tmp_path / "plan.toml").write_text(PLAN)
    ends = []
    for size, more in ((limit, []), (-1, ["--resume"])):
        program = IN_A_PROCESS.format(
            tests=str(Path(__file__).parent),
            limit=size,
            plan=str(tmp_path / "plan.toml"),
            store=str(tmp_path / "s"),
            more=more,
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        ends.append((done.returncode, done.stderr))
    assert [code for code, _ in ends] == [2, 0], ends
    assert "then use --resume" in ends[0][1], ends
    assert messages(tmp_path / "s") == []
    assert len(Store.open(tmp_path / "s").wide()) == 24


@contextmanager
def somebody():
    """An administrator can write to any file, so the test uses another user."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@POSIX
@pytest.mark.parametrize("killed", [False, True])
def test_a_write_protected_store_is_reported_and_can_be_read(store, tmp_path, celltrain, killed):
    (tmp_path / "plan.toml").write_text(PLAN)
    if killed:
        # A killed process leaves its log, which a process with write permission merges.
        with edited(store) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE mine (a)")
            for name in ("store.sqlite", "store.sqlite-wal", "store.sqlite-shm"):
                shutil.copy(store / name, tmp_path / name)
        for name in ("store.sqlite", "store.sqlite-wal", "store.sqlite-shm"):
            shutil.copy(tmp_path / name, store / name)
    for path in [store, *store.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and "pytest" in str(path):
            path.chmod(0o755)
    # The other user may be unable to read this interpreter, so import everything needed first.
    assert celltrain("sweep", tmp_path / "plan.toml", "--store", tmp_path / "warm").code == 0
    with somebody():
        told = celltrain("sweep", tmp_path / "plan.toml", "--store", store, "--resume")
        new = celltrain("sweep", tmp_path / "plan.toml", "--store", store / "inside")
        assert len(Store.open(store).wide()) == 24
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1), told.err
    assert "cannot be written (permission denied)" in told.err
    assert (new.code, "cannot be made (permission denied)" in new.err) == (2, True)
    for path in [store, *store.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert run_plan(plan(), store, Local(2), resume=True).done == 24
    assert messages(store) == []


@pytest.mark.nightly
@pytest.mark.slow
def test_resuming_a_sweep_that_is_already_finished_takes_less_than_a_second(tmp_path):
    text = PLAN.replace("count = 4", "count = 1000").replace('"5ms"', '"1us"')
    run_plan(plan(text), tmp_path / "s", Local(2))
    begun = time.process_time()
    assert run_plan(plan(text), tmp_path / "s", Local(2), resume=True).done == 6000
    # One second is much less than the runs took, so no run was done or read again.
    assert time.process_time() - begun < 1
    assert (tmp_path / "s" / "store.sqlite").stat().st_size / 6000 < 300


def test_a_damaged_series_in_a_store_is_reported(tmp_path):
    text = 'series = { record = ["queue"], step = "1ms" }\n' + PLAN
    run_plan(plan(text), tmp_path / "s", Local(2))
    store = Store.open(tmp_path / "s")
    key = store.wide()["run_key"][0].as_py()
    assert len(store.series(key)) > 0
    for other in ("", "x", "00" * 12, "ab" * 5000):
        with pytest.raises(ct.StoreError, match="has no series of"):
            store.series(other)
    with edited(tmp_path / "s") as connection:
        connection.execute("UPDATE series SET parquet = substr(parquet, 1, 200)")
    with pytest.raises(ct.StoreError, match="is damaged"):
        store.series(key)
    with edited(tmp_path / "s") as connection:
        connection.execute("DELETE FROM series WHERE run < 3")
    lacks, others = messages(tmp_path / "s")
    assert "store.sqlite: lacks the series of 2 runs: restore it from a backup, or run its plan" in lacks
    assert "store.sqlite: has 24 series with a wrong checksum" in others
