"""Policies that deliver no data or very little: `check` and `vet` report them, and no measure makes them look good."""

from __future__ import annotations

import json
import re

import pytest
from conftest import import_or_skip
from tunes import PLAN

import celltrain as ct
from celltrain.model import shipped
from celltrain.model.scenario import read

EMPTY = "refuses every frame while the buffer is empty"
ONE = "while a single cell waits"

#: Faulty formulas by kind of fault: settings and expected message. A doctoral student wrote the first one, meaning "no
#: VC above 1.2 times the fair share". It passed all checks, with a fairness of 1.
DEAD = {
    "0 < 0 in an empty buffer": (
        {"admit": "X < 0.8 * K and Y * N < 1.2 * X"},
        f'{EMPTY}: Y * N < 1.2 * X is 0 < 0; add "X <= ... or"',
    ),
    "a fair share of zero cells": ({"admit": "Y < X / max(N, 1)"}, f"{EMPTY}: Y < X / max(N, 1) is 0 < 0"),
    "admits when the buffer is full": ({"admit": "X >= K"}, f"{EMPTY}: X >= K is 0 >= 1000"),
    "the comparison has the wrong direction": ({"admit": "X > 0.8 * K"}, f"{EMPTY}: X > 0.8 * K is 0 > 800"),
    "a threshold of 0, strict": (
        {"admit": "X < R", "constants": {"R": "0 * K"}},
        f'{EMPTY}: X < R is 0 < 0; add "X <= ... or"',
    ),
    "a threshold of 0": ({"admit": "X <= 0"}, f"refuses every frame {ONE}: X <= 0 is 1 <= 0"),
    "a constant condition": ({"admit": "1 > 2"}, f"{EMPTY}: 1 > 2 is 1 > 2"),
    "no frame of a second VC": (
        {"admit": "N < 1 or Y > 0"},
        f"refuses every frame of a second VC {ONE}: N < 1 is 1 < 1, and Y > 0 is 0 > 0",
    ),
    "no second frame of a VC": (
        {"admit": "X <= 0 or Y * N < X"},
        "refuses every frame of a VC while at least one cell of that VC waits: X <= 0 is 1 <= 0, and Y * N < X is 1 < 1",
    ),
    "frames only into a nearly empty buffer": (
        {"admit": "X < 2"},
        "refuses every frame while one frame waits (12 cells): X < 2 is 12 < 2",
    ),
    "only one frame of each VC in the whole run": (
        {"admit": "seen < 0.5", "vc_state": {"seen": 0}, "on_admission": {"seen": "1"}},
        f"{EMPTY}, after the first ",
    ),
    "only tagged frames": (
        {"admit": "tagged and X < 0.8 * K"},
        "admits only tagged frames (CLP = 1) while the buffer is empty: tagged is false",
    ),
    "a state that never opens": (
        {"admit": "open >= 1", "state": {"open": 0}, "on_admission": {"open": "1"}},
        f"{EMPTY}: open >= 1 is 0 >= 1",
    ),
    "a state that closes permanently": (
        {"admit": "sent < 30", "state": {"sent": 0}, "on_admission": {"sent": "sent + 1"}},
        f"{EMPTY}, after the first ",
    ),
    "only until a time": ({"admit": "now < 100 ms"}, f"{EMPTY}, after the first "),
    "a probability of zero": ({"admit": "random() < 0"}, f"{EMPTY}: random() < 0 is 0.5 < 0"),
    "a very small probability": ({"admit": "random() < 0.02"}, " frames while the buffer is empty: random() < 0.02"),
}
ALIVE = [
    "X <= 0.5 * K or X < 0.8 * K and Y * N <= 1.2 * X",
    "X <= 0.2 * K or Y * N < 1.2 * X",
    "not tagged",
    "Y < K - X",
    "true",
]


class Student(ct.PythonPolicy):
    def admit(self, view, vc):
        return view.X < 0.8 * view.K and view.Y * view.N < 1.2 * view.X


class OnlyTagged(ct.PythonPolicy):
    def admit(self, view, vc):
        return view.tagged


class OneAtATime(ct.PythonPolicy):
    def admit(self, view, vc):
        return view.X == 0


class NeverOpens(ct.PythonPolicy):
    def start(self, port):
        self.open = False

    def admit(self, view, vc):
        return self.open


class Fair(ct.PythonPolicy):
    def admit(self, view, vc):
        return view.X <= 0.5 * view.K or view.Y * view.N <= 0.8 * view.X


def lan(policy, **changes) -> ct.Scenario:
    return ct.n_source(
        **{"sources": 5, "link_delay": "5us", "buffer_cells": 1000, "policy": policy, "duration": "200ms", **changes}
    )


