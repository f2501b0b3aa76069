"""Searches the open choices of draft-jagan-e2e-traf-mgmt-00 for the settings that fit all rows of its tables best.

    python scripts/campaign.py internetwork-search

Settings are the `[[settings]]` of papers/draft-jagan/search.toml. Each is a set of values applied to every scenario
that has the keys, never to individual rows. All settings use the same seeds. A setting is scored by the mean relative
errors of R and of D over the 19 rows, |ours - printed| / printed, and by how many of the paper's claims about Tables 1
to 7 hold for the means.

Results are kept in papers/draft-jagan/search.csv, one line for each setting, run length and number of seeds. Existing
results are not computed again (--fresh runs everything). The script writes its table between the `search` marks in
docs/papers/draft-jagan.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from celltrain.drawing.words import counted
from celltrain.papers import reproduce
from celltrain.papers.score import Scored
from paper_page import ROOT, fill, grid

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAPER = "draft-jagan"
TABLES = ["1", "2", "3", "4", "5", "6", "7"]
DEFAULTS = "the defaults"
GOODPUT, DELAY, LOSS = "goodput_mbps", "delay_ms", "switch_loss_cells"
COLUMNS = [
    "setting",
    "overrides",
    "duration",
    "seeds",
    "goodput_error",
    "delay_error",
    "goodput_inside",
    "delay_inside",
    "claims_hold",
    "claims",
    "goodput_mbps",
    "delay_ms",
]

Row = dict[str, str]


def settings() -> dict[str, dict[str, Any]]:
    """Returns every setting, keyed by its text, starting with the defaults."""
    extra = tomllib.loads((ROOT / "papers" / PAPER / "search.toml").read_text(encoding="utf-8"))["settings"]
    return {
        DEFAULTS: {},
        **{entry["text"]: entry["set"] for entry in extra},
    }


def measures(numbers: list[Scored], quantity: str) -> tuple[float, int, str]:
    """Returns the mean relative error of a quantity, the number of rows within tolerance, and our means as text."""
    rows = [
        number for number in numbers if number.number.quantity.name == quantity and number.number.published is not None
    ]
    error = float(np.mean([abs(row.mean - row.printed) / row.printed for row in rows]))
    return error, sum(bool(row.inside) for row in rows), " ".join(f"{row.mean:.0f}" for row in rows)


def judge(text: str, overrides: dict[str, Any], duration: str, seeds: int, jobs: int | None) -> Row:
    """Runs all rows with a setting and returns the result."""
    result = reproduce(PAPER, tables=TABLES, seeds=seeds, jobs=jobs, overrides={"duration": duration, **overrides})
    if result.interrupted:
        raise KeyboardInterrupt
    goodput, delay = measures(result.numbers, GOODPUT), measures(result.numbers, DELAY)
    return {
        "setting": text,
        "overrides": json.dumps(overrides),
        "duration": duration,
        "seeds": str(seeds),
        "goodput_error": f"{goodput[0]:.3f}",
        "delay_error": f"{delay[0]:.3f}",
        "goodput_inside": str(goodput[1]),
        "delay_inside": str(delay[1]),
        "claims_hold": str(sum(claim.holds is True for claim in result.claims)),
        "claims": str(len(result.claims)),
        "goodput_mbps": goodput[2],
        "delay_ms": delay[2],
    }


def report(rows: list[Row]) -> str:
    """Returns a Markdown table, with the best goodput first."""
    heads = ["setting", "error of R", "error of D", "R inside", "D inside", "claims that hold"]
    lines = [
        [
            f"**{row['setting']}**" if row["setting"] == DEFAULTS else row["setting"],
            f"{float(row['goodput_error']):.0%}",
            f"{float(row['delay_error']):.0%}",
            row["goodput_inside"],
            row["delay_inside"],
            f"{row['claims_hold']} of {row['claims']}",
        ]
        for row in sorted(rows, key=lambda row: float(row["goodput_error"]))
    ]
    length = f"{rows[0]['duration']}, {counted(int(rows[0]['seeds']), 'seed')}"
    return (
        f"The table gives mean relative errors over the 19 rows, and the rows inside their tolerance ({length}):\n\n"
        + grid(heads, lines, left=("setting",))
    )


def main() -> int:
    """Searches, saves the results, and fills the page."""
    parser = argparse.ArgumentParser(
        description="Search for the open choices that fit the numbers of draft-jagan best."
    )
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds for each setting (default: 1)")
    parser.add_argument(
        "--duration", default="5s", help="duration of every run whose setting does not give one (default: 5s)"
    )
    parser.add_argument("--jobs", type=int, help="number of threads; by default, one for each core")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    path: Path = ROOT / "papers" / PAPER / "search.csv"
    rows: list[Row] = []
    if path.exists() and not arguments.fresh:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    found: list[Row] = []
    for text, overrides in settings().items():
        key = {
            "setting": text,
            "overrides": json.dumps(overrides),
            "duration": arguments.duration,
            "seeds": str(arguments.seeds),
        }
        row = next((row for row in rows if key.items() <= row.items()), None)
        if row is None:
            started = time.monotonic()
            row = judge(text, overrides, arguments.duration, arguments.seeds, arguments.jobs)
            rows.append(row)
            with path.open("w", encoding="utf-8", newline="") as lines:
                writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            took = f"{time.monotonic() - started:.0f} s"
            print(
                f"R {row['goodput_error']} D {row['delay_error']} claims {row['claims_hold']} {took:>5}  {text}",
                flush=True,
            )
        found.append(row)
    print(f"wrote {path}")
    fill(ROOT / "docs" / "papers" / f"{PAPER}.md", "search", report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
