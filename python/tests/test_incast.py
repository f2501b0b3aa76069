"""The formulas of docs/incast.md: the smallest memory without loss against simulations, and the table of sizes."""

from __future__ import annotations

import copy
import functools
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from pages import ROOT, blocks, prose, section

import celltrain as ct

PAGE = ROOT / "docs" / "incast.md"
#: Values in the plan: cells of a packet, bytes of a packet, and payload of a segment.
CELLS, BYTES, MSS = 16, 4096, 4056
WINDOW, K = 10, 64
#: Packets in a round trip: four propagation delays, the transmission of a packet on the host's link, and of three cells
#: on other links.
BDP = (4 * 2e-6 * 100e9 / 8 + BYTES + 3 * 256) / BYTES


@functools.cache
def plan() -> ct.Plan:
    return ct.Plan.load(ROOT / "plans" / "incast.toml")


def formulas() -> tuple[Callable[..., float], Callable[..., float]]:
    """Returns `largest_queue` and `smallest_memory`, as the page about incast defines them."""
    names: dict[str, Any] = {}
    code = next(block.text for block in blocks(PAGE) if "def largest_queue" in block.text)
    exec(code, names)
    return names["largest_queue"], names["smallest_memory"]


largest_queue, smallest_memory = formulas()


def network(senders: int, answer: int, memory: int, alpha: float) -> dict[str, Any]:
    """Returns the plan's scenario with the given settings."""
    scenario: dict[str, Any] = copy.deepcopy(plan().points[0].scenario)
    scenario["incast"]["query"] |= {"senders": senders, "bytes": f"{senders * answer * MSS}B"}
    shared = scenario["switch"]["*"]["memory"]
    shared["cells"] = memory
    shared["pool"]["main"]["policy"]["dynamic_threshold"]["alpha"] = alpha
    return scenario


def refused(scenario: dict[str, Any], queue: str = "leaf1/leaf1->host1/0") -> int:
    """Returns the number of cells of the burst that were refused."""
    table = ct.run(ct.Scenario.model_validate(scenario)).queues.to_pylist()
    return int(next(row["refused_cells"] for row in table if row["name"] == queue))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.25, 1.0, 8.0])
@pytest.mark.parametrize("senders", [16, 64])
def test_an_incast_that_fits_into_the_initial_windows_needs_exactly_the_buffer_that_the_formula_gives(
    senders: int, alpha: float
) -> None:
    queue = largest_queue(senders, WINDOW, WINDOW, K, BDP)
    assert refused(network(senders, WINDOW, round(CELLS * smallest_memory(queue + 1, WINDOW, alpha)), alpha)) == 0
    assert refused(network(senders, WINDOW, round(CELLS * smallest_memory(queue - 1, WINDOW, alpha)), alpha)) > 0


@pytest.mark.parametrize(("senders", "less"), [(8, 2), (16, 2), (32, 5), (64, 13)])
def test_an_incast_larger_than_the_initial_windows_needs_slightly_less_buffer_than_the_formula_gives(
    senders: int, less: int
) -> None:
    queue = largest_queue(senders, WINDOW, 60, K, BDP)
    assert refused(network(senders, 60, round(CELLS * smallest_memory(queue - less + 1, WINDOW, 1)), 1.0)) == 0
    assert refused(network(senders, 60, round(CELLS * smallest_memory(queue - less, WINDOW, 1)), 1.0)) > 0


@pytest.mark.parametrize("senders", [2, 4, 7])
def test_an_incast_of_few_senders_needs_up_to_two_packets_less_buffer_than_the_formula_gives(senders: int) -> None:
    queue = largest_queue(senders, WINDOW, 500, K, BDP)
    assert queue == BDP + 2 * K
    assert refused(network(senders, 500, round(CELLS * smallest_memory(queue, WINDOW, 1)), 1.0)) == 0
    assert refused(network(senders, 500, round(CELLS * smallest_memory(queue - 2, WINDOW, 1)), 1.0)) > 0


def with_busy_ports(senders: int, busy: int, memory: int, alpha: float, seed: int) -> dict[str, Any]:
    """Dynamic Threshold does not count the arriving cell, so a memory with one cell less is enough.

    For this seed, no query draws one of the sources of these cells as a sender.
    """
    scenario = network(senders, WINDOW, memory, alpha)
    hosts = ["receiver", *(f"h{i}" for i in range(1, senders + 1)), *(f"busy{i}" for i in range(1, busy + 1))]
    sources = [f"source{i}" for i in range(1, busy + 1)]
    links = [{"between": [host, "sw"], "rate": "100Gbps", "delay": "2us"} for host in hosts]
    links += [{"between": [host, "sw"], "rate": "200Gbps", "delay": "2us"} for host in sources]
    flows = [{"name": f"f{i}", "from": f"source{i}", "to": f"busy{i}"} for i in range(1, busy + 1)]
    rate = {"traffic": {"constant_rate": {"rate": "200Gbps", "packet": "4060B"}}}
    scenario["seed"] = seed
    scenario["topology"] = {
        "network": {"hosts": hosts + sources, "switches": ["sw"], "links": links, "flows": flows},
    }
    scenario["flow"] = {flow["name"]: rate for flow in flows}
    scenario["incast"]["query"]["receivers"] = ["receiver"]
    # A port that marks would drop these packets, which have no ECN, above its threshold.
    busy_port = {key: value for key, value in scenario["port"]["default"].items() if key != "marking"}
    scenario["port"] |= {f"sw->busy{i}": busy_port for i in range(1, busy + 1)}
    return scenario


