"""Very short reproductions that run the real core."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from reproductions import filled
from rich.console import Console

import celltrain
from celltrain import _core
from celltrain.model.measures import measure
from celltrain.papers import Progress, Reproduction, figures, load, planned, report, reproduce, run
from celltrain.papers.paper import Number, PaperError
from celltrain.running import Chunk, Rows, work

AF_96_1269 = "af-96-1269"


@pytest.fixture(scope="module")
def table1() -> Reproduction:
    """The exact acceptance test of docs/mechanisms.md 8.1: the LAN rows of Table 1."""
    return reproduce(AF_96_1269, tables=[1], networks=["LAN"], seeds=2)


@pytest.fixture(scope="module")
def as_printed() -> Reproduction:
    """All tables, filled with values instead of results: every run has the values of the last table that needs it."""

    def values(number: Number) -> dict[int, float]:
        value = 0.5 if number.published is None else number.published
        return dict.fromkeys(range(1, 4 if number.network == "LAN" else 3), value)

    return filled(load(AF_96_1269), {"LAN": 3, "WAN": 2}, values)


def text_of(reproduction: Reproduction) -> str:
    console = Console(file=StringIO(), width=120)
    reproduction.compare(console=console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.slow
def test_without_loss_the_lan_queues_exactly_equal_the_numbers_printed_in_paper_96_1269(
    table1: Reproduction,
) -> None:
    queues = {n.number.row["sources"]: n.values for n in table1.numbers if n.number.quantity.unit == "cells"}
    assert queues == {5: (7591.0, 7591.0), 15: (22831.0, 22831.0)}
    assert all(n.inside for n in table1.numbers)
    assert table1.summary["share_inside"] == 1.0


def test_the_result_of_a_reproduction_has_the_documented_keys(table1: Reproduction) -> None:
    answer = json.loads(table1.to_json())
    assert list(answer)[:5] == ["paper", "seeds", "numbers", "claims", "summary"]
    assert (answer["paper"], answer["seeds"], answer["interrupted"]) == (AF_96_1269, 2, False)
    number = answer["numbers"][2]
    promised = {
        "table": "1",
        "row": {"sources": 5, "network": "LAN"},
        "quantity": "max_queue_cells",
        "unit": "cells",
        "published": 7591.0,
        "mean": 7591.0,
        "sd": 0.0,
        "low": 7591.0,
        "high": 7591.0,
        "inside": True,
        "scored": True,
        "inside_range": True,
        "inside_tolerance": True,
        "pit": 0.5,
        "point": True,
    }
    assert {key: number[key] for key in promised} == promised
    assert isinstance(number["note"], str)
    [claim] = answer["claims"]
    assert claim["id"] == "zero-loss-queue-is-sum-of-windows-lan"
    assert claim["holds"] is True
    assert (claim["seeds_share"], claim["seeds"]) == (1.0, answer["seeds"])
    summary = answer["summary"]
    parts = "scored inside share_inside undecided once by by_quantity by_table verdicts"
    assert set(summary) == set(parts.split())
    verdicts = "inside_range draws range_draws range_expected with_tolerance inside_tolerance within_tenth pit_middle"
    verdicts += " pit_middle_expected ks ks_p ks_p_seeds"
    errors = "mean_abs_error mean_relative_error self_error rank_correlation"
    assert set(summary["verdicts"]) == set(verdicts.split())
    assert set(summary["by_table"][0]) == {"table", "scored", "inside", *verdicts.split()}
    assert set(summary["by"][0]) == {"network", "quantity", *summary["by_table"][0], *errors.split()}
    # All results equal the printed values. Theoretical values are points, not random draws.
    everything = summary["verdicts"]
    assert (everything["inside_range"], everything["with_tolerance"], everything["inside_tolerance"]) == (6, 6, 6)
    assert (everything["draws"], everything["ks"]) == (0, None)


@pytest.mark.slow
def test_a_policy_in_a_column_heading_of_the_paper_becomes_a_key_of_each_row(as_printed: Reproduction) -> None:
    [number] = [
        n
        for n in as_printed.to_dict()["numbers"]
        if n["table"] == "2" and list(n["row"].values()) == ["LAN", 5, 1000, "epd"]
    ]
    assert number["row"] == {"network": "LAN", "sources": 5, "buffer_cells": 1000, "policy": "epd"}


@pytest.mark.slow
def test_the_result_of_a_reproduction_contains_only_values_representable_in_json(as_printed: Reproduction) -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for member in value.values():
                walk(member)
        elif isinstance(value, list):
            for member in value:
                walk(member)
        else:
            assert not isinstance(value, float) or math.isfinite(value)

    walk(json.loads(as_printed.to_json()))


@pytest.mark.slow
def test_the_number_of_threads_does_not_change_a_reproduction(table1: Reproduction) -> None:
    alone = reproduce(AF_96_1269, tables=["1"], networks=["LAN"], seeds=2, jobs=1)
    assert alone.fingerprints == table1.fingerprints
    assert [n.values for n in alone.numbers] == [n.values for n in table1.numbers]


def test_the_progress_of_a_reproduction_shows_the_finished_share_and_the_remaining_time() -> None:
    seen: list[Progress] = []
    reproduce(AF_96_1269, tables=[1], networks=["LAN"], seeds=1, progress=seen.append)
    assert [(p.done, p.total) for p in seen] == [(1, 2), (2, 2)]
    assert seen[0].remaining_seconds > 0
    assert seen[-1].remaining_seconds == 0
    assert seen[-1].elapsed_seconds >= seen[0].elapsed_seconds > 0


@pytest.mark.slow
def test_an_interrupted_reproduction_returns_the_finished_runs() -> None:
    def stop(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    partial = reproduce(AF_96_1269, tables=[1], networks=["LAN"], seeds=50, jobs=1, progress=stop)
    assert partial.interrupted
    assert sum(len(n.seeds) for n in partial.numbers if n.number.quantity.name == "efficiency") == 2
    assert json.loads(partial.to_json())["interrupted"] is True
    assert "1 of 50 seeds LAN;" in text_of(partial)


def test_a_reproduction_interrupted_before_its_first_result_returns_an_empty_result() -> None:
    nothing = filled(load(AF_96_1269), {"LAN": 1, "WAN": 1}, lambda number: {}, interrupted=True)
    assert nothing.numbers == []
    assert all(claim.open for claim in nothing.claims)
    assert nothing.to_dict()["summary"]["share_inside"] is None
    text_of(nothing)


def test_a_reproduction_starts_long_runs_first_and_finishes_one_seed_before_the_next() -> None:
    paper = load(AF_96_1269)
    runs = planned(paper, paper.numbers(tables=[1]), {"LAN": 2, "WAN": 1})
    assert [(paper.configurations[c].network, seed) for c, seed in runs] == [
        ("WAN", 1),
        ("WAN", 1),
        ("LAN", 1),
        ("LAN", 1),
        ("LAN", 2),
        ("LAN", 2),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"tables": [1], "seeds": 0},
        {"tables": [1], "jobs": 0},
        {"tables": [1], "seeds": {"LAN": 1}},
        {"tables": []},
        {"tables": [5], "networks": ["WAN"]},
        {"tables": ["nine"]},
        {"networks": ["MAN"]},
    ],
)
def test_an_invalid_request_for_a_reproduction_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises((PaperError, celltrain.PlanError)):
        reproduce(AF_96_1269, **options)


def test_an_override_that_the_core_refuses_is_reported_with_its_key() -> None:
    with pytest.raises(celltrain.ScenarioError, match="tie_order"):
        reproduce(AF_96_1269, tables=[1], networks=["LAN"], seeds=1, overrides={"switch.tie_order": "sideways"})


@pytest.mark.slow
def test_overrides_are_listed_in_the_result_of_a_reproduction_and_in_its_comparison() -> None:
    fixed = reproduce(AF_96_1269, tables=[1], networks=["LAN"], seeds=1, overrides={"switch.tie_order": "fixed"})
    assert json.loads(fixed.to_json())["overrides"] == {"switch.tie_order": "fixed"}
    assert "Changed from the paper: switch.tie_order" in text_of(fixed)
    assert "1 seed LAN;" in text_of(fixed)


def test_the_comparison_with_a_paper_shows_every_table_and_lists_numbers_that_are_not_scored(
    as_printed: Reproduction,
) -> None:
    text = text_of(as_printed)
    for table in as_printed.paper.tables:
        assert table.title in text
    assert "contradicts the paper's own Table 5" in text
    assert "selective-drop-best-z" in text


@pytest.mark.slow
def test_every_output_of_a_reproduction_can_be_written_to_files(table1: Reproduction, tmp_path: Path) -> None:
    written = table1.write(tmp_path / "new" / "folder")
    assert all(path.stat().st_size > 0 for path in written)
    names = {path.name for path in written}
    assert {"reproduce.json", "numbers.csv", "numbers.parquet", "seeds.csv", "seeds.parquet"} <= names
    assert "af-96-1269-figure1.png" not in names, "Figure 1 is about the WAN, which was not run"
    assert "af-96-1269-table2.png" not in names, "Table 2 was not run"
    lines = list(csv.DictReader((tmp_path / "new" / "folder" / "seeds.csv").open(encoding="utf-8")))
    assert [(line["sources"], line["seed"], float(line["max_queue_cells"])) for line in lines] == [
        ("5", "1", 7591.0),
        ("5", "2", 7591.0),
        ("15", "1", 22831.0),
        ("15", "2", 22831.0),
    ]
    assert all(len(line["fingerprint"]) == 16 for line in lines)


def test_columns_of_exported_tables_have_a_unit_and_a_meaning(table1: Reproduction, tmp_path: Path) -> None:
    table1.write(tmp_path)
    schema = parquet.read_schema(tmp_path / "seeds.parquet")
    assert schema.field("max_queue_cells").metadata[b"unit"] == b"cells"
    for name in ("numbers", "seeds"):
        for field in parquet.read_schema(tmp_path / f"{name}.parquet"):
            assert field.metadata[b"meaning"], f"{name}: {field.name}"
            assert b"unit" in field.metadata


def test_every_table_of_a_reproduction_can_be_exported(as_printed: Reproduction) -> None:
    numbers = report.numbers_table(as_printed)
    assert numbers.num_rows == 512
    assert numbers.column("published").null_count == 72
    seeds = report.seeds_table(as_printed)
    # Rows of the tables times seeds: 2 + 24 + 24 + 24 + 54 + 14 + 36 rows for the LAN, and 2 + 24 + 24 + 20 + 54 for
    # the WAN.
    assert seeds.num_rows == 3 * (2 + 24 + 24 + 24 + 54 + 14 + 36) + 2 * (2 + 24 + 24 + 20 + 54)


@pytest.mark.slow
@pytest.mark.nightly
def test_drawing_the_figures_of_a_reproduction_again_gives_identical_files(
    as_printed: Reproduction, tmp_path: Path
) -> None:
    contents = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        written = figures.write(as_printed.paper, as_printed.scored, folder)
        assert len(written) == 3 * len(as_printed.paper.figures)
        contents.append({path.name: path.read_bytes() for path in written if path.suffix == ".svg"})
    assert contents[0] == contents[1]
    for name, content in contents[0].items():
        text = content.decode()
        assert "<dc:date>" not in text
        assert any(label in text for label in ("cwnd (segments)", "efficiency", "fairness")), name


def test_an_unknown_paper_is_refused_with_a_list_of_available_papers() -> None:
    with pytest.raises(celltrain.CelltrainError, match="af-96-1269"):
        celltrain.reproduce("af-96-1268")


def test_a_path_into_a_result_selects_the_entries_of_a_list_by_name() -> None:
    answer = {
        "efficiency": 1,
        "ports": [{"name": "other", "max_queue_cells": 1}, {"name": "sw1->sw2", "max_queue_cells": 2}],
    }
    assert measure("efficiency", answer) == 1.0
    assert measure("ports.sw1->sw2.max_queue_cells", answer) == 2.0


def test_reproduction_runs_that_record_series_are_executed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    # Regression: the runs were executed one after another, ignoring the requested threads.
    handed: list[tuple[int, int]] = []
    run_rows = work.run_rows

    def noted(chunk: Chunk, threads: int, take: Callable[[Rows], object]) -> None:
        handed.append((len(chunk.runs), threads))
        run_rows(chunk, threads, take)

    monkeypatch.setattr(work, "run_rows", noted)
    again = reproduce("af-97-0831", tables=["windows"], seeds=2, jobs=2, overrides={"duration": "100ms"})
    assert any("series." in scored.number.result for scored in again.scored)
    assert sum(runs for runs, _ in handed) == len(again.fingerprints)
    assert len(handed) <= 2 and {threads for _, threads in handed} == {2}


@pytest.mark.parametrize(
    "file, right, wrong, message",
    [
        ("paper.toml", 'result = "efficiency"', 'result = "efficency"', "'efficency' is not a measure of its runs: "),
        ("paper.toml", "sw2.max_queue_cells", "sw2.max_queue", "sw2.max_queue' is not a measure of its runs"),
        (
            "claims.toml",
            'quantity = "efficiency"',
            'quantity = "efficency"',
            "'efficency' is not a quantity; choose from",
        ),
        ("claims.toml", 'over = { table = "1" }', 'over = { table = "7" }', "a selection matches no row"),
        ("claims.toml", 'form = "bound"', 'form = "bund"', "'bund' is not a form; choose from greater,"),
    ],
)
def test_unknown_names_in_a_paper_description_are_refused_before_any_run(
    monkeypatch: pytest.MonkeyPatch, file: str, right: str, wrong: str, message: str
) -> None:
    def read(path: str) -> str | None:
        text = _core.data(path)
        if text is not None and path.endswith(f"/{file}"):
            assert right in text
            return text.replace(right, wrong, 1)
        return text

    def ran(*arguments: object, **options: object) -> None:
        raise AssertionError("nothing runs")

    monkeypatch.setattr(_core, "run_cases", ran)
    paper = load(AF_96_1269, read=read)
    with pytest.raises(PaperError) as refused:
        run(paper, tables=["1"], networks=["LAN"], seeds=1, options={"jobs": 1})
    assert message in str(refused.value)
