"""How long the Markdown is, in all and outside tables, and the longest cells of tables."""

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
