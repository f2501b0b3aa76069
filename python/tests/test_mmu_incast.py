"""`celltrain mmu incast` and `celltrain import sonic --scenario`: from SONiC's files to a run of many senders to one port."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest
from conftest import Command, is_refused
from test_mmu_inputs import LOOKUP, POOLS, config_db, write

import celltrain as ct
from celltrain.mmu import incast
from celltrain.mmu.configuration import load
from celltrain.mmu.network import Question, written

WRED = {
    "ecn": "ecn_all",
    "green_min_threshold": "25000",
    "green_max_threshold": "209715",
    "green_drop_probability": "5",
}


def configured(tmp_path: Path, **changes: dict) -> Path:
    """Writes a folder of a Tomahawk 5 with eight ports, and pools that are small enough to fill."""
    table = config_db(ports=8)
    table["BUFFER_POOL"]["ingress_lossless_pool"].update(size="12000000", xoff="3000000")
    # The egress side must also have room for the cells in headroom.
    table["BUFFER_POOL"]["egress_lossless_pool"]["size"] = "15000000"
    folder = write(tmp_path / "switch", {**table, **changes})
    (folder / "pg_profile_lookup.ini").write_text(LOOKUP)
    return folder


def marked(profile: dict) -> dict[str, dict]:
    """Returns SONiC tables that assign this WRED profile to queue 0 of each port."""
    queues = {f"Ethernet{8 * port}|0-2": {"wred_profile": "AZURE", "scheduler": "scheduler.0"} for port in range(8)}
    return {"WRED_PROFILE": {"AZURE": profile}, "QUEUE": queues}


def test_two_commands_compute_an_incast_from_sonic_files_and_write_a_scenario_with_the_same_outcome(
    tmp_path: Path, celltrain: Command
) -> None:
    folder, switch, kept = configured(tmp_path), tmp_path / "switch.toml", tmp_path / "incast.toml"
    assert celltrain("import", "sonic", folder, "--out", switch).code == 0
    told = celltrain("mmu", "incast", switch, "--senders", 7, "--bytes", "64kB", "--out", kept)
    assert told.code == 0
    for words in ("7 x 64,000 bytes to Ethernet0", "neither dropped nor paused", "median", "packets of 1500 B"):
        assert words in told.out
    answer = celltrain("mmu", "incast", folder, "--senders", 7, "--bytes", "64kB", "--json").json
    assert answer["fingerprint"] == ct.run(kept).fingerprint
    assert answer["completed_senders"] == len(answer["senders"]) == 7
    assert answer["completion_ms"]["last"] >= answer["link_ms"]


@pytest.mark.parametrize(
    ("lossless", "size", "outcome"),
    [(False, "64kB", "neither"), (False, "1MB", "dropped"), (True, "64kB", "neither"), (True, "1MB", "paused")],
)
def test_an_incast_is_dropped_or_paused_exactly_at_the_computed_threshold(
    tmp_path: Path, lossless: bool, size: str, outcome: str
) -> None:
    found = incast(configured(tmp_path), senders=7, bytes=size, lossless=lossless, window=1000)
    assert found.outcome == outcome
    assert (found.first is None) == (outcome == "neither")
    if found.first is not None:
        # The packets that are arriving may exceed the threshold by all cells but one, and lower it by as many. A group
        # pauses when its next cell, which lowers the threshold, would find no room.
        beyond = 0 if lossless else 2 * 7 * (found.cells_per_packet - 1)
        assert -1 <= found.first.cells - found.first.threshold_cells <= beyond
        assert lossless or found.peaks[0].cells >= found.peaks[0].threshold_cells
    assert (found.dropped_packets > 0) == (outcome == "dropped")
    assert found.drops["refused_by_memory"] == found.dropped_cells == found.cells_per_packet * found.dropped_packets
    assert (found.pauses > 0) == (outcome == "paused")


@pytest.mark.parametrize("lossless", [False, True])
def test_every_number_in_a_generated_incast_scenario_has_a_comment_naming_its_source_key(
    tmp_path: Path, lossless: bool
) -> None:
    loaded = load(configured(tmp_path, **marked(WRED)))
    text = written(loaded, loaded.generation(), Question(senders=7, is_lossless=lossless)).text
    keys = ("reserve", "headroom", "xon_offset", "alpha", "threshold", "k_min", "k_max", "p_max")
    lines = [line for line in text.splitlines() if line.split(" =")[0] in keys]
    assert len(lines) >= 5
    assert all("#" in line and ("BUFFER_" in line or "WRED_" in line or "pg_profile" in line) for line in lines)
    assert ("800000_5m.xoff: 724,662 bytes" in text) == lossless
    assert text.count("PORT.Ethernet") == 8


@pytest.mark.parametrize(
    ("profile", "tcp", "drops"),
    [
        (WRED, "newreno with dctcp", 0),
        ({**WRED, "ecn": "ecn_none", "wred_green_enable": "true"}, "newreno", 1),
        ({**WRED, "ecn": "ecn_none", "wred_green_enable": "false"}, "newreno", 0),
    ],
    ids=["marks", "early drops", "neither"],
)
def test_wred_profiles_of_an_imported_switch_mark_or_drop_early_as_configured(
    tmp_path: Path, profile: dict, tcp: str, drops: int
) -> None:
    folder = configured(tmp_path, **marked(profile))
    found = incast(folder, senders=7, bytes="64kB")
    assert found.tcp == tcp
    assert bool(found.dropped_cells) == bool(drops)
    if drops:
        assert found.first is not None
        assert found.first.threshold_cells is None
        assert found.first.cells >= 25_000 // 254
    assert ("k_min" in found.scenario) == ("wred" in load(folder).switch.to_toml())


def test_importing_a_switch_configuration_folder_gives_a_scenario_with_a_host_at_each_port(
    tmp_path: Path, celltrain: Command
) -> None:
    path = tmp_path / "all.toml"
    told = celltrain("import", "sonic", configured(tmp_path), "--scenario", "--lossless", "--out", path)
    assert "8 ports, 7 senders to Ethernet0" in told.out
    network = ct.load(path).to_dict()["topology"]["network"]
    assert len(network["hosts"]) == 8
    assert celltrain("check", path).code == 0
    answer = celltrain("import", "sonic", tmp_path / "switch", "--scenario", "--json").json
    assert answer["scenario"]["framing"] == "packets"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--senders", 8], ["--senders = 8", "8 of its ports", "at most 7"]),
        (["--port", "Ethernet9"], ["--port = Ethernet9", "did you mean"]),
        (["--priority", 7], ["--priority = 7", "not a lossy priority", "0, 1, 2"]),
        (["--lossless", "--priority", 0], ["not a lossless priority", "3, 4"]),
        (["--bytes", "64"], ["--bytes = 64", "512B"]),
        (["--bytes", "0B"], ["--bytes = 0 B", "from 1"]),
        (["--mtu", "64B"], ["--mtu = 64 B", "128"]),
        (["--window", 0], ["--window"]),
    ],
)
def test_incast_options_that_the_switch_configuration_does_not_support_are_refused(
    tmp_path: Path, celltrain: Command, options: list, words: list[str]
) -> None:
    is_refused(celltrain("mmu", "incast", configured(tmp_path), *options), words)


def test_switch_files_without_lossless_groups_speeds_or_valid_wred_are_refused_with_the_error_location(
    tmp_path: Path, celltrain: Command
) -> None:
    folder = configured(tmp_path)
    table = json.loads((folder / "config_db.json").read_text())
    write(folder, {**table, "PORT_QOS_MAP": {name: {"pfc_enable": ""} for name in table["PORT"]}})
    is_refused(
        celltrain("mmu", "incast", folder, "--lossless"), ["no lossless priority", "pause no group", "pfc_enable"]
    )
    write(folder, {**table, "QUEUE": {"Ethernet0|3": {"wred_profile": "NONE"}}})
    is_refused(celltrain("mmu", "incast", folder), ["wred_profile = NONE", "not an entry of WRED_PROFILE"])
    write(folder, {**table, **marked({**WRED, "green_min_threshold": "many"})})
    is_refused(celltrain("mmu", "incast", folder), ["green_min_threshold = many", "whole number"])
    write(folder, {**table, **marked({**WRED, "green_min_threshold": "300000"})})
    is_refused(celltrain("mmu", "incast", folder), ["green_min_threshold = 300000", "above maximum, 209715"])
    switch = tmp_path / "switch.toml"
    switch.write_text(load(configured(tmp_path)).switch.to_toml().replace("speed = 800000", ""))
    is_refused(celltrain("mmu", "incast", switch), ["speed", "is missing"])
    is_refused(celltrain("import", "sonic", folder, "--lossless"), ["--lossless", "--scenario"])


OF_TYPE = ("--generation", "th5", "--cable", "5m")


def device(tmp_path: Path, *, ports: int = 33) -> Path:
    """Writes the files of a type of switch, with the buffer template rendered."""
    folder = tmp_path / "device"
    folder.mkdir()
    (folder / "buffers_defaults_ft2.j2").write_text(json.dumps(POOLS, indent=4)[1:-2] + ",\n")
    (folder / "pg_profile_lookup.ini").write_text(LOOKUP)
    rows = "".join(f"Ethernet{8 * number} {number} etp{number} {number} 800000\n" for number in range(ports))
    (folder / "port_config.ini").write_text(f"# name lanes alias index speed\n{rows}")
    return folder


@pytest.mark.parametrize("profile", ["egress_lossy_profile", "ingress_lossy_profile", "egress_lossless_profile"])
def test_a_misspelt_default_profile_is_refused_with_its_line_and_the_correct_name(
    tmp_path: Path, celltrain: Command, profile: str
) -> None:
    folder = device(tmp_path)
    file = folder / "buffers_defaults_ft2.j2"
    lines = file.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if f'"{profile}"' in text)
    file.write_text(file.read_text().replace(f'"{profile}"', f'"{profile[:-1]}"'))
    words = [f"{file}:{line}: BUFFER_PROFILE.{profile[:-1]}", "no group or queue uses", f"did you mean {profile}"]
    is_refused(celltrain("import", "sonic", folder, *OF_TYPE), words)
    is_refused(celltrain("mmu", "incast", folder, *OF_TYPE), words)
    is_refused(celltrain("mmu", "thresholds", folder, *OF_TYPE), words)


def test_without_a_default_profile_import_and_incast_warn_about_queues_that_have_no_drop_threshold(
    tmp_path: Path, celltrain: Command
) -> None:
    folder = device(tmp_path)
    file, switch = folder / "buffers_defaults_ft2.j2", tmp_path / "switch.toml"
    file.write_text(file.read_text().replace('"egress_lossy_profile"', '"scavenger"'))
    told = celltrain("import", "sonic", folder, *OF_TYPE, "--out", switch)
    assert told.code == 0
    for words in (f"{file}:", "has no egress_lossy_profile", "queues 0-2 and 5-6", "nothing uses scavenger"):
        assert words in told.err
    answer = celltrain("mmu", "incast", switch)
    assert "gives Ethernet0 no queue 0: in the run, the egress side refuses no lossy packet" in answer.err


def test_the_initial_window_of_an_incast_that_sends_all_data_immediately_may_exceed_1000_segments(
    tmp_path: Path,
) -> None:
    folder = configured(tmp_path)
    size = 2_300_000
    found = incast(folder, senders=7, bytes=size, lossless=True)
    segments = -(-size // 1460)
    assert (found.question.first_window, found.data_packets) == (segments, 7 * segments)
    assert f"initial_window = {segments}" in found.scenario
    assert found.outcome == "paused"


def test_the_generated_incast_scenario_ends_with_the_last_file_and_cites_the_command_that_evaluates_it(
    tmp_path: Path, celltrain: Command
) -> None:
    folder, kept = configured(tmp_path), tmp_path / "incast.toml"
    options = ("--senders", 7, "--bytes", "64kB", "--lossless", "--priority", 4)
    told = celltrain("mmu", "incast", folder, *options, "--out", kept)
    first = kept.read_text().splitlines()[0]
    command = shlex.split(first.removeprefix("# The verdict: celltrain "))
    again = celltrain(*command)
    assert [line for line in told.out.splitlines() if "wrote" not in line] == again.out.splitlines()
    result = ct.run(kept)
    longest = max(flow["completion_s"] for flow in result.to_dict()["flows"])
    assert longest <= result.duration_s < 1.05 * longest
    assert result.efficiency > 0.85
    text = celltrain("run", kept).out
    assert "completed after, us" in text
    assert " us simulated" in text
    assert f"{1e6 * longest:.4g}" in text
    is_refused(celltrain("mmu", "incast", kept), ["is a scenario", f"celltrain run {kept}"])


def test_the_error_for_an_incomplete_switch_configuration_folder_names_the_missing_file(
    tmp_path: Path, celltrain: Command
) -> None:
    folder = device(tmp_path)
    (folder / "pg_profile_lookup.ini").unlink()
    told = celltrain("mmu", "incast", folder, *OF_TYPE)
    assert told.code == 0
    assert "device/pg_profile_lookup.ini is missing: no lossless groups for Ethernet0 and 32 more" in told.err
    lossless = celltrain("mmu", "incast", folder, *OF_TYPE, "--lossless")
    assert lossless.code == 2
    assert "pg_profile_lookup.ini is missing or has no rows" in lossless.err
    (folder / "port_config.ini").unlink()
    for command in (("import", "sonic"), ("mmu", "incast")):
        is_refused(celltrain(*command, folder, *OF_TYPE), ["has no ports: add port_config.ini"])


def test_missing_mmu_options_are_reported_together_and_invalid_cable_lengths_are_refused(
    tmp_path: Path, celltrain: Command
) -> None:
    folder = device(tmp_path)
    is_refused(celltrain("mmu", "incast", folder), ["--cable LENGTH", "--generation NAME"])
    is_refused(celltrain("mmu", "thresholds", folder), ["--cable LENGTH", "--generation NAME"])
    is_refused(celltrain("import", "sonic", folder, "--cable", "5"), ["--cable = 5 is not a length", "write 5m"])
    told = celltrain("mmu", "incast", folder, "--generation", "th5", "--cable", "300m", "--lossless")
    assert told.code == 2
    assert "no row for 800000_300m (its cables at 800000 Mb/s: 5m)" in told.err
    assert "has rows for 400000_5m, 800000_5m" in told.err


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("64000", "did you mean 64000B?"),
        ("64KB", "did you mean 64kB?"),
        ("64k", "did you mean 64kB?"),
        ("2mb", "did you mean 2MB?"),
        ("64KiB", "write 65536B"),
        ("1.5MiB", "write 1572864B"),
        ("0.001GB", "write 1000000B"),
    ],
)
def test_an_incast_size_in_an_invalid_format_is_refused_with_an_example_of_the_correct_format(
    tmp_path: Path, celltrain: Command, size: str, words: str
) -> None:
    is_refused(celltrain("mmu", "incast", configured(tmp_path), "--bytes", size), [f"--bytes = {size}", words])


def test_the_incast_result_gives_the_data_in_bytes_packets_and_cells_and_its_transmission_time(
    tmp_path: Path, celltrain: Command
) -> None:
    folder = configured(tmp_path)
    options = ("mmu", "incast", folder, "--senders", 7, "--bytes", "64kB", "--lossless")
    answer = celltrain(*options, "--json").json
    # 64,000 bytes are 44 segments of 1460; each packet takes six cells of 254 bytes.
    assert answer["data"] == {"cells": 7 * 44 * 6, "bytes": 7 * 44 * 6 * 254, "packets": 7 * 44}
    assert answer["sent"] == answer["data"]
    assert answer["link_ms"] == pytest.approx(7 * 44 * 6 * 254 * 8 / 800e6)
    assert answer["completion_ms"]["last"] > answer["link_ms"]
    for peak in answer["largest"]:
        for name in ("", "threshold_"):
            cells = peak[f"{name}cells"]
            assert cells is None or peak[f"{name}bytes"] == 254 * cells
            assert cells is None or peak[f"{name}packets"] == cells // 6
    text = celltrain(*options).out
    assert re.search(r"data of all senders\s+1,848\s+469,392\s+308\n", text)
    for words in ("completed, with the last acknowledgement: first after", "for 308 packets of 6 cells"):
        assert words in text


def test_the_csv_row_of_an_incast_has_the_same_columns_for_every_outcome(tmp_path: Path, celltrain: Command) -> None:
    folder, found = configured(tmp_path), {}
    for outcome, options in {
        "neither": ("--bytes", "64kB"),
        "dropped": ("--bytes", "1MB", "--window", 1000),
        "paused": ("--bytes", "1MB", "--lossless"),
    }.items():
        text = celltrain("mmu", "incast", folder, "--senders", 7, *options, "--csv", "-").out
        assert not set(text) & set("{}[]'")
        (row,) = csv.DictReader(text.splitlines())
        found[outcome] = row
        assert row["outcome"] == outcome
        assert (row["first.event"] or "neither") == outcome
        assert int(row["largest_queue.bytes"]) == 254 * int(row["largest_queue.cells"])
    assert len({tuple(row) for row in found.values()}) == 1


def test_a_lossy_incast_result_states_the_initial_window_and_suggests_sending_all_data_in_it(
    tmp_path: Path, celltrain: Command
) -> None:
    folder = configured(tmp_path)
    text = celltrain("mmu", "incast", folder, "--senders", 7).out
    assert "initial window: 10 segments of 44; --window 44 sends all at once, as --lossless does" in text
    for options in (["--window", 44], ["--lossless"]):
        text = celltrain("mmu", "incast", folder, "--senders", 7, *options).out
        assert "initial window: 44 segments, all data at once" in text
