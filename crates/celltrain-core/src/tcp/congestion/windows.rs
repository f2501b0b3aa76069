//! The sender's windows: their growth, and their reduction after congestion.
//!
//! Source: `docs/mechanisms.md` 3.3 and 3.4; RFC 5681 (3.1, 3.2), RFC 3168 (6.1.2). Differences from the source: cwnd and
//! ssthresh count segments, with fractions unless the rules require whole segments.

use super::rules::{SsthreshArithmetic, SsthreshRule, WindowGrowth, WindowRules};
use super::{CongestionControl, Event, Model, NewAck, Seen, Set};
use crate::coverage::reached;
use crate::tcp::hystart::HyStart;
use crate::tcp::recovery::Flight;
#[cfg(test)]
use crate::tcp::scoreboard::Scoreboard;
use crate::tcp::{Hystart, RecoveryWindow, SlowStart, TcpOptions, window_scale};
use crate::units::{Clock, Span, Time};

/// The sender's windows, in segments.
pub struct Windows {
    /// cwnd, including fractions of a segment; only whole segments are used.
    pub cwnd: f64,
    /// ssthresh: slow start below this value, congestion avoidance from this value on.
    pub ssthresh: f64,
    /// rwnd in whole segments.
    pub rwnd: f64,
    /// Segments by which fast recovery has inflated cwnd.
    pub inflation: f64,
    /// Number of segments that may be sent beyond cwnd (RFC 3042).
    pub beyond_cwnd: f64,
    rules: WindowRules,
    /// Largest window that the receiver can advertise, in segments.
    field: f64,
    /// Determines how far slow start extends.
    slow_start: SlowStart,
    recovery_window: RecoveryWindow,
    /// State of the first slow start, if growing round-trip times end it.
    hystart: Option<Box<HyStart>>,
    /// Initial cwnd of a connection (IW).
    initial: f64,
    /// Lower bound of cwnd after a mark.
    least_after_mark: f64,
    /// cwnd during fast recovery, without inflation, if it differs from ssthresh.
    half: Option<f64>,
    /// True if the congestion control sets both windows itself.
    ruled: bool,
    /// Congestion control, which grows and shrinks cwnd.
    control: Box<dyn CongestionControl>,
}

/// ATM Forum 96-1269, section 2: ssthresh is never below two segments.
const MIN_SSTHRESH: f64 = 2.0;
/// Lower bound of cwnd for every control.
const MIN_CWND: f64 = 1.0;
/// Lower bound of DCTCP's cwnd after a mark, as in Windows and Linux.
const MIN_CWND_OF_DCTCP: f64 = 2.0;

impl Windows {
    /// Creates the windows of a new connection.
    pub fn new(options: &TcpOptions, clock: Clock) -> Self {
        let rwnd = options.window_segments() as f64;
        let segments = |bytes: u64| bytes as f64 / options.mss.bytes as f64;
        let control = options.congestion.control(options, clock);
        let start = options.start_rules();
        Self {
            cwnd: options.initial_window.into(),
            ssthresh: start.initial_ssthresh.map_or(rwnd, |bytes| segments(bytes.bytes)),
            rwnd,
            inflation: 0.0,
            beyond_cwnd: 0.0,
            rules: options.window_rules(),
            field: segments(u64::from(u16::MAX) << window_scale(options.receive_window.bytes)),
            slow_start: start.slow_start,
            recovery_window: options.recovery_rules().window,
            hystart: (start.hystart == Hystart::On).then(|| Box::new(HyStart::new(options.is_paced(), clock))),
            initial: options.initial_window.into(),
            least_after_mark: if options.congestion.needs_exact_echo() && !options.rules.is_rfc() {
                MIN_CWND_OF_DCTCP
            } else {
                MIN_CWND
            },
            half: None,
            ruled: control.sets_windows(),
            control,
        }
    }

    /// Returns min(cwnd, rwnd) in whole segments, with the segments allowed beyond cwnd.
    pub fn usable(&self) -> u64 {
        // Both values are positive, and rwnd is below 2^30. The comparison and the cast take a third of the
        // instructions of `min` and a cast to 64 bits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole =
            if self.cwnd + self.beyond_cwnd < self.rwnd { self.cwnd + self.beyond_cwnd } else { self.rwnd } as u32;
        whole.into()
    }

