"""Thresholds as cells, as a fraction of the buffer and as headroom below its size, for every policy with thresholds."""

from __future__ import annotations

import json
import re

import pytest

import celltrain as ct
from celltrain import _core
from celltrain.cli.catalog import entries
from celltrain.ensemble.plan import Plan
from celltrain.model.scenario import read, to_toml

BUFFER = 80
#: Settings of policies for which 60 cells for each threshold are not enough.
SETTINGS = {
    "double_epd": {"threshold": 60, "tagged_threshold": 40},
    "virtual_queuing_weighted": {"threshold": 60, "minimum_share": 0.2},
    "selective_drop": {"threshold": 0.75},
    "fba": {"threshold": 0.75},
    "wba": {"threshold": 0.75, "weights": 1.0},
    "weighted_fba": {"threshold": 0.75, "weights": 1.0},
    "dfba": {"congestion_threshold": 60, "thresholds": 10},
    "dfba_1998": {"low_threshold": 0.5, "high_threshold": 0.75, "weights": 1.0},
}
#: Thresholds of each policy as plain numbers, with its other required settings.
POLICIES = {
    entry.name: SETTINGS.get(entry.name, dict.fromkeys(thresholds, 60))
    for entry in entries("policies")
    if (
        thresholds := [
            one.name
            for one in entry.parameters
            if one.name.endswith("threshold") and one.unit != "packets" and not one.type.startswith("size")
        ]
    )
}
#: The same threshold in every notation, given as a number of cells of a buffer of 80.
FORMS = {
    "share": lambda cells: cells / BUFFER,
    "percentage": lambda cells: f"{100 * cells / BUFFER}%",
    "number of cells": lambda cells: cells,
    "computed number of cells": float,
    "cells": lambda cells: f"{cells} cells",
    "headroom": lambda cells: f"buffer - {BUFFER - cells} cells",
}


def scenario(policy, buffer=BUFFER, duration="20ms"):
    return {
        "duration": duration,
        "topology": {"n_source": {"sources": 4, "link_delay": "5us"}},
        "port": {"bottleneck": {"buffer": buffer, "policy": policy}},
    }


def written(settings, form):
    """Returns the settings of a policy with its thresholds in this notation."""

    def threshold(value):
        return form(round(value * BUFFER) if isinstance(value, float) else value)

    return {key: threshold(value) if key.endswith("threshold") else value for key, value in settings.items()}


def fingerprint(policy, buffer=BUFFER, seed=3):
    return ct.run(ct.Scenario.model_validate(scenario(policy, buffer)), seed=seed).fingerprint


def test_the_table_of_policies_with_thresholds_that_the_tests_use_is_complete():
    assert set(SETTINGS) <= set(POLICIES)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_notation_of_a_policy_threshold_gives_the_same_run(policy):
    plain = ct.run(ct.Scenario.model_validate(scenario({policy: POLICIES[policy]})), seed=3)
    assert plain.to_dict()["cells"]["discarded"] > 0, "the threshold matters here"
    for name, form in FORMS.items():
        assert fingerprint({policy: written(POLICIES[policy], form)}) == plain.fingerprint, name


def test_every_notation_of_a_marking_threshold_marks_the_same_cells():
    def marked(threshold):
        table = ct.load("internetwork-abr-efci").to_dict() | {"duration": "500ms"}
        for port in table["port"].values():
            port["allocator"]["efci"]["threshold"] = threshold
        return ct.run(ct.Scenario.model_validate(table), seed=1).fingerprint

    forms = (250, 0.25, "25%", "250 cells", "buffer - 750 cells")
    assert {marked(threshold) for threshold in forms} == {marked(250)} != {marked("1 cell")}


