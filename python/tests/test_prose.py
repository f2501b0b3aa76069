"""The lint for prose (scripts/prose.py) finds the constructions it looks for, and only in prose."""

from __future__ import annotations

import pytest

import prose

SENTENCE = "What came of a run is kept."


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", f"# A page\n\n{SENTENCE}\n"),
        ("a.py", f'"""{SENTENCE}"""\n'),
        ("b.py", f"x = 1  # {SENTENCE}\n"),
        ("a.rs", f"/// {SENTENCE}\nfn f() {{}}\n"),
        ("a.ts", f"/** {SENTENCE} */\n"),
    ],
)
def test_a_hit_is_found_in_prose(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    words, found = prose.hits(path)
    assert words >= 6
    assert [pattern for _, pattern, _ in found] == ["goes on, comes of", "headless clause"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", f"```text\n{SENTENCE}\n```\n| {SENTENCE} |\n"),
        ("a.py", f'x = "{SENTENCE}"\n'),
        ("a.rs", f'let x = "{SENTENCE}";\n'),
    ],
)
def test_code_and_tables_are_not_prose(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert prose.hits(path)[1] == []


def test_a_hit_across_lines_has_the_line_on_which_it_begins(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("A page.\n\nIt is one\nof many. It stands\nin a table.\n")
    assert [(line, pattern) for line, pattern, _ in prose.hits(path)[1]] == [(4, "stands")]
