"""Writes the output of `joint_search.py --report`: papers/<id>/joint.csv and the page's `joint` tables.

Each line of the CSV is a configuration: its answers as digits in the order of joint.toml ("0" is the default), the
number of stages it reached, and its score in the last of them by network or quantity. "exact" is the number of exact
lock-step rows, if the paper has such rows. Confirmed configurations also have a score with new seeds on all rows. Without a
store, the page is made from the CSV alone. `--compare` writes compared.csv and another table of the page.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from celltrain.model.files import replace
from celltrain.papers.score import SLACK, Scored
from joint_runs import REFUSED, Runs, Scores, Space, log_likelihood
from joint_search import CONFIRMED, REFERENCE, Search
from paper_page import ROOT, fill, grid, listed

Row = dict[str, str]
#: Keys of a number in compared.csv.
KEYS = ("network", "sources", "buffer_cells", "policy", "z", "r")


def report(space: Space, store: Path) -> int:
    """Writes joint.csv from the store, if it exists, and the page from joint.csv."""
    table = ROOT / "papers" / space.paper_id / "joint.csv"
    if store.exists():
        runs = Runs(space, store)
        rows = lines(space, runs)
        runs.close()
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        replace(table, text.getvalue())
        print(f"wrote {table}")
    with table.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    fill(ROOT / "docs" / "papers" / f"{space.paper_id}.md", "joint", tables(space, rows))
    return 0


def lines(space: Space, runs: Runs) -> list[Row]:
    """Returns a line for each configuration, in the order of the search. The first line is for the defaults."""
    search = Search(runs, "all", None, 1)
    scores = Scores(runs, REFERENCE)
    defaults, _ = search.examine(space.default, run=False)
    last = len(space.stages) - 1
    groups = list(scores.screening(space.default, last) or {})
    numbers, confirmed = confirmed_on(space, runs)
    found = []
    for configuration in dict.fromkeys([space.default, *runs.asked]):
        values, _ = search.examine(configuration, run=False)
        reached = len(values)
        row = {"answers": configuration, "stages": str(reached)}
        parts = scores.screening(configuration, reached - 1) if reached and values[-1] > REFUSED else None
        row["gain"] = f"{values[-1] - defaults[reached - 1]:.3f}" if parts else ""
        row |= {group: f"{parts[group]:.3f}" if parts and group in parts else "" for group in groups}
        if space.lock_step:
            exact = scores.exact(configuration, range(1, 2))
            row["exact"] = "" if exact is None else f"{exact:.0f}"
        final = scores.final(configuration, space.confirmation, numbers) if configuration in confirmed else None
        row["fresh numbers"] = str(len(scores.chaotic(numbers))) if final else ""
        row |= {f"{group} fresh": f"{final[group]:.3f}" if final else "" for group in groups}
        if space.measure == "likelihood":
            for group in groups:
                inside = scores.inside(configuration, space.confirmation, group, numbers) if final else None
                row[f"{group} inside"] = f"{inside[0]} of {inside[1]}" if inside else ""
        if space.lock_step:
            fresh = scores.exact(configuration, space.confirmation) if final else None
            row["exact fresh"] = "" if fresh is None else f"{fresh:.1f}"
        found.append(row)
    return found


def confirmed_on(space: Space, runs: Runs) -> tuple[Sequence[int], set[str]]:
    """Returns the numbers used for confirmation (all, or only the last stage's), and the confirmed configurations."""
    for numbers in (range(len(space.numbers)), space.stages[-1].numbers):
        rows = {space.numbers[number].configuration for number in numbers}
        needed = {(row, seed) for row in rows for seed in space.confirmation}
        confirmed = {one for one in (space.default, *runs.asked) if all((one, *run) in runs.figures for run in needed)}
        if space.default in confirmed and len(confirmed) > 1:
            return numbers, confirmed
    return (), set()


def compare(space: Space, runs: Runs, configurations: Sequence[str], seeds: Sequence[int]) -> None:
    """Writes every number of some configurations to papers/<id>/compared.csv, and their scores to the page."""
    found = []
    for configuration in configurations:
        for place, number in enumerate(space.numbers):
            values = runs.values(configuration, place, seeds)
            assert values is not None, "these numbers have results"
            found.append(
                {
                    "answers": configuration,
                    "seeds": str(len(seeds)),
                    "table": number.table,
                    **{key: str(number.keys.get(key, "")) for key in KEYS},
                    "quantity": number.quantity.name,
                    "published": str(number.published),
                    "mean": f"{np.mean(values):.4f}",
                    "sd": f"{np.std(values, ddof=1):.4f}",
                    "low": f"{min(values):.6f}",
                    "high": f"{max(values):.6f}",
                }
            )
    text = io.StringIO()
    writer = csv.DictWriter(text, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    table = ROOT / "papers" / space.paper_id / "compared.csv"
    replace(table, text.getvalue())
    print(f"wrote {table}")
    fill(ROOT / "docs" / "papers" / f"{space.paper_id}.md", "compared", compared(space, found))


def compared(space: Space, rows: Sequence[Row]) -> str:
    """Returns a line for each configuration in compared.csv, the defaults first."""
    heads = ["configuration"]
    for network in (groups := sorted(space.networks)):
        heads += [f"{network} log-likelihood", f"{network} inside"]
    heads.append("rows that all seeds reproduce exactly")
    body = []
    for answers in dict.fromkeys(row["answers"] for row in rows):
        own = [row for row in rows if row["answers"] == answers]
        line = [name(space, answers)]
        for network in groups:
            chaotic = [p for p, n in enumerate(space.numbers) if n.network == network and p not in space.lock_step]
            scored = [
                Scored(
                    number=space.numbers[place],
                    values=(float(own[place]["low"]), float(own[place]["high"])),
                    seeds=(1, 2),
                    requested=2,
                )
                for place in chaotic
            ]
            fit = sum(
                log_likelihood(*(float(own[place][column]) for column in ("published", "mean", "sd")))
                for place in chaotic
            )
            line += [f"{fit:.0f}", f"{sum(bool(one.inside) for one in scored)} of {len(scored)}"]
        exact: dict[int, bool] = {}
        for place, tolerance in space.lock_step.items():
            published, low, high = (float(own[place][column]) for column in ("published", "low", "high"))
            near = max(abs(low - published), abs(high - published)) <= tolerance + SLACK
            at = space.numbers[place].configuration
            exact[at] = exact.get(at, True) and near
        body.append([*line, str(sum(exact.values()))])
    return f"Fresh seeds 101 to {100 + int(rows[0]['seeds'])} on all tables give:\n\n" + grid(
        heads, body, left=("configuration",)
    )


def tables(space: Space, rows: Sequence[Row]) -> str:
    """Returns the tables of the search's progress, the best configurations, and every answer's effect."""
    groups = [name for name in rows[0] if f"{name} fresh" in rows[0] and name != "exact"]
    stages = len(space.stages)
    reached = [sum(int(row["stages"]) >= place for row in rows) for place in range(2, stages + 1)]
    default = rows[0]
    parts = [
        f"Of {len(rows)} configurations, {listed(list(map(str, reached)))} reached stages "
        f"{listed(list(map(str, range(2, stages + 1))))} (version {space.version})."
    ]
    if space.lock_step:
        parts += [
            f"Exact lock-step rows by {space.questions[0].name}, with seed 1:",
            in_step_by_first_answer(space, rows),
        ]
    if confirmed := [row for row in rows if row["fresh numbers"]]:
        order = sorted(confirmed, key=lambda row: -total(space, row, [f"{group} fresh" for group in groups]))
        heads = ["configuration", *(word(space, group) for group in groups)]
        if space.measure == "likelihood":
            heads += [f"{group} inside" for group in groups]
        heads += ["exact lock-step rows"] if space.lock_step else []
        body = [
            [name(space, row["answers"])]
            + [difference(space, row, default, f"{group} fresh") for group in groups]
            + ([row[f"{group} inside"] for group in groups] if space.measure == "likelihood" else [])
            + ([row["exact fresh"]] if space.lock_step else [])
            for row in order[: CONFIRMED + 1]
        ]
        parts += [
            f"These are the results for {default['fresh numbers']} numbers "
            f"with the fresh seeds {space.confirmation[0]} {'and' if len(space.confirmation) == 2 else 'to'} "
            f"{space.confirmation[-1]}:",
            grid(heads, body, left=("configuration",)),
        ]
    finished = [row for row in rows if int(row["stages"]) == stages and row[groups[0]]]
    order = sorted(finished, key=lambda row: (-total(space, row, groups), len(space.answers(row["answers"]))))
    distinct = list({tuple(row[group] for group in groups): row for row in reversed(order)}.values())[::-1]
    in_step = ["exact lock-step rows"] if space.lock_step else []
    body = [
        [name(space, row["answers"])]
        + [difference(space, row, default, group) for group in groups]
        + [row["exact"] for _ in in_step]
        for row in [*distinct[:CONFIRMED], default]
    ]
    parts += [
        f"These are the best of the {len(finished)} configurations that were run on all screened rows with seed 1, "
        "without equal ones:",
        grid(["configuration", *(word(space, group) for group in groups), *in_step], body, left=("configuration",)),
        "The next table gives, for every answer, the number of configurations that tried it, its "
        + ("exact lock-step rows, " if space.lock_step else "")
        + "last stage and gain alone, and the best configuration with it:",
        effects(space, rows, groups),
    ]
    return "\n\n".join(parts)


def in_step_by_first_answer(space: Space, rows: Sequence[Row]) -> str:
    """Returns a table of the exact lock-step rows for each answer to the first question."""
    of = len({space.numbers[place].configuration for place in space.lock_step})
    body = []
    for answer, declared in enumerate(space.questions[0].answers):
        exact = [int(row["exact"]) for row in rows if row["answers"][0] == str(answer) and row["exact"]]
        if exact:
            most = [f"{exact.count(of - lost)}" for lost in range(3)]
            body.append([declared["text"], str(len(exact)), f"{sum(exact) / len(exact):.1f}", *most])
    heads = [space.questions[0].name, "configurations", "mean", *(f"with {of - lost}" for lost in range(3))]
    return grid(heads, body, left=(space.questions[0].name,))


def effects(space: Space, rows: Sequence[Row], groups: Sequence[str]) -> str:
    """Returns a table of all answers except the defaults."""
    stage = len(space.stages)
    default = rows[0]
    by_answers = {row["answers"]: row for row in rows}
    body = []
    for place, question in enumerate(space.questions):
        for answer in range(1, len(question.answers)):
            alone = by_answers.get(space.with_answer(place, answer))
            having = [row for row in rows if row["answers"][place] == str(answer)]
            finished = [row for row in having if int(row["stages"]) == stage and row[groups[0]]]
            best = max(finished, key=lambda row: total(space, row, groups), default=None)
            body.append(
                [
                    question.id,
                    question.text(answer),
                    str(len(having)),
                    *(["" if alone is None else alone["exact"]] if space.lock_step else []),
                    *(("", "") if alone is None else gain(space, alone)),
                ]
                + ["" if best is None else difference(space, best, default, group) for group in groups]
            )
    in_step = ["exact"] if space.lock_step else []
    heads = ["id", "answer", "tried", *in_step, "stage", "alone", *(f"best: {word(space, group)}" for group in groups)]
    return grid(heads, body, left=("id", "answer"))


def gain(space: Space, alone: Row) -> tuple[str, str]:
    """Returns the last stage that a configuration reached, and its gain over the defaults in that stage."""
    if not alone["gain"]:
        return alone["stages"], "no result"
    if space.lock_step and alone["stages"] == "1":
        return "1", ""
    return alone["stages"], f"{float(alone['gain']):+.{0 if space.measure == 'likelihood' else 3}f}"


def total(space: Space, row: Row, groups: Sequence[str]) -> float:
    """Returns the score that the search tries to maximise."""
    if space.measure == "likelihood":
        return sum(float(row[group]) for group in groups)
    return sum((2 if group.startswith("goodput") else 1) * float(row[group]) for group in groups)


def word(space: Space, group: str) -> str:
    """Returns the column heading of a network or a quantity."""
    if space.measure == "likelihood":
        return f"{group} log-likelihood"
    return {"goodput_mbps": "error of R", "delay_ms": "error of D"}[group]


def difference(space: Space, row: Row, default: Row, column: str) -> str:
    """Formats a likelihood relative to the defaults, or an absolute error."""
    if not row[column]:
        return ""
    if space.measure == "likelihood":
        return "0" if row is default else f"{float(row[column]) - float(default[column]):+.0f}"
    return f"{-float(row[column]):.1%}"


def name(space: Space, answers: str) -> str:
    """Returns a configuration in words, with the defaults in bold."""
    text = space.text(answers)
    return f"**{text}**" if answers == space.default else text
