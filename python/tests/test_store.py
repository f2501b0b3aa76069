"""Stores: whole whatever happens, and when not, what is wrong is said and can be mended."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from test_sweep import PLAN, plan, rows

import celltrain as ct
from celltrain import _core
from celltrain.coordination import run_plan
from celltrain.running import Local
from celltrain.statistics import half_width
from celltrain.store import Store, check, parts
from celltrain.store.files import put
from celltrain.store.manifest import checksum
from celltrain.store.repair import repair

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="limits and users are different there")


class Few(Local):
    """Hands over so that there are several parts."""

    chunk_runs = 6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store of 24 runs in four parts."""
    folder = tmp_path_factory.mktemp("made") / "s"
    with Store.create(folder, plan()) as store:
        from celltrain.coordination.coordinator import Coordinator

        class Parts(Coordinator):
            def _take(self, got):
                super()._take(got)
                if len(self._held) == 6:
                    self._write()

        Parts(plan(), store, Few(2)).run()
    assert len(Store.open(folder).parts()) == 4
    return folder


@pytest.fixture
def store(made, tmp_path):
    """A copy of it, to harm."""
    shutil.copytree(made, tmp_path / "s")
    return tmp_path / "s"


def messages(folder):
    return [fault.message for fault in Store.open(folder).verify()]


def mended(folder, made):
    """Repairs, resumes, and compares with what was."""
    done = repair(folder)
    assert messages(folder) == []
    end = run_plan(plan(), folder, Local(2), resume=True)
    assert end.done == 24
    assert messages(folder) == []
    assert rows(folder) == rows(made)
    return done


def test_a_part_says_what_its_columns_are(made):
    table = Store.open(made).table()
    about = {f.name: {k.decode(): v.decode() for k, v in f.metadata.items()} for f in table.schema}
    assert list(about) == [
        *("run_key", "point", "threshold", "buffer", "seed", "measure", "value", "error"),
        *("fingerprint", "configuration", "version", "profile"),
    ]
    assert all(one["meaning"] for one in about.values())
    assert about["buffer"]["unit"] == "cells"
    told = json.loads(table.schema.metadata[b"celltrain"])
    assert told["version"] == _core.build()["version"]
    measures = json.loads(table.schema.metadata[b"measures"])
    assert measures["ports.bottleneck.max_queue_cells"]["unit"] == "cells"
    manifest = json.loads((made / "manifest.json").read_text())
    assert [column["name"] for column in manifest["columns"]] == list(about)


def test_the_summary_is_that_of_the_rows(made):
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


def test_an_empty_store_has_tables_without_rows(tmp_path):
    Store.create(tmp_path / "s", plan()).close()
    store = Store.open(tmp_path / "s")
    assert (len(store.table()), len(store.wide()), len(store.summary()), len(store.failures())) == (0, 0, 0, 0)
    assert store.verify() == []


def test_what_is_no_store_and_what_is_one_already_is_refused(tmp_path, made):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    (tmp_path / "file").write_text("")
    for name, words in (
        ("full", "holds other files: name a folder that is new or empty"),
        ("file", "is a file, not a folder"),
        (made, "is a store already: go on with it (--resume), or name another folder"),
    ):
        with pytest.raises(ct.StoreError) as refusal:
            Store.create(tmp_path / name, plan())
        assert refusal.value.faults[0].problem == words
    for name, words in (("full", "is not a store: it has no manifest.json"), ("nowhere", "is not there")):
        with pytest.raises(ct.StoreError) as refusal:
            Store.open(tmp_path / name)
        assert refusal.value.faults[0].problem == words
    # What a creation that was killed has left is no obstacle.
    half = tmp_path / "half"
    (half / "parts").mkdir(parents=True)
    (half / "ledger.sqlite").write_bytes(b"")
    (half / ".manifest.json.tmp").write_bytes(b"{")
    shutil.copytree(half, tmp_path / "again")
    run_plan(plan(), half, Local(2))
    assert messages(half) == []
    # Who goes on with it after a full disk begins it.
    run_plan(plan(), tmp_path / "again", Local(2), resume=True)
    assert messages(tmp_path / "again") == []
    (tmp_path / "empty").mkdir()
    with pytest.raises(ct.StoreError, match="is not a store"):
        run_plan(plan(), tmp_path / "empty", Local(2), resume=True)


