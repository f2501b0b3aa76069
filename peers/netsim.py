"""Repeats the network simulation in smoltcp's own tests over cells, and compares throughputs.

    python peers/netsim.py          prints tables, exits with 1 if several flows differ by more than 10 %
    python peers/netsim.py --page   also writes the tables into docs/real-stacks.md

netsim.csv and netsim_multiflow.csv have the numbers of tests/snapshots/netsim__netsim.snap and of
netsim__netsim_multiflow.snap in smoltcp 0.14.0, in bytes per second. netsim_delays.csv has the delays that the random
generator of tests/netsim.rs draws for each flow. Three things make the models the same:

- Cells are chosen so that packets take as long as there, in whole microseconds: a segment of 1460 bytes takes 30 cells
  of 2 us, an acknowledgement takes one.
- There, the shared buffer of 65536 bytes takes an Ethernet frame of 1514 bytes if at most 2560 us of packets wait. Here,
  EPD takes a packet if at most 1280 cells wait.
- There, the receiving application reads after smoltcp has acknowledged.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import celltrain as ct
import page

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "real-stacks.md"

CELL_BYTES = 51
SEGMENT_CELLS = 30
LINK_RATE = "204Mbps"
ACCESS_RATE = "1020Gbps"
"""Fast enough that a window arrives at the bottleneck as in one instant."""
THRESHOLD_CELLS = 1280
SEGMENT_BYTES = 1460
FILE_BYTES = 2 * 1024 * 1024
"""Their run ends when each of several flows has delivered this."""
WINDOW_BYTES = 256 * 1024
ONE_FLOW_DELAY_US = 50_000
ONE_FLOW_BYTES = 10 * 1024 * 1024
"""Their run ends when the only flow has delivered this."""
LONGEST_S = 200_000
TOLERANCE = 0.1


@dataclass(frozen=True, kw_only=True)
class Flows:
    """The results of several flows: throughputs are in bytes per second."""

    throughput: float
    least: float
    largest: float
    fairness: float
    drops: float
    """Share of packets that the bottlenecks refuse, acknowledgements included."""


def rows(name: str) -> list[dict[str, str]]:
    """Returns the rows of a file in this folder."""
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def multiflow() -> dict[int, Flows]:
    """Returns their results by the number of flows."""
    return {
        int(row["flows"]): Flows(**{name: float(value) for name, value in row.items() if name != "flows"})
        for row in rows("netsim_multiflow.csv")
    }


def scenario(delays: Sequence[tuple[int, int]], settings: Mapping[str, Any], rate: str = LINK_RATE) -> ct.Scenario:
    """Returns the network of flows with these delays in microseconds, of acknowledgements and of data."""
    links: list[dict[str, Any]] = [{"between": ["sw1", "sw2"], "rate": rate, "delay": "0s"}]
    flows = []
    for i, (acks, data) in enumerate(delays, 1):
        source, destination = f"source{i}", f"destination{i}"
        access = {"rate": ACCESS_RATE, "delay_back": "0s"}
        links.append({"between": ["sw1", source], "delay": f"{acks}us", **access})
        links.append({"between": ["sw2", destination], "delay": f"{data}us", **access})
        # There, an ARP request and its answer precede the handshake.
        flows.append({"from": source, "to": destination, "start": f"{acks + data}us"})
    hosts = [flow[end] for flow in flows for end in ("from", "to")]
    network = {"hosts": hosts, "switches": ["sw1", "sw2"], "links": links, "flows": flows, "bottleneck": "sw1->sw2"}
    return ct.Scenario.model_validate(
        {
            "cell": {"size": f"{CELL_BYTES}B"},
            "aal5": {"encapsulation": "vc_mux"},
            "topology": {"network": network},
            "port": {"default": {"buffer": "infinite", "policy": {"tail_drop": {}}}},
            **settings,
        }
    )


def smoltcp(window: int, reads: str) -> dict[str, Any]:
    """Returns the stack with a window in bytes. A window below a segment is a segment."""
    mss = min(SEGMENT_BYTES, window)
    stack = {"congestion": "none", "mss": f"{mss}B", "receive_window": f"{window}B", "reads": reads}
    return {"smoltcp": stack}


def several(flows: int, seconds: float, reads: str = "after_acks", seed: int = 1) -> Flows:
    """Runs flows that share the bottleneck."""
    delays = [(int(row["acks_us"]), int(row["data_us"])) for row in rows("netsim_delays.csv")[:flows]]
    policy = {"epd": {"threshold": f"{THRESHOLD_CELLS} cells"}}
    settings = {
        "duration": f"{seconds * 1e6:.0f}us",
        "stack": smoltcp(WINDOW_BYTES, reads),
        "port": {
            # Leave room for the remaining cells of every packet that has started.
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


def one(window: int, loss: float, seconds: float, reads: str = "after_acks", seed: int = 1) -> float:
    """Runs one flow over links without a limit that lose packets. Returns its throughput."""
    lose = {
        link: {"lose": [{"vc": vc, "probability": {"packets": loss}}]}
        for link, vc in {"sw2->destination1": "tcp1", "sw1->source1": "tcp1-acks"}.items()
    }
    settings = {"duration": f"{seconds * 1e6:.0f}us", "stack": smoltcp(window, reads), "link": lose if loss else {}}
    result = ct.run(scenario([(ONE_FLOW_DELAY_US, ONE_FLOW_DELAY_US)], settings, ACCESS_RATE), seed=seed)
    return float(result.flows["delivered_bytes"][0].as_py()) / seconds
