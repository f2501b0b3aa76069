"""The standard set: the scenarios in which a policy is vetted, the policies it is compared with, and the measures."""

from __future__ import annotations

from typing import Any

_SMALL = {"vanilla": {"receive_window": "65535B"}}
_LARGE = {"vanilla": {"receive_window": "600000B"}}


def _n_source(duration: str, sources: int, delay: str, tcp: dict[str, Any], buffer: int = 1000) -> dict[str, Any]:
    """Returns a scenario without a policy: sources that share one port."""
    topology = {"n_source": {"sources": sources, "link_delay": delay}}
    return {"duration": duration, "topology": topology, "tcp": tcp, "port": {"bottleneck": {"buffer": buffer}}}


#: By name. The scenarios of ATM Forum 96-1269, section 3.1, with its smallest buffers, two of them again with SACK, one again
#: with hosts whose clocks and starts differ, and round trips of 60 and 600 us at one port (scenarios/unequal-rtt.toml).
SCENARIOS: dict[str, dict[str, Any]] = {
    "lan-5": _n_source("2s", 5, "5us", _SMALL),
    "lan-15": _n_source("2s", 15, "5us", _SMALL),
    "wan-5": _n_source("10s", 5, "5ms", _LARGE, 12000),
    "lan-5-sack": _n_source("2s", 5, "5us", {"sack": _SMALL["vanilla"]}),
    "wan-5-sack": _n_source("10s", 5, "5ms", {"sack": _LARGE["vanilla"]}, 12000),
    "lan-5-random": {
        **_n_source("2s", 5, "5us", {"vanilla": {**_SMALL["vanilla"], "tick_phase": "random"}}),
        "host": {"start_spread": "100ms"},
    },
    "unequal-rtt": _n_source("2s", 10, "10us", {"reno": {}}),
}
SCENARIOS["unequal-rtt"]["topology"]["n_source"]["access_delays"] = {"source6-10": "280us"}

#: Scenarios that differ in their TCP alone, with words for it.
PAIRS = tuple(
    {name: f"with {next(iter(SCENARIOS[name]['tcp']))}" for name in pair}
    for pair in (("lan-5", "lan-5-sack"), ("wan-5", "wan-5-sack"))
)
#: Scenarios that differ in their clocks and starts alone: the same for all hosts, and random.
CLOCKS = ({"lan-5": "with clocks in step", "lan-5-random": "with random clocks"},)

#: Policies that a policy is compared with by default.
CLASSICS = ("epd", "selective_drop", "fba")

#: Measures in each scenario, by their names in metrics.
MEASURES = {
    "efficiency": "efficiency",
    "fairness": "fairness",
    "max_queue_cells": "ports.bottleneck.max_queue_cells",
    "timeouts": "flows.sum(*).timeouts",
    "least_goodput_mbps": "flows.least(*).goodput_mbps",
}
#: Shares, whose mean over the scenarios is meaningful.
SHARES = ("efficiency", "fairness")


def scenario(name: str, policy: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Returns a scenario of the set with this policy, as a table."""
    made = SCENARIOS[name]
    port = {"bottleneck": {**made["port"]["bottleneck"], "policy": policy}}
    return {"name": name, **made, "port": port, **changes}


def tcp_of(name: str) -> str:
    """Returns the TCP variant of a scenario of the set."""
    [variant] = SCENARIOS[name]["tcp"]
    return str(variant)


def duration_of(name: str) -> str:
    """Returns the duration of a scenario of the set, for people."""
    return str(SCENARIOS[name]["duration"]).replace("s", " s")


def classic(name: str, of: str) -> dict[str, Any]:
    """Returns a policy by name for a scenario of the set; EPD has a threshold of four fifths of the buffer."""
    if name != "epd":
        return {name: {}}
    return {name: {"threshold": SCENARIOS[of]["port"]["bottleneck"]["buffer"] * 4 // 5}}
