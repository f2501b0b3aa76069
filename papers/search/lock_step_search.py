"""Counts the exact lock-step rows of a paper with each answer to an open question, under every order of ties.

    python scripts/campaign.py lock-step-search

The answers are those of papers/<id>/joint.toml, each alone: the questions of the joint search, and those that the
lock-step rows exclude. An answer is excluded if it loses more than one row with every order of ties except the random
one. The script fails if an answer is in the wrong list. It fills the page between `<!-- lock-step:begin -->` and
`<!-- lock-step:end -->`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from joint_runs import Runs, Scores, Space
from joint_search import ROWS_LOST
from paper_page import ROOT, fill, grid

PAPER = "af-96-1269"
FIRST = "**the defaults**"


def main() -> int:
    """Runs all answers and fills the page."""
    parser = argparse.ArgumentParser(description="Count the exact lock-step rows with each answer to a question.")
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")
    jobs: int = parser.parse_args().jobs
    searched = len(Space(PAPER).questions)
    space = Space(PAPER, excluded=True)
    runs = Runs(space, ROOT / "out" / "joint" / f"{PAPER}-lock-step.sqlite")
    exact = {one: counts(runs, one, jobs) for one in answers(space)}
    runs.close()
    lists = {one: any(place >= searched for place, digit in enumerate(one) if digit != "0") for one in exact}
    wrong = [space.text(one) for one in exact if excluded(exact[one], exact[space.default]) != lists[one]]
    fill(ROOT / "docs" / "papers" / f"{PAPER}.md", "lock-step", table(space, exact, lists))
    if wrong:
        sys.exit(f"in the wrong list: {', '.join(wrong)}")
    return 0


def answers(space: Space) -> list[str]:
    """Returns the defaults and every configuration with one other answer, except orders of ties and WAN settings."""
    alone = [one for one in space.alone() if one[0] == "0"]
    return [space.default, *(one for one in alone if space.overrides(one, "LAN") != space.common)]


def counts(runs: Runs, configuration: str, jobs: int) -> dict[str, int]:
    """Returns the number of exact rows by order of ties, with seed 1, in all orders except the random one."""
    space = runs.space
    scores = Scores(runs, range(1, 7))
    found = {}
    for order, answer in enumerate(space.questions[0].answers):
        if settings := answer.get("set"):
            one = space.with_answer(0, order, configuration)
            runs.run(one, space.stages[0].numbers, [1], jobs)
            [name] = settings.values()
            found[name] = round(scores.exact(one, [1]) or 0)
    return found


def excluded(exact: Mapping[str, int], default: Mapping[str, int]) -> bool:
    """Returns whether an answer loses more than one row with every order of ties."""
    return all(exact[order] < default[order] - ROWS_LOST for order in default)


def table(space: Space, exact: Mapping[str, Mapping[str, int]], lists: Mapping[str, bool]) -> str:
    """Returns a line for each answer."""
    orders = list(exact[space.default])
    rows = []
    for one, found in exact.items():
        head = next(([question.id, question.text(answer)] for question, answer in space.answers(one)), ["", FIRST])
        verdict = "" if one == space.default else "excluded" if lists[one] else "searched"
        rows.append([*head, *(str(found[order]) for order in orders), verdict])
    return grid(
        ["id", "answer", *(f"`{order}`" for order in orders), "verdict"], rows, left=("id", "answer", "verdict")
    )


if __name__ == "__main__":
    sys.exit(main())
