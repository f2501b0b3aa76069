"""JSON answers of the commands that use a store, compared field by field with `answers/`.

`CELLTRAIN_BLESS=1 pytest python/tests/test_answers.py` rewrites the answers. Fields may be added, but should never be
removed or renamed.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, Command
from tunes import PLAN as TUNE

from celltrain.ensemble.store import Store

ANSWERS = Path(__file__).parent / "answers"
#: Fields that differ between runs of a command, between versions or between machines.
CHANGING = {
    "elapsed_seconds",
    "rate",
    "seconds",
    "version",
    "commit",
    "bytes",
    "fingerprint_version",
    "parts",
    "threads",
}
PLAIN = """\
name = "buffers"
scenario = "small.toml"
measures = ["efficiency", "fairness", "cells.lost", "flows.sum(*).timeouts"]
axes = { "port.bottleneck.buffer" = [60, 200], tcp = { path = "tcp", values = { vanilla = "vanilla", sack = "sack" } } }
seeds = { first = 7, count = 3 }
"""
#: A plan with points that share a scenario, a measure missing from some runs, failing runs and series.
AWKWARD = """\
scenario = "small.toml"
measures = ["efficiency", "cells.lost / flows.sum(*).timeouts", "fairness"]
seeds = { first = 3, count = 3 }
series = { record = ["queue"], step = "5ms" }
[axes]
threshold = { path = "port.bottleneck.policy.epd.threshold", values = [50, 60, 100] }
delay = { path = "topology.n_source.link_delay", values = ["5us", "0.005ms", "50us"] }
"""
NARROW = """\
scenario = "small.toml"
measures = ["efficiency", "fairness"]
axes = { "topology.n_source.link_delay" = ["5us", "1ms"], duration = ["20ms", "200ms"] }
seeds = { until = { measure = "efficiency", interval = 0.02, at_least = 3, at_most = 8 } }
"""
#: Names of nightly answers begin with one of these words: the commands take seconds.
LONG = ("report-", "tune")
#: Names of answers, and their commands. The last command prints the answer.
COMMANDS = {
    "sweep": ["sweep plain.toml --store out --json"],
    "sweep-again": ["sweep plain.toml --store out --json", "sweep plain.toml --store out --resume --json"],
    "sweep-awkward": ["sweep awkward.toml --store out --json"],
    "sweep-narrow": ["sweep narrow.toml --store out --json"],
    "show": ["sweep plain.toml --store out", "store show out --json"],
    "verify": ["sweep awkward.toml --store out", "store verify out --json"],
    "report": ["sweep plain.toml --store out", "report out --out page --json"],
    "report-baseline": ["sweep plain.toml --store out", "report out --out page --baseline tcp=vanilla --json"],
    "report-awkward": ["sweep awkward.toml --store out", "report out --out page --json"],
    "report-compare": [
        "sweep plain.toml --store out",
        "sweep plain.toml --store other --set port.bottleneck.policy.epd.threshold=40",
        "report out --compare other --out page --json",
    ],
    "retry": ["sweep awkward.toml --store out", "sweep awkward.toml --store out --resume --retry-failed --json"],
    "tune": ["tune tune.toml --store out --json"],
    "compare": ["compare small.toml lan-epd --seeds 2 --vary duration=50ms --json"],
    "reproduce": ["reproduce af-96-1269 --table 1 --seeds 2 --json"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the commands use."""
    files = {"small": SMALL, "plain": PLAIN, "awkward": AWKWARD, "narrow": NARROW, "tune": TUNE}
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same(name: str, found: Any) -> None:
    """Compares an answer with the saved answer."""
    file = ANSWERS / f"{name}.json"
    if os.environ.get("CELLTRAIN_BLESS") == "1":
        file.write_text(json.dumps(found, indent=1) + "\n")
    assert json.loads(json.dumps(found)) == json.loads(file.read_text())


def steady(answer: Any) -> Any:
    """Returns an answer without the values that differ between runs."""
    if isinstance(answer, dict):
        return {key: None if key in CHANGING else steady(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [steady(value) for value in answer]
    if isinstance(answer, str):
        return re.sub(r"celltrain \d+\.\d+\.\d+\S*", "celltrain VERSION", answer)
    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] if name.startswith(LONG) else []) for name in COMMANDS],
)
def test_each_command_gives_its_saved_json_output(
    name: str, celltrain: Command, folder: Path, request: pytest.FixtureRequest
) -> None:
    if any("awkward" in command for command in COMMANDS[name]):
        request.getfixturevalue("failing")
    if name.startswith("report"):
        # The answer contains only the names of figures. test_reports.py tests their contents.
        request.getfixturevalue("empty_figures")
    for command in COMMANDS[name]:
        answer = celltrain(*command.split())
    same(name, {"code": answer.code, "answer": steady(answer.json), "errors": answer.err.splitlines()})


@pytest.mark.parametrize("name", ["plain", "awkward", "narrow"])
def test_the_database_tables_of_a_results_store_match_the_saved_ones(
    name: str, celltrain: Command, folder: Path, request: pytest.FixtureRequest
) -> None:
    if name == "awkward":
        request.getfixturevalue("failing")
    celltrain("sweep", f"{name}.toml", "--store", "out")
    store = Store.open("out")
    tables = {"table": store.table(), "wide": store.wide(), "summary": store.summary(), "failures": store.failures()}
    some = store.table(["fairness", "efficiency"])
    found = {
        what: {
            "columns": [
                [field.name, str(field.type), sorted(map(str, (field.metadata or {}).items()))]
                for field in table.schema
            ],
            "rows": [
                list(map(str, row.values()))
                for row in table.drop_columns(
                    [one for one in ("version", "profile", "configuration", "run_key") if one in table.column_names]
                ).to_pylist()
            ],
        }
        for what, table in {**tables, "some": some}.items()
    }
    configurations = sorted(set(store.table()["configuration"].to_pylist()))
    same(f"tables-{name}", {**found, "configurations": configurations})


def test_every_saved_json_output_belongs_to_a_tested_command() -> None:
    wanted = {*COMMANDS, *(f"tables-{name}" for name in ("plain", "awkward", "narrow"))}
    assert {path.stem for path in ANSWERS.iterdir()} == wanted
