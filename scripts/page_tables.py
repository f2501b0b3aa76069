"""Tables of a page that are written from what the core says.

Each stands between marks:

<!-- table: NAME -->
...
<!-- end -->
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def main(page: Path, tables: Mapping[str, str]) -> None:
    """Writes the tables into the page; with `--check` only exits with 1 when the page is stale."""
    parser = argparse.ArgumentParser(description=f"Writes the tables of {page.name}.")
    parser.add_argument("--check", action="store_true", help="only say whether the page is stale")
    check = parser.parse_args().check
    text = page.read_text()
    new = written(page, text, tables)
    if not check:
        page.write_text(new)
    elif new != text:
        sys.exit(f"{page} is stale: run python {sys.argv[0]}")


def written(page: Path, text: str, tables: Mapping[str, str]) -> str:
    """The page's text with its tables as they should be."""
    for name, table in tables.items():
        begin, end = f"<!-- table: {name} -->\n", "<!-- end -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"{page} has no place for the table {name}")
        text = f"{before}{begin}{table}{end}{after}"
    return text


def markdown(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" if line[0] != "---" else f"|{'|'.join(line)}|\n" for line in lines)
