"""A small sweep that campaigns and tests run, stop and kill: its scenario, its plan, and the program that drives it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: Three connections through a port of 100 cells: a run takes milliseconds.
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
#: Its threshold at four values.
THRESHOLDS = """
[axes]
threshold = { path = "port.bottleneck.policy.epd.threshold", values = [50, 60, 70, 80] }
"""
#: Runs of a part, and of a chunk on a cluster, of what `driver` runs: so small that there is something to keep early, and a
#: kill comes in the middle of one.
PART_RUNS, CHUNK_RUNS = 40, 20
#: The command line, with such parts.
PROGRAM = f"""
import sys
import celltrain.cli, celltrain.running.cluster as cluster, celltrain.coordination.coordinator as coordinator

coordinator.PART_RUNS, cluster.MOST_RUNS = {PART_RUNS}, {CHUNK_RUNS}
sys.argv = ["celltrain", "sweep", *sys.argv[1:]]
celltrain.cli.main()
"""


def thresholds(seeds: int, duration: str = "5ms") -> str:
    """A plan of four points, each with so many seeds."""
    return f"seeds = {seeds}\n{THRESHOLDS}{SCENARIO}".replace('"5ms"', f'"{duration}"')


def driver(plan: Path, store: Path, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    """A sweep in a process of its own, that goes on with the store if there is one.

    Args:
        plan: The file of its plan.
        store: The folder of its store.
        arguments: More of the command line.
        variables: More of the environment.
    """
    resume = ["--resume"] if (store / "manifest.json").exists() else []
    command = [sys.executable, "-c", PROGRAM, plan, "--store", store, *resume, *arguments]
    return subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
