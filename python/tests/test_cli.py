from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer.main
from conftest import ROOT, is_refused

import celltrain as ct
from celltrain import _core, cli
from celltrain.cli import catalog, installation
from celltrain.model import shipped
from celltrain.model.measures import SERIES
from celltrain.model.scenario import Reading

RUN_FIELDS = {
    "scenario": str,
    "seed": int,
    "engine": str,
    "duration_s": float,
    "efficiency": float,
    "fairness": float,
    "goodput_mbps": float,
    "flows": list,
    "ports": list,
    "cells": dict,
    "cell_hops": int,
    "timing": dict,
    "fingerprint": str,
    "build": dict,
    "format": int,
}
BENCH_FIELDS = {
    "scenario": str,
    "engine": str,
    "duration_s": float,
    "cell_hops": int,
    "engine_seconds": float,
    "cell_hops_per_second": float,
    "peak_rss_mib": float,
}
FAULT_FIELDS = {"file", "line", "key", "value", "problem", "message"}
COMMANDS = ["run", "reproduce", "study", "report", "check", "list", "explain", "schema", "bench", "doctor"]


def test_the_run_command_prints_the_main_results(celltrain, small):
    answer = celltrain("run", small)
    assert answer.code == 0
    assert answer.err == ""
    for word in ("efficiency", "fairness", "tcp3", "largest queue", "discarded, whole frames", "cell-hops/s", "seed 1"):
        assert word in answer.out, word


def test_the_json_output_of_the_run_command_has_the_documented_fields(celltrain, small):
    answer = celltrain("run", small, "--json", "--seed", 5)
    assert answer.code == 0
    result = answer.json
    for name, kind in RUN_FIELDS.items():
        assert isinstance(result[name], kind), name
    assert result["seed"] == 5
    assert set(result["cells"]) == {"offered", "delivered", "lost", "discarded", "in_flight"}
    assert {"name", "goodput_mbps", "retransmitted_segments", "timeouts"} <= set(result["flows"][0])
    assert {"name", "max_queue_cells", "lost_cells", "discarded_cells"} <= set(result["ports"][0])
    assert set(result["build"]) == {"version", "commit", "profile"}
    assert len(result["fingerprint"]) == 16
    assert int(result["fingerprint"], 16) >= 0
    assert result == {**ct.run(small, seed=5).to_dict(), "timing": result["timing"]}


def test_the_run_command_explains_the_port_plan_without_running_the_scenario(celltrain, small):
    answer = celltrain("run", small, "--explain-plan")
    assert answer.code == 0
    assert "transparent" in answer.out
    assert "TrainPort<Counted>, Effects::FrameEnds" in answer.out
    ports = celltrain("run", small, "--explain-plan", "--json").json["ports"]
    assert all(set(port) == {"port", "code", "details", "why", "feeds"} for port in ports)
    assert {"host", "TrainPort<Counted>", "transparent"} <= {port["code"] for port in ports}
    names = {port["port"] for port in ports}
    assert any(set(port["feeds"]) & names for port in ports)


@pytest.mark.slow
def test_the_run_command_prints_file_delays_on_request(celltrain, small):
    assert "file delay" not in celltrain("run", small).out
    small.write_text(small.read_text() + '\n[measure]\nfile_size = "1kB"\n')
    delay = celltrain("run", small, "--json").json["file_delay_ms"]
    assert set(delay) == {"mean", "median", "p95", "files"}
    out = celltrain("run", small).out
    assert f"file delay  {delay['mean']:.4g} ms, mean of {delay['files']:,} files" in out
    assert "file delay, ms" in out
    small.write_text(small.read_text().replace("1kB", "10MB"))
    assert "file delay  no file transfer was completed" in celltrain("run", small).out


def test_recording_and_writing_series_does_not_change_a_run(celltrain, small, tmp_path):
    plain = celltrain("run", small, "--json").json
    out = tmp_path / "new" / "out"
    traced = celltrain("run", small, "--json", "--trace", "queue,cwnd", "--trace", "occupancy", "--out", out).json
    assert traced["fingerprint"] == plain["fingerprint"]
    assert json.loads((out / "result.json").read_text())["fingerprint"] == plain["fingerprint"]
    assert {path.name for path in out.glob("*.parquet")} == {
        f"{name}.parquet" for name in ("flows", "ports", "queue", "occupancy", "cwnd")
    }
    assert (out / "cwnd.csv").read_text().startswith('"time_s","flow","cwnd_segments","ssthresh_segments"')


