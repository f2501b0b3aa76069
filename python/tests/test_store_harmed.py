"""Tampered files and folders of a store: each gets a one-sentence message, and nothing is written through links."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from test_store import made, store  # noqa: F401, fixtures
from test_sweep import plan, rows

import celltrain as ct
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.folder import Lock, put
from celltrain.ensemble.sweeps import run_plan
from celltrain.running import Local

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has different links and pipes")


def put_other(path: Path, kind: str) -> None:
    """Creates something that is not a regular file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.mark.slow
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
def test_no_command_blocks_on_a_pipe_or_device_in_place_of_a_store_file(tmp_path, celltrain, kind, command):
    from test_sweep import PLAN

    path = tmp_path / "other.json"
    put_other(path, kind)
    words = [tmp_path / word if word == "lan.toml" else word for word in command]
    (tmp_path / "lan.toml").write_text(PLAN)
    told = celltrain(*words, path) if command[-1].endswith("file") else celltrain(words[0], path, *words[1:])
    assert (told.code, told.out) == (2, "")
    assert "is not a regular file" in told.err


@POSIX
def test_a_pipe_in_place_of_the_scenario_of_a_plan_does_not_block_a_sweep(tmp_path, celltrain):

    os.mkfifo(tmp_path / "base.toml")
    (tmp_path / "plan.toml").write_text('scenario = "base.toml"\n[axes]\nduration = ["1ms", "2ms"]')
    told = celltrain("sweep", tmp_path / "plan.toml", "--dry-run")
    assert told.code == 2
    assert "base.toml: is not a regular file" in told.err


@POSIX
@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b'{"address": ' + b"[" * 90 + b"]" * 90 + b"}"])
def test_the_error_for_a_scheduler_file_that_is_not_a_regular_file_is_readable(tmp_path, celltrain, content):
    from test_sweep import PLAN

    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "scheduler.json").write_bytes(content)
    told = celltrain(
        *("sweep", tmp_path / "plan.toml", "--dry-run", "--dask-timeout", "50ms"),
        *("--scheduler-file", tmp_path / "scheduler.json"),
    )
    assert (told.code, told.out) == (2, "")
    assert "it was not written by dask scheduler --scheduler-file" in told.err
    assert told.err.count("\n") == 1


@POSIX
def test_no_command_writes_through_symbolic_links_placed_in_a_store(tmp_path, monkeypatch):
    # Regression: the temporary file always had the same name, and a link of that name was followed.
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
def test_a_symbolic_link_in_place_of_the_lock_file_of_a_store_is_not_followed(store, tmp_path):  # noqa: F811
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (store / "lock").unlink()
    (store / "lock").symlink_to(mine)
    with pytest.raises(ct.StoreError, match=r"lock: is a link that celltrain did not create: delete it"):
        Lock(store / "lock")
    with pytest.raises(ct.StoreError, match="delete it"):
        run_plan(plan(), store, Local(2), resume=True)
    assert mine.read_text() == "mine"


def test_files_left_incomplete_by_a_killed_process_are_removed(store, made):  # noqa: F811
    (store / ".half.0123.tmp").write_bytes(b"x")
    run_plan(plan(), store, Local(2), resume=True)
    assert not list(store.rglob("*.tmp"))
    assert rows(store) == rows(made)
    assert Store.open(store).verify() == []
