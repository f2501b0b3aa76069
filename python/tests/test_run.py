from __future__ import annotations

import inspect
import pickle
import pydoc
import re
import threading
import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from conftest import ROOT

import celltrain as ct
from celltrain.model.arguments import names
from celltrain.model.measures import ROWS
from celltrain.running import tables


def lan(**changes):
    settings = {
        "sources": 3,
        "link_delay": "5us",
        "buffer_cells": 100,
        "policy": ct.Epd(threshold=60),
        "duration": "20ms",
    }
    return ct.n_source(**{**settings, **changes})


def with_files(scenario, size):
    return scenario.replace(measure=ct.MeasureOptions(file_size=size))


@pytest.fixture(scope="module")
def traced():
    return ct.run(lan(), trace=["queue", "occupancy", "cwnd"], step="100us")


def test_the_result_of_a_run_has_the_documented_measures(traced):
    assert 0 < traced.efficiency <= 1
    assert 0 < traced.fairness <= 1
    cells = traced.cells
    assert cells["offered"] == cells["delivered"] + cells["lost"] + cells["discarded"] + cells["in_flight"]
    assert traced.cell_hops > 0
    assert traced.cell_hops_per_second == pytest.approx(traced.cell_hops / traced.engine_seconds)
    assert len(traced.fingerprint) == 16
    assert traced.seed == 1
    assert traced.duration_s == 0.02
    assert traced.fingerprint in repr(traced)


def test_a_result_contains_flows_and_ports_as_tables_with_units(traced):
    assert traced.flows["name"].to_pylist() == ["tcp1", "tcp2", "tcp3"]
    assert traced.to_pandas()["name"].tolist() == ["tcp1", "tcp2", "tcp3"]
    for table in (traced.flows, traced.ports, *traced.series.values()):
        for field in table.schema:
            assert field.metadata[b"meaning"], field.name
            assert b"unit" in field.metadata, field.name
            unitless = {"name", "policy", "scheduler", "stack", "traffic", "port", "flow"}
            assert field.metadata[b"unit"] or field.name in unitless, field.name
    assert traced.flows.field("goodput_mbps").metadata[b"unit"] == b"Mb/s"


@pytest.mark.parametrize("kind, columns", [(kind, ROWS[kind]) for kind in ("flows", "ports")])
def test_the_tables_of_a_result_contain_every_field_of_the_json_output(kind, columns):
    for row in ct.run(with_files(lan(), "1kB")).to_dict()[kind]:
        assert set(tables.flat(row)) == {column.column for column in columns if not column.on_request}


def test_the_efficiency_of_a_result_follows_from_the_goodput_in_its_flow_table(traced):
    bottleneck = traced.ports.to_pylist()[0]
    assert bottleneck["name"] == "sw1->sw2"
    assert bottleneck["buffer_cells"] == 100
    assert bottleneck["max_queue_cells"] <= 100
    assert traced.ports["buffer_cells"].null_count > 0, "a host's queue has no limit"
    payload_share = 512 / (12 * 53)
    goodput = sum(traced.flows["goodput_mbps"].to_pylist())
    assert traced.efficiency == pytest.approx(goodput / (155.52 * payload_share))


def test_the_goodput_of_a_run_is_the_sum_over_its_flows(traced):
    assert traced.goodput_mbps == pytest.approx(sum(traced.flows["goodput_mbps"].to_pylist()))


def test_file_delays_are_measured_on_request(traced):
    scenario = lan(duration="500ms", buffer_cells=1000, policy=ct.Epd(threshold=900), tcp=ct.Sack())
    without = ct.run(scenario)
    assert (without.file_delay_ms, traced.flows["file_delay_ms_mean"].null_count) == (None, 3)
    assert [flow["file_delay_ms"] for flow in without.to_dict()["flows"]] == [None] * 3
    result = ct.run(with_files(scenario, "20kB"))
    assert result.fingerprint == without.fingerprint
    assert result.to_dict() == {
        **ct.run(with_files(scenario, "20kB"), engine="reference").to_dict(),
        **measured(result),
    }
    flows = result.flows.to_pylist()
    files = [flow["file_delay_ms_files"] for flow in flows]
    for flow in flows:
        assert 0 <= flow["delivered_bytes"] / 20_000 - flow["file_delay_ms_files"] < 5
        assert 0 < flow["file_delay_ms_median"] <= flow["file_delay_ms_p95"]
    delay = result.file_delay_ms
    assert delay["files"] == sum(files) > 10
    means = [flow["file_delay_ms_mean"] * count for flow, count in zip(flows, files, strict=True)]
    assert delay["mean"] == pytest.approx(sum(means) / sum(files))
    assert delay["median"] <= delay["p95"]