@pytest.mark.slow
def test_the_run_command_writes_a_plot(celltrain, small, tmp_path):
    pytest.importorskip("matplotlib")
    answer = celltrain("run", small, "--plot", tmp_path / "run.png", "--out", tmp_path / "out", "--step", "1ms")
    assert answer.code == 0
    assert {path.name for path in (tmp_path / "out").glob("*.csv")} > {"queue.csv", "cwnd.csv"}
    assert "run.png" in answer.out


def test_the_run_command_records_the_chosen_ports(celltrain, small, tmp_path):
    arguments = ["--trace", "queue", "--port", "source1->sw1", "--out", tmp_path]
    assert celltrain("run", small, *arguments).code == 0
    assert "source1->sw1" in (tmp_path / "queue.csv").read_text()


def test_a_printed_table_of_many_flows_shows_only_the_best_and_the_worst_flows(celltrain, small):
    small.write_text(small.read_text().replace("sources = 3", "sources = 40"))
    out = celltrain("run", small).out
    assert "40 flows, of which the 12 fastest and the 12 slowest are shown" in out
    assert out.count("tcp") == 24


@pytest.mark.slow
@pytest.mark.parametrize("kind", catalog.KINDS)
def test_the_list_command_prints_every_kind_of_model(celltrain, kind):
    listed = celltrain("list", kind, "--json").json
    assert listed
    for entry in listed:
        assert set(entry) == {"name", "summary"}
        assert entry["summary"]
        assert "\n" not in entry["summary"]
    plain = celltrain("list", kind)
    assert plain.code == 0
    assert all(entry["name"] in plain.out for entry in listed)


def test_the_list_command_prints_measures_as_paths_into_the_result(celltrain, small):
    listed = celltrain("list", "measures", "--json").json
    names = [entry["name"] for entry in listed]
    assert len(names) == len(set(names)) and {"efficiency", "flows.tcp1.timeouts"} <= set(names)
    plain = celltrain("list", "measures")
    assert plain.code == 0 and all(name in plain.out for name in names)
    # Omit measures that this scenario does not have, such as those of contracts, rate control and files.
    here = [name for name in names if name.startswith(("cells.", "ports.", "flows.tcp1.")) and "file_delay" not in name]
    here = [name for name in here if not name.endswith(("completion_s", "buffer_cells"))]
    assert len(here) > 20
    buffers = ["--vary", "port.bottleneck.buffer=100,200"]
    compared = celltrain("compare", small, *buffers, "--seeds", "2", "--measures", ",".join(here), "--json")
    assert compared.code == 0, compared.err


def test_the_error_for_an_unknown_measure_refers_to_the_list_of_measures(celltrain, small):
    buffers = ["--vary", "port.bottleneck.buffer=100,200"]
    answer = celltrain("compare", small, *buffers, "--measures", "nonsense")
    assert answer.code == 2
    assert "See: celltrain list measures" in answer.err


def names_of(celltrain, kind: str) -> set[str]:
    return {entry["name"] for entry in celltrain("list", kind, "--json").json}


def test_the_list_command_and_the_python_package_have_the_same_models(celltrain):
    assert {"tail_drop", "ppd", "epd", "selective_drop", "fba", "drop_from_front"} <= names_of(celltrain, "policies")
    assert {"fifo", "strict_priority", "guaranteed_rate", "wfq"} <= names_of(celltrain, "schedulers")
    assert {"greedy", "file", "constant_rate", "on_off"} <= names_of(celltrain, "traffic")
    assert {"efci", "equal_share", "erica", "erica_plus", "max_min"} <= names_of(celltrain, "allocators")
    assert {"tail_drop", "front_drop", "adaptive_discard"} <= names_of(celltrain, "discards")
    assert {"smoltcp", "quic", "python"} == names_of(celltrain, "stacks")
    assert "af-96-1269" in names_of(celltrain, "papers")


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("entry", catalog.everything(), ids=lambda entry: entry.name)
def test_the_explain_command_explains_every_model_and_measure_and_every_term(celltrain, entry):
    name = f"{entry.kind}/{entry.name}"
    told = celltrain("explain", name, "--json")
    assert told.code == 0
    assert told.json["name"] == entry.name
    for parameter in told.json["parameters"]:
        own = {"name", "type", "unit", "default", "required", "range", "meaning"}
        assert own <= set(parameter) <= own | {"rules"}
        assert parameter["meaning"], parameter["name"]
        assert parameter["type"] not in {"", "table"}, parameter["name"]
    assert told.json["kind"] == catalog.SINGULAR[entry.kind]
    plain = celltrain("explain", name, "--page")
    assert plain.code == 0
    # Narrow columns wrap long names.
    folded = "".join(plain.out.split())
    for parameter in told.json["parameters"]:
        assert parameter["name"] in plain.out or parameter["name"] in folded


