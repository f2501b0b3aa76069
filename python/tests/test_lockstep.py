"""The warning about results caused by lock-step: when it appears, and when it does not."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import celltrain as ct
from celltrain.ensemble.plan.axes import MEASURES
from celltrain.ensemble.plan_warnings import LEAST, NEAR_NONE, TIMEOUTS, lock_step_warning
from celltrain.errors import CelltrainWarning
from celltrain.model.paths import set_key
from celltrain.model.scenario import Reading
from celltrain.running.results import RunResult

NOTHING = {1: (0.0, 20.0), 2: (0.0, 20.0)}
"""Outcomes of two seeds in which some flow delivered no data and had timeouts."""


def scenario(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns a scenario in which ten hosts send packets of 192 cells to a buffer of 256 cells, with these changes."""
    table: dict[str, Any] = {
        "duration": "4s",
        "topology": {"n_source": {"sources": 10, "link_delay": "1ms"}},
        "tcp": {"reno": {"rules": "paper", "mss": "9140B"}},
        "port": {"bottleneck": {"buffer": 256, "policy": {"tail_drop": {}}}},
    }
    for path, value in (changes or {}).items():
        set_key(table, path, value)
    return table


def read(table: dict[str, Any]) -> Any:
    return Reading.of_table(table, "scenario").case


def outcome(run: RunResult) -> tuple[float, float]:
    """Returns the smallest goodput of a flow and the total number of timeouts."""
    return min(run.flows["goodput_mbps"].to_pylist()), sum(run.flows["timeouts"].to_pylist())


def ran(table: dict[str, Any]) -> dict[int, tuple[float, float]]:
    return {seed: outcome(ct.run(ct.Scenario.model_validate(table), seed=seed)) for seed in (1, 2)}


def test_lock_step_is_detected_if_the_buffer_is_always_full_when_packets_of_some_hosts_arrive() -> None:
    table = scenario()
    found = lock_step_warning(read(table), ran(table))
    assert found is not None
    assert (found.starved, found.seeds, found.least_mbps) == (2, 2, 0.0)
    assert (found.step["together"], found.step["ties_drawn"]) == (10, True)
    # 9140 bytes and 56 bytes of headers are 192 cells of 424 bits at 155.52 Mb/s.
    assert found.step["processing"] == f"{round(192 * 424 / 0.15552)}ns"
    for words in (
        "2 of 2 seeds",
        "only the order of simultaneous cells",
        '[host] processing = "523457ns"',
        'clock_offset = "100ms"',
    ):
        assert words in str(found)


@pytest.mark.parametrize(
    "options",
    [{"host.processing": "523457ns", "host.processing_times": "uniform"}, {"host.clock_offset": "100ms"}],
)
def test_each_setting_suggested_by_the_lock_step_warning_prevents_lock_step(options: dict[str, Any]) -> None:
    table = scenario({**options, "duration": "10s"})
    for seed in (1, 2):
        in_step_still = scenario({"duration": "10s"})
        assert ct.run(ct.Scenario.model_validate(in_step_still), seed=seed).efficiency == 0
        broken = ct.run(ct.Scenario.model_validate(table), seed=seed)
        assert broken.efficiency > 0.2
        # A flow may starve for another reason than lock-step.
        assert lock_step_warning(read(table), {seed: outcome(broken)}) is None


def test_lock_step_without_a_starved_flow_gives_no_warning() -> None:
    table = scenario({"tcp.reno.mss": "472B", "port.bottleneck.buffer": 1000})
    found = ran(table)
    assert read(table).in_step() is not None
    assert all(timeouts for _, timeouts in found.values()), "every flow has timeouts and continues to send"
    assert lock_step_warning(read(table), found) is None


@pytest.mark.parametrize(
    "options",
    [
        {"host.processing": "1us", "host.processing_times": "uniform"},
        {"host.start_spread": "1ms"},
        {"host.clock_offset": "1ms"},
        {"host.clock_skew": 1e-4},
        {"tcp.reno.timer.tick_phase": "random"},
        {"port.bottleneck.policy": {"dfba": {"thresholds": 20}}},
        {"flow.tcp3.traffic": {"bursts": {"bytes": "1MB", "pause": "1ms", "times": "exponential"}}},
    ],
)
def test_no_lock_step_warning_is_given_if_anything_other_than_tie_order_is_random(options: dict[str, Any]) -> None:
    table = scenario(options)
    case = read(table)
    assert len(case.drawn) == 1
    assert lock_step_warning(case, NOTHING) is None


