//! Checks that no text makes the reader of scenarios panic, and that a network can be built from every accepted
//! scenario.
#![no_main]

use celltrain_core::cancellation::CancellationToken;
use celltrain_scenario::{Candidate, Reader, build};
use libfuzzer_sys::fuzz_target;

/// Maximum size of a network. Larger networks are refused before their layout.
const LARGEST: u64 = 100_000;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let fits = |candidate: Candidate<'_>| match candidate {
        Candidate::Planned(size) if size.nodes + size.flows + size.crossings > LARGEST => Err("the topology is too large".into()),
        _ => Ok(()),
    };
    let reader = Reader { source: "fuzz", fits: &fits, token: &CancellationToken::never() };
    for reading in [reader.toml(text), reader.json(text)] {
        let reading = reading.expect("no test cancels a run");
        assert_eq!(reading.scenario.is_some(), reading.faults.is_empty());
        if let Some(scenario) = reading.scenario {
            build::network(&scenario, 1);
        }
    }
});
