"""Writes the tables of docs/measures.md and docs/looking-inside.md from the core's lists of measures and events.

    python scripts/page_tables.py            writes them
    python scripts/page_tables.py --check    exits with 1 if a page is stale

Each table is between marks:

<!-- table: NAME -->
...
<!-- end -->
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from celltrain.model.measures import EVENTS, ROWS, RUN, SERIES, Measure

DOCS = Path(__file__).parent.parent / "docs"


def main() -> None:
    """Writes the tables into the pages. With `--check` it only exits with 1 if a page is stale."""
    parser = argparse.ArgumentParser(description="Writes tables into pages.")
    parser.add_argument("--check", action="store_true", help="only say whether a page is stale")
    check = parser.parse_args().check
    for page, tables in ((DOCS / "measures.md", measures()), (DOCS / "looking-inside.md", events())):
        text = page.read_text()
        new = written(page, text, tables)
        if not check:
            page.write_text(new)
        elif new != text:
            sys.exit(f"{page} is stale: run python {sys.argv[0]}")


def written(page: Path, text: str, tables: Mapping[str, str]) -> str:
    """Returns the page's text with its tables replaced."""
    for name, table in tables.items():
        begin, end = f"<!-- table: {name} -->\n", "<!-- end -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"{page} has no place for the table {name}")
        text = f"{before}{begin}{table}{end}{after}"
    return text


def measures() -> dict[str, str]:
    """Returns the tables of docs/measures.md: one line for each measure, and for each column of each series."""
    columns = ("measure", "unit", "type", "meaning")
    tables = {
        name: markdown(columns, [described(one) for one in listed]) for name, listed in {"run": RUN, **ROWS}.items()
    }
    series = [(f"`{kind.name}`", *described(one)) for kind in SERIES.values() for one in kind.columns]
    return {**tables, "series": markdown(("series", "column", "unit", "type", "meaning"), series)}


def events() -> dict[str, str]:
    """Returns the table of docs/looking-inside.md: one line for each column of each kind of event."""
    rows = [(f"`{kind.name}`", *described(one)) for kind in EVENTS.values() for one in kind.columns]
    return {"events": markdown(("kind", "column", "unit", "type", "meaning"), rows)}


def described(measure: Measure) -> tuple[str, str, str, str]:
    """Returns the name, unit, type and meaning of a measure; strings have no unit."""
    return f"`{measure.name}`", measure.unit or "-", measure.kind, measure.meaning


def markdown(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Returns a table in Markdown."""
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" if line[0] != "---" else f"|{'|'.join(line)}|\n" for line in lines)


if __name__ == "__main__":
    main()
