//! Is every shipped scenario the same run as last time? Whether it is right is another question, asked elsewhere.
//!
//! After a change that is meant to move numbers: `CELLTRAIN_BLESS=1 cargo test -p celltrain-scenario --test fingerprints`
//! writes the table anew; it is committed alone, with the reason.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use celltrain_core::engine::Engine;
use celltrain_core::probe::Nothing;
use celltrain_scenario::{Machine, build, read_toml};

/// The first simulated second tells runs apart, losses and timeouts included.
const DURATION: &str = "1s";

#[test]
fn every_shipped_scenario_is_the_same_run_as_last_time() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints.csv");
    let mut now = String::from("scenario,seed,fingerprint\n");
    for path in shipped() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut scenario = read_toml(&text, &name, Machine::default()).scenario.expect("shipped scenarios are good");
        scenario.duration = DURATION.parse().unwrap();
        for seed in [1, 2] {
            let network = build::network(&scenario, seed);
            let results = Engine::ALL.map(|engine| engine.run(&network, &mut Nothing, |_| true).unwrap());
            assert_eq!(results[0], results[1], "{name}: the engines agree");
            writeln!(now, "{name},{seed},{}", results[0].fingerprint).unwrap();
        }
    }
    if std::env::var_os("CELLTRAIN_BLESS").is_some() {
        std::fs::write(&table, &now).unwrap();
    }
    let then = std::fs::read_to_string(&table).unwrap();
    let rows = |text: &str| -> BTreeMap<String, String> {
        text.lines().filter_map(|line| line.rsplit_once(',')).map(|(k, v)| (k.to_string(), v.to_string())).collect()
    };
    assert_eq!(rows(&now), rows(&then), "a run changed: see the head of this file");
}

fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [root.join("scenarios"), root.join("papers/af-96-1269/scenarios")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    assert!(paths.len() >= 10, "the scenarios are found");
    paths
}
