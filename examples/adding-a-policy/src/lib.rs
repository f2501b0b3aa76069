//! The policy of `docs/adding-a-policy.md`. The modules have the core's names, so its file compiles here and there.

pub use celltrain_core::{error, index, rng};

pub mod policy;
