//! A sender and a receiver connected by a pipe with losses chosen by the test. The tests check that all data arrives
//! despite the losses, and that theoretical formulas hold.
//!
//! The pipe has a delay but no rate limit, so a window of segments takes one round trip, as the formulas assume.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::{
    Ack, Congestion, DelayedAcks, FastRetransmit, GapAcks, OutOfOrder, Pacing, Receiver, ReceiverOptions,
    RecoveryOptions, Reduction, Rules, SackBlocks, Segment, Sender, StartOptions, TcpConfig, TcpOptions, TimerOptions,
    TimerRestart, WindowOptions,
};
use crate::rng::{Stream, is_nightly};
use crate::units::{Bytes, Clock, Duration, Span, Time};

const MSS: u64 = 512;
/// Times are milliseconds.
const CLOCK: Clock = Clock::exact(1000);
/// A round trip, unless a segment is delayed.
const ROUND_TRIP: u64 = 100;
const TICK: u64 = 100;
const DELAYED_ACK_TICK: u64 = 200;

/// Fate of a segment or an acknowledgement in transit.
enum Outcome {
    Arrives,
    /// The segment is delayed by the given milliseconds, so that later segments overtake it.
    Late(u64),
    Lost,
}

struct Pipe {
    sender: Sender,
    receiver: Receiver,
    now: u64,
    /// Segments in transit, by arrival time and order of sending.
    forward: BTreeMap<(u64, u64), Segment>,
    back: BTreeMap<(u64, u64), (Ack, SackBlocks)>,
    sent: u64,
    window: u64,
}

impl Pipe {
    fn new(config: &TcpConfig, pace: Option<u64>) -> Self {
        let sender = Sender::new(config, CLOCK);
        Self {
            sender: match pace {
                Some(interval) => sender.paced(Span(interval)),
                None => sender,
            },
            receiver: Receiver::new(config),
            now: 0,
            forward: BTreeMap::new(),
            back: BTreeMap::new(),
            sent: 0,
            window: config.options().window_segments() * MSS,
        }
    }

    /// Runs until `end`. Calls `fate` for every segment and, with `None`, for every acknowledgement. The second
    /// argument is the number of segments and acknowledgements in transit.
    fn run(&mut self, end: u64, mut fate: impl FnMut(Option<Segment>, usize) -> Outcome) {
        self.send(&mut fate);
        loop {
            let tick = (self.now / TICK + 1) * TICK;
            let first = |time: Option<u64>| time.unwrap_or(u64::MAX);
            let next = tick
                .min(first(self.forward.first_key_value().map(|(key, _)| key.0)))
                .min(first(self.back.first_key_value().map(|(key, _)| key.0)))
                .min(first(self.sender.next_departure(Time(self.now)).map(|time| time.0)));
            if next > end {
                return;
            }
            self.now = next;
            while let Some(entry) = self.forward.first_entry().filter(|entry| entry.key().0 == next) {
                let ack = self.receiver.on_segment(entry.remove());
                self.acknowledge(ack, &mut fate);
            }
            while let Some(entry) = self.back.first_entry().filter(|entry| entry.key().0 == next) {
                let (ack, blocks) = entry.remove();
                self.sender.on_ack(ack, &blocks, Time(next));
                self.send(&mut fate);
            }
            if next == tick {
                self.sender.on_tick(Time(next));
                if tick.is_multiple_of(DELAYED_ACK_TICK) {
                    let ack = self.receiver.on_delayed_ack_tick();
                    self.acknowledge(ack, &mut fate);
                }
            }
            self.send(&mut fate);
        }
    }

    fn send(&mut self, fate: &mut impl FnMut(Option<Segment>, usize) -> Outcome) {
        while let Some(segment) = self.sender.next_segment(Time(self.now)) {
            assert_eq!((segment.seq % MSS, u64::from(segment.len)), (0, MSS), "only full segments are sent");
            assert!(segment.end() <= self.receiver.delivered() + self.window, "no data is sent beyond the window");
            self.sent += 1;
            if let Some(late) = delay(&fate(Some(segment), self.forward.len() + self.back.len())) {
                self.forward.insert((self.now + ROUND_TRIP / 2 + late, self.sent), segment);
            }
        }
    }

