"""Does what docs/adding-a-measure.md says, in a copy of the project, and runs what comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from adding import applied, cargo, formatted
from pages import ROOT

PAGE = ROOT / "docs" / "adding-a-measure.md"

# Runs a scenario with the page's measure in place, and prints the measure's line.
RUN_TEST = """\
use std::sync::atomic::AtomicBool;

use celltrain_core::cancellation::CancellationToken;
use celltrain_run::answer::outlined;
use celltrain_run::runner::{How, Share, one};
use celltrain_run::scenario::Handle;
use celltrain_run::tables;
use celltrain_scenario::{Machine, read_toml};
use serde_json::{Value, json};

#[test]
fn an_answer_has_the_measure_of_the_page() {
    let text = std::fs::read_to_string("../../scenarios/lan-epd.toml").unwrap();
    let text = text.replace("duration = \\"10s\\"", "duration = \\"100ms\\"");
    let (handle, reading) = Handle::of_reading(read_toml(&text, "lan-epd.toml", Machine::default()));
    assert_eq!(reading.faults, []);
    let handle = handle.unwrap();
    let run = one(&handle, None, How::default(), &AtomicBool::new(false), &Share::default()).unwrap();
    let answer: Value = serde_json::from_str(&run.answer).unwrap();
    let port = answer["ports"].as_array().unwrap().iter().find(|port| port["name"] == answer["bottleneck"]).unwrap();
    let [offered, lost, discarded] =
        ["offered_cells", "lost_cells", "discarded_cells"].map(|name| port[name].as_f64().unwrap());
    assert!(lost + discarded > 0.0, "the bottleneck lost cells");
    assert_eq!(port["loss_ratio"], json!((lost + discarded) / offered));

    let checked = handle.checked(&CancellationToken::never()).unwrap();
    let outline = outlined(&checked.network(1, &CancellationToken::never()).unwrap());
    assert_eq!(outline["ports"][0]["loss_ratio"], 1, "a plan may name it");

    let described = tables::described_all();
    let lines = described["ports"].as_array().unwrap();
    println!("described: {}", lines.iter().find(|line| line["name"] == "loss_ratio").unwrap());
}
"""


@pytest.fixture(scope="module")
def project() -> Path:
    """A copy of the project with the measure of the page in it."""
    return applied(PAGE, also={"crates/celltrain-run/tests/adding_a_measure.rs": RUN_TEST}, of=Path(__file__))


def test_the_measure_of_the_page_compiles_and_passes_its_tests_and_those_for_every_table(project: Path):
    output = cargo(project, "test", "--locked", "--package", "celltrain-run", "--lib", "t")
    own = re.findall(r"^test tables::port::tests::(\w+) \.\.\. ok$", output, re.MULTILINE)
    assert own == [
        "a_port_where_no_cell_arrived_has_no_loss_ratio",
        "cells_that_are_lost_and_those_that_are_discarded_count_alike",
    ]
    for name in ("no_name_is_twice_in_a_table_and_every_line_says_what_it_is", "the_outline_has_what_the_answer"):
        assert re.search(rf"^test answer::tests::{name}\w* \.\.\. ok$", output, re.MULTILINE), output


def test_an_answer_has_it_and_its_line_on_the_page_of_measures_is_the_one_of_the_table(project: Path):
    arguments = ("--package", "celltrain-run", "--test", "adding_a_measure", "--", "--nocapture")
    output = cargo(project, "test", "--locked", *arguments)
    [described] = re.findall(r"^.*described: (.*)$", output, re.MULTILINE)
    line = json.loads(described)
    cells = (f"`{line['name']}`", line["unit"], line["kind"], line["meaning"])
    assert f"| {' | '.join(cells)} |\n" in (project / "docs" / "measures.md").read_text()


def test_the_code_of_the_page_is_formatted(project: Path):
    formatted(project, "celltrain-run")


def test_every_table_and_the_type_of_its_rows_is_on_the_page():
    tables = ROOT / "crates" / "celltrain-run" / "src" / "tables"
    found = {
        (path.name, re.search(r"Measure<(\w+)>;", path.read_text())[1])  # type: ignore[index]
        for path in tables.glob("*.rs")
        if path.name != "mod.rs"
    }
    rows = re.findall(r"^\| `(\w+\.rs)` \| .* \| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert set(rows) == found