def measured(result):
    answer = result.to_dict()
    return {name: answer[name] for name in ("engine", "timing")}


def test_packet_delay_percentiles_match_those_of_numpy():
    # The first of two files is slower, because of slow start; their mean determines the second delay.
    one = lan(sources=1, buffer_cells="infinite", policy=ct.TailDrop(), duration="3s")
    halves = [ct.run(with_files(one.replace(duration=length), "400kB")).file_delay_ms for length in ("50ms", "60ms")]
    assert [half["files"] for half in halves] == [1, 2]
    first = halves[0]["mean"]
    second = 2 * halves[1]["mean"] - first
    assert first == halves[0]["median"] == halves[0]["p95"]
    for name, share in (("median", 50), ("p95", 95)):
        assert halves[1][name] == pytest.approx(float(np.percentile([first, second], share)))


def test_file_delays_are_undefined_if_no_file_was_completed():
    result = ct.run(with_files(lan(), "1MB"))
    nothing = {"mean": None, "median": None, "p95": None, "files": 0}
    assert result.file_delay_ms == nothing
    assert result.to_dict()["flows"][0]["file_delay_ms"] == nothing
    assert result.flows["file_delay_ms_files"].to_pylist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("size", "problem"), [("0B", "must be from one segment (512B)"), ("100", "no unit"), ("-1kB", "it is negative")]
)
def test_an_invalid_file_size_is_refused(size, problem):
    [fault] = ct.check(with_files(lan(), size))
    assert fault.key == "measure.file_size"
    assert problem in fault.message


def test_recorded_series_are_tables_with_one_row_per_sample(traced):
    assert list(traced.series) == ["queue", "occupancy", "cwnd"]
    queue, occupancy, cwnd = traced.series.values()
    assert queue.column_names == ["time_s", "port", "queue_cells", "queue_cells_least", "queue_cells_largest"]
    assert occupancy.column_names == ["time_s", "port", "flow", "occupancy_cells"]
    assert cwnd.column_names == ["time_s", "flow", "cwnd_segments", "ssthresh_segments"]
    samples = 201
    assert (queue.num_rows, occupancy.num_rows, cwnd.num_rows) == (samples, 3 * samples, 3 * samples)
    assert queue["time_s"].to_pylist()[:2] == [0.0, pytest.approx(1e-4)]
    totals = occupancy.group_by("time_s").aggregate([("occupancy_cells", "sum")]).sort_by("time_s")
    assert totals["occupancy_cells_sum"].to_pylist() == queue["queue_cells"].to_pylist()


def two_of_three_are_abr(**changes):
    lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=500, policy=ct.TailDrop(), duration="20ms")
    port = lan.port["bottleneck"].replace(allocator=ct.EqualShare())
    vc = {"tcp2-3": ct.VcOptions(abr=ct.Abr(icr="10Mbps"))}
    return lan.replace(port={**lan.port, "bottleneck": port}, vc=vc, **changes)


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_only_rate_controlled_connections_have_rate_series(engine):
    """Regression: other connections were included with rates of 0, as if they had stopped."""
    result = ct.run(two_of_three_are_abr(), trace=["acr", "edge", "cwnd"], step="1ms", engine=engine)
    rates = result.series["acr"]
    assert set(rates["flow"].to_pylist()) == {"tcp2", "tcp3"} == set(result.series["edge"]["flow"].to_pylist())
    assert min(rates["acr_mbps"].to_pylist()) > 0
    assert set(result.series["cwnd"]["flow"].to_pylist()) == {"tcp1", "tcp2", "tcp3"}
    last = {row["flow"]: row["acr_mbps"] for row in rates.to_pylist()}
    assert last == {row["vc"]: row["acr_mbps"] for row in result.abr.to_pylist() if not row["vc"].endswith("-acks")}


@pytest.mark.parametrize("name, why", [("acr", r"\[vc\.NAME\.abr\]"), ("edge", "edge device")])
def test_recording_a_series_that_no_connection_has_is_refused(name, why):
    lan = ct.n_source(sources=1, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="1ms")
    with pytest.raises(ct.ScenarioError, match=f'"{name}" has nothing to record: .*{why}'):
        ct.run(lan, trace=["queue", name])


def test_connections_through_edge_devices_have_edge_device_series_even_without_abr():
    ubr = ct.load(ROOT / "scenarios" / "internetwork-ubr-epd.toml").replace(duration="200ms")
    packets = ct.run(ubr, trace=["edge"], step="1ms").series["edge"]["edge_packets"].to_pylist()
    assert max(packets) > 0
    with pytest.raises(ct.ScenarioError, match='"acr" has nothing to record'):
        ct.run(ubr, trace=["acr", "edge"])


