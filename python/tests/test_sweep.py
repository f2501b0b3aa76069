"""Sweeps: they run exactly the missing runs of a plan, however often they are stopped."""

from __future__ import annotations

import json
import pickle
import sys
import time
from dataclasses import replace

import pytest
import sweeps
from sweeps import interrupted, rows

import celltrain as ct
from celltrain import _core
from celltrain.ensemble import sweeps as coordinator
from celltrain.ensemble.plan import Plan, canonical, run_key
from celltrain.ensemble.store import Store
from celltrain.ensemble.sweeps import run_plan, seeds_needed
from celltrain.running import Chunk, Local, Run, run_chunk
from small_sweep import SCENARIO

PLAN = f"""
seeds = {{ first = 3, count = 4 }}
[axes]
threshold = {{ path = "port.bottleneck.policy.epd.threshold", values = [50, 60] }}
buffer = {{ path = "port.bottleneck.buffer", values = [100, 150, 200] }}
{SCENARIO}
"""


def plan(text=PLAN):
    return Plan.of_toml(text)


def test_each_row_of_a_sweep_equals_the_result_of_a_single_run(tmp_path):
    run_plan(plan(), tmp_path / "s", Local(2))
    wide = Store.open(tmp_path / "s").wide().to_pylist()
    assert [(r["point"], r["seed"]) for r in wide] == [(p, s) for p in range(6) for s in range(3, 7)]
    row = wide[9]
    scenario = ct.Scenario.model_validate(json.loads(row["configuration"]))
    alone = ct.run(scenario, seed=row["seed"])
    assert alone.fingerprint == row["fingerprint"]
    assert alone.efficiency == row["efficiency"]
    assert (row["threshold"], row["buffer"]) == (50.0, 200.0)
    assert row["cells.lost"] == alone.cells["lost"]
    assert row["flows.sum(*).timeouts"] == sum(alone.flows["timeouts"].to_pylist())
    [bottleneck] = [p for p in alone.ports.to_pylist() if p["name"] == "sw1->sw2"]
    assert row["ports.bottleneck.max_queue_cells"] == bottleneck["max_queue_cells"]
    assert row["run_key"] == run_key(canonical(scenario.to_dict()), row["seed"])


def test_sweep_rows_are_the_same_for_any_number_of_threads_and_after_interruptions(tmp_path):
    run_plan(plan(), tmp_path / "one", Local(1))
    run_plan(plan(), tmp_path / "two", Local(2))
    assert rows(tmp_path / "one") == rows(tmp_path / "two")

    class Stops(Local):
        chunk_runs = 5
        left = 5

        def work(self, chunks, take):
            def until(got):
                take(got)
                self.left -= len(got.runs)
                if self.left <= 0:
                    raise KeyboardInterrupt

            super().work(chunks, until)

    for resume in (False, True, True):
        with pytest.raises(KeyboardInterrupt):
            run_plan(plan(), tmp_path / "three", Stops(2), resume=resume)
    assert len(Store.open(tmp_path / "three").wide()) == 15
    end = run_plan(plan(), tmp_path / "three", Local(1), resume=True)
    assert (end.done, end.total, end.failed) == (24, 24, 0)
    assert rows(tmp_path / "one") == rows(tmp_path / "three")
    assert Store.open(tmp_path / "three").verify() == []


def test_resuming_a_finished_store_runs_nothing(tmp_path):
    class Nobody:
        chunk_runs = 10

        def work(self, chunks, take):
            assert next(chunks, None) is None

    run_plan(plan(), tmp_path / "s", Local(2))
    before = (tmp_path / "s" / "store.sqlite").read_bytes()[100:]
    assert run_plan(plan(), tmp_path / "s", Nobody(), resume=True).done == 24
    assert (tmp_path / "s" / "store.sqlite").read_bytes()[100:] == before


def test_a_sweep_result_that_arrives_twice_or_out_of_order_is_stored_once(tmp_path):
    class Twice:
        chunk_runs = 4

        def work(self, chunks, take):
            for chunk in reversed(list(chunks)):
                got = run_chunk(pickle.loads(pickle.dumps(chunk)))
                take(got)
                take(pickle.loads(pickle.dumps(got)))

    run_plan(plan(), tmp_path / "twice", Twice())
    run_plan(plan(), tmp_path / "one", Local(1))
    assert rows(tmp_path / "one") == rows(tmp_path / "twice")
    assert Store.open(tmp_path / "twice").verify() == []


