"""Plausible-looking sweeps with misleading results get warnings before and after the runs, and in the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import celltrain as ct
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.plan import Plan

NAME = "sweep.toml"


def planned(tmp_path: Path, text: str) -> Path:
    path = tmp_path / NAME
    path.write_text(f'scenario = "lan-epd"\nseeds = 2\nmeasures = ["efficiency", "fairness"]\n{text}')
    return path


IDLE = """[axes]
buffer = { path = "port.bottleneck.buffer", values = [1000, 5000] }
ticks = { path = "tcp.vanilla.timer_granularity", values = ["100ms", "10ms"] }
duration = ["500ms"]
"""


@pytest.mark.nightly
@pytest.mark.usefixtures("empty_figures")
def test_an_axis_without_effect_is_reported_in_the_dry_run_the_summary_and_the_report(celltrain, tmp_path):
    """EPD with a threshold of 800 cells never queues more than 1000, so a buffer of 5000 gives identical runs."""
    plan, store = planned(tmp_path, IDLE), tmp_path / "store"
    foretold = celltrain("sweep", plan, "--dry-run")
    assert foretold.code == 0
    assert "warning: buffer seems to change nothing: its first and its last value gave the same run" in foretold.err
    assert "ticks seems" not in foretold.err
    stays = "port.bottleneck.policy.epd.threshold stays 800 cells while the buffer goes from 1,000 to 5,000: 80% of the"
    ended = celltrain("sweep", plan, "--store", store)
    assert ended.code == 0
    report = celltrain("report", store)
    for answer in (ended, report):
        assert "warning: buffer changes nothing: all 4 pairs of runs that differ in this setting alone" in answer.err
        assert "ticks changes" not in answer.err
    for answer in (foretold, ended, report):
        assert stays in answer.err
    page = (store / "report" / "report.html").read_text()
    assert "buffer changes nothing: all 4 pairs" in page
    assert "stays 800 cells" in page
    again = celltrain("sweep", plan, "--dry-run", "--json")
    assert len(again.json["warnings"]) == 3
    assert celltrain("report", store, "--json").json["warnings"] == list(ct.report(store).warnings)


def test_a_sweep_in_python_gives_its_warnings_when_it_ends(tmp_path):
    with pytest.warns(ct.CelltrainWarning, match="buffer changes nothing"):
        ct.sweep(Plan.load(planned(tmp_path, IDLE)))


def test_an_axis_for_a_threshold_given_as_a_share_of_the_buffer_gives_no_warning(tmp_path):
    text = """[[paired]]
buffer = { path = "port.bottleneck.buffer", values = [1000, 5000] }
threshold = { path = "port.bottleneck.policy.epd.threshold", values = [800, 4800] }
"""
    assert plan_warnings.of_plan(Plan.load(planned(tmp_path, text))) == []


def test_varying_the_buffer_gives_no_warning_if_no_threshold_is_in_cells(tmp_path):
    """Selective Drop's threshold is a fraction of the buffer, and scales with it."""
    text = """[axes]
policy = { path = "port.bottleneck.policy", values = { sd = { selective_drop = {} }, tail = { tail_drop = {} } } }
buffer = { path = "port.bottleneck.buffer", values = [1000, 5000] }
"""
    assert plan_warnings.of_plan(Plan.load(planned(tmp_path, text))) == []


def test_the_error_for_a_threshold_above_the_buffer_at_some_plan_points_names_one_point(celltrain, tmp_path):
    answer = celltrain("sweep", planned(tmp_path, '[axes]\n"port.bottleneck.buffer" = [500, 1000]\n'), "--dry-run")
    assert answer.code == 2
    assert f"{NAME}:4: port.bottleneck.policy.epd.threshold = 800 is above the buffer of 500 cells" in answer.err
    assert "at point 0 (port.bottleneck.buffer = 500)" in answer.err


@pytest.mark.slow
def test_averaging_a_measure_over_different_networks_gives_a_warning(celltrain, tmp_path):
    """If only the network varies, no mean is taken across networks, and no warning is given."""
    sources = '"topology.n_source.sources" = [3, 5]\n'
    answer = celltrain(
        "sweep", planned(tmp_path, f'[axes]\n{sources}"switch.tie_order" = ["random", "fixed"]\n'), "--dry-run"
    )
    assert "warning: averaging over topology.n_source.sources mixes different networks" in answer.err
    tcps = Plan.load(
        planned(tmp_path, f'[axes]\n{sources}tcp = ["vanilla", "sack"]\n"switch.tie_order" = ["random", "fixed"]\n')
    )
    assert (
        "averaging over topology.n_source.sources and tcp mixes different networks and TCPs: the best value on average may be "
        "the best in no case. Look at each network and TCP separately"
    ) in plan_warnings.of_plan(tcps)
    alone = Plan.load(planned(tmp_path, f"[axes]\n{sources}"))
    assert plan_warnings.of_plan(alone) == []