ADMITS, CARRIES = "admits_into_an_empty_buffer", "carries_half_of_tail_drop"


def failed(answer) -> list[tuple[str, str]]:
    return [(check["check"], check["evidence"]) for check in answer["conformance"] if not check["holds"]]


@pytest.mark.slow
@pytest.mark.parametrize("formula, expected", DEAD.values(), ids=DEAD)
def test_the_check_and_vet_commands_report_a_policy_formula_that_admits_no_frame(formula, expected):
    warnings = read(lan({"formula": formula})).warnings
    assert len(warnings) == 1, warnings
    assert expected in warnings[0]
    assert warnings[0].startswith("port.bottleneck.policy.formula ")
    answer = ct.vet({"formula": formula}, scenarios=["lan-5"], against=[], seeds=1)
    found = dict(failed(answer))
    nothing = answer["metrics"]["lan-5.efficiency"]["mean"] == 0
    if "a VC while at least one cell of that VC waits" in expected:
        # The policy delivers some frames, so the check fails because it delivers too few.
        assert list(found) == [CARRIES]
        assert re.fullmatch(r"\d+(\.\d+)? % in lan-5", found[CARRIES])
        evidence = answer["remarks"][-1]
    else:
        evidence = found[ADMITS]
        assert found.get(CARRIES) == "0 % in lan-5" if nothing else found.keys() <= {ADMITS, CARRIES}
    # Ignore the number of frames, which differs between the two messages.
    assert expected.split(", after")[0].split(" frames while")[-1] in evidence


def test_the_check_and_vet_commands_report_a_formula_that_refuses_cells_of_a_nearly_empty_buffer():
    """Advice to use "<=" led to this formula. `check` was silent, but the goodput was a fraction of tail drop's."""
    policy = {"formula": {"admit": "X < 0.8 * K and Y * N <= 1.2 * X"}}
    expected = (
        "refuses every frame of a VC while one frame of that VC (12 cells) and a single cell of another VC wait: "
        'Y * N <= 1.2 * X is 24 <= 15.6; add "X <= ... or"'
    )
    assert read(lan(policy)).warnings == [f"port.bottleneck.policy.formula {expected}"]
    assert ct.vet(policy, scenarios=["lan-5"], against=[], seeds=1)["remarks"] == [f"formula {expected}"]


def test_check_and_vet_report_a_formula_that_drops_every_frame_at_the_head():
    policy = {"formula": {"admit": "true", "drop_head": "sojourn >= 0 s"}}
    expected = "drops every frame at the head of the queue, even if it has not waited"
    assert read(lan(policy)).warnings == [f"port.bottleneck.policy.formula {expected}"]
    assert expected in dict(failed(ct.vet(policy, scenarios=["lan-5"], against=[], seeds=1)))[ADMITS]
    policy["formula"]["drop_head"] = "sojourn > 20 ms"
    assert read(lan(policy)).warnings == []
    assert failed(ct.vet(policy, scenarios=["lan-5"], against=[], seeds=1)) == []


@pytest.mark.parametrize("admit", ALIVE)
def test_a_formula_that_admits_frames_into_an_empty_buffer_gives_no_warning(admit):
    policy = {"formula": {"admit": admit}}
    assert read(lan(policy)).warnings == []
    assert failed(ct.vet(policy, scenarios=["lan-5"], against=[], seeds=1)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy, expected",
    [
        (Student(), f"{EMPTY}; no data was delivered in lan-5: 1 of 1 run"),
        (OnlyTagged(), "admits only tagged frames (CLP = 1) while the buffer is empty; no data was delivered in lan-5"),
        (OneAtATime(), f"refuses every frame {ONE}"),
        (NeverOpens(), f"{EMPTY}; no data was delivered in lan-5"),
    ],
)
def test_the_vet_command_reports_a_policy_class_that_admits_no_frame(policy, expected):
    found = dict(failed(ct.vet(policy, scenarios=["lan-5"], against=[], seeds=1)))
    evidence = found.pop(ADMITS)
    assert found == ({CARRIES: "0 % in lan-5"} if "no data was delivered" in expected else {})
    assert expected in evidence
    # Only runs execute a policy class, so `check` cannot report a problem.
    assert read(lan(policy)).warnings == []


def test_a_run_whose_policy_class_admits_no_frame_warns_that_no_data_was_delivered():
    with pytest.warns(ct.CelltrainWarning, match="this run delivered no data"):
        assert ct.run(lan(Student())).fairness is None


