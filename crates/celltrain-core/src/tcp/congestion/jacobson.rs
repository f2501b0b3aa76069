//! Slow start and congestion avoidance: one segment an acknowledgement below ssthresh, one a window above.
//!
//! Source: Jacobson 1988; ATM Forum 96-1269, section 2; RFC 5681 (3.1). An acknowledgement that covers many segments
//! counts once (`docs/mechanisms.md` 3.1).
//! Departures: cwnd and ssthresh keep their fractions, where BSD counts whole bytes or segments
//! (`docs/mechanisms.md` 3.1), unless `window_arithmetic` says otherwise.

use super::Windows;
use crate::tcp::options::WindowArithmetic;

/// Jacobson 1988; RFC 5681 (3.1, equation 4): congestion leaves half of the window.
pub const DECREASE: f64 = 0.5;

/// Grows cwnd for one acknowledgement of new data.
#[inline]
pub fn on_new_ack(windows: &mut Windows) {
    windows.grow_to(windows.cwnd + if windows.cwnd < windows.ssthresh { 1.0 } else { linear_growth(windows) });
}

/// What an acknowledgement adds in congestion avoidance, in segments.
fn linear_growth(windows: &Windows) -> f64 {
    match windows.arithmetic {
        WindowArithmetic::Fractions => 1.0 / windows.cwnd,
        // 4.3BSD, tcp_input: max(t_maxseg * t_maxseg / snd_cwnd, 1).
        WindowArithmetic::WholeBytes => (windows.mss / windows.cwnd).floor().max(1.0) / windows.mss,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::Control;
    use crate::tcp::options::{SsthreshRule, WindowGrowth};

    fn windows(cwnd: f64, ssthresh: f64, growth: WindowGrowth) -> Windows {
        Windows {
            cwnd,
            ssthresh,
            rwnd: 127.0,
            growth,
            rule: SsthreshRule::HalfOfCwnd,
            control: Control::Jacobson,
            arithmetic: WindowArithmetic::Fractions,
            mss: 512.0,
        }
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
        w.on_timeout(127.0);
        assert_eq!((w.cwnd, w.ssthresh), (1.0, 127.0), "96-1269: min(cwnd/2, rwnd)");
        let mut w = Windows { rule: SsthreshRule::HalfOfWindow, ..windows(300.0, 127.0, WindowGrowth::Uncapped) };
        w.on_timeout(127.0);
        assert_eq!(w.ssthresh, 63.5, "BSD: min(cwnd, rwnd)/2");
        let mut w = windows(1.0, 127.0, WindowGrowth::Uncapped);
        w.on_timeout(127.0);
        assert_eq!(w.ssthresh, 2.0);
    }

    #[test]
    fn whole_bytes_grow_by_their_quotient_rounded_down_and_by_one_at_least() {
        for (cwnd, bytes) in [(2.0, 256.0), (3.0, 170.0), (512.0, 1.0), (600.0, 1.0)] {
            let mut w =
                Windows { arithmetic: WindowArithmetic::WholeBytes, ..windows(cwnd, 2.0, WindowGrowth::Uncapped) };
            on_new_ack(&mut w);
            assert_eq!(w.cwnd, cwnd + bytes / 512.0);
        }
    }

    #[test]
    fn what_is_outstanding_counts_for_two_rules() {
        let after = |rule, flight_size| {
            let mut w = Windows { rule, ..windows(100.0, 127.0, WindowGrowth::Uncapped) };
            w.on_timeout(flight_size);
            w.ssthresh
        };
        assert_eq!([90.0, 3.0].map(|flight| after(SsthreshRule::HalfOfFlight, flight)), [45.0, 2.0]);
        let open = [0.0, 77.0, 78.0, 125.0, 127.0].map(|flight| after(SsthreshRule::OpenWindow, flight));
        assert_eq!(open, [50.0, 50.0, 49.0, 2.0, 2.0]);
    }
}
