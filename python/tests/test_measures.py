"""The tables of measures, their uses, and the page that lists the measures."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from pages import ROOT

import celltrain as ct
from celltrain import _core
from celltrain.ensemble.cases import measured
from celltrain.ensemble.plan import Plan
from celltrain.model.measures import ROWS, RUN, SERIES
from celltrain.running import tables


@pytest.fixture(scope="module")
def answer() -> dict:
    scenario = ct.n_source(
        sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="10ms", tcp=ct.Tahoe()
    )
    return ct.run(scenario).to_dict()


def test_an_answer_has_exactly_the_documented_measures(answer):
    groups = {measure.name.partition(".")[0] for measure in RUN}
    assert set(answer) == {*groups, *ROWS, "build", "format", "tcp"} - {"links"}
    for name in ("flows", "ports"):
        for row in answer[name]:
            assert set(row) == {one.name.partition(".")[0] for one in ROWS[name] if not one.on_request}


def test_a_results_store_contains_the_unit_of_each_measure_of_a_whole_run():
    for measure in RUN:
        assert measured(measure.name).unit == measure.unit
    assert measured("fairness_max_min").unit == "1"
    assert measured("flows.tcp1.file_delay_ms.mean").unit == "ms"
    assert measured("flows.fairness(*).goodput_mbps").unit == "1"


def test_every_series_of_a_run_can_be_recorded_by_a_sweep_plan(tmp_path):
    scenario = "scenario = 'internetwork-abr-ada.toml'\n"
    plan = tmp_path / "plan.toml"
    of_memories = ["memory"]
    others = [name for name in SERIES if name not in of_memories]
    shared = "scenario = 'memory-dynamic-threshold.toml'\n"
    for text, names in ((scenario, others), (shared, of_memories)):
        plan.write_text(f"name = 'all'\n{text}[series]\nrecord = {json.dumps(names)}\nstep = '1s'\n")
        assert Plan.load(plan).recording.trace == tuple(names)


def test_the_measures_named_in_a_plan_are_checked_before_any_run(tmp_path, monkeypatch):
    def ran(*_arguments):
        raise AssertionError("a plan is read without running anything")

    monkeypatch.setattr(_core, "run_cases", ran)
    # If the test started a run by mistake, the run would take days.
    long = (ROOT / "scenarios" / "lan-epd.toml").read_text().replace('duration = "10s"', 'duration = "1000000s"')
    assert "1000000s" in long
    (tmp_path / "long.toml").write_text(long)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "name = 'x'\nscenario = 'long.toml'\n"
        "measures = ['efficiency', 'flows.tcp9.timeouts', 'flows.tcp1.timeout', 'series.climb.tcp1']\n"
    )
    with pytest.raises(ct.PlanError) as refused:
        Plan.load(plan)
    assert [fault.value for fault in refused.value.faults] == ['"flows.tcp9.timeouts"', '"flows.tcp1.timeout"']


def test_occupancy_percentiles_of_a_shared_memory_match_those_computed_from_cell_events(tmp_path):
    window = {"duration": "40ms", "measure.from": "10ms", "measure.to": "35ms"}
    scenario = ct.load("memory-dynamic-threshold", settings=window)
    ports = [port["name"] for port in ct.run(scenario).to_dict()["ports"] if port["name"].startswith("sw->")]
    result = ct.run(scenario, engine="reference", events=ct.Events(tmp_path, kinds=["cells"], ports=ports))
    cells = pq.read_table(tmp_path / "cells.parquet").to_pandas()
    change = cells["event"].map({"admitted": 1, "departed": -1, "pushed_out": -1}).fillna(0).to_numpy(int)
    used, time = np.append(0, change.cumsum()), np.append(0.0, cells["time_s"])
    held = np.diff(np.clip(np.append(time, 0.035), 0.010, 0.035))
    share = np.bincount(used, held).cumsum() / 0.025
    [memory] = result.to_dict()["memories"]
    for name, least in {"median": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}.items():
        assert memory[f"used_cells_{name}"] == np.searchsorted(share, least)
    assert memory["used_cells_mean"] == pytest.approx((used * held).sum() / 0.025)
    assert memory["used_cells_median"] > 100
    assert ct.run(scenario).to_dict()["memories"] == [memory]


def test_the_columns_of_a_result_table_are_the_listed_measures_of_that_table(answer):
    table = tables.table(answer["flows"], [measure.as_column() for measure in ROWS["flows"]])
    assert table.column_names == [measure.column for measure in ROWS["flows"]]
    assert table.schema.field("goodput_mbps").metadata[b"unit"] == b"Mb/s"