def test_no_warning_about_settings_without_effect_is_given_if_a_policy_delivers_no_data():
    """All runs of the policy have the same fingerprint, whatever else varies."""
    vary = {"port.bottleneck.policy": {"values": {"tail": {"tail_drop": {}}, "z": {"formula": {"admit": "X < 0"}}}}}
    found = ct.compare(lan("tail_drop"), vary=vary | {"port.bottleneck.buffer": [100, 1000]}, seeds=2)
    assert found.warnings[0].startswith("z carried nothing in any of 4 runs")
    assert not [one for one in found.warnings if "changes nothing" in one]


@pytest.mark.slow
def test_a_policy_class_that_admits_cells_into_an_empty_buffer_passes_the_vet_command():
    assert failed(ct.vet(Fair(), scenarios=["lan-5"], against=[], seeds=1)) == []


@pytest.fixture(scope="module")
def dead():
    return lan(ct.Formula(**DEAD["0 < 0 in an empty buffer"][0]), name="dead")


def test_no_shipped_scenario_gives_the_warning_about_policies_that_admit_no_frame():
    for name in shipped.names("scenario"):
        told = read(name).warnings
        assert not [one for one in told if "buffer is empty" in one or "single cell" in one], name


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_the_fairness_of_a_run_that_delivered_no_data_is_undefined(dead, engine):
    with pytest.warns(ct.CelltrainWarning, match=EMPTY):
        result = ct.run(dead, engine=engine)
    assert (result.efficiency, result.fairness, result.fairness_max_min) == (0.0, None, None)
    said = result.to_dict()
    assert said["fairness"] is None and said["fairness_max_min"] is None
    assert '"fairness": null' in json.dumps(said, allow_nan=False)
    assert "fairness undefined" in str(result) and "fairness=undefined" in repr(result)


def test_undefined_measures_are_printed_as_undefined_and_are_empty_in_files(dead, celltrain, tmp_path):
    file = tmp_path / "dead.toml"
    ct.save(dead, file)
    told = celltrain("run", file)
    assert told.code == 0
    assert "fairness    undefined: nothing arrived" in told.out
    assert f"warning: port.bottleneck.policy.formula {EMPTY}: Y * N < 1.2 * X is 0 < 0" in told.err
    several = json.loads(celltrain("run", file, "--seeds", "3", "--json").out)
    assert several["scenarios"][0]["fairness"] == {"mean": None, "low": None, "high": None, "n": 0}


def test_the_check_command_warns_about_a_policy_that_admits_no_frame_and_exits_with_0(dead, celltrain, tmp_path):
    file = tmp_path / "dead.toml"
    ct.save(dead, file)
    told = celltrain("check", file)
    assert told.code == 0
    assert EMPTY in told.err
    assert "valid, with 1 warning" in told.err + told.out


@pytest.mark.slow
def test_a_comparison_reports_runs_that_delivered_no_data_before_its_results(dead):
    with pytest.warns(ct.CelltrainWarning) as told:
        both = ct.compare(dead, lan(ct.Epd(threshold="80%"), name="epd"), seeds=2, measures=["fairness", "efficiency"])
    first = "dead carried nothing in any of 2 runs: its fairness is undefined, and a comparison with it is meaningless"
    assert both.warnings[0] == first
    assert first in [str(one.message) for one in told]
    assert str(both).splitlines()[0].startswith("dead (carried nothing), epd: seeds 1 to 2 each")
    said = both.to_dict()
    assert said["scenarios"][0]["fairness"] == {"mean": None, "low": None, "high": None, "n": 0}
    assert said["differences"][0]["fairness"] == {"mean": None, "low": None, "high": None}
    assert said["differences"][0]["efficiency"]["mean"] > 0.01
    assert both.runs["fairness"].null_count == 2
    assert "undefined" in str(both)


def test_the_compare_command_names_runs_that_delivered_no_data_in_its_heading(dead, celltrain, tmp_path):
    file = tmp_path / "dead.toml"
    ct.save(dead, file)
    vary = ("--vary", "port.bottleneck.policy=as-is,epd:threshold=80%")
    told = celltrain("compare", file, *vary, "--seeds", "2")
    assert told.code == 0
    assert told.out.lstrip().startswith("as-is (carried nothing), ")
    assert told.err.startswith("warning: as-is carried nothing in any of 2 runs")