def test_the_explanation_of_a_tcp_variant_shows_the_common_settings_and_refers_to_all_settings(celltrain):
    told = celltrain("explain", "vanilla").out
    shown = [one for one in celltrain("explain", "vanilla", "--json").json["parameters"] if one["name"] in told]
    assert {"mss", "receive_window", "timer_granularity", "delayed_acks", "congestion"} <= {
        one["name"] for one in shown
    }
    assert "ssthresh_arithmetic" not in told and len(told.splitlines()) < 90
    assert "celltrain explain vanilla --page" in told


def test_the_explanation_of_a_scenario_lists_the_tcp_rules_in_force_and_their_profile(celltrain):
    lines = celltrain("explain", "lan-epd", "--page", "--set", "tcp.vanilla.windows.growth=capped").out.splitlines()
    rules = {line.split()[1]: line.split()[3:] for line in lines if " = " in line and line.startswith("# ")}
    assert rules["windows.growth"] == ['"capped"', "set"]
    assert rules["windows.unused_window"] == ['"grow"', "paper"]
    parameters = {one["name"]: one for one in celltrain("explain", "vanilla", "--json").json["parameters"]}
    assert parameters["recovery.end"]["rules"] == {
        "rfc": "hold",
        "bsd": "bsd",
        "ns2": "grow",
        "paper": "hold",
        "today": "hold",
    }
    assert (
        sum("." not in name for name, one in parameters.items() if one["type"] != "a table with the keys below") <= 12
    )


def test_a_tcp_key_that_has_moved_is_refused_with_its_new_path(celltrain, tmp_path):
    told = celltrain("run", "lan-epd", "--set", "tcp.vanilla.full_acks=flight")
    assert (told.code, told.err) == (
        2,
        "--set tcp.vanilla.full_acks=flight is now tcp.vanilla.recovery.full_acks\n",
    )
    path = tmp_path / "old.toml"
    path.write_text(
        celltrain("explain", "lan-epd").out.replace("[tcp.vanilla]", "[tcp.vanilla]\ntick_phase = 'random'")
    )
    told = celltrain("check", path)
    assert (told.code, 'tcp.vanilla.tick_phase = "random" is now tcp.vanilla.timer.tick_phase' in told.err) == (2, True)
    with pytest.raises(ct.ScenarioError, match=r"full_acks = 'flight' is now recovery\.full_acks"):
        ct.Reno(full_acks="flight")  # type: ignore[call-arg]


def test_the_explain_command_prints_the_unit_default_and_range_of_each_setting(celltrain):
    [threshold] = celltrain("explain", "epd", "--json").json["parameters"]
    assert (threshold["unit"], threshold["required"], threshold["type"]) == (
        "",
        False,
        'threshold, such as 0.8, "80%", 800 or "buffer - 200 cells"',
    )
    share, scale = celltrain("explain", "fba", "--json").json["parameters"]
    assert (share["default"], share["range"], scale["range"]) == (0.9, "", "0 or more")


def test_the_explain_command_describes_schedulers_and_traffic(celltrain):
    told = celltrain("explain", "guaranteed_rate", "--json").json
    [share] = told["parameters"]
    assert (told["kind"], share["required"], share["range"]) == ("scheduler", True, "0 to 1")
    told = celltrain("explain", "on_off", "--json").json
    assert told["kind"] == "kind of traffic"
    assert {p["name"]: p["default"] for p in told["parameters"]}["on"] == "300ms"
    assert "Golestani" in celltrain("explain", "wfq").out


