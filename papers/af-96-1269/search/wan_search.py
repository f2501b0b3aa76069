"""Searches the open choices of ATM Forum 96-1269 for the settings that fit its WAN numbers best.

    python scripts/campaign.py wan-search

Settings are the `[[choices]]` of the paper's paper.toml and the `[[settings]]` of the search.toml next to it. Each is a
set of values applied to every scenario, never to individual rows. All settings use the same seeds. There are three
stages:

1. screen: every setting alone, on WAN rows of some tables, with a few seeds;
2. combine: the best settings that beat the defaults, in pairs, then the best pair with a third;
3. confirm: the defaults and the best settings, on all WAN and LAN rows, with more seeds.

The likelihood of a printed number x, given seeds with mean m and standard deviation s, is a Student density with 4
degrees of freedom, centre m and scale sqrt(s^2 + FLOOR^2), times one printed unit (0.01). FLOOR is 0.01, one printed
unit: it covers rounding and truncation, and is the smallest error assumed if all seeds agree. The heavy tails prevent
one row with a poor fit from dominating: a distance of ten scales costs 8.1, where a normal density costs 50. The
natural logarithms of all scored numbers that are random draws (not the points of Table 1) are added as if the numbers
were independent. They are not quite independent, because Table 4 repeats rows of Tables 2 and 3. Small differences, of
a few units, are therefore meaningless.

Results are kept in papers/<id>/search.csv, one line for each setting, stage, network, tables and number of seeds.
Existing results are not computed again (--fresh runs everything). With the default options none are missing. The script
writes its table between the `search` marks in docs/papers/<id>.md.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from celltrain.papers import reproduce
from celltrain.papers.paper import load
from celltrain.papers.score import Scored
from paper_page import ROOT, fill, grid

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FLOOR = 0.01
FREEDOM = 4
PRINTED_UNIT = 0.01
TABLES = ["2", "3", "4", "5", "6"]
# These two tables contain every policy, buffer size and number of sources once. The other tables vary the parameters of
# two policies.
SCREENED = ["2", "3"]
DEFAULTS = "the defaults"
COLUMNS = [
    "stage",
    "setting",
    "overrides",
    "network",
    "tables",
    "seeds",
    "numbers",
    "log_likelihood",
    "inside",
    "efficiency_error",
    "efficiency_bias",
    "fairness_error",
    "fairness_bias",
]


@dataclass(frozen=True)
class Setting:
    """Values that are set in every scenario, and a name for the set of values."""

    text: str
    overrides: dict[str, Any] = field(hash=False)

    def __add__(self, other: Setting) -> Setting:
        return Setting(f"{self.text}; {other.text}", {**self.overrides, **other.overrides})

    def compatible(self, other: Setting) -> bool:
        """Returns whether two settings have no key in common."""
        return not self.overrides.keys() & other.overrides.keys()


Row = dict[str, str]


class Search:
    """Runs settings and saves their results in search.csv."""

    def __init__(self, paper: str, jobs: int | None, *, fresh: bool) -> None:
        self.paper = paper
        self.jobs = jobs
        self.path: Path = ROOT / "papers" / paper / "search.csv"
        self.rows: list[Row] = []
        self.new = 0
        if self.path.exists() and not fresh:
            with self.path.open(encoding="utf-8", newline="") as lines:
                self.rows = list(csv.DictReader(lines))

    def settings(self) -> list[Setting]:
        """Returns every setting that is tried on its own, starting with the defaults."""
        folder = self.path.parent
        extra = tomllib.loads((folder / "search.toml").read_text(encoding="utf-8"))["settings"]
        return [
            Setting(DEFAULTS, {}),
            *(Setting(entry["text"], entry["set"]) for entry in extra),
            *(Setting(choice.text, choice.overrides) for choice in load(self.paper).choices),
        ]

    def judge(self, stage: str, setting: Setting, network: str, tables: Sequence[str], seeds: int) -> Row:
        """Returns the saved result for a setting. If none is saved, runs the setting."""
        key = {
            "stage": stage,
            "setting": setting.text,
            "overrides": json.dumps(setting.overrides),
            "network": network,
            "tables": " ".join(tables),
            "seeds": str(seeds),
        }
        for row in self.rows:
            if key.items() <= row.items():
                return row
        started = time.monotonic()
        reproduction = reproduce(
            self.paper,
            tables=[table for table in tables if self.printed(table, network)],
            seeds=seeds,
            jobs=self.jobs,
            networks=[network],
            overrides=setting.overrides,
        )
        if reproduction.interrupted:
            raise KeyboardInterrupt
        row = {**key, **measures(reproduction.numbers)}
        self.rows.append(row)
        self.new += 1
        with self.path.open("w", encoding="utf-8", newline="") as lines:
            writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        took = f"{time.monotonic() - started:.0f} s"
        print(f"{stage} {network} {row['log_likelihood']:>8} {row['inside']:>3} of {row['numbers']} {took:>6}  "
              f"{setting.text}", flush=True)  # fmt: skip
        return row

    def printed(self, table: str, network: str) -> bool:
        """Returns whether a table of the paper has numbers for a network."""
        return any(number.network == network for number in load(self.paper).numbers(tables=[table]))


def log_likelihood(scored: Scored) -> float:
    """Returns the log-likelihood of one printed number; see the module docstring."""
    scale = math.hypot(scored.sd or 0.0, FLOOR)
    z = (scored.printed - scored.mean) / scale
    constant = math.lgamma((FREEDOM + 1) / 2) - math.lgamma(FREEDOM / 2) - math.log(FREEDOM * math.pi) / 2
    return constant - (FREEDOM + 1) / 2 * math.log1p(z * z / FREEDOM) + math.log(PRINTED_UNIT / scale)


def measures(numbers: Sequence[Scored]) -> Row:
    """Returns the measures of a reproduction as saved in search.csv."""
    counted = [number for number in numbers if number.number.scored and not number.number.point]
    row = {
        "numbers": str(len(counted)),
        "log_likelihood": f"{sum(map(log_likelihood, counted)):.1f}",
        "inside": str(sum(bool(number.inside) for number in counted)),
    }
    for quantity in ("efficiency", "fairness"):
        errors = [number.mean - number.printed for number in counted if number.number.quantity.name == quantity]
        row[f"{quantity}_error"] = f"{np.mean(np.abs(errors)):.4f}"
        row[f"{quantity}_bias"] = f"{np.mean(errors):+.4f}"
    return row


def value(row: Row) -> float:
    """Returns a row's log-likelihood."""
    return float(row["log_likelihood"])


