//! Names and settings of the real transport stacks that the flows of a scenario may use.
//!
//! `celltrain-hosts` contains the stacks themselves.

use celltrain_core::error::Fault;
use celltrain_core::registry;
use celltrain_core::tcp::{TcpConfig, TcpOptions};
use celltrain_core::units::Bytes;

pub mod python;
pub mod quic;
pub mod smoltcp;

registry! {
    /// A real transport stack in a scenario: a table whose only key is the stack's name.
    #[schemars(rename = "Stack")]
    pub enum StackConfig(module::Config) {
        /// smoltcp, a TCP for embedded systems, in Rust.
        smoltcp: Smoltcp,
        /// QUIC of quinn-proto, in Rust, without encryption.
        quic: Quic,
        /// A stack of your own, as a Python class.
        python: Python,
    }

    /// Returns the stack's sizes of packets and windows.
    pub fn sizes(&self) -> StackSizes { |config| config.sizes() }

    /// Returns the key and the value of the setting that sets the length of packets.
    pub fn packet_size(&self) -> (&'static str, Bytes) { |config| config.packet_size() }

    /// Returns the faults in the stack's settings.
    pub fn check(&self) -> Vec<Fault> { |config| config.check() }
}

impl StackConfig {
    /// Returns whether packets of the stack may be ECN-capable. The packets of QUIC are ECN-capable. The code of a
    /// Python stack decides about its packets.
    pub(crate) fn may_use_ecn(&self) -> bool {
        match self {
            Self::Smoltcp(_) => false,
            Self::Quic(_) | Self::Python(_) => true,
        }
    }
}

/// Sizes of a stack, in bytes, that are needed to build the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSizes {
    /// Payload of a full segment.
    pub mss: u64,
    /// Largest window that the receiver advertises.
    pub receive_window: u64,
    /// Maximum size of the sender's buffer.
    pub send_buffer: u64,
}

impl StackSizes {
    /// Returns the simulated TCP with these sizes, from which the network takes the length of packets.
    pub(crate) fn tcp(self) -> TcpConfig {
        let Self { mss, receive_window, send_buffer } = self;
        TcpConfig::Vanilla(TcpOptions {
            mss: Bytes { bytes: mss },
            receive_window: Bytes { bytes: receive_window.max(send_buffer) },
            ..TcpOptions::default()
        })
    }
}
