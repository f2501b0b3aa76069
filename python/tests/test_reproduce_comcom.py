"""Computer Communications 21(12), 1998: a paper with public sentences but no public numbers."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import pytest
from conftest import ROOT, Command
from rich.console import Console

import celltrain as ct
import page_tables
from celltrain import _core
from celltrain.model.scenario import Reading
from celltrain.papers import Paper, Reproduction, claims, figures, load
from celltrain.papers.claims import FORMS
from celltrain.papers.paper import matches

COMCOM = "comcom-1998"


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load(COMCOM)


@pytest.fixture(scope="module")
def short() -> Reproduction:
    """An experiment with one seed and 0.1 s per scenario."""
    return ct.reproduce(COMCOM, tables=["peer-to-peer"], seeds=1, overrides={"duration": "100ms"})


def scenario(paper: Paper, table: str, **keys: Any) -> dict[str, Any]:
    [configuration] = {n.configuration for n in paper.table(table).numbers if matches(n.keys, keys)}
    return paper.configurations[configuration].scenario


def test_the_comcom_paper_has_no_published_numbers_to_compare(paper: Paper) -> None:
    assert all(table.experiment for table in paper.tables)
    assert all(n.published is None and not n.scored for n in paper.numbers())
    assert {n.network for n in paper.numbers()} == {"peer_to_peer", "chain", "unequal_rtts", "bursty"}


def test_every_configuration_of_the_comcom_paper_is_accepted_without_a_warning(paper: Paper) -> None:
    for configuration in paper.configurations:
        judged = Reading.of_core(_core.parse_json(configuration.text, paper.id))
        assert (judged.faults, judged.warnings) == ([], []), configuration.text


def test_every_key_in_a_configuration_of_the_comcom_paper_changes_at_least_one_scenario(paper: Paper) -> None:
    for table in paper.tables:
        for key in table.keys:
            seen: dict[str, set[int]] = {}
            for n in table.numbers:
                rest = json.dumps([n.quantity.name, {k: v for k, v in n.row.items() if k != key}], sort_keys=True)
                seen.setdefault(rest, set()).add(n.configuration)
            values = {n.row[key] for n in table.numbers}
            assert all(len(different) == len(values) for different in seen.values()), (table.number, key)


def test_the_drop_threshold_of_each_vc_is_the_number_of_packets_stated_in_the_comcom_paper(paper: Paper) -> None:
    for part in (1, 2, 3, 4):
        port = scenario(paper, "peer-to-peer", part_packets=part, mechanism="epd")["port"]["sw*->sw*"]
        # Ten VCs with packets of 192 cells; Th = 0.8 K.
        assert port["policy"]["epd"]["threshold"] == 10 * part * 192
        assert port["buffer"] * 0.8 == 10 * part * 192


@pytest.mark.parametrize(
    ("mechanism", "policy", "scheduler"),
    [
        ("accounting", "per_vc_accounting", None),
        ("accounting_fixed", "per_vc_accounting_fixed", None),
        ("vq", "virtual_queuing", None),
        ("vq_threshold", "virtual_queuing_threshold", None),
        ("per_vc_queuing", "per_vc_accounting", "round_robin"),
        ("per_vc_queuing_fixed", "per_vc_accounting_fixed", "round_robin"),
    ],
)
def test_every_mechanism_in_the_comcom_paper_is_a_drop_policy_with_a_scheduler(
    paper: Paper, mechanism: str, policy: str, scheduler: str | None
) -> None:
    port = scenario(paper, "chain", mechanism="epd", hops=2, cross=1)["port"]["sw*->sw*"]
    assert (list(port["policy"]), port.get("scheduler")) == (["epd"], None)
    port = scenario(paper, "peer-to-peer-cells", mechanism=mechanism, buffer_cells=1000)["port"]["sw*->sw*"]
    assert port["policy"] == {policy: {"threshold": 800}}
    assert list(port.get("scheduler", {})) == ([] if scheduler is None else [scheduler])


def test_a_modelling_choice_for_the_comcom_paper_changes_only_the_drop_policies_that_depend_on_it(paper: Paper) -> None:
    [k_of_2] = [choice for choice in paper.choices if choice.id == "C-1"]
    other = load(COMCOM, overrides=k_of_2.overrides)
    for table, keys in (("peer-to-peer", {"part_packets": 3}), ("chain", {"hops": 2, "cross": 3})):
        for mechanism, policy in (("epd", "epd"), ("vq", "virtual_queuing"), ("per_vc_queuing", "per_vc_accounting")):
            rule = scenario(other, table, mechanism=mechanism, **keys)["port"]["sw*->sw*"]["policy"][policy]
            assert rule.get("k") == (None if mechanism == "epd" else 2)


def test_claims_quote_the_comcom_paper_and_refer_to_existing_rows(paper: Paper) -> None:
    assert len(paper.claims) >= 20
    assert len({claim["id"] for claim in paper.claims}) == len(paper.claims)
    for claim in paper.claims:
        assert claim["quote"]
        assert claim["section"] in {"Abstract", "Introduction", "Conclusion", "2", "5"}
        for test in claim["tests"]:
            assert test["form"] in FORMS
            for side in {"a", "b", "over"} & test.keys():
                rows = paper.table(test[side]["table"]).numbers
                for key, wanted in test[side].items():
                    values = {n.keys.get(key) for n in rows} if key != "table" else {test[side]["table"]}
                    assert values >= set(wanted if isinstance(wanted, list) else [wanted]), (claim["id"], key)
                assert test["quantity"] in paper.table(test[side]["table"]).quantities, claim["id"]


@pytest.mark.slow
def test_the_result_for_a_paper_without_published_numbers_has_only_experiments(short: Reproduction) -> None:
    answer = json.loads(short.to_json())
    assert (answer["paper"], answer["numbers"]) == (COMCOM, [])
    summary = answer["summary"]
    assert (summary["scored"], summary["inside"], summary["share_inside"]) == (0, 0, None)
    assert summary["by"] == summary["by_quantity"] == summary["by_table"] == []
    assert (summary["verdicts"]["with_tolerance"], summary["verdicts"]["ks"]) == (0, None)
    assert len(answer["experiments"]) == len(load(COMCOM).table("peer-to-peer").numbers)
    assert {entry["published"] for entry in answer["experiments"]} == {None}
    assert all(claim["published_holds"] is None for claim in answer["claims"])
    assert repr(short).startswith(f"Reproduction('{COMCOM}', {len(answer['experiments'])} numbers, ")


def test_the_output_for_a_paper_without_published_numbers_does_not_mention_published_numbers(
    short: Reproduction,
) -> None:
    console = Console(record=True, width=160)
    short.compare(console=console)
    text = console.export_text()
    assert "claims of the text hold" in text
    assert "in print" not in text
    assert "inside" not in text
    assert "ours:" not in text


def test_the_figure_of_goodput_has_a_panel_per_mechanism_and_a_line_per_vc() -> None:
    run = ct.reproduce(COMCOM, tables=["peer-to-peer"], seeds=1, overrides={"duration": "60ms"})
    [spec] = [figure for figure in run.paper.figures if figure["id"] == "peer-to-peer-goodput"]
    spec = {**spec, "step": "20ms"}
    figure = figures.over_time(figures.Source(paper=run.paper, scored=run.scored, spec=spec))
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"mechanism {panel['mechanism']}" for panel in spec["panels"]]
    for axes in figure.axes:
        # The legend has ten VCs, their fair goodput, and an empty line.
        lines = axes.get_lines()
        assert [len(line.get_xdata()) for line in lines] == [3] * 10 + [2, 0]
        sums = sum(line.get_ydata() for line in lines[:10])
        # 3 packets of 9140 bytes in 20 ms are 11 Mb/s; the link carries 139.7 Mb/s of this data.
        assert all(0 <= total <= 150 for total in sums)
        assert max(sums) > 100
        assert lines[10].get_ydata()[0] == pytest.approx(13.97, abs=0.01)


def test_the_page_of_the_comcom_paper_has_the_verdict_on_every_claim_and_every_figure(paper: Paper) -> None:
    file = ROOT / "docs" / "papers" / f"{COMCOM}.md"
    page = file.read_text()
    built = page_tables.filled(file, page)
    for claim in paper.claims:
        place = f"section {claim['section']}" if claim["section"].isdigit() else claim["section"].lower()
        assert f'* `{claim["id"]}`: {claim["text"]} The paper, {place}: "{claim["quote"]}"\n' in built
    for table in paper.tables:
        assert f"\n### {table.heading}\n" in built
    images = re.findall(r"\]\(\.\./images/([^)]+)\)", page)
    assert sorted(images) == sorted(f"{COMCOM}-{figure['id']}.png" for figure in paper.figures)
    assert all((ROOT / "docs" / "images" / image).stat().st_size < 300_000 for image in images)


def test_the_list_and_explain_commands_include_the_comcom_paper(celltrain: Command) -> None:
    assert COMCOM in [entry["name"] for entry in celltrain("list", "papers", "--json").json]
    assert f"celltrain reproduce {COMCOM}" in celltrain("explain", COMCOM, "--json").json["page"]


def test_each_refuted_claim_states_what_it_depends_on_and_chosen_thresholds_have_an_alternative_value(
    paper: Paper,
) -> None:
    table = ROOT / "docs" / "results" / COMCOM / "claims.csv"
    with table.open(encoding="utf-8", newline="") as handle:
        rows = {row["claim"]: row for row in csv.DictReader(handle)}
    failing = {name for name, row in rows.items() if row["holds"] == "no"}
    assert failing == {claim["id"] for claim in paper.claims if claim.get("depends_on")}
    for claim in paper.claims:
        has_neighbour = any("neighbour" in test for test in claim["tests"])
        assert has_neighbour == bool(rows[claim["id"]]["neighbour_evidence"]), claim["id"]
        if claim.get("depends_on", "").startswith("a threshold"):
            assert rows[claim["id"]]["neighbour"] == "yes", claim["id"]


def test_the_verdict_for_an_alternative_threshold_is_reported_in_addition_to_the_original_verdict() -> None:
    entry = {"form": "bound", "quantity": "efficiency", "over": {"table": "1"}, "high": 0.8}
    point = claims.Point(table="1", keys={}, quantity="efficiency", value=0.85)
    tests = [{**entry, "neighbour": {"high": 0.9}}]
    assert claims.verdict(tests, [point])[0] is False
    assert claims.verdict(claims._neighbours(tests), [point])[0] is True
    assert claims._neighbours([entry]) == []
