//! TCP's options, and the congestion control from `docs/adding-a-congestion-control.md`.

pub mod congestion;

/// TCP's options.
pub mod options {
    pub use celltrain_core::tcp::TcpOptions;
}
