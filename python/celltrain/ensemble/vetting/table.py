"""The answer of a vetting as printed by the command line, and rankings that depend on the scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from celltrain.drawing.pages.words import UNDEFINED, counted, estimated
from celltrain.ensemble.vetting import standard
from celltrain.model.grids import Block, Grid, Line
from celltrain.text import shown as escaped

#: Metrics in words.
WORDS = {
    "efficiency": "efficiency",
    "fairness": "fairness",
    "max_queue_cells": "largest queue (cells)",
    "timeouts": "timeouts",
    "least_goodput_mbps": "least goodput (Mb/s)",
}
#: Label of the means over all scenarios.
ALL = "all scenarios"


def blocks(answer: Mapping[str, Any], *, brief: bool = False) -> Iterator[Block]:
    """An answer in lines and tables; `brief`: failed checks, and the means over all scenarios only."""
    seeds, last = answer["seeds"], answer["first_seed"] + answer["seeds"] - 1
    said = f"seeds {answer['first_seed']} to {last}" if seeds > 1 else f"seed {last}"
    for remark in answer["remarks"]:
        yield Line(text=remark, style="bold")
    yield Line(text=f"{answer['policy']}: {said} in {', '.join(answer['scenarios'])}", style="bold", is_note=True)
    named: dict[str, list[str]] = {}
    for scenario, tcp in answer["tcp"].items():
        named.setdefault(tcp, []).append(scenario)
    for tcp, scenarios in named.items():
        text = f"TCP: {tcp}" if len(named) == 1 else f"TCP of {', '.join(scenarios)}: {tcp}"
        yield Line(text=text, is_note=True)
    checks = answer["conformance"]
    shown = [check for check in checks if not (brief and check["holds"])]
    if shown:
        grid = Grid(heads=["check", "holds", "evidence"], left=(0, 1, 2))
        for check in shown:
            grid.add_row(check["check"].replace("_", " "), _holds(check), check["evidence"])
        yield grid
    if brief:
        yield Line(text=f"{sum(check['holds'] for check in checks)} of {len(checks)} checks hold")
    mine, *others = heads(answer)
    grid = Grid(heads=["metric", "TCP", mine, *others], left=(0, 1), keys=2)
    before = None
    for name, *cells in rows(answer):
        scenario, _, metric = name.rpartition(".")
        if brief and scenario:
            continue
        if (label := f"{scenario}, {standard.duration_of(scenario)}" if scenario else ALL) != before:
            grid.add_group(label)
            before = label
        grid.add_row(WORDS.get(metric, metric), standard.tcp_of(scenario) if scenario else "", *cells)
    if brief:
        grid.heads, grid.left, grid.keys = ["metric", mine, *others], (0,), 1
        grid.rows = [[first, *rest] for first, _, *rest in grid.rows]
    yield grid
    for key, what in (("ranking", "TCP"), ("ranking_by_clocks", "clocks")):
        if found := answer[key]:
            more = f"; --json lists {counted(len(found) - 1, 'more reversed difference')}" if len(found) > 1 else ""
            yield Line(text=f"The ranking depends on the {what}: {found[0]}{more}.", style="bold")
    if seeds > 1:
        yield Line(text="\u00b1: half the 95 % interval of the mean (Student's t over the seeds)", is_note=True)
        if others:
            yield Line(
                text=f"* differs significantly from {mine} (95 % interval of the paired differences; see --json)",
                is_note=True,
            )


def _holds(check: Mapping[str, Any]) -> str:
    """Returns the verdict of a check in a word; a policy that sends no frame shows nothing about whole frames."""
    if check["check"] == "whole_frames" and check["evidence"].startswith("0 frames sent,"):
        return "nothing sent"
    return "yes" if check["holds"] else "NO"


def reversals(
    policy: str,
    scenarios: Sequence[str],
    differences: Mapping[str, Mapping[str, Any]],
    pairs: Sequence[Mapping[str, str]],
) -> list[str]:
    """Returns a text for each measure in which the ranking of this policy and another one depends on the scenario.

    The scenarios of a pair differ in the TCP alone, or in clocks and starts alone. Both differences must be significant, with
    opposite signs: a difference that is significant once does not show that the scenarios differ.

    Args:
        policy: Name of this policy.
        scenarios: Scenarios of the set that were run.
        differences: By other policy and metric, what this policy has more.
        pairs: Pairs of scenarios, each scenario with words for its TCP or clocks.
    """
    found = []
    for pair in pairs:
        if not set(pair) <= set(scenarios):
            continue
        for beside, of in differences.items():
            for share in standard.SHARES:
                first, second = (_sign(of[f"{scenario}.{share}"]) for scenario in pair)
                if first * second < 0:
                    one, other = (f"{words} ({scenario})" for scenario, words in pair.items())
                    ranks = ("higher", "lower") if first > 0 else ("lower", "higher")
                    found.append(
                        f"compared with {beside}, the {share} of {policy} is {ranks[0]} {one} and {ranks[1]} {other}"
                    )
    return found


def _sign(difference: Mapping[str, float | None]) -> int:
    """1 or -1 for a significant difference, else 0."""
    low, high = difference["low"], difference["high"]
    if low is None or high is None:
        return 0
    return 1 if low > 0 else -1 if high < 0 else 0


def column_name(name: str, others: Sequence[str]) -> str:
    """Returns the name of this policy in a comparison, marked if another policy has the same name."""
    return f"this {name}" if name in others else name


def heads(answer: Mapping[str, Any]) -> list[str]:
    """Returns the headings of the policies' columns: this policy, and each other one."""
    others = list(answer["beside"])
    return [column_name(answer["policy"], others), *others]


def rows(answer: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yields the rows of the table: a metric, the mean of this policy, and the mean of each other policy.

    A star marks a significant difference: the 95 % interval of the differences, paired by seed, excludes zero.
    """
    for name, own in answer["metrics"].items():
        cells = [_cell(own)]
        for other, theirs in answer["beside"].items():
            more = answer["differences"][other][name]
            beyond = more["low"] is not None and (more["low"] > 0 or more["high"] < 0)
            cells.append(f"{_cell(theirs[name])}{' *' if beyond else '  '}")
        yield [name, *cells]


def _cell(estimate: Mapping[str, float | None]) -> str:
    mean, high = estimate["mean"], estimate["high"]
    return UNDEFINED if mean is None else estimated(mean, float("nan") if high is None else high - mean)


def markdown(answer: Mapping[str, Any]) -> str:
    """Returns the table as Markdown."""
    columns = [re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", escaped(head)) for head in heads(answer)]
    lines = [["metric", *columns], ["---", *("---:" for _ in columns)], *rows(answer)]
    return "\n".join(f"| {' | '.join(cell.strip() for cell in line)} |" for line in lines)
