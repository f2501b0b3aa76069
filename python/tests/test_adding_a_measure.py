"""Follows docs/adding-a-measure.md in a copy of the project, and runs the result."""

from __future__ import annotations

import json
import re

import pytest
from pages import ROOT
from project_copy import build, page_of

PAGE = page_of("measure")


@pytest.mark.nightly
def test_the_measure_in_the_tutorial_compiles_and_passes_all_tests_of_measures():
    output = build().run("celltrain-run", "celltrain_run", "tables::", "answer::")
    own = re.findall(r"^test tables::port::tests::(\w+) \.\.\. ok$", output, re.MULTILINE)
    # Cargo runs tests on threads, so the order of their lines varies.
    assert sorted(own) == [
        "the_loss_ratio_counts_cells_lost_at_a_full_buffer_and_cells_discarded_by_a_policy",
        "the_loss_ratio_of_a_port_at_which_no_cells_arrived_is_undefined",
    ]
    for name in (
        "measure_names_are_unique_within_their_table_and_every_measure_has_a_description",
        "the_outline_of_a_result_has_the_same_keys_as_the_result",
    ):
        assert re.search(rf"^test answer::tests::{name}\w* \.\.\. ok$", output, re.MULTILINE), output


@pytest.mark.nightly
def test_a_result_has_the_example_measure_with_its_unit_and_meaning():
    output = build().run("celltrain-run", "adding", "measure::", "--nocapture")
    [described] = re.findall(r"^.*described: (.*)$", output, re.MULTILINE)
    line = json.loads(described)
    assert (line["name"], line["unit"], line["kind"]) == ("loss_ratio", "1", "float64")
    assert line["meaning"]


def test_the_tutorial_lists_every_measure_table_and_the_type_of_its_rows():
    tables = ROOT / "crates" / "celltrain-run" / "src" / "tables"
    found = {
        (path.name, re.search(r"Measure<(\w+)>;", path.read_text())[1])  # type: ignore[index]
        for path in tables.glob("*.rs")
        if path.name != "mod.rs"
    }
    rows = re.findall(r"^\| `(\w+\.rs)` \| .* \| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert set(rows) == found
