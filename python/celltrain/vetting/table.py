"""The answer of a vetting as the command line prints it, and what it says about the TCP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from celltrain.grids import Block, Grid, Line
from celltrain.pages.words import UNDEFINED, counted, estimated
from celltrain.vetting import standard

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
    yield Line(text=f"{answer['policy']}: {said} in {', '.join(answer['scenarios'])}", style="bold")
    named: dict[str, list[str]] = {}
    for scenario, tcp in answer["tcp"].items():
        named.setdefault(tcp, []).append(scenario)
    for tcp, scenarios in named.items():
        yield Line(text=f"TCP: {tcp}" if len(named) == 1 else f"TCP of {', '.join(scenarios)}: {tcp}")
    checks = answer["conformance"]
    shown = [check for check in checks if not (brief and check["holds"])]
    if shown:
        grid = Grid(heads=["check", "holds", "evidence"], left=(0, 1, 2))
        for check in shown:
            grid.add_row(check["check"].replace("_", " "), "yes" if check["holds"] else "NO", check["evidence"])
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
        if (label := scenario or ALL) != before:
            grid.add_group(label)
            before = label
        grid.add_row(WORDS.get(metric, metric), standard.tcp_of(scenario) if scenario else "", *cells)
    if brief:
        grid.heads, grid.left, grid.keys = ["metric", mine, *others], (0,), 1
        grid.rows = [[first, *rest] for first, _, *rest in grid.rows]
    yield grid
    if answer["ranking"]:
        yield Line(text=answer["ranking"], style="bold")
    if seeds > 1:
        yield Line(text="\u00b1: half the 95 % interval of the mean (Student's t over the seeds)")
        if others:
            yield Line(
                text=f"* differs significantly from {mine} (95 % interval of the paired differences; see --json)"
            )


def ranking(policy: str, scenarios: Sequence[str], differences: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns one sentence if the ranking of the policies depends on the TCP, else an empty text.

    Scenarios of the set that differ in the TCP alone are compared: a significant difference in one of them that is reversed, or
    not significant, in the other.
    """
    opposite: list[str] = []
    lost: list[str] = []
    for pair in standard.PAIRS:
        if not set(pair) <= set(scenarios):
            continue
        for beside, of in differences.items():
            for share in standard.SHARES:
                first, second = (_sign(of[f"{scenario}.{share}"]) for scenario in pair)
                if first == second:
                    continue
                one, other = (f"with {standard.tcp_of(scenario)} ({scenario})" for scenario in pair)
                text = f"compared with {beside}, the {share} of {policy} is {_WORDS[first]} {one} and {_WORDS[second]} {other}"
                (opposite if first == -second else lost).append(text)
    found = [*opposite, *lost]
    if not found:
        return ""
    more = f"; {counted(len(found) - 1, 'more such difference')} in --json" if len(found) > 1 else ""
    return f"The ranking depends on the TCP: {found[0]}{more}."


_WORDS = {1: "higher", -1: "lower", 0: "not significantly different"}


def _sign(difference: Mapping[str, float | None]) -> int:
    """1 or -1 for a significant difference, else 0."""
    low, high = difference["low"], difference["high"]
    if low is None or high is None:
        return 0
    return 1 if low > 0 else -1 if high < 0 else 0


def beside_others(name: str, others: Sequence[str]) -> str:
    """What a policy is called beside others: one of them may have its name."""
    return f"this {name}" if name in others else name


def heads(answer: Mapping[str, Any]) -> list[str]:
    """What stands above the columns of the table: this policy, and each other one."""
    others = list(answer["beside"])
    return [beside_others(answer["policy"], others), *others]


def rows(answer: Mapping[str, Any]) -> Iterator[list[str]]:
    """The table of an answer: a metric, this policy's mean, and that of each other one.

    A star stands where the 95 % interval of what this one has more, paired by seed, leaves zero out.
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
