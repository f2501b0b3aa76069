"""What a connection of draft-jagan has outstanding, by Little's law: in print, and with every TCP of the joint search.

    python scripts/littles_law.py            # runs what the store does not hold
    python scripts/littles_law.py --report   # runs nothing: the page's tables from papers/draft-jagan/outstanding.csv

A file of L bytes takes D, and a connection delivers R_i = R / 10. So R_i D = L + W: W is what the connection has outstanding
besides the file, in the mean. It is computed alike from what is printed and from what runs give.

The TCPs are the answers to the question `recovery` of papers/draft-jagan/joint.toml, each with all other choices at their
defaults, in the rows of Table 1, with the seeds and the length of joint_search.py's confirmation. Beside these stands what
the search itself saw in the row of UBR+EPD, which each of its configurations has run: so the store of joint_search.py comes
first.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Sequence

import numpy as np

from celltrain.reproduction.paper import Number
from celltrain.writing import replace
from joint_runs import Runs, Space
from joint_search import CONFIRMATION, store
from paper_page import ROOT, grid, replaced

PAPER = "draft-jagan"
TABLE = ROOT / "papers" / PAPER / "outstanding.csv"
PAGE = ROOT / "docs" / "papers" / f"{PAPER}.md"
#: L: bytes of a file (A-39); payload of a packet of 9180 bytes; connections.
FILE_BYTES, SEGMENT_BYTES, CONNECTIONS = 100_000, 9140, 10
#: The row of Table 1 that stands in the search's first stage.
SEARCHED = "ubr+epd"
#: How far R may be from what is printed, as the paper's file allows it.
R_TOLERANCE = 0.25
COLUMNS = ("answers", "service", "seeds", "goodput_mbps", "delay_ms")

Line = dict[str, str]


def outstanding(goodput_mbps: float, delay_ms: float) -> float:
    """W of a connection in packets: (R_i D - L) / payload of a packet, from R in Mb/s of all and D in ms."""
    return (goodput_mbps * 1e6 / 8 / CONNECTIONS * delay_ms / 1e3 - FILE_BYTES) / SEGMENT_BYTES


def main() -> int:
    """Run what is missing, write the table and the page."""
    parser = argparse.ArgumentParser(description="Little's law for every TCP of draft-jagan's joint search.")
    parser.add_argument("--report", action="store_true", help="run nothing; write the page from the table")
    parser.add_argument("--jobs", type=int, default=2, help="threads (2)")
    arguments = parser.parse_args()
    space = Space(PAPER)
    if not arguments.report:
        if not store(PAPER).exists():
            sys.exit(f"no {store(PAPER)}; first: python scripts/joint_search.py {PAPER} --configurations 300")
        runs = Runs(space, store(PAPER))
        for configuration in recoveries(space):
            runs.run(configuration, table_1(space), CONFIRMATION, arguments.jobs, whole=True)
        write(lines(space, runs))
        runs.close()
    with TABLE.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), "outstanding", tables(space, rows)), encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


def recoveries(space: Space) -> list[str]:
    """Every answer to the first question, the recovery, alone; the default first."""
    [place] = [place for place, question in enumerate(space.questions) if question.name == "recovery"]
    return [space.with_answer(place, answer) for answer in range(len(space.questions[place].answers))]


def table_1(space: Space) -> list[int]:
    """The numbers of Table 1, indices into the space's."""
    return [place for place, number in enumerate(space.numbers) if number.table == "1"]


def lines(space: Space, runs: Runs) -> list[Line]:
    """R and D: of every recovery in every row of Table 1, and of every configuration searched in one of them."""
    found = []
    services = list(dict.fromkeys(str(space.numbers[place].row["service"]) for place in table_1(space)))
    of_recoveries = [(one, service, CONFIRMATION) for one in recoveries(space) for service in services]
    searched = [(one, SEARCHED, range(1, 2)) for one in runs.asked]
    for configuration, service, seeds in of_recoveries + searched:
        values = {
            space.numbers[place].quantity.name: runs.values(configuration, place, seeds)
            for place in table_1(space)
            if space.numbers[place].row["service"] == service
        }
        means = {name: f"{np.mean(value):.3f}" for name, value in values.items() if value}
        if len(means) == len(values):
            seen = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
            found.append({"answers": configuration, "service": service, "seeds": seen, **means})
    return found


def write(rows: Sequence[Line]) -> None:
    """Writes the table beside the paper."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace(TABLE, text.getvalue())
    print(f"wrote {TABLE}")


def tables(space: Space, rows: Sequence[Line]) -> str:
    """The page's two tables."""
    printed = in_print([space.numbers[place] for place in table_1(space)])
    alone = [row for row in rows if row["seeds"] != "1"]
    searched = [row for row in rows if row["seeds"] == "1"]
    body = [["in print", *(pair(*printed[service]) for service in printed)]]
    for configuration in recoveries(space):
        of_service = {row["service"]: row for row in alone if row["answers"] == configuration}
        body.append([recovery(space, configuration), *(pair(*figures(of_service[name])) for name in printed)])
    first = f"Table 1, packets outstanding for each connection and, in brackets, R in Mb/s; mean of seeds {alone[0]['seeds']}:"
    goodput, delay = printed[SEARCHED]
    wanted = outstanding(goodput, delay)
    least, most = (goodput * (1 + sign * R_TOLERANCE) for sign in (-1, 1))
    best = []
    for name in dict.fromkeys(recovery(space, configuration) for configuration in recoveries(space)):
        of_name = [figures(row) for row in searched if recovery(space, row["answers"]) == name]
        fitting = [one for one in of_name if least <= one[0] <= most]
        best.append(
            [
                name,
                str(len(of_name)),
                pair(*max(of_name, key=lambda one: outstanding(*one))) if of_name else "",
                str(len(fitting)),
                pair(*max(fitting, key=lambda one: outstanding(*one))) if fitting else "",
            ]
        )
    second = (
        f"The same in the row of UBR+EPD, where {wanted:.0f} at {goodput:.0f} Mb/s are in print, over all {len(searched)} "
        "configurations of the joint search that have a result there (seed 1, 5 s): the one with the most outstanding, and "
        f"the one among those whose R is within {100 * R_TOLERANCE:.0f} % of print:"
    )
    heads = ["recovery", "configurations", "the most", "near R", "the most of these"]
    return "\n\n".join(
        [
            first,
            grid(["recovery", *printed], body, left=("recovery",)),
            second,
            grid(heads, best, left=("recovery",)),
        ]
    )


def in_print(numbers: Sequence[Number]) -> dict[str, tuple[float, float]]:
    """R and D of every row as printed, by service."""
    found: dict[str, dict[str, float]] = {}
    for number in numbers:
        assert number.published is not None, "Table 1 is printed"
        found.setdefault(str(number.row["service"]), {})[number.quantity.name] = number.published
    return {service: (row["goodput_mbps"], row["delay_ms"]) for service, row in found.items()}


def figures(row: Line) -> tuple[float, float]:
    """R and D of a line."""
    return float(row["goodput_mbps"]), float(row["delay_ms"])


def pair(goodput_mbps: float, delay_ms: float) -> str:
    """What is outstanding, and at which R."""
    return f"{outstanding(goodput_mbps, delay_ms):.0f} ({goodput_mbps:.0f})"


def recovery(space: Space, configuration: str) -> str:
    """A configuration's answer to the question of the recovery, in words."""
    [(question, answer)] = [
        (question, int(digit))
        for question, digit in zip(space.questions, configuration, strict=True)
        if question.name == "recovery"
    ]
    return str(question.answers[answer]["text"])


if __name__ == "__main__":
    sys.exit(main())