def main() -> int:
    """Searches, saves the results, and fills the page."""
    parser = argparse.ArgumentParser(
        description="Search for the open choices of a paper that fit its WAN results best."
    )
    parser.add_argument("paper", nargs="?", default="af-96-1269", help="id of the paper (af-96-1269)")
    parser.add_argument(
        "--screen-seeds", type=int, default=3, help="number of seeds in the stages `screen` and `combine` (default: 3)"
    )
    parser.add_argument(
        "--confirm-seeds", type=int, default=4, help="number of seeds in the stage confirm (default: 4)"
    )
    parser.add_argument("--promising", type=int, default=3, help="number of settings to combine (default: 3)")
    parser.add_argument(
        "--confirmed",
        type=int,
        default=1,
        help="number of settings to confirm in addition to the defaults (default: 1)",
    )
    parser.add_argument(
        "--confirm",
        action="append",
        default=[],
        metavar="TEXT",
        help="setting to confirm first; write A; B for two settings at once",
    )
    parser.add_argument("--jobs", type=int, help="number of threads; by default, one for each core")
    parser.add_argument("--report", action="store_true", help="run nothing; fill the page with the stored results")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    search = Search(arguments.paper, arguments.jobs, fresh=arguments.fresh)
    try:
        if not arguments.report:
            run(search, arguments)
            print(f"{search.new or 'nothing'} new, {len(search.rows)} results in {search.path}")
    except KeyboardInterrupt:
        print(f"interrupted; {search.path} keeps finished runs", file=sys.stderr)
        return 130
    page: Path = ROOT / "docs" / "papers" / f"{arguments.paper}.md"
    content = report(search.rows)
    fill(page, "search", content)
    return 0


