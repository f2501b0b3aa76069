//! The congestion control of `docs/adding-a-congestion-control.md`. The modules are named as in the core, so the same
//! file compiles in both places.

pub use celltrain_core::units;

pub mod tcp;
