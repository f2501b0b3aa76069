//! The topology of `docs/adding-a-topology.md`. The modules are named as in `celltrain-scenario`, so the same file
//! compiles in both places.

pub use celltrain_scenario::{fault, scope};

pub mod topology;