def test_paired_settings_of_a_plan_count_as_one_axis_in_warnings(celltrain, tmp_path):
    """A change of the buffer alone would have no effect, but a change of the buffer together with the threshold
    does."""
    text = """[[paired]]
buffer = { path = "port.bottleneck.buffer", values = [1000, 5000] }
threshold = { path = "port.bottleneck.policy.epd.threshold", values = [800, 4800] }
"""
    store = tmp_path / "store"
    answer = celltrain("sweep", planned(tmp_path, f'{text}[axes]\nduration = ["200ms"]\n'), "--store", store)
    assert "changes nothing" not in answer.err


def test_the_number_of_pairs_of_runs_with_identical_results_equals_a_value_calculated_by_hand():
    rng = np.random.default_rng(20)
    keys, prints = rng.integers(0, 5, 40), np.zeros(40, np.int64)
    assert plan_warnings.equal_pairs(keys, keys * 7) == 40 - len(np.unique(keys))
    prints[3] = 1
    assert plan_warnings.equal_pairs(keys, prints) == 0
    assert plan_warnings.equal_pairs(np.arange(4), np.arange(4)) == 0
    assert plan_warnings.equal_pairs(np.array([], np.int64), np.array([], np.int64)) == 0


CROSSED = """[axes]
policy = { path = "port.bottleneck.policy", values = { tail = { tail_drop = {} }, epd = { epd = {} }, sd = { selective_drop = {} } } }
duration = ["100ms"]
[[paired]]
buffer = { path = "port.bottleneck.buffer", values = [1000, 5000] }
threshold = { path = "port.bottleneck.policy.epd.threshold", values = [800, 4800] }
"""


def test_paired_settings_of_a_plan_are_combined_with_every_policy(tmp_path):
    """EPD's threshold is paired with the buffer, and does not apply to the points of other policies."""
    plan = Plan.load(planned(tmp_path, CROSSED))
    made = [point.scenario["port"]["bottleneck"] for point in plan.points]
    assert [(one["buffer"], one["policy"]) for one in made] == [
        (1000, {"tail_drop": {}}),
        (5000, {"tail_drop": {}}),
        (1000, {"epd": {"threshold": 800}}),
        (5000, {"epd": {"threshold": 4800}}),
        (1000, {"selective_drop": {}}),
        (5000, {"selective_drop": {}}),
    ]
    assert plan_warnings.of_plan(plan) == []
    assert [point.values["threshold"] for point in plan.points] == [800.0, 4800.0] * 3


@pytest.mark.slow
def test_policies_can_be_paired_with_other_settings_while_a_policy_parameter_varies_on_an_axis(celltrain, tmp_path):
    """The order of the axes does not matter, and a setting of another policy creates no additional run."""
    text = """[axes]
z = { path = "port.bottleneck.policy.selective_drop.z", values = [0.5, 0.8] }
[[paired]]
policy = { path = "port.bottleneck.policy", values = { epd = { epd = { threshold = 800 } }, sd = { selective_drop = {} } } }
duration = ["100ms", "200ms"]
"""
    plan, store = planned(tmp_path, text), tmp_path / "store"
    policies = [point.scenario["port"]["bottleneck"]["policy"] for point in Plan.load(plan).points]
    assert policies == [
        {"epd": {"threshold": 800}},
        {"selective_drop": {"z": 0.5}},
        {"epd": {"threshold": 800}},
        {"selective_drop": {"z": 0.8}},
    ]
    assert celltrain("sweep", plan, "--store", store).code == 0
    rows = ct.Store.open(store).wide(["efficiency"]).to_pylist()
    assert [(row["policy"], row["z"]) for row in rows[::2]] == [("epd", 0.5), ("sd", 0.5), ("sd", 0.8)]
    configuration = json.loads(ct.Store.open(store).table()["configuration"][0].as_py())
    assert configuration["port"]["bottleneck"]["policy"] == {"epd": {"threshold": 800}}


