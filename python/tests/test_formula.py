"""Policies written as formulas, from the command line and from Python."""

from __future__ import annotations

import json

import pytest

import celltrain as ct

SCENARIO = """\
name = "mine"
duration = "20ms"

[topology.n_source]
sources = 3
link_delay = "5us"

[port.bottleneck]
buffer = 200
policy.formula = {formula}
"""


def mine(tmp_path, formula: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(SCENARIO.format(formula=formula))
    return str(path)


def test_check_shows_a_mistake_at_its_place(celltrain, tmp_path):
    path = mine(tmp_path, '{ admit = "X <= R or Y * n / X <= 0.8", constants = { R = "0.9 * K" } }')
    told = celltrain("check", path)
    assert told.code == 2
    lines = told.err.splitlines()
    # Once, though several ports have the policy.
    [at] = [i for i, line in enumerate(lines) if "did you mean N?" in line]
    assert "mine.toml:10: port.bottleneck.policy.formula.admit = " in lines[at]
    assert lines[at + 1].strip() == "X <= R or Y * n / X <= 0.8"
    assert lines[at + 2].index("^") == lines[at + 1].index("n /")


@pytest.mark.parametrize(
    "formula, words",
    [
        ('{ admit = "X + 1" }', ["formula.admit", "is in cells; admit is a condition"]),
        ('{ admit = "X <= N" }', ["one is in cells, the other a number without unit"]),
        ('{ admit = "(X <= 3" }', ["ends where ) is expected for the ( at 1"]),
        ('{ admit = "X <= A", constants = { A = "B", B = "A" } }', ["constants.B", "goes in a circle"]),
        ('{ admit = "X <= 3", on_frame = { avg = "X" } }', ["on_frame.avg", "is no state"]),
        ('{ admit = "Y <= W", constants = { W = { tcp9 = 3, default = 1 } } }', ["constants.W.tcp9", "names no VC"]),
        ('{ admit = "Y <= W", constants = { W = { tcp1 = 3 } } }', ["constants.W", 'has no value for "tcp2"']),
        ('{ admit = "X <= 3", when_full = "lose" }', ["when_full", "lose_cell"]),
        ("{ constants = { A = 3 } }", ["formula.admit", "is missing; it must be a formula"]),
        ("{ admit = 3 }", ["formula.admit", "is not a formula"]),
    ],
)
def test_every_mistake_is_refused_with_its_key(celltrain, tmp_path, formula, words):
    told = celltrain("check", mine(tmp_path, formula))
    assert told.code == 2
    assert "Traceback" not in told.err
    for word in words:
        assert word in told.err


def test_a_formula_of_a_megabyte_is_refused_in_a_few_lines(celltrain, tmp_path):
    told = celltrain("check", mine(tmp_path, '{ admit = "' + "X + " * 250_000 + 'X <= 3" }'))
    assert told.code == 2
    assert "4000 is the most" in told.err
    assert len(told.err) < 3000


def test_explain_is_the_page_of_the_language(celltrain):
    told = celltrain("explain", "formula").out
    assert "if c then a else b" in told
    assert "random()" in told


def test_a_formula_is_the_run_of_the_policy_it_says():
    def run(policy):
        scenario = ct.n_source(sources=5, link_delay="5us", buffer_cells=300, policy=policy, duration="300ms")
        return ct.run(scenario, seed=3)

    formula = ct.Formula(admit="X <= R or Y * N / X <= Z * (K - R) / (X - R)", constants={"R": "0.9 * K", "Z": 0.8})
    ours, native = run(formula), run(ct.Fba())
    assert ours.fingerprint == native.fingerprint
    assert sum(ours.ports["discarded_frames"].to_pylist()) > 0


def test_what_is_no_number_is_counted_in_the_result(celltrain, tmp_path):
    path = mine(tmp_path, '{ admit = "Y / X < 2" }')
    [port] = [p for p in json.loads(celltrain("run", path, "--json").out)["ports"] if p["policy"] == "formula"]
    assert port["replaced_results"] > 0


def test_constants_of_a_formula_are_searched():
    from celltrain.tuning import TunePlan

    assert len(TunePlan.load("tune-formula").configurations.points) == 2
    formula = ct.Formula(admit="X <= R * K or Y * N <= Z * X", constants={"R": 0.5, "Z": 1.0})
    tuned = ct.tune(
        ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=formula, duration="50ms"),
        parameters={"Z": {"path": "port.bottleneck.policy.formula.constants.Z", "from": 0.5, "to": 2.0}},
        trials=3,
        batch=3,
        finalists=2,
        seeds={"search": 1, "selection": 2, "confirmation": 2},
    )
    [search] = tuned.searches
    assert all(0.5 <= one.parameters["Z"] <= 2.0 for one in search.confirmed)
