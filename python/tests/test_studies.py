"""Studies: like papers, but designed by us and without printed numbers."""

from __future__ import annotations

import html
import importlib.util
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command

import celltrain as ct
import page_tables
import paper_page
from celltrain import _core
from celltrain.model.measures import MeasureError, NoValueError, measure
from celltrain.model.paths import set_key
from celltrain.model.scenario import Reading
from celltrain.papers import PAPER, STUDY, Paper, PaperError, Reproduction, figures, load
from celltrain.papers import _scored as scored_of
from celltrain.papers.claims import FORMS
from celltrain.papers.paper import matches
from celltrain.running import RunRecord
from celltrain.running.statistics import half_width

STUDIES = ROOT / "studies"
#: A figure of the kind `ratios`.
FIGURE = {"table": "link", "quantities": ["utilisation"], "y": "backbone", "colour": "mcr_sum", "title": "Ratios"}


@pytest.fixture(scope="module", params=STUDY.ids())
def study(request: pytest.FixtureRequest) -> Paper:
    return load(request.param, kind=STUDY)


@pytest.fixture(scope="module")
def short() -> Reproduction:
    """A reproduction of a table with one seed and 0.05 s per scenario."""
    return ct.study("tagging", tables=["link"], seeds=1, overrides={"duration": "50ms"})


def test_every_study_folder_that_contains_a_description_is_a_known_study() -> None:
    assert STUDY.ids() == sorted(path.parent.name for path in STUDIES.glob("*/study.toml"))
    assert {"different-rtts", "edge-different-rtts", "mixed-tcps", "non-adaptive-traffic"} <= set(STUDY.ids())
    assert {"packet-discard", "shared-memory-edge", "shared-memory-policies", "tagging"} <= set(STUDY.ids())


def test_study_folders_contain_no_code() -> None:
    assert {path.suffix for path in STUDIES.rglob("*") if path.is_file()} <= {".toml", ".md"}


@pytest.mark.slow
def test_every_study_states_its_question_and_has_no_published_numbers_to_compare(study: Paper) -> None:
    assert study.question.endswith("?")
    assert study.kind is STUDY
    assert all(table.experiment for table in study.tables)
    assert all(n.published is None and not n.scored for table in study.tables for n in table.numbers)


def test_the_core_accepts_every_configuration_of_a_study_without_a_warning(study: Paper) -> None:
    for configuration in study.configurations:
        judged = Reading.of_core(_core.parse_json(configuration.text, study.id))
        assert (judged.faults, judged.warnings) == ([], []), configuration.text


def test_every_key_in_the_configuration_of_a_study_changes_at_least_one_scenario(study: Paper) -> None:
    # If the values of a key affected neither the scenario nor the measure, a run would be compared with itself.
    for table in study.tables:
        for key in table.keys:
            seen: dict[str, set[tuple[int, str]]] = {}
            for n in table.numbers:
                rest = json.dumps([n.quantity.name, {k: v for k, v in n.row.items() if k != key}], sort_keys=True)
                seen.setdefault(rest, set()).add((n.configuration, n.result))
            values = {n.row[key] for n in table.numbers}
            assert all(len(different) == len(values) for different in seen.values()), (table.number, key)


def test_every_claim_in_a_study_states_its_reason_and_refers_to_existing_rows(study: Paper) -> None:
    assert 3 <= len(study.claims) <= 6
    assert len({claim["id"] for claim in study.claims}) == len(study.claims)
    for claim in study.claims:
        assert claim["reason"]
        assert ("quote" in claim) == ("section" in claim)
        for test in claim["tests"]:
            assert test["form"] in FORMS
            for side in {"a", "b", "over"} & test.keys():
                rows = [n for n in study.numbers() if n.table in _list(test[side]["table"])]
                where = {k: v for k, v in test[side].items() if k != "table"}
                found = [n for n in rows if matches(n.keys, where) and n.quantity.name == test["quantity"]]
                assert found, (claim["id"], test)
                # Each value that a test lists exists.
                for key, wanted in where.items():
                    assert {n.keys[key] for n in found} == set(_list(wanted)), (claim["id"], key)