    /// Returns min(cwnd, rwnd), without the inflation of fast recovery.
    fn deflated(&self) -> f64 {
        (self.cwnd - self.inflation).min(self.rwnd)
    }

    /// Returns min(cwnd, rwnd).
    pub fn window(&self) -> f64 {
        self.cwnd.min(self.rwnd)
    }

    /// Returns whether the receive window has no room for another segment.
    pub fn closed(&self) -> bool {
        self.rwnd < 1.0
    }

    /// Grows cwnd for one acknowledgement of new data that covers `acked` segments. If the window was not `used`, cwnd
    /// does not grow; a control's own formula may still shrink it.
    //= rfc9438#5.8 "cwnd does not grow while the sender has less to send than cwnd allows"
    #[inline]
    pub fn on_new_ack(&mut self, now: Time, acked: f64, used: bool) {
        if self.ruled {
            return self.on_new_ack_of_formulas(now, acked, used);
        }
        if used {
            let grown = self.grown(now, acked);
            self.grow_to(grown);
        } else {
            self.control.on_pause();
        }
    }

    /// Like [`Windows::on_new_ack`], for a control that sets both windows itself.
    #[cold]
    fn on_new_ack_of_formulas(&mut self, now: Time, acked: f64, used: bool) {
        let set = self.asked(Event::NewAck, acked);
        let grown = match set.cwnd {
            Some(cwnd) => cwnd,
            None if used => self.grown(now, acked),
            None => {
                self.control.on_pause();
                self.cwnd
            }
        };
        if let Some(ssthresh) = set.ssthresh {
            self.ssthresh = ssthresh.max(MIN_SSTHRESH);
        }
        if used || grown < self.cwnd {
            self.grow_to(grown);
        }
    }

    #[inline]
    fn grow_to(&mut self, grown: f64) {
        reached!(CwndCappedByReceiver if self.rules.growth == WindowGrowth::Capped && grown > self.rwnd.max(self.cwnd));
        self.cwnd = match self.rules.growth {
            // The limit applies only to growth: a control can always reduce cwnd.
            _ if grown < self.cwnd => grown.max(MIN_CWND),
            WindowGrowth::Uncapped => grown,
            // If the receiver shrinks its window, cwnd does not shrink.
            WindowGrowth::Capped => self.cwnd.max(grown.min(self.rwnd)),
            // 4.3BSD: snd_cwnd = MIN(cw + incr, TCP_MAXWIN), and with window scaling TCP_MAXWIN << snd_scale.
            WindowGrowth::CappedByField => grown.min(self.field),
        };
    }

    /// Returns cwnd after an acknowledgement, if the control leaves cwnd to the usual rule.
    #[inline]
    fn grown(&mut self, now: Time, acked: f64) -> f64 {
        let at_most = self.slow_start == SlowStart::UpToSsthresh;
        if self.cwnd < self.ssthresh || (at_most && self.cwnd == self.ssthresh) {
            // Slow start, for every control: RFC 5681 (3.1), RFC 9438 (4.10).
            self.cwnd + self.hystart.as_ref().map_or(1.0, |hystart| hystart.growth(acked))
        } else {
            self.control.on_new_ack(NewAck { now, acked, cwnd: self.cwnd, rwnd: self.rwnd })
        }
    }

    /// Returns the values from a control that sets both windows itself.
    #[inline]
    fn asked(&mut self, event: Event, acked: f64) -> Set {
        if !self.ruled {
            return Set::default();
        }
        self.control.set(event, Seen { cwnd: self.cwnd, ssthresh: self.ssthresh, rwnd: self.rwnd, acked })
    }

    /// Returns the control's model of the path, if it has one.
    pub fn model(&mut self) -> Option<&mut dyn Model> {
        self.control.model()
    }

    /// Applies cwnd of a control that models the path. Returns the interval between segments.
    pub fn follow_model(&mut self) -> Option<Span> {
        let model = self.control.model()?;
        self.cwnd = model.cwnd() + self.inflation;
        Some(model.interval())
    }

