"""Tests that a refusal names a valid alternative, and that settings without effect are not accepted silently."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import NIGHTLY, SMALL, Command, is_refused

import celltrain as ct
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.plan.axes import defaults
from celltrain.errors import package
from celltrain.model.scenario import read

REQUESTS = """\
duration = "2ms"
topology.leaf_spine = { leaves = 2, spines = 1, hosts_per_leaf = 2, host_rate = "1Gbps", host_delay = "1us" }
[incast.query]
senders = 2
bytes = "3kB"
interval = "1ms"
[port.default]
buffer = "shared"
policy.ppd = {}
[switch."*".memory]
cells = 1000
pool.main.policy.complete_sharing = {}
"""
POLICY = "pool.main.policy.complete_sharing = {}"

#: Changes that make a scenario invalid. Some of the faults concern a key that is missing in the text.
WRONG = [
    (SMALL, 'link_delay = "5us"', ""),
    (SMALL, "sources = 3", "sources = 0"),
    (SMALL, "buffer = 100", "bufer = 100"),
    (SMALL, "threshold = 60", "threshold = 600"),
    (SMALL, "buffer = 100", "buffer = 4294967296"),
    (SMALL, "[port.bottleneck]", '[tcp.newreno]\ncongestion = "dctcp"\n[port.bottleneck]'),
    (SMALL, "[port.bottleneck]", '[link."a->b"]\nlose = [{ packets = [1] }]\n[port.bottleneck]'),
    (REQUESTS, "cells = 1000", "cells = 4294967296"),
    (REQUESTS, POLICY, "pool.a.policy.complete_sharing = {}\npool.b.policy.complete_sharing = {}"),
    (REQUESTS, POLICY, 'pool.main = { headroom = 5, policy.formula.admit = "q_j < 9" }'),
    (REQUESTS, "cells = 1000", "cells = 1000\nqueue = [{ xon = 5 }, { pool = 'x' }]"),
    (REQUESTS, "senders = 2", "senders = 9"),
]


@pytest.mark.parametrize(("base", "before", "after"), WRONG)
def test_an_error_in_a_scenario_file_has_its_line_even_if_options_change_the_scenario(
    base: str, before: str, after: str, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(base.replace(before, after))
    plain, changed = read(file).faults, read(file, {"seed": 7}).faults
    assert plain
    assert all(fault.line for fault in plain)
    assert sorted(fault.message for fault in plain) == sorted(fault.message for fault in changed)


def test_a_congestion_control_that_quic_lacks_is_refused_with_a_list_of_known_controls() -> None:
    with pytest.raises(ct.ScenarioError, match="is refused: input should be 'new_reno', 'cubic' or 'bbr'"):
        ct.Quic(congestion="vegas")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "lqd"], ["did you mean longest_queue_drop?"]),
        (["explain", "thruput"], ["did you mean throughput_mbps?"]),
        (["explain", "fairnes"], ["did you mean fairness or "]),
        (["explain", "DT"], ["did you mean dynamic_threshold?"]),
        (["explain", "af-96-1296"], ["did you mean af-96-1269?"]),
        (["reproduce", "af-96-1296"], ["did you mean af-96-1269?"]),
        (["study", "tagginng"], ["did you mean tagging?"]),
        (
            ["compare", "memory-formula", "--vary", "switch.sw.memory.pool.main.policy=lqd"],
            ["Did you mean longest_queue_drop?"],
        ),
        (
            ["compare", "lan-epd", "--measures", "thruput"],
            ["Did you mean goodput_mbps or flows.sum(*).throughput_mbps"],
        ),
        (
            ["compare", "leaf-spine-web-search", "--measures", "requests.web.short.slowdown_p99.9"],
            ["the names of percentiles have no decimal point: p999 is the 99.9th percentile"],
        ),
    ],
)
def test_the_error_for_a_misspelt_name_suggests_the_most_similar_known_name(
    celltrain: Command, arguments: list[str], words: list[str]
) -> None:
    is_refused(celltrain(*arguments), words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["compare", "lan-epd", "--seed", "-1"],
            "--seed '-1' is not a whole number from 0 to 18,446,744,073,709,551,615; see celltrain compare -h",
        ),
        (["run"], "FILE is missing; see celltrain run -h"),
        (["run", "lan-epd", "--nope"], "--nope is not an option of celltrain run"),
        (["run", "lan-epd", "--seed"], "--seed needs a value; see celltrain"),
        (["nope"], "No such command 'nope'; see celltrain -h"),
    ],
)
def test_error_messages_about_options_are_one_line_long_like_those_about_files(
    celltrain: Command, arguments: list[str], message: str
) -> None:
    answer = celltrain(*arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith(message)


def test_errors_in_options_are_also_printed_as_json_if_the_json_option_is_given(celltrain: Command) -> None:
    answer = celltrain("run", "lan-epd", "--seed", "x", "--json")
    assert (answer.code, answer.err) == (2, "")
    assert answer.json["faults"][0]["key"] == "--seed"


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("memory_formula", "A memory policy as a formula"),
        ("fair buffer allocation", "FBA: Fair buffer allocation"),
        ("PIT", "PIT: Probability integral transform"),
        ("thresholds", "threshold:"),
    ],
)
def test_the_explain_command_finds_a_term_by_each_of_its_names(celltrain: Command, term: str, words: str) -> None:
    answer = celltrain("explain", term)
    assert answer.code == 0
    assert words in answer.out


MEMORY_POLICY = """\
[policy.formula]
admit = "q_i + 1 <= alpha * rank * (B - Q)"
constants = { alpha = 1 }
"""


@pytest.mark.slow
def test_a_policy_file_for_a_shared_memory_is_checked_as_a_memory_policy(celltrain: Command, tmp_path: Path) -> None:
    file = tmp_path / "rank.toml"
    file.write_text(MEMORY_POLICY)
    advice = f"compare it with --vary 'switch.*.memory.pool.main.policy=@{file}'"
    valid = celltrain("check", file)
    assert " ".join(valid.out.split()) == f"{file}: the memory policy rank; no problems found; {advice}"
    if NIGHTLY:
        quick = ("--scenarios", "switch", "--seeds", 1, "--against", "complete_sharing")
        assert "7 of 7 checks hold" in celltrain("vet", file, *quick, "--brief").out
    file.write_text(MEMORY_POLICY.replace("rank", "rnak"))
    is_refused(
        celltrain("check", file),
        [f"{file}:2: policy.formula.admit", "does not know rnak; choose from alpha, B, N, Q, q_i, n, rank"],
    )
    file.write_text(MEMORY_POLICY.replace("q_i + 1 <= alpha * rank * (B - Q)", "q_i < alpha * Q"))
    dead = celltrain("check", file)
    assert "policy.formula refuses every cell while the pool is empty: q_i < alpha * Q is 0 < 0" in dead.err
    file.write_text('[policy.formula]\nadmit = "Y < K"\n')
    assert "the port policy rank; no problems found" in celltrain("check", file).out


def test_a_network_without_flows_has_no_efficiency_measure(celltrain: Command, tmp_path: Path) -> None:
    file = tmp_path / "requests.toml"
    file.write_text(REQUESTS)
    answer = celltrain("run", file)
    assert (answer.code, "efficiency" in answer.out, "query" in answer.out) == (0, False, True)
    assert "efficiency" not in defaults({"topology": {"leaf_spine": {}}, "incast": {"query": {}}})
    assert "efficiency" in defaults({"topology": {"n_source": {}}})


def test_the_output_states_the_number_of_values_for_a_mean_over_only_some_runs() -> None:
    class Runs(SimpleNamespace):
        def __len__(self) -> int:
            return len(self.case)

    runs = Runs(
        case=np.repeat([0, 1, 2], 4),
        values=np.full((12, 1), np.nan),
        gaps={(0, 0): "too few", (4, 0): "", (5, 0): "", (8, 0): ""},
    )
    runs.gaps |= {(9, 0): "", (10, 0): "", (11, 0): ""}
    [warning] = plan_warnings.without_values(["p99"], runs)  # type: ignore[arg-type]
    assert warning == (
        "too few; the measure has no value in 7 runs of 12. In 2 cases, the mean covers only the runs with a value, in one case 2 of 4"
    )
    [whole] = plan_warnings.without_values(
        ["p99"], Runs(case=np.zeros(1, int), values=np.array([[np.nan]]), gaps={(0, 0): "too few"})
    )  # type: ignore[arg-type]
    assert whole == "too few; the measure has no value in 1 run of 1"


def test_installation_hints_refer_to_the_checkout_if_there_is_one() -> None:
    # The tests run in a checkout, from which no package is published.
    assert package("mmu") == "'.[mmu]'"
