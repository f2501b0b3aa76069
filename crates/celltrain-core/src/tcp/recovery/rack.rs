//! RACK-TLP: `sack` with loss detection by time and probes for lost tails.
//!
//! Source: RFC 8985 (5 to 8), with its names; RFC 9937 for the reduction of the window. Differences from the source: the
//! retransmission timer continues to run below the reordering timer and the probe timeout, which ends no later. SRTT of
//! the probe timeout and of the reordering window is an average of exact round-trip times, not of ticks. There are no
//! timestamps. As in Linux, the loss of a retransmission starts no further reduction of the window, and a recovery ends
//! only when the data outstanding at its start is acknowledged.

mod probe;
mod sent;
mod window;

use super::prr::{Delivery, Prr};
use super::{Arrival, Choice, Detected, EarlyTimer, Flight, Progress, Reaction, Recovery};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;
use crate::tcp::sender::Cause;
use crate::tcp::{LossDetection, RecoveryEnd, Reduction, TcpOptions};
use crate::units::{Clock, Duration, Span, Time};
use probe::TailProbe;
use sent::{Sent, SentSegments, Transmission};
use window::{MinRtt, ReorderingWindow};

/// Linux 6.12, `net/ipv4/tcp_ipv4.c`: `sysctl_tcp_min_rtt_wlen`, 300 s.
const MIN_RTT_WINDOW: Duration = Duration::from_milliseconds(300_000);

/// The state of the loss recovery with RACK-TLP.
#[derive(Debug)]
pub(super) struct Rack {
    now: Time,
    sent: SentSegments,
    /// The most recently sent segment that was delivered: `RACK.xmit_ts` and `RACK.end_seq`.
    latest: Transmission,
    rtt: RoundTrip,
    reordering: ReorderingWindow,
    /// Time until the reordering timer expires.
    timeout: Option<Span>,
    stage: Stage,
    /// True until the first segment of a recovery is sent, which cwnd does not limit.
    is_forced: bool,
    reduction: Reduction,
    prr: Option<Prr>,
    /// `None` if the connection sends no probes.
    probe: Option<TailProbe>,
    end: RecoveryEnd,
    news: News,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// Fast recovery, which lasts until this byte is acknowledged.
    Recovering(u64),
    /// Recovery after a timeout, which lasts until this byte is acknowledged.
    AfterTimeout(u64),
}

/// Round-trip times.
#[derive(Debug)]
struct RoundTrip {
    /// `RACK.rtt`.
    latest: Span,
    min: MinRtt,
    /// SRTT; `None` before the first sample.
    smoothed: Option<Span>,
}

/// The content of the last acknowledgement.
#[derive(Debug, Default)]
struct News {
    segments: Vec<Sent>,
    /// Bytes that no earlier acknowledgement has reported.
    delivered: u64,
    advances: bool,
    /// First unacknowledged byte before the acknowledgement.
    una: u64,
    /// True if a probe has repaired a loss.
    repaired: bool,
}

impl Rack {
    /// Creates the recovery of a connection that has sent nothing. Times are on `clock`.
    pub(super) fn new(options: &TcpOptions, clock: Clock) -> Self {
        let rules = options.recovery_rules();
        Self {
            now: Time::default(),
            sent: SentSegments::default(),
            latest: (Time::default(), 0),
            rtt: RoundTrip { latest: Span(0), min: MinRtt::new(clock.span(MIN_RTT_WINDOW)), smoothed: None },
            reordering: ReorderingWindow::default(),
            timeout: None,
            stage: Stage::Open,
            is_forced: false,
            reduction: rules.reduction,
            prr: None,
            probe: (rules.loss_detection == LossDetection::RackTlp).then(TailProbe::default),
            end: rules.end,
            news: News::default(),
        }
    }