def test_the_explain_command_describes_allocators_and_discard_algorithms(celltrain):
    told = celltrain("explain", "erica", "--json").json
    assert told["kind"] == "allocator"
    assert {p["name"]: p["default"] for p in told["parameters"]}["target_utilisation"] == 0.9
    told = celltrain("explain", "adaptive_discard", "--json").json
    assert told["kind"] == "discard algorithm"
    assert {p["name"]: p["unit"] for p in told["parameters"]}["low_threshold"] == "packets"
    assert "Jagannath" in celltrain("explain", "adaptive_discard").out


def test_the_explain_command_describes_the_service_classes_of_a_vc(celltrain):
    told = celltrain("explain", "abr", "--json").json
    assert told["kind"] == "service of a VC"
    assert {p["name"]: p["default"] for p in told["parameters"]}["nrm"] == 32
    assert "celltrain.Abr" in celltrain("explain", "abr").out
    assert told["page"] == (ROOT / "docs" / "abr.md").read_text()
    assert "F-GCRA" in celltrain("explain", "gfr").out
    assert names_of(celltrain, "services") == {"abr", "gfr"}


def test_the_explain_command_describes_protocol_stacks(celltrain):
    told = celltrain("explain", "smoltcp", "--json").json
    assert told["kind"] == "transport stack"
    assert {p["name"]: p["default"] for p in told["parameters"]}["congestion"] == "reno"
    assert "QUIC of quinn-proto" in celltrain("explain", "quic").out
    # The name `python` also belongs to a policy.
    assert celltrain("explain", "stacks/python", "--json").json["page"] is None


def test_the_help_text_of_the_run_command_lists_every_series_even_on_a_narrow_screen(celltrain, monkeypatch):
    """Regression: the list ended after the fourth series."""
    monkeypatch.setenv("COLUMNS", "80")
    told = celltrain("run", "--help").out
    assert all(name in told for name in SERIES)


def test_the_explain_command_explains_both_models_if_two_models_share_a_name(celltrain):
    assert celltrain("explain", "tail_drop", "--json").json["kind"] == "policy"
    assert "tail_drop as a discard algorithm (discards/tail_drop)" in celltrain("explain", "tail_drop").out
    assert celltrain("explain", "discards/tail_drop", "--json").json["kind"] == "discard algorithm"
    assert "edge device" in celltrain("explain", "discards/tail_drop").out
    assert celltrain("explain", "policies/erica").code == 2


def test_a_shipped_scenario_is_printed_exactly_as_in_its_file(celltrain):
    told = celltrain("explain", "lan-epd")
    assert told.out == (ROOT / "scenarios" / "lan-epd.toml").read_text()


@pytest.mark.parametrize("wrong, meant", [("fbq", "fba"), ("selective-drop", "selective_drop")])
def test_the_explain_command_suggests_the_most_similar_known_name_for_an_unknown_name(celltrain, wrong, meant):
    answer = celltrain("explain", wrong)
    assert answer.code == 2
    assert meant in answer.err
    assert answer.out == ""
    [fault] = celltrain("explain", wrong, "--json").json["faults"]
    assert set(fault) == FAULT_FIELDS


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("jitter_ms", {"flows.tcp1.jitter_ms"}),
        ("Throughput", {"flows.tcp1.throughput_mbps"}),
        ("delay_ms_p99", {"flows.tcp1.delay_ms_p99", "ports.bottleneck.delay_ms_p99", "queues.QUEUE.delay_ms_p99"}),
        ("queueing_delay_ms_p99", {"ports.bottleneck.delay_ms_p99", "queues.QUEUE.delay_ms_p99"}),
    ],
)
def test_the_explain_command_finds_a_measure_by_its_name_without_table_or_unit(celltrain, name, measures):
    told = celltrain("explain", name, "--json").json
    assert {row["name"] for row in told["measures"]} == measures
    assert "is a measure, in " in celltrain("explain", name).out


def test_the_explain_command_lists_all_statistics_of_a_measure(celltrain):
    told = celltrain("explain", "queueing delay", "--json").json
    assert len(told["measures"]) == 10
    assert all("queueing delay" in row["summary"] for row in told["measures"])
    assert "did you mean throughput_mbps?" in celltrain("explain", "thruput").err


