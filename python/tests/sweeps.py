"""Helpers for tests of sweeps: comparable rows, and processes that are killed midway."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celltrain.ensemble.store import Store
from celltrain.ensemble.store.folder import checksum
from small_sweep import WRITE_RUNS, driver, stored

__all__ = ["WRITE_RUNS", "driver", "interrupted", "remade", "rows", "stored", "wait_for_runs"]


def rows(store: Path) -> bytes:
    """Returns all rows of a store as bytes, to compare sweeps of the same plan."""
    import pyarrow as pa

    table = Store.open(store).table()
    columns = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    table = pa.table(columns, names=table.column_names).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def wait_for_runs(store: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while stored(store) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"{stored(store)} runs of {count}"
        time.sleep(0.005)


def interrupted(command: Sequence[object], folder: Path, stores: str, more_than: int = 0) -> str:
    """Sends Ctrl-C to a command when its store contains this number of runs.

    Checks that runs are kept. Returns the output.
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 240
        while max(map(stored, folder.glob(stores)), default=0) <= more_than and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert err == "interrupted: finished runs are kept; continue with --resume\n"
    return out


def remade(store: Path, **changes: Any) -> None:
    """Changes a store's manifest to look like the manifest of another version of celltrain."""
    manifest = {**Store.open(store).manifest, **changes}
    manifest["sha256"] = checksum(manifest)
    with contextlib.closing(sqlite3.connect(store / "store.sqlite")) as connection, connection:
        rows = [(json.dumps(value), key) for key, value in manifest.items()]
        connection.executemany("UPDATE about SET value = ? WHERE key = ?", rows)
