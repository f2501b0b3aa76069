//! Fixed benchmark scenarios, selected by name, and a function that runs and measures one of them.
//!
//! The program `celltrain-bench` runs a scenario once. `celltrain bench` times whole scenarios on both engines, and
//! `scripts/instruction_guard.py` counts instructions. All of them take the scenarios from here.

pub mod allocator;
mod cases;
mod measure;
mod networks;

pub use cases::{Axis, Case, Group, all, named};
pub use measure::{Measured, measure, peak_rss_mib};
