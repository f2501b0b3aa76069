//! The sender's timers: the retransmission and persist timers, the estimate of the round-trip time, and the pause.
//!
//! Source: `docs/mechanisms.md` 3.2; RFC 6298. Times are counted in checks of the timers. A tick has one or more
//! checks.

use crate::tcp::recovery::EarlyTimer;
use crate::tcp::rtt::{RtoLimits, RttEstimator};
use crate::tcp::timers::{Countdown, RetransmissionTimer, SegmentTimers};
use crate::tcp::{RttSampling, Segment, TcpOptions, TimerExpiry, TimerRestart, TimerRules};
use crate::units::{Clock, Duration, Span, Time};

/// The timers of a sender.
pub(super) struct SenderClock {
    pub(super) rules: TimerRules,
    pub(super) rtt: RttEstimator,
    pub(super) timer: RetransmissionTimer,
    pub(super) persist: Countdown,
    /// Number of window probes sent since the window closed.
    pub(super) probes: u32,
    pub(super) timing: Option<Timing>,
    /// Number of timer checks per tick, and number of checks since the last tick.
    checks: u32,
    checked: u32,
    /// Ticks since data was last sent. With the papers' rules: since all data was acknowledged.
    pub(super) idle: u32,
    /// Timeout in ticks of the first data after a SYN was retransmitted, if it differs from the backed-off timeout.
    pub(super) rto_after_syn_timeout: Option<u32>,
    /// Number of extra checks for a timer that is started between two checks, so that it never expires early.
    pub(super) slack: u32,
    /// The reordering timer or the probe timeout.
    pub(super) early: Countdown,
    pub(super) early_kind: EarlyKind,
    /// `TLP.max_ack_delay` in checks.
    max_ack_delay: u32,
    /// The probe timeout without an estimate of the round-trip time.
    initial_pto: Span,
    /// Time between two checks.
    period: Span,
}

/// The kind of the early timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlyKind {
    Reordering,
    Probe,
}

/// RFC 8985 (7.2): the probe timeout without an estimate of the round-trip time.
const INITIAL_PTO: Duration = Duration::from_milliseconds(1_000);

/// The segment being timed: the acknowledgement that ends the measurement, the ticks counted so far (from 1), and the
/// send time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) until: u64,
    pub(super) ticks: u32,
    pub(super) sent: Time,
}

/// RFC 6298 (5.7): timeout of the first data after a timeout of the SYN.
const RTO_AFTER_SYN_TIMEOUT: Duration = Duration::from_milliseconds(3_000);

impl SenderClock {
    pub(super) fn new(options: &TcpOptions, clock: Clock) -> Self {
        let rules = options.timer_rules();
        let limits = RtoLimits {
            minimum: options.minimum_rto,
            least_variance: if options.rules.is_rfc() { 1.0 } else { 0.0 },
            maximum: options.ticks(rules.maximum_rto),
            initial: options.ticks(rules.initial_rto),
        };
        let checks = u32::try_from(options.timer_granularity.picoseconds / options.resolution().picoseconds)
            .expect("scenario checks limit both sizes");
        Self {
            rtt: RttEstimator::new(limits, rules.rtt_arithmetic).forgetting(rules.estimate_forgotten),
            timer: match rules.restart {
                TimerRestart::EveryNewAck | TimerRestart::WhenAllAcked => {
                    RetransmissionTimer::Common(Countdown::default())
                }
                TimerRestart::PerSegment => RetransmissionTimer::PerSegment(Box::<SegmentTimers>::default()),
            },
            persist: Countdown::default(),
            probes: 0,
            timing: None,
            checks,
            checked: 0,
            idle: 0,
            rto_after_syn_timeout: (options.rules.is_rfc() && rules.initial_rto < RTO_AFTER_SYN_TIMEOUT)
                .then(|| options.ticks(RTO_AFTER_SYN_TIMEOUT)),
            //= rfc6298#5 "a retransmission timer expires after RTO and never earlier"
            slack: u32::from(rules.expiry == TimerExpiry::AfterRto),
            early: Countdown::default(),
            early_kind: EarlyKind::Reordering,
            // Linux 6.12, tcp_schedule_loss_probe: TCP_RTO_MIN.
            max_ack_delay: options.minimum_rto.saturating_mul(checks),
            initial_pto: clock.span(INITIAL_PTO),
            // A clock of whole seconds, in tests, may be coarser than a tick.
            period: clock.span(options.resolution()).max(Span(1)),
            rules,
        }
    }

    /// Returns the timeout in checks.
    #[inline]
    fn rto(&self) -> u32 {
        self.rtt.rto() * self.checks
    }

    /// Returns whether retransmitted segments also give round-trip samples.
    #[inline]
    pub(super) fn times_again(&self) -> bool {
        self.rules.rtt_sampling == RttSampling::IncludeRetransmissions
    }

