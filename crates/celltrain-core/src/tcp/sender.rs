//! The sending end: its windows, the selection of segments, the retransmission and persist timers, and pacing.
//!
//! Source: `docs/mechanisms.md` 3.1 to 3.7; RFC 793 for the variables; RFC 1122 (4.2.2.17) for closed windows; RFC 6298
//! and RFC 5681 (3.1) for the handshake. The sender is independent of the engine: its caller reports events and
//! requests segments. Differences from the source: a window probe carries one byte; every other segment is full,
//! even the last of a file. With the rules of the papers, the first data after a repeated SYN has the timeout
//! to which the SYN backed off.

use super::congestion::Windows;
use super::marks::{Capable, Marks, ToMark};
use super::recovery::{Choice, Flight, Progress, Reaction, Recovery, THRESHOLD, Timer};
use super::rtt::{RtoLimits, RttEstimator};
use super::scoreboard::{SackBlocks, Scoreboard};
use super::timers::{Countdown, RetransmissionTimer, SegmentTimers};
use super::{
    Ack, AfterIdle, Backoff, DuplicateAcks, Ecn, LimitedTransmit, RepeatedCongestion, RttSampling, Rules, Segment,
    TcpConfig, TcpOptions, TimerExpiry, TimerRestart, TimerRules, UnusedWindow, WindowRules, window_scale,
};
use crate::coverage::reached;
use crate::units::{Clock, Duration, Span, Time};

/// RFC 6298 (5.7).
const RTO_AFTER_SYN_TIMEOUT: Duration = Duration::from_milliseconds(3_000);

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
    window_scale: u32,
    /// The window field of the latest acknowledgement.
    advertised: Option<u16>,
    recovery: Box<dyn Recovery>,
    /// True while `recovery` chooses the next segment.
    chosen: bool,
    pending: Pending,
    /// Reason for the current retransmission, for event logs only.
    cause: Cause,
    board: Scoreboard,
    rtt: RttEstimator,
    timer: RetransmissionTimer,
    persist: Countdown,
    /// Number of window probes sent since the window closed.
    probes: u32,
    timing: Option<Timing>,
    /// Number of timer checks per tick, and number of checks since the last tick.
    checks: u32,
    checked: u32,
    /// Ticks since data was last sent. With the papers' rules: since all data was acknowledged.
    idle: u32,
    rules: Rules,
    /// Timeout in ticks of the first data after a SYN was retransmitted, if it differs from the backed-off timeout.
    rto_after_syn_timeout: Option<u32>,
    /// End of the last segment that fast recovery retransmitted, unless a timeout had retransmitted that segment
    /// before.
    resent_to: u64,
    /// Value of `snd_max` at the last timeout.
    timed_out_to: u64,
    after_idle: AfterIdle,
    window_rules: WindowRules,
    timer_rules: TimerRules,
    /// Number of extra checks for a timer that is started between two checks, so that it never expires early.
    slack: u32,
    /// Value of `snd_max` when congestion last reduced the windows.
    reduced_at: Option<u64>,
    /// True if this reduction was by a share of marks, after which a loss in the same window still reduces the windows.
    reduced_by_share: bool,
    /// Value of `snd_nxt` when the window was last full: acknowledgements of data before this offset may increase cwnd.
    filled_to: u64,
    pace: Option<Pace>,
    limited_transmit: LimitedTransmit,
    /// Number of segments that may still be sent because of the last acknowledgement or timeout.
    burst_left: u64,
    /// Limits on the number of segments sent at once, if there are any.
    bursts: Option<Bursts>,
    marks: Option<Marks>,
    counters: SenderCounters,
}

/// Reason for a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The retransmission timer expired. This is the first unacknowledged segment or a later one.
    Timeout,
    /// The number of duplicate acknowledgements reached the threshold.
    DuplicateAcks,
    /// An acknowledgement covered part of the outstanding data.
    PartialAck,
    /// The receiver reported data beyond this segment.
    Hole,
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

/// The segment being timed: the acknowledgement that ends the measurement, the ticks counted so far (from 1), and the
/// send time.
#[derive(Clone, Copy, Debug)]
struct Timing {
    until: u64,
    ticks: u32,
    sent: Time,
}

/// Largest numbers of segments sent because of one acknowledgement or one timeout.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    largest: u64,
    in_recovery: u64,
}

