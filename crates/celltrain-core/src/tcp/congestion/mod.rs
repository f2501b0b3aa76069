//! How the congestion window grows. One file each.

pub mod jacobson;

use super::options::{SsthreshRule, WindowArithmetic, WindowGrowth};

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
    /// In what numbers cwnd grows in congestion avoidance.
    pub arithmetic: WindowArithmetic,
    /// MSS in bytes.
    pub mss: f64,
}

/// ATM Forum 96-1269, section 2: ssthresh is never below two segments.
const MIN_SSTHRESH: f64 = 2.0;

impl Windows {
    /// min(cwnd, rwnd) in whole segments.
    pub fn usable(&self) -> u64 {
        // Both are positive and far below 2^53.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = self.cwnd.min(self.rwnd) as u64;
        whole
    }

    /// The timeout's effect on both windows (`MECHANISMS` 3.3), `flight_size` segments being outstanding: back to slow
    /// start from one segment.
    pub fn on_timeout(&mut self, flight_size: f64) {
        self.ssthresh = match self.rule {
            SsthreshRule::HalfOfCwnd => (self.cwnd / 2.0).min(self.rwnd).max(MIN_SSTHRESH),
            SsthreshRule::HalfOfWindow => self.half_of_window(),
            SsthreshRule::HalfOfFlight => (flight_size / 2.0).max(MIN_SSTHRESH),
            SsthreshRule::OpenWindow => (self.cwnd / 2.0).min(self.rwnd - flight_size).max(MIN_SSTHRESH),
        };
        self.cwnd = 1.0;
    }

    /// max(2, min(cwnd, rwnd) / 2): what every variant's fast retransmit makes of ssthresh (`MECHANISMS` 3.4).
    pub fn half_of_window(&self) -> f64 {
        (self.cwnd.min(self.rwnd) / 2.0).max(MIN_SSTHRESH)
    }
}
