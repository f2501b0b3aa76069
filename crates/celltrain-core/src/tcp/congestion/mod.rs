//! How the congestion window grows and shrinks. One file each.

pub mod cubic;
pub mod jacobson;

use super::options::{Congestion, SsthreshRule, TcpOptions, WindowArithmetic, WindowGrowth};
use crate::units::{Clock, Span, Time};
use cubic::Cubic;

/// The sender's windows, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// cwnd: fractions are kept, the usable window is whole segments.
    pub cwnd: f64,
    /// ssthresh: slow start below, congestion avoidance from here on.
    pub ssthresh: f64,
    /// rwnd in whole segments.
    pub rwnd: f64,
    /// Whether cwnd grows beyond rwnd.
    pub growth: WindowGrowth,
    /// ssthresh after a timeout.
    pub rule: SsthreshRule,
    /// How cwnd grows in congestion avoidance, and by how much congestion shrinks it.
    pub control: Control,
    /// In what numbers [`Control::Jacobson`] lets it grow.
    pub arithmetic: WindowArithmetic,
    /// MSS in bytes.
    pub mss: f64,
}

/// The congestion control of a connection with its state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Additive increase, halving; it remembers nothing.
    Jacobson,
    /// RFC 9438.
    Cubic(Cubic),
}

/// ATM Forum 96-1269, section 2: ssthresh is never below two segments.
const MIN_SSTHRESH: f64 = 2.0;

impl Windows {
    /// The windows of a connection that has sent nothing.
    pub fn new(options: &TcpOptions, clock: Clock) -> Self {
        let rwnd = options.window_segments() as f64;
        let segments = |bytes: u64| bytes as f64 / options.mss.bytes as f64;
        Self {
            cwnd: 1.0,
            ssthresh: options.initial_ssthresh.map_or(rwnd, |bytes| segments(bytes.bytes)),
            rwnd,
            growth: options.window_growth,
            rule: options.ssthresh_rule,
            control: match options.congestion {
                Congestion::Jacobson => Control::Jacobson,
                Congestion::Cubic => Control::Cubic(Cubic::new(clock)),
            },
            arithmetic: options.window_arithmetic,
            mss: options.mss.bytes as f64,
        }
    }

    /// min(cwnd, rwnd) in whole segments.
    pub fn usable(&self) -> u64 {
        // Both are positive and far below 2^53.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = self.cwnd.min(self.rwnd) as u64;
        whole
    }

    /// Whether the receiver's window has no room for a segment.
    pub fn closed(&self) -> bool {
        self.rwnd < 1.0
    }

    /// cwnd grows for one acknowledgement of new data, `acked` segments of it.
    #[inline]
    pub fn on_new_ack(&mut self, now: Time, acked: f64) {
        match self.control {
            Control::Jacobson => jacobson::on_new_ack(self),
            Control::Cubic(mut cubic) => {
                cubic.on_new_ack(self, now, acked);
                self.control = Control::Cubic(cubic);
            }
        }
    }

    /// A segment that was sent once took this long to be acknowledged.
    #[inline]
    pub fn on_round_trip(&mut self, took: Span) {
        if let Control::Cubic(cubic) = &mut self.control {
            cubic.on_round_trip(took);
        }
    }

    /// The timeout's effect on both windows (`docs/mechanisms.md` 3.3), `flight_size` segments being outstanding: back
    /// to slow start from one segment.
    pub fn on_timeout(&mut self, flight_size: f64) {
        let share = self.decrease();
        self.ssthresh = match self.rule {
            SsthreshRule::HalfOfCwnd => (self.cwnd * share).min(self.rwnd).max(MIN_SSTHRESH),
            SsthreshRule::HalfOfWindow => self.reduced(),
            SsthreshRule::HalfOfFlight => (flight_size * share).max(MIN_SSTHRESH),
            SsthreshRule::OpenWindow => (self.cwnd * share).min(self.rwnd - flight_size).max(MIN_SSTHRESH),
        };
        if let Control::Cubic(cubic) = &mut self.control {
            cubic.on_timeout(self.cwnd.min(self.rwnd));
        }
        self.cwnd = 1.0;
    }

    /// What every variant's fast retransmit makes of ssthresh (`docs/mechanisms.md` 3.4): max(2, min(cwnd, rwnd) / 2),
    /// and with CUBIC its own share of the window.
    pub fn on_fast_retransmit(&mut self) {
        self.ssthresh = self.reduced();
        if let Control::Cubic(cubic) = &mut self.control {
            cubic.on_reduction(self.cwnd.min(self.rwnd));
        }
    }

    fn reduced(&self) -> f64 {
        (self.cwnd.min(self.rwnd) * self.decrease()).max(MIN_SSTHRESH)
    }

    /// The share of the window that congestion leaves.
    fn decrease(&self) -> f64 {
        match self.control {
            Control::Jacobson => jacobson::DECREASE,
            Control::Cubic(_) => cubic::BETA,
        }
    }

    /// cwnd becomes `grown`, or stops at rwnd where it may not outgrow that.
    fn grow_to(&mut self, grown: f64) {
        self.cwnd = match self.growth {
            WindowGrowth::Uncapped => grown,
            // Only growth stops: a window the receiver shrank does not shrink cwnd.
            WindowGrowth::Capped => self.cwnd.max(grown.min(self.rwnd)),
        };
    }
}
