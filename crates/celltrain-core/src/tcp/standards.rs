//! Properties that RFC 3168, 5681, 6298, 7661 and 9438 require of every variant and every congestion control, in any
//! order of losses, marks, timeouts and pauses.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::congestion::formula::table::Table;
use super::{
    Ack, Congestion, DuplicateSack, Ecn, LossDetection, Receiver, ReceiverOptions, RecoveryOptions, Reduction, Rules,
    SackBlocks, Segment, Sender, TcpConfig, TcpOptions, TimerOptions, TimerRestart, UnusedWindow, WindowOptions,
};
use crate::rng::Stream;
use crate::units::{Bytes, Clock, Duration, Time};

const MSS: u64 = 512;
/// Times are milliseconds.
const CLOCK: Clock = Clock::exact(1000);
const ONE_WAY: u64 = 37;
const TICK: u64 = 100;

/// Random settings of a run.
#[derive(Clone, Debug)]
struct Situation {
    seed: u64,
    /// Size of the receive window in segments.
    window: u64,
    initial_window: u32,
    congestion: Congestion,
    ecn: bool,
    /// True for RACK-TLP and PRR.
    by_time: bool,
    /// Percentages of lost and of marked segments.
    losses: u32,
    marks: u32,
    /// First byte of the connection's data, in segments.
    start: u64,
}

fn situations() -> impl Strategy<Value = Situation> {
    let near_wrap = (1u64 << 32) / MSS;
    let starts = prop_oneof![Just(0), near_wrap - 40..near_wrap + 2];
    let controls =
        prop::sample::select(&[Congestion::Jacobson, Congestion::Cubic, Congestion::Dctcp, Congestion::Formula][..]);
    (any::<u64>(), 1u64..60, 1u32..12, controls, any::<(bool, bool)>(), 0u32..25, 0u32..25, starts).prop_map(
        |(seed, window, initial_window, congestion, (ecn, by_time), losses, marks, start)| Situation {
            seed,
            window,
            initial_window,
            congestion,
            ecn: ecn || congestion == Congestion::Dctcp,
            by_time,
            losses,
            marks,
            start,
        },
    )
}

/// Returns formulas that halve the flight (RFC 5681, 3.1).
fn formula() -> Table {
    let decrease = "max(2, flight / 2)";
    let formulas = serde_json::json!({
        "on_ack": { "cwnd": "if cwnd < ssthresh then cwnd + 1 else cwnd + 1 / cwnd" },
        "on_loss": { "ssthresh": decrease, "cwnd": decrease },
        "on_timeout": { "ssthresh": decrease, "cwnd": "1" },
    });
    serde_json::from_value(formulas).expect("the formulas are valid")
}

impl Situation {
    fn options(&self) -> TcpOptions {
        TcpOptions {
            receive_window: Bytes { bytes: self.window * MSS },
            initial_window: self.initial_window,
            timer: TimerOptions {
                maximum_rto: Some(Duration::from_milliseconds(2_000)),
                initial_rto: Some(Duration::from_milliseconds(1_000)),
                ..TimerOptions::default()
            },
            congestion: self.congestion,
            formula: (self.congestion == Congestion::Formula).then(|| Box::new(formula())),
            ecn: if self.ecn { Ecn::On } else { Ecn::Off },
            recovery: RecoveryOptions {
                loss_detection: self.by_time.then_some(LossDetection::RackTlp),
                reduction: self.by_time.then_some(Reduction::Prr),
                ..RecoveryOptions::default()
            },
            receiver: ReceiverOptions {
                duplicate_sack: self.by_time.then_some(DuplicateSack::On),
                ..ReceiverOptions::default()
            },
            ..TcpOptions::default()
        }
    }
}