@pytest.mark.parametrize(
    "options",
    [
        # A constant processing time only lengthens the round trip.
        {"host.processing": "100us"},
        {"host.processing": "0s", "host.processing_times": "uniform"},
        {"switch.tie_order": "fixed"},
        {"flow.tcp1-8.start": "1s"},
        {"flow.tcp1-9.start": "1s", "flow.tcp3.start": "0s"},
    ],
)
def test_the_lock_step_warning_is_given_for_every_combination_of_settings_that_allows_lock_step(
    options: dict[str, Any],
) -> None:
    assert lock_step_warning(read(scenario(options)), NOTHING) is not None


def test_without_random_tie_order_and_other_randomness_all_seeds_give_the_same_run() -> None:
    rotating = {"switch.tie_order": "rotating"}
    assert "seeds do not differ" in str(lock_step_warning(read(scenario(rotating)), NOTHING))
    drifting = scenario({**rotating, "tcp.reno.timer.tick_phase": "drifting"})
    assert "seeds change only the rate of all clocks together:" in str(lock_step_warning(read(drifting), NOTHING))


@pytest.mark.parametrize(
    "options",
    [
        # In this case, all flows start at different times.
        {f"flow.tcp{k}.start": f"{k}ms" for k in range(1, 11)},
        # The flow that starts late has too little time, so it starves without lock-step.
        {"flow.tcp10.start": "3s"},
        # Other traffic uses the link, so the flow starves without lock-step.
        {"flow.tcp10.traffic": {"constant_rate": {"rate": "150Mbps"}}},
        {"port.bottleneck.scheduler": {"wfq": {"weights": {"tcp1": 1000, "default": 1}}}},
        {"vc.tcp1.class": "cbr"},
        {"port.bottleneck.policy": {"single_drop": {"thresholds": {"tcp1": 200, "default": 20}}}},
    ],
)
def test_starvation_without_lock_step_gives_no_lock_step_warning(options: dict[str, Any]) -> None:
    table = scenario(options)
    case = read(table)
    assert case is not None
    assert lock_step_warning(case, NOTHING) is None


def test_a_flow_counts_as_starved_according_to_the_documented_thresholds() -> None:
    table = scenario()
    step = json.loads(read(table).in_step())
    edge = NEAR_NONE * step["fair_mbps"]
    assert lock_step_warning(read(table), {1: (edge * 0.999, 1.0)}) is not None
    assert lock_step_warning(read(table), {1: (edge, 1.0)}) is None
    # Without timeouts no data was lost permanently, so a window or a late start limits the flow.
    assert lock_step_warning(read(table), {1: (0.0, 0.0)}) is None
    # A tenth of the link rate during 0.05 s corresponds to 10 segments.
    short = scenario({"duration": "50ms"})
    brief = json.loads(read(short).in_step())
    assert brief["fair_segments"] == pytest.approx(step["fair_segments"] / 80)
    assert lock_step_warning(read(short), NOTHING) is None


def test_flows_without_names_are_counted_once_and_start_at_their_own_times() -> None:
    links = [{"between": [host, "sw"], "rate": "155.52Mbps", "delay": "1ms"} for host in ("a", "b", "c", "sink")]
    flows = [{"from": "a", "to": "sink"}, {"from": "b", "to": "sink"}, {"from": "c", "to": "sink", "start": "1s"}]
    network = {"hosts": ["a", "b", "c", "sink"], "switches": ["sw"], "links": links, "flows": flows}
    ports = {"default": {"buffer": 256, "policy": {"tail_drop": {}}}}
    table = scenario({"topology": {"network": network}, "port": ports})
    # Earlier, all flows without names counted as one further flow, and each started at 0 s.
    assert json.loads(read(table).in_step())["together"] == 2


