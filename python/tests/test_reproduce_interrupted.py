"""Tests of interrupted reproductions: each number states its finished seeds, and too few of them give no verdict."""

from __future__ import annotations

from io import StringIO

import pytest
from reproductions import filled
from rich.console import Console

from celltrain.papers import Reproduction, load, report
from celltrain.papers.paper import Number
from celltrain.papers.score import ENOUGH_SEEDS

REQUESTED = 8


def finished(number: Number) -> int:
    """Returns how many of the eight seeds finished: 0 to 8, by configuration."""
    return number.configuration % (REQUESTED + 1)


@pytest.fixture(scope="module")
def partial() -> Reproduction:
    """ATM Forum 96-1269 after an interrupt, with values as printed."""

    def values(number: Number) -> dict[int, float]:
        value = 0.5 if number.published is None else number.published
        return dict.fromkeys(range(1, 1 + finished(number)), value)

    return filled(load("af-96-1269"), {"LAN": REQUESTED, "WAN": REQUESTED}, values, interrupted=True)


def text_of(reproduction: Reproduction, *, brief: bool = False) -> str:
    console = Console(file=StringIO(), width=140)
    for block in report.blocks(reproduction, brief=brief):
        console.print(block)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.slow
def test_a_published_number_has_a_verdict_only_if_enough_seeds_have_finished(partial: Reproduction) -> None:
    for one in partial.numbers:
        enough = one.number.point or len(one.seeds) >= ENOUGH_SEEDS
        verdicts = (one.inside, one.inside_range, one.pit)
        assert (None not in verdicts, verdicts == (None, None, None)) == (enough, not enough)
        assert {key: one.to_dict()[key] for key in ("seeds", "requested_seeds")} == {
            "seeds": finished(one.number),
            "requested_seeds": min(REQUESTED, one.number.most_seeds or REQUESTED),
        }
    summary = partial.summary
    assert 0 < summary["scored"] < summary["scored"] + summary["undecided"] == 408
    assert not partial.agrees
    assert f" {summary['undecided']} published values have too few finished runs" in " ".join(text_of(partial).split())


def test_a_claim_remains_undecided_while_one_of_its_rows_has_too_few_finished_seeds(partial: Reproduction) -> None:
    assert partial.claims_left_out == [], "no claim is left out, because all rows were requested"
    held, decided, still_open = partial.held
    assert decided + still_open == len(partial.claims) == 42
    assert 0 < still_open == sum(claim.open for claim in partial.claims)
    for claim in partial.claims:
        assert claim.open == claim.evidence.startswith("not enough runs: its rows have ")
        assert claim.holds is None or not claim.open
    text = text_of(partial)
    assert f"{held} of {decided} claims of the text hold; {still_open} more claims are open" in text
    assert "need tables that were not run" not in text


def test_heading_tables_and_page_of_an_interrupted_reproduction_state_the_number_of_finished_seeds(
    partial: Reproduction,
) -> None:
    text = text_of(partial)
    assert f"0 to {REQUESTED} of {REQUESTED} seeds LAN, 0 to {REQUESTED} of {REQUESTED} seeds WAN;" in text
    tables = [block for block in report.blocks(partial) if isinstance(block, report.Grid) and "range" in block.heads]
    for table in tables:
        place, verdict = table.heads.index("seeds"), table.heads.index("agrees")
        for row in table.rows:
            few = int(row[place]) < ENOUGH_SEEDS
            assert not few or row[verdict].split(" ")[0] in ("not", "-") or "theory" in text
    assert any("not enough runs" in row for table in tables for row in table.rows)
    assert f"0 to {REQUESTED} of {REQUESTED}" in partial.html()
    assert "not enough runs" not in text_of(partial, brief=True).partition("claims of the text")[0]


@pytest.mark.slow
def test_a_complete_reproduction_states_its_number_of_seeds_once_and_every_verdict_is_final() -> None:
    whole = filled(
        load("af-96-1269"),
        {"LAN": 2, "WAN": 1},
        lambda number: dict.fromkeys(range(1, 3 if number.network == "LAN" else 2), number.published or 0.5),
    )
    assert (whole.summary["undecided"], whole.held[2]) == (0, 0)
    text = text_of(whole)
    assert "2 seeds LAN, 1 seed WAN;" in text
    assert "enough runs" not in text
    assert all(
        "seeds" not in block.heads
        for block in report.blocks(whole)
        if isinstance(block, report.Grid) and "range" in block.heads
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_a_value_printed_in_two_tables_of_a_paper_counts_only_once() -> None:
    paper = load("af-96-1269")
    whole = filled(paper, {"LAN": 1, "WAN": 1}, lambda number: {1: number.published or 0.5})
    once = whole.summary["once"]
    assert (whole.summary["scored"], once["scored"]) == (408, 380)
    assert "The paper prints 28 of them in another table, too; with each counted once," in " ".join(
        text_of(whole).split()
    )
    jagan = load("draft-jagan")
    one = filled(
        jagan,
        dict.fromkeys([number.network or "" for number in jagan.numbers()], 1),
        lambda number: {1: number.published or 0.5},
    )
    assert one.summary["once"] == {key: one.summary[key] for key in ("scored", "inside")}