    fn acknowledge(&mut self, ack: Option<Ack>, fate: &mut impl FnMut(Option<Segment>, usize) -> Outcome) {
        let Some(ack) = ack else { return };
        self.sent += 1;
        if let Some(late) = delay(&fate(None, self.forward.len() + self.back.len())) {
            self.back.insert((self.now + ROUND_TRIP / 2 + late, self.sent), (ack, self.receiver.blocks()));
        }
    }

    fn delivered(&self) -> u64 {
        self.receiver.delivered() / MSS
    }
}

fn delay(fate: &Outcome) -> Option<u64> {
    match fate {
        Outcome::Arrives => Some(0),
        Outcome::Late(by) => Some(*by),
        Outcome::Lost => None,
    }
}

fn tcp(name: &str, segments: u64) -> TcpConfig {
    let options = TcpOptions { receive_window: Bytes { bytes: segments * MSS }, ..TcpOptions::default() };
    TcpConfig::named(name, options).expect("the schema lists this name")
}

/// Variants that recover from a loss without a timeout.
const FAST: [&str; 5] = ["reno", "newreno", "newreno_hoe", "sack", "sack_pipe"];

/// Generates a random pipe with random ends.
fn situations() -> impl Strategy<Value = Situation> {
    (
        any::<u64>(),
        (0u32..40, 0u32..40, 0u32..30),
        1u64..60,
        prop::sample::select(Congestion::ALL),
        any::<(bool, bool, bool, bool)>(),
        prop::sample::select(&[Base::Rfc, Base::Ns2, Base::Today, Base::Prr][..]),
    )
}

/// The rules of both ends, before the other options are applied.
#[derive(Clone, Copy, Debug)]
enum Base {
    Rfc,
    Ns2,
    /// RACK-TLP with PRR.
    Today,
    /// PRR with the losses that duplicate acknowledgements show.
    Prr,
}

impl Base {
    fn options(self) -> TcpOptions {
        match self {
            Self::Rfc => TcpOptions::default(),
            Self::Ns2 => rules_of_ns2(),
            Self::Today => TcpOptions { rules: Rules::Today, ..TcpOptions::default() },
            Self::Prr => TcpOptions {
                recovery: RecoveryOptions { reduction: Some(Reduction::Prr), ..RecoveryOptions::default() },
                ..TcpOptions::default()
            },
        }
    }
}

/// Seed; percentages of segments lost, of acknowledgements lost, and of both that arrive late; window in segments;
/// congestion control. Last, whether the receiver stores segments out of order, whether it delays acknowledgements,
/// whether the sender is paced, whether it restarts its timer for each segment, and the other rules.
type Situation = (u64, (u32, u32, u32), u64, Congestion, (bool, bool, bool, bool), Base);

fn rules_of_ns2() -> TcpOptions {
    TcpOptions {
        rules: Rules::Ns2,
        windows: WindowOptions { max_burst: Some(3), ..WindowOptions::default() },
        receiver: ReceiverOptions { gap_acks: Some(GapAcks::Delayed), ..ReceiverOptions::default() },
        recovery: RecoveryOptions {
            fast_retransmit: Some(FastRetransmit::AckHeuristicOfThree),
            burst: Some(2),
            ..RecoveryOptions::default()
        },
        ..TcpOptions::default()
    }
}