    /// Records that all data before `una` was delivered, with a sample of the round-trip time, before data from `next`
    /// on is sent. Growing round-trip times end the first slow start (RFC 9406).
    pub fn on_sample(&mut self, una: u64, next: u64, rtt: Option<Span>) {
        let Some(hystart) = &mut self.hystart else { return };
        let ends = hystart.on_ack(una, next, rtt);
        if ends {
            self.ssthresh = self.cwnd.max(MIN_SSTHRESH);
        }
        if ends || self.cwnd > self.ssthresh {
            self.hystart = None;
        }
    }

    /// Returns whether the control sets both windows itself, and therefore needs the time and the flight size.
    #[inline]
    pub fn ruled(&self) -> bool {
        self.ruled
    }

    /// Sets the current time and the number of segments outstanding.
    pub fn at(&mut self, now: Time, flight: f64) {
        self.control.at(now, flight);
    }

    /// Applies the control's own cwnd, if it has one, after the variant has begun its recovery.
    #[inline]
    pub fn after_loss(&mut self) {
        if self.ruled
            && let Some(cwnd) = self.control.after_loss()
        {
            self.cwnd = cwnd.max(MIN_CWND);
            self.inflation = 0.0;
        }
    }

    /// Returns how many results of the control's formulas were replaced so far because they were not finite numbers.
    pub fn replaced_results(&self) -> u64 {
        self.control.replaced_results()
    }

    /// Records the round-trip time of a segment that was sent only once.
    #[inline]
    pub fn on_round_trip(&mut self, took: Span) {
        self.control.on_round_trip(took);
    }

    /// Reports that the sender has nothing to send until the application writes again.
    pub fn on_pause(&mut self) {
        self.control.on_pause();
    }

    /// Restarts slow start after a pause of a retransmission timeout or longer.
    //= rfc5681#4.1 "after such a pause cwnd is at most the restart window, min(IW, cwnd)"
    pub fn restart(&mut self) {
        self.cwnd = self.cwnd.min(self.initial);
        self.control.on_restart();
    }

    /// Applies a timeout to both windows while `flight_size` segments are outstanding, which starts slow start again
    /// from one segment (`docs/mechanisms.md` 3.3). If the windows are already `reduced` for this data, ssthresh and
    /// the previous window that a control remembers do not change.
    //= rfc5681#3.1 "a further timeout of a segment leaves ssthresh as the first one has set it"
    pub fn on_timeout(&mut self, flight_size: f64, reduced: bool) {
        let window = self.window();
        (self.half, self.hystart) = (None, None);
        if reduced {
            self.inflation = 0.0;
            self.control.on_timeout(None);
            self.cwnd = MIN_CWND;
            return;
        }
        let set = self.asked(Event::Timeout, 0.0);
        let share = self.control.decrease(window);
        self.ssthresh = self.least_two(set.ssthresh.unwrap_or(match self.rules.ssthresh_rule {
            SsthreshRule::HalfOfCwnd => (self.cwnd * share).min(self.rwnd),
            SsthreshRule::HalfOfWindow => window * share,
            SsthreshRule::HalfOfDeflatedWindow => self.deflated() * share,
            SsthreshRule::HalfOfFlight => flight_size * share,
            SsthreshRule::HalfOfUsed => self.deflated().min(flight_size) * share,
            SsthreshRule::OpenWindow => (self.cwnd * share).min(self.rwnd - flight_size),
        }));
        // The inflation of fast recovery is not part of the window before the loss (RFC 9438: `W_max`, `cwnd_prior`).
        let before = self.deflated();
        self.inflation = 0.0;
        self.control.on_timeout(Some(before));
        self.cwnd = set.cwnd.map_or(1.0, |cwnd| cwnd.max(MIN_CWND));
    }