def test_results_from_a_cluster_worker_with_another_version_are_refused(tmp_path):
    class Other:
        chunk_runs = 4

        def work(self, chunks, take):
            take(replace(run_chunk(next(chunks)), version="0.0.1"))

    with pytest.raises(ct.ClusterError, match=r"a worker runs 0\.0\.1"):
        run_plan(plan(), tmp_path / "s", Other())
    assert len(Store.open(tmp_path / "s").table()) == 0


def test_results_of_other_cluster_workers_are_kept_if_a_worker_has_another_version(tmp_path):
    class Mixed:
        chunk_runs = 4

        def work(self, chunks, take):
            take(run_chunk(next(chunks)))
            take(replace(run_chunk(next(chunks)), version="0.0.1"))

    with pytest.raises(ct.ClusterError):
        run_plan(plan(), tmp_path / "s", Mixed())
    assert sweeps.stored(tmp_path / "s") == 4


def test_plan_points_with_the_same_scenario_are_run_only_once(tmp_path):
    text = PLAN.replace("values = [50, 60]", "values = { a = 50, b = 50.0 }").replace("50.0", "50")
    text = text.replace("values = { a = 50, b = 50 }", "values = { a = 50, b = 70, c = 50 }")
    with pytest.raises(ct.PlanError, match="twice"):
        plan(text)
    # The two texts describe the same scenario: only the unit of the buffer differs.
    same = PLAN.replace(
        'threshold = { path = "port.bottleneck.policy.epd.threshold", values = [50, 60] }',
        'delay = { path = "topology.n_source.link_delay", values = ["5us", "0.005ms"] }',
    )
    end = run_plan(plan(same), tmp_path / "s", Local(2))
    assert (end.done, end.repeated) == (24, 12)
    store = Store.open(tmp_path / "s")
    assert store.verify() == []
    assert set(store.wide()["point"].to_pylist()) == {0, 1, 2}
    assert run_plan(plan(same), tmp_path / "s", Local(2), resume=True).done == 24


def test_a_sweep_run_that_panics_becomes_a_failed_row_and_the_other_runs_continue(tmp_path, failing):
    end = run_plan(plan(), tmp_path / "s", Local(2))
    assert (end.done, end.failed) == (24, 6)
    failures = Store.open(tmp_path / "s").failures().to_pylist()
    assert [row["seed"] for row in failures] == [4] * 6
    assert {row["error"] for row in failures} == {"panicked: made for a test"}
    assert {row["measure"] for row in failures} == {None}
    wide = Store.open(tmp_path / "s").wide().to_pylist()
    assert [row["efficiency"] is None for row in wide] == [row["seed"] == 4 for row in wide]
    assert Store.open(tmp_path / "s").verify() == []


def test_a_sweep_run_that_exceeds_its_time_limit_becomes_a_failed_row(tmp_path):
    text = PLAN.replace("values = [100, 150, 200]", "values = [100]").replace(
        "[axes]", '[limits]\ntime = "200ms"\n[axes]\nduration = ["1ms", "100000s"]'
    )
    begun = time.monotonic()
    end = run_plan(plan(text.replace("count = 4", "count = 1")), tmp_path / "s", Local(2))
    assert time.monotonic() - begun < 20
    assert (end.done, end.failed) == (4, 2)
    failed = Store.open(tmp_path / "s").failures()
    assert set(failed["error"].to_pylist()) == {"took longer than 0.2 s of real time"}


@pytest.mark.nightly
@pytest.mark.slow
def test_a_sweep_point_found_to_be_invalid_only_when_run_becomes_a_failed_row(tmp_path):
    # There are too many points to check all of them in advance. Points with a threshold above the buffer are refused.
    text = PLAN.replace("values = [50, 60]", "from = 2, to = 3001, step = 1").replace("count = 4", "count = 1")
    text = text.replace("values = [100, 150, 200]", "values = [3000]").replace('"5ms"', '"1us"')
    with pytest.raises(ct.PlanError, match="threshold = 3001 is above the buffer"):
        plan(text)
    whole = replace(plan(text.replace("3001", "3000")))
    end = run_plan(whole, tmp_path / "s", Local(2))
    assert (end.done, end.failed) == (2999, 0)

    class Refused(Plan):
        pass

    narrow = plan(PLAN.replace("values = [50, 60]", "values = [50, 90]"))
    narrow.base["port"]["bottleneck"]["policy"] = {"epd": {"threshold": 1}}
    narrow.base["tcp"] = {"vanilla": {"no_such_thing": 1}}
    narrow.cases.clear()
    end = run_plan(narrow, tmp_path / "t", Local(2))
    assert (end.done, end.failed) == (24, 24)
    row = Store.open(tmp_path / "t").failures().to_pylist()[0]
    assert "no_such_thing" in row["error"]
    assert Store.open(tmp_path / "t").verify() == []


