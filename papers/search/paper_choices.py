"""Measures the effect of a paper's open choices: runs some of its tables with each declared alternative.

    python scripts/campaign.py choices af-96-1269 --table 2 --table 3 --seeds 10 --common A-20=drifting

Prints a Markdown table and fills the page docs/papers/<id>.md between `<!-- choices:begin -->` and `<!-- choices:end
-->`. The alternatives are in the paper's paper.toml under `[[choices]]`. With `--common`, every alternative is run with
this answer to another question, too, so that seeds differ even if the alternative leaves nothing to chance. The table
then has the defaults twice, with and without it.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from celltrain.drawing.words import counted
from celltrain.papers import reproduce
from celltrain.papers.paper import Choice, load
from celltrain.papers.score import Scored, group_scores
from paper_page import ROOT, figure, fill, grid


def main() -> int:
    """Runs each alternative and fills the page."""
    parser = argparse.ArgumentParser(description="Run tables of a paper with each alternative for its open choices.")
    parser.add_argument("paper", help="such as af-96-1269")
    parser.add_argument("--table", action="append", required=True, help="a table to run; the option may be repeated")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds for each scenario (default: 10)")
    parser.add_argument("--common", action="append", default=[], help="an answer for every setting, as for --choice")
    parser.add_argument("--jobs", type=int, help="number of threads (default: one for each core)")
    arguments = parser.parse_args()
    paper = load(arguments.paper, choices=arguments.common)
    common = paper.overrides
    settings = [Choice(id="", text="**the defaults**", overrides={})]
    if common:
        settings.append(
            Choice(id="", text=f"**the defaults**, with {' and '.join(arguments.common)}", overrides=common)
        )
    settings += [
        choice.model_copy(update={"overrides": {**common, **choice.overrides}})
        for choice in paper.choices
        if choice not in paper.chosen
    ]
    rows: list[list[str]] = []
    heads: list[str] = []
    for choice in settings:
        reproduction = reproduce(
            arguments.paper,
            tables=arguments.table,
            seeds=arguments.seeds,
            jobs=arguments.jobs,
            overrides=choice.overrides,
        )
        if reproduction.interrupted:
            return 130
        columns = measures(reproduction.numbers)
        heads = ["id", "choice", "inside", *columns]
        summary = reproduction.summary
        rows.append([choice.id, choice.text, f"{summary['inside']} of {summary['scored']}", *columns.values()])
        print(" | ".join(rows[-1]), flush=True)
    content = f"Every setting has {counted(arguments.seeds, 'seed')}.\n\n{grid(heads, rows, left=('id', 'choice'))}"
    fill(ROOT / "docs" / "papers" / f"{arguments.paper}.md", "choices", content)
    return 0


def measures(numbers: list[Scored]) -> dict[str, str]:
    """Returns the mean for each network and quantity, and the mean distance between simulated and printed values."""
    groups: dict[str, list[Scored]] = {}
    for number in numbers:
        groups.setdefault(f"{number.number.network or ''} {number.number.quantity.name}".strip(), []).append(number)
    columns = {}
    for name, members in groups.items():
        scores: dict[str, Any] = group_scores(members)
        mean = sum(number.mean for number in members) / len(members)
        columns[name] = f"{mean:.3f} (error {figure(scores['mean_abs_error'], 3)})"
    return columns


if __name__ == "__main__":
    sys.exit(main())