def test_a_store_of_another_version_or_plan_is_not_gone_on_with_but_read(store):
    manifest = json.loads((store / "manifest.json").read_text())
    other = {**manifest, "version": "0.0.7"}
    (store / "manifest.json").write_text(json.dumps(other))
    with pytest.raises(ct.StoreError, match="was changed"):
        Store.open(store)
    (store / "manifest.json").write_text(json.dumps({**other, "sha256": checksum(other)}))
    with pytest.raises(ct.StoreError) as refusal:
        run_plan(plan(), store, Local(2), resume=True)
    [fault] = refusal.value.faults
    assert fault.problem.startswith("was made by celltrain 0.0.7, and this is ")
    assert "install celltrain 0.0.7 to go on, or name a new folder" in fault.problem
    assert len(Store.open(store).wide()) == 24
    # Rows of one version in a store of another are found.
    (store / "manifest.json").write_text(json.dumps(manifest))
    [first, *_] = Store.open(store).parts()
    table = parts.read(first)
    other = pa.array(["0.0.7"] * len(table)).dictionary_encode()
    put(first, parts.encoded(table.set_column(table.column_names.index("version"), table.field("version"), other)))
    assert any("rows of version 0.0.7" in message for message in messages(store))
    repair(store)
    run_plan(plan(), store, Local(2), resume=True)
    (store / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ct.StoreError, match="another plan: it differs in seeds"):
        run_plan(plan(PLAN.replace("count = 4", "count = 5")), store, Local(2), resume=True)
    (store / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(ct.StoreError, match="has format 99"):
        Store.open(store)
    (store / "manifest.json").write_text("{")
    with pytest.raises(ct.StoreError, match="is not JSON"):
        Store.open(store)
    for harmed, words in (
        ({"format": 1}, "has no version, profile, name, digest, plan, measures as celltrain writes them"),
        ({**manifest, "plan": [], "measures": None}, "has no plan, measures as celltrain writes them"),
        ({key: value for key, value in manifest.items() if key != "digest"}, "has no digest as celltrain writes it"),
    ):
        (store / "manifest.json").write_text(json.dumps(harmed))
        with pytest.raises(ct.StoreError, match=words):
            Store.open(store)
        with pytest.raises(ct.StoreError, match=words):
            run_plan(plan(), store, Local(2), resume=True)


def test_a_name_or_a_limit_is_no_other_plan(store):
    other = plan('name = "other"\nlimits = { time = "60s" }\n' + PLAN)
    assert run_plan(other, store, Local(2), resume=True).done == 24


def test_a_truncated_part_is_named_set_aside_and_run_again(store, made):
    part = Store.open(store).parts()[1]
    part.write_bytes(part.read_bytes()[:-1000])
    with pytest.raises(ct.StoreError, match=r"part-000002\.parquet.*bytes.*cut short or changed.*store repair"):
        run_plan(plan(), store, Local(2), resume=True)
    assert any("part-000002.parquet: is cut short or damaged" in message for message in messages(store))
    with pytest.raises(ct.StoreError, match="is cut short or damaged"):
        Store.open(store).table()
    done = mended(store, made)
    assert any(line.startswith("set aside part-000002.parquet") for line in done)
    assert (store / "set-aside" / "part-000002.parquet").exists()


def test_a_part_that_was_changed_without_a_change_of_size_is_found(store, made):
    part = Store.open(store).parts()[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 0xFF
    part.write_bytes(bytes(content))
    assert messages(store) != []
    assert any(line.startswith("set aside part-000001.parquet") for line in mended(store, made))


def test_values_that_were_changed_are_not_taken_for_what_was_run(store, made):
    import pyarrow as pa
    import pyarrow.compute as pc

    part = store / "parts" / "part-000001.parquet"
    for attempt in range(2):
        table = parts.read(part)
        place = table.column_names.index("value")
        changed = pa.chunked_array([pc.multiply(table["value"], 2.0).combine_chunks()])
        part.write_bytes(parts.encoded(table.set_column(place, table.schema.field("value"), changed)))
        assert any("part-000001.parquet: is not what was written (its sha256 differs)" in m for m in messages(store))
        assert any(line.startswith("set aside part-000001.parquet") for line in repair(store))
        assert messages(store) == []
        assert run_plan(plan(), store, Local(2), resume=True).done == 24
        assert rows(store) == rows(made)
        if attempt == 0:
            # The runs came back under another number.
            assert not part.exists()
            (store / "parts" / "part-000005.parquet").rename(part)
            repair(store)
    assert sorted(one.name for one in (store / "set-aside").iterdir()) == [
        "part-000001-2.parquet",
        "part-000001.parquet",
    ]


@pytest.mark.slow
def test_whatever_bits_are_flipped_is_a_fault_and_is_mended(made, tmp_path):
    chance = random.Random(20)
    before = Store.open(made).table()
    told = set()
    for attempt in range(40):
        folder = tmp_path / str(attempt)
        shutil.copytree(made, folder)
        part = chance.choice(Store.open(folder).parts())
        content = bytearray(part.read_bytes())
        # Half of them in what no page's checksum covers.
        low = 0 if attempt % 2 else len(content) - len(content) // 4
        for _ in range(chance.choice((1, 1, 4))):
            content[chance.randrange(low, len(content))] ^= 1 << chance.randrange(8)
        part.write_bytes(content)
        [fault] = Store.open(folder).verify()
        assert part.name in str(fault.file)
        told.add(fault.problem[:20])
        for shape in (Store.table, Store.wide, Store.summary, Store.failures):
            try:
                shape(Store.open(folder))
            except ct.StoreError as error:
                assert part.name in str(error)
        done = repair(folder)
        assert done[0].startswith(f"set aside {part.name}")
        assert messages(folder) == []
        if attempt % 10 == 0:
            run_plan(plan(), folder, Local(2), resume=True)
            assert messages(folder) == []
            assert Store.open(folder).table().equals(before)
        shutil.rmtree(folder)
    assert len(told) > 1


@pytest.mark.slow
def test_damage_to_a_part_that_no_ledger_knows_comes_to_a_fault_too(made, tmp_path):
    chance = random.Random(21)
    shutil.copytree(made, tmp_path / "s")
    (tmp_path / "s" / "ledger.sqlite").unlink()
    part = Store.open(tmp_path / "s").parts()[1]
    whole = part.read_bytes()
    before = rows(made)
    found = 0
    for _ in range(60):
        content = bytearray(whole)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        part.write_bytes(content)
        faults = messages(tmp_path / "s")
        found += any(part.name in message for message in faults)
        if not any(part.name in message for message in faults):
            assert rows(tmp_path / "s") == before
    assert found > 30


def test_a_part_that_is_gone_is_named_and_its_runs_are_run_again(store, made):
    Store.open(store).parts()[2].unlink()
    with pytest.raises(ct.StoreError, match=r"part-000003\.parquet: is in the ledger and not there: forget its 6 runs"):
        run_plan(plan(), store, Local(2), resume=True)
    mended(store, made)


def test_a_part_the_ledger_does_not_know_is_entered(store, made):
    with sqlite3.connect(store / "ledger.sqlite") as ledger:
        ledger.execute("DELETE FROM runs WHERE part = 4")
        ledger.execute("DELETE FROM parts WHERE number = 4")
    assert any("does not know part-000004.parquet" in message for message in messages(store))
    assert run_plan(plan(), store, Local(2), resume=True).done == 24
    assert messages(store) == []
    assert rows(store) == rows(made)


def test_a_ledger_that_disagrees_about_runs_is_made_again(store, made):
    with sqlite3.connect(store / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE runs SET run_key = x'000102030405060708090a0b' WHERE point = 2 AND seed = 4")
    assert any("disagree on 2 runs" in message for message in messages(store))
    assert "made the ledger again from the parts" in mended(store, made)


RUN = "INSERT INTO runs SELECT 5, 9, x'000102030405060708090a0b', {}, 0, 1.0, NULL"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DELETE FROM runs WHERE point = 0 AND seed < 5", r"runs of part-000001\.parquet, which was written with 6"),
        (RUN.format(2), r"has 7 runs of part-000002\.parquet, which was written with 6"),
        (RUN.format(8), r"has 1 runs of part-000008\.parquet, which it does not know"),
        ("INSERT INTO repeats SELECT point, seed, run_key FROM runs WHERE part = 1", "has 6 runs twice"),
        ("UPDATE parts SET runs = 5 WHERE number = 3", r"has 6 runs of part-000003\.parquet, which was written with 5"),
        ("ALTER TABLE runs RENAME COLUMN seconds TO minutes", "is not a ledger of this celltrain"),
        ("DROP TABLE repeats", r"is not a ledger of this celltrain \(its table repeats has no columns\)"),
    ],
)
def test_a_ledger_that_has_other_runs_is_not_gone_on_with(store, made, change, words):
    with sqlite3.connect(store / "ledger.sqlite") as ledger:
        ledger.execute(change)
    with pytest.raises(ct.StoreError, match=rf"{words}.*celltrain store repair"):
        run_plan(plan(), store, Local(2), resume=True)
    assert messages(store) != []
    assert rows(store) == rows(made)
    assert "made the ledger again from the parts" in mended(store, made)


@pytest.mark.parametrize("name", [b"CREATE TABLE runs", b"run_key", b"seconds"])
def test_a_ledger_whose_names_are_no_text_is_made_again(store, made, name):
    content = (store / "ledger.sqlite").read_bytes()
    assert name in content
    (store / "ledger.sqlite").write_bytes(content.replace(name, name[:-3] + b"\xcc" + name[-2:]))
    with pytest.raises(ct.StoreError, match=r"ledger.*celltrain store repair"):
        run_plan(plan(), store, Local(2), resume=True)
    assert messages(store) != []
    assert "made the ledger again from the parts" in mended(store, made)


def test_a_ledger_that_has_a_run_as_anothers_is_made_again(store, made):
    with sqlite3.connect(store / "ledger.sqlite") as ledger:
        ledger.execute("UPDATE runs SET seed = 99 WHERE point = 2 AND seed = 4")
    assert any("disagree on 2 runs" in message for message in messages(store))
    assert "made the ledger again from the parts" in mended(store, made)


@pytest.mark.parametrize("entered", ["with it", "a moment later"])
def test_what_a_sweep_writes_while_a_store_is_verified_is_no_fault(store, made, monkeypatch, entered):
    last = Store.open(store).parts()[3]
    content = last.read_bytes()
    last.unlink()
    with sqlite3.connect(store / "ledger.sqlite") as ledger:
        ledger.execute("DELETE FROM runs WHERE part = 4")
        ledger.execute("DELETE FROM parts WHERE number = 4")

    def enter():
        ledger = sqlite3.connect(store / "ledger.sqlite")
        ledger.execute("ATTACH ? AS whole", (str(made / "ledger.sqlite"),))
        with ledger:
            ledger.execute("INSERT INTO parts SELECT * FROM whole.parts WHERE number = 4")
            ledger.execute("INSERT INTO runs SELECT * FROM whole.runs WHERE part = 4")
        ledger.close()

    listed, came = parts.listed, []

    def listing(folder):
        found = listed(folder)
        if not came:
            came.append(True)
            last.write_bytes(content)
            if entered == "with it":
                enter()
            else:
                found = listed(folder)
        return found

    def moment(seconds):
        came.append(seconds)
        enter()

    monkeypatch.setattr(parts, "listed", listing)
    monkeypatch.setattr(check.time, "sleep", moment)
    assert messages(store) == []
    assert came == ([True] if entered == "with it" else [True, check.MOMENT])
    monkeypatch.undo()
    assert messages(store) == []
    assert rows(store) == rows(made)


def test_equal_sweeps_have_equal_tables_however_they_are_cut(made, tmp_path):
    run_plan(plan(), tmp_path / "one", Local(2))
    one, several = Store.open(tmp_path / "one"), Store.open(made)
    assert (len(one.parts()), len(several.parts())) == (1, 4)
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


@pytest.mark.parametrize("content", [None, b"this is no data base, but it is long enough to be looked at" * 20, b""])
def test_a_ledger_that_is_gone_or_something_else_is_made_again(store, made, content):
    (store / "ledger.sqlite").unlink()
    if content is not None:
        (store / "ledger.sqlite").write_bytes(content)
    assert any("ledger.sqlite" in message for message in messages(store))
    if content:
        with pytest.raises(ct.StoreError, match="make it again from the parts"):
            run_plan(plan(), store, Local(2), resume=True)
    mended(store, made)


def test_a_run_that_is_there_twice_is_found_and_dropped(store, made):
    first, *_ = Store.open(store).parts()
    shutil.copy(first, store / "parts" / "part-000009.parquet")
    found = messages(store)
    assert sum("more than once (part-000001.parquet, part-000009.parquet)" in message for message in found) == 5
    with pytest.raises(
        ct.StoreError, match=r"part-000009\.parquet has runs that another part has.*celltrain store repair"
    ):
        run_plan(plan(), store, Local(2), resume=True)
    assert any("dropped 6 runs from part-000009.parquet" in line for line in mended(store, made))


def test_a_part_of_another_store_is_found_and_set_aside(store, made, tmp_path):
    other = PLAN.replace("values = [100, 150, 200]", "values = [120]")
    run_plan(plan(other.replace("buffer = {", "size = {")), tmp_path / "other", Local(2))
    shutil.copy(Store.open(tmp_path / "other").parts()[0], store / "parts" / "part-000007.parquet")
    assert any("it is another store's" in message for message in messages(store))
    with pytest.raises(ct.StoreError, match=r"part-000007\.parquet.*it is another store's.*celltrain store repair"):
        run_plan(plan(), store, Local(2), resume=True)
    with pytest.raises(ct.StoreError, match=r"part-000007\.parquet"):
        Store.open(store).table()
    mended(store, made)


def test_two_sweeps_do_not_write_one_store(store):
    with (
        Store.resume(store, plan()),
        pytest.raises(ct.StoreError, match=rf"is being written by another sweep \(process {os.getpid()}\)"),
    ):
        Store.resume(store, plan())
    Store.resume(store, plan()).close()


def test_reading_goes_on_while_another_writes(store):
    with Store.resume(store, plan()):
        assert len(Store.open(store).table()) == 192


IN_A_PROCESS = """
import resource, sys
sys.path.insert(0, {tests!r})
import celltrain.coordination.coordinator as coordinator
from celltrain.cli import main
coordinator.PART_RUNS = 200
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
sys.argv = ["celltrain", "sweep", {plan!r}, "--store", {store!r}, *{more!r}]
main()
"""


@pytest.mark.slow
@POSIX
def test_a_full_disk_is_said_and_costs_nothing_that_was_there(tmp_path):
    text = PLAN.replace("count = 4", "count = 200").replace('"5ms"', '"2ms"')
    (tmp_path / "plan.toml").write_text(text)
    Store.create(tmp_path / "s", plan(text)).close()
    limits = []
    # Files may be no larger than this: first a part does not fit, then the ledger.
    for limit in (8_000, 30_000, None):
        program = IN_A_PROCESS.format(
            tests=str(Path(__file__).parent),
            limit=limit or -1,
            plan=str(tmp_path / "plan.toml"),
            store=str(tmp_path / "s"),
            more=["--resume"],
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        limits.append((limit, done.returncode, done.stderr))
        assert [m for m in messages(tmp_path / "s") if "does not know" not in m] == [], limits
        if limit:
            assert done.returncode == 2, limits
            assert "cannot be" in done.stderr, limits
            assert "what was stored before is whole" in done.stderr, limits
            assert not list((tmp_path / "s").glob("**/*.tmp")), limits
    assert limits[-1][1] == 0, limits
    run_plan(plan(text), tmp_path / "one", Local(2))
    assert rows(tmp_path / "s") == rows(tmp_path / "one")


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(
    "limit", [pytest.param(0, marks=pytest.mark.nightly), 1_000, pytest.param(5_000, marks=pytest.mark.nightly), 20_000]
)
def test_a_disk_that_is_full_from_the_first_is_said_and_gone_on_with(tmp_path, limit):
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
    assert "then --resume" in ends[0][1], ends
    assert messages(tmp_path / "s") == []
    assert len(Store.open(tmp_path / "s").wide()) == 24


@contextmanager
def somebody():
    """The administrator may write everything, so somebody else tries."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@POSIX
def test_a_store_that_may_not_be_written_is_said_and_still_read(store, tmp_path, celltrain):
    (tmp_path / "plan.toml").write_text(PLAN)
    Store.open(store).parts()[3].unlink()
    repair(store)
    for path in [store, *store.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and "pytest" in str(path):
            path.chmod(0o755)
    # Whoever may not write may not read this interpreter either, perhaps: what is needed is imported before.
    assert celltrain("sweep", tmp_path / "plan.toml", "--store", tmp_path / "warm").code == 0
    with somebody():
        told = celltrain("sweep", tmp_path / "plan.toml", "--store", store, "--resume")
        new = celltrain("sweep", tmp_path / "plan.toml", "--store", store / "inside")
        assert len(Store.open(store).wide()) == 18
    assert (told.code, told.out) == (2, ""), told.err
    assert "cannot be written (permission denied)" in told.err
    assert (new.code, "cannot be made (permission denied)" in new.err) == (2, True)
    for path in [store, *store.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert run_plan(plan(), store, Local(2), resume=True).done == 24
    assert messages(store) == []


@pytest.mark.slow
def test_a_finished_store_is_seen_to_be_finished_quickly(tmp_path):
    text = PLAN.replace("count = 4", "count = 1000").replace('"5ms"', '"1us"')
    run_plan(plan(text), tmp_path / "s", Local(2))
    begun = time.monotonic()
    assert run_plan(plan(text), tmp_path / "s", Local(2), resume=True).done == 6000
    # A hundredth of what running them took would do; this only says that nothing is run or read again.
    assert time.monotonic() - begun < 1
    size = sum(path.stat().st_size for path in (tmp_path / "s").rglob("*") if path.is_file())
    assert size / 6000 < 300