@pytest.mark.slow
def test_claims_in_studies_quote_only_the_paper_on_which_the_study_is_based() -> None:
    followed = {
        "edge-different-rtts": "draft-jagan-e2e-traf-mgmt-00",
        "mixed-tcps": "ATM Forum 97-0831",
        "non-adaptive-traffic": "ATM Forum 97-0831",
        "shared-memory-edge": "draft-jagan-e2e-traf-mgmt-00",
        "tagging": "ATM Forum 97-0831",
    }
    quoting = {}
    for one in (load(name, kind=STUDY) for name in STUDY.ids()):
        page = paper_page.claims(one.id)
        for claim in (claim for claim in one.claims if "quote" in claim):
            quoting[one.id] = one.follows.split(",")[0]
            # The page names the source of the quotation.
            place = f"section {claim['section']}" if claim["section"][:1].isdigit() else claim["section"].lower()
            assert f'{quoting[one.id]}, {place}: "{claim["quote"]}"' in page, claim["id"]
    assert quoting == followed


@pytest.mark.slow
def test_the_study_command_runs_a_short_study(celltrain: Command, tmp_path: Path) -> None:
    arguments = ["study", "different-rtts", "--table", "buffers", "--seeds", 1, "--duration", "50ms", "--jobs", 2]
    answer = celltrain(*arguments, "--out", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    told = answer.json
    assert told["study"] == "different-rtts"
    assert "paper" not in told
    assert told["overrides"] == {"duration": "50ms"}
    assert told["experiments"] == []
    rows = load("different-rtts", kind=STUDY).table("buffers").numbers
    assert len(told["numbers"]) == len(rows)
    assert {n["published"] for n in told["numbers"]} == {None}
    assert {n["inside"] for n in told["numbers"]} == {None}
    assert told["summary"]["scored"] == 0
    assert {c["published_holds"] for c in told["claims"]} == {None}
    # Verdicts exist only for claims whose rows were run.
    assert [claim["id"] for claim in told["claims"]] == ["larger-buffers-even-out"]
    assert "fifo-favours-the-near" in told["claims_left_out"]
    assert json.loads((tmp_path / "out" / "study.json").read_text()) == told
    assert (tmp_path / "out" / "numbers.parquet").exists()
    page = (tmp_path / "out" / "study.html").read_text()
    assert all(claim["text"] in html.unescape(page) for claim in told["claims"])
    assert page.count("<section") == page.count('<a href="#'), "contents"
    assert "://" not in page.replace("http://www.w3.org/", "")
    if importlib.util.find_spec("matplotlib"):
        assert page.count("<svg") == 1
        assert (tmp_path / "out" / "different-rtts-buffers.png").exists()
        assert not (tmp_path / "out" / "different-rtts-ratios.png").exists()


@pytest.mark.slow
def test_a_study_can_be_printed_as_text(celltrain: Command) -> None:
    told = celltrain("study", "tagging", "--table", "link", "--seeds", 1, "--duration", "20ms")
    assert told.code == 0
    for words in ("Guaranteed frame rates", "Changed from the study: duration = '20ms'", "utilisation"):
        assert words in told.out
    assert "published" not in told.out
    assert "in print" not in told.out


@pytest.mark.slow
def test_the_python_function_for_studies_gives_the_result_of_the_command(
    celltrain: Command, short: Reproduction
) -> None:
    told = celltrain("study", "tagging", "--table", "link", "--seeds", 1, "--duration", "50ms", "--json").json
    assert told["numbers"] == short.to_dict()["numbers"]
    assert [n.mean for n in short.numbers] == [n["mean"] for n in told["numbers"]]
    assert "'tagging', 32 numbers" in repr(short)


@pytest.mark.parametrize(
    ("command", "named", "says"),
    [
        ("study", "af-97-0831", "is a paper, not a study; type: celltrain reproduce af-97-0831"),
        ("reproduce", "tagging", "is a study, not a paper; type: celltrain study tagging"),
        ("study", "nope", "there is no study 'nope'; choose from cubic-and-bbr, different-rtts"),
        ("reproduce", "nope", "there is no paper 'nope'; choose from af-96-1269, af-97-0831"),
    ],
)
def test_the_error_for_an_unknown_study_lists_the_valid_names(
    celltrain: Command, command: str, named: str, says: str
) -> None:
    answer = celltrain(command, named)
    assert answer.code == 2
    assert says in answer.err
    assert says in celltrain(command, named, "--json").json["faults"][0]["message"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--table", "ratio"], "different-rtts has no table 'ratio'; choose from ratios, buffers"),
        (["--duration", "1"], "duration = '1' is not a duration such as '10s'"),
        (["--seeds", "0"], "--seeds"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_invalid_study_options_are_refused(celltrain: Command, arguments: list[str], says: str) -> None:
    answer = celltrain("study", "different-rtts", *arguments)
    assert answer.code == 2
    assert says in answer.err


def test_the_python_function_refuses_an_unknown_study() -> None:
    with pytest.raises(PaperError, match="type: celltrain reproduce af-96-1269"):
        ct.study("af-96-1269")
    with pytest.raises(PaperError, match="choose from cubic-and-bbr"):
        ct.study("rtts")
    assert not set(PAPER.ids()) & set(STUDY.ids())


def test_the_list_and_explain_commands_include_the_study(celltrain: Command, study: Paper) -> None:
    assert study.id in [entry["name"] for entry in celltrain("list", "studies", "--json").json]
    told = celltrain("explain", study.id, "--json").json
    assert told["kind"] == "study"
    assert f"celltrain study {study.id}" in told["page"]


@pytest.mark.slow
def test_every_study_page_has_the_verdict_on_each_claim_and_links_only_to_existing_figures(study: Paper) -> None:
    file = ROOT / "docs" / "studies" / f"{study.id}.md"
    page = file.read_text()
    built = page_tables.filled(file, page)
    assert all(f"\n* `{claim['id']}`: {claim['text']} " in built for claim in study.claims)
    assert all(f"\n### {table.heading}\n" in built for table in study.tables)
    assert paper_page.held(paper_page.results(study.id, "claims")) in page
    images = re.findall(r"\]\(\.\./images/([^)]+)\)", page)
    assert images == [f"{study.id}-{figure['id']}.png" for figure in study.figures]
    assert all((ROOT / "docs" / "images" / image).stat().st_size < 200_000 for image in images)


def test_the_ratios_in_the_summary_of_the_shared_memory_study_are_those_in_its_tables() -> None:
    text = (ROOT / "docs" / "studies" / "shared-memory-incast.md").read_text(encoding="utf-8")
    summary, tables = text.split("## Setting")[0], paper_page.numbers("shared-memory-incast")
    quoted = re.findall(r"\| (\d\.\d\d \(\d\.\d\d to \d\.\d\d\)) ", summary)
    assert len(quoted) >= 12
    for ratio in quoted:
        assert ratio in tables


def test_study_measures_can_be_arithmetic_expressions_over_several_results() -> None:
    answer: dict[str, Any] = {"a": 2.0, "flows": [{"name": "x", "v": 3.0}, {"name": "y", "v": 1.0}]}
    assert measure("a * 3 - flows.x.v / 2 + 1", answer) == pytest.approx(5.5)
    assert measure("1 - a - a", answer) == -3
    assert measure("flows.fairness(*).v", answer) == pytest.approx(16 / (2 * 10))
    assert measure("contracts.vc2.tagged", {"contracts": [{"vc": "vc1"}, {"vc": "vc2", "tagged": 7}]}) == 7
    with pytest.raises(MeasureError, match="an operator is expected before '%'"):
        measure("a % a", answer)


def test_the_fairness_of_flows_without_goodput_is_undefined() -> None:
    with pytest.raises(NoValueError, match="has no value in this run"):
        measure("flows.fairness(*).v", {"flows": [{"name": "x", "v": 0.0}, {"name": "y", "v": 0.0}]})


def test_a_path_into_a_scenario_addresses_list_entries_by_their_position() -> None:
    scenario: dict[str, Any] = {"links": [{"delay": "1ms"}, {"delay": "1ms"}]}
    set_key(scenario, "links.1.delay", "5ms")
    assert scenario == {"links": [{"delay": "1ms"}, {"delay": "5ms"}]}


def test_the_confidence_interval_of_a_mean_uses_students_t_distribution() -> None:
    # Quantiles from a printed table, keyed by degrees of freedom; the sample has one more value.
    printed = {1: 12.706, 9: 2.262, 80: 1.990, 100: 1.984, 10**9: 1.960}
    for freedom, quantile in printed.items():
        n = freedom + 1
        assert half_width(n, math.sqrt(n)) == pytest.approx(quantile, abs=5e-4)


def test_the_confidence_interval_of_a_study_is_computed_over_the_seeds() -> None:
    run = ct.study("tagging", tables=["link"], seeds=3, overrides={"duration": "20ms"})
    one = max(run.numbers, key=lambda number: number.sd or 0)
    assert one.sd
    assert one.interval == pytest.approx(4.302652729911275 * one.sd / math.sqrt(3))


@pytest.fixture(scope="module")
def compared(short: Reproduction) -> Reproduction:
    """The runs of `short`, in a table that compares its rows with the row of `wfq`."""
    table = replace(short.paper.table("link"), against={"backbone": "wfq"})
    return replace(short, paper=short.paper.model_copy(update={"tables": (table,), "claims": []}))


def test_study_rows_are_compared_with_the_baseline_row_that_the_against_key_names(
    short: Reproduction, compared: Reproduction
) -> None:
    assert "ratios" not in short.to_dict()
    ratios = compared.to_dict()["ratios"]
    means = {json.dumps(one.number.row, sort_keys=True): one.mean for one in compared.numbers}
    assert len(ratios) == len(means) * 3 // 4, "the rows of the baseline wfq are left out"
    assert compared.paper.tables[0].across == "backbone", (
        "this table has columns, so it has no row for all columns together"
    )
    for one in ratios:
        mean, base = (means[json.dumps(row, sort_keys=True)] for row in (one["row"], {**one["row"], "backbone": "wfq"}))
        assert one["mean"] == pytest.approx(mean / base)
        assert (one["low"], one["high"], one["seeds"]) == (one["mean"], one["mean"], 1)


def site(run: Reproduction, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the numbers that the site shows for a study after its tables were saved."""
    monkeypatch.setattr(paper_page, "RESULTS", folder)
    paper_page.keep(run.to_dict(), run.paper)
    return paper_page.own_numbers(run.paper)


def test_the_ratio_over_all_columns_is_the_geometric_mean_of_their_ratios(
    compared: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(compared.paper.tables[0], across="mcr_sum")
    run = replace(compared, paper=compared.paper.model_copy(update={"tables": (table,)}))
    answer = run.to_dict()
    [pooled] = [one for one in answer["ratios"] if one["row"] == {"contract": "GFR.1", "backbone": "dfba"}]
    single = [
        one["mean"] for one in answer["ratios"] if {**one["row"], "mcr_sum": 0} == {**pooled["row"], "mcr_sum": 0}
    ]
    assert len(single) == 5, "there are four rows and a row for all of them together"
    assert pooled["mean"] == pytest.approx(math.prod(single[:4]) ** 0.25)
    text = site(run, tmp_path, monkeypatch).split("seed by seed")[1]
    assert "| mcr sum 100 | all |" in text
    figure = figures.ratios(figures.Source(paper=run.paper, scored=run.scored, spec={**FIGURE, "colour": "mcr_sum"}))
    assert figure is not None


def test_no_ratio_is_computed_for_a_quantity_that_is_zero_in_some_run(compared: Reproduction) -> None:
    first, *rest = compared.scored
    assert "ratios" not in replace(compared, scored=[replace(first, values=(0.0,)), *rest]).to_dict()


def test_the_page_of_a_study_prints_ratios_below_the_means(
    compared: Reproduction, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = compared.to_dict()
    text = site(compared, tmp_path, monkeypatch)
    means, ratios = text.split("Ratio to `wfq`, seed by seed, with its 95 % interval:")
    assert means.count("| dfba |") == ratios.count("| dfba |") == 1
    [head, _, *rows] = [line for line in ratios.splitlines() if line.startswith("|")]
    assert len(rows) == 8
    first = answer["ratios"][0]["mean"]
    assert f"{first:.2f} ({first:.2f} to {first:.2f})" in rows[0]
    assert head.endswith("| double_epd | dfba | dfba_1998 |"), head
    assert paper_page.cell({"mean": "0.50", "low": "0.40", "high": "0.60"}) == "**0.50 (0.40 to 0.60)**"
    assert paper_page.cell({"mean": "0.50", "low": "0.40", "high": "1.60"}) == "0.50 (0.40 to 1.60)"


def test_an_undecided_claim_counts_neither_as_confirmed_nor_as_refuted(compared: Reproduction) -> None:
    entry = {"id": "x", "text": "A claim.", "reason": "A theory.", "evidence": "ratio 1", "open": False}
    rows = [paper_page.claim_row({**entry, "holds": holds}) for holds in (None, True, False)]
    assert paper_page.held(rows) == "1 of 3 claims hold; 1 undecided."
    texts = [paper_page.claim_text(entry, row, compared.paper) for row in rows]
    verdicts = [text.split("**Holds: ")[1] for text in texts]
    assert verdicts == ["undecided** (ratio 1).", "yes** (ratio 1).", "no** (ratio 1)."]


def test_the_figure_of_a_study_shows_ratios_with_confidence_intervals(compared: Reproduction) -> None:
    pytest.importorskip("matplotlib")
    figure = figures.ratios(figures.Source(paper=compared.paper, scored=compared.scored, spec=FIGURE))
    assert figure is not None
    [axes] = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["double epd", "dfba", "dfba 1998"]
    dots = [x for dots in axes.collections for x, _ in dots.get_offsets() if len(dots.get_offsets()) > 1]
    assert sorted(dots) == pytest.approx(sorted(one["mean"] for one in compared.to_dict()["ratios"]))
    assert figures.ratios(figures.Source(paper=compared.paper, scored=[], spec=FIGURE)) is None


def test_a_study_measure_that_is_undefined_in_some_run_is_left_out_with_the_reason(short: Reproduction) -> None:
    numbers = short.paper.numbers(tables=["link"])[:1]
    measures = {numbers[0].configuration: (numbers[0].result,)}
    of = {"point": numbers[0].configuration, "run_key": "", "configuration": ""}
    records = [
        RunRecord(**of, seed=1, values=(2.0,), problems=(None,)),
        RunRecord(**of, seed=2, values=(None,), problems=("needs 100 values; this run has 99",)),
    ]
    with pytest.warns(ct.CelltrainWarning, match="undefined in 1 run of 2.*needs 100 values; this run has 99"):
        scored = scored_of(numbers, {"": 2}, measures, records)["scored"][0]
    assert (scored.seeds, scored.values) == ((1,), (2.0,))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_shortening_the_duration_of_a_study_also_moves_the_end_of_its_measuring_window():
    paper = load("shared-memory-incast", kind=STUDY, overrides={"duration": "30ms"})
    assert all("to" not in one.scenario["measure"] for one in paper.configurations)
    longer = load("shared-memory-incast", kind=STUDY, overrides={"duration": "200ms"})
    assert all("to" in one.scenario["measure"] for one in longer.configurations)
