"""Speed of the engines: whole scenarios on both, each in a process of its own, so that its peak memory can be measured.

The scenarios are those of `celltrain-bench`, the group `whole`. `celltrain bench` runs each of them as
`python -m celltrain.cli.benchmark SCENARIO ENGINE TIMES`, which prints one JSON object.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from celltrain import _core

# The fastest of a few runs counts: whatever else the machine does can only slow a run down.
TIMES = 3
# With `--quick` some of the scenarios, unchanged, and one run each.
QUICK_TIMES = 1
QUICK = ("n-source-lan-5-infinite", "n-source-lan-15-fba-1000", "n-source-wan-5-epd-12000", "idle")


def cases(*, quick: bool = False) -> list[dict[str, Any]]:
    """The scenarios: name, title, simulated seconds, text."""
    listed = [case for case in json.loads(_core.bench_cases()) if case["group"] == "whole"]
    return [case for case in listed if case["scenario"] in QUICK or not quick]


def measure_all(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Runs every scenario on every engine. A scenario's rows come one after the other, the fast engine's last.

    That one also says how many times faster it is than the reference engine was just before.
    """
    times = QUICK_TIMES if quick else TIMES
    for case in cases(quick=quick):
        reference = _in_a_process_of_its_own(case["scenario"], "reference", times)
        yield reference
        fast = _in_a_process_of_its_own(case["scenario"], "fast", times)
        yield {**fast, "ratio_to_reference": reference["engine_seconds"] / fast["engine_seconds"]}


def _in_a_process_of_its_own(scenario: str, engine: str, times: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "celltrain.cli.benchmark", scenario, engine, str(times)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    # The core does not look for a signal while it measures, and whoever asked has a word for it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print(_core.measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))  # noqa: T201
