"""What tests of sweeps share: rows to compare, and processes that are killed in the middle."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from celltrain.store import Store

#: Parts as often as can be, so that there is something to keep, and a kill comes in the middle of one.
PROGRAM = """
import sys
import celltrain.cli, celltrain.running.cluster as cluster, celltrain.coordination.coordinator as coordinator

coordinator.PART_RUNS, cluster.MOST_RUNS = 40, 20
sys.argv = ["celltrain", "sweep", *sys.argv[1:]]
celltrain.cli.main()
"""
PART_RUNS = 40


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


def driver(plan: Path, store: Path, *arguments: object) -> subprocess.Popen[str]:
    """A sweep in a process of its own, that goes on with the store if there is one."""
    resume = ["--resume"] if (store / "manifest.json").exists() else []
    command = [sys.executable, "-c", PROGRAM, plan, "--store", store, *resume, *arguments]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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
