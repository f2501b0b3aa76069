"""Scenario handles: read and checked once, pickled in canonical form, and run from any thread."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import celltrain as ct
from celltrain import _core
from celltrain.model.scenario import Reading, read

#: Reads a handle from standard input and runs it.
ELSEWHERE = """
import json, pickle, sys
print(json.loads(pickle.load(sys.stdin.buffer).run(3)[0])["fingerprint"])
"""


@pytest.fixture
def handle() -> _core.Case:
    scenario = ct.n_source(
        sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="20ms", tcp=ct.Tahoe(), seed=5
    )
    return read(scenario).accepted()


def fingerprint(handle: _core.Case, seed: int | None) -> str:
    answer, _ = handle.run(seed)
    return json.loads(answer)["fingerprint"]


def test_the_canonical_form_of_a_scenario_already_in_canonical_form_is_identical(handle):
    again = Reading.of_core(_core.parse_json(handle.json, "again"))
    assert again.accepted().json == handle.json
    assert again.scenario == json.loads(handle.json)
    assert ct.Scenario.model_validate(again.scenario).seed == 5


def test_a_pickled_scenario_handle_can_be_run_in_another_process(handle):
    content = pickle.dumps(handle)
    assert handle.json.encode() in content
    assert pickle.loads(content).json == handle.json
    ended = subprocess.run([sys.executable, "-c", ELSEWHERE], input=content, capture_output=True, check=True)
    assert ended.stdout.decode().strip() == fingerprint(handle, 3)


def test_a_scenario_handle_can_be_run_several_times_with_the_same_or_different_seeds(handle):
    own = fingerprint(handle, None)
    assert fingerprint(handle, 6) != own
    assert fingerprint(handle, 5) == own
    assert json.loads(handle.run(None)[0])["seed"] == 5


def test_inspecting_the_network_does_not_change_the_run(handle):
    before = pickle.loads(pickle.dumps(handle))
    assert [flow["name"] for flow in json.loads(handle.network())["flows"]] == ["tcp1", "tcp2"]
    assert handle.problems(["efficiency"]) == [None]
    assert fingerprint(handle, 5) == fingerprint(before, 5)


def test_several_threads_can_share_a_scenario_handle_that_has_not_been_read_yet(handle):
    unread = _core.Case(handle.json)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: fingerprint(unread, seed), [1, 2] * 4))
    assert found == [fingerprint(handle, 1), fingerprint(handle, 2)] * 4


def test_errors_in_an_unpickled_scenario_handle_are_raised_at_its_first_use(handle):
    wrong = handle.json.replace('"sources":2', '"sources":0')
    assert wrong != handle.json
    refused = pickle.loads(pickle.dumps(_core.Case(wrong)))
    for ask in (lambda: refused.canonical, refused.network, lambda: refused.run(1)):
        with pytest.raises(ValueError, match=r"topology\.n_source\.sources"):
            ask()
    assert refused.json == wrong


def test_a_batch_of_runs_of_a_scenario_handle_gives_the_results_of_single_runs(handle):
    found = {}
    runs = [(0, 5), (1, 6), (0, 6)]
    _core.run_many(
        [handle, _core.Case(handle.json)],
        runs,
        2,
        lambda index, text: found.setdefault(index, json.loads(text)["fingerprint"]),
    )
    assert found == {index: fingerprint(handle, seed) for index, (_, seed) in enumerate(runs)}
