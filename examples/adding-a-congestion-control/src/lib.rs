//! The control of `docs/adding-a-congestion-control.md`. The modules have the core's names, so its file compiles here
//! and there.

pub use celltrain_core::units;

pub mod tcp;