def test_a_sweep_processed_in_small_blocks_has_the_same_rows_as_in_one_block(tmp_path, monkeypatch):
    run_plan(plan(), tmp_path / "one", Local(1))
    monkeypatch.setattr(coordinator, "BLOCK_RUNS", 5)
    monkeypatch.setattr(coordinator, "BLOCK", 2)
    run_plan(plan(), tmp_path / "pieces", Local(1))
    assert rows(tmp_path / "pieces") == rows(tmp_path / "one")


def test_a_sweep_reports_how_many_points_still_have_wide_intervals_after_all_seeds(tmp_path):
    narrow = 'seeds = { until = { measure = "efficiency", interval = INTERVAL, at_least = 2, at_most = 3 } }'
    text = PLAN.replace("seeds = { first = 3, count = 4 }", narrow)
    text = text.replace('"5ms"', '"80ms"').replace("sources = 3", "sources = 5")
    wide = plan(text.replace("INTERVAL", "1e-12"))
    assert 0 < run_plan(wide, tmp_path / "wide", Local(1)).wide <= len(wide.points)
    assert run_plan(plan(text.replace("INTERVAL", "1.0")), tmp_path / "narrow", Local(1)).wide == 0


def test_plans_created_in_python_are_checked_like_plans_in_files():
    with pytest.raises(ct.PlanError, match="base = 42 is not a Scenario or a Plan or a path"):
        ct.sweep(42)
    with pytest.raises(ct.PlanError, match="measures"):
        ct.sweep("lan-selective-drop", measures="efficiency")


def test_a_sweep_adds_seeds_until_the_confidence_interval_is_narrow(tmp_path):
    text = PLAN.replace(
        "seeds = { first = 3, count = 4 }",
        'seeds = { until = { measure = "efficiency", interval = 0.00015, at_least = 3, at_most = 40 } }',
    )
    text = text.replace('"5ms"', '"80ms"').replace("sources = 3", "sources = 5")
    run_plan(plan(text), tmp_path / "one", Local(1))
    store = Store.open(tmp_path / "one")
    counts = set()
    for row in store.summary(["efficiency"]).to_pylist():
        narrow = (row["high"] - row["low"]) / 2 <= 0.00015
        assert row["n"] >= 3
        assert narrow or row["n"] == 40
        counts.add(row["n"])
    assert len(counts) > 1

    class Stops(Local):
        chunk_runs = 3
        left = 20

        def work(self, chunks, take):
            def until(got):
                take(got)
                self.left -= len(got.runs)
                if self.left <= 0:
                    raise KeyboardInterrupt

            super().work(chunks, until)

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(text), tmp_path / "two", Stops(2))
    run_plan(plan(text), tmp_path / "two", Local(2), resume=True)
    assert rows(tmp_path / "one") == rows(tmp_path / "two")


def test_the_number_of_seeds_that_a_sweep_needs_is_computed_from_the_standard_deviation():
    assert seeds_needed([1.0, 1.0], 0.001, 100) == 2
    few, many = seeds_needed([1.0, 1.2, 1.1], 0.2, 1000), seeds_needed([1.0, 1.2, 1.1], 0.02, 1000)
    assert 3 <= few < many < 1000
    assert seeds_needed([0.0, 1.0], 1e-6, 77) == 77


def test_a_sweep_keeps_series_if_its_plan_requests_them(tmp_path):
    text = PLAN.replace("[axes]", '[series]\nrecord = ["queue", "cwnd"]\nstep = "1ms"\n[axes]')
    run_plan(plan(text), tmp_path / "s", Local(2))
    store = Store.open(tmp_path / "s")
    assert store.verify() == []
    row = store.wide().to_pylist()[0]
    series = store.series(row["run_key"])
    assert set(series["measure"].to_pylist()) == {
        "queue_cells",
        "queue_cells_least",
        "queue_cells_largest",
        "cwnd_segments",
        "ssthresh_segments",
    }
    scenario = ct.Scenario.model_validate(json.loads(row["configuration"]))
    alone = ct.run(scenario, seed=row["seed"], trace=["queue", "cwnd"], step="1ms")
    of_queue = [r["value"] for r in series.to_pylist() if r["measure"] == "queue_cells"]
    assert of_queue == alone.series["queue"]["queue_cells"].to_pylist()
    of_cwnd = [(r["flow"], r["value"]) for r in series.to_pylist() if r["measure"] == "cwnd_segments"]
    cwnd = alone.series["cwnd"].to_pylist()
    assert of_cwnd == [(r["flow"], r["cwnd_segments"]) for r in cwnd]
    assert store.verify() == []


