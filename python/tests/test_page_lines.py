"""Errors in the code of a page about adding a model are reported with the line of the page."""

from __future__ import annotations

import re

from pages import ROOT, blocks, included

from page_lines import page_lines

PAGES = sorted((ROOT / "docs").glob("adding-*.md"))
SOURCE = "examples/adding-a-measure/src/lib.rs"


def test_a_compiler_error_in_an_example_names_the_line_of_the_documentation_page():
    name = "examples/adding-a-policy/src/policy/per_vc_dynamic_threshold.rs"
    [message] = page_lines(f"error[E0432]: unresolved import\n  --> {name}:12:5\n\npanicked at {name}:12:5:")
    page = ROOT / "docs" / "adding-a-policy.md"
    [block] = [block for block in blocks(page) if block.language.endswith(name)]
    assert message == f"docs/adding-a-policy.md:{block.line - 1}: the code of this page fails at {name}:12"


def test_a_compiler_error_in_part_of_an_example_names_the_code_block_that_shows_the_part():
    lines = (ROOT / SOURCE).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, start=1) if text.startswith("fn loss_ratio"))
    [message] = page_lines(f"  --> {SOURCE}:{line}:1")
    page = ROOT / "docs" / "adding-a-measure.md"
    [block] = [block for block in blocks(page) if "[equation]" in block.text]
    assert message.startswith(f"docs/adding-a-measure.md:{block.line - 1}: ")


def test_a_compiler_error_in_a_line_that_no_page_shows_is_reported_with_its_file():
    assert page_lines(f"  --> {SOURCE}:1:1") == [f"{SOURCE}:1: fails, and no page shows this line"]


def test_every_file_included_in_a_page_exists_and_no_page_repeats_its_code():
    for page in PAGES:
        for block in blocks(page):
            assert included(block)
            assert not re.search(r"^impl .* for ", block.text, re.MULTILINE), f"{block}: code belongs into examples/"
