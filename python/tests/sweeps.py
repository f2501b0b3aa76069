"""What tests of sweeps share: rows to compare, and processes that are killed in the middle."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from celltrain.store import Store
from small_sweep import PART_RUNS, driver

__all__ = ["PART_RUNS", "done", "driver", "interrupted", "parts", "rows", "wait_for_parts"]


def rows(store: Path) -> bytes:
    """All rows as bytes: what two sweeps of one plan have in common."""
    import pyarrow as pa

    table = Store.open(store).table()
    columns = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    table = pa.table(columns, names=table.column_names).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def parts(store: Path) -> int:
    """How many there are."""
    return len(list(store.glob("parts/part-*.parquet")))


def wait_for_parts(store: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Until the store has so many parts."""
    deadline = time.monotonic() + 120
    while parts(store) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"{parts(store)} parts of {count}"
        time.sleep(0.005)


def done(store: Path) -> int:
    """Runs that are stored."""
    return len(Store.open(store).wide())


def interrupted(command: Sequence[object], folder: Path, parts: str) -> str:
    """What a command prints that gets Ctrl-C when files of this pattern are there; it keeps what is done and says so."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list(folder.glob(parts)) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert err == "interrupted: what is done is kept; go on with --resume\n"
    return out