/// A sender and a receiver connected by a pipe, with a record of the past events that the standards' requirements refer
/// to.
struct Observed {
    sender: Sender,
    receiver: Receiver,
    now: u64,
    forward: VecDeque<(u64, Segment, bool, bool)>,
    back: VecDeque<(u64, Ack, SackBlocks, bool)>,
    written: u64,
    max_flight: f64,
    /// End of the data that had been sent when the window was last full.
    filled_to: u64,
    initial_window: f64,
    congestion: Congestion,
    ssthresh: f64,
    /// End of the data that had been sent when ssthresh was last lowered.
    lowered_at: Option<u64>,
    /// True if a mark lowered ssthresh last, and not a loss.
    lowered_by_mark: bool,
    /// Number of fast retransmits and timeouts so far.
    losses: u64,
    /// Remaining ticks of the retransmission timer, its start time, and its duration in ticks.
    timer: (u64, u64, u64),
    timeouts: u64,
    /// Segments that fast recovery has retransmitted since the last timeout, and the value of `sent` at that timeout.
    resent: BTreeSet<u64>,
    timed_out_to: u64,
    /// Time at which the sender may continue after a mark at a cwnd of one segment.
    rests_until: u64,
    /// True if the run checks the standards.
    is_checked: bool,
    /// True if the run has neither losses nor marks.
    is_lossless: bool,
    /// Segments sent, with their times.
    sent: Vec<(u64, Segment)>,
    /// Ticks that are not counted yet, while the sender's clock sleeps.
    asleep: Option<u64>,
}

impl Observed {
    fn new(config: &TcpConfig, start: u64) -> Self {
        let sender = Sender::new(config, CLOCK).starting_at(start * MSS).of_bytes(start * MSS);
        Self {
            ssthresh: sender.ssthresh(),
            sender,
            receiver: Receiver::new(config).starting_at(start * MSS),
            now: 1,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            written: start * MSS,
            max_flight: 0.0,
            filled_to: 0,
            initial_window: config.options().initial_window.into(),
            congestion: config.options().congestion,
            lowered_at: None,
            lowered_by_mark: false,
            losses: 0,
            timer: (0, 0, 0),
            timeouts: 0,
            resent: BTreeSet::new(),
            timed_out_to: 0,
            rests_until: 0,
            is_checked: true,
            is_lossless: false,
            sent: Vec::new(),
            asleep: None,
        }
    }

    /// Counts the ticks that passed while the clock slept.
    fn wake(&mut self) {
        if let Some(ticks) = &mut self.asleep {
            self.sender.skip_ticks(std::mem::take(ticks));
        }
    }

    fn write(&mut self, segments: u64) {
        self.wake();
        self.written += segments * MSS;
        self.sender.write(segments * MSS);
    }

    //= test rfc3168#6.1.2 "after a mark at a cwnd of one segment, the next one waits for the retransmission timer"
    //= test rfc3168#6.1.5 "a segment that is sent again is not ECN-capable"
    fn send(&mut self, fate: &mut impl FnMut() -> (bool, bool)) -> Result<(), TestCaseError> {
        loop {
            let sent = self.sender.sent();
            let Some(segment) = self.sender.next_segment(Time(self.now)) else { break };
            self.sent.push((self.now, segment));
            prop_assert!(self.now >= self.rests_until, "{:?} leaves before {}", segment, self.rests_until);
            let capable = self.sender.sends_capable();
            let is_new = segment.seq >= sent || self.sender.acknowledges_capable();
            prop_assert_eq!(capable, self.sender.uses_ecn() && is_new, "{:?}", segment);
            if segment.seq < sent && self.sender.acknowledged() >= self.timed_out_to {
                self.resent.insert(segment.seq);
            }
            let (lost, marked) = fate();
            if !lost {
                let item = (self.now + ONE_WAY, segment, marked && capable, self.sender.reports_reduction());
                self.forward.push_back(item);
            }
        }
        let outstanding = (self.sender.sent() - self.sender.acknowledged()) / MSS;
        if (outstanding + 1) as f64 > self.sender.window() {
            self.filled_to = self.sender.sent();
        }
        self.check(false)
    }

