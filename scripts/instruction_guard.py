"""Holds the fast engine to a budget of instructions: unlike times, counts are the same however busy the machine is.

    python scripts/instruction_guard.py            builds, runs four short scenarios under valgrind, compares
    python scripts/instruction_guard.py --bless    writes the counts down as the new budget

The budgets stand in crates/celltrain-bench/budgets.csv. Another compiler gives other counts by a few per cent: bless anew,
and commit that alone. Without valgrind nothing is counted and nothing fails.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
import tempfile
from pathlib import Path

from bench_program import CRATE, ROOT, build, cases, run

BUDGETS = CRATE / "budgets.csv"
# Of a budget. Counts differ by some dozen instructions from run to run and by a few per cent between compilers.
TOLERANCE = 0.05


def main() -> int:
    """Count, compare."""
    parser = argparse.ArgumentParser(description="Compare instruction counts of the fast engine with their budgets.")
    parser.add_argument("--bless", action="store_true", help="write the counts down as the new budgets")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return 0
    program = build()
    budgets = {} if arguments.bless else read()
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
    failures += [f"{scenario} has a budget and is no scenario" for scenario in budgets if scenario not in counts]
    if arguments.bless:
        write(counts)
        print(f"wrote {BUDGETS.relative_to(ROOT)}")
        return 0
    if savings:
        print(f"{', '.join(savings)}: more than {TOLERANCE:.0%} below budget. Lower it: {sys.argv[0]} --bless")
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    if failures:
        print(f"Make it cheaper, or say in the commit why not and run: {sys.argv[0]} --bless", file=sys.stderr)
    return 1 if failures else 0


def count(program: Path, scenario: str) -> tuple[int, float]:
    """Instructions of one run, reading the scenario included, and those of a cell-hop."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "callgrind.out"
        under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"]
        answer = run(program, scenario, "fast", under=under)
        text = profile.read_text(encoding="utf-8", errors="replace")
    [total] = re.findall(r"^totals: (\d+)$", text, re.MULTILINE)
    return int(total), int(total) / answer["cell_hops"]


def read() -> dict[str, int]:
    """The budgets by scenario; none where there is no file."""
    if not BUDGETS.exists():
        return {}
    with BUDGETS.open(encoding="utf-8", newline="") as file:
        return {row["scenario"]: int(row["instructions"]) for row in csv.DictReader(file)}


def write(counts: dict[str, int]) -> None:
    """The counts as the new budgets."""
    with BUDGETS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["scenario", "instructions"])
        writer.writerows(counts.items())


if __name__ == "__main__":
    sys.exit(main())
