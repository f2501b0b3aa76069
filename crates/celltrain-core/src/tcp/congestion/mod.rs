//! Congestion controls, which grow and shrink the congestion window. Each has its own file.
//!
//! The sender stores the windows and grows cwnd in slow start. A control decides how cwnd grows in congestion avoidance
//! and how far it shrinks after congestion. To add a control, add a file here, two lines below and one page under
//! `docs/models/`. Its name in scenarios, its Python access and the shared tests then exist automatically.

pub mod cubic;
pub mod dctcp;
pub mod formula;
pub mod jacobson;

use super::options::{RecoveryWindow, Rules, SlowStart, SsthreshArithmetic, SsthreshRule, TcpOptions, WindowGrowth};
use super::recovery::Flight;
#[cfg(test)]
use super::scoreboard::Scoreboard;
use super::window_scale;
use crate::coverage::reached;
use crate::registry;
use crate::units::{Clock, Span, Time};

registry! {
    /// Growth of cwnd in congestion avoidance, and its reduction after congestion.
    pub enum Congestion {
        /// cwnd grows by a segment per round trip and is halved by congestion (Jacobson 1988).
        #[default]
        jacobson: Jacobson,
        /// cwnd is a cubic function of the time since the last loss. Congestion reduces cwnd to 0.7 of its value (RFC
        /// 9438).
        cubic: Cubic,
        /// After marks, cwnd shrinks by half the fraction of marked segments (RFC 8257). Requires `ecn = "on"`.
        dctcp: Dctcp,
        /// cwnd follows your own formulas (the TCP's key `formula`).
        formula: Formula,
    }

    /// Creates the control of a connection that has sent nothing. Times are on `clock`.
    pub fn control(self, options: &TcpOptions, clock: Clock) -> Box<dyn CongestionControl> {
        |type Control| Box::new(Control::new(options, clock))
    }
}

impl Congestion {
    /// Returns whether the control must know for each segment whether it was marked.
    pub fn needs_exact_echo(self) -> bool {
        self == Self::Dctcp
    }
}

/// The sender's interface to its congestion control. Windows are in segments, and `window` means min(cwnd, rwnd).
pub trait CongestionControl: Send {
    /// Returns cwnd after an acknowledgement of new data in congestion avoidance. [`Windows`] handles slow start, and
    /// caps cwnd at rwnd if cwnd may not exceed it.
    fn on_new_ack(&mut self, ack: NewAck) -> f64;

    /// Returns the fraction of a window that remains after congestion, above 0 and below 1.
    fn decrease(&self, window: f64) -> f64;

    /// Returns the fraction of a window that remains after a mark.
    fn decrease_after_mark(&self, window: f64) -> f64 {
        self.decrease(window)
    }

    /// Returns the window to which the decrease after a mark applies, if `flight` segments of the window were used.
    //= rfc9438#4.6 "a mark leaves a share of the flight, not of a window that was not used"
    fn marked_window(&self, window: f64, flight: f64) -> f64 {
        if flight < window.floor() { flight } else { window }
    }

    /// Records an acknowledgement of `acked` segments, and whether it reports a mark.
    fn on_echo(&mut self, acked: f64, marked: bool) {
        let _ = (acked, marked);
    }

    /// Reports that all data sent before the previous call has been acknowledged, which takes about one round trip.
    fn on_window_acknowledged(&mut self) {}

    /// Records the round-trip time of a segment that was sent only once.
    fn on_round_trip(&mut self, took: Span) {
        let _ = took;
    }

    /// Reports that a fast retransmit reduces the window to the fraction that `decrease` returned.
    fn on_fast_retransmit(&mut self, window: f64) {
        let _ = window;
    }

    /// Reports that a timeout restarts slow start and reduces the window. `None` means that the window was already
    /// reduced for the lost data.
    fn on_timeout(&mut self, window: Option<f64>) {
        let _ = window;
    }

    /// Reports that the sender sends less than the window allows, until cwnd grows again.
    fn on_pause(&mut self) {}

    /// Reports that cwnd restarts from the initial window after a long pause.
    fn on_restart(&mut self) {}

    /// Returns whether the control always sets both windows itself, even in slow start and after a loss. The methods
    /// below are called only for such controls.
    fn sets_windows(&self) -> bool {
        false
    }

    /// Sets the current time and the number of outstanding segments. Called before each event.
    fn at(&mut self, now: Time, flight: f64) {
        let _ = (now, flight);
    }

    /// Returns new values for the windows after an event.
    fn set(&mut self, event: Event, seen: Seen) -> Set {
        let _ = (event, seen);
        Set::default()
    }

    /// Returns cwnd for the start of the recovery after a fast retransmit, if the variant's value does not apply.
    fn after_loss(&mut self) -> Option<f64> {
        None
    }

    /// Returns how many results of the control's formulas were replaced so far because they were not finite numbers.
    fn replaced_results(&self) -> u64 {
        0
    }
}

