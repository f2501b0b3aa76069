"""Thresholds as cells, as a share of the buffer and as headroom below it, for every policy that has one."""

from __future__ import annotations

import json

import pytest

import celltrain as ct
from celltrain.catalog import entries
from celltrain.plan import Plan
from celltrain.toml import to_toml

BUFFER = 80
#: Each policy's thresholds as plain numbers, with what else it needs.
POLICIES = {
    "epd": {"threshold": 60},
    "double_epd": {"threshold": 60, "tagged_threshold": 40},
    "per_vc_accounting": {"threshold": 60},
    "per_vc_accounting_fixed": {"threshold": 60},
    "virtual_queuing": {"threshold": 60},
    "virtual_queuing_threshold": {"threshold": 60},
    "virtual_queuing_weighted": {"threshold": 60, "minimum_share": 0.2},
    "selective_drop": {"threshold": 0.75},
    "fba": {"threshold": 0.75},
    "wba": {"threshold": 0.75, "weights": 1.0},
    "weighted_fba": {"threshold": 0.75, "weights": 1.0},
    "dfba": {"congestion_threshold": 60, "thresholds": 10},
    "dfba_1998": {"low_threshold": 0.5, "high_threshold": 0.75, "weights": 1.0},
}


def scenario(policy, buffer=BUFFER, duration="20ms"):
    return {
        "duration": duration,
        "topology": {"n_source": {"sources": 4, "link_delay": "5us"}},
        "port": {"bottleneck": {"buffer": buffer, "policy": policy}},
    }


def written(settings, form):
    """The thresholds of a policy as texts of a form; all else stays."""

    def text(value):
        cells = round(value * BUFFER) if isinstance(value, float) else value
        return form.format(cells=cells, headroom=BUFFER - cells, percent=100 * cells / BUFFER)

    return {key: text(value) if key.endswith("threshold") else value for key, value in settings.items()}


def test_these_are_all_policies_with_a_threshold():
    found = {
        entry.name
        for entry in entries("policies")
        if any(one.name.endswith("threshold") and one.unit != "packets" for one in entry.parameters)
    }
    assert found == set(POLICIES)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_form_gives_the_run_of_the_number(policy):
    def run(settings):
        return ct.run(ct.Scenario.model_validate(scenario({policy: settings})), seed=3)

    plain = run(POLICIES[policy])
    assert plain.to_dict()["cells"]["discarded"] > 0, "the threshold matters here"
    for form in ("{cells} cells", "{percent}%", "buffer - {headroom} cells"):
        assert run(written(POLICIES[policy], form)).fingerprint == plain.fingerprint, form


def test_a_share_goes_with_the_buffer():
    def prints(threshold, buffer):
        table = scenario({"epd": {"threshold": threshold}}, buffer)
        return ct.run(ct.Scenario.model_validate(table), seed=1).fingerprint

    assert prints("50%", 60) == prints(30, 60) != prints(40, 60)
    assert prints("50%", 80) == prints(40, 80)
    assert prints("buffer - 20", 60) == prints(40, 60)


def test_python_takes_texts_and_writes_them_again():
    lan = ct.n_source(
        sources=4, link_delay="5us", buffer_cells=80, duration="5ms", policy=ct.Epd(threshold_cells="75%")
    )
    assert 'threshold = "75%"' in to_toml(lan)
    assert lan.to_dict()["port"]["bottleneck"]["policy"] == {"epd": {"threshold": "75%"}}
    assert ct.SelectiveDrop(threshold="60 cells").threshold == "60 cells"


@pytest.mark.parametrize(
    ("policy", "value", "buffer", "said"),
    [
        ("epd", '"90 percent"', "80", "is no threshold; write a number, or a text such as"),
        ("epd", '"60"', "80", 'does not say of what; write "60 cells", or a number without quotes'),
        ("epd", '"101%"', "80", 'is more than the buffer; a share is at most "100%"'),
        ("epd", '"81 cells"', "80", "is above the buffer of 80 cells; a threshold is at most the buffer"),
        ("epd", '"buffer - 81 cells"', "80", "is below an empty buffer; the buffer has 80 cells"),
        ("epd", '"90%"', '"infinite"', "counts from the buffer, so that must be a number of cells"),
        ("epd", "-1", "80", "is not a whole number of cells (0 or more; a share is a text)"),
        ("selective_drop", "1.9", "80", "is not a share of the buffer (0 to 1)"),
        ("selective_drop", '"60 cells"', '"infinite"', "belongs to a formula that needs the buffer's size"),
    ],
)
def test_what_is_no_threshold_is_named_with_what_would_be_right(celltrain, tmp_path, policy, value, buffer, said):
    path = tmp_path / "wrong.toml"
    path.write_text(
        f'duration = "5ms"\n[topology.n_source]\nsources = 2\nlink_delay = "5us"\n[port.bottleneck]\nbuffer = {buffer}\n'
        f"[port.bottleneck.policy.{policy}]\nthreshold = {value}\n"
    )
    answer = celltrain("check", path)
    assert answer.code == 2
    assert f"wrong.toml:8: port.bottleneck.policy.{policy}.threshold = {value} {said}" in answer.err


def test_a_number_that_is_none_has_one_fault_in_python_too():
    with pytest.raises(ct.ScenarioError) as refused:
        ct.Epd(threshold_cells=-1)
    assert [(fault.key, fault.value) for fault in refused.value.faults] == [("threshold_cells", "-1")]


@pytest.mark.parametrize(
    "make, key, words",
    [
        (lambda: ct.Epd(threshold_cells="nonsense"), "threshold_cells", "is no threshold; write a number, or a text"),
        (lambda: ct.SelectiveDrop(threshold="60"), "threshold", "does not say of what"),
        (lambda: ct.Fba(threshold="101%"), "threshold", "is more than the buffer"),
        (lambda: ct.Dfba(thresholds=3, congestion_threshold="x"), "congestion_threshold_cells", "is no threshold"),
        (lambda: ct.Epd(threshold_cells="80%").replace(threshold_cells="80"), "threshold_cells", "of what"),
    ],
)
def test_a_text_that_is_no_threshold_is_refused_as_it_is_set(make, key, words):
    with pytest.raises(ct.ScenarioError) as refused:
        make()
    [fault] = refused.value.faults
    assert fault.key == key
    assert words in fault.problem


def test_a_threshold_that_goes_with_the_buffer_is_no_caution(celltrain, tmp_path):
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
    assert 'Write "75%" or "buffer - 20 cells", which go with the buffer' in warned(60)[0]


def test_texts_are_values_of_an_axis_and_of_a_comparison(celltrain):
    base = scenario({"epd": {"threshold": 60}})
    thresholds = {"path": "port.bottleneck.policy.epd.threshold", "values": ["50%", "75%", "60 cells"]}
    plan = Plan.of_document({"scenario": base, "axes": {"threshold": thresholds}, "seeds": 1})
    assert [point.values["threshold"] for point in plan.points] == ["50%", "75%", "60 cells"]
    vary = "port.bottleneck.policy=epd:threshold=80%,epd:threshold=buffer - 200"
    answer = celltrain("compare", "lan-epd", "--seeds", 2, "--vary", vary, "--vary", "duration=50ms", "--json")
    assert answer.code == 0
    assert "buffer - 200" in answer.out
