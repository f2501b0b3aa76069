"""Searches the control of EFCI in draft-jagan: increase, decrease, threshold, initial rate and the memory of a rate.

    python scripts/campaign.py efci-search

Every combination runs the EFCI rows of Tables 1 to 4 for 5 s with one seed. The best in R, and the defaults, run again
for the paper's duration with fresh seeds. The script writes papers/draft-jagan/efci.csv, with a line for each
combination, and prints the table of the page.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from celltrain.papers import reproduce
from paper_page import ROOT, grid

PAPER = "draft-jagan"
FILE = ROOT / "papers" / PAPER / "efci.csv"
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
    """Runs the search, writes the file and prints the tables."""
    parser = argparse.ArgumentParser(description="Search the control of EFCI in draft-jagan.")
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")
    jobs: int = parser.parse_args().jobs
    names = list(ANSWERS)
    found: list[dict[str, Any]] = []
    for values in itertools.product(*(values for _, values in ANSWERS.values())):
        combination = dict(zip(names, values, strict=True))
        found.append({**combination, **errors(combination, jobs, seeds=1, first=1, duration=SHORT)})
    with FILE.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    best = sorted(found[1:], key=lambda line: line["goodput_error"])[:CONFIRMED]
    rows = []
    for line in (found[0], *best):
        combination = {name: line[name] for name in names}
        own = errors(combination, jobs, seeds=FRESH, first=FIRST_FRESH, duration=None)
        rows.append([*map(str, combination.values()), *map(str, own.values())])
    print(grid([*names, *(head for head in found[0] if head not in names)], rows))
    return 0


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
