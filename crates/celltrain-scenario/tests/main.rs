//! Tests of whole scenarios in a single program, because each test program is compiled and linked with the engines.
//!
//! `cargo test -p celltrain-scenario --test integration differential::` runs the tests of one module.

mod cancellation;
#[path = "differential/main.rs"]
mod differential;
mod fingerprints;
#[path = "formulas/main.rs"]
mod formulas;
mod rate_control;
