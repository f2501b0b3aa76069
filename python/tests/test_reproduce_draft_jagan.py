"""draft-jagan-e2e-traf-mgmt-00: its tables, the settings of each row, and its claims checked on its printed numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from reproductions import filled

from celltrain import _core
from celltrain.model.scenario import Reading
from celltrain.papers import claims, figures, load
from celltrain.papers.claims import FORMS
from celltrain.papers.paper import Number, Paper, matches
from celltrain.papers.score import Scored

DRAFT_JAGAN = "draft-jagan"
ROOT = Path(__file__).parents[2]

# Marks tests that need edge devices; the tests run if edge devices are available.
needs_edge_devices = pytest.mark.skipif(
    any(f'"{word}"' not in _core.schema() for word in ("internetwork", "edge", "abr", "allocator", "measure")),
    reason="scenarios do not support edge devices yet",
)


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load(DRAFT_JAGAN)


def scenario(paper: Paper, table: str, **keys: Any) -> dict[str, Any]:
    [configuration] = {n.configuration for n in found(paper, table, **keys)}
    return paper.configurations[configuration].scenario


def found(paper: Paper, table: str, **keys: Any) -> list[Number]:
    return [n for n in paper.table(table).numbers if matches({**n.keys, "quantity": n.quantity.name}, keys)]


def test_every_number_printed_in_draft_jagan_is_recorded_and_scored(paper: Paper) -> None:
    counts = {table.number: len(table.numbers) for table in paper.tables if not table.experiment}
    assert counts == {"1": 8, "2": 6, "3": 4, "4": 4, "5": 4, "6": 6, "7": 6}
    printed = [n for table in paper.tables if not table.experiment for n in table.numbers]
    assert len(printed) == 2 * 19
    assert all(n.scored and n.judged_by == "mean" for n in printed)
    for number in printed:
        share = {"goodput_mbps": 0.25, "delay_ms": 0.35}[number.quantity.name]
        assert number.tolerance == pytest.approx(share * (number.published or 0))


def test_the_keys_of_each_row_of_draft_jagan_are_its_column_headings(paper: Paper) -> None:
    for table in [t for t in paper.tables if not t.experiment]:
        lines = list(csv.DictReader((ROOT / f"papers/{DRAFT_JAGAN}/published/table{table.number}.csv").open()))
        rows = {tuple(map(str, n.row.values())) for n in table.numbers}
        assert rows == {tuple(line[key] for key in table.keys) for line in lines}
        assert table.keys == ("edge_buffer_cells", "switch_buffer_cells", "mss_bytes", "tcp", "service")


def test_rows_of_draft_jagan_with_the_same_scenario_share_one_run(paper: Paper) -> None:
    tables = [t for t in paper.tables if not t.experiment]
    assert len({n.configuration for t in tables for n in t.numbers}) == 19
    losses = {n.configuration for t in paper.tables if t.number.startswith("losses-") for n in t.numbers}
    assert losses == {n.configuration for t in tables for n in t.numbers}, "the places of losses need no separate runs"
    # The terms are: the tables; the tables with data in both directions; the settings of f and LT except the two in
    # the tables; four services for 5 s and for 10 s; two scenarios without loss; two that last 60 s; and ERICA with
    # the nine settings of ER, for both networks.
    assert len(paper.configurations) == 19 + 19 + (32 - 2) + 2 * 4 + 2 + 2 + 9 * 2


@pytest.mark.parametrize(
    ("table", "service", "port", "edge"),
    [
        ("1", "ubr", {"policy": {"tail_drop": {}}}, {"tail_drop": {}}),
        ("1", "ubr+epd", {"policy": {"epd": {"threshold": 700}}}, {"tail_drop": {}}),
        ("1", "abr-efci", {"policy": {"tail_drop": {}}, "allocator": {"efci": {"threshold": 250}}}, {"tail_drop": {}}),
        ("1", "abr-er", {"policy": {"tail_drop": {}}, "allocator": {"equal_share": {"ert": "1ms"}}}, {"tail_drop": {}}),
        ("6", "abr-er+front-drop", {"allocator": {"equal_share": {"ert": "1ms"}}}, {"front_drop": {}}),
        ("7", "abr-er+ada", {}, {"adaptive_discard": {"reduction_factor": 0.5, "low_threshold": 6}}),
    ],
)
def test_the_service_in_a_row_of_draft_jagan_determines_the_switch_and_edge_device_settings(
    paper: Paper, table: str, service: str, port: dict[str, Any], edge: dict[str, Any]
) -> None:
    found = scenario(paper, table, service=service)
    [bottleneck] = found["port"].values()
    assert {key: bottleneck[key] for key in port} == port
    assert ("allocator" in bottleneck) == service.startswith("abr")
    assert found["edge"]["*"]["discard"] == edge
    assert ("vc" in found) == service.startswith("abr")


def test_sizes_in_draft_jagan_are_in_packets_and_the_table_determines_the_tcp_variant(paper: Paper) -> None:
    assert scenario(paper, "1", service="ubr")["tcp"]["newreno"]["mss"] == "9140B"
    assert scenario(paper, "2", service="ubr")["tcp"]["vanilla"]["mss"] == "9140B"
    assert scenario(paper, "6", service="abr-er")["tcp"]["newreno"]["mss"] == "1460B"
    for n in (n for table in paper.tables for n in table.numbers):
        [tcp] = paper.configurations[n.configuration].scenario["tcp"].values()
        assert {"receive_window": "655360B", "timer_granularity": "100ms"}.items() <= tcp.items()
        assert {"maximum_rto": "500ms", "initial_rto": "100ms"}.items() <= tcp["timer"].items()
        ran = paper.configurations[n.configuration].scenario
        assert ran["edge"]["*"]["buffer"] == n.keys["edge_buffer_cells"]
        assert [port["buffer"] for port in ran["port"].values()] == [n.keys["switch_buffer_cells"]]


def test_tables_of_draft_jagan_with_bidirectional_data_use_a_separate_network(paper: Paper) -> None:
    both = scenario(paper, "both-ways-1", service="abr-er")
    one = scenario(paper, "1", service="abr-er")
    assert (one["topology"]["internetwork"]["bidirectional"], both["topology"]["internetwork"]["bidirectional"]) == (
        False,
        True,
    )
    assert set(both["vc"]) - set(one["vc"]) == {"tcp11-20"}
    assert set(both["flow"]) - set(one["flow"]) == {f"tcp{number}" for number in range(11, 21)}
    assert "vc" not in scenario(paper, "both-ways-1", service="ubr")


@pytest.mark.slow
def test_a_modelling_choice_for_draft_jagan_changes_only_the_settings_that_belong_to_it(paper: Paper) -> None:
    texts = {choice.text: choice.overrides for choice in paper.choices}
    [before] = [text for text in texts if text.startswith("ICR of a tenth of the link")]
    icr = load(DRAFT_JAGAN, overrides=texts[before])
    assert scenario(icr, "1", service="abr-er")["vc"]["tcp1-10"]["abr"]["icr"] == "15.552Mbps"
    assert scenario(icr, "1", service="abr-efci") == scenario(paper, "1", service="abr-efci")
    assert scenario(icr, "1", service="ubr") == scenario(paper, "1", service="ubr")
    reno = load(DRAFT_JAGAN, overrides=texts["Reno"])
    assert list(scenario(reno, "5", service="ubr")["tcp"]) == ["reno"]
    assert scenario(reno, "5", service="ubr")["tcp"]["reno"]["mss"] == "1460B"
    assert scenario(reno, "2", service="ubr") == scenario(paper, "2", service="ubr")
    payload = load(DRAFT_JAGAN, overrides=texts["9180 and 1500 bytes are the payload (MSS)"])
    assert scenario(payload, "2", service="ubr")["tcp"]["vanilla"]["mss"] == "9180B"
    assert scenario(payload, "7", service="abr-er")["tcp"]["newreno"]["mss"] == "1500B"


@pytest.mark.parametrize(
    ("table", "keys", "loses_without"),
    [
        ("1", {"service": "abr-er"}, True),
        ("6", {"service": "abr-er+ada"}, False),
        ("erica-1-3-4", {"service": "abr-erica", "edge_buffer_cells": 500, "network": "both_ways"}, True),
    ],
)
def test_large_values_of_tbe_and_adtf_prevent_losses_in_switches_with_er_and_erica(
    paper: Paper, table: str, keys: dict[str, Any], loses_without: bool
) -> None:
    """Runs one seed for four seconds; the paper's page covers all settings and seeds."""
    settled = {**scenario(paper, table, **keys), "duration": "4s"}
    sources = {
        name: {"abr": {key: value for key, value in vc["abr"].items() if key not in ("tbe", "adtf")}}
        for name, vc in settled["vc"].items()
    }
    as_tm_has_it = {**settled, "vc": sources}
    lost = {}

    def on_result(position: int, text: str) -> None:
        ports = json.loads(text)["ports"]
        lost[position] = {
            place: sum(p["lost_cells"] + p["discarded_cells"] for p in ports if p["name"].startswith(names))
            for place, names in {"switches": ("sw1->", "sw2->"), "edges": ("edge", "far-edge")}.items()
        }

    _core.run_many(
        [_core.Case(json.dumps(scenario)) for scenario in (settled, as_tm_has_it)], [(0, 1), (1, 1)], 1, on_result
    )
    assert lost[0]["switches"] == 0
    assert lost[0]["edges"] > 0, "cells are lost, but in the edge devices"
    assert (lost[1]["switches"] > 0) == loses_without


