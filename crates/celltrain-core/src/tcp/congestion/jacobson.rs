//! Slow start and congestion avoidance: one segment an acknowledgement below ssthresh, one a window above.
//!
//! Source: Jacobson 1988; ATM Forum 96-1269, section 2; RFC 5681 (3.1). An acknowledgement that covers many segments
//! counts once (`MECHANISMS` 3.1).
//! Departures: cwnd and ssthresh keep their fractions, where BSD counts whole bytes or segments (`MECHANISMS` 3.1).

use super::Windows;

/// Jacobson 1988; RFC 5681 (3.1, equation 4): congestion leaves half of the window.
pub const DECREASE: f64 = 0.5;

/// Grows cwnd for one acknowledgement of new data.
#[inline]
pub fn on_new_ack(windows: &mut Windows) {
    windows.grow_to(windows.cwnd + if windows.cwnd < windows.ssthresh { 1.0 } else { 1.0 / windows.cwnd });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::Control;
    use crate::tcp::options::{SsthreshRule, WindowGrowth};

    fn windows(cwnd: f64, ssthresh: f64, growth: WindowGrowth) -> Windows {
        Windows { cwnd, ssthresh, rwnd: 127.0, growth, rule: SsthreshRule::HalfOfCwnd, control: Control::Jacobson }
    }

    #[test]
    fn below_ssthresh_an_acknowledgement_adds_a_segment() {
        let mut w = windows(9.5, 10.0, WindowGrowth::Uncapped);
        on_new_ack(&mut w);
        assert_eq!(w.cwnd, 10.5);
    }

    #[test]
    fn at_ssthresh_a_window_of_acknowledgements_adds_a_segment() {
        let mut w = windows(10.0, 10.0, WindowGrowth::Uncapped);
        on_new_ack(&mut w);
        assert_eq!(w.cwnd, 10.1);
    }

    #[test]
    fn a_capped_window_stops_at_the_receivers() {
        let mut w = windows(126.5, 200.0, WindowGrowth::Capped);
        on_new_ack(&mut w);
        assert_eq!(w.cwnd, 127.0);
        let mut w = windows(126.5, 200.0, WindowGrowth::Uncapped);
        on_new_ack(&mut w);
        assert_eq!((w.cwnd, w.usable()), (127.5, 127));
    }

    #[test]
    fn the_two_ssthresh_rules_differ_once_cwnd_outgrew_the_window() {
        let mut w = windows(300.0, 127.0, WindowGrowth::Uncapped);
        w.on_timeout();
        assert_eq!((w.cwnd, w.ssthresh), (1.0, 127.0), "96-1269: min(cwnd/2, rwnd)");
        let mut w = Windows { rule: SsthreshRule::HalfOfWindow, ..windows(300.0, 127.0, WindowGrowth::Uncapped) };
        w.on_timeout();
        assert_eq!(w.ssthresh, 63.5, "BSD: min(cwnd, rwnd)/2");
        let mut w = windows(1.0, 127.0, WindowGrowth::Uncapped);
        w.on_timeout();
        assert_eq!(w.ssthresh, 2.0);
    }
}