def test_each_printed_mean_states_the_number_of_seeds_on_which_it_is_based():
    """A source that rarely starts within the run delivers nothing for some seeds."""
    text = {"admit": "lucky > 0.5", "state": {"lucky": 0}, "vc_state": {"seen": 0}}
    text["on_frame"] = {"lucky": "if seen < 1 and lucky == 0 then max(random(), 0.001) else lucky", "seen": "1"}
    policy = ct.Formula(**text)
    with pytest.warns(ct.CelltrainWarning):
        compared = ct.compare(lan(policy), seeds=8, measures=["fairness"])
    empty = int(compared.carried_nothing.sum())
    assert 0 < empty < 8
    said = compared.to_dict()
    assert said["scenarios"][0]["fairness"]["n"] == 8 - empty
    assert any(f"carried nothing in {empty} of 8 runs: fairness is undefined there" in one for one in said["warnings"])


def test_a_measure_that_divides_by_zero_is_undefined(dead):
    with pytest.warns(ct.CelltrainWarning):
        compared = ct.compare(
            dead,
            seeds=1,
            measures=[
                "flows.fairness(*).goodput_mbps",
                "flows.variation(*).goodput_mbps",
                "cells.lost / cells.delivered",
            ],
        )
    assert [mean.n[0] for mean in compared.means] == [0, 0, 0]


NEARLY_DEAD = {"selective_drop": {"threshold": 0}}


@pytest.mark.slow
def test_a_policy_with_less_than_half_the_goodput_of_tail_drop_fails_the_vet_command(celltrain, tmp_path):
    """The policy admits one frame of each VC at a time. It is fair, but delivers very little data."""
    file = tmp_path / "d16.toml"
    file.write_text("[policy]\nselective_drop = { threshold = 0 }\n")
    told = celltrain("vet", file, "--scenarios", "lan-5", "--seeds", "1", "--against", "epd", "--brief")
    assert told.code == 1
    first, second, *_ = told.out.splitlines()
    assert re.fullmatch(
        r"d16 carries \d+(\.\d)? % of the goodput of tail drop in lan-5; ignore its other measures", first
    )
    assert second == "d16 refuses every frame of a VC while at least one cell of that VC waits"
    assert "tail_drop" not in told.out
    assert "7 of 8 checks hold" in told.out
    assert re.search(r"carries half of tail drop +NO +\d+(\.\d)? % in lan-5", told.out)
    assert "admits into an empty buffer" not in told.out
    assert told.err.count("refuses every frame") == 1
    answer = ct.vet(NEARLY_DEAD, scenarios=["lan-5"], against=["tail_drop"], seeds=1)
    assert list(answer["beside"]) == ["tail_drop"]
    assert answer["remarks"][0].startswith("selective_drop carries 1")


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figures")
def test_comparisons_sweeps_and_reports_warn_about_policies_with_very_low_goodput(celltrain, tmp_path):
    policies = {"tail": {"tail_drop": {}}, "d16": NEARLY_DEAD}
    over = {"policy": {"path": "port.bottleneck.policy", "values": policies}, "duration": ["100ms", "200ms"]}
    with pytest.warns(ct.CelltrainWarning, match="d16 carries"):
        both = ct.compare(lan("tail_drop"), vary={"port.bottleneck.policy": {"values": policies}}, seeds=2)
    assert re.fullmatch(r"d16 carries \d+(\.\d)? % of the goodput of tail; ignore its other measures", both.warnings[0])
    with pytest.warns(ct.CelltrainWarning, match=r"policy = d16, duration = .* of the goodput of policy = tail, dur"):
        measures = ["efficiency", "fairness"]
        store = ct.sweep(lan("tail_drop"), over=over, seeds=2, measures=measures, store=tmp_path / "store")
    report = ct.report(store)
    assert "; ignore its other measures, and 1 more such point" in report.warnings[0]
    told = celltrain("report", tmp_path / "store").out
    assert re.search(
        r"Pareto-optimal points? .*\. [12] of them carr(y|ies) less than 10 % of the goodput of the best", told
    )


def test_low_goodput_warnings_compare_only_runs_of_the_same_network_and_tcp_variant():
    """A small buffer delivers little over a long round trip, whatever the policy."""
    found = ct.compare(lan("tail_drop"), vary={"port.bottleneck.buffer": [13, 1000]}, seeds=2, measures=["efficiency"])
    assert not [one for one in found.warnings if "ignore its" in one]


def test_the_vet_command_reports_low_goodput_first_and_exits_with_1(celltrain, tmp_path):
    file = tmp_path / "z.toml"
    file.write_text('[policy.formula]\nadmit = "X < 0.8 * K and Y * N < 1.2 * X"\n')
    told = celltrain("vet", file, "--scenarios", "lan-5", "--seeds", "2", "--against", "epd")
    assert told.code == 1
    assert told.out.splitlines()[0].startswith("lan-5: z carried nothing in any of 2 runs")
    assert "admits into an empty buffer" in told.out and "NO" in told.out
    assert re.search(r"whole frames +nothing sent +0 frames sent", told.out)
    assert re.search(r"carries half of tail drop +NO +0 % in lan-5", told.out)
    assert "undefined" in told.out and "*" not in next(x for x in told.out.splitlines() if "fairness" in x)


