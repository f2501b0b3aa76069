//! The congestion controls of the core, and the one from the page.

pub use celltrain_core::tcp::congestion::*;

pub mod scalable;
