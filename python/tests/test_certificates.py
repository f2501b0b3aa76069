"""Runs that are known without running: rows filled by certificates, and the search for the smallest value of a setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command

import celltrain as ct
from celltrain.ensemble.bounding import bound
from celltrain.ensemble.store import Store

LAN: dict[str, Any] = {"sources": 3, "link_delay": "5us", "duration": "20ms"}
AXES = {
    "port.bottleneck.buffer": [500, 5000, 20_000],
    "policy": {
        "path": "port.bottleneck.policy",
        "values": {"tail_drop": {"tail_drop": {}}, "epd": {"epd": {"threshold": 0.8}}, "fba": {"fba": {}}},
    },
}


def swept(tmp_path: Path, name: str, **options: Any) -> Store:
    lan = ct.n_source(**LAN, buffer_cells=1000, policy=ct.TailDrop())
    measures = ["efficiency", "ports.bottleneck.lost_cells", "ports.bottleneck.buffer_cells"]
    return ct.sweep(lan, over=AXES, seeds=2, measures=measures, store=tmp_path / name, **options)


def test_rows_filled_with_reused_results_equal_the_simulated_rows_on_any_number_of_threads(tmp_path: Path) -> None:
    filled, threads = swept(tmp_path, "a", jobs=1), swept(tmp_path, "b", jobs=2)
    run = swept(tmp_path, "c", certificates=False)
    tables = [store.runs() for store in (filled, threads, run)]
    for own in tables[:2]:
        np.testing.assert_array_equal(own.values, tables[2].values)
        np.testing.assert_array_equal(own.fingerprint, tables[2].fingerprint)
    known = [store.filled() for store in (filled, threads, run)]
    assert known[0] == known[1]
    assert len(known[0]) >= 6
    assert known[2] == {}


def test_a_row_filled_with_a_reused_result_refers_to_a_run_with_the_same_seed_and_fingerprint(tmp_path: Path) -> None:
    store = swept(tmp_path, "a")
    query = "SELECT lower(hex(run_key)), seed, fingerprint FROM runs"
    with store.reading() as database:
        runs = {key: rest for key, *rest in database.rows(query)}
    for own, other in store.filled().items():
        assert runs[own] == runs[other]


def test_the_json_output_counts_the_runs_whose_results_were_known_without_running(celltrain: Command) -> None:
    words = ["compare", "lan-tail-drop", "--vary", "port.bottleneck.buffer=50000,60000", "--set", "duration=20ms"]
    words += ["--seeds", "2", "--json"]
    assert celltrain(*words).json["without_running"] == 2
    assert celltrain(*words, "--no-certificates").json["without_running"] == 0


def test_all_seeds_of_a_run_without_random_numbers_are_the_same_run(celltrain: Command) -> None:
    words = ["compare", "lan-tail-drop", "--set", "duration=20ms", "--seeds", "3", "--json"]
    assert celltrain(*words, "--set", "switch.tie_order=fixed").json["without_running"] == 2
    assert celltrain(*words).json["without_running"] == 0


def test_a_result_of_the_same_policy_is_reused_even_if_a_less_restrictive_policy_differs(
    tmp_path: Path,
) -> None:
    axes = {
        "port.bottleneck.buffer": [8000, 20_000],
        "policy": {
            "path": "port.bottleneck.policy",
            "values": {"tail_drop": {"tail_drop": {}}, "epd": {"epd": {"threshold": 1000}}},
        },
    }
    lan = ct.n_source(**LAN | {"sources": 5}, buffer_cells=1000, policy=ct.TailDrop())
    store = ct.sweep(lan, over=axes, seeds=1, measures=["efficiency"], store=tmp_path / "a")
    runs = store.runs()
    assert len(store.filled()) == 2
    assert len({*runs.fingerprints}) == 2


class Never(ct.PythonPolicy):
    def admit(self, view: Any, vc: Any) -> bool:
        return True


@pytest.mark.parametrize(
    "policy, flow",
    [(Never(), {}), (ct.TailDrop(), {"tcp1-3": ct.FlowOptions(stack=ct.Smoltcp())})],
    ids=["policy", "stack"],
)
def test_a_result_states_why_results_of_runs_with_user_code_are_not_reused(policy: Any, flow: dict[str, Any]) -> None:
    lan = ct.n_source(**LAN | {"duration": "5ms"}, buffer_cells=1000, policy=policy).replace(flow=flow)
    found = bound(lan, "port.bottleneck.buffer", high=10_000, measure="ports.bottleneck.lost_cells")
    assert found.to_dict()["without_certificate"] == ("a Python class or a real stack takes part in the run",)
    assert found.without_running == 0


def test_a_search_states_why_results_of_its_runs_are_not_reused() -> None:
    lan = ct.n_source(**LAN | {"duration": "5ms"}, buffer_cells=100, policy=ct.SelectiveDrop())
    lan = lan.replace(flow={"tcp1-3": ct.FlowOptions(stack=ct.Smoltcp())})
    z = {"path": "port.bottleneck.policy.selective_drop.z", "from": 0.2, "to": 2.0}
    seeds = {"search": 2, "selection": 2, "confirmation": 2}
    found = ct.tune(lan, parameters={"Z": z}, trials=4, seeds=seeds)
    assert found.facts["without_certificate"] == ["a Python class or a real stack takes part in the run"]


def test_the_search_for_the_smallest_buffer_without_loss_finds_the_largest_queue() -> None:
    lan = ct.n_source(**LAN, buffer_cells=1000, policy=ct.TailDrop())
    found = bound(lan, "port.bottleneck.buffer", high=100_000)
    largest = ct.run(ct.n_source(**LAN, buffer_cells=100_000, policy=ct.TailDrop())).ports
    queue = dict(zip(largest["name"].to_pylist(), largest["max_queue_cells"].to_pylist(), strict=True))
    assert found.smallest == max(queue.values())
    assert found.largest_without == found.smallest - 1
    assert found.without_running > 0
    assert found.runs < 10


def test_a_bound_search_is_refused_if_the_measure_is_not_monotone_and_the_error_cites_two_runs() -> None:
    lan = ct.n_source(**LAN, buffer_cells=1000, policy=ct.TailDrop())
    with pytest.raises(
        ct.InputError, match=r"rises and falls as port.bottleneck.buffer grows: .* gives .* but .* gives"
    ):
        bound(lan, "port.bottleneck.buffer", high=10_000, measure="ports.bottleneck.max_queue_cells", at_most=100)
