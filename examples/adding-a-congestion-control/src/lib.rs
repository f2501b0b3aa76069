//! The congestion control of `docs/adding-a-congestion-control.md`. The modules have the same names as in the core, so
//! the same file compiles here and in the core.

pub use celltrain_core::units;

pub mod tcp;
