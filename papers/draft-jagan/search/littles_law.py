"""Computes the outstanding data of draft-jagan's connections by Little's law, from the paper and for every TCP.

    python scripts/campaign.py littles-law            # runs what is missing in the store
    python scripts/campaign.py littles-law --report   # only writes the tables, from papers/draft-jagan/outstanding.csv

A file of L bytes takes a time D, and a connection delivers R_i = R / 10. So R_i D = L + W, where W is the mean
outstanding data of the connection in addition to the file. The script computes W in the same way from printed numbers
and from runs.

The TCPs are the answers to the question `recovery` of papers/draft-jagan/joint.toml, with all other choices at their
defaults. They run the rows of Table 1 with the confirmation seeds and duration of joint_search.py. The tables also show
two rows that the search has run with each of its configurations, so the store of joint_search.py must exist.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from celltrain.model.files import replace
from joint_runs import Runs, Space
from joint_search import store
from paper_page import ROOT, figure, fill, grid

PAPER = "draft-jagan"
TABLE = ROOT / "papers" / PAPER / "outstanding.csv"
PAGE = ROOT / "docs" / "papers" / f"{PAPER}.md"
#: L, the bytes of a file (A-39); header bytes of a packet (A-43); number of connections.
FILE_BYTES, HEADER_BYTES, CONNECTIONS = 100_000, 40, 10
#: Rows of the search's first stage, as table and service. In one row, the defaults match R but not D. The other row has
#: the largest error of R.
SEARCHED = (("1", "ubr+epd"), ("6", "abr-er"))
#: Allowed relative difference of R from the printed value, as in the paper's file.
R_TOLERANCE = 0.25
COLUMNS = ("table", "service", "answers", "seeds", "goodput_mbps", "delay_ms")

Line = dict[str, str]


@dataclass(frozen=True)
class Seen:
    """R and D of a row, as printed or as simulated."""

    goodput_mbps: float
    delay_ms: float
    packet_bytes: int

    @property
    def outstanding(self) -> float:
        """Returns W of a connection in packets: (R_i D - L) / data per packet."""
        in_delay = self.goodput_mbps * 1e6 / 8 / CONNECTIONS * self.delay_ms / 1e3
        return (in_delay - FILE_BYTES) / (self.packet_bytes - HEADER_BYTES)

    def __str__(self) -> str:
        return f"{figure(self.outstanding, 0)} ({self.goodput_mbps:.0f})"


def main() -> int:
    """Runs the missing rows, and then writes the table and the page."""
    parser = argparse.ArgumentParser(description="Apply Little's law to every TCP of draft-jagan's joint search.")
    parser.add_argument("--report", action="store_true", help="run nothing; write the page from the table")
    parser.add_argument("--jobs", type=int, default=2, help="threads (2)")
    arguments = parser.parse_args()
    space = Space(PAPER)
    if not arguments.report:
        if not store(PAPER).exists():
            sys.exit(f"no {store(PAPER)}; first: python scripts/campaign.py joint-search {PAPER} --configurations 300")
        runs = Runs(space, store(PAPER))
        for configuration in recoveries(space):
            runs.run(configuration, of_table(space, "1"), space.confirmation, arguments.jobs, whole=True)
        write(lines(space, runs))
        runs.close()
    with TABLE.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    fill(PAGE, "outstanding", tables(space, rows))
    return 0


def recoveries(space: Space) -> list[str]:
    """Returns a configuration for each answer to the first question (recovery), starting with the default."""
    [place] = [place for place, question in enumerate(space.questions) if question.name == "recovery"]
    return [space.with_answer(place, answer) for answer in range(len(space.questions[place].answers))]


def of_table(space: Space, table: str) -> list[int]:
    """Returns the numbers of a table, as indices into the numbers of the space."""
    return [place for place, number in enumerate(space.numbers) if number.table == table]


def lines(space: Space, runs: Runs) -> list[Line]:
    """Returns R and D of every recovery in every row of Table 1, and of every searched configuration in two rows."""
    services = dict.fromkeys(str(space.numbers[place].row["service"]) for place in of_table(space, "1"))
    wanted = [("1", service, one, space.confirmation) for one in recoveries(space) for service in services]
    wanted += [(table, service, one, range(1, 2)) for table, service in SEARCHED for one in runs.asked]
    found = []
    for table, service, configuration, seeds in wanted:
        values = {
            space.numbers[place].quantity.name: runs.values(configuration, place, seeds)
            for place in of_table(space, table)
            if space.numbers[place].row["service"] == service
        }
        means = {name: f"{np.mean(value):.3f}" for name, value in values.items() if value}
        if len(means) == len(values):
            seen = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
            found.append({"table": table, "service": service, "answers": configuration, "seeds": seen, **means})
    return found


def write(rows: Sequence[Line]) -> None:
    """Writes the table into the paper's folder."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace(TABLE, text.getvalue())
    print(f"wrote {TABLE}")