def test_a_report_begins_with_the_points_that_delivered_no_data(tmp_path):
    over = {"R": {"path": "port.bottleneck.policy.formula.constants.R", "values": [-0.1, 0.5]}}
    base = lan(ct.Formula(admit="X <= R * K", constants={"R": 0.5}))
    with pytest.warns(ct.CelltrainWarning, match="2 runs of 4 carried nothing"):
        store = ct.sweep(base, over=over, seeds=2, measures=["efficiency", "fairness"], store=tmp_path / "store")
    report = ct.report(store)
    assert report.warnings[0] == (
        "2 runs of 4 carried nothing, and fairness is undefined there. 1 point delivers no data with any seed, "
        "R = -0.1: ignore its other measures"
    )
    fairness = store.summary(["fairness"]).to_pylist()
    assert [(row["n"], row["mean"] is None) for row in fairness] == [(0, True), (2, False)]
    assert store.table(["fairness"])["value"].null_count == 2


@pytest.mark.nightly
@pytest.mark.slow
def test_a_search_warns_if_its_best_policies_reach_less_than_half_the_goodput_of_tail_drop(tmp_path, celltrain):
    """A policy that admits frames only into a nearly empty buffer scores well on fairness and queue length."""
    text = PLAN.replace(
        "policy = { selective_drop = {} }", 'policy.formula = { admit = "X <= R * K", constants.R = 0.5 }'
    )
    text = (
        text.replace('duration = "4ms"', 'duration = "300ms"')
        .replace("[60, 100]", "[1000]")
        .replace("trials = 10", "trials = 6")
    )
    text = text.replace(
        '{ efficiency = "maximize", "cells.lost" = "minimize" }',
        '{ fairness = "maximize", "ports.bottleneck.max_queue_cells" = "minimize" }',
    )
    text = text[: text.index("[tune.parameters]")] + (
        "[tune.parameters]\n"
        'R = { path = "port.bottleneck.policy.formula.constants.R", from = -0.05, to = 0.05 }\n'
        "[tune.seeds]\nsearch = 1\nselection = 2\nconfirmation = 2\n"
    )
    file = tmp_path / "plan.toml"
    file.write_text(text)
    told = celltrain("tune", file, "--store", tmp_path / "out")
    assert told.code == 0
    assert told.out.startswith("WARNING: buffer 1000 cells: R = ")
    assert "of the goodput of tail drop; ignore its other measures" in told.out
    answer = json.loads((tmp_path / "out" / "report" / "tune.json").read_text())
    assert answer["warnings"] and f"WARNING: {answer['warnings'][0]}" in told.out
    page = (tmp_path / "out" / "report" / "tune.html").read_text()
    assert page.index("of the goodput of tail drop") < page.index("Parameters and measures</h2>")
    [search] = answer["searches"]
    # With R below 0 the policy admits nothing, fairness is undefined, and the search rejects the setting.
    assert all((trial["means"] is None) == (trial["parameters"]["R"] < 0) for trial in search["trials"])
    assert answer["failed"] == 0


def test_a_reproduction_excludes_runs_in_which_a_number_is_undefined():
    """No data arrives within 20 us, so fairness is undefined. Only the efficiency has values."""
    with pytest.warns(
        ct.CelltrainWarning, match=r"fairness is undefined in \d+ runs of \d+; these runs are not counted"
    ):
        found = ct.reproduce("af-96-1269", tables=[2, 3], networks=["LAN"], seeds=2, overrides={"duration": "20us"})
    assert {one.number.quantity.name for one in found.scored} == {"efficiency"}


def test_a_search_never_selects_a_policy_formula_that_delivers_no_data():
    import numpy as np

    import_or_skip("optuna")
    import formula_search

    # The axes are configurations, seeds, and the two measures efficiency and fairness.
    tail_drop = np.full((2, 3, 2), 0.6)
    dead = np.stack([np.zeros((2, 3)), np.full((2, 3), np.nan)], axis=-1)
    assert formula_search.score(dead) == 0 < formula_search.score(tail_drop)
    assert "carries 0% of the goodput of tail drop" in formula_search.warning(dead, tail_drop)
    assert "carries 40% of" in formula_search.warning(tail_drop * 0.4, tail_drop)
    assert formula_search.warning(tail_drop * 0.6, tail_drop) == ""
