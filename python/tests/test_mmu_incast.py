"""`celltrain mmu incast` and `celltrain import sonic --scenario`: from SONiC's files to a run of many senders to one port."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Command, is_refused
from test_mmu_inputs import LOOKUP, config_db, write

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
    """Returns the tables of SONiC that give queue 0 of each port this profile of WRED."""
    queues = {f"Ethernet{8 * port}|0-2": {"wred_profile": "AZURE", "scheduler": "scheduler.0"} for port in range(8)}
    return {"WRED_PROFILE": {"AZURE": profile}, "QUEUE": queues}


def test_two_commands_lead_from_sonic_files_to_the_answer_and_a_scenario_with_the_same_run(
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
    assert answer["completed"] == len(answer["senders"]) == 7
    assert answer["completion_ms"]["last"] >= answer["link_ms"]


@pytest.mark.parametrize(
    ("lossless", "size", "outcome"),
    [(False, "64kB", "neither"), (False, "1MB", "dropped"), (True, "64kB", "neither"), (True, "1MB", "paused")],
)
def test_an_incast_is_dropped_or_paused_at_the_cell_that_the_thresholds_give(
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
def test_every_number_of_a_generated_scenario_names_the_key_that_it_comes_from(tmp_path: Path, lossless: bool) -> None:
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
def test_wred_profiles_mark_or_drop_early_as_the_configuration_says(
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


def test_a_folder_becomes_a_scenario_with_a_host_at_each_port(tmp_path: Path, celltrain: Command) -> None:
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
def test_a_question_about_an_incast_that_a_switch_cannot_answer_is_refused(
    tmp_path: Path, celltrain: Command, options: list, words: list[str]
) -> None:
    is_refused(celltrain("mmu", "incast", configured(tmp_path), *options), words)


def test_a_switch_without_lossless_groups_speeds_or_valid_wred_is_refused_with_the_place(
    tmp_path: Path, celltrain: Command
) -> None:
    folder = configured(tmp_path)
    table = json.loads((folder / "config_db.json").read_text())
    write(folder, {**table, "PORT_QOS_MAP": {name: {"pfc_enable": ""} for name in table["PORT"]}})
    is_refused(celltrain("mmu", "incast", folder, "--lossless"), ["no lossless priority", "xoff"])
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