def test_thresholds_of_0_and_1_work_with_the_smallest_and_the_largest_buffer():
    def of(threshold):
        return fingerprint({"epd": {"threshold": threshold}})

    full = of(f"{BUFFER} cells")
    with pytest.warns(ct.CelltrainWarning, match='1 is the whole buffer; write "1 cell" for one cell'):
        assert of(1) == full
    assert of(1.0) == of("100%") == of(BUFFER) == of("buffer - 0 cells") == full
    assert of(0) == of(0.0) == of("0%") == of("0 cells") == of(f"buffer - {BUFFER} cells")
    assert of("1 cell") == of("1 cells") == of(f"buffer - {BUFFER - 1}")
    assert len({full, of(0), of("1 cell"), of("2 cells")}) == 4
    for policy in ("epd", "selective_drop"):
        for above in (BUFFER + 1, f"{BUFFER + 1} cells", "100.1%", 1.001):
            with pytest.raises(ct.ScenarioError):
                fingerprint({policy: {"threshold": above}})


def test_vetting_uses_the_default_threshold_of_epd(celltrain, tmp_path):
    assert fingerprint({"epd": {}}) == fingerprint({"epd": {"threshold": 64}})
    assert ct.Epd() == ct.Epd(threshold=0.8)
    path = tmp_path / "epd.toml"
    path.write_text(
        'duration = "5ms"\n[topology.n_source]\nsources = 2\nlink_delay = "5us"\n[port.bottleneck]\nbuffer = 80\n'
        "[port.bottleneck.policy.epd]\n"
    )
    assert celltrain("check", path).code == 0
    vary = "port.bottleneck.policy=epd,epd:threshold=0.8,epd:threshold=80%,epd:threshold=64"
    answer = celltrain("compare", path, "--seeds", 2, "--vary", vary)
    assert answer.code == 0
    for threshold in ("0.8", "80%", "64"):
        assert f"epd:threshold={threshold} and epd give the same runs with every seed" in answer.err


def test_an_infinite_buffer_allows_thresholds_in_cells_but_not_thresholds_as_shares():
    def refused(policy, threshold):
        table = scenario({policy: {"threshold": threshold}}, buffer="infinite")
        return [fault.problem for fault in ct.check(ct.Scenario.model_validate(table))]

    for policy in ("epd", "selective_drop"):
        assert refused(policy, 60) == refused(policy, "60 cells") == refused(policy, 0) == []
        assert "so the buffer must be a number of cells" in refused(policy, 0.8)[0]
        assert "which must be a number of cells" in refused(policy, "80%")[0]
    assert "belongs to a formula that uses the size of the buffer" in refused("fba", "60 cells")[0]


def test_a_threshold_given_as_a_share_grows_with_the_buffer():
    def prints(threshold, buffer):
        table = scenario({"epd": {"threshold": threshold}}, buffer)
        return ct.run(ct.Scenario.model_validate(table), seed=1).fingerprint

    assert prints("50%", 60) == prints(30, 60) != prints(40, 60)
    assert prints("50%", 80) == prints(40, 80)
    assert prints("buffer - 20", 60) == prints(40, 60)