def test_an_axis_for_a_policy_that_the_scenario_does_not_use_is_refused(tmp_path):
    """No setting selects Selective Drop, so a setting of its z is probably a mistake."""
    with pytest.raises(ct.PlanError, match=r"names 2 \(epd, selective_drop\); choose exactly one"):
        Plan.load(planned(tmp_path, '[axes]\n"port.bottleneck.policy.selective_drop.z" = [0.5, 0.8]\n'))


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figures")
def test_every_command_warns_once_about_a_policy_constant_that_no_formula_uses(celltrain, tmp_path):
    """A constant that no formula uses is reported once for all points, seeds and scenarios."""
    told = "not used by any formula; leave it out, or check the spelling"
    file, store = tmp_path / "fs.toml", tmp_path / "store"
    file.write_text('[policy.formula]\nadmit = "Y < f * K"\nconstants = { f = 0.5, ff = 1 }\n')
    plan = planned(tmp_path, f'[axes]\n"port.bottleneck.policy" = ["@{file}"]\n"duration" = ["10ms", "20ms"]\n')
    policy = ("--set", f"port.bottleneck.policy=@{file}", "--set", "duration=10ms", "--seeds", "2")
    for command in (
        ("run", "lan-epd", *policy),
        ("compare", "lan-epd", "lan-tail-drop", *policy),
        ("vet", file, "--scenarios", "lan-5", "--seeds", "1"),
        ("sweep", plan, "--dry-run"),
        ("sweep", plan, "--store", store),
        ("report", store),
    ):
        answer = celltrain(*command)
        assert answer.err.count(told) == 1, (command, answer.err)
    for command in (("compare", "lan-epd", *policy), ("sweep", plan, "--dry-run")):
        assert sum(told in one for one in celltrain(*command, "--json").json["warnings"]) == 1


def test_a_plan_warning_names_the_first_affected_point_and_at_most_five_warnings_are_shown():
    over = {
        "port.bottleneck.policy": {"values": {"tail": {"tail_drop": {}}, "epd": {"epd": {"threshold": 0}}}},
        "duration": ["10ms", "20ms"],
    }
    both = ct.compare("lan-epd", vary=over, seeds=1)
    [told] = both.of_check
    assert "while a single cell waits" in told
    assert told.endswith(" (at port.bottleneck.policy = epd, duration = 10 ms and 1 more)")
    assert told in both.warnings
    thresholds = ct.compare(
        "lan-epd", vary={"port.bottleneck.policy.epd.threshold": list(range(11, 18)), "duration": ["1ms"]}, seeds=1
    )
    assert len(thresholds.of_check) == 6
    assert thresholds.of_check[-1] == "2 more warnings of this kind; celltrain check prints the warnings of a scenario"


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figures")
def test_a_sweep_and_its_report_list_points_whose_results_hardly_differ_between_seeds(celltrain, tmp_path):
    """All flows time out at each common tick, so the seeds agree to three digits.

    Random ticks give a different result.
    """
    formula = 'policy = { path = "port.bottleneck.policy", values = { fs = { formula = { admit = "Y < 0.8 * K / max(N, 1)" } } } }'
    text = f'[axes]\n{formula}\n"duration" = ["2s"]\n"tcp.vanilla.timer.tick_phase" = ["common", "random"]\n'
    plan, store = planned(tmp_path, text), tmp_path / "store"
    plan.write_text(plan.read_text().replace("seeds = 2", "seeds = 5"))
    told = "5 seeds hardly change 1 of 2 points, such as tcp.vanilla.timer.tick_phase = common: the interval does not cover"
    assert celltrain("sweep", plan, "--store", store).err.count(told) == 1
    assert celltrain("report", store).err.count(told) == 1


def test_varying_the_buffer_while_a_threshold_is_in_cells_gives_a_warning(celltrain):
    stays = "port.bottleneck.policy.epd.threshold stays 800 cells while the buffer goes from 1,000 to 4,000"
    larger, brief = "port.bottleneck.buffer=4000", ("--set", "duration=5ms")
    for option in ("--set", "--vary"):
        told = celltrain("compare", "lan-tail-drop", "lan-epd", "--seeds", 2, *brief, option, larger)
        assert stays in told.err
    assert stays in celltrain("run", "lan-epd", *brief, "--set", larger).err
    assert stays in celltrain("check", "lan-epd", "--set", larger).err
    share = "port.bottleneck.policy=tail_drop,epd:threshold=80%"
    assert "stays" not in celltrain("compare", "lan-epd", "--seeds", 2, *brief, "--set", larger, "--vary", share).err
