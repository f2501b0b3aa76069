"""Follows docs/adding-a-congestion-control.md in a copy of the project, and runs the result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import MODEL_HEADINGS, ROOT, headings, prose, section
from project_copy import added, build, page_of

PAGE = page_of("congestion_control")


@pytest.mark.nightly
def test_the_congestion_control_in_the_tutorial_compiles_and_passes_all_tests_of_congestion_controls():
    output = build().run(
        "celltrain-core", "celltrain_core", "tcp::congestion::scalable::", "tcp::congestion::conformance::"
    )
    own = re.findall(r"^test tcp::congestion::scalable::tests::(\w+) \.\.\. ok$", output, re.MULTILINE)
    page = added("congestion_control")["docs/models/scalable.md"]
    named = re.findall(r"`(\w+_\w+_\w+_\w+)`", section(page, "Validation"))
    assert sorted(own) == sorted(named), "the page names all tests of the module"
    assert len(own) >= 3
    assert len(re.findall(r"^test tcp::congestion::conformance::\w+ \.\.\. ok$", output, re.MULTILINE)) >= 5


@pytest.mark.nightly
def test_a_scenario_can_name_the_congestion_control_of_the_tutorial():
    output = build().run("celltrain-run", "adding", "congestion_control::")
    assert "test congestion_control::a_scenario_can_select_the_example_congestion_control_by_name ... ok" in output


def test_the_example_page_for_a_new_congestion_control_has_the_required_headings(tmp_path: Path):
    page = tmp_path / "scalable.md"
    page.write_text(added("congestion_control")["docs/models/scalable.md"])
    assert headings(prose(page)) == MODEL_HEADINGS


def test_the_tutorial_lists_every_method_that_a_congestion_control_may_define():
    trait = (ROOT / "crates/celltrain-core/src/tcp/congestion/mod.rs").read_text()
    trait = trait.split("pub trait CongestionControl")[1].split("\n}\n")[0]
    calls = re.findall(r"^    fn (\w+)\(", trait, re.MULTILINE)
    asked = section(PAGE.read_text(), "Methods of a control")
    assert calls == [call for call in calls if f"`{call}`" in asked]
