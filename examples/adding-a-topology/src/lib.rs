//! The topology of `docs/adding-a-topology.md`. The modules have the same names as in `celltrain-scenario`, so the same
//! file compiles here and there.

pub use celltrain_scenario::{fault, scope};

pub mod topology;
