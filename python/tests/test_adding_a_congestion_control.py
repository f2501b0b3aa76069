"""Does what docs/adding-a-congestion-control.md says, in a copy of the project, and runs what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from adding import applied, cargo, formatted
from pages import MODEL_HEADINGS, ROOT, headings, prose, section

PAGE = ROOT / "docs" / "adding-a-congestion-control.md"
# Reads the scenario of the page's model with the page's control in place, and runs a little of it on both engines.
SCENARIO_TEST = """\
use celltrain_core::engine::Engine;
use celltrain_core::probe::Nothing;
use celltrain_core::tcp::Congestion;
use celltrain_scenario::{build, read_toml};

/// cwnd of every connection after a fifth of a second, on one of the engines.
fn windows(text: &str, engine: Engine) -> Vec<f64> {
    let reading = read_toml(text, "scalable.toml");
    assert_eq!(reading.faults, []);
    let network = build::network(&reading.scenario.unwrap(), 1);
    let result = engine.run(&network, &mut Nothing, |_| true).unwrap();
    result.flows.iter().map(|flow| flow.cwnd_segments).collect()
}

#[test]
fn a_scenario_chooses_the_control_by_its_name() {
    let page = std::fs::read_to_string("../../docs/models/scalable.md").unwrap();
    let text = page.split("```toml\\n").nth(1).unwrap().split("```").next().unwrap();
    let scenario = read_toml(text, "scalable.toml").scenario.unwrap();
    assert_eq!(scenario.tcp.options().congestion, Congestion::Scalable);

    // So that slow start is over at once.
    let text = text.replace("duration = \\"1s\\"", "duration = \\"200ms\\"");
    let text = text.replace("[tcp.sack]", "[tcp.sack]\\ninitial_ssthresh = \\"10240B\\"");
    let scalable = windows(&text, Engine::Reference);
    assert_eq!(scalable, windows(&text, Engine::Fast), "both engines run it");
    // 20 segments, and 0.01 with every acknowledgement.
    for cwnd in &scalable {
        let acknowledgements = (cwnd - 20.0) / 0.01;
        assert!(acknowledgements > 1.0 && (acknowledgements - acknowledgements.round()).abs() < 1e-6, "{cwnd}");
    }
    let other = windows(&text.replace("\\"scalable\\"", "\\"jacobson\\""), Engine::Reference);
    assert_ne!(scalable, other, "it is its own");

    let refused = read_toml(&text.replace("\\"scalable\\"", "\\"scaleable\\""), "s.toml");
    assert!(refused.faults[0].message.contains("\\"scalable\\""), "{:?}", refused.faults);
}
"""


@pytest.fixture(scope="module")
def project() -> Path:
    """A copy of the project with the control of the page in it."""
    test = "crates/celltrain-scenario/tests/adding_a_congestion_control.rs"
    return applied(PAGE, also={test: SCENARIO_TEST}, of=Path(__file__))


def test_the_control_of_the_page_compiles_and_passes_its_tests_and_those_for_every_control(project: Path):
    output = cargo(project, "test", "--locked", "--package", "celltrain-core", "--lib", "tcp::congestion::")
    own = re.findall(r"^test tcp::congestion::scalable::tests::(\w+) \.\.\. ok$", output, re.MULTILINE)
    page = (project / "docs" / "models" / "scalable.md").read_text()
    named = re.findall(r"`(\w+_\w+_\w+_\w+)`", section(page, "Validation"))
    assert sorted(own) == sorted(named), "the page names the tests there are"
    assert len(own) >= 3
    assert len(re.findall(r"^test tcp::congestion::conformance::\w+ \.\.\. ok$", output, re.MULTILINE)) >= 5


def test_a_scenario_chooses_the_control_of_the_page_by_its_name(project: Path):
    output = cargo(
        project, "test", "--locked", "--package", "celltrain-scenario", "--test", "adding_a_congestion_control"
    )
    assert "test a_scenario_chooses_the_control_by_its_name ... ok" in output


def test_the_code_of_the_page_is_formatted(project: Path):
    formatted(project, "celltrain-core")


def test_the_model_page_of_the_page_has_the_required_headings(project: Path):
    assert headings(prose(project / "docs" / "models" / "scalable.md")) == MODEL_HEADINGS


def test_every_call_of_a_control_is_on_the_page():
    trait = (ROOT / "crates/celltrain-core/src/tcp/congestion/mod.rs").read_text()
    trait = trait.split("pub trait CongestionControl")[1].split("\n}\n")[0]
    calls = re.findall(r"^    fn (\w+)\(", trait, re.MULTILINE)
    asked = section(PAGE.read_text(), "What a control is asked")
    assert calls == [call for call in calls if f"`{call}`" in asked]
