"""Writes what the lab takes from Python.

    python scripts/lab_data.py out/lab/data.json

It is the JSON Schema of scenarios and the tables of measures, which the core has, and the printed numbers of the papers
with the scenario that belongs to each row. `make lab` calls it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import celltrain as ct
from celltrain import _core
from celltrain.reproduction.paper import load, paper_ids
from celltrain.toml import to_toml


def papers() -> list[dict[str, Any]]:
    """A row of a paper's table and what it prints, as `PaperRow` of lab/src/engine/api.ts has it."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for paper_id in paper_ids():
        paper = load(paper_id)
        texts: dict[int, str] = {}
        for table in paper.tables:
            if table.experiment:
                continue
            for number in table.numbers:
                at = number.configuration
                if at not in texts:
                    texts[at] = to_toml(ct.Scenario.model_validate(paper.configurations[at].scenario))
                row = found.setdefault(
                    (paper_id, table.number, at),
                    {
                        "paper": paper_id,
                        "title": paper.title,
                        "table": table.number,
                        "heading": table.heading,
                        "keys": dict(number.keys),
                        "toml": texts[at],
                        "published": {},
                    },
                )
                row["published"][number.quantity.name] = number.published
    return list(found.values())


def main() -> None:
    """Writes the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("into", type=Path, help="the JSON file to write")
    into: Path = parser.parse_args().into
    content = {
        # As text: no number in it is written anew.
        "schema": _core.schema(),
        "measures": json.loads(_core.measures()),
        "papers": papers(),
    }
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
