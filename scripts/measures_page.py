"""Writes the tables of docs/measures.md from the core's tables of measures.

python scripts/measures_page.py            writes them
python scripts/measures_page.py --check    exits with 1 when the page is stale
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import page_tables
from celltrain.measures import ROWS, RUN, SERIES, Measure

PAGE = Path(__file__).parent.parent / "docs" / "measures.md"


def tables() -> dict[str, str]:
    """The tables, by the name between the page's marks."""
    return {"run": table(RUN), **{name: table(measures) for name, measures in ROWS.items()}, "series": series()}


def table(measures: Iterable[Measure]) -> str:
    """One line for each measure."""
    rows = [(f"`{one.name}`", unit(one), one.kind, one.meaning) for one in measures]
    return page_tables.markdown(("measure", "unit", "type", "what it is"), rows)


def series() -> str:
    """One line for each measure of each series."""
    rows = [
        (f"`{kind.name}`", f"`{one.name}`", unit(one), one.kind, one.meaning)
        for kind in SERIES.values()
        for one in kind.columns
    ]
    return page_tables.markdown(("series", "column", "unit", "type", "what it is"), rows)


def unit(measure: Measure) -> str:
    """A text has none."""
    return measure.unit or "-"


if __name__ == "__main__":
    page_tables.main(PAGE, tables())
