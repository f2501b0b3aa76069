"""Stores that somebody has tampered with, or that another celltrain made: said in words, and nothing more is lost."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from test_store import made, mended, messages, store  # noqa: F401, fixtures
from test_sweep import plan, rows

import celltrain as ct
from celltrain.coordination import run_plan
from celltrain.running import Local
from celltrain.store import Store
from celltrain.store.files import Lock, put
from celltrain.store.repair import repair

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are different there")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["verify", "repair"])
def test_a_store_of_another_version_is_named_and_not_touched(store, celltrain, command):  # noqa: F811
    # Repair took every part for another store's and set it aside.
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps({**manifest, "version": "0.0.9"}))
    before = contents(store)
    told = celltrain("store", command, store)
    assert (told.code, told.out) == (2, "")
    assert f"{store}: was made by celltrain 0.0.9, and this is " in told.err
    assert "install celltrain 0.0.9" in told.err
    assert contents(store) == before


@pytest.mark.parametrize("command", ["verify", "repair"])
@pytest.mark.parametrize("key", ["plan", "digest", "measures", "columns", "units", "runs", "name", "profile"])
def test_a_manifest_that_was_changed_is_said_and_costs_no_part(store, celltrain, command, key):  # noqa: F811
    manifest = json.loads((store / "manifest.json").read_text())
    if key == "plan":
        manifest["plan"]["axes"]["buffer"]["values"] = [1, 2, 3]
    else:
        manifest[key] = {"measures": ["fairness"], "columns": [], "units": {}, "runs": 3}.get(key, "other")
    (store / "manifest.json").write_text(json.dumps(manifest))
    before = contents(store)
    told = celltrain("store", command, store)
    assert (told.code, told.out) == (2, "")
    assert "manifest.json: was changed (its sha256 differs)" in told.err
    assert contents(store) == before


HARMED = {
    "empty": b"",
    "blank": b" \n",
    "deep list": b"[" * 100_000,
    "deep tables": b'{"a":' * 100_000,
    "deep and whole": b'{"format": 1, "plan": ' + b"[" * 90 + b"]" * 90 + b"}",
    "twice": b'{"format": 1, "format": 1}',
    "no text": b"\xff\xfe\x00",
    "huge number": b'{"format": ' + b"9" * 5000 + b"}",
    "other": b'"format"',
}


@pytest.mark.parametrize("harm", HARMED)
@pytest.mark.parametrize("command", ["show", "verify", "repair", "resume"])
def test_a_manifest_that_is_none_is_said_in_words(store, tmp_path, celltrain, harm, command):  # noqa: F811
    (store / "manifest.json").write_bytes(HARMED[harm])
    expect_words(celltrain, store, tmp_path, command, "manifest.json")


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", ["manifest.json", "ledger.sqlite", "lock"])
@pytest.mark.parametrize("command", ["show", "verify", "repair", "resume"])
def test_what_is_no_file_is_not_waited_for(store, tmp_path, celltrain, kind, name, command):  # noqa: F811
    (store / name).unlink(missing_ok=True)
    put_other(store / name, kind)
    if command in ("show", "verify") and name != "manifest.json":
        # Reading needs no lock, and a ledger that is none is a fault among others.
        told = celltrain("store", command, store)
        assert told.code == (1 if (command, name) == ("verify", "ledger.sqlite") else 0)
        assert "Traceback" not in told.err
        return
    if (command, name) == ("repair", "ledger.sqlite"):
        assert celltrain("store", command, store).code == 0
        assert messages(store) == []
        return
    expect_words(celltrain, store, tmp_path, command, name)


def put_other(path: Path, kind: str) -> None:
    """Something that is no regular file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


