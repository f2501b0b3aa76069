//! TCP as the papers use it: a sender that always has data, a receiver that acknowledges, and coarse BSD timers.
//!
//! Source: `docs/mechanisms.md` section 3; Jacobson 1988; RFC 793, 1122, 7323. The parts: [`sender`], [`receiver`],
//! [`rtt`] (the estimator), [`timers`] (the coarse clock), `congestion/` (how the window grows and shrinks),
//! `recovery/` (what loss makes a sender do), [`scoreboard`] (selective acknowledgements) and [`sequence`] (numbers of 32 bits), and a
//! loss made on purpose, [`WindowLoss`].
//! The connection is open and the application endless; only full segments are sent.

pub mod congestion;
mod options;
pub mod receiver;
pub mod recovery;
pub mod rtt;
pub mod scoreboard;
pub mod sender;
pub mod sequence;
pub mod timers;
mod window_loss;

pub use options::{
    Backoff, Congestion, DelayedAcks, DuplicateAcks, OutOfOrder, PartialAcks, RttArithmetic, RttSampling, SsthreshRule,
    TcpOptions, TickPhase, TimerRestart, WindowArithmetic, WindowGrowth,
};
pub use receiver::Receiver;
pub use scoreboard::SackBlocks;
pub use sender::Sender;
pub use window_loss::WindowLoss;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A segment as the simulation carries it: which bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset of its first byte in the stream.
    pub seq: u64,
    /// Payload bytes.
    pub len: u32,
}

impl Segment {
    /// Offset of the byte after its last.
    pub fn end(self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Offset of the next byte the receiver expects.
    pub ack: u64,
    /// The window field as it stands in the header: to be shifted by the connection's window scale (RFC 7323).
    pub window: u16,
}

/// The window scale of a receive window: the smallest shift after which it fits 16 bits (RFC 7323, section 2.3).
pub fn window_scale(receive_window: u64) -> u32 {
    (0..=MAX_WINDOW_SCALE).find(|&shift| u16::try_from(receive_window >> shift).is_ok()).unwrap_or(MAX_WINDOW_SCALE)
}

/// RFC 7323 (2.3): the shift is limited to 14.
const MAX_WINDOW_SCALE: u32 = 14;

macro_rules! variants {
    ($($(#[$doc:meta])* $module:ident: $Variant:ident,)*) => {
        /// The TCP of a connection, as a scenario names it: one table whose key is the variant's name.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[schemars(rename = "Tcp")]
        pub enum TcpConfig {
            $($(#[$doc])* $Variant(TcpOptions),)*
        }

        impl TcpConfig {
            /// Every variant's name, in the order of the list.
            pub const NAMES: &[&str] = &[$(stringify!($module)),*];

            /// The variant's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Variant(_) => stringify!($module),)*
                }
            }

            /// The variant of this name with these options.
            pub fn named(name: &str, options: TcpOptions) -> Option<Self> {
                match name {
                    $(stringify!($module) => Some(Self::$Variant(options)),)*
                    _ => None,
                }
            }

            /// The options, the same for every variant.
            pub fn options(&self) -> &TcpOptions {
                match self {
                    $(Self::$Variant(options) => options,)*
                }
            }

            /// Whether the two ends exchange selective acknowledgements (RFC 2018).
            pub fn selective(&self) -> bool {
                self.recovery().selective()
            }

            /// The variant's loss recovery.
            pub fn recovery(&self) -> Box<dyn recovery::Recovery> {
                let mut recovery: Box<dyn recovery::Recovery> = match self {
                    $(Self::$Variant(_) => Box::new(recovery::$module::$Variant::default()),)*
                };
                recovery.configure(self.options());
                recovery
            }
        }
    };
}

variants! {
    /// No fast retransmit: every loss waits for the retransmission timer (ATM Forum 96-1269).
    vanilla: Vanilla,
    /// Fast retransmit on the third duplicate acknowledgement, then slow start (Jacobson 1988).
    tahoe: Tahoe,
    /// Fast retransmit and fast recovery, which the first acknowledgement of new data ends (RFC 5681).
    reno: Reno,
    /// Fast recovery until everything outstanding is acknowledged, a hole a round trip (RFC 6582).
    newreno: Newreno,
    /// The same, with a new segment for every two duplicate acknowledgements (Hoe 1996).
    newreno_hoe: NewrenoHoe,
    /// Selective acknowledgements, the network's load read off the scoreboard (RFC 6675).
    sack: Sack,
    /// Selective acknowledgements, the network's load estimated (Fall and Floyd 1996).
    sack_pipe: SackPipe,
}

#[cfg(test)]
mod pipe;
#[cfg(test)]
mod script;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_scaling_is_on_only_above_64_kilobytes() {
        assert_eq!(window_scale(65535), 0);
        assert_eq!(window_scale(65536), 1);
        assert_eq!(window_scale(600_000), 4);
        assert_eq!((600_000 >> 4) << 4, 600_000, "the papers' WAN window is advertised exactly");
    }
}