    /// Starts the retransmission timer of a SYN, and measures its round-trip time.
    pub(super) fn open(&mut self, syn: Segment, now: Time) {
        self.timing = Some(Timing { until: 0, ticks: 1, sent: now });
        let rto = self.rto() + self.slack;
        match &mut self.timer {
            RetransmissionTimer::Common(timer) => timer.start(rto),
            RetransmissionTimer::PerSegment(timers) => timers.start(syn, false),
        }
    }

    /// Starts the timer of a segment that was sent, unless a common timer is already running.
    #[inline]
    pub(super) fn start(&mut self, segment: Segment, again: bool) {
        match &mut self.timer {
            RetransmissionTimer::Common(timer) if timer.is_running() => {}
            RetransmissionTimer::Common(timer) => timer.start(self.rtt.rto() * self.checks + self.slack),
            RetransmissionTimer::PerSegment(timers) => timers.start(segment, again),
        }
    }

    /// Restarts the timer for all outstanding data. With a timer for each segment, restarts the timer of the first
    /// segment. A timer started at the time of a check needs no extra check.
    #[inline]
    pub(super) fn restart(&mut self, first: Segment, slack: u32) {
        let rto = self.rto() + slack;
        match &mut self.timer {
            RetransmissionTimer::Common(timer) => timer.start(rto),
            RetransmissionTimer::PerSegment(timers) => timers.start(first, true),
        }
    }

    /// Starts the timer of a window probe.
    pub(super) fn start_persist(&mut self, slack: u32) {
        self.persist.start(self.rtt.rto_after(self.probes) * self.checks + slack);
    }

    /// Starts the early timer. It ends no later than the retransmission timer.
    //= rfc8985#7.2 "the probe timeout is two SRTT, a second without SRTT, and ends no later than the RTO"
    pub(super) fn start_early(&mut self, timer: EarlyTimer, snd_una: u64) {
        let (kind, span, extra) = match timer {
            EarlyTimer::Reordering(timeout) => (EarlyKind::Reordering, Some(timeout), 0),
            EarlyTimer::Probe { pto, is_single } => {
                (EarlyKind::Probe, pto, if is_single && pto.is_some() { self.max_ack_delay } else { 0 })
            }
        };
        let checks = span.unwrap_or(self.initial_pto).0.div_ceil(self.period.0);
        let [rto, _] = self.left(snd_una);
        let checks = checks.saturating_add(u64::from(extra)).saturating_add(self.slack.into()).min(rto);
        self.early_kind = kind;
        self.early.start(u32::try_from(checks).unwrap_or(u32::MAX));
    }

    /// Counts a check. Returns whether the retransmission, persist and early timers have expired.
    pub(super) fn check(&mut self, snd_una: u64) -> [bool; 3] {
        let rto = self.rto() + self.slack;
        let timeout = match &mut self.timer {
            RetransmissionTimer::Common(timer) => timer.on_tick(),
            RetransmissionTimer::PerSegment(timers) => timers.on_tick(snd_una, rto),
        };
        [timeout, self.persist.on_tick(), self.early.on_tick()]
    }

    /// Counts the check in the measured round-trip time and, if the sender `pauses`, in the length of the pause.
    pub(super) fn count(&mut self, pauses: bool) {
        self.checked += 1;
        if self.checked == self.checks {
            self.checked = 0;
            self.count_ticks(1, pauses);
        }
    }

    /// Counts checks at which no timer expires.
    pub(super) fn skip(&mut self, checks: u64, pauses: bool) {
        match &mut self.timer {
            RetransmissionTimer::Common(timer) => timer.skip(checks),
            RetransmissionTimer::PerSegment(timers) => timers.skip(checks),
        }
        self.persist.skip(checks);
        self.early.skip(checks);
        let checked = u64::from(self.checked) + checks;
        self.checked = u32::try_from(checked % u64::from(self.checks))
            .expect("the remainder is smaller than the divisor, which is a u32");
        self.count_ticks(u32::try_from(checked / u64::from(self.checks)).unwrap_or(u32::MAX), pauses);
    }

    fn count_ticks(&mut self, ticks: u32, pauses: bool) {
        if let Some(timing) = &mut self.timing {
            timing.ticks = timing.ticks.saturating_add(ticks);
        }
        if pauses {
            self.idle = self.idle.saturating_add(ticks);
        }
    }

    /// Returns the checks left on the retransmission and persist timers; 0 for a stopped timer.
    pub(super) fn left(&self, snd_una: u64) -> [u64; 2] {
        let retransmission = match &self.timer {
            RetransmissionTimer::Common(timer) => u64::from(timer.left()),
            RetransmissionTimer::PerSegment(timers) => timers.left(snd_una, self.rto() + self.slack),
        };
        [retransmission, u64::from(self.persist.left())]
    }
}
