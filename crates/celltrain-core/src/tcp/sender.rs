//! The sending end: its windows, the selection of segments, the retransmission and persist timers, and pacing.
//!
//! Source: `docs/mechanisms.md` 3.1 to 3.7; RFC 793 for the variables; RFC 1122 (4.2.2.17) for closed windows; RFC 6298
//! and RFC 5681 (3.1) for the handshake. The sender is independent of the engine: its caller reports events and
//! requests segments. Differences from the source: a window probe carries one byte; every other segment is full,
//! even the last of a file. With the rules of the papers, the first data after a repeated SYN has the timeout
//! to which the SYN backed off.

//!
//! `reactions` contains the reactions to acknowledgements and timeouts, `clock` the timers, `departures` the limits
//! on bursts and the pace, `deliveries` the samples for controls that model the path, and `probes` the probes of closed
//! windows.

mod clock;
mod deliveries;
mod departures;
mod early;
mod probes;
mod reactions;
#[cfg(test)]
mod tests;

use super::congestion::Windows;
use super::marks::{Capable, Marks, ToMark};
use super::recovery::{Choice, Recovery};
use super::scoreboard::Scoreboard;
use super::{
    AfterIdle, Ecn, LimitedTransmit, Rules, Segment, TcpConfig, TcpOptions, UnusedWindow, WindowRules, window_scale,
};
use crate::coverage::reached;
use crate::units::{Clock, Span, Time};
use clock::{SenderClock, Timing};
use departures::Departures;
use reactions::Reductions;

/// A sender with unlimited data or a fixed number of bytes.
pub struct Sender {
    mss: u32,
    /// First unacknowledged byte of the stream.
    snd_una: u64,
    /// Next byte to send.
    snd_nxt: u64,
    /// First byte of the stream that was never sent.
    snd_max: u64,
    /// End of the data: no segment begins at or beyond this byte.
    end: u64,
    windows: Windows,
    offer: Offer,
    recovery: Box<dyn Recovery>,
    next: Next,
    board: Scoreboard,
    clock: SenderClock,
    rules: SenderRules,
    reductions: Reductions,
    departures: Departures,
    marks: Option<Marks>,
    counters: SenderCounters,
}

/// The window that the receiver offers.
#[derive(Clone, Copy, Debug)]
struct Offer {
    scale: u32,
    /// The window field of the latest acknowledgement.
    field: Option<u16>,
}

/// The selection of the next segment.
#[derive(Clone, Copy, Debug)]
struct Next {
    /// True while `recovery` chooses the next segment.
    chosen: bool,
    pending: Pending,
    /// Reason for the current retransmission, for event logs only.
    cause: Cause,
}

/// Rules of a sender, other than the rules of its timers and windows.
#[derive(Clone, Copy, Debug)]
struct SenderRules {
    profile: Rules,
    windows: WindowRules,
    after_idle: AfterIdle,
    limited_transmit: LimitedTransmit,
    /// True if the recovery must see every acknowledgement.
    observes: bool,
    /// True if any mechanism must see every acknowledgement: the recovery, the pace, or the samples of deliveries.
    watches_acks: bool,
}

/// Reason for a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The retransmission timer expired. The segment is the first unacknowledged one or a later one.
    Timeout,
    /// The number of duplicate acknowledgements reached the threshold.
    DuplicateAcks,
    /// An acknowledgement covered part of the outstanding data.
    PartialAck,
    /// The receiver reported data beyond this segment.
    Hole,
    /// No acknowledgement has arrived for two round trips.
    TailProbe,
    /// The sender is a stack outside the simulation, which does not report its reason.
    Unknown,
}

/// A snapshot of a sender's state for observers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderState {
    /// cwnd in segments.
    pub cwnd: f64,
    /// ssthresh in segments.
    pub ssthresh: f64,
    /// Bytes sent but not acknowledged.
    pub flight: u64,
    /// The retransmission timeout in ticks, backoff included.
    pub rto: u32,
}

/// A segment that must be sent before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// The first unacknowledged segment, if the receive window has room for it.
    Resend,
    /// One byte that probes a closed window.
    Probe,
    /// Nothing, because the SYN has not been acknowledged.
    Opening,
    /// Nothing until the retransmission timer expires, because of a mark at a cwnd of one segment without outstanding
    /// data.
    Rest,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Number of segments sent, including retransmissions.
    pub segments_sent: u64,
    /// Number of segments retransmitted.
    pub retransmitted_segments: u64,
    /// Number of times the retransmission timer expired.
    pub timeouts: u64,
    /// Number of times duplicate acknowledgements triggered a retransmission.
    pub fast_retransmits: u64,
}