    //= test rfc5681#3.1 "a further timeout of a segment leaves ssthresh as the first one has set it"
    //= test rfc5681#4.3 "the loss of a retransmission lowers ssthresh again"
    //= test rfc3168#6.1.2 "all losses and marks of one window of data reduce the window once"
    //= test rfc8257#3.5 "a loss changes the windows as in another TCP, also after a mark of the same window"
    //= test rfc6298#5 "a retransmission timer expires after RTO and never earlier"
    //= test rfc7661#3 "the window counts as used only if it limited what was sent"
    fn check(&mut self, ticked: bool) -> Result<(), TestCaseError> {
        if !self.is_checked {
            return Ok(());
        }
        let (una, max) = (self.sender.acknowledged(), self.sender.sent());
        let ssthresh = self.sender.ssthresh();
        let timeouts = self.sender.counters().timeouts;
        let losses = self.sender.counters().fast_retransmits + timeouts;
        let by_loss = losses > std::mem::replace(&mut self.losses, losses);
        let is_lost_again = timeouts > self.timeouts && self.resent.contains(&una);
        if is_lost_again {
            // With a congestion formula, ssthresh and cwnd may be as large as before the loss.
            let may_stay = ssthresh == 2.0 || self.congestion == Congestion::Formula;
            let is_lower = ssthresh < self.ssthresh || may_stay;
            prop_assert!(is_lower, "ssthresh is still {ssthresh} after a lost retransmission");
        }
        if timeouts > self.timeouts {
            self.timed_out_to = max;
            self.resent.clear();
        }
        if ssthresh.to_bits() != self.ssthresh.to_bits() {
            let again = self.lowered_at.is_some_and(|end| una < end);
            let is_loss_after_mark = self.congestion == Congestion::Dctcp && by_loss && self.lowered_by_mark;
            let is_allowed = !again || is_lost_again || is_loss_after_mark;
            prop_assert!(is_allowed, "ssthresh falls from {} to {ssthresh} in one window", self.ssthresh);
            (self.lowered_at, self.lowered_by_mark) = (Some(max), !by_loss);
        }
        self.ssthresh = ssthresh;
        self.max_flight = self.max_flight.max((max - una) as f64 / MSS as f64);
        let most = self.initial_window.max(2.0 * self.max_flight) + 3.0;
        prop_assert!(
            self.sender.cwnd() <= most,
            "cwnd is {}, but at most {} segments were in flight",
            self.sender.cwnd(),
            self.max_flight
        );
        if timeouts > self.timeouts {
            let (_, started, ticks) = self.timer;
            prop_assert!(self.now - started >= ticks * TICK, "{ticks} ticks from {started} to {}", self.now);
            self.timer.0 = 0;
        }
        self.timeouts = timeouts;
        let left = self.sender.timers()[0];
        let expected = self.timer.0.saturating_sub(u64::from(ticked));
        if left != expected {
            self.timer = (left, self.now, self.sender.rto().into());
        }
        self.timer.0 = left;
        Ok(())
    }

    /// Checks that the acknowledgement of data up to `una` has increased cwnd only if this data filled the window.
    /// Applies only without losses and marks.
    fn check_growth(&mut self, (una, cwnd): (u64, f64)) -> Result<(), TestCaseError> {
        let is_used = una < self.filled_to;
        prop_assert!(
            is_used || self.sender.cwnd() <= cwnd,
            "cwnd grows from {cwnd} to {}, but the window was not full since byte {una}",
            self.sender.cwnd()
        );
        Ok(())
    }