@pytest.mark.parametrize("term", ["ECN", "ecn", "Explicit congestion notification"])
def test_the_explain_command_finds_a_term_in_any_letter_case_and_by_its_full_form(celltrain, term):
    assert celltrain("explain", term).out.startswith("ECN: Explicit congestion notification: a congested port marks")


def test_the_check_command_reports_that_a_scenario_is_valid(celltrain, small):
    answer = celltrain("check", small, ROOT / "scenarios" / "lan-epd.toml")
    assert answer.code == 0
    assert answer.out.count("no problems found") == 2
    answer = celltrain("check", small, "--json").json
    [network] = answer.pop("networks")
    assert answer == {"faults": [], "warnings": [], "policies": []}
    assert (network["file"], network["nodes"], network["links"]) == (str(small), 8, 7)


def test_the_check_command_reports_every_error_with_file_line_key_and_value(celltrain, small):
    text = small.read_text().replace("threshold = 60", "threshold = 101").replace("sources = 3", "sources = 0")
    small.write_text(text)
    answer = celltrain("check", small, ROOT / "scenarios" / "lan-epd.toml")
    assert answer.code == 2
    assert answer.err.splitlines()[0].startswith(f"{small}:5: topology.n_source.sources = 0 is not")
    assert "lan-epd.toml: no problems found" in answer.out
    faults = celltrain("check", small, "--json")
    assert faults.code == 2
    assert all(set(fault) == FAULT_FIELDS for fault in faults.json["faults"])
    assert faults.json["faults"][0]["line"] == 5


def test_a_warning_is_printed_on_standard_error_and_the_run_continues(celltrain, small):
    small.write_text(small.read_text().replace('"5us"', '"4.999999us"\nlink_rate = "155.520001Mbps"'))
    answer = celltrain("run", small, "--json")
    assert answer.code == 0
    assert answer.json["cell_hops"] > 0
    assert answer.err.startswith("warning: ")
    checked = celltrain("check", small, "--json")
    assert (checked.code, len(checked.json["warnings"])) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["lan-epd", "internetwork-abr-efci"])
def test_the_json_result_of_a_run_matches_its_schema(celltrain, scenario):
    jsonschema = pytest.importorskip("jsonschema")
    schema, result = celltrain("schema", "--result").json, celltrain("run", scenario, "--json").json
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(result, schema)
    assert result.keys() <= schema["properties"].keys()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**result, "efficiency": "high"}, schema)


def test_the_results_of_two_runs_with_the_same_seed_differ_only_in_wall_clock_times(celltrain):
    first, second = (celltrain("run", "lan-epd", "--json").json for _ in range(2))
    assert first.pop("timing").keys() == second.pop("timing").keys() == {"engine_seconds", "cell_hops_per_second"}
    assert first == second


def test_the_options_for_the_plan_schema_and_the_result_schema_are_mutually_exclusive(celltrain):
    answer = celltrain("schema", "--plan", "--result")
    assert (answer.code, answer.err) == (2, "--plan cannot be combined with --result; give one of them\n")


def test_the_printed_scenario_schema_is_that_of_the_simulator_core(celltrain):
    assert celltrain("schema").json == json.loads(_core.schema())


@pytest.mark.slow
def test_the_json_output_of_the_reproduce_command_has_the_documented_fields(celltrain):
    # Claims need more rows: the saved JSON outputs of test_answers.py contain claims.
    rows = ("--network", "LAN", "--row", "5,1000", "--row", "5,3000")
    answer = celltrain("reproduce", "af-96-1269", "--table", 2, *rows, "--seeds", 1, "--jobs", 2, "--json")
    assert answer.code == 0
    assert answer.err == ""
    result = answer.json
    assert {"paper", "seeds", "numbers", "claims", "summary"} <= set(result)
    assert result["paper"] == "af-96-1269"
    number = result["numbers"][0]
    promised = "table row quantity unit published mean sd low high inside scored note"
    assert set(promised.split()) <= set(number)
    assert {"network", "sources", "buffer_cells", "policy"} <= set(number["row"])
    assert all({"id", "text", "holds", "evidence"} <= set(claim) for claim in result["claims"])
    summary = result["summary"]
    assert {"scored", "inside", "share_inside", "by"} <= set(summary)
    by = "table network quantity scored inside mean_abs_error self_error rank_correlation ks"
    assert all(set(by.split()) <= set(group) for group in summary["by"])


