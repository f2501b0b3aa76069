"""Limits of the length of pages and of cells in tables."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from conftest import ROOT

#: Limits in words.
ALL, OUTSIDE, README, CELL = 115_000, 70_000, 600, 15


def markdown() -> list[Path]:
    """Returns every Markdown file of the project."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines()]


def words(text: str) -> int:
    """Returns the number of words, without marks such as the bars of a table."""
    return sum(bool(re.search(r"\w", word)) for word in text.replace("|", " ").split())


def parts(path: Path) -> tuple[str, list[str]]:
    """Returns the text of a page without its blocks of code and tables, and its rows of tables."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = text.splitlines()
    return "\n".join(line for line in lines if not line.startswith("|")), [x for x in lines if x.startswith("|")]


def long_cells(rows: list[str]) -> list[str]:
    """Returns the cells of tables that have too many words."""
    return [cell for row in rows for cell in re.split(r"(?<!\\)\|", row) if words(cell) > CELL]


def test_all_documentation_pages_together_stay_below_the_word_limit() -> None:
    parted = {path: parts(path) for path in markdown()}
    outside = sum(words(text) for text, _ in parted.values())
    inside = sum(words(row) for _, rows in parted.values() for row in rows)
    assert outside <= OUTSIDE
    assert outside + inside <= ALL


def test_the_readme_stays_below_its_word_limit() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= README


def test_table_cells_on_documentation_pages_have_at_most_fifteen_words() -> None:
    found = {path.relative_to(ROOT).as_posix(): long_cells(parts(path)[1]) for path in markdown()}
    assert {name: cells for name, cells in found.items() if cells} == {}


def test_markup_is_not_counted_as_words_of_pages_and_table_cells(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        "# A page\n\n```text\n| not a table |\n```\n\n| a | b |\n|---|---:|\n| `c` d | " + "e " * 16 + "|\n"
    )
    text, rows = parts(page)
    assert words(text) == 2
    assert sum(map(words, rows)) == 20
    assert [words(cell) for cell in long_cells(rows)] == [16]
