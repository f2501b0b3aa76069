"""Searches the control of EFCI in draft-jagan: increase, decrease, threshold, initial rate and the memory of a rate.

    python scripts/campaign.py efci-search
    python scripts/campaign.py efci-search --confirm     # only the second step, from papers/draft-jagan/efci.csv

Every combination runs the EFCI rows of Tables 1 to 4 for 5 s with one seed. The defaults, the best in R, and each change
in these alone run again for the paper's duration with fresh seeds. The script writes papers/draft-jagan/efci.csv and
efci-confirmed.csv, with a line for each combination.

What an RM cell carries back is not searched: TM 4.0 (5.10.5, rules 1 and 2) fixes it.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from celltrain.papers import reproduce
from paper_page import ROOT

PAPER = "draft-jagan"
FILE = ROOT / "papers" / PAPER / "efci.csv"
CONFIRMATION = FILE.with_name("efci-confirmed.csv")
#: Values of each setting, the default first. RIF and RDF are published as 1/32, and the threshold as 250 cells.
ANSWERS: Mapping[str, tuple[str, Sequence[Any]]] = {
    "rif": ("{abr}.rif", (1 / 32, 1 / 512, 1 / 128, 1 / 8)),
    "rdf": ("{abr}.rdf", (1 / 32, 1 / 256, 1 / 8)),
    "threshold": ("port.sw*->sw*.allocator.efci.threshold", (250, 50, 500, 900)),
    "icr": ("{abr}.icr", ("155.52Mbps", "15.552Mbps")),
    "adtf": ("{abr}.adtf", ("500ms", "10ms")),
}
TABLES, ROW = (1, 2, 3, 4), "abr-efci"
#: Duration of a run while searching, number of combinations to run again, and seeds for running them again.
SHORT, CONFIRMED, FIRST_FRESH, FRESH = "5s", 3, 101, 2


def main() -> int:
    """Runs the search and the confirmation, and writes their files."""
    parser = argparse.ArgumentParser(description="Search the control of EFCI in draft-jagan.")
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")
    parser.add_argument("--confirm", action="store_true", help="only confirm the best of papers/draft-jagan/efci.csv")
    arguments = parser.parse_args()
    jobs: int = arguments.jobs
    names = list(ANSWERS)
    combinations = [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(values for _, values in ANSWERS.values()))
    ]
    if not arguments.confirm:
        found = [{**one, **errors(one, jobs, seeds=1, first=1, duration=SHORT)} for one in combinations]
        write(FILE, found)
    with FILE.open(encoding="utf-8", newline="") as handle:
        error = [float(line["goodput_error"]) for line in csv.DictReader(handle)]
    best = [one for _, one in sorted(zip(error[1:], combinations[1:], strict=True), key=lambda pair: pair[0])]
    write(
        CONFIRMATION,
        [
            {**one, **errors(one, jobs, seeds=FRESH, first=FIRST_FRESH, duration=None)}
            for one in confirmed(combinations[0], best[:CONFIRMED])
        ],
    )
    return 0


def confirmed(default: Mapping[str, Any], best: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the defaults, the best combinations, and each of their changes alone, without repetitions."""
    alone = [{**default, name: value} for one in best for name, value in one.items()]
    found: list[dict[str, Any]] = []
    for one in (default, *best, *alone):
        if dict(one) not in found:
            found.append(dict(one))
    return found


def write(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Writes a line for each combination."""
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    print(f"wrote {path}")


def errors(
    combination: Mapping[str, Any], jobs: int, *, seeds: int, first: int, duration: str | None
) -> dict[str, Any]:
    """Returns R and D by table, and their mean relative errors."""
    settings = {ANSWERS[name][0]: value for name, value in combination.items()}
    if duration is not None:
        settings["duration"] = duration
    ran = reproduce(PAPER, tables=list(TABLES), rows=[ROW], overrides=settings, seeds=seeds, seed=first, jobs=jobs)
    line: dict[str, Any] = {}
    for quantity, digits, short in (("goodput_mbps", 1, "goodput"), ("delay_ms", 0, "delay")):
        of = [number for number in ran.numbers if number.number.quantity.name == quantity]
        relative = [abs(number.mean - number.printed) / number.printed for number in of]
        line |= {f"{short}_{number.number.table}": round(number.mean, digits) for number in of}
        line[f"{short}_error"] = round(sum(relative) / len(relative), 3)
    return line


if __name__ == "__main__":
    sys.exit(main())