def test_a_plan_that_records_rate_series_requires_a_rate_controlled_connection(tmp_path):
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="5ms")
    over = {"topology.n_source.sources": [2]}
    record = {"record": ["acr"], "step": "1ms"}
    with pytest.raises(ct.PlanError, match=r'series.record = "acr" has nothing to record'):
        ct.sweep(lan, over=over, seeds=1, series=record, store=tmp_path / "none")
    port = lan.port["bottleneck"].replace(allocator=ct.EqualShare())
    lan = lan.replace(port={**lan.port, "bottleneck": port}, vc={"tcp1": ct.VcOptions(abr=ct.Abr())})
    with ct.sweep(lan, over=over, seeds=1, series=record, store=tmp_path / "s") as store:
        rows = [store.series(row["run_key"]).to_pylist() for row in store.wide().to_pylist()]
    assert [sorted({row["flow"] for row in series}) for series in rows] == [["tcp1"]]


def test_measures_without_a_value_are_stored_as_null_and_unknown_measures_are_reported(tmp_path):
    text = PLAN.replace(
        "[axes]", 'measures = ["file_delay_ms.mean", "flows.tcp5.timeouts", "efficiency"]\n[axes]'
    ).replace("[axes]", '[axes]\nsources = { path = "topology.n_source.sources", values = [3, 5] }')
    text = text.replace("[scenario]", '[scenario]\nmeasure = { file_size = "100kB" }')
    run_plan(plan(text), tmp_path / "s", Local(2))
    found = Store.open(tmp_path / "s").table().to_pylist()
    assert {row["value"] for row in found if row["measure"] == "file_delay_ms.mean"} == {None}
    for row in found:
        if row["measure"] == "flows.tcp5.timeouts":
            assert (row["value"] is None) == (row["sources"] == 3.0)
            assert ("is not in the result of a run" in (row["error"] or "")) == (row["sources"] == 3.0)
        elif row["measure"] == "efficiency":
            assert row["value"] is not None


def test_a_pickled_chunk_of_runs_can_be_executed_in_another_process():
    text = canonical(plan().points[0].scenario)
    runs = (
        Run(point=0, case=_core.Case(text, text), seed=1, key="a"),
        Run(point=1, case=_core.Case("{}", "{}"), seed=2, key="b"),
    )
    chunk = Chunk(runs=runs, measures=("efficiency",), limit_s=None, recording=None)
    got = run_chunk(pickle.loads(pickle.dumps(chunk)))
    by_key = {ran.run_key: ran for ran in got.runs}
    assert by_key["a"].error is None
    assert "duration is missing" in by_key["b"].error


def test_scenario_classes_can_be_used_in_a_sweep_in_python(tmp_path):
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="5ms")
    store = ct.sweep(
        lan,
        over={
            "policy": {
                "path": "port.bottleneck.policy",
                "values": {"epd": ct.Epd(threshold=50), "td": ct.TailDrop()},
            },
            "port.bottleneck.buffer": [100, 200],
        },
        seeds=2,
        store=tmp_path / "s",
    )
    assert store.summary(["efficiency"])["policy"].to_pylist() == ["epd", "epd", "td", "td"]
    assert store.summary()["n"].to_pylist() == [2] * 32
    again = ct.sweep(store.plan, store=tmp_path / "s", resume=True)
    assert again.plan.digest == store.plan.digest
    with pytest.raises(ct.PlanError, match="jobs = 0"):
        ct.sweep(lan, jobs=0)