def test_the_queue_length_of_any_port_can_be_recorded_as_a_series():
    result = ct.run(lan(), trace="queue", ports=["source1->sw1", "bottleneck"])
    assert set(result.series["queue"]["port"].to_pylist()) == {"source1->sw1", "sw1->sw2"}


@pytest.mark.parametrize("trace", [["queue"], ["cwnd", "occupancy"]])
@pytest.mark.parametrize(
    "policy", [ct.TailDrop(), ct.Fba(), ct.DropFromFront()], ids=lambda policy: type(policy).__name__
)
def test_recording_series_does_not_change_a_run(trace, policy):
    scenario = lan(policy=policy)
    unobserved = ct.run(scenario)
    for step in ("7us", "1ms"):
        observed = ct.run(scenario, trace=trace, step=step)
        assert observed.fingerprint == unobserved.fingerprint
        assert observed.cells == unobserved.cells


@pytest.mark.parametrize("policy", [ct.TailDrop(), ct.Epd(threshold=60), ct.SelectiveDrop()], ids=repr)
def test_both_engines_give_the_same_result_in_python(policy):
    scenario = lan(policy=policy, sources=5, duration="100ms")
    fast, reference = ct.run(scenario), ct.run(scenario, engine="reference")
    measured = ("engine", "timing")
    assert {k: v for k, v in fast.to_dict().items() if k not in measured} == {
        k: v for k, v in reference.to_dict().items() if k not in measured
    }
    assert (fast.to_dict()["engine"], reference.to_dict()["engine"]) == ("fast", "reference")


def test_a_run_without_a_given_seed_uses_the_seed_of_the_scenario():
    scenario = lan(policy=ct.TailDrop(), seed=7)
    assert ct.run(scenario).fingerprint == ct.run(scenario.replace(seed=1), seed=7).fingerprint
    assert ct.run(scenario).fingerprint != ct.run(scenario, seed=8).fingerprint
    assert ct.run(scenario, seed=(1 << 64) - 1).seed == (1 << 64) - 1


def test_a_scenario_file_and_the_scenario_object_loaded_from_it_give_the_same_run(small):
    loaded = ct.load(small)
    assert loaded.port["bottleneck"].policy == ct.Epd(threshold=60)
    assert ct.run(small).fingerprint == ct.run(str(small)).fingerprint == ct.run(loaded).fingerprint


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_scenario_is_unchanged_after_loading_and_saving(path):
    scenario = ct.load(path)
    assert ct.check(scenario) == []
    assert ct.Scenario.model_validate(scenario.to_dict()) == scenario


def test_the_exception_for_an_invalid_scenario_lists_all_errors():
    scenario = lan(policy=ct.Epd(threshold=101), link_delay="5 parsecs")
    with pytest.raises(ct.ScenarioError) as caught:
        ct.run(scenario)
    [fault] = caught.value.faults
    assert fault.key == "topology.n_source.link_delay"
    assert "unknown unit" in fault.problem
    [fault] = ct.check(lan(policy=ct.Epd(threshold=101)))
    assert fault.key == "port.bottleneck.policy.epd.threshold"


@pytest.mark.parametrize(
    "options, key",
    [
        ({"trace": ["cwd"]}, "trace"),
        ({"engine": "warp"}, "engine"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"trace": ["queue"], "step": "1 fortnight"}, "step"),
        ({"trace": ["queue"], "step": "0s"}, "step"),
        ({"trace": ["queue"], "ports": ["nowhere"]}, "ports"),
    ],
)
def test_invalid_options_of_the_run_function_are_refused(options, key):
    with pytest.raises(ct.ScenarioError) as caught:
        ct.run(lan(), **options)
    assert [fault.key for fault in caught.value.faults] == [key]


def test_an_object_that_is_not_a_scenario_is_refused():
    with pytest.raises(ct.ScenarioError, match="scenario = 3 is not a Scenario or a path"):
        ct.run(3)


def test_the_error_for_reading_a_series_that_was_not_recorded_explains_how_to_record_it():
    result = ct.run(lan(), trace=["queue"])
    with pytest.raises(ct.NotTracedError, match=r'trace=\["cwnd"\]'):
        result.series["cwnd"]
    with pytest.raises(KeyError):
        result.series["nonsense"]
    assert "occupancy" not in result.series


def test_clock_settings_that_cannot_be_represented_exactly_are_rounded_with_a_warning():
    odd = lan(link_rate="155.520001Mbps", link_delay="4.999999us")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ct.run(odd)
    assert [warning.category for warning in caught] == [ct.CelltrainWarning]
    assert caught[0].filename == __file__


