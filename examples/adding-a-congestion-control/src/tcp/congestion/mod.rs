//! The congestion controls of `celltrain-core`, and the one from `docs/adding-a-congestion-control.md`.

pub use celltrain_core::tcp::congestion::*;

pub mod scalable;
