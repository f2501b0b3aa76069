"""Writes reference traces of ns-2's validation suites in the compact form that the tests read.

    python peers/ns2_traces.py PACKETS.csv     adds the traces of these packets to those of the tests

PACKETS.csv has the columns suite, test, kind, time_s and value, one row each time a packet enters or leaves the queue
of the bottleneck (`data`) or of the link back (`acks`), and one for each loss (`drops`). The value is the number of a
flow plus the number of a packet, modulo 90, in hundredths. Full TCP counts bytes: 512 plus the first byte, modulo
46120, in hundredths. `crates/celltrain-scenario/tests/ns2` has the traces and describes the tests.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict, deque
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "crates" / "celltrain-scenario" / "tests" / "ns2"
WRAP = 90
FULL_TCP_WRAP = 46120
FULL_TCP_BYTES = 536
UNITS_PER_SECOND = 100_000
"""Unit of times in the traces: 10 us."""

Row = tuple[float, str]
Packet = tuple[float, str, bool]
"""Time in seconds, value, and whether the packet is lost."""


def entering(rows: list[Row], lost: list[Row]) -> list[Packet]:
    """Returns the packets that enter a first-in first-out queue, from rows for entering and leaving."""
    waiting: deque[str] = deque()
    dropped = set(lost)
    packets = []
    for time, value in sorted(rows, key=lambda row: row[0]):
        if (time, value) in dropped:
            dropped.remove((time, value))
            packets.append((time, value, True))
        elif waiting and waiting[0] == value:
            waiting.popleft()
        else:
            packets.append((time, value, False))
            waiting.append(value)
    # Packets that never enter were lost in front of the queue.
    packets += [(time, value, True) for time, value in dropped]
    return sorted(packets, key=lambda packet: packet[0])


def by_flow(packets: list[Packet]) -> dict[int, list[tuple[float, int, bool]]]:
    """Returns the numbers of the packets of each flow."""
    flows = defaultdict(list)
    for time, value, lost in packets:
        flow, _, number = value.partition(".")
        flows[int(flow)].append((time, int(f"{number}00"[:2]), lost))
    return dict(sorted(flows.items()))


def of_full_tcp(packets: list[Packet], *, acks: bool) -> list[tuple[float, int, bool]]:
    """Returns the numbers of packets of full TCP: 0 for the SYN, 1 for the first data."""
    if not acks:
        # Acknowledgements of a SYN-ACK have no counterpart in the other traces.
        packets = packets[:1] + packets[2:]
    numbered = []
    before = 0
    for time, value, lost in packets:
        whole, _, rest = value.partition(".")
        byte = int(whole + f"{rest}00"[:2]) - 51200
        while byte < before - FULL_TCP_WRAP // 2:
            byte += FULL_TCP_WRAP
        before = byte
        first = byte == 0 or acks
        numbered.append((time, ((byte - 1) // FULL_TCP_BYTES + (0 if first else 1)) % WRAP, lost))
    if not acks:
        numbered[0] = (numbered[0][0], 0, numbered[0][2])
    return numbered


def words(packets: list[tuple[float, int, bool]]) -> str:
    """Returns a word `STEP@NUMBER!*TIMES` for each sequence of equal packets in a trace."""
    found: list[tuple[str, int]] = []
    before, expected = 0, 0
    for time, number, lost in packets:
        at = round(time * UNITS_PER_SECOND)
        word = f"{at - before}{'' if number == expected else f'@{number}'}{'!' if lost else ''}"
        before, expected = at, (number + 1) % WRAP
        if found and found[-1][0] == word:
            found[-1] = (word, found[-1][1] + 1)
        else:
            found.append((word, 1))
    return " ".join(word if times == 1 else f"{word}*{times}" for word, times in found)


def described() -> dict[tuple[str, str], tuple[str, bool]]:
    """For each test, returns its TCP and whether it loses acknowledgements."""
    with (FOLDER / "tests.csv").open(encoding="utf-8") as rows:
        return {
            (row["suite"], row["test"]): (row["tcp"], "lost_acks" in row["settings"]) for row in csv.DictReader(rows)
        }


def lines(packets: dict[tuple[str, str], dict[str, list[Row]]]) -> dict[str, dict[str, list[str]]]:
    """Returns the lines of each suite's file, by test."""
    tests = described()
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for (suite, test), kinds in packets.items():
        tcp, loses_acks = tests[suite, test]
        lost = list(dict.fromkeys(kinds["drops"]))
        # If a test loses acknowledgements, it loses data before 3.6 s and acknowledgements afterwards.
        lost_acks = [row for row in lost if loses_acks and row[0] > 3.6]
        data = entering(kinds["data"], [row for row in lost if row not in lost_acks])
        acks = entering(kinds["acks"], lost_acks) if suite in ("tcpVariants", "newreno") else []
        what = "sent" if suite == "LimTransmit" else "data"
        if tcp.startswith("FullTcp"):
            flows = {what: {1: of_full_tcp(data, acks=False)}, "acks": {1: of_full_tcp(acks, acks=True)}}
        else:
            flows = {what: by_flow(data), "acks": by_flow(acks)}
        found[suite][test] = [
            f"{test} {what}{flow - min(of_flow) + 1} {words(of_flow[flow])}"
            for what, of_flow in flows.items()
            for flow in of_flow
        ]
    return found


def main(path: str) -> None:
    """Adds the traces of a file, and replaces older traces of the same tests."""
    packets: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    with Path(path).open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            packets[row["suite"], row["test"]][row["kind"]].append((float(row["time_s"]), row["value"]))
    for suite, tests in lines(packets).items():
        file = FOLDER / "traces" / f"{suite}.txt"
        before = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        kept = [line for line in before if line.split(" ")[0] not in tests]
        new = [line for found in tests.values() for line in found]
        file.write_text("".join(f"{line}\n" for line in kept + new), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
