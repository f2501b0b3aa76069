"""Does what docs/adding-a-policy.md says, in a copy of the project, and runs what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from adding import applied, cargo, formatted
from pages import MODEL_HEADINGS, ROOT, headings, prose, section

PAGE = ROOT / "docs" / "adding-a-policy.md"
# Reads the page's scenario with the page's policy in place, and runs a little of it.
SCENARIO_TEST = """\
use celltrain_core::engine::Engine;
use celltrain_core::probe::Nothing;
use celltrain_scenario::{build, read_toml};

#[test]
fn the_scenario_of_the_page_is_read_and_runs() {
    let text = std::fs::read_to_string("../../scenarios/lan-dynamic-threshold.toml").unwrap();
    let reading = read_toml(&text, "lan-dynamic-threshold.toml");
    assert_eq!(reading.faults, []);
    let mut scenario = reading.scenario.unwrap();
    assert_eq!(scenario.port["bottleneck"].policy.name(), "dynamic_threshold");
    scenario.duration = "50ms".parse().unwrap();
    let network = build::network(&scenario, 1);
    let result = Engine::Reference.run(&network, &mut Nothing, |_| true).unwrap();
    let port = &result.ports[network.bottleneck];
    assert!(port.counters.discarded_frame > 0, "the policy refused frames");
    assert!(port.max_queue_cells < 1000, "and left part of the buffer empty");

    let refused = read_toml(&text.replace("alpha = 1.0", "alpha = 0.0"), "s.toml");
    assert!(refused.faults[0].message.contains("dynamic_threshold.alpha = 0 admits no frame"), "{:?}", refused.faults);
    let listed = read_toml(&text.replace("policy.dynamic_threshold", "policy.x"), "s.toml");
    assert!(listed.faults[0].message.contains("dynamic_threshold"), "{:?}", listed.faults);
}
"""


@pytest.fixture(scope="module")
def project() -> Path:
    """A copy of the project with the policy of the page in it."""
    return applied(PAGE, also={"crates/celltrain-scenario/tests/adding_a_policy.rs": SCENARIO_TEST}, of=Path(__file__))


def test_the_policy_of_the_page_compiles_and_passes_its_tests_and_those_for_every_policy(project: Path):
    output = cargo(project, "test", "--locked", "--package", "celltrain-core", "--lib", "policy::")
    own = re.findall(r"^test policy::dynamic_threshold::tests::(\w+) \.\.\. ok$", output, re.MULTILINE)
    page = (project / "docs" / "models" / "dynamic_threshold.md").read_text()
    named = re.findall(r"`(\w+_\w+_\w+_\w+)`", section(page, "Validation"))
    assert sorted(own) == sorted(named), "the page names the tests there are"
    assert len(own) >= 4
    assert len(re.findall(r"^test policy::conformance::\w+ \.\.\. ok$", output, re.MULTILINE)) >= 5
    vetted = cargo(project, "test", "--locked", "--package", "celltrain-run", "--lib", "vetting::")
    assert len(re.findall(r"^test vetting::tests::\w+ \.\.\. ok$", vetted, re.MULTILINE)) >= 5


def test_the_scenario_of_the_page_is_read_and_runs(project: Path):
    output = cargo(project, "test", "--locked", "--package", "celltrain-scenario", "--test", "adding_a_policy")
    assert "test the_scenario_of_the_page_is_read_and_runs ... ok" in output


def test_the_code_of_the_page_is_formatted(project: Path):
    formatted(project, "celltrain-core")


def test_the_model_page_of_the_page_has_the_required_headings(project: Path):
    assert headings(prose(project / "docs" / "models" / "dynamic_threshold.md")) == MODEL_HEADINGS
