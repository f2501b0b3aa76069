//! DCTCP: cwnd shrinks by half the share of marked segments, at most once per window.
//!
//! Source: RFC 8257, whose alpha, M and g are used; Alizadeh and others, "Data center TCP (DCTCP)", ACM SIGCOMM 2010.
//! Differences from the source: M is a share of segments, not of bytes; all segments but window probes are full.

use super::jacobson::Jacobson;
use super::{CongestionControl, NewAck};
use crate::coverage::reached;
use crate::tcp::TcpOptions;
use crate::units::Clock;

/// DCTCP. Growth, and the reduction after a loss, follow Jacobson (RFC 8257, 3.3 and 3.5).
#[derive(Debug)]
pub struct Dctcp {
    usual: Jacobson,
    /// DCTCP.Alpha: the estimated share of marked segments.
    alpha: f64,
    /// g: the weight of the newest window in the estimate.
    gain: f64,
    /// Segments acknowledged in the current window.
    acked: f64,
    marked: f64,
}

impl CongestionControl for Dctcp {
    fn on_new_ack(&mut self, ack: NewAck) -> f64 {
        self.usual.on_new_ack(ack)
    }

    fn decrease(&self, window: f64) -> f64 {
        self.usual.decrease(window)
    }

    fn decrease_after_mark(&self, _window: f64) -> f64 {
        reached!(DctcpReducesByShare if self.alpha < 1.0);
        1.0 - self.alpha / 2.0
    }

    /// Returns cwnd itself (RFC 8257, 3.3).
    fn marked_window(&self, window: f64, _flight: f64) -> f64 {
        window
    }

    fn on_echo(&mut self, acked: f64, marked: bool) {
        self.acked += acked;
        if marked {
            self.marked += acked;
        }
    }

    fn on_window_acknowledged(&mut self) {
        if self.acked > 0.0 {
            let m = self.marked / self.acked;
            self.alpha = self.alpha * (1.0 - self.gain) + self.gain * m;
        }
        (self.acked, self.marked) = (0.0, 0.0);
    }
}

impl Dctcp {
    /// Creates the control of a connection with the given options.
    pub fn new(options: &TcpOptions, clock: Clock) -> Self {
        // RFC 8257, 3.3: the estimate starts at 1.
        Self {
            usual: Jacobson::new(options, clock),
            alpha: 1.0,
            gain: options.window_rules().dctcp_gain,
            acked: 0.0,
            marked: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns alpha after windows of ten segments. The argument lists the number of marked segments in each window.
    fn alpha(windows: &[u32]) -> f64 {
        let mut control = Dctcp::new(&TcpOptions::default(), Clock::exact(1));
        for &marked in windows {
            (0..10).for_each(|segment| control.on_echo(1.0, segment < marked));
            control.on_window_acknowledged();
        }
        control.alpha
    }

    #[test]
    fn dctcp_alpha_starts_at_1_and_moves_a_sixteenth_towards_the_marked_fraction() {
        assert_eq!(alpha(&[]), 1.0);
        assert_eq!(alpha(&[10, 10]), 1.0);
        assert_eq!(alpha(&[0]), 0.9375);
        assert_eq!(alpha(&[10, 0]), 0.9375, "each window is counted separately");
        assert_eq!(alpha(&[5]), 1.0 - 0.5 / 16.0);
        assert!((alpha(&[3; 400]) - 0.3).abs() < 1e-9);
    }

    #[test]
    fn dctcp_alpha_does_not_change_in_a_window_without_acknowledgements() {
        let mut control = Dctcp::new(&TcpOptions::default(), Clock::exact(1));
        control.on_window_acknowledged();
        assert_eq!(control.alpha, 1.0);
    }

    #[test]
    fn dctcp_reduces_the_window_by_alpha_over_2_on_marks_and_halves_it_on_losses() {
        let mut control = Dctcp::new(&TcpOptions::default(), Clock::exact(1));
        assert_eq!((control.decrease_after_mark(100.0), control.decrease(100.0)), (0.5, 0.5));
        control.alpha = 0.2;
        assert_eq!((control.decrease_after_mark(100.0), control.decrease(100.0)), (0.9, 0.5));
    }
}
