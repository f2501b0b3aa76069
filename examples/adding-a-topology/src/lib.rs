//! The topology of `docs/adding-a-topology.md`. The modules have the names of `celltrain-scenario`, so its file compiles
//! here and there.

pub use celltrain_scenario::{fault, scope};

pub mod topology;