def test_every_section_of_draft_jagan_has_claims(paper: Paper) -> None:
    ids = [claim["id"] for claim in paper.claims]
    assert len(ids) == len(set(ids)) >= 12
    assert {claim["section"] for claim in paper.claims} >= {"2", "3.1", "4.2", "5"}
    assert {test["form"] for claim in paper.claims for test in claim["tests"]} <= set(FORMS)


def test_every_claim_in_draft_jagan_can_be_evaluated_and_is_supported_by_the_published_numbers(paper: Paper) -> None:
    as_printed = [
        Scored(number=n, values=(0.5 if n.published is None else n.published,), seeds=(1,), requested=1)
        for n in paper.numbers()
    ]
    judged, left_out = claims.judge(paper, as_printed)
    assert left_out == []
    in_print = {claim.id: claim.published_holds for claim in judged if claim.published_holds is not None}
    assert len(in_print) == 16
    assert all(in_print.values()), in_print


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.usefixtures("one_format")
def test_the_figures_of_draft_jagan_are_drawn(paper: Paper, tmp_path: Path) -> None:
    """Filled with values instead of results: every run has the values printed in the last table that needs the run."""

    def values(number: Number) -> dict[int, float]:
        return dict.fromkeys((1, 2), 0.5 if number.published is None else number.published)

    reproduction = filled(paper, {"one_way": 2, "both_ways": 2}, values)
    names = {path.name for path in figures.write(paper, reproduction.scored, tmp_path)}
    assert {f"{DRAFT_JAGAN}-{figure['id']}.svg" for figure in paper.figures} <= names
    [drawn] = [figure for figure in paper.figures if figure["id"] == "ada-goodput"]
    axes = figures.along(figures.Source(paper=paper, scored=reproduction.scored, spec=drawn)).axes  # type: ignore[union-attr]
    # One dashed line per panel: the values of ADA in Tables 6 and 7. The tables do not name LT, so the line has no
    # colour of its own.
    dashed = [[line for line in panel.get_lines() if line.get_linestyle() == "--"] for panel in axes]
    lines_at = [[float(line.get_ydata()[0]) for line in lines if len(line.get_ydata())] for lines in dashed]
    assert {line.get_color() for lines in dashed for line in lines} == {"black"}
    assert [panel.get_title() for panel in axes] == ["edge buffer of 500 cells", "edge buffer of 1000 cells"]
    labels = axes[0].get_legend_handles_labels()[1]
    assert labels[0] == "LT = 4 packets"
    assert "printed in the draft" in labels
    ticks = list(axes[0].get_xticks())
    assert ticks == [0.25, 0.5, 0.75, 0.9], "to scale"
    assert lines_at == [[87.68], [112.86]]


@needs_edge_devices
def test_every_configuration_of_draft_jagan_is_valid(paper: Paper) -> None:
    for configuration in paper.configurations:
        assert Reading.of_core(_core.parse_json(configuration.text, "paper")).faults == [], configuration.text


@pytest.mark.nightly
@needs_edge_devices
def test_every_alternative_modelling_choice_for_draft_jagan_is_valid_and_changes_some_scenario(paper: Paper) -> None:
    before = {configuration.text for configuration in paper.configurations}
    for choice in paper.choices:
        changed = {c.text for c in load(DRAFT_JAGAN, overrides=choice.overrides).configurations} - before
        assert changed, choice.text
        for text in changed:
            assert Reading.of_core(_core.parse_json(text, choice.text)).faults == [], choice.text