def tables(space: Space, rows: Sequence[Line]) -> str:
    """Returns the page's tables."""
    printed = in_print(space)
    names = {one: recovery(space, one) for one in recoveries(space)}
    alone = [row for row in rows if row["seeds"] != "1"]
    of_table_1 = [service for table, service in printed if table == "1"]
    body = [["in print", *(str(printed["1", service]) for service in of_table_1)]]
    for configuration, name in names.items():
        of_service = {row["service"]: row for row in alone if row["answers"] == configuration}
        body.append([name, *(str(seen(of_service[service], printed)) for service in of_table_1)])
    parts = [
        "For Table 1, these are the packets outstanding per connection and, in brackets, R in Mb/s "
        f"(means of seeds {alone[0]['seeds']}):",
        grid(["recovery", *of_table_1], body, left=("recovery",)),
    ]
    for table, service in SEARCHED:
        searched = [row for row in rows if row["seeds"] == "1" and (row["table"], row["service"]) == (table, service)]
        goal = printed[table, service]
        body = []
        for name in names.values():
            of_name = [seen(row, printed) for row in searched if recovery(space, row["answers"]) == name]
            near = [one for one in of_name if abs(one.goodput_mbps / goal.goodput_mbps - 1) <= R_TOLERANCE]
            most = [str(max(some, key=lambda one: one.outstanding)) if some else "" for some in (of_name, near)]
            least = str(min(of_name, key=lambda one: one.goodput_mbps)) if of_name else ""
            body.append([name, str(len(of_name)), least, most[0], str(len(near)), most[1]])
        where = f"{service} in Table {table}, printed as {goal}, and all {len(searched)} configurations"
        parts += [
            f"The next table is for {where} of the joint search that have a result there (seed 1, 5 s). It gives the lowest "
            f"R, the most packets outstanding, the number of configurations whose R is {1 - R_TOLERANCE:g} to "
            f"{1 + R_TOLERANCE:g} times the printed one, and the most packets outstanding in these:"
            if (table, service) == SEARCHED[0]
            else f"This table is for {where}:",
            grid(
                ["recovery", "configurations", "lowest R", "most outstanding", "near R", "most outstanding near R"],
                body,
                left=("recovery",),
            ),
        ]
    return "\n\n".join(parts)


def in_print(space: Space) -> dict[tuple[str, str], Seen]:
    """Returns the printed values, keyed by table and service."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for number in space.numbers:
        assert number.published is not None, "the search uses printed numbers only"
        row = found.setdefault((number.table, str(number.row["service"])), {"bytes": float(number.row["mss_bytes"])})
        row[number.quantity.name] = number.published
    return {name: Seen(row["goodput_mbps"], row["delay_ms"], int(row["bytes"])) for name, row in found.items()}


def seen(row: Line, printed: Mapping[tuple[str, str], Seen]) -> Seen:
    """Reads a line of the CSV."""
    packet_bytes = printed[row["table"], row["service"]].packet_bytes
    return Seen(float(row["goodput_mbps"]), float(row["delay_ms"]), packet_bytes)


def recovery(space: Space, configuration: str) -> str:
    """Describes a configuration's answer to the question `recovery`."""
    [(question, answer)] = [
        (question, int(digit))
        for question, digit in zip(space.questions, configuration, strict=True)
        if question.name == "recovery"
    ]
    return str(question.answers[answer]["text"])


if __name__ == "__main__":
    sys.exit(main())
