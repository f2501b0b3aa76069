//! Tests of whole scenarios, as one program: each test program is compiled and linked with the engines again.
//!
//! `cargo test -p celltrain-scenario --test integration differential::` runs those of one module.

mod cancellation;
#[path = "differential/main.rs"]
mod differential;
mod fingerprints;
#[path = "formulas/main.rs"]
mod formulas;
mod rate_control;
