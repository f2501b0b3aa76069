//! Tests of whole scenarios. They are one program, because each test program is compiled and linked with the engines.
//!
//! `cargo test -p celltrain-scenario --test integration differential::` runs the tests of one module.

mod cancellation;
#[path = "differential/main.rs"]
mod differential;
#[path = "field/main.rs"]
mod field;
mod fingerprints;
#[path = "formulas/main.rs"]
mod formulas;
#[path = "laws/main.rs"]
mod laws;
#[path = "ns2/main.rs"]
mod ns2;
mod rate_control;

use std::path::Path;

/// Returns the names and texts of the scenarios in a folder of the repository.
fn scenarios_in(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scenarios = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut found: Vec<_> = scenarios.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect();
    found.sort();
    assert!(!found.is_empty(), "the folder contains scenarios");
    found
}
