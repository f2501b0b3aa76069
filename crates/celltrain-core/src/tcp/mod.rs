//! TCP as in the papers: a sender that always has data, a receiver that acknowledges, and coarse BSD timers.
//!
//! Source: `docs/mechanisms.md` section 3; Jacobson 1988; RFC 793, 1122, 7323. The modules are [`sender`],
//! [`receiver`], [`rtt`] (the estimator), [`timers`] (the coarse clock), `congestion/` (growth and reduction of the
//! window), `recovery/` (reactions to loss), [`scoreboard`] (selective acknowledgements), [`sequence`] (32-bit sequence
//! numbers) and [`WindowLoss`] (deliberate losses). The connections of flows are already open; those of requests may open
//! with a handshake. The application always has data to send, and only full segments are sent.

pub mod congestion;
mod delivery;
mod hystart;
mod marks;
mod options;
mod pacing;
mod profile;
pub mod receiver;
pub mod recovery;
pub mod rtt;
pub mod scoreboard;
pub mod sender;
pub mod sequence;
pub mod start;
pub mod timers;
mod window_loss;

pub use congestion::Congestion;
pub use congestion::rules::{
    DuplicateAcks, RepeatedCongestion, SsthreshArithmetic, SsthreshRule, UnusedWindow, WindowArithmetic, WindowGrowth,
    WindowOptions, WindowRules,
};
pub use hystart::Hystart;
pub use options::{Ecn, TcpOptions};
pub use pacing::Pacing;
pub use profile::Rules;
pub use receiver::{
    DelayedAcks, DuplicateSack, GapAcks, OfferedWindow, OutOfOrder, Receiver, ReceiverOptions, ReceiverRules,
    RepeatedAcks,
};
pub use recovery::TcpConfig;
pub use recovery::rules::{
    FastRetransmit, FullAcks, LimitedTransmit, LossDetection, PartialAckTimer, PartialAcks, PipeRules, RecoveryEnd,
    RecoveryOptions, RecoveryRules, RecoveryWindow, Reduction,
};
pub use rtt::{EstimateForgotten, RttArithmetic, RttSampling};
pub use scoreboard::SackBlocks;
pub use sender::Sender;
pub use start::{AfterIdle, SlowStart, StartOptions, StartRules};
pub use timers::{Backoff, TickPhase, TimerExpiry, TimerOptions, TimerRestart, TimerRules};
pub use window_loss::WindowLoss;

/// A segment in the simulation: a range of bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset of the segment's first byte in the stream.
    pub seq: u64,
    /// Payload bytes.
    pub len: u32,
}

impl Segment {
    /// Returns the offset of the byte after the segment's last byte.
    pub fn end(self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Offset of the next byte the receiver expects.
    pub ack: u64,
    /// Window field of the header, before shifting by the connection's window scale (RFC 7323).
    pub window: u16,
}

/// Returns the window scale of a receive window: the smallest shift that makes it fit 16 bits (RFC 7323, section 2.3).
pub fn window_scale(receive_window: u64) -> u32 {
    (0..=MAX_WINDOW_SCALE).find(|&shift| u16::try_from(receive_window >> shift).is_ok()).unwrap_or(MAX_WINDOW_SCALE)
}

/// RFC 7323 (2.3): the shift is limited to 14.
const MAX_WINDOW_SCALE: u32 = 14;

#[cfg(test)]
mod packetdrill;
#[cfg(test)]
mod pipe;
#[cfg(test)]
mod script;
#[cfg(test)]
mod standards;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_scaling_is_used_only_if_the_receive_window_exceeds_64_kilobytes() {
        assert_eq!(window_scale(65535), 0);
        assert_eq!(window_scale(65536), 1);
        assert_eq!(window_scale(600_000), 4);
        assert_eq!((600_000 >> 4) << 4, 600_000, "scaling does not round the window that the papers use in WANs");
    }
}
