//! Hosts real transport stacks as end systems of a simulated network, in simulated time.
//!
//! A stack implements [`Stack`], which has neither a clock nor sockets. [`Trial`] tests it against a bottleneck in a
//! few lines, deterministically, and writes a capture if a requirement is not met. [`Hosts`] runs stacks in any network.
//!
//! Packets travel as IP in LLC/SNAP over AAL5, and acknowledgements use the reverse VC. The simulation counts cells,
//! while this crate keeps the bytes until their frame arrives or is lost.

mod application;
mod capture;
mod clock;
mod contract;
mod driver;
pub mod ecn;
mod outcome;
#[cfg(feature = "quic")]
pub mod quic;
mod seen;
mod segments;
mod serve;
#[cfg(feature = "smoltcp")]
pub mod smoltcp;
mod stack;
mod trial;

/// Re-exported types of networks, policies and results.
pub use celltrain_core;

pub use application::{Application, Source, payload};
pub use contract::MOST_PACKETS;
pub use driver::{HostedFlow, Hosts, HostsError, MakeStacks};
pub use outcome::{FlowOutcome, Outcome};
pub use seen::{Seen, Step};
pub use segments::Segments;
pub use serve::serve;
pub use stack::{Endpoint, Packet, Report, Side, Stack};
pub use trial::Trial;

/// Compiles and runs the example in the README.
#[cfg(all(doctest, feature = "smoltcp"))]
#[doc = include_str!("../README.md")]
struct Readme;