def test_thresholds_given_as_strings_in_python_are_serialized_as_the_same_strings():
    lan = ct.n_source(sources=4, link_delay="5us", buffer_cells=80, duration="5ms", policy=ct.Epd(threshold="75%"))
    assert 'threshold = "75%"' in to_toml(lan)
    assert lan.to_dict()["port"]["bottleneck"]["policy"] == {"epd": {"threshold": "75%"}}
    assert ct.SelectiveDrop(threshold="60 cells").threshold == "60 cells"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "value", "buffer", "said"),
    [
        ("epd", '"90 percent"', "80", "is not a threshold: a share of the buffer (0 to 1)"),
        ("epd", '"60"', "80", 'has no unit; write "60 cells", or the number without quotes'),
        ("epd", '"101%"', "80", 'is more than the buffer; a share is at most "100%"'),
        ("epd", '"81 cells"', "80", "is above the buffer of 80 cells; a threshold is at most the buffer"),
        ("epd", '"buffer - 81 cells"', "80", "is below zero, because the buffer has only 80 cells"),
        ("epd", '"90%"', '"infinite"', "depends on the size of the buffer, which must be a number of cells"),
        ("epd", "-1", "80", "is not a threshold: a share of the buffer (0 to 1), a whole number of cells (2 or more)"),
        (
            "epd",
            "true",
            "80",
            "is not a threshold: a share of the buffer (0 to 1), a whole number of cells (2 or more)",
        ),
        ("selective_drop", "1.9", "80", 'or a text such as "80%", "800 cells" or "buffer - 200 cells"'),
        ("fba", '"60 cells"', '"infinite"', "belongs to a formula that uses the size of the buffer"),
    ],
)
def test_the_error_for_an_invalid_threshold_lists_valid_alternatives(celltrain, tmp_path, policy, value, buffer, said):
    path = tmp_path / "wrong.toml"
    path.write_text(
        f'duration = "5ms"\n[topology.n_source]\nsources = 2\nlink_delay = "5us"\n[port.bottleneck]\nbuffer = {buffer}\n'
        f"[port.bottleneck.policy.{policy}]\nthreshold = {value}\n"
    )
    answer = celltrain("check", path)
    assert answer.code == 2
    assert f"wrong.toml:8: port.bottleneck.policy.{policy}.threshold = {value} " in answer.err
    assert said in answer.err


def test_an_invalid_threshold_number_in_python_is_reported_as_a_single_error():
    with pytest.raises(ct.ScenarioError) as refused:
        ct.Epd(threshold=-1)
    assert [(fault.key, fault.value) for fault in refused.value.faults] == [("threshold", "-1")]


@pytest.mark.parametrize(
    "make, key, words",
    [
        (lambda: ct.Epd(threshold="nonsense"), "threshold", "is not a threshold: a share of the buffer (0 to 1)"),
        (lambda: ct.SelectiveDrop(threshold="60"), "threshold", "has no unit"),
        (lambda: ct.Fba(threshold="101%"), "threshold", "is more than the buffer"),
        (lambda: ct.Dfba(thresholds=3, congestion_threshold="x"), "congestion_threshold", "is not a threshold"),
        (lambda: ct.Epd(threshold="80%").replace(threshold="80"), "threshold", "has no unit"),
    ],
)
def test_an_invalid_threshold_string_in_python_is_refused_when_it_is_assigned(make, key, words):
    with pytest.raises(ct.ScenarioError) as refused:
        make()
    [fault] = refused.value.faults
    assert fault.key == key
    assert words in fault.problem


def test_a_plan_that_varies_the_buffer_gives_no_warning_for_a_threshold_that_scales_with_it(celltrain, tmp_path):
    def warned(threshold):
        path = tmp_path / "plan.toml"
        path.write_text(
            'scenario = "lan-epd"\nseeds = 2\n[axes]\nduration = ["5ms"]\n'
            'buffer = { path = "port.bottleneck.buffer", values = [80, 160] }\n'
            f'threshold = {{ path = "port.bottleneck.policy.epd.threshold", values = [{json.dumps(threshold)}] }}\n'
        )
        return [line for line in celltrain("sweep", path, "--dry-run").err.splitlines() if "stays" in line]

    assert warned("75%") == warned("buffer - 20 cells") == []
    assert len(warned(60)) == len(warned("60 cells")) == 1
    assert 'Write "75%" or "buffer - 20 cells", which scale with the buffer' in warned(60)[0]


def test_thresholds_given_as_strings_can_be_axis_values_and_can_be_compared(celltrain):
    base = scenario({"epd": {"threshold": 60}})
    thresholds = {"path": "port.bottleneck.policy.epd.threshold", "values": ["50%", "75%", "60 cells"]}
    plan = Plan.of_document({"scenario": base, "axes": {"threshold": thresholds}, "seeds": 1})
    assert [point.values["threshold"] for point in plan.points] == ["50%", "75%", "60 cells"]
    vary = "port.bottleneck.policy=epd:threshold=80%,epd:threshold=buffer - 200"
    answer = celltrain("compare", "lan-epd", "--seeds", 2, "--vary", vary, "--vary", "duration=50ms", "--json")
    assert answer.code == 0
    assert "buffer - 200" in answer.out


