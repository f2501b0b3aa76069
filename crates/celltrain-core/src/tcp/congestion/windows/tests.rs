use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::tcp::{Rules, StartOptions, WindowArithmetic, WindowOptions};
use crate::units::Bytes;

fn windows(rule: SsthreshRule, cwnd: f64) -> Windows {
    let clock = Clock::exact(1000);
    Windows {
        cwnd,
        ..Windows::new(
            &TcpOptions {
                windows: WindowOptions { ssthresh_rule: Some(rule), ..WindowOptions::default() },
                ..TcpOptions::default()
            },
            clock,
        )
    }
}

/// The windows of 4.3BSD in whole bytes: an independent model of BSD's own statements.
struct Bsd {
    cwnd: u32,
    ssthresh: u32,
    wnd: u32,
    maxseg: u32,
}

impl Bsd {
    fn on_new_ack(&mut self) {
        let mut incr = self.maxseg;
        if self.cwnd >= self.ssthresh {
            incr = (incr * incr / self.cwnd).max(1);
        }
        self.cwnd += incr;
    }

    fn on_loss(&mut self) {
        let mut win = self.wnd.min(self.cwnd) / 2 / self.maxseg;
        if win < 2 {
            win = 2;
        }
        self.ssthresh = win * self.maxseg;
    }
}

proptest! {
    #![proptest_config(crate::rng::proptest_seeded(13))]

    #[test]
    fn congestion_windows_match_those_of_bsd_in_units_of_bytes_and_of_segments(
        mss in select(&[256u32, 512, 1024, 4096][..]),
        wnd in 8192u32..600_000,
        happens in prop::collection::vec(prop_oneof![40 => Just('a'), 1 => Just('t'), 1 => Just('f')], 0..2000),
    ) {
        let options = TcpOptions { rules: Rules::Paper, mss: Bytes { bytes: mss.into() }, // A multiple of 1024, so that window scaling does not round it.
            receive_window: Bytes { bytes: u64::from(wnd >> 10 << 10) }, start: StartOptions { initial_ssthresh: Some(Bytes { bytes: u64::from(65_535 / mss * mss) }), ..StartOptions::default() }, windows: WindowOptions { ssthresh_rule: Some(SsthreshRule::HalfOfWindow), ssthresh_arithmetic: Some(SsthreshArithmetic::WholeSegments), arithmetic: Some(WindowArithmetic::WholeBytes), ..WindowOptions::default() }, ..TcpOptions::default() };
        let mut ours = Windows::new(&options, Clock::exact(1000));
        let mut bsd = Bsd { cwnd: mss, ssthresh: 65_535 / mss * mss, wnd: wnd >> 10 << 10, maxseg: mss };
        for what in happens {
            match what {
                'a' => {
                    ours.on_new_ack(Time(0), 1.0, true);
                    bsd.on_new_ack();
                }
                't' => {
                    ours.on_timeout(0.0, false);
                    bsd.on_loss();
                    bsd.cwnd = mss;
                }
                _ => {
                    // Tahoe sets cwnd to one segment after a fast retransmit.
                    ours.on_fast_retransmit(&full(8));
                    ours.cwnd = 1.0;
                    bsd.on_loss();
                    bsd.cwnd = mss;
                }
            }
            let bytes = |segments: f64| segments * f64::from(mss);
            prop_assert_eq!(bytes(ours.cwnd), f64::from(bsd.cwnd));
            prop_assert_eq!(bytes(ours.ssthresh), f64::from(bsd.ssthresh));
        }
    }

    #[test]
    fn congestion_windows_in_segments_match_those_of_bsd_for_any_window_and_segment_size(
        mss in 1u32..9180, cwnd in 1u32..1 << 20, wnd in 1u32..1 << 20,
    ) {
        let wnd = wnd.max(mss);
        let mut bsd = Bsd { cwnd: cwnd.max(mss), ssthresh: 0, wnd, maxseg: mss };
        bsd.on_loss();
        let usual = windows(SsthreshRule::HalfOfWindow, f64::from(cwnd.max(mss)) / f64::from(mss));
        let mut ours = Windows {
            rules: WindowRules { ssthresh_arithmetic: SsthreshArithmetic::WholeSegments, ..usual.rules },
            // Only whole segments of rwnd are used, and half of rwnd gives the same number of whole segments.
            rwnd: f64::from(wnd / mss),
            ..usual
        };
        ours.on_timeout(0.0, false);
        prop_assert_eq!(ours.ssthresh * f64::from(mss), f64::from(bsd.ssthresh));
    }
}

