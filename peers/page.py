"""Common parts of the comparisons with other simulators: a table on a page, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def fill(page: Path, block: str, text: str) -> None:
    """Replaces the text between the marks of a block on a page."""
    begin, end = f"<!-- {block}:begin -->", f"<!-- {block}:end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def outcome(disagreements: Sequence[str]) -> int:
    """Prints the disagreements. Returns the exit code: 1 if there are any."""
    for disagreement in disagreements:
        print(f"disagreement: {disagreement}", file=sys.stderr)
    return 1 if disagreements else 0