@pytest.mark.slow
def test_the_reproduce_command_writes_files_and_prints_tables(celltrain, tmp_path):
    answer = celltrain(
        "reproduce", "af-96-1269", "--table", 1, "--network", "LAN", "--seeds", 1, "--out", tmp_path / "out", "--strict"
    )
    assert answer.code in {0, 1}, "the command may fail because of --strict"
    assert "Table 1" in answer.out
    assert (tmp_path / "out" / "reproduce.json").exists()


@pytest.mark.parametrize("arguments", [["af-96-1270"], ["af-96-1269", "--table", "77"]])
def test_the_reproduce_command_reports_unknown_tables_and_papers(celltrain, arguments):
    answer = celltrain("reproduce", *arguments)
    assert answer.code == 2
    assert arguments[-1] in answer.err
    assert "Traceback" not in answer.err
    assert celltrain("reproduce", *arguments, "--json").json["faults"]


@pytest.mark.slow
def test_the_json_output_of_the_bench_command_has_exactly_the_documented_fields(celltrain, monkeypatch):
    if _core.build()["profile"] != "release":
        pytest.skip("a debug build is not measured")
    monkeypatch.setattr(installation, "QUICK", ("idle",))
    answer = celltrain("bench", "--quick", "--json")
    assert answer.code == 0
    assert [(row["scenario"], row["engine"]) for row in answer.json] == [
        (case["scenario"], engine) for case in installation.cases(quick=True) for engine in ("reference", "fast")
    ]
    for row in answer.json:
        fields = {**BENCH_FIELDS, "ratio_to_reference": float} if row["engine"] == "fast" else BENCH_FIELDS
        assert {name: type(value) for name, value in row.items()} == fields
        assert row["cell_hops"] > 0
        assert 0 < row["peak_rss_mib"] < 4096
    # On the reference engine this scenario takes seconds.
    fast = json.loads(_core.measure("n-source-lan-5-infinite", "fast", 1))
    assert fast["duration_s"] == 10
    assert fast["cell_hops"] == pytest.approx(12.8e6, rel=0.02)


@pytest.mark.slow
def test_the_bench_command_measures_the_scenarios_listed_in_its_output():
    every = {case["scenario"]: case for case in installation.cases()}
    for network in ("lan", "wan"):
        for sources in (5, 15, 100, 1000):
            case = every[f"n-source-{network}-{sources}-infinite"]
            scenario = Reading.of_core(_core.parse(case["toml"], case["scenario"])).scenario
            assert scenario["topology"]["n_source"]["sources"] == sources
            assert scenario["duration"] == f"{case['duration_s']:g}s"
            assert case["title"].endswith(f"{case['duration_s']:g} s")
    assert {"chain", "idle", "n-source-lan-15-fba-1000"} < set(every)
    quick = installation.cases(quick=True)
    assert [case["scenario"] for case in quick] == list(installation.QUICK)
    assert all(case == every[case["scenario"]] for case in quick)


def test_the_bench_command_refuses_to_measure_a_debug_build(celltrain, monkeypatch):
    monkeypatch.setattr(_core, "build", lambda: {"version": "0", "profile": "debug"})
    answer = celltrain("bench")
    assert answer.code == 2
    assert "debug" in answer.err
    assert celltrain("bench", "--json").json["faults"]


def test_the_doctor_command_accepts_a_complete_installation(celltrain):
    answer = celltrain("doctor", "--json")
    found = {finding["name"]: finding for finding in answer.json["findings"]}
    assert found["self test"]["fine"], found["self test"]
    assert "af-96-1269" in found["papers"]["value"]
    assert found["cores"]["value"] >= 1
    assert {"name", "value", "fine", "advice"} == set(found["build"])
    assert answer.json["fine"] == all(finding["fine"] for finding in found.values())
    assert answer.code == (0 if answer.json["fine"] else 1)