impl Sender {
    /// Creates the sender of an open connection that has sent nothing. Times are on `clock`.
    pub fn new(config: &TcpConfig, clock: Clock) -> Self {
        let (options, recovery) = (config.options(), config.recovery(clock));
        let (chosen, observes) = (recovery.chooses(), recovery.observes());
        let mut windows = Windows::new(options, clock);
        let interval = windows.model().map(|model| model.interval());
        let departures = Departures::new(options, recovery.selective(), interval);
        let watches_acks = observes || departures.watch_acks();
        Self {
            mss: u32::try_from(options.mss.bytes).expect("scenario checks limit the segment size"),
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            end: u64::MAX,
            windows,
            offer: Offer { scale: window_scale(options.receive_window.bytes), field: None },
            departures,
            recovery,
            next: Next { chosen, pending: Pending::Nothing, cause: Cause::Timeout },
            board: Scoreboard::default(),
            clock: SenderClock::new(options, clock),
            rules: SenderRules {
                profile: options.rules,
                windows: options.window_rules(),
                after_idle: options.start_rules().after_idle,
                limited_transmit: options.recovery_rules().limited_transmit,
                observes,
                watches_acks,
            },
            reductions: Reductions::default(),
            marks: marks(options),
            counters: SenderCounters::default(),
        }
    }

    /// Starts at `offset`, as if all earlier bytes had been sent and acknowledged.
    #[must_use]
    pub fn starting_at(self, offset: u64) -> Self {
        let marks = self.marks.map(|marks| marks.starting_at(offset));
        Self { marks, snd_una: offset, snd_nxt: offset, snd_max: offset, ..self }
    }

    /// Spaces segments at least `interval` apart.
    #[must_use]
    pub fn paced(self, interval: Span) -> Self {
        let rules = SenderRules { watches_acks: true, ..self.rules };
        Self { departures: self.departures.paced(interval), rules, ..self }
    }

    /// Limits the data to `bytes`, rounded up to full segments.
    #[must_use]
    pub fn of_bytes(self, bytes: u64) -> Self {
        Self { end: bytes, ..self }
    }

    /// Opens the connection with a SYN, which the caller sends. No data leaves before [`Sender::on_opened`].
    pub fn open(&mut self, now: Time) {
        self.next.pending = Pending::Opening;
        self.clock.open(Segment { seq: 0, len: self.mss }, now);
    }

    /// Returns whether the connection still waits for the acknowledgement of its SYN.
    pub fn is_opening(&self) -> bool {
        self.next.pending == Pending::Opening
    }

    /// Processes the acknowledgement of the SYN. It gives the first round-trip sample unless the SYN was repeated.
    pub fn on_opened(&mut self, now: Time) {
        if let Some(timing) = self.clock.timing.take() {
            self.on_round_trip(timing, now);
        } else if let Some(ticks) = self.clock.rto_after_syn_timeout {
            self.clock.rtt.begin_at(ticks);
        }
        self.clock.timer.stop();
        self.next.pending = Pending::Nothing;
        if self.departures.deliveries.is_some() {
            self.follow_model();
        }
    }

    /// Adds `bytes` to the data to send, rounded up to full segments.
    pub fn write(&mut self, bytes: u64) {
        if self.has_ended() && self.rules.windows.unused_window == UnusedWindow::Hold {
            self.windows.on_pause();
        }
        if self.departures.deliveries.is_some() {
            self.check_application();
        }
        let whole = |bytes: u64| bytes.next_multiple_of(u64::from(self.mss));
        self.end = whole(self.end) + whole(bytes);
        // 4.3BSD, tcp_output: `idle && tp->t_idle >= tp->t_rxtcur`; idle means that snd_max equals snd_una.
        let is_idle = self.snd_una == self.snd_max && self.clock.idle >= self.clock.rtt.rto() + self.clock.slack;
        if self.rules.after_idle == AfterIdle::SlowStart && is_idle {
            reached!(IdleRestart);
            self.windows.restart();
            self.windows.follow_model();
        }
        self.clock.idle = 0;
        self.departures.begin_burst();
    }

    /// Returns whether all data is acknowledged.
    pub fn has_ended(&self) -> bool {
        self.snd_una >= self.end
    }