@pytest.mark.slow
def test_the_warning_about_a_small_threshold_without_a_unit_suggests_a_percentage(celltrain, tmp_path):
    question = '80 cells are only 8 % of the buffer; if you meant a percentage, write 80%, otherwise "80 cells"'

    def said(*arguments):
        answer = celltrain(*arguments)
        assert answer.code == 0, answer.err
        return [line for line in answer.err.splitlines() if "of the buffer" in line]

    def compared(setting):
        return said(
            "compare", "lan-epd", "--seeds", 2, "--vary", "duration=5ms", "--vary", f"port.bottleneck.policy={setting}"
        )

    path = tmp_path / "small.toml"
    path.write_text(
        'duration = "5ms"\n[topology.n_source]\nsources = 2\nlink_delay = "5us"\n[port.bottleneck]\nbuffer = 1000\n'
        "[port.bottleneck.policy.epd]\nthreshold = 80\n"
    )
    expected = f"port.bottleneck.policy.epd.threshold = 80: {question}"
    assert said("check", path) == [f"{path}: warning: {expected}"]
    assert [line.endswith(expected) for line in said("run", path)] == [True]
    for setting in ("epd:threshold=80", "tail_drop,epd:threshold=80,epd:threshold=0.8"):
        assert [expected in line for line in compared(setting)] == [True], setting
    for setting in ("epd:threshold=80 cells", "epd:threshold=80%", "epd:threshold=0.08", "epd:threshold=200"):
        assert compared(setting) == [], setting


def test_no_shipped_scenario_gives_a_threshold_warning():
    for entry in entries("scenarios"):
        assert not [warning for warning in read(entry.name).warnings if "of the buffer" in warning], entry.name


def test_the_scenario_schema_describes_the_threshold_syntax():
    [threshold] = [json.loads(_core.schema())["$defs"]["Epd"]["properties"]["threshold"]]
    share, cells, text = threshold["anyOf"]
    assert (share["minimum"], share["maximum"], cells["minimum"]) == (0, 1, 2)
    assert all(_core.threshold(json.dumps(example)) is None for example in threshold["examples"])
    for written in [
        "80%",
        "800 cells",
        "buffer - 200 cells",
        "80 %",
        ".5%",
        "12.5%",
        "1 cell",
        "800cells",
        "buffer-200",
        "buffer - 1 cell",
    ]:
        assert re.fullmatch(text["pattern"], written) and _core.threshold(json.dumps(written)) is None, written
    for written in ("", "80", "0.8", "80 percent", "-1%", "buffer", "buffer + 1 cells", "cells", "1e1%"):
        assert not re.fullmatch(text["pattern"], written) and _core.threshold(json.dumps(written)), written


def test_the_ends_of_a_threshold_range_must_both_be_shares_or_both_be_cells():
    def values(**form):
        axis = {"path": "port.bottleneck.policy.epd.threshold", **form}
        plan = Plan.of_document({"scenario": scenario({"epd": {}}), "axes": {"threshold": axis}, "seeds": 1})
        [made] = plan.axes
        return [point.values["threshold"] for point in plan.points], made.unit

    assert values(**{"from": 0.25, "to": 1, "count": 4}) == ([0.25, 0.5, 0.75, 1.0], "")
    assert values(**{"from": 20, "to": 70, "step": 25}) == ([20, 45, 70], "cells")
    assert values(values=[20, 60]) == ([20, 60], "cells")
    assert values(values=[0.5, 60])[1] == ""
    with pytest.raises(ct.PlanError, match=r"from = 0\.5 is not a whole number"):
        values(**{"from": 0.5, "to": 70, "count": 4})
    with pytest.raises(ct.PlanError, match="from = 0 is a share of the buffer, but to = 70 is a number of cells"):
        values(**{"from": 0, "to": 70, "count": 4})
