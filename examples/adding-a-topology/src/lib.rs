//! The topology of `docs/adding-a-topology.md`. The modules have the same names as in `celltrain-scenario`, so that the
//! file of the topology compiles in this package and in `celltrain-scenario`.

pub use celltrain_scenario::{fault, scope};

pub mod topology;
