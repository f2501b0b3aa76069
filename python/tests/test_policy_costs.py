"""What policies and schedulers cost a switch, and the page that says so."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pages import ROOT

from celltrain.catalog import KINDS, Cost, entries


def cost(kind: str, name: str) -> Cost:
    [found] = [entry.cost for entry in entries(kind) if entry.name == name]
    assert found is not None
    return found


def test_the_tables_of_the_page_are_those_of_the_core():
    command = [sys.executable, str(ROOT / "scripts" / "policy_costs.py"), "--check"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_policies_and_schedulers_have_costs_and_nothing_else_has():
    for kind in KINDS:
        for entry in entries(kind):
            assert (entry.cost is not None) == (kind in {"policies", "schedulers"}), entry.name


@pytest.mark.parametrize("kind", ["policies", "schedulers"])
def test_what_a_cost_comes_to_is_the_sum_of_its_parts(kind: str):
    for entry in entries(kind):
        of = cost(kind, entry.name)
        assert of.bits_per_vc == sum(part.bits for part in of.per_vc)
        assert of.bits_per_port == sum(part.bits for part in of.per_port)
        assert of.bits_per_place == sum(part.bits for part in of.per_place)
        assert of.operations_per_cell == sum(part.operations for part in of.per_cell) > 0
        assert of.operations_per_frame == sum(part.operations for part in of.per_frame)
        assert of.stored_bits(vcs=10, places=3) == 10 * of.bits_per_vc + of.bits_per_port + 3 * of.bits_per_place


def test_virtual_queuing_costs_nothing_for_a_place_and_per_vc_queuing_a_pointer():
    virtual, fifo, queues = (
        cost("policies", "virtual_queuing"),
        cost("schedulers", "fifo"),
        cost("schedulers", "round_robin"),
    )
    assert virtual.bits_per_place == fifo.bits_per_place == 0
    assert queues.bits_per_place == 16
    accounting = cost("policies", "per_vc_accounting")
    cheap = virtual.stored_bits(vcs=1000, places=4000) + fifo.stored_bits(vcs=1000, places=4000)
    dear = accounting.stored_bits(vcs=1000, places=4000) + queues.stored_bits(vcs=1000, places=4000)
    assert dear > 3 * cheap
    assert virtual.bits_per_vc == accounting.bits_per_vc + 16, "the pointer of the ring"


def test_explain_shows_the_parts_of_a_cost(celltrain):
    told = celltrain("explain", "virtual_queuing", "--json").json["cost"]
    assert {"what": "M_j", "bits": 16} in told["per_vc"]
    assert told["bits_per_place"] == 0
    text = celltrain("explain", "round_robin").out
    assert "the next place" in text
    assert "place of the buffer" in text
    assert celltrain("explain", "reno", "--json").json["cost"] is None
