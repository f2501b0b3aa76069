//! The policy of `docs/adding-a-policy.md`. The modules have the same names as in `celltrain-core`, so that the file of
//! the policy compiles in this package and in the core.

pub use celltrain_core::{error, index, rng};

pub mod policy;