    /// Implements `RACK_update` and `RACK_detect_reordering` for the segments that an acknowledgement delivers.
    //= rfc8985#6.2 "the most recently sent segment that is delivered gives RACK.xmit_ts and RACK.end_seq"
    //= rfc8985#6.2 "a retransmission that is acknowledged within min_RTT gives no sample"
    fn update(&mut self) {
        let once = self.news.segments.iter().filter(|segment| !segment.retransmitted);
        if let Some((xmit_ts, _)) = once.map(Sent::transmission).max() {
            self.rtt.min.sample(self.now - xmit_ts, self.now);
        }
        let (min_rtt, now) = (self.rtt.min.min(), self.now);
        let is_valid = |segment: &&Sent| !segment.retransmitted || now - segment.transmission().0 >= min_rtt;
        if let Some(newest) = self.news.segments.iter().filter(is_valid).map(Sent::transmission).max() {
            self.rtt.latest = now - newest.0;
            self.latest = self.latest.max(newest);
        }
        for segment in &self.news.segments {
            self.reordering.on_delivered(segment.transmission().1, segment.retransmitted);
        }
    }

    /// Returns `RACK.rtt` plus `RACK.reo_wnd`, after which a segment is lost.
    fn wait(&self) -> Span {
        let (recovers, sacked) = (self.stage != Stage::Open, self.sent.delivered());
        let min = self.rtt.min.min();
        self.rtt.latest + self.reordering.reo_wnd(recovers, sacked, min, self.rtt.smoothed.unwrap_or(min))
    }

    fn begin(&mut self, stage: Stage) {
        self.stage = stage;
        self.is_forced = true;
        self.prr = None;
        if let Some(probe) = &mut self.probe {
            probe.reset();
        }
    }

    /// Lets cwnd follow the data that the last acknowledgement delivers.
    fn reduce(&mut self, flight: &Flight<'_>, windows: &mut Windows, loses: bool) {
        let inflight = self.sent.in_flight() as f64;
        let delivered = flight.segments(std::mem::take(&mut self.news.delivered));
        let is_safe = std::mem::take(&mut self.news.advances) && !loses;
        let Some(prr) = &mut self.prr else { return };
        let cwnd = prr.on_ack(Delivery { delivered, inflight, ssthresh: windows.in_recovery(), is_safe });
        windows.cwnd = cwnd.unwrap_or(windows.cwnd);
    }
}

impl Recovery for Rack {
    fn selective(&self) -> bool {
        true
    }

    fn observes(&self) -> bool {
        true
    }

    fn at(&mut self, now: Time) {
        self.now = now;
    }

    fn on_arrival(&mut self, arrival: &Arrival<'_>) {
        let mut segments = std::mem::take(&mut self.news.segments);
        segments.clear();
        self.sent.acknowledge(arrival.ack, &mut segments);
        for (start, end) in arrival.ranges() {
            let mut from = arrival.board.skip(start);
            while from < end {
                let to = arrival.board.next_reported(from).min(end);
                self.sent.deliver((from, to), &mut segments);
                from = arrival.board.skip(to);
            }
        }
        let repaired = self.probe.as_mut().is_some_and(|probe| {
            probe.is_due = false;
            probe.repairs(arrival)
        });
        let (una, advances) = (arrival.una, arrival.ack > arrival.una);
        self.news = News { segments, delivered: arrival.delivered(), advances, una, repaired };
        self.update();
        self.reordering.on_ack(arrival.ack, arrival.max, arrival.dsack().is_some());
    }

    fn on_duplicate_ack(&mut self, _flight: &Flight<'_>, _news: bool, _windows: &mut Windows) -> Reaction {
        Reaction::Ignore
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, _acked: u64, windows: &mut Windows) -> Progress {
        self.sent.divide(flight.una, flight.mss, flight.board);
        let (Stage::Recovering(point) | Stage::AfterTimeout(point)) = self.stage else { return Progress::Grow };
        let is_fast = matches!(self.stage, Stage::Recovering(_));
        if flight.una < point {
            return if is_fast { Progress::Hold } else { Progress::Grow };
        }
        (self.stage, self.is_forced) = (Stage::Open, false);
        self.reordering.on_recovered();
        if !is_fast {
            return Progress::Grow;
        }
        //= rfc9937#6.4 "cwnd is ssthresh when the recovery ends"
        if self.prr.take().is_some() {
            windows.cwnd = windows.in_recovery();
        }
        self.end.progress()
    }

