//! The policy of `docs/adding-a-policy.md`. The modules are named as in the core, so the same file compiles in both
//! places.

pub use celltrain_core::{error, index, rng};

pub mod policy;
