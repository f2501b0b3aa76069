"""`celltrain vet` and `ct.vet`: what must hold of a policy, and what it does beside the classics."""

from __future__ import annotations

import json

import pytest
from conftest import WITHOUT_POLICY, is_refused

import celltrain as ct

FBA = 'admit = "X <= R or Y * N / X <= Z * (K - R) / (X - R)"\nconstants = { R = "0.9 * K", Z = 0.8 }\n'
QUICK = ["--scenarios", "lan-5", "--seeds", "2"]


def file(tmp_path, text: str, name: str = "mine.toml") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def answer():
    formula = {"formula": {"admit": "X <= 0.5 * K or Y * N <= 0.8 * X"}}
    return ct.vet(formula, scenarios=["lan-5", "unequal-rtt"], seeds=3)


def test_an_answer_has_checks_metrics_with_intervals_and_the_classics_beside(answer):
    assert [check["check"] for check in answer["conformance"]] == [
        "never_above_capacity",
        "counts_equal_a_recount",
        "whole_frames",
        "same_seed_same_answers",
        "both_engines_agree",
        "every_run_ends",
        "every_result_is_a_number",
    ]
    assert all(check["holds"] and check["evidence"] for check in answer["conformance"])
    assert list(answer["beside"]) == ["epd", "selective_drop", "fba"]
    for name in ("efficiency", "fairness", "lan-5.efficiency", "unequal-rtt.max_queue_cells"):
        for one in (answer["metrics"], *answer["beside"].values(), *answer["differences"].values()):
            assert one[name]["low"] <= one[name]["mean"] <= one[name]["high"]
    json.dumps(answer, allow_nan=False)


def test_metrics_are_the_means_of_the_runs_and_differences_their_differences(answer):
    shares = [answer["metrics"][f"{name}.efficiency"]["mean"] for name in ("lan-5", "unequal-rtt")]
    assert answer["metrics"]["efficiency"]["mean"] == pytest.approx(sum(shares) / 2)
    for other, more in answer["differences"].items():
        for name, estimate in more.items():
            expected = answer["metrics"][name]["mean"] - answer["beside"][other][name]["mean"]
            assert estimate["mean"] == pytest.approx(expected, abs=1e-9)


def test_a_formula_of_a_classic_is_that_classic(tmp_path, celltrain):
    told = celltrain("vet", file(tmp_path, f"[policy.formula]\n{FBA}"), *QUICK, "--beside", "fba", "--json")
    assert told.code == 0
    answer = json.loads(told.out)
    assert answer["policy"] == "mine"
    assert answer["metrics"] == answer["beside"]["fba"]
    assert "the same runs" in answer["artifacts"]["warnings"][0]


def test_the_table_is_printed_and_is_an_artifact(tmp_path, celltrain):
    told = celltrain("vet", file(tmp_path, '[formula]\nadmit = "X <= 600"\n'), *QUICK, "--beside", "epd")
    assert told.code == 0
    assert "whole frames" in told.out and "yes" in told.out
    [line] = [line for line in told.out.splitlines() if "max_queue_cells" in line]
    assert "±" in line
    answer = ct.vet({"formula": {"admit": "X <= 600"}}, scenarios=["lan-5"], beside=["epd"], seeds=2)
    rows = answer["artifacts"]["table"].splitlines()
    assert rows[0] == "| metric | formula | epd |"
    assert len(rows) == 2 + len(answer["metrics"])


def test_a_whole_scenario_with_one_policy_is_vetted(tmp_path, celltrain):
    scenario = f"{WITHOUT_POLICY}[port.bottleneck.policy.formula]\n{FBA}"
    told = celltrain("vet", file(tmp_path, scenario), *QUICK, "--beside", "fba", "--json")
    assert told.code == 0
    answer = json.loads(told.out)
    assert answer["metrics"] == answer["beside"]["fba"]


def test_a_check_that_does_not_hold_is_exit_code_one(tmp_path, celltrain):
    told = celltrain("vet", file(tmp_path, '[policy.formula]\nadmit = "Y / X <= 0.9"\n'), *QUICK, "--json")
    assert told.code == 1
    bad = [check for check in json.loads(told.out)["conformance"] if not check["holds"]]
    assert [check["check"] for check in bad] == ["every_result_is_a_number"]
    assert "in lan-5" in bad[0]["evidence"]


@pytest.mark.parametrize(
    "text, words",
    [
        ('[policy.formula]\nadmit = "X <= k"\n', ["mine.toml:2: policy.formula.admit", "did you mean K?", "^"]),
        ('[formula]\nadmit = "X <= k"\n', ["mine.toml:2: formula.admit", "did you mean K?"]),
        ('[policy.formula]\nadmitt = "X <= K"\n', ["mine.toml:2: policy.formula.admitt", "did you mean admit?"]),
        ("[policy.epd]\nthreshold = 5000\n", ["mine.toml:2: policy.epd.threshold", "above the buffer of 1000 cells"]),
        ("[policy.edp]\n", ["mine.toml:1: policy", "did you mean epd?"]),
        ("[policy.fba]\n[port]\n", ["mine.toml:2: port", "is unknown"]),
        ("policy = 3\n", ["mine.toml:1: policy", "must be a table policy"]),
        ("admit = 3\n", ["mine.toml", "has no policy"]),
        ("[policy", ["mine.toml:1"]),
        (
            '[policy.formula]\nadmit = "Y <= W"\nconstants.W = { tcp9 = 3, default = 1 }\n',
            ["mine.toml:3: policy.formula.constants.W.tcp9", "names no VC"],
        ),
    ],
)
def test_what_is_wrong_with_a_policy_is_said_with_its_place(tmp_path, celltrain, text, words):
    is_refused(celltrain("vet", file(tmp_path, text), *QUICK), words)


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(ct.InputError, match="lan-6"):
        ct.vet({"fba": {}}, scenarios=["lan-6"])
    with pytest.raises(ct.InputError, match="no-policy"):
        ct.vet({"fba": {}}, beside=["no-policy"])
    with pytest.raises(ct.InputError, match="is no policy"):
        ct.vet({})
    with pytest.raises(ct.InputError, match="scenarios"):
        ct.vet({"fba": {}}, scenarios=[])


def test_one_seed_has_no_interval():
    answer = ct.vet(ct.Fba(), scenarios=["lan-5"], beside=[], seeds=1)
    assert answer["policy"] == "fba"
    assert answer["metrics"]["efficiency"]["low"] is None
    assert answer["beside"] == answer["differences"] == {}