def test_the_doctor_command_reports_if_a_test_run_does_not_have_the_recorded_fingerprint(celltrain, monkeypatch):
    monkeypatch.setattr("celltrain.cli.installation.SELF_TEST_FINGERPRINT", "0" * 16)
    answer = celltrain("doctor")
    assert answer.code == 1
    assert "WRONG" in answer.out
    assert "please report it" in answer.out


def test_the_printed_version_is_that_of_the_compiled_simulator_core(celltrain):
    assert celltrain("--version").out == f"celltrain {ct.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_at_least_three_examples_and_a_json_option(celltrain, command):
    answer = celltrain(command, "--help")
    assert answer.code == 0
    examples = answer.out.partition("Examples:")[2].split()
    assert examples.count("celltrain") >= 3
    assert "--json" in answer.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["run"],
        ["run", "x.toml", "--sed", "1"],
        ["run", "x.toml", "--seed", "-1"],
        ["run", "x.toml", "--seed", "many"],
        ["list", "things"],
        ["reproduce", "af-96-1269", "--seeds", "0"],
        ["reproduce", "af-96-1269", "--jobs", "0"],
    ],
)
def test_an_invalid_command_line_gives_exit_code_2(celltrain, arguments):
    answer = celltrain(*arguments)
    assert answer.code == 2
    assert "Traceback" not in answer.err


def test_an_internal_error_gives_exit_code_3_and_asks_the_user_to_report_it(celltrain, small, monkeypatch):
    def broken(*_):
        raise RuntimeError("the impossible happened")

    monkeypatch.setattr(_core, "parse", broken)
    answer = celltrain("run", small)
    assert answer.code == 3
    assert "the impossible happened" in answer.err
    assert "report" in answer.err
    assert "Traceback" not in answer.err
    monkeypatch.setenv("CELLTRAIN_DEBUG", "1")
    assert "Traceback" in celltrain("run", small).err


@pytest.mark.slow
def test_python_m_celltrain_writes_only_the_output_of_the_command_to_a_pipe(small):
    done = subprocess.run([sys.executable, "-m", "celltrain", "run", small, "--json"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["scenario"] == "small"


@pytest.mark.slow
def test_a_command_exits_silently_if_the_process_that_reads_its_output_exits_first(small):
    command = f'"{sys.executable}" -m celltrain schema | head -n 1'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode in {0, 1, 141}


def test_every_command_is_registered_with_a_module_that_exists():
    for command in cli.COMMANDS:
        group = typer.main.get_command(cli.program([command]))
        assert list(group.commands) == [command]
    whole = typer.main.get_command(cli.program())
    assert set(whole.commands) == set(cli.COMMANDS)
    outline = typer.main.get_command(cli.outline())
    assert [(one.name, one.help) for one in outline.commands.values()] == [
        (one.name, one.help) for one in whole.commands.values()
    ]


@pytest.mark.slow
def test_printing_help_imports_no_command_module_and_a_command_after_two_dashes_is_imported():
    code = "import sys; from celltrain.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"

    def done(*arguments: str) -> tuple[str, set[str]]:
        ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        return ended.stdout, {*ended.stderr.split()}

    out, modules = done("--help")
    assert "Simulate a scenario" in out
    assert not modules & {"celltrain.cli.shell", "celltrain.cli.run", "celltrain._core"}
    out, modules = done("--", "list", "papers")
    assert "af-96-1269" in out
    assert "celltrain.cli.explain" in modules


@pytest.mark.slow
def test_the_run_command_imports_no_model_classes_and_no_modules_of_other_commands(small):
    code = "import sys; from celltrain.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, "run", small, "--json"], capture_output=True, text=True)
    modules = set(done.stderr.split())
    assert "celltrain.cli.run" in modules
    heavy = {"matplotlib", "numpy", "pyarrow", "pydantic", "rich.table"}
    assert not modules & {"celltrain.model.types", "celltrain.cli.sweep", *heavy}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "columns"),
    [
        ("run lan-epd --set duration=50ms", ["name", "goodput_mbps"]),
        ("compare lan-epd lan-tail-drop --vary duration=50ms --seeds 2", ["name", "measure", "mean"]),
        ("why lan-epd --set duration=1s", ["flow", "from_s", "lost_segments"]),
        ("reproduce af-96-1269 --table 1 --network LAN --seeds 1", ["table", "sources", "published", "mean"]),
        ("check lan-epd", []),
        ("list policies", ["name", "summary"]),
        ("list measures", ["name", "unit", "summary"]),
        ("list", ["kind", "count"]),
        ("run lan-epd --explain-plan", ["port", "code", "why"]),
    ],
)
def test_the_csv_output_of_a_command_has_the_same_rows_as_its_json_output(
    celltrain, command, columns, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    printed = celltrain(*command.split(), "--csv", "-")
    assert printed.code == 0
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert {*columns} <= {*(rows[0] if rows else ())}
    assert celltrain(*command.split(), "--csv", "rows.csv", "--json").code == 0
    assert Path("rows.csv").read_text() == printed.out


def test_csv_on_standard_output_cannot_be_combined_with_other_output_formats(celltrain):
    answer = celltrain("list", "policies", "--csv", "-", "--json")
    assert answer.code == 2
    assert "cannot be combined with --json" in answer.out


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["list", "policies"], ["list", "policies", "--json"]])
def test_a_command_that_writes_to_a_full_disk_prints_a_one_sentence_error(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "celltrain", *arguments], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"standard output: cannot be written (No space left on device)\n"


