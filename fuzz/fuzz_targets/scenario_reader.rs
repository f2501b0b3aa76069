//! No text may panic the reader, and a scenario that passes must build.
#![no_main]

use celltrain_scenario::{Machine, build, read_json, read_toml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let machine = Machine { memory: Some(1 << 26), addresses: None };
    for reading in [read_toml(text, "fuzz", machine), read_json(text, "fuzz", machine)] {
        assert_eq!(reading.scenario.is_some(), reading.faults.is_empty());
        if let Some(scenario) = reading.scenario {
            build::network(&scenario, 1);
        }
    }
});
