"""The pages are wrapped at 120 columns, and wrapping them changes nothing a reader sees."""

from __future__ import annotations

import importlib
import sys

import pytest
from pages import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
wrap_pages = importlib.import_module("wrap_pages")
paper_page = importlib.import_module("paper_page")
sys.path.remove(str(ROOT / "scripts"))

LONG = "Cells that arrive in the same instant go in random order, and so do the words of a sentence that is much too long. "


@pytest.mark.parametrize("page", list(wrap_pages.pages()), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_wrapped(page):
    text = page.read_text()
    assert text == wrap_pages.wrapped(text), "run python scripts/wrap_pages.py"


def test_a_paragraph_with_a_long_line_is_set_anew_and_another_is_not():
    text = f"# Title\n\nshort\nlines\n\n{LONG}{LONG}\nThe end.\n"
    lines = wrap_pages.wrapped(text).splitlines()
    assert lines[:5] == ["# Title", "", "short", "lines", ""]
    assert max(map(len, lines)) <= 120
    assert " ".join(lines[5:]) == f"{LONG}{LONG}The end."


@pytest.mark.parametrize(
    "text",
    [
        f"```text\n{LONG * 2}\n```\n",
        f"    {LONG * 2}\n",
        f"| a | b |\n|---|---|\n| {LONG * 2} | c |\n",
        f"<!-- {LONG * 2} -->\n",
        f"# {LONG * 2}\n",
        f"[{'x' * 130}](page.md)\n",
    ],
    ids=["code", "indented code", "table", "comment", "heading", "what cannot be broken"],
)
def test_what_is_no_prose_stays_as_it_is(text):
    assert wrap_pages.wrapped(text) == text


def test_the_items_of_a_list_keep_their_indentation():
    text = f"* {LONG}{LONG}\n  1. {LONG}{LONG}\n\n     {LONG}{LONG}\n\n> {LONG}{LONG}\n"
    lines = wrap_pages.wrapped(text).splitlines()
    starts = [line[: len(line) - len(line.lstrip(" *>1."))] for line in lines if line]
    assert starts == ["* ", "  ", "  1. ", "     ", "     ", "     ", "> ", "> "]


@pytest.mark.parametrize("atom", ["`a span of code`", "[a link of words](page.md#part)", "![a picture](images/a.png)"])
@pytest.mark.parametrize("before", range(100, 122))
def test_links_and_code_spans_are_not_broken(atom: str, before: int):
    text = f"{'w' * before} ({atom}), {LONG}\n"
    assert atom in wrap_pages.wrapped(text)


@pytest.mark.parametrize("mark", ["-", "+", "*", "1.", "2)", "#", ">", "=", "---", "```", "<div>"])
@pytest.mark.parametrize("before", [118, 119, 120, 121])
def test_no_line_begins_with_what_would_begin_a_block(mark: str, before: int):
    text = f"{'w' * (before - 2)} w {mark} is a mark. {LONG}\n"
    new = wrap_pages.wrapped(text)
    assert wrap_pages.rendered(new) == wrap_pages.rendered(text)
    assert len(new.splitlines()) > 1


@pytest.mark.parametrize("end", ["  ", "\\"])
def test_a_break_that_is_meant_stays(end: str):
    text = f"{LONG}{LONG.strip()}{end}\nA new line.\n"
    assert wrap_pages.wrapped(text).splitlines()[-2:][0].endswith(end)
    assert wrap_pages.wrapped(text).splitlines()[-1] == "A new line."


@pytest.mark.parametrize("page", ["CHANGELOG.md", "docs/mechanisms.md", "docs/sweeps.md", "docs/models/vanilla.md"])
def test_wrapping_twice_is_wrapping_once(page: str, monkeypatch):
    # Narrow, so that nearly every paragraph is set anew.
    monkeypatch.setattr(wrap_pages, "WIDTH", 60)
    once = wrap_pages.wrapped((ROOT / page).read_text())
    assert wrap_pages.wrapped(once) == once


def test_what_scripts_write_into_pages_is_wrapped():
    page = "Before.\n\n<!-- claims:begin -->\n\nold\n\n<!-- claims:end -->\n\nAfter.\n"
    filled = paper_page.replaced(page, "claims", f"- {LONG * 2}\n  - {LONG * 2}\n")
    assert max(map(len, filled.splitlines())) <= 120
    assert filled == wrap_pages.wrapped(filled)
