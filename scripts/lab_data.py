"""Writes the data that the lab and its tests need from Python.

    python scripts/lab_data.py data out/lab/data.json
    python scripts/lab_data.py answers out/lab/native.json

The data are the shipped scenarios, their JSON Schema, the tables of measures, and the papers' printed numbers with the
scenario of each row (`make lab`). The answers are the results of all shipped scenarios, each with its own seed, for
comparison with the page (`make lab-test`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, get_args

import celltrain as ct
from celltrain import _core
from celltrain.model import shipped
from celltrain.model.scenario import to_toml
from celltrain.model.types import TieOrder
from celltrain.papers.paper import PAPER, load


def papers() -> list[dict[str, Any]]:
    """Returns the papers' table rows with their printed numbers, like `PaperRow` in lab/src/engine/api.ts."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for paper_id in PAPER.ids():
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


# Real transport stacks of the page's simulator; see crates/celltrain-web/Cargo.toml.
STACKS = {type(None), ct.Smoltcp}


def scenarios() -> dict[str, ct.Scenario]:
    """Returns the shipped scenarios by name, except those with stacks that the page does not contain."""
    loaded = {name: ct.load(name) for name in shipped.names("scenario")}
    return {name: one for name, one in loaded.items() if stacks(one) <= STACKS}


def stacks(scenario: ct.Scenario) -> set[type]:
    """Returns the types of a scenario's real stacks, and `NoneType` if it or a flow names none."""
    named: list[ct.Scenario | ct.FlowOptions] = [scenario, *scenario.flow.values()]
    return {type(options.stack) for options in named}


def data() -> dict[str, Any]:
    """Returns the data to build into the page. The schema is text, so that its numbers stay as written."""
    return {
        "scenarios": {name: _core.data(f"scenarios/{name}.toml") for name in scenarios()},
        "schema": _core.schema(),
        "measures": json.loads(_core.measures()),
        "papers": papers(),
    }


#: Scenario that the page runs with every order of ties.
TIES = "lan-tail-drop"


def answers(every: int = 1) -> dict[str, Any]:
    """Returns the results of `celltrain run --json` for every n-th scenario of the page, and all with real stacks.

    The result of one scenario also has the fingerprint of every order of ties.
    """
    chosen = [
        (name, one)
        for number, (name, one) in enumerate(scenarios().items())
        if number % every == 0 or ct.Smoltcp in stacks(one) or name == TIES
    ]
    found = {name: ct.run(one).to_dict() for name, one in chosen}
    base = ct.load(TIES).to_dict()
    ordered = {order: {**base, "switch": {**base["switch"], "tie_order": order}} for order in get_args(TieOrder)}
    found[TIES]["ties"] = {order: ct.run(ct.Scenario.model_validate(one)).fingerprint for order, one in ordered.items()}
    return found


def main() -> None:
    """Writes the file named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("data", "answers"))
    parser.add_argument("into", type=Path, help="the JSON file to write")
    arguments = parser.parse_args()
    into: Path = arguments.into
    content = data() if arguments.what == "data" else answers()
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
