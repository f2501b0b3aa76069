"""`celltrain bench`: measures the speed of both engines: whole scenarios, each in a process of its own for its peak memory.

The scenarios are those of `celltrain-bench`, the group `whole`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from celltrain import _core
from celltrain.cli import options, progress, shell

# The fastest of a few runs counts: whatever else the machine does can only slow a run down.
TIMES = 3
# With `--quick` some of the scenarios, unchanged, and one run each.
QUICK_TIMES = 1
QUICK = ("n-source-lan-5-infinite", "n-source-lan-15-fba-1000", "n-source-wan-5-epd-12000", "idle")
#: Measures a scenario, whose name, engine and times are its arguments. The core does not look for a signal meanwhile.
PROGRAM = """
import signal, sys
from celltrain import _core
signal.signal(signal.SIGINT, signal.SIG_DFL)
print(_core.measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@shell.command("celltrain bench", "celltrain bench --quick", "celltrain bench --csv speed.csv")
def bench(quick: bool = False, csv: options.Csv = None, as_json: options.Json = False) -> None:
    """Measure both engines on fixed scenarios, each in a process of its own: the fastest of three runs.

    Options:
        quick: Four of the scenarios, one run each.
    """
    from celltrain.errors import Fault, InputError
    from celltrain.model.grids import Line

    output = shell.Output.of(as_json=as_json, csv=csv)
    profile = _core.build()["profile"]
    if profile != "release":
        problem = "is not measured: its speed says nothing. Install an optimised build with: pip install ."
        raise InputError([Fault.of_option("build", profile, problem)])
    titles = {case["scenario"]: case["title"] for case in cases(quick=quick)}
    measured: list[dict[str, Any]] = []
    with progress.waiting(f"measuring {len(titles)} scenarios on both engines") as tell:
        for row in _measure(list(titles), QUICK_TIMES if quick else TIMES):
            measured.append(row)
            if tell is not None:
                tell(len(measured) / (2 * len(titles)))
    words = ("scenario", "engine")
    grid = shell.grid(
        "scenario", "cell-hops", "engine", "seconds", "M cell-hops/s", "memory (MiB)", "times faster", left=words
    )
    for row in measured:
        is_first = row["engine"] == "reference"
        memory, ratio = row["peak_rss_mib"], row.get("ratio_to_reference")
        grid.add_row(
            titles[row["scenario"]] if is_first else "",
            f"{row['cell_hops']:,}" if is_first else "",
            row["engine"],
            f"{row['engine_seconds']:.4f}",
            f"{row['cell_hops_per_second'] / 1e6:.1f}",
            "" if memory is None else f"{memory:.0f}",
            "" if ratio is None else f"{ratio:.1f}",
        )
    note = "Seconds of wall-clock time. Memory is the most the process ever had, Python's included."
    output.show(answer=lambda: measured, rows=lambda: measured, blocks=lambda: [grid, Line(text=note)])
    output.wrote()


def cases(*, quick: bool = False) -> list[dict[str, Any]]:
    """The scenarios: name, title, simulated seconds, text."""
    listed = [case for case in json.loads(_core.bench_cases()) if case["group"] == "whole"]
    return [case for case in listed if case["scenario"] in QUICK or not quick]


def _measure(scenarios: list[str], times: int) -> Iterator[dict[str, Any]]:
    """Runs every scenario on every engine: the reference engine just before the fast one, for their ratio."""
    for scenario in scenarios:
        reference_seconds = None
        for engine in ("reference", "fast"):
            command = [sys.executable, "-c", PROGRAM, scenario, engine, str(times)]
            row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
            if reference_seconds is not None:
                row["ratio_to_reference"] = reference_seconds / row["engine_seconds"]
            reference_seconds = row["engine_seconds"]
            yield row


COMMANDS = {"bench": bench}
