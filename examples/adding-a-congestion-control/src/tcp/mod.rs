//! TCP's options, and the congestion control from the page.

pub mod congestion;

/// TCP's options.
pub mod options {
    pub use celltrain_core::tcp::TcpOptions;
}
