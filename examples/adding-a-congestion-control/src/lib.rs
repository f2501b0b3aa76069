//! The congestion control of `docs/adding-a-congestion-control.md`. The modules have the same names as in
//! `celltrain-core`, so that the file of the congestion control compiles in this package and in the core.

pub use celltrain_core::units;

pub mod tcp;
