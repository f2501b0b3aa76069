"""Repeats a network simulation from smoltcp's own tests, with several flows, over cells, and compares throughputs.

    python peers/netsim.py          prints a table, exits with 1 if they disagree
    python peers/netsim.py --page   also writes the table into docs/real-stacks.md

netsim_multiflow.csv has the numbers of tests/snapshots/netsim__netsim_multiflow.snap in smoltcp 0.14.0, in bytes per
second. netsim_delays.csv has the delays that the random generator of tests/netsim.rs draws for each flow. Three things
make the models the same:

- Cells of 78 bytes take 3 us. A segment of 1460 bytes has 20, so it takes 60 us, as there. An acknowledgement has one.
- There, the shared buffer of 65536 bytes takes an Ethernet frame of 1514 bytes if at most 2560 us of packets wait. Here,
  EPD takes a packet if at most 853 cells wait.
- There, the receiving application reads after smoltcp has acknowledged.

Differences of start times within a millisecond determine which bursts collide, so each row has several runs with small
random delays.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import celltrain as ct
import page

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "real-stacks.md"

CELL_BYTES = 78
SEGMENT_CELLS = 20
LINK_RATE = "208Mbps"
ACCESS_RATE = "1040Gbps"
"""Rate at which a whole window arrives at the bottleneck almost at once."""
THRESHOLD_CELLS = 853
FILE_BYTES = 2 * 1024 * 1024
"""If there are several flows, smoltcp's run ends when each has delivered this number of bytes."""
STACK = {"congestion": "none", "mss": "1460B", "receive_window": f"{256 * 1024}B"}
SEEDS = 24
TOLERANCE = 0.1


@dataclass(frozen=True, kw_only=True)
class Flows:
    """Results for several flows, with throughputs in bytes per second."""

    throughput: float
    least: float
    largest: float
    fairness: float
    drops: float
    """Fraction of packets that the bottlenecks refuse, including acknowledgements."""


def rows(name: str) -> list[dict[str, str]]:
    """Returns the rows of a file in this folder."""
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def multiflow() -> dict[int, Flows]:
    """Returns smoltcp's results, keyed by the number of flows."""
    return {
        int(row["flows"]): Flows(**{name: float(value) for name, value in row.items() if name != "flows"})
        for row in rows("netsim_multiflow.csv")
    }


def scenario(delays: Sequence[tuple[int, int]], settings: Mapping[str, Any]) -> ct.Scenario:
    """Returns a network of flows with the given delays of acknowledgements and data, in microseconds."""
    links: list[dict[str, Any]] = [{"between": ["sw1", "sw2"], "rate": LINK_RATE, "delay": "0s"}]
    flows = []
    for i, (acks, data) in enumerate(delays, 1):
        source, destination = f"source{i}", f"destination{i}"
        access = {"rate": ACCESS_RATE, "delay_back": "0s"}
        links.append({"between": ["sw1", source], "delay": f"{acks}us", **access})
        links.append({"between": ["sw2", destination], "delay": f"{data}us", **access})
        # In smoltcp's tests, an ARP request and its answer precede the handshake.
        flows.append({"from": source, "to": destination, "start": f"{acks + data}us"})
    hosts = [flow[end] for flow in flows for end in ("from", "to")]
    network = {"hosts": hosts, "switches": ["sw1", "sw2"], "links": links, "flows": flows, "bottleneck": "sw1->sw2"}
    return ct.Scenario.model_validate(
        {
            "cell": {"size": f"{CELL_BYTES}B"},
            "host": {"start_spread": "1ms"},
            "topology": {"network": network},
            **settings,
        }
    )


def several(flows: int, seconds: float, reads: str = "after_acks", seed: int = 1) -> Flows:
    """Runs flows that share the bottleneck."""
    delays = [(int(row["acks_us"]), int(row["data_us"])) for row in rows("netsim_delays.csv")[:flows]]
    policy = {"epd": {"threshold": f"{THRESHOLD_CELLS} cells"}}
    settings = {
        "duration": f"{seconds * 1e6:.0f}us",
        "stack": {"smoltcp": {**STACK, "reads": reads}},
        "port": {
            # Leave room for the remaining cells of every started packet.
            "bottleneck": {"buffer": THRESHOLD_CELLS + SEGMENT_CELLS * (flows + 1), "policy": policy},
            "default": {"buffer": "infinite", "policy": {"tail_drop": {}}},
        },
    }
    result = ct.run(scenario(delays, settings), seed=seed)
    rates = [count / seconds for count in result.flows["delivered_bytes"].to_pylist()]
    data, acks = (port for port in result.ports.to_pylist() if port["name"] in ("sw1->sw2", "sw2->sw1"))
    return Flows(
        throughput=sum(rates),
        least=min(rates),
        largest=max(rates),
        fairness=sum(rates) ** 2 / len(rates) / sum(rate**2 for rate in rates),
        drops=data["discarded_frames"] / (data["offered_cells"] / SEGMENT_CELLS + acks["offered_cells"]),
    )


def compare(flows: int, theirs: Flows, seeds: int) -> list[Flows]:
    """Runs several seeds for the duration of smoltcp's run, which ends when the slowest flow has delivered its file."""
    return [several(flows, FILE_BYTES / theirs.least, seed=seed) for seed in range(1, seeds + 1)]


def agrees(ours: Sequence[float], theirs: float) -> bool:
    """Returns whether the mean is near smoltcp's value, or that value is within the range of ours."""
    return abs(statistics.mean(ours) / theirs - 1) <= TOLERANCE or min(ours) <= theirs <= max(ours)


def main() -> int:
    """Runs all rows, prints the table, and fills the page if requested."""
    parser = argparse.ArgumentParser(description="Compare celltrain with the network simulation in smoltcp's tests.")
    parser.add_argument("--page", action="store_true", help="also write the table into docs/real-stacks.md")
    arguments = parser.parse_args()
    lines = [
        "| flows | smoltcp (B/s) | celltrain / smoltcp | range of ratios | drops: smoltcp | drops: celltrain | ratio, reading first |"
    ]
    lines.append("|---:|---:|---:|---:|---:|---:|---:|")
    disagreements = []
    for flows, theirs in multiflow().items():
        runs = compare(flows, theirs, SEEDS)
        ours = [run.throughput for run in runs]
        first = several(flows, FILE_BYTES / theirs.least, "before_acks").throughput
        ratios = [value / theirs.throughput for value in (statistics.mean(ours), min(ours), max(ours), first)]
        drops = statistics.mean(run.drops for run in runs)
        lines.append(
            f"| {flows} | {theirs.throughput:,.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} to {ratios[2]:.2f} "
            f"| {theirs.drops:.3f} | {drops:.3f} | {ratios[3]:.2f} |"
        )
        print(lines[-1], flush=True)
        if not agrees(ours, theirs.throughput):
            disagreements.append(f"{flows} flows: {ratios[0]:.2f} of their throughput")
    if arguments.page:
        page.fill(PAGE, "netsim", "\n".join(lines))
    return page.outcome(disagreements)


if __name__ == "__main__":
    sys.exit(main())
