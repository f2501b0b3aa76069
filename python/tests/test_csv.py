"""Names that users give never become formulas or commands in a CSV file written by a command."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import ROOT
from test_text import network
from typer.main import get_command

import celltrain as ct

FORMULA, REVERSED = "=HYPERLINK(1)", "b\u202ea"
PLAN = """scenario = "hostile.toml"
seeds = 2
measures = ["efficiency"]
axes.{axis} = {{ path = "port.default.buffer", values = {{ "{value}" = 60, "+1+1" = 100 }} }}
"""
TUNE = """scenario = "hostile.toml"
axes.duration = ["1ms"]
[tune]
objectives = {{ efficiency = "maximize", "cells.lost" = "minimize" }}
trials = 4
batch = 2
finalists = 1
[tune.seeds]
search = 1
selection = 2
confirmation = 2
[tune.parameters]
{axis} = {{ path = "port.default.policy.epd.threshold", from = 0.3, to = 1.0 }}
"""
CASE = """title = "="
source = "="
tests = "="
expect = ["flows.sum(*).goodput_mbps > 0"]
[scenario]
duration = "100ms"
topology.n_source = { sources = 1, link_delay = "5us" }
port.bottleneck = { buffer = 100, policy.tail_drop = {} }
"""
#: Arguments of every command that prints a table about a user's scenario; `{}` is the folder.
CASES = {
    "run": [["{}/hostile.toml"], ["{}/hostile.toml", "--seeds", "2"], ["{}/hostile.toml", "--out", "{}/out"]],
    "compare": [
        ["{}/hostile.toml", "{}/=HYPERLINK(1).toml", "--seeds", "2"],
        ["{}/hostile.toml", "--vary", "port.default.policy=epd,@{}/=HYPERLINK(1)p.toml", "--seeds", "2"],
        ["{}/hostile.toml", "{}/=HYPERLINK(1).toml", "--seeds", "2", "--out", "{}/compared"],
    ],
    "sweep": [["{}/plan.toml", "--store", "{}/s"]],
    "tune": [["{}/tune.toml", "--store", "{}/t"]],
    "why": [["{}/hostile.toml"]],
    "store show": [["{}/store"]],
    "check": [["{}/wrong.toml"]],
    "report": [["{}/store", "--out", "{}/report"]],
    "bottleneck": [["{}/=HYPERLINK(1)c.toml", "--senders", "reno"]],
    "vet": [["{}/=HYPERLINK(1)p.toml", "--scenarios", "lan-5", "--seeds", "1"]],
}
#: Commands whose tables contain no names given by users.
OWN = {"bench", "bound", "doctor", "list", "mmu generations", "mmu incast", "mmu thresholds", "reproduce", "study"}


def with_csv(command: Any, name: str = "") -> Iterator[str]:
    """Yields the names of the commands that have the option `--csv`."""
    for own, below in getattr(command, "commands", {}).items():
        yield from with_csv(below, f"{name} {own}".strip())
    if any("--csv" in one.opts for one in command.params):
        yield name


def check(text: str) -> None:
    assert text.replace("\n", "").replace("\r", "").isprintable()
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert cells
    for cell in cells:
        if cell.startswith(("=", "+", "-", "@", "\t")):
            float(cell)


def test_every_command_that_writes_csv_is_tested_for_spreadsheet_formulas_or_listed_as_exempt():
    from celltrain.cli import program

    assert set(with_csv(get_command(program()))) == {*CASES, *OWN, "store export"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with scenarios, plans, a policy and a store, all with hostile names."""
    made = tmp_path_factory.mktemp("hostile")
    hostile = network(FORMULA, REVERSED, name=FORMULA)
    ct.save(hostile, made / "hostile.toml")
    ct.save(network(FORMULA, name=REVERSED), made / f"{FORMULA}.toml")
    (made / f"{FORMULA}p.toml").write_text(f'name = "{FORMULA}"\npolicy.epd = {{ threshold = "60%" }}\n')
    (made / f"{FORMULA}c.toml").write_text(CASE)
    (made / "wrong.toml").write_text((made / "hostile.toml").read_text() + f'[tcp."{FORMULA}"]\n')
    (made / "plan.toml").write_text(PLAN.format(axis=f'"{FORMULA}"', value=FORMULA))
    (made / "tune.toml").write_text(TUNE.format(axis=f'"{FORMULA}"'))
    ct.sweep(ct.Plan.load(made / "plan.toml"), store=made / "store")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("command, arguments", [(name, words) for name, cases in CASES.items() for words in cases])
def test_no_csv_output_contains_a_spreadsheet_formula_or_a_control_character(
    folder, tmp_path, celltrain, command, arguments
):
    words = [word.replace("{}", str(folder)) for word in arguments]
    answer = celltrain(*command.split(), *words, "--csv", "-")
    assert answer.code == (2 if command == "check" else 0), answer.err
    if command != "why":
        # The network loses nothing, so the table of losses is empty.
        check(answer.out)
    if command in ("sweep", "tune", "store show", "report"):
        assert f"'{FORMULA}" in answer.out
    for file in folder.rglob("*.csv"):
        check(file.read_text())


def test_rows_exported_from_a_store_contain_no_spreadsheet_formulas(folder, tmp_path, celltrain):
    for wide in ([], ["--wide"]):
        out = tmp_path / "rows.csv"
        assert celltrain("store", "export", folder / "store", "--csv", *wide, "--out", out).code == 0
        check(out.read_text())
        assert "'=HYPERLINK(1)" in out.read_text()


def test_only_one_python_module_contains_code_that_writes_csv():
    writers = ("csv.writer", "csv.DictWriter", "CSVWriter", "write_csv(table, file")
    found = {
        path.name
        for path in (ROOT / "python/celltrain").rglob("*.py")
        if any(word in path.read_text() for word in writers)
    }
    assert found == {"tables.py"}
