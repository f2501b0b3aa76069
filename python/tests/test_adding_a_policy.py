"""Follows docs/adding-a-policy.md in a copy of the project, and runs the result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import MODEL_HEADINGS, headings, prose, section
from project_copy import added, build


@pytest.mark.nightly
def test_the_policy_in_the_tutorial_compiles_and_passes_all_tests_of_policies():
    output = build().run(
        "celltrain-core", "celltrain_core", "policy::per_vc_dynamic_threshold::", "policy::conformance::"
    )
    own = re.findall(r"^test policy::per_vc_dynamic_threshold::tests::(\w+) \.\.\. ok$", output, re.MULTILINE)
    page = added("policy")["docs/models/per_vc_dynamic_threshold.md"]
    named = re.findall(r"`(\w+_\w+_\w+_\w+)`", section(page, "Validation"))
    assert sorted(own) == sorted(named), "the page names all tests of the module"
    assert len(own) >= 4
    assert len(re.findall(r"^test policy::conformance::\w+ \.\.\. ok$", output, re.MULTILINE)) >= 5
    vetted = build().run("celltrain-run", "celltrain_run", "vetting::")
    assert len(re.findall(r"^test vetting::tests::\w+ \.\.\. ok$", vetted, re.MULTILINE)) >= 5


@pytest.mark.nightly
def test_the_scenario_in_the_tutorial_for_adding_a_policy_is_valid_and_runs():
    output = build().run("celltrain-run", "adding", "policy::")
    assert "test policy::the_scenario_in_the_tutorial_for_adding_a_policy_is_valid_and_runs ... ok" in output


def test_the_example_page_for_a_new_policy_has_the_required_headings(tmp_path: Path):
    page = tmp_path / "per_vc_dynamic_threshold.md"
    page.write_text(added("policy")["docs/models/per_vc_dynamic_threshold.md"])
    assert headings(prose(page)) == MODEL_HEADINGS