impl Bursts {
    /// Returns the limits of a TCP, if it has any.
    fn of(options: &TcpOptions) -> Option<Self> {
        let largest = options.window_rules().max_burst;
        let in_recovery = options.recovery_rules().burst.or(largest)?.into();
        Some(Self { largest: largest.map_or(u64::MAX, u64::from), in_recovery })
    }
}

/// The pacing state of a rate-limited sender.
#[derive(Clone, Copy, Debug)]
struct Pace {
    interval: Span,
    /// Earliest departure time of the next segment.
    next: Time,
    /// True if a segment is waiting for `next`.
    waiting: bool,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Number of times the retransmission timer expired.
    pub timeouts: u64,
    /// Number of times duplicate acknowledgements triggered a retransmission.
    pub fast_retransmits: u64,
}

impl Sender {
    /// Creates the sender of an open connection that has sent nothing. Times are on `clock`.
    pub fn new(config: &TcpConfig, clock: Clock) -> Self {
        let options = config.options();
        let timer_rules = options.timer_rules();
        let limits = RtoLimits {
            minimum: options.minimum_rto,
            least_variance: if options.rules.is_rfc() { 1.0 } else { 0.0 },
            maximum: options.ticks(timer_rules.maximum_rto),
            initial: options.ticks(timer_rules.initial_rto),
        };
        let bursts = Bursts::of(options);
        Self {
            mss: u32::try_from(options.mss.bytes).expect("scenario checks limit the segment size"),
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            end: u64::MAX,
            windows: Windows::new(options, clock),
            window_scale: window_scale(options.receive_window.bytes),
            advertised: None,
            recovery: config.recovery(),
            chosen: false,
            pending: Pending::Nothing,
            cause: Cause::Timeout,
            board: Scoreboard::default(),
            rtt: RttEstimator::new(limits, timer_rules.rtt_arithmetic).forgetting(timer_rules.estimate_forgotten),
            timer: match timer_rules.restart {
                TimerRestart::EveryNewAck | TimerRestart::WhenAllAcked => {
                    RetransmissionTimer::Common(Countdown::default())
                }
                TimerRestart::PerSegment => RetransmissionTimer::PerSegment(Box::<SegmentTimers>::default()),
            },
            persist: Countdown::default(),
            probes: 0,
            timing: None,
            checks: u32::try_from(options.timer_granularity.picoseconds / options.resolution().picoseconds)
                .expect("scenario checks limit both sizes"),
            checked: 0,
            idle: 0,
            rules: options.rules,
            rto_after_syn_timeout: (options.rules.is_rfc() && timer_rules.initial_rto < RTO_AFTER_SYN_TIMEOUT)
                .then(|| options.ticks(RTO_AFTER_SYN_TIMEOUT)),
            resent_to: 0,
            timed_out_to: 0,
            after_idle: options.start_rules().after_idle,
            window_rules: options.window_rules(),
            timer_rules,
            //= rfc6298#5 "a retransmission timer expires after RTO and never earlier"
            slack: u32::from(timer_rules.expiry == TimerExpiry::AfterRto),
            reduced_at: None,
            reduced_by_share: false,
            filled_to: 0,
            pace: None,
            limited_transmit: options.recovery_rules().limited_transmit,
            burst_left: bursts.map_or(u64::MAX, |bursts| bursts.largest),
            bursts,
            marks: (options.ecn == Ecn::On).then(|| {
                let (to_mark, capable) = match (options.congestion.needs_exact_echo(), options.rules.is_rfc()) {
                    (true, true) => (ToMark::Share, Capable::NewDataAndSyns),
                    (true, false) => (ToMark::Share, Capable::All),
                    (false, true) => (ToMark::ReduceOrRest, Capable::NewData),
                    (false, false) => (ToMark::Reduce, Capable::NewData),
                };
                Marks::new(to_mark, capable)
            }),
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
        Self { pace: Some(Pace { interval, next: Time::default(), waiting: false }), ..self }
    }

    /// Limits the data to `bytes`, rounded up to full segments.
    #[must_use]
    pub fn of_bytes(self, bytes: u64) -> Self {
        Self { end: bytes, ..self }
    }

    /// Opens the connection with a SYN, which the caller sends. No data leaves before [`Sender::on_opened`].
    pub fn open(&mut self, now: Time) {
        self.pending = Pending::Opening;
        self.timing = Some(Timing { until: 0, ticks: 1, sent: now });
        match &mut self.timer {
            RetransmissionTimer::Common(timer) => timer.start(self.rtt.rto() * self.checks + self.slack),
            RetransmissionTimer::PerSegment(timers) => timers.start(Segment { seq: 0, len: self.mss }, false),
        }
    }

    /// Returns whether the connection still waits for the acknowledgement of its SYN.
    pub fn is_opening(&self) -> bool {
        self.pending == Pending::Opening
    }

    /// Processes the acknowledgement of the SYN. It gives the first round-trip sample unless the SYN was repeated.
    pub fn on_opened(&mut self, now: Time) {
        if let Some(timing) = self.timing.take() {
            self.rtt.sample(timing.ticks);
            self.windows.on_round_trip(now - timing.sent);
        } else if let Some(ticks) = self.rto_after_syn_timeout {
            self.rtt.begin_at(ticks);
        }
        self.timer.stop();
        self.pending = Pending::Nothing;
    }

    /// Adds `bytes` to the data to send, rounded up to full segments.
    pub fn write(&mut self, bytes: u64) {
        if self.has_ended() && self.window_rules.unused_window == UnusedWindow::Hold {
            self.windows.on_pause();
        }
        let whole = |bytes: u64| bytes.next_multiple_of(u64::from(self.mss));
        self.end = whole(self.end) + whole(bytes);
        // 4.3BSD, tcp_output: `idle && tp->t_idle >= tp->t_rxtcur`; idle means that snd_max equals snd_una.
        let is_idle = self.snd_una == self.snd_max && self.idle >= self.rtt.rto() + self.slack;
        if self.after_idle == AfterIdle::SlowStart && is_idle {
            reached!(IdleRestart);
            self.windows.restart();
        }
        self.idle = 0;
        self.begin_burst();
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
    #[inline]
    pub fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.chosen || self.pending != Pending::Nothing {
            return self.next_in_recovery(now);
        }
        self.next_in_order(now)
    }

    /// Returns when to call `next_segment` again, if the last call held back a segment only because of the pace.
    pub fn next_departure(&self, now: Time) -> Option<Time> {
        self.pace.filter(|pace| pace.waiting && pace.next > now).map(|pace| pace.next)
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

    /// Processes an acknowledgement and its blocks (empty unless the ends exchange them).
    pub fn on_ack(&mut self, ack: Ack, blocks: &SackBlocks, now: Time) {
        assert!(ack.ack <= self.snd_max, "a receiver acknowledges only sent data");
        if ack.ack < self.snd_una {
            // RFC 1122 (4.2.2.20 g): an old acknowledgement does not update the window either.
            return;
        }
        let same_window = self.advertised == Some(ack.window) || self.set_window(ack.window);
        if self.persist.is_running() && !self.windows.closed() {
            reached!(WindowReopened);
            self.persist.stop();
            self.probes = 0;
            self.pending = Pending::Nothing;
        }
        let news = !blocks.is_empty() && self.board.record(blocks, ack.ack);
        reached!(WindowUpdate if ack.ack == self.snd_una && !same_window && !news && self.timer.is_running());
        if ack.ack > self.snd_una {
            self.on_new_ack(ack.ack, now);
            //= rfc6675#5 "an acknowledgement of new data that reports other new data is also a duplicate"
            if news && self.recovery.counts_progress() {
                self.on_duplicate_ack(news, now);
            }
        } else if (same_window || news) && self.timer.is_running() && self.pending != Pending::Rest {
            // RFC 5681 (2 e): a window update is not a duplicate. RFC 6675 (2): it is one if it reports new data. The
            // timer runs while data other than a window probe is outstanding.
            self.on_duplicate_ack(news, now);
        }
        if let Some(bursts) = self.bursts {
            self.burst_left = if self.recovery.recovers() { bursts.in_recovery } else { bursts.largest };
        }
    }

    /// Sets rwnd. Returns whether rwnd is still the same number of segments.
    fn set_window(&mut self, advertised: u16) -> bool {
        self.advertised = Some(advertised);
        let rwnd = ((u64::from(advertised) << self.window_scale) / u64::from(self.mss)) as f64;
        std::mem::replace(&mut self.windows.rwnd, rwnd) == rwnd
    }

    /// Checks the timers, once per tick or more often. Returns whether a segment may be due.
    pub fn on_tick(&mut self, now: Time) -> bool {
        let timeout = match &mut self.timer {
            RetransmissionTimer::Common(timer) => timer.on_tick(),
            RetransmissionTimer::PerSegment(timers) => {
                timers.on_tick(self.snd_una, self.rtt.rto() * self.checks + self.slack)
            }
        };
        let probe = self.persist.on_tick();
        if timeout {
            self.begin_burst();
            self.on_timeout(now);
        }
        if probe {
            self.on_persist_timeout();
        }
        self.checked += 1;
        if self.checked == self.checks {
            self.checked = 0;
            if let Some(timing) = &mut self.timing {
                timing.ticks = timing.ticks.saturating_add(1);
            }
            if self.counts_idle() {
                self.idle = self.idle.saturating_add(1);
            }
        }
        timeout || probe
    }

    /// Returns the number of coming ticks at which no timer expires.
    pub fn quiet_ticks(&self) -> u64 {
        self.timers().into_iter().filter(|&left| left > 0).min().map_or(u64::MAX, |left| left - 1)
    }

    /// Counts ticks at which no timer expires.
    pub fn skip_ticks(&mut self, ticks: u64) {
        match &mut self.timer {
            RetransmissionTimer::Common(timer) => timer.skip(ticks),
            RetransmissionTimer::PerSegment(timers) => timers.skip(ticks),
        }
        self.persist.skip(ticks);
        let checked = u64::from(self.checked) + ticks;
        let whole = u32::try_from(checked / u64::from(self.checks)).unwrap_or(u32::MAX);
        self.checked = u32::try_from(checked % u64::from(self.checks))
            .expect("the remainder is smaller than the divisor, which is a u32");
        if let Some(timing) = &mut self.timing {
            timing.ticks = timing.ticks.saturating_add(whole);
        }
        if self.counts_idle() {
            self.idle = self.idle.saturating_add(whole);
        }
    }

    /// Returns whether a tick belongs to a pause.
    //= rfc5681#4.1 "a pause counts from the last data sent"
    fn counts_idle(&self) -> bool {
        self.rules.is_rfc() || self.snd_una == self.snd_max
    }

    /// Returns a number of bytes in full segments.
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
        self.rtt.rto()
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

    /// Returns why the last segment sent was retransmitted, if it was.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// Returns whether `segment`, which was sent last, is a window probe. A probe's byte counts as sent, but `snd_nxt`
    /// does not move.
    pub fn has_probed_with(&self, segment: Segment) -> bool {
        self.snd_nxt < segment.end()
    }

    /// Returns the ticks left on the retransmission and persist timers; 0 for a stopped timer.
    pub fn timers(&self) -> [u64; 2] {
        let retransmission = match &self.timer {
            RetransmissionTimer::Common(timer) => u64::from(timer.left()),
            RetransmissionTimer::PerSegment(timers) => {
                timers.left(self.snd_una, self.rtt.rto() * self.checks + self.slack)
            }
        };
        [retransmission, u64::from(self.persist.left())]
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call takes 1 % of a run on a LAN: the function is called for each frame"
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
            self.filled_to = self.snd_nxt;
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
        if self.burst_left == 0 || !self.may_leave(now) {
            return None;
        }
        self.burst_left -= 1;
        self.snd_nxt = seq;
        Some(self.send(seq, now))
    }

    /// Sends retransmissions, probes and, while the variant chooses, every segment.
    #[inline(never)]
    fn next_in_recovery(&mut self, now: Time) -> Option<Segment> {
        let choice = match self.pending {
            Pending::Probe => {
                self.pending = Pending::Nothing;
                return Some(self.probe());
            }
            Pending::Opening | Pending::Rest => return None,
            Pending::Nothing if self.burst_left == 0 => return None,
            Pending::Resend => Some(Choice::Hole(self.snd_una)).filter(|_| !self.windows.closed()),
            Pending::Nothing => {
                self.cause = Cause::Hole;
                self.recovery.choose(&self.flight(&self.board), &self.windows)
            }
        };
        let choice = choice.filter(|choice| choice.seq() < self.end)?;
        if !self.may_leave(now) {
            return None;
        }
        self.recovery.on_sent(choice, u64::from(self.mss));
        self.burst_left -= u64::from(self.pending == Pending::Nothing);
        self.pending = Pending::Nothing;
        Some(self.send(choice.seq(), now))
    }

    /// Allows the segments of a burst outside fast recovery.
    fn begin_burst(&mut self) {
        self.burst_left = self.bursts.map_or(u64::MAX, |bursts| bursts.largest);
    }

    /// Returns whether the pace allows a segment now. If so, the segment counts as sent.
    #[inline]
    fn may_leave(&mut self, now: Time) -> bool {
        let Some(pace) = &mut self.pace else { return true };
        pace.waiting = now < pace.next;
        reached!(SegmentWaitsForPace if pace.waiting);
        if !pace.waiting {
            pace.next = now + pace.interval;
        }
        !pace.waiting
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call takes 0.5 % of a run on a LAN: the function is called for each segment"
    )]
    fn send(&mut self, seq: u64, now: Time) -> Segment {
        let segment = Segment { seq, len: self.mss };
        let again = seq < self.snd_max;
        self.idle = 0;
        if again && self.snd_una >= self.timed_out_to {
            self.resent_to = segment.end();
        }
        if let Some(marks) = &mut self.marks {
            marks.on_sent(again);
        }
        //= rfc6298#3 "no round trip is measured with a segment that was sent again"
        if again && self.rules.is_rfc() && self.timer_rules.rtt_sampling != RttSampling::IncludeRetransmissions {
            self.timing.take_if(|timing| segment.seq < timing.until && timing.until <= segment.end());
        }
        self.counters.segments_sent += 1;
        self.counters.retransmitted_segments += u64::from(segment.end() <= self.snd_max);
        if self.timing.is_none() && (!again || self.timer_rules.rtt_sampling == RttSampling::IncludeRetransmissions) {
            self.timing = Some(Timing { until: segment.end(), ticks: 1, sent: now });
        }
        match &mut self.timer {
            RetransmissionTimer::Common(timer) if timer.is_running() => {}
            RetransmissionTimer::Common(timer) => timer.start(self.rtt.rto() * self.checks + self.slack),
            RetransmissionTimer::PerSegment(timers) => timers.start(segment, again),
        }
        self.snd_nxt = self.snd_nxt.max(segment.end());
        self.snd_max = self.snd_max.max(self.snd_nxt);
        segment
    }

    /// Starts probing a closed window when all data is acknowledged or considered lost. RFC 1122 (4.2.2.17): the first
    /// probe waits for a retransmission timeout, and later intervals grow exponentially. In 4.3BSD the persist timer
    /// also replaces the retransmission timer.
    fn persist(&mut self) {
        if !self.persist.is_running() {
            reached!(WindowClosed);
            self.timer.stop();
            self.timing = None;
            self.persist.start(self.rtt.rto_after(self.probes) * self.checks + self.slack);
        }
    }

    fn on_persist_timeout(&mut self) {
        self.probes += 1;
        reached!(WindowProbedAgain if self.probes > 1);
        self.pending = Pending::Probe;
        self.persist.start(self.rtt.rto_after(self.probes) * self.checks);
    }

    /// Sends one byte. As in 4.3BSD, the byte counts as sent but `snd_nxt` does not move, so the next segment includes
    /// the byte again.
    fn probe(&mut self) -> Segment {
        self.counters.segments_sent += 1;
        if let Some(marks) = &mut self.marks {
            // Like a retransmitted segment, a probe does not report a reduction.
            marks.on_sent(true);
        }
        self.snd_max = self.snd_max.max(self.snd_una + 1);
        Segment { seq: self.snd_una, len: 1 }
    }

    /// Describes the outstanding data. Borrows only the scoreboard, so that recovery and windows can change while the
    /// result is in use.
    fn flight<'a>(&self, board: &'a Scoreboard) -> Flight<'a> {
        let reduced = self.is_reduced();
        Flight { una: self.snd_una, max: self.snd_max, end: self.end, mss: u64::from(self.mss), reduced, board }
    }

    /// Returns whether a loss detected now concerns data for which the windows are already reduced. It then does not
    /// lower ssthresh.
    //= rfc8257#3.5 "a loss changes the windows as in another TCP, also after a mark of the same window"
    fn is_reduced(&self) -> bool {
        self.window_rules.repeated_congestion == RepeatedCongestion::OncePerWindow
            && !self.reduced_by_share
            && self.reduced_at.is_some_and(|at| self.snd_una < at)
    }

    /// Returns whether a timeout leaves ssthresh unchanged. If fast recovery has retransmitted the segment, the timeout
    /// lowers ssthresh, because the loss of that retransmission is another sign of congestion.
    //= rfc5681#4.3 "the loss of a retransmission lowers ssthresh again"
    fn is_reduced_for_timeout(&self) -> bool {
        self.is_reduced() && self.snd_una >= self.resent_to
    }

    fn outstanding(&self) -> f64 {
        (self.snd_max - self.snd_una) as f64 / f64::from(self.mss)
    }

    /// Passes the time and the flight size to a control that sets both windows itself.
    #[inline]
    fn tell_control(&mut self, now: Time) {
        if self.windows.ruled() {
            self.windows.at(now, self.outstanding());
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call takes 1 % of a run on a LAN: this is the only one")]
    fn on_new_ack(&mut self, ack: u64, now: Time) {
        if let Some(timing) = self.timing.take_if(|timing| ack >= timing.until) {
            self.rtt.sample(timing.ticks);
            self.windows.on_round_trip(now - timing.sent);
        }
        reached!(AckBeyondNextSegment if ack > self.snd_nxt);
        let acked = ack - self.snd_una;
        let used = self.was_used();
        self.windows.beyond_cwnd = 0.0;
        self.snd_una = ack;
        if !self.rules.is_rfc() {
            self.idle = 0;
        }
        self.snd_nxt = self.snd_nxt.max(ack);
        if !self.board.is_empty() {
            self.board.forget_before(ack);
        }
        self.tell_control(now);
        let reports_mark = self.reduce_if_marked(acked);
        let flight = self.flight(&self.board);
        let progress = self.recovery.on_new_ack(&flight, acked, &mut self.windows);
        if self.pending == Pending::Rest {
            self.restart_timer(self.slack);
        } else if ack == self.snd_max {
            self.timer.stop();
        } else if self.timer_rules.restart == TimerRestart::EveryNewAck && progress != Progress::Resend(Timer::Keep) {
            self.restart_timer(self.slack);
        }
        if progress == Progress::Grow && !reports_mark {
            self.windows.on_new_ack(now, acked as f64 / f64::from(self.mss), used);
        }
        if let Progress::Resend(_) = progress {
            // Karn: from now on, an acknowledgement of the timed segment may be caused by its retransmission.
            self.timing = None;
            self.pending = Pending::Resend;
            self.cause = Cause::PartialAck;
        } else if self.pending == Pending::Resend {
            self.pending = Pending::Nothing;
        }
        if !self.board.is_empty() && self.recovery.forgets_reports() {
            self.board.clear();
        }
        if self.chosen || progress != Progress::Grow {
            self.chosen = self.recovery.chooses();
        }
    }

    /// Reduces the windows if the acknowledgement, of `acked` new bytes, reports a mark and the windows have not been
    /// reduced for this data (RFC 3168, 6.1.2). Returns whether a mark was reported, in which case cwnd does not grow.
    #[inline]
    fn reduce_if_marked(&mut self, acked: u64) -> bool {
        self.marks.is_some() && self.on_echoes(acked)
    }

    #[inline(never)]
    fn on_echoes(&mut self, acked: u64) -> bool {
        let Some(marks) = &mut self.marks else { return false };
        self.windows.on_echo(acked as f64 / f64::from(self.mss), marks.is_echoed());
        if marks.acknowledges_window(self.snd_una, self.snd_nxt) {
            self.windows.on_window_acknowledged();
        }
        let is_echoed = marks.is_echoed();
        if is_echoed && self.reduced_at.is_none_or(|at| self.snd_una > at) {
            reached!(WindowReducedByMark);
            //= rfc3168#6.1.2 "after a mark at a cwnd of one segment, the next one waits for the retransmission timer"
            let is_least = self.windows.cwnd < 2.0 && self.snd_una == self.snd_max;
            if is_least && marks.rests() && !self.windows.closed() {
                self.pending = Pending::Rest;
            }
            let is_share = marks.takes_share();
            self.windows.on_mark(self.outstanding() + acked as f64 / f64::from(self.mss));
            self.note_reduction();
            self.reduced_by_share = is_share;
        } else {
            reached!(MarkIgnoredInWindow if is_echoed);
        }
        is_echoed
    }

    /// Records that the windows were reduced, so that further signs of congestion on outstanding data do not lower
    /// ssthresh again.
    fn note_reduction(&mut self) {
        self.reduced_at = Some(self.snd_max);
        self.reduced_by_share = false;
        if let Some(marks) = &mut self.marks {
            marks.on_reduction();
        }
    }

    /// Returns whether the first segment not acknowledged belongs to data that filled the window.
    //= rfc7661#3 "the window counts as used only if it limited what was sent"
    #[inline]
    fn was_used(&self) -> bool {
        self.snd_una < self.filled_to || self.window_rules.unused_window == UnusedWindow::Grow
    }

    fn on_duplicate_ack(&mut self, news: bool, now: Time) {
        self.tell_control(now);
        if self.window_rules.duplicate_acks == DuplicateAcks::GrowWindow {
            self.windows.on_new_ack(now, 1.0, self.was_used());
        }
        let flight = self.flight(&self.board);
        let reduced = flight.reduced;
        let reaction = self.recovery.on_duplicate_ack(&flight, news, &mut self.windows);
        self.windows.beyond_cwnd = 0.0;
        match reaction {
            Reaction::Ignore => self.transmit_beyond_cwnd(),
            Reaction::GoBack => {
                reached!(FastRetransmit);
                self.counters.fast_retransmits += 1;
                self.windows.after_loss();
                if !reduced {
                    self.note_reduction();
                }
                self.cause = Cause::DuplicateAcks;
                self.go_back(self.slack);
            }
            Reaction::Resend => {
                reached!(FastRetransmit);
                self.counters.fast_retransmits += 1;
                self.windows.after_loss();
                if !reduced {
                    self.note_reduction();
                }
                self.timing = None;
                self.restart_timer(self.slack);
                self.pending = Pending::Resend;
                self.cause = Cause::DuplicateAcks;
            }
        }
        self.reduce_if_marked(0);
        self.chosen = self.recovery.chooses();
    }

    /// RFC 3042 (2): each of the first two duplicates allows one more unsent segment, without a change of cwnd.
    fn transmit_beyond_cwnd(&mut self) {
        let allows = match self.limited_transmit {
            LimitedTransmit::Off => false,
            LimitedTransmit::On => self.snd_nxt == self.snd_max,
            LimitedTransmit::Any => true,
        };
        let allowed = if allows { self.recovery.dup_acks() } else { 0 };
        if allowed < THRESHOLD {
            self.windows.beyond_cwnd = f64::from(allowed);
        }
    }

    fn on_timeout(&mut self, now: Time) {
        if self.pending == Pending::Rest {
            self.pending = Pending::Nothing;
            return;
        }
        self.counters.timeouts += 1;
        self.rtt.on_timeout();
        if self.timer_rules.backoff == Backoff::Double {
            self.rtt.back_off();
        }
        if self.pending == Pending::Opening {
            reached!(SynTimeout);
            // RFC 5681 (3.1): after a lost SYN or SYN-ACK, the initial window is one segment.
            self.windows.cwnd = 1.0;
            self.timing = (self.timer_rules.rtt_sampling == RttSampling::IncludeRetransmissions).then_some(Timing {
                until: 0,
                ticks: 0,
                sent: now,
            });
            self.restart_timer(0);
            return;
        }
        reached!(TimeoutAfterMark if self.marks.is_some_and(Marks::is_echoed));
        self.windows.beyond_cwnd = 0.0;
        self.tell_control(now);
        self.windows.on_timeout(self.outstanding(), self.is_reduced_for_timeout());
        (self.timed_out_to, self.resent_to) = (self.snd_max, 0);
        self.note_reduction();
        let flight = self.flight(&self.board);
        self.recovery.on_timeout(&flight);
        self.chosen = false;
        self.pending = Pending::Nothing;
        self.board.clear();
        self.cause = Cause::Timeout;
        self.go_back(0);
    }

    /// Go-back-N: the next segment sent is the first unacknowledged segment, and it may not be timed (Karn). Restarts
    /// the timer. If the window is closed and nothing can be sent, starts the persist timer instead.
    fn go_back(&mut self, slack: u32) {
        self.timing = None;
        self.restart_timer(slack);
        self.snd_nxt = self.snd_una;
    }

    /// Restarts the timer for all outstanding data. With a timer for each segment, restarts that of the first segment.
    /// A timer started at the time of a check needs no extra check.
    fn restart_timer(&mut self, slack: u32) {
        match &mut self.timer {
            RetransmissionTimer::Common(timer) => timer.start(self.rtt.rto() * self.checks + slack),
            RetransmissionTimer::PerSegment(timers) => timers.start(Segment { seq: self.snd_una, len: self.mss }, true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Rules, StartOptions, TcpOptions};

    const NOW: Time = Time(0);

    fn sender() -> Sender {
        Sender::new(&TcpConfig::Vanilla(TcpOptions { rules: Rules::Paper, ..TcpOptions::default() }), Clock::exact(1))
    }

    #[test]
    fn after_the_receiver_accepts_the_byte_of_a_window_probe_the_sender_continues_at_the_next_byte() {
        let mut sender = sender();
        assert_eq!(sender.next_segment(NOW), Some(Segment { seq: 0, len: 512 }));
        sender.on_ack(Ack { ack: 512, window: 0 }, &SackBlocks::default(), NOW);
        assert_eq!(sender.next_segment(NOW), None);
        assert!(!sender.on_tick(NOW) && !sender.on_tick(NOW), "the first probe waits for a retransmission timeout");
        assert!(sender.on_tick(NOW));
        assert_eq!(sender.next_segment(NOW), Some(Segment { seq: 512, len: 1 }));
        assert_eq!(sender.next_segment(NOW), None);
        // RFC 1122 (4.2.2.17): the window has opened, but the update was lost.
        sender.on_ack(Ack { ack: 513, window: 65535 }, &SackBlocks::default(), NOW);
        assert_eq!(sender.next_segment(NOW), Some(Segment { seq: 513, len: 512 }));
        let counters = sender.counters();
        assert_eq!((counters.segments_sent, counters.retransmitted_segments, counters.timeouts), (3, 0, 0));
    }

    #[test]
    fn after_an_idle_period_longer_than_the_timeout_the_congestion_window_optionally_falls_to_one_segment() {
        for (after_idle, ticks, cwnd) in
            [(AfterIdle::SlowStart, 2, 5.0), (AfterIdle::SlowStart, 3, 1.0), (AfterIdle::KeepWindow, 3, 5.0)]
        {
            let options = TcpOptions {
                rules: Rules::Paper,
                start: StartOptions { after_idle: Some(after_idle), ..StartOptions::default() },
                ..TcpOptions::default()
            };
            let clock = Clock::exact(1);
            let mut sender = Sender::new(&TcpConfig::Vanilla(options), clock).of_bytes(4 * 512);
            for ack in 1..=4 {
                while sender.next_segment(NOW).is_some() {}
                sender.on_ack(Ack { ack: 512 * ack, window: 65535 }, &SackBlocks::default(), NOW);
            }
            assert!(sender.has_ended());
            assert_eq!((sender.cwnd(), sender.rto()), (5.0, 3));
            (0..ticks).for_each(|_| assert!(!sender.on_tick(NOW)));
            sender.write(512);
            assert_eq!((sender.cwnd(), sender.ssthresh()), (cwnd, 127.0));
        }
    }

    /// Regression: ticks before the first data counted as a pause, as did ticks between two segments of a paced sender.
    #[test]
    fn a_pause_between_bursts_begins_when_all_data_is_acknowledged() {
        let options = TcpOptions {
            rules: Rules::Paper,
            start: StartOptions { after_idle: Some(AfterIdle::SlowStart), ..StartOptions::default() },
            ..TcpOptions::default()
        };
        let mut sender = Sender::new(&TcpConfig::Vanilla(options), Clock::exact(1)).of_bytes(512);
        (0..100).for_each(|_| assert!(!sender.on_tick(NOW)));
        assert!(sender.next_segment(NOW).is_some());
        sender.on_ack(Ack { ack: 512, window: 65535 }, &SackBlocks::default(), NOW);
        sender.write(512);
        assert_eq!(sender.cwnd(), 2.0);
    }

    #[test]
    fn a_paced_sender_sets_a_timer_only_if_a_segment_waits_for_its_turn() {
        let mut sender = sender().paced(Span(10));
        assert!(sender.next_segment(NOW).is_some());
        assert_eq!((sender.next_segment(NOW), sender.next_departure(NOW)), (None, None), "the window is full");
        sender.on_ack(Ack { ack: 512, window: 65535 }, &SackBlocks::default(), Time(4));
        assert_eq!((sender.next_segment(Time(4)), sender.next_departure(Time(4))), (None, Some(Time(10))));
        assert!(sender.next_segment(Time(10)).is_some());
        assert_eq!((sender.next_segment(Time(10)), sender.next_departure(Time(10))), (None, Some(Time(20))));
    }
}