@pytest.mark.slow
@pytest.mark.parametrize(
    ("senders", "busy", "seed", "alpha", "more"),
    [
        *((8, 1, 10, alpha, 0.034) for alpha in (0.25, 1.0, 8.0)),
        *((32, 1, 7, alpha, 0.009) for alpha in (0.25, 1.0, 8.0)),
        *((8, 6, 8, alpha, more) for alpha, more in ((0.25, 0.034), (1.0, 0.12), (8.0, 0.41))),
    ],
)
def test_an_incast_that_competes_with_other_traffic_needs_more_buffer_than_the_formula_gives(
    senders: int, busy: int, seed: int, alpha: float, more: float
) -> None:
    queue = largest_queue(senders, WINDOW, WINDOW, K, BDP)
    needed = CELLS * smallest_memory(queue, WINDOW, alpha, busy)
    enough = round((1 + more) * needed)
    assert refused(with_busy_ports(senders, busy, enough, alpha, seed), "sw/sw->receiver/0") == 0
    assert refused(with_busy_ports(senders, busy, round(needed), alpha, seed), "sw/sw->receiver/0") > 0


def longest(senders: int, *, seed: int = 1, **query: Any) -> float:
    """Returns the longest queue of an incast without loss, in packets."""
    scenario = network(senders, WINDOW, 60_000, 1.0) | {"seed": seed}
    scenario["incast"]["query"] |= query
    table = ct.run(ct.Scenario.model_validate(scenario)).queues.to_pylist()
    return next(float(row["max_cells"]) for row in table if row["name"] == "leaf1/leaf1->host1/0") / CELLS


def test_an_incast_whose_senders_start_at_different_times_needs_less_buffer_than_the_formula_gives() -> None:
    queue = largest_queue(32, WINDOW, WINDOW, K, BDP)
    assert longest(32) == queue + 0.75
    assert round(longest(32) - longest(32, handshake=True)) == 2
    less = [queue - longest(32, seed=seed, spread="25us") for seed in range(1, 13)]
    assert [round(min(less)), math.ceil(max(less))] == [62, 74]


def test_the_documented_table_of_incast_buffer_sizes_follows_from_the_formulas() -> None:
    rows = [
        [float(cell) for cell in line.strip("|").split("|")]
        for line in section(prose(PAGE), "Sizes").splitlines()
        if re.match(r"\| \d", line)
    ]
    assert [row[0] for row in rows] == [8, 16, 32, 64, 128, 256]
    for senders, *sizes in rows:
        queue = largest_queue(int(senders), WINDOW, WINDOW, K, BDP)
        memories = [smallest_memory(queue, WINDOW, alpha, busy) for busy in (0, 4) for alpha in (0.25, 1, 8)]
        assert sizes == [round(packets * BYTES / 1e6, 1) for packets in (queue, *memories)]


@pytest.mark.parametrize(
    ("framing", "rules", "least", "most"),
    [("aal5", "rfc", 30, 32), ("packets", "rfc", 11, 11.05), ("packets", "paper", 10, 10.05)],
)
def test_an_incast_query_in_a_memory_that_is_5_percent_too_small_takes_one_timeout_longer(
    framing: str, rules: str, least: float, most: float
) -> None:
    # The memory is 5 % smaller than the smallest without loss, which is 9919 or 9928 cells.
    scenario = network(32, WINDOW, 9423 if framing == "aal5" else 9431, 1.0)
    scenario |= {"duration": "100ms", "framing": framing}
    scenario["incast"]["query"]["interval"] = "60ms"
    scenario["tcp"]["newreno"]["rules"] = rules
    if framing == "aal5":
        scenario["aal5"] = {"encapsulation": "vc_mux"}
        scenario["port"]["default"]["policy"] = {"ppd": {}}
        scenario["tcp"]["newreno"]["mss"] = "4048B"
        scenario["incast"]["query"]["bytes"] = f"{32 * WINDOW * 4048}B"
        del scenario["switch"]["admission"]
    [query] = ct.run(ct.Scenario.model_validate(scenario)).to_dict()["requests"]
    assert query["all"]["completed"] == 32
    # With ticks of 1 ms, a timer of 10 ms that starts between two ticks expires after 10 to 11 ms by RFC 6298 (5), and
    # after 9 to 10 ms by the rules of the papers.
    assert least < query["queries"]["completion_ms_mean"] < most