/// Events reported to a control that sets the windows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An acknowledgement of new data. It lets cwnd grow.
    NewAck,
    /// Duplicate acknowledgements start a fast retransmit.
    FastRetransmit,
    /// The retransmission timer expired.
    Timeout,
}

/// State of a sender before an event, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// cwnd.
    pub cwnd: f64,
    /// ssthresh.
    pub ssthresh: f64,
    /// rwnd.
    pub rwnd: f64,
    /// Number of segments that an acknowledgement covers.
    pub acked: f64,
}

/// New values of the windows, in segments. If a value is `None`, the window keeps its usual rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Set {
    /// cwnd.
    pub cwnd: Option<f64>,
    /// ssthresh.
    pub ssthresh: Option<f64>,
}

/// An acknowledgement of new data, as reported to a control.
#[derive(Clone, Copy, Debug)]
pub struct NewAck {
    /// Arrival time.
    pub now: Time,
    /// Number of segments that this acknowledgement acknowledges.
    pub acked: f64,
    /// cwnd, in segments; at least ssthresh.
    pub cwnd: f64,
    /// rwnd, in segments.
    pub rwnd: f64,
}

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
    /// Limit on the growth of cwnd.
    growth: WindowGrowth,
    /// Largest window that the receiver can advertise, in segments.
    field: f64,
    /// Determines how far slow start extends.
    slow_start: SlowStart,
    /// ssthresh after a timeout.
    rule: SsthreshRule,
    /// Arithmetic for ssthresh after a loss.
    arithmetic: SsthreshArithmetic,
    recovery_window: RecoveryWindow,
    /// Initial cwnd of a connection (IW).
    initial: f64,
    /// Lower bound of cwnd after a mark.
    least_after_mark: f64,
    /// cwnd during fast recovery, without inflation, if it differs from ssthresh.
    half: Option<f64>,
    /// True if the control sets both windows itself.
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
        let behaviour = options.behaviour();
        Self {
            cwnd: options.initial_window.into(),
            ssthresh: options.initial_ssthresh.map_or(rwnd, |bytes| segments(bytes.bytes)),
            rwnd,
            inflation: 0.0,
            beyond_cwnd: 0.0,
            growth: behaviour.window_growth,
            field: segments(u64::from(u16::MAX) << window_scale(options.receive_window.bytes)),
            slow_start: options.slow_start,
            rule: behaviour.ssthresh_rule,
            arithmetic: options.ssthresh_arithmetic,
            recovery_window: options.recovery_window,
            initial: options.initial_window.into(),
            least_after_mark: match options.rules {
                Rules::Paper if options.congestion.needs_exact_echo() => MIN_CWND_OF_DCTCP,
                _ => MIN_CWND,
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
        reached!(CwndCappedByReceiver if self.growth == WindowGrowth::Capped && grown > self.rwnd.max(self.cwnd));
        self.cwnd = match self.growth {
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
            self.cwnd + 1.0
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
        self.half = None;
        if reduced {
            self.inflation = 0.0;
            self.control.on_timeout(None);
            self.cwnd = MIN_CWND;
            return;
        }
        let set = self.asked(Event::Timeout, 0.0);
        let share = self.control.decrease(window);
        self.ssthresh = self.least_two(set.ssthresh.unwrap_or(match self.rule {
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
        if flight.reduced {
            reached!(CongestionRepeatedInWindow);
            self.half = Some(self.deflated().min(self.ssthresh));
            return;
        }
        let window = self.window();
        let set = self.asked(Event::FastRetransmit, 0.0);
        let used = match self.rule {
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
    /// outstanding. A segment of cwnd remains, or two with DCTCP under the papers' rules, and two of ssthresh. cwnd
    /// never rises.
    pub fn on_mark(&mut self, flight: f64) {
        let window = self.deflated();
        let used = match self.rule {
            SsthreshRule::HalfOfUsed => self.control.marked_window(window, flight),
            _ => window,
        };
        let set = self.asked(Event::FastRetransmit, 0.0);
        let remaining = set.ssthresh.unwrap_or_else(|| used * self.control.decrease_after_mark(window));
        self.ssthresh = self.least_two(remaining);
        self.control.on_fast_retransmit(window);
        self.cwnd = self.rounded(remaining).max(self.least_after_mark).min(window).max(MIN_CWND);
        (self.half, self.inflation) = (None, 0.0);
        // A mark starts no recovery, so a control's cwnd for its start does not apply, not even to a later one.
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

    /// Rounds a share of the window as `arithmetic` requires.
    fn rounded(&self, share: f64) -> f64 {
        match self.arithmetic {
            SsthreshArithmetic::Fractions => share,
            // 4.3BSD, tcp_timers and tcp_input: win = min(snd_wnd, snd_cwnd) / 2 / t_maxseg, in whole numbers;
            // ssthresh = win * t_maxseg.
            SsthreshArithmetic::WholeSegments => share.floor(),
        }
    }
}

/// Returns `segments` of outstanding data for which the windows have not been reduced yet.
#[cfg(test)]
fn full(segments: u64) -> Flight<'static> {
    static NOTHING: Scoreboard = Scoreboard::NOTHING;
    Flight { una: 0, max: segments, end: u64::MAX, mss: 1, reduced: false, board: &NOTHING }
}

#[cfg(test)]
mod conformance;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::tcp::options::WindowArithmetic;
    use crate::units::Bytes;

    fn windows(rule: SsthreshRule, cwnd: f64) -> Windows {
        let clock = Clock::exact(1000);
        Windows { cwnd, ..Windows::new(&TcpOptions { ssthresh_rule: Some(rule), ..TcpOptions::default() }, clock) }
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
        fn windows_counted_in_bytes_and_windows_counted_in_segments_equal_those_of_bsd(
            mss in select(&[256u32, 512, 1024, 4096][..]),
            wnd in 8192u32..600_000,
            happens in prop::collection::vec(prop_oneof![40 => Just('a'), 1 => Just('t'), 1 => Just('f')], 0..2000),
        ) {
            let options = TcpOptions {
                rules: Rules::Paper,
                mss: Bytes { bytes: mss.into() },
                // A multiple of 1024, so that window scaling does not round it.
                receive_window: Bytes { bytes: u64::from(wnd >> 10 << 10) },
                initial_ssthresh: Some(Bytes { bytes: u64::from(65_535 / mss * mss) }),
                ssthresh_rule: Some(SsthreshRule::HalfOfWindow),
                ssthresh_arithmetic: SsthreshArithmetic::WholeSegments,
                window_arithmetic: WindowArithmetic::WholeBytes,
                ..TcpOptions::default()
            };
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
                        // As Tahoe does.
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
        fn windows_counted_in_segments_equal_those_of_bsd_for_any_window_and_segment_size(
            mss in 1u32..9180, cwnd in 1u32..1 << 20, wnd in 1u32..1 << 20,
        ) {
            let wnd = wnd.max(mss);
            let mut bsd = Bsd { cwnd: cwnd.max(mss), ssthresh: 0, wnd, maxseg: mss };
            bsd.on_loss();
            let mut ours = Windows {
                arithmetic: SsthreshArithmetic::WholeSegments,
                // Only whole segments of rwnd are used, and half of rwnd gives the same number of whole segments.
                rwnd: f64::from(wnd / mss),
                ..windows(SsthreshRule::HalfOfWindow, f64::from(cwnd.max(mss)) / f64::from(mss))
            };
            ours.on_timeout(0.0, false);
            prop_assert_eq!(ours.ssthresh * f64::from(mss), f64::from(bsd.ssthresh));
        }
    }

    #[test]
    fn slow_start_continues_below_ssthresh_and_optionally_if_the_window_equals_ssthresh() {
        for (slow_start, at_ssthresh) in [(SlowStart::BelowSsthresh, 10.1), (SlowStart::UpToSsthresh, 11.0)] {
            for (cwnd, grown) in [(9.5, 10.5), (10.0, at_ssthresh), (10.5, 10.5 + 1.0 / 10.5)] {
                let mut windows = Windows { slow_start, ssthresh: 10.0, ..windows(SsthreshRule::HalfOfCwnd, cwnd) };
                windows.on_new_ack(Time(0), 1.0, true);
                assert_eq!(windows.cwnd, grown, "{slow_start:?} at {cwnd}");
            }
        }
    }

    #[test]
    fn a_congestion_window_limited_by_the_tcp_header_stops_at_65535_bytes_times_the_scale() {
        let clock = Clock::exact(1000);
        for (receive_window, bytes) in [(60_000, 65_535.0), (600_000, 1_048_560.0)] {
            let receive_window = Bytes { bytes: receive_window };
            let window_growth = Some(WindowGrowth::CappedByField);
            let options = TcpOptions { receive_window, window_growth, ..TcpOptions::default() };
            let mut windows = Windows { ssthresh: 3000.0, ..Windows::new(&options, clock) };
            (0..3000).for_each(|_| windows.on_new_ack(Time(0), 1.0, true));
            assert_eq!(windows.cwnd * 512.0, bytes);
        }
    }

    #[test]
    fn a_congestion_window_capped_at_the_receive_window_does_not_shrink_when_the_receive_window_shrinks() {
        for (growth, rwnd, cwnd, grown) in [
            (WindowGrowth::Capped, 127.0, 126.5, 127.0),
            (WindowGrowth::Uncapped, 127.0, 126.5, 127.5),
            (WindowGrowth::Capped, 20.0, 30.0, 30.0),
        ] {
            let mut windows = Windows { growth, rwnd, ssthresh: 200.0, ..windows(SsthreshRule::HalfOfCwnd, cwnd) };
            windows.on_new_ack(Time(0), 1.0, true);
            assert_eq!((windows.cwnd, windows.window()), (grown, f64::min(grown, rwnd)));
            assert_eq!(windows.usable() as f64, rwnd);
        }
    }

    /// Regression: after a timeout in fast recovery, CUBIC took the inflated window for the one before the loss.
    #[test]
    fn after_a_timeout_in_recovery_cubic_remembers_the_window_without_the_inflation_of_recovery() {
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
}
