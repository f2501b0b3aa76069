"""Dropped cells by reason: tables, answers and explanations count the same, and the reasons add up."""

from __future__ import annotations

import re

import pytest
from conftest import Command

import celltrain as ct

#: Networks with memories, ports with policies, early drops and links that lose cells.
SETTINGS = {
    "memory-dynamic-threshold": {},
    "memory-longest-queue-drop": {},
    "memory-lossless": {},
    "leaf-spine-web-search": {"duration": "5ms", "measure": {"to": "2ms"}},
    "lan-epd": {"link.source1->sw1.lose": [{"flow": "tcp1", "packets": [3, 5]}]},
    "lan-drop-from-front": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_cell_drops_by_reason_add_up_to_the_totals_of_the_port_and_of_the_network(name: str) -> None:
    answer = ct.run(ct.load(name, settings={"duration": "100ms", **SETTINGS[name]})).to_dict()
    drops = dict(answer["drops"])
    total = drops.pop("dropped")
    assert total == sum(drops.values()) == answer["cells"]["lost"] + answer["cells"]["discarded"]
    for port in answer["ports"]:
        assert port["dropped_cells"] == sum(port[f"{reason}_cells"] for reason in drops if reason != "lost_on_links")
    links = sum(link["lost_cells"] for link in answer.get("links", ()))
    assert total == links + sum(port["dropped_cells"] for port in answer["ports"])


def test_the_printed_table_of_a_network_with_shared_memories_counts_each_dropped_cell_once(celltrain: Command) -> None:
    options = ["memory-dynamic-threshold", "--set", "duration=200ms"]
    text, answer = celltrain("run", *options).out, celltrain("run", *options, "--json").json
    lines = text.split("dropped cells")[1].split("\n\n")[0].splitlines()[2:]
    counts = [int(re.split(r" {2,}", line)[1].replace(",", "")) for line in lines]
    assert sum(counts[:-1]) == counts[-1] == answer["drops"]["dropped"] > 0
    for other in ("refused", "discarded, whole", "lost for lack"):
        assert other not in text


@pytest.mark.slow
def test_packets_refused_by_a_shared_memory_are_not_counted_as_refused_by_the_port_policy(celltrain: Command) -> None:
    options = ["memory-dynamic-threshold"]
    for setting in ("duration=200ms", "framing=packets", "port.default.policy=tail_drop"):
        options += ["--set", setting]
    drops = celltrain("run", *options, "--json").json["drops"]
    assert drops["refused_by_memory"] > 0
    assert drops["discarded_frame"] == 0
    assert "frame refused by the memory" in celltrain("run", *options).out
    told = celltrain("why", *options, "--flow", "tcp1", "--at", "0.1s", "--all").out
    assert "the memory of the port" in told
    assert "frames were refused there" not in told