    /// Sets ssthresh at a fast retransmit, for every variant (`docs/mechanisms.md` 3.4): max(2, min(cwnd, rwnd) / 2),
    /// or another share of the window if the control returns one. If the windows are already reduced for this data,
    /// ssthresh stays as it is and recovery does not raise cwnd.
    //= rfc5681#3.2 "ssthresh is at most half of the flight, without what Limited Transmit has added"
    //= rfc3168#6.1.2 "all losses and marks of one window of data reduce the window once"
    pub fn on_fast_retransmit(&mut self, flight: &Flight<'_>) {
        self.hystart = None;
        if flight.reduced {
            reached!(CongestionRepeatedInWindow);
            self.half = Some(self.deflated().min(self.ssthresh));
            return;
        }
        let window = self.window();
        let set = self.asked(Event::FastRetransmit, 0.0);
        let used = match self.rules.ssthresh_rule {
            SsthreshRule::HalfOfUsed => self.deflated().min(flight.segments(flight.max - flight.una)),
            _ => window,
        };
        self.ssthresh = self.least_two(set.ssthresh.unwrap_or_else(|| used * self.control.decrease(window)));
        self.half = match self.recovery_window {
            RecoveryWindow::Ssthresh => None,
            RecoveryWindow::Half => Some(self.rounded(window / 2.0).max(MIN_CWND)),
        };
        self.control.on_fast_retransmit(window);
    }

    /// Inflates cwnd by segments that have left the network (RFC 5681, 3.2).
    pub fn inflate(&mut self, segments: f64) {
        self.cwnd += segments;
        self.inflation += segments;
    }

    /// Returns cwnd during fast recovery, without inflation.
    pub fn in_recovery(&self) -> f64 {
        self.half.unwrap_or(self.ssthresh)
    }

    /// Reduces both windows because of a mark (RFC 3168, 6.1.2; RFC 8257, 3.3), reported while `flight` segments were
    /// outstanding. cwnd stays at least one segment (two with DCTCP under the papers' rules), and ssthresh at least
    /// two. cwnd never rises.
    pub fn on_mark(&mut self, flight: f64) {
        self.hystart = None;
        let window = self.deflated();
        let used = match self.rules.ssthresh_rule {
            SsthreshRule::HalfOfUsed => self.control.marked_window(window, flight),
            _ => window,
        };
        let set = self.asked(Event::FastRetransmit, 0.0);
        let remaining = set.ssthresh.unwrap_or_else(|| used * self.control.decrease_after_mark(window));
        self.ssthresh = self.least_two(remaining);
        self.control.on_fast_retransmit(window);
        self.cwnd = self.rounded(remaining).max(self.least_after_mark).min(window).max(MIN_CWND);
        (self.half, self.inflation) = (None, 0.0);
        // A mark starts no recovery. Discard the cwnd that the control may have set for a recovery, so that a later one
        // does not use it.
        let _ = self.control.after_loss();
    }

    /// Records an acknowledgement of `acked` segments, and whether it reports a mark.
    pub fn on_echo(&mut self, acked: f64, marked: bool) {
        self.control.on_echo(acked, marked);
    }

    /// Reports that a whole window has been acknowledged.
    pub fn on_window_acknowledged(&mut self) {
        self.control.on_window_acknowledged();
    }

    /// Returns a new value of ssthresh, at least two segments.
    fn least_two(&self, share: f64) -> f64 {
        let kept = self.rounded(share);
        reached!(SsthreshAtLeastTwo if kept < MIN_SSTHRESH);
        kept.max(MIN_SSTHRESH)
    }

    /// Rounds a share of the window as the rules require.
    fn rounded(&self, share: f64) -> f64 {
        match self.rules.ssthresh_arithmetic {
            SsthreshArithmetic::Fractions => share,
            // 4.3BSD, tcp_timers and tcp_input: win = min(snd_wnd, snd_cwnd) / 2 / t_maxseg, in whole numbers;
            // ssthresh = win * t_maxseg.
            SsthreshArithmetic::WholeSegments => share.floor(),
        }
    }
}

/// Returns `segments` of outstanding data for which the windows have not been reduced yet.
#[cfg(test)]
pub(super) fn full(segments: u64) -> Flight<'static> {
    static NOTHING: Scoreboard = Scoreboard::NOTHING;
    Flight { una: 0, max: segments, end: u64::MAX, mss: 1, reduced: false, board: &NOTHING }
}

#[cfg(test)]
mod tests;