    /// Returns the number of bytes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.snd_una
    }

    /// Returns the number of bytes sent at least once.
    pub fn sent(&self) -> u64 {
        self.snd_max
    }

    /// Sends and returns the next segment that the windows and the pace allow, if any.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1.5 % of the instructions of a LAN run, and only one place outside tests calls the function"
    )]
    pub fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.next.chosen || self.next.pending != Pending::Nothing {
            return self.next_in_recovery(now);
        }
        self.next_in_order(now)
    }

    /// Returns when to call `next_segment` again, if the last call held back a segment only because of the pace.
    pub fn next_departure(&self, now: Time) -> Option<Time> {
        self.departures.pace.and_then(|pace| pace.departure(now))
    }

    /// Returns whether the connection uses explicit congestion notification.
    pub fn uses_ecn(&self) -> bool {
        self.marks.is_some()
    }

    /// Returns whether the last segment sent is ECN-capable (ECT).
    #[inline]
    pub fn sends_capable(&self) -> bool {
        self.marks.is_some_and(Marks::is_capable)
    }

    /// Returns whether the SYN and its answer are ECN-capable.
    //= rfc8257#3.6 "a SYN and its answer may be ECN-capable, which keeps them from being dropped above K"
    pub fn opens_capable(&self) -> bool {
        self.marks.is_some_and(Marks::opens_capable)
    }

    /// Returns whether acknowledgements without data are ECN-capable.
    //= rfc3168#6.1.4 "an acknowledgement without data is not ECN-capable"
    pub fn acknowledges_capable(&self) -> bool {
        self.marks.is_some_and(Marks::acknowledges_capable)
    }

    /// Records whether the acknowledgement that is processed next reports a mark (ECE).
    #[inline]
    pub fn on_echo(&mut self, echoed: bool) {
        if let Some(marks) = &mut self.marks {
            marks.on_echo(echoed);
        }
    }

    /// Returns whether the last segment sent reports that the window was reduced because of a mark (CWR).
    #[inline]
    pub fn reports_reduction(&self) -> bool {
        self.marks.is_some_and(Marks::reports_reduction)
    }

    /// Checks the timers, once per tick or more often. Returns whether a segment may be due.
    pub fn on_tick(&mut self, now: Time) -> bool {
        let [timeout, probe, early] = self.clock.check(self.snd_una);
        let handled = early && self.on_early_timer(now);
        if timeout && !handled {
            self.departures.begin_burst();
            self.on_timeout(now);
        }
        if probe {
            self.on_persist_timeout();
        }
        self.clock.count(self.counts_idle());
        timeout || probe || early
    }

    /// Returns the number of coming ticks at which no timer expires.
    pub fn quiet_ticks(&self) -> u64 {
        let [retransmission, persist] = self.timers();
        let timers = [retransmission, persist, self.clock.early.left().into()];
        timers.into_iter().filter(|&left| left > 0).min().map_or(u64::MAX, |left| left - 1)
    }

    /// Counts ticks at which no timer expires.
    pub fn skip_ticks(&mut self, ticks: u64) {
        self.clock.skip(ticks, self.counts_idle());
    }

    /// Returns whether a tick belongs to a pause.
    //= rfc5681#4.1 "a pause counts from the last data sent"
    fn counts_idle(&self) -> bool {
        self.rules.profile.is_rfc() || self.snd_una == self.snd_max
    }

    /// Converts bytes to full segments, with fractions.
    pub fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / f64::from(self.mss)
    }

    /// Returns cwnd in segments.
    pub fn cwnd(&self) -> f64 {
        self.windows.cwnd
    }

    /// Returns the window, min(cwnd, rwnd), in segments.
    pub fn window(&self) -> f64 {
        self.windows.window()
    }

    /// Returns ssthresh in segments.
    pub fn ssthresh(&self) -> f64 {
        self.windows.ssthresh
    }

    /// Returns the retransmission timeout in ticks, including backoff.
    pub fn rto(&self) -> u32 {
        self.clock.rtt.rto()
    }

    /// Returns how many results of the control's formulas were replaced so far because they were not finite numbers.
    pub fn replaced_results(&self) -> u64 {
        self.windows.replaced_results()
    }

    /// Returns the sender's counters.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// Returns the sender's state.
    pub fn state(&self) -> SenderState {
        let flight = self.snd_max - self.snd_una;
        SenderState { cwnd: self.cwnd(), ssthresh: self.ssthresh(), flight, rto: self.rto() }
    }

    /// Returns why the last segment was retransmitted, or `None` if it was not a retransmission.
    pub fn cause(&self) -> Cause {
        self.next.cause
    }

    /// Returns whether `segment`, which was sent last, is a window probe. A probe's byte counts as sent, but `snd_nxt`
    /// does not move.
    pub fn has_probed_with(&self, segment: Segment) -> bool {
        self.snd_nxt < segment.end()
    }

    /// Returns the ticks left on the retransmission and persist timers; 0 for a stopped timer.
    pub fn timers(&self) -> [u64; 2] {
        self.clock.left(self.snd_una)
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1 % of the time of a LAN run: each frame calls this function"
    )]
    fn next_in_order(&mut self, now: Time) -> Option<Segment> {
        let mut seq = self.snd_nxt;
        if seq < self.snd_max && !self.recovery.forgets_reports() {
            // After a timeout, skips data that the receiver has reported since (`docs/mechanisms.md` 3.7).
            seq = self.board.skip(seq);
            reached!(ReportedDataSkipped if seq > self.snd_nxt);
        }
        let window = self.windows.usable() * u64::from(self.mss);
        let fits = seq + u64::from(self.mss) <= self.snd_una + window;
        if !fits {
            self.reductions.filled_to = self.snd_nxt;
        }
        if seq >= self.end {
            return None;
        }
        if !fits {
            if self.windows.closed() && self.snd_nxt == self.snd_una {
                self.persist();
            }
            return None;
        }
        if self.departures.left == 0 || !self.departures.allow(now) {
            return None;
        }
        self.departures.left -= 1;
        self.snd_nxt = seq;
        Some(self.send(seq, now))
    }

    /// Sends retransmissions and probes. While the variant chooses segments, sends every segment.
    #[inline(never)]
    fn next_in_recovery(&mut self, now: Time) -> Option<Segment> {
        if self.rules.observes {
            self.recovery.at(now);
        }
        let choice = match self.next.pending {
            Pending::Probe => {
                self.next.pending = Pending::Nothing;
                return Some(self.probe());
            }
            Pending::Opening | Pending::Rest => return None,
            Pending::Nothing if self.departures.left == 0 => return None,
            Pending::Resend => Some(Choice::Hole(self.snd_una)).filter(|_| !self.windows.closed()),
            Pending::Nothing => {
                self.next.cause = self.recovery.cause();
                self.recovery.choose(&self.flight(&self.board), &self.windows)
            }
        };
        let Some(choice) = choice.filter(|choice| choice.seq() < self.end) else {
            self.on_nothing_chosen();
            return None;
        };
        if !self.departures.allow(now) {
            return None;
        }
        if let (Choice::Hole(seq), Some(_)) = (choice, &self.departures.deliveries) {
            self.lose(seq, now);
        }
        self.recovery.on_sent(choice, u64::from(self.mss));
        self.departures.left -= u64::from(self.next.pending == Pending::Nothing);
        self.next.pending = Pending::Nothing;
        let segment = self.send(choice.seq(), now);
        self.on_chosen_sent(choice);
        Some(segment)
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 0.5 % of the time of a LAN run: each segment calls this function"
    )]
    fn send(&mut self, seq: u64, now: Time) -> Segment {
        let segment = Segment { seq, len: self.mss };
        let again = seq < self.snd_max;
        self.clock.idle = 0;
        if again && self.snd_una >= self.reductions.timed_out_to {
            self.reductions.resent_to = segment.end();
        }
        if let Some(marks) = &mut self.marks {
            marks.on_sent(again);
        }
        //= rfc6298#3 "no round trip is measured with a segment that was sent again"
        if again && self.rules.profile.is_rfc() && !self.clock.times_again() {
            self.clock.timing.take_if(|timing| segment.seq < timing.until && timing.until <= segment.end());
        }
        self.counters.segments_sent += 1;
        self.counters.retransmitted_segments += u64::from(segment.end() <= self.snd_max);
        if self.clock.timing.is_none() && (!again || self.clock.times_again()) {
            self.clock.timing = Some(Timing { until: segment.end(), ticks: 1, sent: now });
        }
        self.clock.start(segment, again);
        self.snd_nxt = self.snd_nxt.max(segment.end());
        self.snd_max = self.snd_max.max(self.snd_nxt);
        if self.departures.deliveries.is_some() {
            self.record_departure(segment, now);
        }
        segment
    }
}

/// Returns the state of marks, if the connection uses them.
fn marks(options: &TcpOptions) -> Option<Marks> {
    let (to_mark, capable) = match (options.congestion.needs_exact_echo(), options.rules.is_rfc()) {
        (true, true) => (ToMark::Share, Capable::NewDataAndSyns),
        (true, false) => (ToMark::Share, Capable::All),
        (false, true) => (ToMark::ReduceOrRest, Capable::NewData),
        (false, false) => (ToMark::Reduce, Capable::NewData),
    };
    (options.ecn == Ecn::On).then(|| Marks::new(to_mark, capable))
}