    //= rfc8985#6.2 "a segment is lost if it was sent before RACK.segment, at least rtt + reo_wnd ago"
    fn detect(&mut self, flight: &Flight<'_>, windows: &mut Windows) -> Detected {
        let (count, timeout) = self.sent.detect(self.latest, self.wait(), self.now);
        self.timeout = timeout;
        if count > 0 && self.stage == Stage::Open {
            self.begin(Stage::Recovering(flight.max));
            windows.on_fast_retransmit(flight);
            windows.cwnd = windows.in_recovery();
            if self.reduction == Reduction::Prr {
                // The data that no earlier acknowledgement has reported.
                let unreported = flight.board.missing(flight.una, flight.max) + self.news.delivered;
                self.prr = Some(Prr::new(flight.segments(unreported)));
                windows.cwnd = self.sent.in_flight() as f64 + 1.0;
            }
            self.reduce(flight, windows, true);
            return Detected::Loss;
        }
        self.reduce(flight, windows, count > 0);
        if std::mem::take(&mut self.news.repaired) && self.stage == Stage::Open {
            reached!(ProbeRepairsLoss);
            // The window that is reduced includes the data that this acknowledgement covers.
            windows.on_fast_retransmit(&Flight { una: self.news.una, ..*flight });
            windows.cwnd = windows.in_recovery();
            return Detected::Repaired;
        }
        Detected::Nothing
    }

