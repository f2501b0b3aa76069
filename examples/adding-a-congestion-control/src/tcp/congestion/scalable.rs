//! Scalable TCP: each acknowledgement adds a fixed part of a segment to the window, and congestion reduces it by an
//! eighth.
//!
//! Source: Kelly, "Scalable TCP: improving performance in highspeed wide area networks", ACM SIGCOMM Computer
//! Communication Review 33(2), 2003; a, b and lwnd are the source's names. Differences from the source: the source
//! rounds reductions of cwnd up to whole segments, whereas cwnd keeps its fractions here.

use super::{CongestionControl, NewAck};
use crate::tcp::options::TcpOptions;
use crate::units::Clock;

/// a: increase per acknowledgement, in segments.
const A: f64 = 0.01;
/// b: fraction of the window that congestion removes.
const B: f64 = 0.125;
/// lwnd: window in segments up to which Scalable TCP behaves like standard TCP.
const LWND: f64 = 16.0;

/// Scalable TCP, which has no state.
#[derive(Debug)]
pub struct Scalable;

impl CongestionControl for Scalable {
    fn on_new_ack(&mut self, ack: NewAck) -> f64 {
        ack.cwnd + if ack.cwnd > LWND { A } else { 1.0 / ack.cwnd }
    }

    fn decrease(&self, window: f64) -> f64 {
        if window > LWND { 1.0 - B } else { 0.5 }
    }
}

impl Scalable {
    /// Creates the congestion control of a connection.
    pub fn new(_options: &TcpOptions, _clock: Clock) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn grown(cwnd: f64) -> f64 {
        Scalable.on_new_ack(NewAck { now: Time(0), acked: 1.0, cwnd, rwnd: 1000.0 })
    }

    #[test]
    fn scalable_tcp_adds_a_hundredth_of_the_window_per_acknowledged_window_above_lwnd() {
        assert_eq!(grown(200.0), 200.01);
    }

    #[test]
    fn scalable_tcp_increases_and_decreases_the_window_as_standard_tcp_does_up_to_lwnd() {
        assert_eq!((grown(16.0), grown(16.5)), (16.0 + 1.0 / 16.0, 16.51));
        assert_eq!((Scalable.decrease(16.0), Scalable.decrease(16.5)), (0.5, 0.875));
    }

    #[test]
    fn scalable_tcp_recovers_a_window_of_any_size_within_14_round_trips() {
        // ln(1 / 0.875) / ln(1.01) = 13.42 round trips. Each round trip has as many acknowledgements as the window has
        // segments.
        for window in [100.0, 10_000.0] {
            let (mut cwnd, mut round_trips) = (window * Scalable.decrease(window), 0);
            while cwnd < window {
                let acks = (0..20_000_u32).take_while(|&ack| f64::from(ack) < cwnd).count();
                cwnd = (0..acks).fold(cwnd, |cwnd, _| grown(cwnd));
                round_trips += 1;
            }
            assert_eq!(round_trips, 14, "{window}");
        }
    }
}
