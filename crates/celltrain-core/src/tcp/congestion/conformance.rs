//! Tests that run for every listed congestion control. A new control is tested as soon as it is listed.

use proptest::prelude::*;

use super::formula::table;
use super::windows::full;
use super::{Congestion, Windows};
use crate::rng::proptest_seeded;
use crate::tcp::{SsthreshRule, TcpOptions, WindowGrowth, WindowOptions};
use crate::units::{Bytes, Clock, Span, Time};

/// Times are in milliseconds.
const CLOCK: Clock = Clock::exact(1000);

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// An acknowledgement of the given number of segments arrives.
    Ack(u8),
    /// A pause, in milliseconds.
    Pass(u64),
    RoundTrip(u64),
    FastRetransmit,
    Timeout,
    Mark,
    /// A new size of the receiver's window, in segments.
    Receiver(u16),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        20 => (1u8..4).prop_map(Operation::Ack),
        4 => (0u64..200).prop_map(Operation::Pass),
        4 => (0u64..500).prop_map(Operation::RoundTrip),
        1 => Just(Operation::FastRetransmit),
        1 => Just(Operation::Timeout),
        1 => Just(Operation::Mark),
        1 => (0u16..300).prop_map(Operation::Receiver),
    ];
    prop::collection::vec(operation, 0..400)
}

fn options(congestion: Congestion, growth: WindowGrowth) -> TcpOptions {
    let receive_window = Bytes { bytes: 100 * 512 };
    let formula = (congestion == Congestion::Formula).then(table::sample);
    TcpOptions {
        congestion,
        formula,
        receive_window,
        windows: WindowOptions { growth: Some(growth), ..WindowOptions::default() },
        ..TcpOptions::default()
    }
}

fn apply(windows: &mut Windows, now: &mut Time, operation: Operation) {
    match operation {
        Operation::Ack(segments) => windows.on_new_ack(*now, f64::from(segments), true),
        Operation::Pass(time) => *now += Span(time),
        Operation::RoundTrip(time) => windows.on_round_trip(Span(time)),
        Operation::FastRetransmit => {
            windows.on_fast_retransmit(&full(8));
            windows.cwnd = windows.ssthresh;
        }
        Operation::Timeout => windows.on_timeout(windows.window(), false),
        Operation::Mark => {
            windows.on_echo(1.0, true);
            windows.on_window_acknowledged();
            windows.on_mark(f64::INFINITY);
        }
        Operation::Receiver(segments) => windows.rwnd = f64::from(segments),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..proptest_seeded(11) })]

    #[test]
    fn acknowledgements_never_reduce_cwnd_and_congestion_signals_never_increase_it(operations in operations(), capped in any::<bool>()) {
        let growth = if capped { WindowGrowth::Capped } else { WindowGrowth::Uncapped };
        for &congestion in Congestion::ALL {
            let name = congestion.name();
            let mut windows = Windows::new(&options(congestion, growth), CLOCK);
            let mut now = Time(0);
            for &operation in &operations {
                let (cwnd, window, ssthresh) = (windows.cwnd, windows.window(), windows.ssthresh);
                apply(&mut windows, &mut now, operation);
                prop_assert!(windows.cwnd.is_finite() && windows.cwnd >= 1.0, "{name}: cwnd {}", windows.cwnd);
                prop_assert!(windows.ssthresh.is_finite() && windows.ssthresh >= 2.0, "{name}: {}", windows.ssthresh);
                match operation {
                    Operation::Ack(segments) => {
                        // No control grows faster than slow start in which every segment is acknowledged.
                        let most = cwnd + f64::from(segments);
                        prop_assert!((cwnd..=most).contains(&windows.cwnd), "{name}: {cwnd} to {}", windows.cwnd);
                        prop_assert!(!capped || windows.cwnd <= windows.rwnd.max(cwnd), "{name}: beyond rwnd");
                    }
                    Operation::FastRetransmit => {
                        prop_assert!(windows.ssthresh < window.max(2.1), "{name}: {window} to {}", windows.ssthresh);
                    }
                    Operation::Timeout => prop_assert_eq!(windows.cwnd, 1.0, "{}", name),
                    Operation::Mark => {
                        prop_assert!(windows.ssthresh < window.max(2.1), "{name}: {window} to {}", windows.ssthresh);
                        // RFC 3168 (6.1.2): a mark never increases cwnd, and cwnd stays at one segment or more.
                        prop_assert!(windows.cwnd <= window.max(1.0), "{name}: {window} to {}", windows.cwnd);
                        prop_assert!(windows.cwnd <= windows.ssthresh, "{name}");
                        let is_least = windows.ssthresh <= 2.0;
                        prop_assert!(is_least || windows.cwnd == windows.ssthresh.min(window), "{name}");
                    }
                    Operation::Pass(_) | Operation::RoundTrip(_) | Operation::Receiver(_) => {
                        prop_assert_eq!((windows.cwnd, windows.ssthresh), (cwnd, ssthresh), "{}", name);
                    }
                }
            }
        }
    }

    #[test]
    fn every_congestion_control_is_deterministic_for_a_given_sequence_of_events(operations in operations()) {
        for &congestion in Congestion::ALL {
            let run = || {
                let mut windows = Windows::new(&options(congestion, WindowGrowth::Uncapped), CLOCK);
                let mut now = Time(0);
                let mut sizes = Vec::new();
                for &operation in &operations {
                    apply(&mut windows, &mut now, operation);
                    sizes.push((windows.cwnd.to_bits(), windows.ssthresh.to_bits()));
                }
                sizes
            };
            prop_assert_eq!(run(), run(), "{}", congestion.name());
        }
    }
}

#[test]
fn every_congestion_control_reduces_the_window_to_a_positive_fraction_on_a_congestion_signal() {
    for &congestion in Congestion::ALL {
        let control = congestion.control(&TcpOptions::default(), CLOCK);
        for window in [1.0, 2.0, 10.0, 1e3, 1e6] {
            let share = control.decrease(window);
            assert!(share > 0.0 && share < 1.0, "{}: {share} of {window}", congestion.name());
        }
    }
}

#[test]
fn every_rule_for_ssthresh_uses_the_decrease_factor_of_the_congestion_control() {
    for &congestion in Congestion::ALL {
        let share = congestion.control(&TcpOptions::default(), CLOCK).decrease(80.0);
        for rule in [SsthreshRule::HalfOfCwnd, SsthreshRule::HalfOfWindow, SsthreshRule::HalfOfFlight] {
            let mut options = options(congestion, WindowGrowth::Uncapped);
            options.windows.ssthresh_rule = Some(rule);
            let mut windows = Windows::new(&options, CLOCK);
            windows.cwnd = 80.0;
            windows.on_timeout(80.0, false);
            assert_eq!(windows.ssthresh, 80.0 * share, "{}, {rule:?}", congestion.name());
        }
    }
}

#[test]
fn every_congestion_control_can_be_selected_by_name_in_a_scenario() {
    for (&congestion, &name) in Congestion::ALL.iter().zip(Congestion::NAMES) {
        assert_eq!(serde_json::to_value(congestion).unwrap(), name);
        assert_eq!(congestion.name(), name);
    }
}
