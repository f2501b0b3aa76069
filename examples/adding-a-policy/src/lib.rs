//! The policy of `docs/adding-a-policy.md`. The modules have the same names as in the core, so the same file compiles
//! here and in the core.

pub use celltrain_core::{error, index, rng};

pub mod policy;