@pytest.mark.parametrize("file", ["missing/rows.csv", "."])
def test_a_csv_file_that_cannot_be_written_is_refused_before_the_run(celltrain, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("celltrain.running.results.run", lambda *_, **__: pytest.fail("it runs"))
    answer = celltrain("run", "lan-epd", "--csv", file)
    assert answer.code == 2
    assert "cannot be written" in answer.err


def test_writing_csv_to_a_named_pipe_is_refused(celltrain, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    answer = celltrain("list", "policies", "--csv", str(tmp_path / "pipe.csv"))
    assert answer.code == 2
    assert "is not a regular file" in answer.err


def test_csv_output_is_refused_for_a_dry_run(celltrain):
    for command, plan in (("sweep", "selective-drop-rz"), ("tune", "tune-selective-drop")):
        answer = celltrain(command, plan, "--dry-run", "--csv", "-")
        assert answer.code == 2
        assert "leave out --dry-run" in answer.err


def test_the_explain_command_explains_every_term_of_the_glossary(celltrain):
    terms = shipped.glossary()
    assert len(terms) > 50
    for term in ("tail drop", "95 % interval", "K"):
        answer = celltrain("explain", term)
        assert answer.code == 0 and answer.out.startswith(f"{term}: {terms[term]}\n"), answer
    assert celltrain("explain", "Selective Drop").out.endswith("The model: celltrain explain selective_drop\n")
    assert celltrain("explain", "MSS", "--json").json == {"kind": "terms", "name": "MSS", "meaning": terms["MSS"]}


def test_for_a_name_with_swapped_words_the_explain_command_suggests_the_right_memory_policy(celltrain):
    is_refused(celltrain("explain", "python_memory"), ["did you mean memory_python?"])
    assert celltrain("explain", "memory_python").code == 0
    assert "celltrain list memory_policies" in celltrain("list", "policies").out


def test_a_measure_of_file_transfers_needs_files_and_the_error_names_the_missing_setting(celltrain, small):
    """Regression: the message was about a number or a text without p95."""
    refused = celltrain("compare", small, "--seeds", 1, "--measures", "file_delay_ms.p95")
    is_refused(refused, ["'file_delay_ms.p95' has no value, because this scenario has no files", "measure.file_size"])
    setting = ["--set", "measure.file_size=10kB"]
    assert celltrain("compare", small, "--seeds", 1, "--measures", "file_delay_ms.p95", *setting).code == 0


def test_without_a_terminal_a_long_comparison_writes_progress_lines_with_the_remaining_time(
    celltrain, small, monkeypatch, capsys
):
    from celltrain.cli import shell

    done = celltrain("compare", small, "--seeds", 2)
    assert done.code == 0 and "left" not in done.err
    monkeypatch.setattr(shell, "LINE_SECONDS", 0.05)
    with shell.waiting("comparing", by_line=True) as tell:
        time.sleep(0.15)
        tell(0.5)
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("comparing: 0% after")
    assert re.fullmatch(r"comparing: 50% after 1 s, about 1 s left", lines[-1])
    with shell.waiting("looking") as tell:
        assert tell is None
