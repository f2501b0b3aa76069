"""A small sweep that campaigns and tests run, stop and kill: its scenario, its plan, and the program that drives it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from celltrain.ensemble.store import Store
from celltrain.errors import StoreError

#: Three connections through a port of 100 cells, so that a run takes milliseconds.
SCENARIO = """
[scenario]
duration = "5ms"
[scenario.topology.n_source]
sources = 3
link_delay = "5us"
[scenario.port.bottleneck]
buffer = 100
policy = { epd = { threshold = 60 } }
"""
#: Four values of the policy's threshold.
THRESHOLDS = """
[axes]
threshold = { path = "port.bottleneck.policy.epd.threshold", values = [50, 60, 70, 80] }
"""
#: Number of runs that `driver` writes at once, and number of runs per chunk on a cluster. Both are small, so that the
#: first runs are stored early and kills happen between writes.
WRITE_RUNS, CHUNK_RUNS = 40, 20
#: Runs the command line with this number of runs per write and per chunk.
PROGRAM = f"""
import sys
import celltrain.cli, celltrain.running.cluster as cluster, celltrain.ensemble.sweeps as coordinator

coordinator.WRITE_RUNS, cluster.MOST_RUNS = {WRITE_RUNS}, {CHUNK_RUNS}
sys.argv = ["celltrain", "sweep", *sys.argv[1:]]
celltrain.cli.main()
"""


def thresholds(seeds: int, duration: str = "5ms") -> str:
    """Returns a plan with four points and this number of seeds."""
    return f"seeds = {seeds}\n{THRESHOLDS}{SCENARIO}".replace('"5ms"', f'"{duration}"')


def stored(store: Path) -> int:
    """Returns the number of runs in a store; 0 if it does not exist yet."""
    try:
        return Store.open(store).totals().runs
    except StoreError:
        return 0


def driver(plan: Path, store: Path, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    """Starts a sweep in a separate process. Resumes the store if it exists.

    Args:
        plan: File of the plan.
        store: Folder of the store.
        arguments: Further command-line arguments.
        variables: Further environment variables.
    """
    resume = ["--resume"] if (store / "store.sqlite").exists() else []
    command = [sys.executable, "-c", PROGRAM, plan, "--store", store, *resume, *arguments]
    return subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
