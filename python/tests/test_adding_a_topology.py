"""Follows docs/adding-a-topology.md in a copy of the project, and runs the result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import MODEL_HEADINGS, ROOT, headings, prose, section
from project_copy import added, build, page_of

PAGE = page_of("topology")


@pytest.mark.nightly
def test_the_topology_in_the_tutorial_compiles_and_passes_all_tests_of_topologies():
    output = build().run("celltrain-scenario", "celltrain_scenario", "topology::ring::", "topology::conformance::")
    own = re.findall(r"^test topology::ring::tests::(\w+) \.\.\. ok$", output, re.MULTILINE)
    page = added("topology")["docs/models/ring.md"]
    named = re.findall(r"`(\w+_\w+_\w+_\w+)`", section(page, "Validation"))
    assert sorted(own) == sorted(named), "the page names all tests of the module"
    assert len(own) >= 3
    assert len(re.findall(r"^test topology::conformance::\w+ \.\.\. ok$", output, re.MULTILINE)) >= 5


@pytest.mark.nightly
def test_the_scenario_in_the_tutorial_for_adding_a_topology_is_valid_and_runs():
    output = build().run("celltrain-run", "adding", "topology::")
    assert "test topology::the_scenario_in_the_tutorial_for_adding_a_topology_is_valid_and_runs ... ok" in output


def test_the_example_page_for_a_new_topology_has_the_required_headings(tmp_path: Path):
    page = tmp_path / "ring.md"
    page.write_text(added("topology")["docs/models/ring.md"])
    assert headings(prose(page)) == MODEL_HEADINGS


def test_the_tutorial_lists_every_method_that_a_topology_may_define():
    trait = (ROOT / "crates/celltrain-scenario/src/topology/mod.rs").read_text().split("pub trait Configure {")[1]
    asked = re.findall(r"^    fn (\w+)\(", trait.split("\n}\n")[0], re.MULTILINE)
    assert all(f"`{name}`" in PAGE.read_text() for name in asked), asked