    /// Runs for a time.
    fn run(&mut self, end: u64, fate: &mut impl FnMut() -> (bool, bool)) -> Result<(), TestCaseError> {
        self.send(fate)?;
        while self.now < end {
            self.now += 1;
            while self.forward.front().is_some_and(|first| first.0 <= self.now) {
                let (_, segment, marked, reduced) = self.forward.pop_front().expect("the queue is not empty");
                let early = self.receiver.acknowledge_before(marked);
                let echoed_before = self.receiver.echoes_mark();
                self.acknowledge(early, echoed_before);
                self.receiver.on_mark(marked, reduced);
                let ack = self.receiver.on_segment(segment);
                let echoes = self.receiver.echoes_mark();
                self.acknowledge(ack, echoes);
            }
            while self.back.front().is_some_and(|first| first.0 <= self.now) {
                let (_, ack, blocks, echo) = self.back.pop_front().expect("the queue is not empty");
                self.wake();
                let (una, cwnd) = (self.sender.acknowledged(), self.sender.cwnd());
                self.sender.on_echo(echo);
                self.sender.on_ack(ack, &blocks, Time(self.now));
                if self.is_lossless {
                    self.check_growth((una, cwnd))?;
                }
                if self.sender.acknowledged() == self.sender.sent() && self.sender.timers()[0] > 0 {
                    prop_assert!(echo && cwnd < 2.0, "a sender with a cwnd of {cwnd} pauses without a congestion mark");
                    self.rests_until = self.now + u64::from(self.sender.rto()) * TICK;
                }
                self.check(false)?;
                self.send(fate)?;
            }
            if self.now.is_multiple_of(TICK) {
                if let Some(ticks) = self.asleep.as_mut().filter(|ticks| **ticks < self.sender.quiet_ticks()) {
                    *ticks += 1;
                    continue;
                }
                self.wake();
                self.sender.on_tick(Time(self.now));
                self.check(true)?;
                self.send(fate)?;
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, ack: Option<Ack>, echoes: bool) {
        if let Some(ack) = ack {
            self.back.push_back((self.now + ONE_WAY, ack, self.receiver.blocks(), echoes));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..crate::rng::proptest_seeded(23) })]

    //= test rfc5681#4.1 "after such a pause cwnd is at most the restart window, min(IW, cwnd)"
    #[test]
    fn every_tcp_variant_follows_the_standards_under_random_losses_marks_and_pauses(situation in situations()) {
        for &name in TcpConfig::NAMES {
            let config = TcpConfig::named(name, situation.options()).expect("the schema lists this name");
            let mut observed = Observed::new(&config, situation.start);
            let mut rng = Stream::new(situation.seed, "standards");
            let mut fate = |quiet: bool, losses: u32, marks: u32| {
                (!quiet && rng.below(100) < losses, !quiet && rng.below(100) < marks)
            };
            for burst in 0..4u64 {
                observed.write(5 + (situation.seed >> burst) % 120);
                let hard = (situation.losses, situation.marks);
                observed.run(observed.now + 1_500, &mut || fate(false, hard.0, hard.1))?;
                for _ in 0..100 {
                    if observed.sender.has_ended() {
                        break;
                    }
                    observed.run(observed.now + 500, &mut || fate(true, 0, 0))?;
                }
                observed.run(observed.now + 2_300, &mut || fate(true, 0, 0))?;
                prop_assert!(observed.sender.has_ended(), "{name}: the burst arrives");
                prop_assert_eq!(observed.receiver.delivered(), observed.written);
                // The pause lasted longer than the timeout.
                let cwnd = observed.sender.cwnd();
                let rests = f64::from(situation.initial_window).min(cwnd);
                observed.sender.write(0);
                prop_assert_eq!(observed.sender.cwnd(), rests, "{}", name);
            }
        }
    }
}

/// Sends bursts of these numbers of segments without losses or marks. Returns an error if cwnd grows although the
/// acknowledged data did not fill the window.
fn send_bursts(config: &TcpConfig, bursts: &[u64]) -> Result<(), TestCaseError> {
    let mut observed = Observed::new(config, 0);
    observed.is_lossless = true;
    for &burst in bursts {
        observed.write(burst);
        observed.run(observed.now + 700, &mut || (false, false))?;
    }
    observed.run(observed.now + 8_000, &mut || (false, false))?;
    prop_assert_eq!(observed.receiver.delivered(), observed.written);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..crate::rng::proptest_seeded(25) })]

    //= test rfc7661#3 "the window counts as used only if it limited what was sent"
    //= test rfc9438#5.8 "cwnd does not grow while the sender has less to send than cwnd allows"
    #[test]
    fn cwnd_grows_under_every_variant_and_congestion_control_only_if_the_acknowledged_data_filled_the_window(
        situation in situations(),
        bursts in prop::collection::vec(1u64..40, 1..12),
    ) {
        for &name in TcpConfig::NAMES {
            let config = TcpConfig::named(name, situation.options()).expect("the schema lists this name");
            send_bursts(&config, &bursts)?;
        }
    }
}

