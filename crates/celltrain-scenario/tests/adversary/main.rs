//! Random scenarios at edge values: none panics, hangs or is read otherwise than it says.

mod found;
use celltrain_scenario::{Machine, Scenario, read_toml};
const MACHINE: Machine = Machine { memory: Some(1 << 28), addresses: None };
/// The scenario of a text that is sound.
fn scenario(text: &str) -> Scenario {
    let reading = read_toml(text, "found.toml", MACHINE);
    reading.scenario.unwrap_or_else(|| panic!("{:?}\n{text}", reading.faults))
}

/// The keys a text is refused for.
fn keys(text: &str) -> Vec<String> {
    let reading = read_toml(text, "found.toml", MACHINE);
    assert!(reading.scenario.is_none(), "{text}");
    reading.faults.into_iter().map(|fault| fault.key).collect()
}
