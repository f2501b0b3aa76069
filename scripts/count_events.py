"""Counts the cost of a cell-hop with valgrind's cachegrind: instructions, branch mispredictions and cache misses.

    python scripts/count_events.py                          every scenario below
    python scripts/count_events.py --page                   the same, and updates the table in docs/performance.md
    python scripts/count_events.py mesh --port-mode trains   one scenario, with the code for contended ports forced

Counts are differences between a short and a longer run, which excludes reading the scenario, building the engine and
the first round trips. valgrind models the caches of this machine, with a last level of 2 MiB.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from instruction_guard import ROOT, build
from paper_page import fill

PAGE = ROOT / "docs" / "performance.md"

# A short and a longer duration for each scenario.
DURATIONS = {
    "n-source-lan-5-infinite": ("100ms", "1s"),
    "n-source-wan-15-infinite": ("500ms", "1s"),
    "n-source-wan-1000-infinite": ("1s", "2s"),
    "buffer-1000": ("2s", "4s"),
    "buffer-1000000": ("2s", "4s"),
    "chain": ("50ms", "250ms"),
    "parking-lot": ("50ms", "250ms"),
    "parking-lot-wan": ("50ms", "250ms"),
    "vcs-5x3-apart": ("50ms", "250ms"),
    "vcs-5x3-merged": ("50ms", "250ms"),
    "internetwork-ubr": ("50ms", "250ms"),
    "internetwork-er": ("50ms", "250ms"),
    "lan-5-wfq": ("100ms", "400ms"),
    "mesh": ("20ms", "60ms"),
    "mesh-fba": ("20ms", "60ms"),
    "mesh-wfq": ("20ms", "60ms"),
    "mesh-round-robin": ("20ms", "60ms"),
    "mesh-drop-from-front": ("20ms", "60ms"),
    "mesh-virtual-queuing": ("20ms", "60ms"),
    "fba-lan-5-native": ("500ms", "2s"),
    "fba-lan-5-formula": ("500ms", "2s"),
    "fba-lan-15-native": ("500ms", "2s"),
    "fba-lan-15-formula": ("500ms", "2s"),
}
COUNTS = {
    "instructions": r"I +refs",
    "mispredicted": r"Mispredicts",
    "L1 misses": r"D1 +misses",
    "LL misses": r"LLd misses",
}


def main() -> None:
    """Counts the events of a run and prints the counts."""
    parser = argparse.ArgumentParser(description="Count what a cell-hop costs, with valgrind's cachegrind.")
    parser.add_argument("scenario", nargs="*", choices=[*DURATIONS, []], help="scenarios to run; all by default")
    parser.add_argument(
        "--port-mode",
        default="planned",
        choices=["planned", "trains", "streams"],
        help="the variant of the code for contended ports to use",
    )
    parser.add_argument("--page", action="store_true", help="fill the table of docs/performance.md")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is needed: apt install valgrind")
    program = build()
    lines = ["| scenario | " + " | ".join(COUNTS) + " |", "|---|" + "---:|" * len(COUNTS)]
    print("\n".join(lines))
    for scenario in arguments.scenario or DURATIONS:
        (hops, short), (more_hops, longer) = (
            counted(program, scenario, duration, arguments.port_mode) for duration in DURATIONS[scenario]
        )
        of_each = [(longer[name] - short[name]) / (more_hops - hops) for name in COUNTS]
        cells = [f"{of_each[0]:.1f}", *(f"{round(count, 2) + 0:.2f}" for count in of_each[1:])]
        lines.append(f"| {scenario} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if arguments.page:
        fill(PAGE, "counts", "\n".join(lines))


def counted(program: Path, scenario: str, duration: str, port_mode: str) -> tuple[int, dict[str, int]]:
    """Returns the cell-hops of a run and its counts."""
    under = ["valgrind", "--tool=cachegrind", "--branch-sim=yes", "--cache-sim=yes", "--LL=2097152,16,64"]
    run = [str(program), "--scenario", scenario, "--duration", duration, "--port-mode", port_mode, "--json"]
    done = subprocess.run([*under, "--cachegrind-out-file=/dev/null", *run], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)["cell_hops"], {
        name: number(pattern, done.stderr) for name, pattern in COUNTS.items()
    }


def number(pattern: str, text: str) -> int:
    """Returns the number after a word in cachegrind's output."""
    [found] = re.findall(rf"{pattern}: +([\d,]+)", text)
    return int(found.replace(",", ""))


if __name__ == "__main__":
    main()