/// Plants a fault that the check of window growth must detect with every variant and control.
#[test]
fn the_test_of_window_growth_detects_a_cwnd_that_grows_while_the_sender_is_application_limited() {
    for congestion in [Congestion::Jacobson, Congestion::Cubic, Congestion::Dctcp, Congestion::Formula] {
        for &name in TcpConfig::NAMES {
            let found = [UnusedWindow::Hold, UnusedWindow::Grow].map(|unused_window| {
                let options = TcpOptions {
                    initial_window: 10,
                    congestion,
                    formula: (congestion == Congestion::Formula).then(|| Box::new(formula())),
                    ecn: if congestion == Congestion::Dctcp { Ecn::On } else { Ecn::Off },
                    windows: WindowOptions { unused_window: Some(unused_window), ..WindowOptions::default() },
                    ..TcpOptions::default()
                };
                send_bursts(&TcpConfig::named(name, options).expect("the schema lists this name"), &[5, 5, 5]).is_err()
            });
            assert_eq!(found, [false, true], "{name}, {congestion:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..crate::rng::proptest_seeded(24) })]

    /// Tests the clocks of hosts, which both engines use and which sleep until an event occurs.
    #[test]
    fn a_clock_that_stops_while_idle_produces_the_same_segments_as_a_clock_that_always_ticks(
        situation in situations(),
        is_paper in any::<bool>(),
        is_per_segment in any::<bool>(),
    ) {
        let mut options = situation.options();
        options.rules = if is_paper { Rules::Paper } else { Rules::Rfc };
        options.timer.restart =
            Some(if is_per_segment { TimerRestart::PerSegment } else { TimerRestart::EveryNewAck });
        for &name in TcpConfig::NAMES {
            let config = TcpConfig::named(name, options.clone()).expect("the schema lists this name");
            let [ticking, sleeping] = [None, Some(0)].map(|asleep| {
                let mut observed = Observed::new(&config, situation.start);
                (observed.asleep, observed.is_checked) = (asleep, false);
                let mut rng = Stream::new(situation.seed, "sleep");
                let mut fate = || (rng.below(100) < situation.losses, rng.below(100) < situation.marks);
                for burst in 0..4u64 {
                    observed.write(5 + (situation.seed >> burst) % 120);
                    observed.run(observed.now + 4_321, &mut fate).expect("no property is violated");
                }
                (observed.sent, observed.sender.cwnd().to_bits(), observed.sender.rto())
            });
            prop_assert!(!ticking.0.is_empty());
            prop_assert_eq!(ticking, sleeping, "{}", name);
        }
    }
}

//= test rfc6582#3.2 "three duplicates start a recovery only if they acknowledge more than the last one repaired"
#[test]
fn every_tcp_variant_fast_retransmits_the_first_segment_at_any_initial_sequence_number() {
    for start in [0, (1 << 32) / MSS - 1, (1 << 32) / MSS] {
        for rules in [Rules::Rfc, Rules::Paper] {
            for &name in TcpConfig::NAMES.iter().filter(|&&name| name != "vanilla") {
                for others in 3..6 {
                    let options = TcpOptions { rules, initial_window: others + 1, ..TcpOptions::default() };
                    let config = TcpConfig::named(name, options).expect("the schema lists this name");
                    let mut observed = Observed::new(&config, start);
                    observed.write(u64::from(others) + 1);
                    let mut first = true;
                    let mut fate = || (std::mem::take(&mut first), false);
                    observed.run(2_000, &mut fate).expect("the sender follows the standards");
                    let counters = observed.sender.counters();
                    assert_eq!(
                        (counters.fast_retransmits, counters.timeouts, observed.sender.has_ended()),
                        (1, 0, true),
                        "{name}, {others} others, from segment {start}, {rules:?}"
                    );
                }
            }
        }
    }
}

//= test rfc6298#5 "a retransmission timer expires after RTO and never earlier"
#[test]
fn a_one_tick_timer_expires_before_its_rto_only_under_the_paper_rules() {
    for (rules, restart, least, most) in [
        (Rules::Rfc, TimerRestart::EveryNewAck, TICK, 2 * TICK),
        (Rules::Rfc, TimerRestart::PerSegment, TICK, 2 * TICK),
        (Rules::Paper, TimerRestart::EveryNewAck, 1, TICK),
    ] {
        for sent_at in [1, 50, 99, 100, 101] {
            let tick = Duration::from_milliseconds(TICK);
            let options = TcpOptions {
                rules,
                minimum_rto: 1,
                timer: TimerOptions { initial_rto: Some(tick), restart: Some(restart), ..TimerOptions::default() },
                timer_granularity: tick,
                ..TcpOptions::default()
            };
            let mut observed = Observed::new(&TcpConfig::Vanilla(options), 0);
            observed.run(sent_at, &mut || (true, false)).expect("the sender follows the standards");
            observed.write(1);
            while observed.sender.counters().timeouts == 0 {
                let end = observed.now + 1;
                let _ = observed.run(end, &mut || (true, false));
            }
            let took = observed.now - sent_at;
            assert!((least..=most).contains(&took), "{rules:?}, {restart:?}: {took} ms from {sent_at} ms");
        }
    }
}

//= test rfc8257#3.6 "a SYN and its answer may be ECN-capable, which keeps them from being dropped above K"
#[test]
fn dctcp_is_the_only_tcp_variant_whose_syns_are_ecn_capable() {
    for (ecn, congestion, capable) in [
        (Ecn::On, Congestion::Dctcp, true),
        (Ecn::On, Congestion::Jacobson, false),
        (Ecn::Off, Congestion::Jacobson, false),
    ] {
        let config = TcpConfig::Sack(TcpOptions { congestion, ecn, ..TcpOptions::default() });
        assert_eq!(Sender::new(&config, CLOCK).opens_capable(), capable, "{congestion:?}");
    }
}