def expect_words(celltrain, store, tmp_path, command, name):  # noqa: F811
    from test_sweep import PLAN

    before = contents(store / "parts")
    (tmp_path / "plan.toml").write_text(PLAN)
    arguments = ("sweep", tmp_path / "plan.toml", "--store", store, "--resume")
    told = celltrain(*arguments if command == "resume" else ("store", command, store))
    assert (told.code, told.out) == (2, "")
    assert f"{store / name}: " in told.err
    assert told.err.count("\n") == 1
    assert contents(store / "parts") == before


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(
    "command",
    [
        *(("run",), ("check",), ("import", "--flows", "1"), ("sweep", "--dry-run"), ("tune", "--dry-run")),
        ("sweep", "lan.toml", "--dry-run", "--scheduler-file"),
    ],
    ids=" ".join,
)
def test_no_file_of_any_command_is_waited_for_or_read_without_end(tmp_path, celltrain, kind, command):
    from test_sweep import PLAN

    path = tmp_path / "other.json"
    put_other(path, kind)
    words = [tmp_path / word if word == "lan.toml" else word for word in command]
    (tmp_path / "lan.toml").write_text(PLAN)
    told = celltrain(*words, path) if command[-1].endswith("file") else celltrain(words[0], path, *words[1:])
    assert (told.code, told.out) == (2, "")
    assert "is not a regular file" in told.err


@POSIX
def test_a_scenario_beside_a_plan_is_not_waited_for(tmp_path, celltrain):

    os.mkfifo(tmp_path / "base.toml")
    (tmp_path / "plan.toml").write_text('scenario = "base.toml"\n[axes]\nduration = ["1ms", "2ms"]')
    told = celltrain("sweep", tmp_path / "plan.toml", "--dry-run")
    assert told.code == 2
    assert "base.toml: is not a regular file" in told.err


@POSIX
@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b'{"address": ' + b"[" * 90 + b"]" * 90 + b"}"])
def test_a_scheduler_file_that_is_none_is_said_in_words(tmp_path, celltrain, content):
    from test_sweep import PLAN

    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "scheduler.json").write_bytes(content)
    told = celltrain(
        *("sweep", tmp_path / "plan.toml", "--dry-run", "--dask-timeout", "50ms"),
        *("--scheduler-file", tmp_path / "scheduler.json"),
    )
    assert (told.code, told.out) == (2, "")
    assert "it is not what dask scheduler --scheduler-file writes" in told.err
    assert told.err.count("\n") == 1


@POSIX
def test_no_planted_link_is_written_through(tmp_path, monkeypatch):
    # The temporary name was always the same, and a link of that name was followed.
    mine = tmp_path / "mine"
    mine.write_text("mine")
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / ".manifest.json.tmp").symlink_to(mine)
    (folder / "manifest.json").symlink_to(mine)
    put(folder / "manifest.json", b"{}")
    assert (folder / "manifest.json").read_bytes() == b"{}"
    assert not (folder / "manifest.json").is_symlink()
    monkeypatch.setattr("secrets.token_hex", lambda _: "0")
    for plant in (lambda one: one.symlink_to(mine), lambda one: one.symlink_to(tmp_path / "new"), Path.touch):
        plant(folder / ".other.0.tmp")
        with pytest.raises(ct.StoreError, match=r"other: cannot be written \(file exists"):
            put(folder / "other", b"{}")
        (folder / ".other.0.tmp").unlink()
    assert mine.read_text() == "mine"
    assert not (tmp_path / "new").exists()


@POSIX
@pytest.mark.parametrize("plant", [Path.symlink_to, Path.hardlink_to])
def test_a_link_in_the_place_of_the_lock_is_not_written_through(store, tmp_path, plant):  # noqa: F811
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (store / "lock").unlink()
    plant(store / "lock", mine)
    with pytest.raises(ct.StoreError, match=r"lock: .*, and celltrain did not make it: take it away"):
        Lock(store / "lock")
    with pytest.raises(ct.StoreError, match="take it away"):
        run_plan(plan(), store, Local(2), resume=True)
    assert mine.read_text() == "mine"


