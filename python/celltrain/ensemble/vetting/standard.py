"""The standard set: the scenarios in which a policy is vetted, the policies it is compared with, and the measures."""

from __future__ import annotations

from typing import Any

#: By name. The scenarios of ATM Forum 96-1269, section 3.1, with its smallest buffers, two of them again with SACK, one again with hosts
#: whose clocks and starts differ, and round trips of 60 and 600 us at one port (scenarios/unequal-rtt.toml).
SCENARIOS: dict[str, dict[str, Any]] = {
    "lan-5": {
        "duration": "2s",
        "topology": {"n_source": {"sources": 5, "link_delay": "5us"}},
        "tcp": {"vanilla": {"receive_window": "65535B"}},
        "port": {"bottleneck": {"buffer": 1000}},
    },
    "lan-15": {
        "duration": "2s",
        "topology": {"n_source": {"sources": 15, "link_delay": "5us"}},
        "tcp": {"vanilla": {"receive_window": "65535B"}},
        "port": {"bottleneck": {"buffer": 1000}},
    },
    "wan-5": {
        "duration": "10s",
        "topology": {"n_source": {"sources": 5, "link_delay": "5ms"}},
        "tcp": {"vanilla": {"receive_window": "600000B"}},
        "port": {"bottleneck": {"buffer": 12000}},
    },
    "lan-5-sack": {
        "duration": "2s",
        "topology": {"n_source": {"sources": 5, "link_delay": "5us"}},
        "tcp": {"sack": {"receive_window": "65535B"}},
        "port": {"bottleneck": {"buffer": 1000}},
    },
    "wan-5-sack": {
        "duration": "10s",
        "topology": {"n_source": {"sources": 5, "link_delay": "5ms"}},
        "tcp": {"sack": {"receive_window": "600000B"}},
        "port": {"bottleneck": {"buffer": 12000}},
    },
    "lan-5-random": {
        "duration": "2s",
        "topology": {"n_source": {"sources": 5, "link_delay": "5us"}},
        "tcp": {"vanilla": {"receive_window": "65535B", "tick_phase": "random"}},
        "host": {"start_spread": "100ms"},
        "port": {"bottleneck": {"buffer": 1000}},
    },
    "unequal-rtt": {
        "duration": "2s",
        "topology": {
            "n_source": {"sources": 10, "link_delay": "10us", "access_delays": {"source6-10": "280us"}},
        },
        "tcp": {"reno": {}},
        "port": {"bottleneck": {"buffer": 1000}},
    },
}

#: Scenarios that differ in their TCP alone.
PAIRS = (("lan-5", "lan-5-sack"), ("wan-5", "wan-5-sack"))
#: Scenarios that differ in their clocks and starts alone: the same for all hosts, and random.
CLOCKS = (("lan-5", "lan-5-random"),)

#: What a policy is put beside where nothing is said.
CLASSICS = ("epd", "selective_drop", "fba")

#: What is measured in each scenario, by the name that metrics have.
MEASURES = {
    "efficiency": "efficiency",
    "fairness": "fairness",
    "max_queue_cells": "ports.bottleneck.max_queue_cells",
    "timeouts": "flows.sum(*).timeouts",
    "least_goodput_mbps": "flows.least(*).goodput_mbps",
}
#: Shares, whose mean over the scenarios means something.
SHARES = ("efficiency", "fairness")


def scenario(name: str, policy: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A scenario of the set with this policy, as a table."""
    made = SCENARIOS[name]
    port = {"bottleneck": {**made["port"]["bottleneck"], "policy": policy}}
    return {"name": name, **made, "port": port, **changes}


def tcp_of(name: str) -> str:
    """The TCP variant of a scenario of the set."""
    [variant] = SCENARIOS[name]["tcp"]
    return str(variant)


def duration_of(name: str) -> str:
    """The duration of a scenario of the set, for people."""
    return str(SCENARIOS[name]["duration"]).replace("s", " s")


def classic(name: str, of: str) -> dict[str, Any]:
    """A policy of the list for a scenario of the set; EPD has the threshold of four fifths of the buffer."""
    if name != "epd":
        return {name: {}}
    return {name: {"threshold": SCENARIOS[of]["port"]["bottleneck"]["buffer"] * 4 // 5}}