@pytest.mark.slow
def test_the_sweep_command_gives_the_same_result_as_the_python_function_sweep(tmp_path, celltrain):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    foretold = celltrain("sweep", path, "--dry-run", "--json").json
    assert (foretold["points"], foretold["runs"]) == (6, 24)
    assert foretold["seconds"] > 0
    assert foretold["bytes"] > 0
    assert "6 points, 24 runs" in celltrain("sweep", path, "--dry-run").out
    told = celltrain("sweep", path, "--store", tmp_path / "s", "--jobs", 2)
    assert told.code == 0
    assert told.err.startswith("warning: buffer changes nothing: "), (
        "every buffer is larger than the threshold of 60 cells"
    )
    assert told.err.count("\n") == 2
    assert "24 runs done, 8 of them copied from equal runs, 0 failed" in told.out
    again = celltrain("sweep", path, "--store", tmp_path / "s")
    assert again.code == 2
    assert "is already a store" in again.err
    assert celltrain("sweep", path, "--store", tmp_path / "s", "--resume", "--json").json["done"] == 24
    assert celltrain("sweep", path).code == 2
    assert celltrain("store", "show", tmp_path / "s", "--json").json["runs"] == 24
    assert "24 of 24 runs" in celltrain("store", "show", tmp_path / "s").out
    assert celltrain("store", "verify", tmp_path / "s").code == 0


@pytest.mark.parametrize(("count", "hidden"), [(6, 0), (18, 2)])
def test_the_sweep_command_prints_every_measure_or_names_the_omitted_measures(
    count, hidden, tmp_path, celltrain, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "1000")
    measures = [f"efficiency * {number}" for number in range(1, count + 1)]
    plan = f'measures = {json.dumps(measures)}\nseeds = 1\nscenario = "lan-epd"\n[axes]\nduration = ["5ms", "6ms"]\n'
    path = tmp_path / "plan.toml"
    path.write_text(plan)
    out = " ".join(celltrain("sweep", path, "--store", tmp_path / "s", "--jobs", 1).out.split())
    assert all(out.count(measure) >= 1 for measure in measures)
    named = ", ".join(measures[count - hidden :])
    assert (f"Not shown, but in the store: {named}" in out) == (hidden > 0)


MANY = PLAN.replace("count = 4", "count = 400").replace('"5ms"', '"10ms"')


# The small version of the campaign `kills` in test_campaigns.py also kills drivers at random.
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")
def test_a_sweep_loses_no_results_if_its_process_is_killed_repeatedly(tmp_path):
    path, store = tmp_path / "plan.toml", tmp_path / "s"
    path.write_text(MANY)
    for count in (7, 19, 38):
        with sweeps.driver(path, store, "--jobs", 2) as process:
            sweeps.wait_for_runs(store, count * sweeps.WRITE_RUNS, process)
            process.kill()
        assert count * sweeps.WRITE_RUNS <= sweeps.stored(store) < 2400
    with sweeps.driver(path, store) as process:
        out, err = process.communicate(timeout=300)
    assert (process.returncode, err.count("\n")) == (0, 1), out + err
    assert err.startswith("warning: buffer changes nothing: "), "every buffer is larger than the threshold of 60 cells"
    assert Store.open(store).verify() == []
    run_plan(plan(MANY), tmp_path / "one", Local(2))
    assert rows(tmp_path / "one") == rows(store)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")
def test_ctrl_c_during_a_sweep_keeps_finished_runs_and_reports_their_number(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(MANY.replace("count = 400", "count = 100000"))
    command = [sys.executable, "-m", "celltrain", "sweep", path, "--store", tmp_path / "s", "--json"]
    answer = json.loads(interrupted(command, tmp_path, "s"))
    assert answer["interrupted"]
    store = Store.open(tmp_path / "s")
    assert len(store.wide()) == answer["done"] > 0
    assert store.verify() == []


def test_for_a_result_too_large_for_the_screen_the_output_refers_to_the_report_command(celltrain, tmp_path):
    plan, store = tmp_path / "plan.toml", tmp_path / "out"
    values = ", ".join(str(100 + one) for one in range(25))
    axes = f'[axes]\n"port.bottleneck.buffer" = [{values}]\nduration = ["1ms"]\n'
    plan.write_text(f'scenario = "lan-tail-drop"\nseeds = 1\n{axes}')
    assert f"too much for the screen: celltrain report {store} writes a page; docs/sweeps.md" in (
        celltrain("sweep", plan, "--store", store).out
    )


def test_the_summary_of_a_sweep_states_at_which_points_an_axis_applies(celltrain, tmp_path):
    plan = tmp_path / "plan.toml"
    axes = '[axes]\ntcp = ["vanilla", "reno"]\n"tcp.reno.timer.tick_phase" = ["random"]\nduration = ["5ms"]\n'
    plan.write_text(f'scenario = "lan-tail-drop"\nseeds = 1\n{axes}')
    told = celltrain("sweep", plan, "--store", tmp_path / "out").out
    assert "tcp.reno.timer.tick_phase = random (only where tcp is reno)" in told