fn everything_arrives(situation: Situation) -> Result<(), TestCaseError> {
    let (seed, (loss, ack_loss, lateness), window, congestion, switches, rules) = situation;
    let (keep, delay_acks, paced, timer_per_segment) = switches;
    for &name in TcpConfig::NAMES {
        let base = rules.options();
        let options = TcpOptions {
            receive_window: Bytes { bytes: window * MSS },
            timer: TimerOptions {
                maximum_rto: Some(Duration::from_milliseconds(2000)),
                restart: Some(if timer_per_segment { TimerRestart::PerSegment } else { TimerRestart::EveryNewAck }),
                ..base.timer
            },
            receiver: ReceiverOptions {
                out_of_order: Some(if keep { OutOfOrder::Keep } else { OutOfOrder::Discard }),
                ..base.receiver
            },
            delayed_acks: if delay_acks { DelayedAcks::On } else { DelayedAcks::Off },
            windows: WindowOptions { pacing: (seed % 2 == 1).then_some(Pacing::Window), ..base.windows },
            congestion,
            formula: (congestion == Congestion::Formula).then(super::congestion::formula::table::sample),
            ..base
        };
        let pace = paced.then_some(3);
        let run = || {
            let mut pipe =
                Pipe::new(&TcpConfig::named(name, options.clone()).expect("the schema lists this name"), pace);
            let mut rng = Stream::new(seed, "pipe");
            // Losses occur only in the first 30 seconds.
            pipe.run(30_000, |segment, _| {
                let loss = if segment.is_some() { loss } else { ack_loss };
                match rng.below(100) {
                    draw if draw < loss => Outcome::Lost,
                    _ if rng.below(100) < lateness => Outcome::Late(1 + u64::from(rng.below(40))),
                    _ => Outcome::Arrives,
                }
            });
            let before = pipe.delivered();
            pipe.run(60_000, |_, _| Outcome::Arrives);
            (before, pipe.delivered(), pipe.sent, pipe.sender.counters(), pipe.sender.cwnd().to_bits())
        };
        let (first, again) = (run(), run());
        prop_assert_eq!(first, again, "{} differs in a second run", name);
        // No losses occur in the next thirty seconds. After the longest timeout, at least one window arrives in every
        // second round trip.
        let (before, delivered, ..) = first;
        prop_assert!(delivered >= before + 25, "{}: {} and then {}", name, before, delivered);
    }
    Ok(())
}

fn whatever_is_lost_everything_arrives(cases: u32) {
    let config = ProptestConfig { cases, ..crate::rng::proptest_seeded(8) };
    TestRunner::new(config).run(&situations(), everything_arrives).expect("all data arrives in every case");
}

#[test]
fn tcp_delivers_all_data_despite_loss_delay_and_reordering_and_equal_seeds_give_equal_runs() {
    whatever_is_lost_everything_arrives(if is_nightly() { 40 } else { 15 });
}

#[test]
#[ignore = "slow, and a test with fewer cases covers the same code"]
fn tcp_delivers_all_data_despite_losses_in_many_random_cases() {
    whatever_is_lost_everything_arrives(150);
}

/// Returns the number of segments delivered per round trip, after the first ten seconds. `fate` receives the number of
/// the transmission, the number of segments and acknowledgements in transit, and a random stream.
fn rate(config: &TcpConfig, seconds: u64, mut fate: impl FnMut(u64, usize, &mut Stream) -> Outcome) -> f64 {
    let mut pipe = Pipe::new(config, None);
    let mut rng = Stream::new(1, "pipe");
    let mut sendings = 0;
    let mut fate = |segment: Option<Segment>, on_their_way: usize| {
        sendings += u64::from(segment.is_some());
        if segment.is_some() { fate(sendings, on_their_way, &mut rng) } else { Outcome::Arrives }
    };
    pipe.run(10_000, &mut fate);
    let before = pipe.delivered();
    pipe.run(10_000 + seconds * 1000, &mut fate);
    (pipe.delivered() - before) as f64 * ROUND_TRIP as f64 / (seconds * 1000) as f64
}

#[test]
fn a_window_limited_connection_delivers_one_window_per_round_trip() {
    for &name in TcpConfig::NAMES {
        assert_eq!(rate(&tcp(name, 40), 100, |_, _, _| Outcome::Arrives), 40.0, "{name}");
    }
}

#[test]
fn a_window_between_w_half_and_w_delivers_three_quarters_of_w_per_round_trip() {
    // The pipe has room for W segments, and the next segment is lost. The window then grows from W/2 to W by one
    // segment per round trip.
    const W: usize = 100;
    for name in FAST {
        let fate = |_, on_their_way, _: &mut Stream| if on_their_way >= W { Outcome::Lost } else { Outcome::Arrives };
        let measured = rate(&tcp(name, 1000), 500, fate);
        let share = measured / W as f64;
        println!("{name}: {share:.3} W");
        assert!((share / 0.75 - 1.0).abs() < 0.05, "{name}: {share} W");
    }
}