def run(search: Search, arguments: argparse.Namespace) -> None:
    """Confirms the settings that are confirmed in any case, and then runs all three stages."""
    settings = search.settings()
    named = {setting.text: setting for setting in settings}
    for text in arguments.confirm:
        first, *rest = (named[part] for part in text.split("; "))
        confirm(search, sum(rest, first), arguments.confirm_seeds)

    def screen(stage: str, setting: Setting) -> float:
        return value(search.judge(stage, setting, "WAN", SCREENED, arguments.screen_seeds))

    alone = {setting: screen("screen", setting) for setting in settings}
    (defaults, reference), *others = alone.items()
    better = sorted((setting for setting, score in others if score > reference), key=lambda s: -alone[s])
    promising = better[: arguments.promising]
    pairs = {
        first + second: screen("combine", first + second)
        for first, second in itertools.combinations(promising, 2)
        if first.compatible(second)
    }
    triples: dict[Setting, float] = {}
    if pairs:
        best = max(pairs, key=lambda setting: pairs[setting])
        triples = {best + third: screen("combine", best + third) for third in promising if best.compatible(third)}
    everything = {**dict(others), **pairs, **triples}
    final = [defaults, *sorted(everything, key=lambda setting: -everything[setting])[: arguments.confirmed]]
    for setting in final:
        confirm(search, setting, arguments.confirm_seeds)


def confirm(search: Search, setting: Setting, seeds: int) -> None:
    """Runs all rows of both networks."""
    for network in ("WAN", "LAN"):
        search.judge("confirm", setting, network, TABLES, seeds)


def report(rows: Sequence[Row]) -> str:
    """Returns two Markdown tables: the settings confirmed on both networks, then all settings."""
    confirmed = {(row["setting"], row["network"]): row for row in rows if row["stage"] == "confirm"}
    screened = [row for row in rows if row["stage"] != "confirm" and row["tables"] == " ".join(SCREENED)]
    references = [confirmed[DEFAULTS, network] for network in ("WAN", "LAN")]
    lines = [
        [name(confirmed[setting, "WAN"])]
        + [c for reference in references for c in cells(confirmed[setting, reference["network"]], reference)]
        for setting in dict.fromkeys(setting for setting, _ in confirmed)
        if (setting, "WAN") in confirmed and (setting, "LAN") in confirmed
    ]
    seeds = references[0]["seeds"]
    heads = ["setting"] + [
        f"{network} {head}"
        for network in ("WAN", "LAN")
        for head in ("log-likelihood", "inside", "error of efficiency", "error of fairness")
    ]
    parts = [f"These settings were confirmed with {seeds} seeds on all rows:", grid(heads, lines, left=("setting",))]
    reference = screened[0]
    ordered = sorted(screened, key=value, reverse=True)
    parts += [
        f"These settings were tried with {reference['seeds']} seeds on the WAN rows of Tables {' and '.join(SCREENED)}:",
        grid(
            ["setting", "log-likelihood", "inside", "error of efficiency", "mean difference", "error of fairness"],
            [
                [name(row), *cells(row, reference)[:3], row["efficiency_bias"], cells(row, reference)[3]]
                for row in ordered
            ],
            left=("setting",),
        ),
    ]
    return "\n\n".join(parts)


def cells(row: Row, reference: Row) -> list[str]:
    """Returns the log-likelihood relative to the defaults, the numbers inside, and both errors."""
    gain = "0" if row is reference else f"{value(row) - value(reference):+.0f}"
    inside = f"{row['inside']} of {row['numbers']}"
    return [gain, inside, f"{float(row['efficiency_error']):.3f}", f"{float(row['fairness_error']):.3f}"]


def name(row: Row) -> str:
    """Returns a setting's name, in bold for the defaults."""
    return f"**{row['setting']}**" if row["setting"] == DEFAULTS else row["setting"]


if __name__ == "__main__":
    sys.exit(main())