def test_the_lock_step_warning_is_given_even_if_only_one_of_many_seeds_shows_lock_step() -> None:
    found = lock_step_warning(read(scenario()), {1: (9.0, 5.0), 2: (8.0, 5.0), 3: (0.01, 5.0)})
    assert found is not None
    assert "in 1 of 3 seeds a flow starves (0.01 of a fair 14 Mb/s)" in str(found)


def test_an_invalid_scenario_is_not_checked_for_lock_step() -> None:
    assert lock_step_warning(read(scenario({"duration": "soon"})), NOTHING) is None


def test_no_shipped_scenario_with_randomness_gives_a_lock_step_warning() -> None:
    for name in ("lan-tail-drop", "lan-epd", "peer-to-peer", "star-incast"):
        assert read(ct.load(f"scenarios/{name}.toml").to_dict()).in_step() is not None, name
    for name in ("wan-dfba", "lan-unresponsive", "gfr-tagging", "lan-wfq"):
        assert read(ct.load(f"scenarios/{name}.toml").to_dict()).in_step() is None, name


SPREADS = ["0s", "100ms"]


def plan(folder: Path, measures: list[str] | None = None) -> Path:
    file = folder / "plan.toml"
    file.write_text(
        (f"measures = {measures!r}\n" if measures else "")
        + f"""
name = "starts"
seeds = 2
[axes]
spread = {{ path = "host.start_spread", values = {SPREADS!r} }}
[scenario]
duration = "4s"
[scenario.topology.n_source]
sources = 10
link_delay = "1ms"
[scenario.tcp.reno]
mss = "9140B"
[scenario.port.bottleneck]
buffer = 256
[scenario.port.bottleneck.policy.tail_drop]
"""
    )
    return file


def about_lock_step(warnings: list[str]) -> list[str]:
    return [one for one in warnings if "lock-step" in one]


def test_the_default_measures_include_those_that_detect_lock_step() -> None:
    assert {LEAST, TIMEOUTS} <= set(MEASURES)


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figures")
def test_the_outputs_of_a_sweep_and_of_its_report_end_with_the_lock_step_warning(
    celltrain: Command, tmp_path: Path
) -> None:
    swept = celltrain("sweep", plan(tmp_path), "--store", tmp_path / "s")
    assert swept.code == 0
    assert "warning: 1 of 2 points may depend on lock-step" in swept.err
    assert "in 2 of 2 seeds a flow starves" in swept.err
    told = celltrain("sweep", plan(tmp_path), "--store", tmp_path / "again", "--json")
    # If a flow starves, another warning reports that no data arrived.
    [doubt] = about_lock_step(told.json["warnings"])
    assert doubt in swept.err.replace("\n", " ")
    report = celltrain("report", tmp_path / "s", "--measures", "efficiency")
    assert report.code == 0
    assert "may depend on lock-step" in report.err
    assert "may depend on lock-step" in next((tmp_path / "s" / "report").glob("*.html")).read_text()
    assert about_lock_step(celltrain("report", tmp_path / "s", "--json").json["warnings"]) == [doubt]


def test_a_sweep_whose_flows_are_not_in_lock_step_gives_no_lock_step_warning(
    celltrain: Command, tmp_path: Path
) -> None:
    file = plan(tmp_path)
    file.write_text(file.read_text().replace("'0s'", "'50ms'"))
    swept = celltrain("sweep", file, "--store", tmp_path / "s", "--json")
    assert (swept.json["warnings"], swept.err) == ([], "")


def test_no_lock_step_warning_is_given_for_a_store_without_the_measures_that_detect_lock_step(
    celltrain: Command, tmp_path: Path
) -> None:
    swept = celltrain("sweep", plan(tmp_path, ["efficiency"]), "--store", tmp_path / "s", "--json")
    assert about_lock_step(swept.json["warnings"]) == []


def test_python_functions_give_the_lock_step_warning_too(tmp_path: Path) -> None:
    base = ct.Scenario.model_validate(scenario())
    with pytest.warns(CelltrainWarning, match="1 of 1 points may depend on lock-step: in 2 of 2 seeds"):
        ct.sweep(base, seeds=2, store=tmp_path / "in_step")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apart = ct.Scenario.model_validate(scenario({"host.start_spread": "100ms"}))
        ct.sweep(apart, seeds=2, store=tmp_path / "apart")
