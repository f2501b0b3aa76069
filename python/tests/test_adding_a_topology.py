"""Does what docs/adding-a-topology.md says, in a copy of the project, and runs what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from adding import applied, cargo, formatted
from pages import MODEL_HEADINGS, ROOT, headings, prose, section

PAGE = ROOT / "docs" / "adding-a-topology.md"
# Reads the page's scenario with the page's topology in place, and runs a little of it.
SCENARIO_TEST = """\
use celltrain_core::engine::Engine;
use celltrain_core::probe::Nothing;
use celltrain_scenario::{build, read_toml};

#[test]
fn the_scenario_of_the_page_is_read_and_runs() {
    let text = std::fs::read_to_string("../../scenarios/ring-selective-drop.toml").unwrap();
    let read = |text: &str| read_toml(text, "ring.toml");
    let reading = read(&text);
    assert_eq!((&reading.faults[..], &reading.warnings[..]), (&[][..], &[][..]));
    let mut scenario = reading.scenario.unwrap();
    assert_eq!(scenario.topology.name(), "ring");
    scenario.duration = "200ms".parse().unwrap();
    let network = build::network(&scenario, 1);
    let result = Engine::Reference.run(&network, &mut Nothing, |_| true).unwrap();
    assert_eq!(result.flows.len(), 6);
    for flow in &result.flows {
        // The page's formula, C / h, of which a segment of 512 bytes in 12 cells of 53 is carried: 51.84 x 512 / 636.
        assert!((flow.max_min_mbps - 41.733).abs() < 0.001, "{}: {}", flow.name, flow.max_min_mbps);
        assert!(flow.delivered_bytes > 0, "{}", flow.name);
    }
    let discarding = result.ports.iter().filter(|port| port.counters.discarded_frame > 0).count();
    assert!(discarding >= 3, "{discarding} ports refused frames");

    for (from, to, message) in [
        ("reach = 3", "reach = 6", "topology.ring.reach = 6 leads round the ring of 6 switches; it must be below that"),
        ("switches = 6", "switches = 2", "topology.ring.switches = 2 is not"),
        ("[topology.ring]", "[topology.x]", "ring"),
        ("sw*->sw*", "sw1->sw2", "port.\\"sw2->sw3\\" has no buffer and no policy"),
    ] {
        let faults = read(&text.replace(from, to)).faults;
        assert!(faults.iter().any(|fault| fault.message.contains(message)), "{to}: {faults:?}");
    }
}
"""


@pytest.fixture(scope="module")
def project() -> Path:
    """A copy of the project with the topology of the page in it."""
    also = {"crates/celltrain-scenario/tests/adding_a_topology.rs": SCENARIO_TEST}
    return applied(PAGE, also=also, of=Path(__file__))


def test_the_topology_of_the_page_compiles_and_passes_its_tests_and_those_for_every_topology(project: Path):
    output = cargo(project, "test", "--locked", "--package", "celltrain-scenario", "--lib", "topology::")
    own = re.findall(r"^test topology::ring::tests::(\w+) \.\.\. ok$", output, re.MULTILINE)
    page = (project / "docs" / "models" / "ring.md").read_text()
    named = re.findall(r"`(\w+_\w+_\w+_\w+)`", section(page, "Validation"))
    assert sorted(own) == sorted(named), "the page names the tests there are"
    assert len(own) >= 3
    assert len(re.findall(r"^test topology::conformance::\w+ \.\.\. ok$", output, re.MULTILINE)) >= 5


def test_the_scenario_of_the_page_is_read_and_runs(project: Path):
    output = cargo(project, "test", "--locked", "--package", "celltrain-scenario", "--test", "adding_a_topology")
    assert "test the_scenario_of_the_page_is_read_and_runs ... ok" in output


def test_the_code_of_the_page_is_formatted(project: Path):
    formatted(project, "celltrain-scenario")


def test_the_model_page_of_the_page_has_the_required_headings(project: Path):
    assert headings(prose(project / "docs" / "models" / "ring.md")) == MODEL_HEADINGS


def test_a_topology_is_asked_what_the_page_says():
    trait = (ROOT / "crates/celltrain-scenario/src/topology/mod.rs").read_text().split("pub trait Configure {")[1]
    asked = re.findall(r"^    fn (\w+)\(", trait.split("\n}\n")[0], re.MULTILINE)
    assert all(f"`{name}`" in PAGE.read_text() for name in asked), asked
