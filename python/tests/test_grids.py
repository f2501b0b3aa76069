"""Text tables: nothing is cut off on any screen, and Markdown and LaTeX have the same contents."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from celltrain.model.grids import Grid, Line, latex, markdown

WORDS = st.text("abc .:-", max_size=40)
NUMBERS = st.sampled_from(["", "1", "0.441 ± 0.027", "+0.176 ± 0.076 *", "12,350", "7591"])


def sample() -> Grid:
    grid = Grid(heads=["policy", "mean", "difference from tail_drop"])
    grid.add_group("efficiency")
    grid.add_row("tail_drop", "0.265 ± 0.067", "")
    grid.add_row("selective_drop:threshold=0.8", "0.657 ± 0.020", "+0.392 ± 0.073 *")
    return grid


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    words, numbers = draw(st.integers(1, 3)), draw(st.integers(0, 6))
    grid = Grid(
        heads=draw(st.lists(WORDS, min_size=words + numbers, max_size=words + numbers)),
        left=range(words),
        keys=draw(st.integers(0, words)),
    )
    for _ in range(draw(st.integers(0, 4))):
        grid.add_row(*(draw(WORDS) for _ in range(words)), *(draw(NUMBERS) for _ in range(numbers)))
    return grid


@pytest.mark.slow
@given(grids(), st.integers(20, 150))
def test_no_number_in_a_printed_table_is_truncated_or_wrapped_at_any_screen_width(grid: Grid, width: int) -> None:
    text = grid.text(width)
    assert "\u2026" not in text
    for row in grid.rows:
        for column, cell in enumerate(row):
            if column not in grid.left:
                assert cell in text


@given(grids(), st.integers(110, 150))
def test_a_table_fits_any_screen_that_has_room_for_its_key_columns_and_one_number_column(
    grid: Grid, width: int
) -> None:
    assert all(len(line) <= width for line in grid.text(width).splitlines())


@given(grids(), st.integers(20, 150))
def test_no_word_of_a_printed_table_is_missing_at_any_screen_width(grid: Grid, width: int) -> None:
    text = "".join(grid.text(width).split())
    for cell in (*grid.heads, *(cell for row in grid.rows for cell in row)):
        for word in cell.split():
            if len(word) <= 10:
                assert word in text


def test_a_table_that_is_too_wide_is_split_into_parts_that_repeat_its_key_columns() -> None:
    grid = Grid(heads=["port", *(f"sw{number}" for number in range(8))])
    grid.add_row("cells offered", *("1,711,654" for _ in range(8)))
    blocks = grid.text(60).split("\n\n")
    assert len(blocks) == 2
    assert all(block.startswith("port") and "cells offered" in block for block in blocks)
    assert grid.text(60).count("1,711,654") == 8


def test_a_long_word_in_a_table_is_wrapped_at_dots_and_colons() -> None:
    grid = Grid(heads=["name", "value"])
    grid.add_row("ports.bottleneck.max_queue_cells", "1")
    assert "ports.bottleneck." in grid.text(30).splitlines()[2]


def test_a_long_word_in_a_column_heading_is_wrapped_and_all_numbers_remain_visible() -> None:
    grid = Grid(heads=["name", "mean", f"difference from sack:{'mss=1460B:' * 8}"])
    grid.add_row("reno", "0.519 \u00b1 0.010", "-0.41 \u00b1 0.17 *")
    lines = grid.text(60).splitlines()
    assert max(map(len, lines)) <= 60
    assert "-0.41 \u00b1 0.17 *" in lines[-1]
    heading = "".join("".join(lines).split()).replace("namemean", "")
    assert heading.count("mss=1460B:") == 8


def test_the_label_of_a_group_of_table_rows_is_printed_above_the_rows() -> None:
    lines = sample().text().splitlines()
    assert lines[2] == "efficiency" and lines[3].startswith("  tail_drop")


def test_markdown_tables_have_one_line_per_row_and_escape_special_characters() -> None:
    lines = sample().markdown().splitlines()
    assert lines[0] == "| policy | mean | difference from tail\\_drop |"
    assert lines[1] == "| --- | ---: | ---: |"
    assert lines[2] == "| **efficiency** |  |  |"
    assert lines[4] == "| selective\\_drop:threshold=0.8 | 0.657 ± 0.020 | +0.392 ± 0.073 \\* |"


def test_latex_tables_use_booktabs_and_escape_commands() -> None:
    grid = sample()
    grid.add_row(r"50% & \input{x} $#_^~", "-1", "")
    text = grid.latex()
    assert text.startswith("\\begin{tabular}{lrr}\n\\toprule\npolicy & mean & ")
    assert r"\multicolumn{3}{l}{\textit{efficiency}} \\" in text
    assert r"0.657 $\pm$ 0.020 & $+$0.392 $\pm$ 0.073 \textasteriskcentered{} \\" in text
    assert r"50\% \& \textbackslash{}input\{x\} \$\#\_\textasciicircum{}\textasciitilde{} & $-$1 &" in text


def test_notes_of_tables_are_paragraphs_in_markdown_and_comments_in_latex() -> None:
    blocks = [Line(text="lan-epd: seeds 1 to 5"), Line(text=""), sample()]
    assert markdown(blocks).splitlines()[:3] == [
        "lan-epd: seeds 1 to 5",
        "",
        "| policy | mean | difference from tail\\_drop |",
    ]
    lines = latex(blocks).splitlines()
    assert lines[1] == "% lan-epd: seeds 1 to 5" and "booktabs" in lines[0]
    assert all(line.startswith("%") for line in lines[:2])


def test_latex_output_has_the_notes_of_each_table_below_it() -> None:
    blocks = [Line(text="TCP: sack_pipe (100 ms ticks)", is_note=True), sample(), Line(text="Not shown: goodput")]
    text = latex([*blocks, Line(text="* significant; \u00b1: half", is_note=True)])
    table, _, notes = text.partition("\\end{tabular}\n")
    assert "TCP" not in table
    assert notes.splitlines() == [
        "",
        "\\smallskip",
        "{\\footnotesize",
        "TCP: sack\\_pipe (100 ms ticks)\\par}",
        "% Not shown: goodput",
        "",
        "\\smallskip",
        "{\\footnotesize",
        "\\textasteriskcentered{} significant; $\\pm$: half\\par}",
    ]


@pytest.mark.parametrize("text", ["\x1b[31mred", "two\nlines"])
def test_names_in_tables_are_escaped_for_terminals_and_comments(text: str) -> None:
    grid = Grid(heads=[text])
    grid.add_row(text)
    screen = Console(file=io.StringIO(), width=80)
    screen.print(grid)
    screen.print(Line(text=text))
    for shown in (screen.file.getvalue(), grid.markdown(), grid.latex()):  # type: ignore[attr-defined]
        assert shown.replace("\n", "").isprintable()
    assert len(latex([Line(text=text)]).splitlines()) == 2