/// Checks that every variant with fast recovery delivers `constant` / sqrt(p) segments per round trip, with one loss
/// every 1/p segments. `is_lost` receives the number of the transmission, 1/p and a random stream.
fn follows_the_square_root_law(
    constant: f64,
    losses: &[u32],
    seconds: u64,
    delayed_acks: DelayedAcks,
    is_lost: fn(u64, u32, &mut Stream) -> bool,
) {
    for name in FAST {
        let options = TcpOptions { delayed_acks, ..tcp(name, 4_000).options().clone() };
        let config = TcpConfig::named(name, options).expect("the schema lists this name");
        for &every in losses {
            let fate = |sending, _, rng: &mut Stream| {
                if is_lost(sending, every, rng) { Outcome::Lost } else { Outcome::Arrives }
            };
            let measured = rate(&config, seconds, fate) / f64::from(every).sqrt();
            println!("{name}, p = 1/{every}: {measured:.3} / sqrt(p)");
            assert!((measured / constant - 1.0).abs() < 0.1, "{name}, 1 in {every}: {measured} / sqrt(p)");
        }
    }
}

// Mathis, Semke, Mahdavi and Ott 1997: a loss exactly every 1/p segments gives sqrt(3/2) / sqrt(p) segments per round
// trip.
fn one_loss_in_n(losses: &[u32], seconds: u64) {
    follows_the_square_root_law(1.5f64.sqrt(), losses, seconds, DelayedAcks::Off, one_in);
}

// Ott, Kemperman and Mathis 1996: independent losses give 1.31 / sqrt(p) segments per round trip.
fn random_losses(losses: &[u32], seconds: u64) {
    follows_the_square_root_law(1.31, losses, seconds, DelayedAcks::Off, |_, every, rng| rng.below(every) == 0);
}

#[test]
fn tcp_throughput_with_one_loss_every_n_segments_follows_the_square_root_law() {
    one_loss_in_n(&[500, 2_000], 500);
}

#[test]
fn tcp_throughput_follows_the_square_root_law_under_random_losses() {
    random_losses(&[500], 500);
}

#[test]
#[ignore = "slow, and the tests above cover higher loss rates"]
fn the_square_root_law_of_tcp_throughput_holds_down_to_one_loss_in_thousands_of_segments() {
    one_loss_in_n(&[500, 2_000, 8_000], 2_000);
    random_losses(&[500, 2_000, 8_000], 2_000);
}

#[test]
fn delayed_acknowledgements_halve_the_growth_rate_of_the_window() {
    // With an acknowledgement for every second segment the window grows half as fast, so the rate is 1 / sqrt(2) times
    // as high.
    follows_the_square_root_law(0.75f64.sqrt(), &[2_000], 500, DelayedAcks::On, one_in);
}

fn one_in(sending: u64, every: u32, _: &mut Stream) -> bool {
    sending.is_multiple_of(u64::from(every))
}

/// RFC 3649, table 1: average windows of standard TCP, and round trips between losses.
#[test]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the numbers of the table are positive and small"
)]
fn the_average_windows_of_standard_tcp_match_table_1_of_rfc_3649() {
    // The table omits the round trip of recovery and counts fractions of segments, which matters in small windows.
    for (window, round_trips, cycles, tolerance) in
        [(8.3, 5.5, 200, 0.3), (83.3, 55.5, 10, 0.04), (833.3, 555.5, 1, 0.01)]
    {
        let (every, peak) = ((window * round_trips) as u64, (window * 4.0 / 3.0) as usize);
        // Slow start ends at the top of a cycle, and the first loss follows.
        let initial_ssthresh = Some(Bytes { bytes: MSS * peak as u64 });
        let options = TcpOptions {
            start: StartOptions { initial_ssthresh, ..StartOptions::default() },
            ..tcp("sack", 4_000).options().clone()
        };
        let mut pipe = Pipe::new(&TcpConfig::Sack(options), None);
        let (mut since, mut losses) = (0, 0);
        let mut run_to = |pipe: &mut Pipe, end: u64| {
            while losses < end {
                pipe.run(pipe.now + ROUND_TRIP, |segment, on_their_way| {
                    since += u64::from(segment.is_some());
                    let is_lost = if losses == 0 { on_their_way >= peak } else { since >= every };
                    if segment.is_none() || !is_lost {
                        return Outcome::Arrives;
                    }
                    (since, losses) = (0, losses + 1);
                    Outcome::Lost
                });
            }
            (pipe.now as f64 / ROUND_TRIP as f64, pipe.delivered() as f64)
        };
        let [before, after] = [1, 1 + cycles].map(|end| run_to(&mut pipe, end));
        let between = (after.0 - before.0) / cycles as f64;
        let measured = (after.1 - before.1) / (after.0 - before.0);
        println!("{measured:.1} segments, not {window}; {between:.1} round trips, not {round_trips}");
        assert!((measured / window - 1.0).abs() < tolerance, "{measured} segments, not {window}");
        assert!((between / round_trips - 1.0).abs() < tolerance, "{between}, not {round_trips}");
    }
}