#[test]
fn an_option_decides_whether_slow_start_continues_when_cwnd_equals_ssthresh() {
    for (slow_start, at_ssthresh) in [(SlowStart::BelowSsthresh, 10.1), (SlowStart::UpToSsthresh, 11.0)] {
        for (cwnd, grown) in [(9.5, 10.5), (10.0, at_ssthresh), (10.5, 10.5 + 1.0 / 10.5)] {
            let mut windows = Windows { slow_start, ssthresh: 10.0, ..windows(SsthreshRule::HalfOfCwnd, cwnd) };
            windows.on_new_ack(Time(0), 1.0, true);
            assert_eq!(windows.cwnd, grown, "{slow_start:?} at {cwnd}");
        }
    }
}

#[test]
fn the_tcp_header_limits_a_window_to_65535_bytes_times_the_window_scale() {
    let clock = Clock::exact(1000);
    for (receive_window, bytes) in [(60_000, 65_535.0), (600_000, 1_048_560.0)] {
        let receive_window = Bytes { bytes: receive_window };
        let window_growth = Some(WindowGrowth::CappedByField);
        let options = TcpOptions {
            receive_window,
            windows: WindowOptions { growth: window_growth, ..WindowOptions::default() },
            ..TcpOptions::default()
        };
        let mut windows = Windows { ssthresh: 3000.0, ..Windows::new(&options, clock) };
        (0..3000).for_each(|_| windows.on_new_ack(Time(0), 1.0, true));
        assert_eq!(windows.cwnd * 512.0, bytes);
    }
}

#[test]
fn a_cwnd_capped_at_the_receive_window_does_not_shrink_when_the_receive_window_shrinks() {
    for (growth, rwnd, cwnd, grown) in [
        (WindowGrowth::Capped, 127.0, 126.5, 127.0),
        (WindowGrowth::Uncapped, 127.0, 126.5, 127.5),
        (WindowGrowth::Capped, 20.0, 30.0, 30.0),
    ] {
        let usual = windows(SsthreshRule::HalfOfCwnd, cwnd);
        let rules = WindowRules { growth, ..usual.rules };
        let mut windows = Windows { rules, rwnd, ssthresh: 200.0, ..usual };
        windows.on_new_ack(Time(0), 1.0, true);
        assert_eq!((windows.cwnd, windows.window()), (grown, f64::min(grown, rwnd)));
        assert_eq!(windows.usable() as f64, rwnd);
    }
}

/// Regression: after a timeout in fast recovery, CUBIC took the inflated window for the one before the loss.
#[test]
fn w_max_of_cubic_excludes_the_window_inflation_after_a_timeout_in_fast_recovery() {
    let options = TcpOptions { congestion: crate::tcp::Congestion::Cubic, ..TcpOptions::default() };
    let mut after = [0.0, 50.0].map(|inflation| {
        let mut windows = Windows { cwnd: 40.0, ..Windows::new(&options, Clock::exact(1000)) };
        windows.on_fast_retransmit(&full(40));
        windows.cwnd = windows.in_recovery();
        windows.inflate(inflation);
        windows.on_timeout(100.0, false);
        windows
    });
    for now in 0..2000 {
        let [plain, inflated] = after.each_mut().map(|windows| {
            windows.on_new_ack(Time(now), 1.0, true);
            (windows.cwnd, windows.ssthresh)
        });
        assert_eq!(inflated, plain, "acknowledgement {now}");
    }
}

/// RFC 9406 (4.2, 4.3).
#[test]
fn hystart_is_inactive_after_the_first_loss_or_mark_and_in_later_slow_starts() {
    for end in [
        &|windows: &mut Windows| windows.on_fast_retransmit(&full(80)),
        &|windows: &mut Windows| windows.on_timeout(80.0, false),
        &|windows: &mut Windows| windows.on_mark(80.0),
    ] as [&dyn Fn(&mut Windows); 3]
    {
        let start = StartOptions { hystart: Some(Hystart::On), ..StartOptions::default() };
        let mut windows = Windows::new(&TcpOptions { start, ..TcpOptions::default() }, Clock::exact(1000));
        let grown = |windows: &mut Windows| {
            let before = windows.cwnd;
            windows.on_new_ack(Time(0), 3.0, true);
            windows.cwnd - before
        };
        assert_eq!(grown(&mut windows), 3.0, "HyStart++ counts acknowledged segments");
        windows.cwnd = 80.0;
        end(&mut windows);
        windows.cwnd = 1.0;
        assert_eq!(grown(&mut windows), 1.0, "the usual slow start counts acknowledgements");
    }
}
