//! Congestion avoidance: cwnd grows by one segment per window, and congestion halves it.
//!
//! Source: Jacobson 1988; ATM Forum 96-1269, section 2; RFC 5681 (3.1). An acknowledgement that covers many segments
//! counts once (`docs/mechanisms.md` 3.1). Differences from the source: cwnd and ssthresh keep their fractions, whereas
//! BSD counts whole bytes or segments (`docs/mechanisms.md` 3.1), unless `window_arithmetic` says otherwise.

use super::{CongestionControl, NewAck};
use crate::tcp::{TcpOptions, WindowArithmetic};
use crate::units::Clock;

/// Jacobson 1988; RFC 5681 (3.1, equation 4): half of the window remains after congestion.
const DECREASE: f64 = 0.5;

/// Additive increase and multiplicative decrease, without state.
#[derive(Debug)]
pub struct Jacobson {
    arithmetic: WindowArithmetic,
    /// MSS in bytes.
    mss: f64,
}

impl CongestionControl for Jacobson {
    fn on_new_ack(&mut self, ack: NewAck) -> f64 {
        ack.cwnd + self.linear_growth(ack.cwnd)
    }

    fn decrease(&self, _window: f64) -> f64 {
        DECREASE
    }
}

impl Jacobson {
    /// Creates the control of a connection with the given options.
    pub fn new(options: &TcpOptions, _clock: Clock) -> Self {
        Self { arithmetic: options.window_rules().arithmetic, mss: options.mss.bytes as f64 }
    }

    /// Returns the growth per acknowledgement, in segments.
    fn linear_growth(&self, cwnd: f64) -> f64 {
        match self.arithmetic {
            WindowArithmetic::Fractions => 1.0 / cwnd,
            // 4.3BSD, tcp_input: max(t_maxseg * t_maxseg / snd_cwnd, 1).
            WindowArithmetic::WholeBytes => (self.mss / cwnd).floor().max(1.0) / self.mss,
            // 4.3BSD-Reno: t_maxseg * t_maxseg / snd_cwnd + t_maxseg / 8.
            WindowArithmetic::WholeBytesAndAnEighth => {
                ((self.mss / cwnd).floor() + (self.mss / 8.0).floor()) / self.mss
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    /// Returns cwnd after an acknowledgement.
    fn grown(arithmetic: WindowArithmetic, cwnd: f64) -> f64 {
        Jacobson { arithmetic, mss: 512.0 }.on_new_ack(NewAck { now: Time(0), acked: 1.0, cwnd, rwnd: 127.0 })
    }

    #[test]
    fn in_congestion_avoidance_the_window_grows_by_one_segment_per_acknowledged_window() {
        assert_eq!(grown(WindowArithmetic::Fractions, 10.0), 10.1);
    }

    #[test]
    fn the_eighth_term_adds_an_eighth_of_a_segment_to_cwnd_per_acknowledgement() {
        // At a cwnd of 10, the growth is 512 / 10 = 51 bytes plus 512 / 8 = 64 bytes. A cwnd of 600 still grows by 64
        // bytes.
        for (cwnd, bytes) in [(2.0, 256.0 + 64.0), (10.0, 51.0 + 64.0), (600.0, 64.0)] {
            assert_eq!(grown(WindowArithmetic::WholeBytesAndAnEighth, cwnd), cwnd + bytes / 512.0);
        }
    }

    #[test]
    fn growth_of_a_window_in_whole_bytes_is_rounded_down_but_at_least_one_byte() {
        for (cwnd, bytes) in [(2.0, 256.0), (3.0, 170.0), (512.0, 1.0), (600.0, 1.0)] {
            assert_eq!(grown(WindowArithmetic::WholeBytes, cwnd), cwnd + bytes / 512.0);
        }
    }
}