def test_other_python_threads_continue_while_the_engine_runs():
    long = lan(duration="60s")
    ticks = 0
    done = threading.Event()

    def tick():
        nonlocal ticks
        while not done.wait(0.002):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    ct.run(long)
    seconds = time.monotonic() - started
    done.set()
    thread.join()
    # If the engine held the interpreter lock, the thread would count only once or twice.
    assert ticks > min(10, seconds / 0.002 / 20)


def test_a_result_can_be_sent_to_another_process(traced):
    copy = pickle.loads(pickle.dumps(traced))
    assert copy.to_dict() == traced.to_dict()
    assert copy.series["cwnd"].equals(traced.series["cwnd"])


def test_formatting_a_quantity_and_parsing_it_returns_the_same_value(traced, tmp_path):
    files = traced.write(tmp_path / "deep" / "out")
    assert {file.name for file in files} == {
        "result.json",
        *(f"{name}.{kind}" for name in ("flows", "ports", "queue", "occupancy", "cwnd") for kind in ("parquet", "csv")),
    }
    for file in files:
        if file.suffix == ".parquet":
            table = {**traced.series, "flows": traced.flows, "ports": traced.ports}[file.stem]
            back = pa.parquet.read_table(file)
            assert back.equals(table)
            assert back.schema.field(0).metadata[b"meaning"] == table.schema.field(0).metadata[b"meaning"]
            assert pa.csv.read_csv(file.with_suffix(".csv")).num_rows == table.num_rows


def test_pythons_help_shows_the_parameters_of_the_main_functions():
    # Importing modules of the package must not replace its functions of the same name.

    for call in (ct.reproduce, ct.study, ct.sweep, ct.tune, ct.report):
        assert inspect.isfunction(call), call
        page = pydoc.plain(pydoc.render_doc(call))
        for parameter in names(call):
            assert parameter in page, f"{call.__name__}: {parameter}"


def test_accessing_an_unknown_attribute_of_the_package_raises_an_attributeerror():
    with pytest.raises(AttributeError, match="no attribute 'Ebd'"):
        _ = ct.Ebd
    assert "annotations" not in dir(ct)


@pytest.mark.parametrize(
    ("option", "value"),
    [("seed", 1.5), ("seed", True), ("seed", "a"), ("seed", -1), ("trace", 5), ("step", 5)],
)
def test_the_error_for_an_option_of_the_wrong_type_states_its_name_and_value(option, value):
    lan = ct.n_source(sources=1, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="1ms")
    with pytest.raises(ct.ScenarioError) as refusal:
        ct.run(lan, **{option: value})
    assert refusal.value.faults[0].key == option
    assert repr(value) in refusal.value.faults[0].message or str(value) in refusal.value.faults[0].message


def test_series_too_large_for_memory_are_refused_before_the_run():
    lan = ct.n_source(sources=500, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="1s")
    with pytest.raises(ct.ScenarioError, match="values are recorded"):
        ct.run(lan, trace=["cwnd"], step="1us")


def test_samples_of_series_are_taken_at_exact_multiples_of_the_step_for_any_clock():
    lan = ct.n_source(sources=1, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="10ms")
    times = ct.run(lan, trace=["queue"], step="1us").series["queue"]["time_s"].to_pylist()
    assert len(times) == 10_001
    assert max(abs(time - i * 1e-6) for i, time in enumerate(times)) < 1e-8


def test_the_cell_counts_of_a_port_balance_even_if_the_measuring_window_starts_during_the_run(celltrain, small):
    """Regression: the line omitted the cells in flight at the start of measurement, so its numbers did not add up."""
    whole = ct.run(ct.load(small).replace(duration="100us"), seed=3)
    small.write_text(small.read_text() + '\n[measure]\nfrom = "100us"\n')
    said = celltrain("run", small, "--seed", 3).out
    assert "0.02 s simulated, seed 3, fast engine, measured from 0.0001 s to 0.02 s" in said
    [line] = [line for line in said.splitlines() if line.startswith("cells: ")]
    assert line.startswith(f"cells: {whole.cells['in_flight']:,} in flight at 0.0001 s + ")
    number = r"([0-9,]+) (?:in flight|offered|delivered|lost|discarded)"
    left, right = (sum(int(n.replace(",", "")) for n in re.findall(number, side)) for side in line.split(" = "))
    assert left == right > 0
    small.write_text(small.read_text().replace('"100us"\n', '"100us"\nto = "200us"\n'))
    [line] = [line for line in celltrain("run", small, "--seed", 3).out.splitlines() if line.startswith("cells: ")]
    assert "=" not in line and "in flight" not in line
