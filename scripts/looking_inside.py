"""Writes the table of kinds of events in docs/looking-inside.md, and draws the pictures of that page.

python scripts/looking_inside.py              writes the table
python scripts/looking_inside.py --check      exits with 1 when the table is stale
python scripts/looking_inside.py --pictures   runs what the page runs, and draws its pictures anew; takes some seconds
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import celltrain as ct
import page_tables
from celltrain.measures import EVENTS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "looking-inside.md"
IMAGES = ROOT / "docs" / "images"
SCENARIO, SEED = ROOT / "scenarios" / "lan-epd.toml", 18
PORTS = ["source4->sw1", "sw1->sw2", "sw2->destination4"]


def tables() -> dict[str, str]:
    """The tables, by the name between the page's marks."""
    return {"events": page_tables.markdown(("kind", "column", "unit", "type", "what it is"), list(rows()))}


def rows() -> Iterator[tuple[str, ...]]:
    """One line for each column of each kind."""
    for kind in EVENTS.values():
        for one in kind.columns:
            yield f"`{kind.name}`", f"`{one.name}`", one.unit or "-", one.kind, one.meaning


def pictures() -> None:
    """Draws the three diagrams of the page."""
    with tempfile.TemporaryDirectory() as folder:
        flow = ct.Events(
            folder=f"{folder}/flow", kinds=["segments", "timers", "frames"], flows=["tcp4"], window="0s:3s"
        )
        ct.run(SCENARIO, seed=SEED, events=flow).events.plot.write(
            "sequence", IMAGES / "looking-inside-sequence.png", flow="tcp4"
        )
        cells = ct.Events(folder=f"{folder}/cells", kinds=["frames", "cells"], ports=PORTS, window="2.1s:2.13s")
        diagrams = ct.run(SCENARIO, seed=SEED, events=cells).events.plot
        diagrams.write("anatomy", IMAGES / "looking-inside-anatomy.png", port="sw1->sw2", window="2.114s:2.126s")
        diagrams.write("ladder", IMAGES / "looking-inside-ladder.png", flow="tcp4", frame=627)


if __name__ == "__main__":
    if sys.argv[1:] == ["--pictures"]:
        pictures()
    else:
        page_tables.main(PAGE, tables())