@POSIX
def test_a_ledger_or_a_journal_that_is_a_link_is_not_written_through(store, tmp_path):  # noqa: F811
    mine = tmp_path / "mine"
    shutil.copy(store / "ledger.sqlite", mine)
    before = mine.read_bytes()
    (store / "ledger.sqlite").unlink()
    (store / "ledger.sqlite").symlink_to(mine)
    with pytest.raises(ct.StoreError, match=r"ledger\.sqlite: is a link"):
        run_plan(plan(), store, Local(2), resume=True)
    (store / "ledger.sqlite").unlink()
    shutil.copy(mine, store / "ledger.sqlite")
    (store / "ledger.sqlite-journal").symlink_to(tmp_path / "new")
    shutil.rmtree(store / "parts")
    (store / "parts").mkdir()
    repair(store)
    assert mine.read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_what_a_kill_left_half_written_is_cleared_away(store, made):  # noqa: F811
    for folder in (store, store / "parts"):
        (folder / ".half.0123.tmp").write_bytes(b"x")
    run_plan(plan(), store, Local(2), resume=True)
    assert not list(store.rglob("*.tmp"))
    assert rows(store) == rows(made)
    assert Store.open(store).verify() == []


def planted(folder: Path, name: str, elsewhere: Path) -> Path:
    """Somebody's folder outside, with a link to it in the place of one of the store's."""
    elsewhere.mkdir()
    if (folder / name).exists():
        shutil.copytree(folder / name, elsewhere, dirs_exist_ok=True)
        shutil.rmtree(folder / name)
    (folder / name).symlink_to(elsewhere)
    return elsewhere


@POSIX
@pytest.mark.parametrize("name", ["parts", "series", "set-aside"])
def test_a_folder_of_a_store_that_is_a_link_is_refused(store, tmp_path, name):  # noqa: F811
    # Rows were written, and damaged parts moved, to where it leads.
    elsewhere = planted(store, name, tmp_path / "elsewhere")
    before = contents(elsewhere)
    next((store / "parts").glob("*.parquet")).write_bytes(b"damaged")
    changed = {**before, **contents(elsewhere)}
    words = rf"{name}: is a link, and celltrain did not make it: take it away"
    with pytest.raises(ct.StoreError, match=words):
        repair(store)
    with pytest.raises(ct.StoreError, match=words):
        run_plan(plan(), store, Local(2), resume=True)
    assert words.split(": ", 1)[1] in "\n".join(messages(store))
    assert contents(elsewhere) == changed


@POSIX
@pytest.mark.parametrize("name", ["parts", "series"])
def test_a_new_store_is_not_written_into_a_link(tmp_path, name):
    folder = tmp_path / "new"
    folder.mkdir()
    elsewhere = planted(folder, name, tmp_path / "elsewhere")
    with pytest.raises(ct.StoreError, match=f"{name}: is a link"):
        run_plan(plan(), folder, Local(2))
    assert not list(elsewhere.iterdir())


@POSIX
def test_a_ledger_with_another_name_is_not_written_to(store, tmp_path):  # noqa: F811
    (tmp_path / "mine").hardlink_to(store / "ledger.sqlite")
    with pytest.raises(ct.StoreError, match="has another name as well"):
        run_plan(plan(), store, Local(2), resume=True)
    before = (tmp_path / "mine").read_bytes()
    repair(store)
    assert (store / "ledger.sqlite").stat().st_nlink == 1
    assert (tmp_path / "mine").read_bytes() == before
    assert messages(store) == []


@pytest.mark.parametrize("name", ["ledger.sqlite", "ledger.sqlite-journal", "rewriting.json"])
def test_a_folder_in_the_place_of_a_file_is_set_aside(store, made, name):  # noqa: F811
    # Verify said to repair it, and repair that it could not.
    if (store / name).exists():
        (store / name).unlink()
    (store / name).mkdir()
    (store / name / "kept").write_text("mine")
    repair(store)
    assert (store / "set-aside" / name / "kept").read_text() == "mine"
    assert messages(store) == []
    run_plan(plan(), store, Local(2), resume=True)
    assert rows(store) == rows(made)


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_part_that_is_no_file_is_said_once(store, kind):  # noqa: F811
    part = next((store / "parts").glob("*.parquet"))
    part.unlink()
    put_other(part, kind)
    first = messages(store)[0]
    assert first.count("celltrain store repair") == 1
    assert "is cut short" not in first
    assert "set aside" in repair(store)[0]