/// Returns the segments that Reno sends per round trip according to Padhye, Firoiu, Towsley and Kurose 1998, with loss
/// probability `p`, timeouts of `timeout` round trips and an acknowledgement for every segment.
fn pftk(p: f64, timeout: f64) -> f64 {
    let times_out = (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0);
    1.0 / ((2.0 * p / 3.0).sqrt() + timeout * times_out * p * (1.0 + 32.0 * p * p))
}

#[test]
fn the_throughput_of_reno_under_random_losses_follows_the_formula_of_padhye() {
    // A timeout takes three ticks of one round trip each: a sample of one tick plus the minimum of two. Losses in this
    // test are independent, whereas the formula assumes that a loss also affects the rest of its round.
    for (every, seconds) in [(1000, 1_200), (333, 1_000), (100, 2_000), (33, 4_000), (10, 6_000)] {
        let mut pipe = Pipe::new(&tcp("reno", 4_000), None);
        let mut rng = Stream::new(1, "pipe");
        pipe.run(seconds * 1000, |segment, _| {
            if segment.is_some() && rng.below(every) == 0 { Outcome::Lost } else { Outcome::Arrives }
        });
        let sent = pipe.sender.counters().segments_sent as f64;
        let share = sent * ROUND_TRIP as f64 / (seconds * 1000) as f64 / pftk(1.0 / f64::from(every), 3.0);
        println!("with a loss of 1 in {every}, the rate is {share:.3} times the formula");
        assert!((share - 1.0).abs() < 0.1, "with a loss of 1 in {every}, the rate is {share} times the formula");
    }
}

#[test]
fn cubic_recovers_its_window_after_the_computed_time_and_its_mean_window_follows_the_response_function() {
    // RFC 9438 (5.1): a loss every 1/p segments gives (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4)
    // segments per round trip if the cubic, not Reno's estimate, is larger.
    const EVERY: u64 = 20_000;
    let rtt = ROUND_TRIP as f64 / 1000.0;
    let cubic = (0.4f64 * 3.7 / (4.0 * 0.3)).powf(0.25) * (rtt * EVERY as f64).powf(0.75);
    for &name in if is_nightly() { &["newreno", "sack"][..] } else { &["sack"] } {
        let options = TcpOptions { congestion: Congestion::Cubic, ..tcp(name, 4_000).options().clone() };
        let config = TcpConfig::named(name, options).expect("the schema lists this name");
        let measured =
            rate(&config, 600, |sending, _, _| if sending % EVERY == 0 { Outcome::Lost } else { Outcome::Arrives });
        println!("{name} with CUBIC, p = 1/{EVERY}: {:.3} of {cubic:.1}", measured / cubic);
        assert!((measured / cubic - 1.0).abs() < 0.1, "{name}: {measured} against {cubic}");
    }
}

#[test]
fn a_paced_connection_delivers_data_at_its_pacing_rate() {
    for &name in TcpConfig::NAMES {
        let mut pipe = Pipe::new(&tcp(name, 100), Some(7));
        pipe.run(10_000, |_, _| Outcome::Arrives);
        let before = pipe.delivered();
        pipe.run(80_000, |_, _| Outcome::Arrives);
        assert_eq!(pipe.delivered() - before, 10_000, "{name}");
    }
}
