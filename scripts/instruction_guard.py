"""Compares the instruction counts of the fast engine with budgets. Unlike times, counts do not depend on the load.

    python scripts/instruction_guard.py            builds, runs nine short scenarios under valgrind, compares
    python scripts/instruction_guard.py --bless    saves the counts as this compiler's budgets

The budgets are in crates/celltrain-bench/budgets.csv, keyed by compiler and machine, because counts depend on both. If
a compiler has no budgets, the script passes; run --bless and commit only that change. Without valgrind, nothing is
counted.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CRATE = ROOT / "crates" / "celltrain-bench"
BUDGETS = CRATE / "budgets.csv"
# Tolerance as a fraction of the budget. Counts differ by a few dozen instructions between runs.
TOLERANCE = 0.05

Budgets = dict[str, dict[str, int]]
"""Instructions by compiler and scenario."""


def main() -> int:
    """Counts instructions and compares them with the limits."""
    parser = argparse.ArgumentParser(description="Compare instruction counts of the fast engine with their budgets.")
    parser.add_argument("--bless", action="store_true", help="save the counts as the new budgets")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("instruction guard skipped: valgrind is not installed")
        return 0
    key = f"{compiler()} {platform.machine()}"
    all_budgets = read()
    budgets = {} if arguments.bless else all_budgets.get(key, {})
    if not budgets and not arguments.bless:
        print(f"instruction guard skipped: no budgets for rustc {key}. Save budgets with: {sys.argv[0]} --bless")
        return 0
    program = build()
    started = time.monotonic()
    counts = {}
    failures, savings = [], []
    for scenario in cases(program, "guard"):
        counts[scenario], per_hop = count(program, scenario)
        line = f"{scenario:24} {counts[scenario]:>12,} instructions, {per_hop:.1f} a cell-hop"
        if scenario in budgets:
            change = counts[scenario] / budgets[scenario] - 1
            line += f"; budget {budgets[scenario]:,} ({change:+.1%})"
            if change > TOLERANCE:
                failures.append(f"{scenario} takes {change:.1%} more instructions than its budget")
            elif change < -TOLERANCE:
                savings.append(scenario)
        elif not arguments.bless:
            failures.append(f"{scenario} has no budget")
        print(line, flush=True)
    failures += [f"{scenario} has a budget but is not a scenario" for scenario in budgets if scenario not in counts]
    print(f"counted in {time.monotonic() - started:.1f} s")
    if arguments.bless:
        write({**all_budgets, key: counts})
        print(f"wrote {BUDGETS.relative_to(ROOT)}")
        return 0
    if savings:
        print(f"{', '.join(savings)}: more than {TOLERANCE:.0%} below budget. Lower it: {sys.argv[0]} --bless")
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    if failures:
        print(
            f"Make the code cheaper, or give the reason in the commit and run: {sys.argv[0]} --bless", file=sys.stderr
        )
    return 1 if failures else 0


def count(program: Path, scenario: str) -> tuple[int, float]:
    """Returns the instructions of a run, including reading the scenario, and the instructions per cell-hop."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "callgrind.out"
        under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"]
        answer = run(program, scenario, "fast", under=under)
        text = profile.read_text(encoding="utf-8", errors="replace")
    [total] = re.findall(r"^totals: (\d+)$", text, re.MULTILINE)
    return int(total), int(total) / answer["cell_hops"]


def read() -> Budgets:
    """Reads the budgets; empty if the file does not exist."""
    budgets: Budgets = {}
    if BUDGETS.exists():
        with BUDGETS.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                budgets.setdefault(row["compiler"], {})[row["scenario"]] = int(row["instructions"])
    return budgets


def write(budgets: Budgets) -> None:
    """Saves the counts as the new budgets."""
    with BUDGETS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["compiler", "scenario", "instructions"])
        for compiler, counts in sorted(budgets.items()):
            writer.writerows([compiler, *row] for row in counts.items())


def build() -> Path:
    """Builds the optimised program."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "celltrain-bench"]
    command += ["--features", "mimalloc", "--bin", "celltrain-bench", "--message-format", "json-render-diagnostics"]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit("cargo is needed: install Rust (https://rustup.rs)")
    if done.returncode != 0:
        sys.exit(done.returncode)
    messages = (json.loads(line) for line in done.stdout.splitlines())
    [program] = [message["executable"] for message in messages if message.get("executable")]
    return Path(program)


def compiler() -> str:
    """Returns the release of the compiler, such as 1.95.0."""
    return output(["rustc", "--version"]).split()[1]


def cases(program: Path, group: str) -> dict[str, str]:
    """Returns the names and titles of the scenarios in a group: whole, scaling or guard."""
    listed = json.loads(output([str(program), "--list", "--json"]))
    return {case["scenario"]: case["title"] for case in listed if case["group"] == group}


def run(program: Path, scenario: str, engine: str, *, under: list[str] | None = None) -> dict[str, Any]:
    """Returns the result of one run. If `under` is given, that program starts the run."""
    answer: dict[str, Any] = json.loads(
        output([*(under or []), str(program), "--scenario", scenario, "--engine", engine, "--json"])
    )
    return answer


def output(command: list[str]) -> str:
    """Returns the output of a command. Shows its standard error if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