    //= rfc8985#6.3 "a timeout marks the first segment as lost, and others only if they were sent long enough ago"
    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if matches!(self.stage, Stage::Recovering(_)));
        let wait = self.wait();
        self.sent.on_timeout(wait, self.now);
        self.begin(Stage::AfterTimeout(flight.max));
        self.timeout = None;
    }

    fn on_round_trip(&mut self, took: Span) {
        // RFC 6298 (2.3): alpha = 1/8.
        let smoothed = self.rtt.smoothed.map_or(took, |srtt| Span(srtt.0 - srtt.0 / 8 + took.0 / 8));
        self.rtt.smoothed = Some(smoothed);
        if let Some(probe) = &mut self.probe {
            probe.on_round_trip();
        }
    }

    fn recovers(&self) -> bool {
        self.stage != Stage::Open
    }

    fn keeps_reports(&self) -> bool {
        true
    }

    fn chooses(&self) -> bool {
        true
    }

    fn choose(&self, flight: &Flight<'_>, windows: &Windows) -> Option<Choice> {
        if self.probe.is_some_and(|probe| probe.is_due) {
            //= rfc8985#7.3 "a probe is the next new segment, or the last one again"
            let new = flight.has_new(windows).then_some(Choice::New(flight.max));
            return new.or(self.sent.last().filter(|&seq| flight.fits(seq, windows)).map(Choice::Rescue));
        }
        let has_room = windows.cwnd - (self.sent.in_flight() as f64) >= 1.0;
        // A window probe may have sent a byte before the first segment.
        let is_unsent = flight.una < self.sent.first().unwrap_or(flight.max);
        let lost = if is_unsent { Some(flight.una) } else { self.sent.first_lost() };
        match lost {
            Some(seq) => {
                let may = (has_room || self.is_forced) && flight.fits(seq, windows);
                may.then_some(Choice::Hole(seq))
            }
            None => (has_room && flight.has_new(windows)).then_some(Choice::New(flight.max)),
        }
    }

    //= rfc8985#6.1 "each transmission records its time"
    fn on_sent(&mut self, choice: Choice, mss: u64) {
        self.sent.on_sent(choice.seq(), mss, self.now);
        self.is_forced = false;
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        if let Some(probe) = self.probe.as_mut().filter(|probe| probe.is_due) {
            reached!(TailProbeSent);
            probe.on_sent(choice.seq() + mss, matches!(choice, Choice::Rescue(_)));
        }
    }

    fn in_flight(&self) -> Option<u64> {
        Some(self.sent.in_flight())
    }

    //= rfc8985#7.2 "a probe timeout runs after new data and new acknowledgements, outside recovery and without SACKed data"
    fn early_timer(&self, flight: &Flight<'_>) -> Option<EarlyTimer> {
        if let Some(timeout) = self.timeout {
            return Some(EarlyTimer::Reordering(timeout));
        }
        let may_probe =
            self.probe.is_some() && self.stage == Stage::Open && self.sent.delivered() == 0 && flight.una < flight.max;
        let pto = self.rtt.smoothed.map(|srtt| srtt * 2);
        may_probe.then_some(EarlyTimer::Probe { pto, is_single: self.sent.len() == 1 })
    }

    fn on_probe_timer(&mut self) {
        if let Some(probe) = &mut self.probe {
            probe.on_timer();
        }
    }

    fn cause(&self) -> Cause {
        match self.stage {
            _ if self.probe.is_some_and(|probe| probe.is_due) => Cause::TailProbe,
            Stage::AfterTimeout(_) => Cause::Timeout,
            Stage::Open | Stage::Recovering(_) => Cause::Hole,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tcp::scoreboard::Scoreboard;
    use crate::tcp::{LossDetection, Receiver, RecoveryOptions, Segment, TcpConfig};
    use crate::units::Bytes;

    const MSS: u64 = 10;

    /// A segment of the pseudocode.
    #[derive(Clone, Copy, Debug)]
    struct Plain {
        end_seq: u64,
        xmit_ts: u64,
        retransmitted: bool,
        lost: bool,
        delivered: bool,
    }

    /// The pseudocode of sections 6.1 and 6.2, on a plain list of segments. Without samples of RFC 6298, `min_RTT` stands
    /// for SRTT.
    #[derive(Debug)]
    struct Pseudocode {
        segments: Vec<Plain>,
        min_rtt: u64,
        rtt: u64,
        xmit_ts: u64,
        end_seq: u64,
        fack: u64,
        reordering_seen: bool,
    }

    impl Pseudocode {
        fn on_ack(&mut self, now: u64, is_delivered: impl Fn(u64) -> bool) {
            let mut news: Vec<Plain> = Vec::new();
            for segment in self.segments.iter_mut().filter(|one| !one.delivered && is_delivered(one.end_seq)) {
                segment.delivered = true;
                news.push(*segment);
            }
            for segment in news.iter().filter(|one| !one.retransmitted) {
                self.min_rtt = self.min_rtt.min(now - segment.xmit_ts);
            }
            for segment in &news {
                if segment.end_seq > self.fack {
                    self.fack = segment.end_seq;
                } else if segment.end_seq < self.fack && !segment.retransmitted {
                    self.reordering_seen = true;
                }
            }
            news.sort_by_key(|one| (one.xmit_ts, one.end_seq));
            for segment in news {
                let rtt = now - segment.xmit_ts;
                if segment.retransmitted && self.min_rtt != u64::MAX && rtt < self.min_rtt {
                    continue;
                }
                self.rtt = rtt;
                if (segment.xmit_ts, segment.end_seq) > (self.xmit_ts, self.end_seq) {
                    (self.xmit_ts, self.end_seq) = (segment.xmit_ts, segment.end_seq);
                }
            }
        }

        /// Returns the time until the reordering timer expires; 0 for none.
        fn detect(&mut self, now: u64, una: u64, recovers: bool) -> u64 {
            let segs_sacked = self.segments.iter().filter(|one| one.delivered && one.end_seq > una).count();
            let min_rtt = if self.min_rtt == u64::MAX { 0 } else { self.min_rtt };
            let reo_wnd = if !self.reordering_seen && (recovers || segs_sacked >= 3) { 0 } else { min_rtt / 4 };
            let mut timeout = 0;
            for segment in self.segments.iter_mut().filter(|one| !one.delivered && !one.lost) {
                if (self.xmit_ts, self.end_seq) > (segment.xmit_ts, segment.end_seq) {
                    let remaining = (segment.xmit_ts + self.rtt + reo_wnd).saturating_sub(now);
                    segment.lost = remaining == 0;
                    timeout = timeout.max(remaining);
                }
            }
            timeout
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..crate::rng::proptest_seeded(26) })]

        //= test rfc8985#6.1 "each transmission records its time"
        //= test rfc8985#6.2 "the most recently sent segment that is delivered gives RACK.xmit_ts and RACK.end_seq"
        //= test rfc8985#6.2 "a retransmission that is acknowledged within min_RTT gives no sample"
        //= test rfc8985#6.2 "a segment is lost if it was sent before RACK.segment, at least rtt + reo_wnd ago"
        #[test]
        fn rack_marks_the_same_segments_as_lost_as_the_pseudocode_of_rfc_8985(
            events in prop::collection::vec((0u8..8, 0u64..12, any::<prop::sample::Index>()), 1..150),
        ) {
            let options = TcpOptions {
                mss: Bytes { bytes: MSS },
                receive_window: Bytes { bytes: 60_000 },
                recovery: RecoveryOptions {
                    loss_detection: Some(LossDetection::Rack),
                    ..RecoveryOptions::default()
                },
                ..TcpOptions::default()
            };
            let clock = Clock::exact(1000);
            let (mut rack, mut windows) = (Rack::new(&options, clock), Windows::new(&options, clock));
            let mut receiver = Receiver::new(&TcpConfig::Sack(options));
            let mut board = Scoreboard::default();
            let mut oracle = Pseudocode {
                segments: Vec::new(),
                min_rtt: u64::MAX,
                rtt: 0,
                xmit_ts: 0,
                end_seq: 0,
                fack: 0,
                reordering_seen: false,
            };
            // Transmissions that have not arrived.
            let mut network: Vec<u64> = Vec::new();
            let (mut now, mut una, mut max) = (1, 0, 0);
            for (kind, wait, index) in events {
                now += wait;
                rack.at(Time(now));
                match kind {
                    0..3 => {
                        // Send the first lost segment again, or a new segment.
                        let seq = rack.sent.first_lost().unwrap_or(max);
                        rack.on_sent(if seq < max { Choice::Hole(seq) } else { Choice::New(seq) }, MSS);
                        network.push(seq);
                        match oracle.segments.iter_mut().find(|one| one.end_seq == seq + MSS) {
                            Some(one) => (one.xmit_ts, one.retransmitted, one.lost) = (now, true, false),
                            None => oracle.segments.push(Plain {
                                end_seq: seq + MSS,
                                xmit_ts: now,
                                retransmitted: false,
                                lost: false,
                                delivered: false,
                            }),
                        }
                        max = max.max(seq + MSS);
                        continue;
                    }
                    3 if !network.is_empty() => {
                        network.remove(index.index(network.len()));
                        continue;
                    }
                    4..7 if !network.is_empty() => {
                        // Mostly the oldest transmission arrives.
                        let place = if kind == 6 { index.index(network.len()) } else { 0 };
                        let seq = network.remove(place);
                        let ack = receiver.on_segment(Segment { seq, len: 10 }).expect("acknowledgements are not delayed");
                        let blocks = receiver.blocks();
                        rack.on_arrival(&Arrival { ack: ack.ack, blocks: &blocks, una, max, board: &board });
                        board.record(&blocks, ack.ack);
                        board.forget_before(ack.ack);
                        let acked = ack.ack - una;
                        una = ack.ack;
                        oracle.on_ack(now, |end| end <= una || board.missing(end - MSS, end) == 0);
                        if acked > 0 {
                            let flight = Flight { una, max, end: u64::MAX, mss: MSS, reduced: false, board: &board };
                            rack.on_new_ack(&flight, acked, &mut windows);
                        }
                    }
                    // The reordering timer, perhaps early or late.
                    _ => {}
                }
                let recovers = rack.stage != Stage::Open;
                let flight = Flight { una, max, end: u64::MAX, mss: MSS, reduced: false, board: &board };
                rack.detect(&flight, &mut windows);
                let timeout = oracle.detect(now, una, recovers);
                prop_assert_eq!(rack.latest, (Time(oracle.xmit_ts), oracle.end_seq));
                prop_assert_eq!(rack.rtt.latest.0, oracle.rtt);
                prop_assert_eq!(rack.timeout.map_or(0, |span| span.0), timeout);
                let lost: Vec<_> = oracle.segments.iter().filter(|one| one.lost && !one.delivered).collect();
                prop_assert_eq!(rack.sent.first_lost(), lost.first().map(|one| one.end_seq - MSS));
                let in_flight = oracle.segments.iter().filter(|one| !one.lost && !one.delivered).count();
                prop_assert_eq!(rack.sent.in_flight(), in_flight as u64);
            }
        }
    }
}
