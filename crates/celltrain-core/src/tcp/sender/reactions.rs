//! Reactions of a sender to acknowledgements, marks and timeouts.
//!
//! Source: `docs/mechanisms.md` 3.3 to 3.7; RFC 5681 (3.1, 3.2), RFC 3168 (6.1.2), RFC 3042 (2).

use super::clock::Timing;
use super::{Cause, Pending, Sender};
use crate::coverage::reached;
use crate::tcp::congestion::model::Recovers;
use crate::tcp::marks::Marks;
use crate::tcp::recovery::{Arrival, Flight, Progress, Reaction, THRESHOLD, Timer};
use crate::tcp::scoreboard::{SackBlocks, Scoreboard};
use crate::tcp::{
    Ack, Backoff, DuplicateAcks, LimitedTransmit, RepeatedCongestion, Segment, TimerRestart, UnusedWindow,
};
use crate::units::Time;

/// The last reduction of the windows, and the data to which it applies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reductions {
    /// Value of `snd_max` when congestion last reduced the windows.
    at: Option<u64>,
    /// True if this reduction was by a share of marks, after which a loss in the same window still reduces the windows.
    by_share: bool,
    /// End of the last segment that fast recovery retransmitted, unless a timeout had retransmitted that segment
    /// before.
    pub(super) resent_to: u64,
    /// Value of `snd_max` at the last timeout.
    pub(super) timed_out_to: u64,
    /// Value of `snd_nxt` when the window was last full: acknowledgements of data before this offset may increase cwnd.
    pub(super) filled_to: u64,
}

impl Sender {
    /// Processes an acknowledgement and its blocks (empty unless the ends exchange them).
    pub fn on_ack(&mut self, ack: Ack, blocks: &SackBlocks, now: Time) {
        assert!(ack.ack <= self.snd_max, "a receiver acknowledges only sent data");
        if ack.ack < self.snd_una {
            // RFC 1122 (4.2.2.20 g): an old acknowledgement does not update the window either.
            return;
        }
        let same_window = self.offer.field == Some(ack.window) || self.set_window(ack.window);
        if self.clock.persist.is_running() && !self.windows.closed() {
            reached!(WindowReopened);
            self.clock.persist.stop();
            self.clock.probes = 0;
            self.next.pending = Pending::Nothing;
        }
        if self.rules.watches_acks {
            self.watch_arrival(ack, blocks, now);
        }
        let advances = ack.ack > self.snd_una;
        let news = !blocks.is_empty() && self.board.record(blocks, ack.ack);
        reached!(WindowUpdate if ack.ack == self.snd_una && !same_window && !news && self.clock.timer.is_running());
        if advances {
            self.on_new_ack(ack.ack, now);
            //= rfc6675#5 "an acknowledgement of new data that reports other new data is also a duplicate"
            if news && self.recovery.counts_progress() {
                self.on_duplicate_ack(news, now);
            }
        } else if (same_window || news) && self.clock.timer.is_running() && self.next.pending != Pending::Rest {
            // RFC 5681 (2 e): a window update is not a duplicate. RFC 6675 (2): it is one if it reports new data. The
            // timer runs while data other than a window probe is outstanding.
            self.on_duplicate_ack(news, now);
        }
        if self.rules.watches_acks {
            self.watch_outcome(advances, now);
        } else {
            self.departures.on_ack(|| self.recovery.recovers());
        }
    }

    /// Shows an acknowledgement to the mechanisms that watch all of them, before its data counts as acknowledged.
    #[inline(never)]
    fn watch_arrival(&mut self, ack: Ack, blocks: &SackBlocks, now: Time) {
        if self.departures.deliveries.is_some() {
            self.begin_sample(ack, blocks, now);
        }
        if self.rules.observes {
            self.recovery.at(now);
            let (una, max, board) = (self.snd_una, self.snd_max, &self.board);
            self.recovery.on_arrival(&Arrival { ack: ack.ack, blocks, una, max, board });
        }
    }

    /// Lets these mechanisms act after the acknowledgement has been processed. `advances` is true if it acknowledged new
    /// data.
    #[inline(never)]
    fn watch_outcome(&mut self, advances: bool, now: Time) {
        if self.rules.observes {
            self.detect_losses(now);
            self.run_early_timer(advances);
        }
        self.departures.on_ack(|| self.recovery.recovers());
        self.follow_window();
        if self.departures.deliveries.is_some() {
            self.end_sample(now);
        }
    }

    /// Records a sample of the round-trip time.
    pub(super) fn on_round_trip(&mut self, timing: Timing, now: Time) {
        let took = now - timing.sent;
        self.clock.rtt.sample(timing.ticks);
        self.windows.on_round_trip(took);
        self.recovery.on_round_trip(took);
        if let Some(pace) = &mut self.departures.pace {
            pace.on_round_trip(took);
        }
    }

    /// Adapts the pacing rate to the window, if the rate follows the window.
    fn follow_window(&mut self) {
        if let Some(pace) = &mut self.departures.pace {
            let outstanding = (self.snd_max - self.snd_una) / u64::from(self.mss);
            let cwnd = self.windows.cwnd - self.windows.inflation;
            pace.follow(outstanding.max(whole(cwnd)), cwnd, self.windows.ssthresh);
        }
    }

    /// Sets rwnd. Returns whether rwnd is still the same number of segments.
    fn set_window(&mut self, advertised: u16) -> bool {
        self.offer.field = Some(advertised);
        let rwnd = ((u64::from(advertised) << self.offer.scale) / u64::from(self.mss)) as f64;
        std::mem::replace(&mut self.windows.rwnd, rwnd) == rwnd
    }

    /// Describes the outstanding data. Borrows only the scoreboard, so that recovery and windows can change while the
    /// result is in use.
    pub(super) fn flight<'a>(&self, board: &'a Scoreboard) -> Flight<'a> {
        let reduced = self.is_reduced();
        Flight { una: self.snd_una, max: self.snd_max, end: self.end, mss: u64::from(self.mss), reduced, board }
    }

    /// Returns whether a loss detected now concerns data for which the windows are already reduced. Such a loss does
    /// not lower ssthresh.
    //= rfc8257#3.5 "a loss changes the windows as in another TCP, also after a mark of the same window"
    fn is_reduced(&self) -> bool {
        self.rules.windows.repeated_congestion == RepeatedCongestion::OncePerWindow
            && !self.reductions.by_share
            && self.reductions.at.is_some_and(|at| self.snd_una < at)
    }

    /// Returns whether a timeout leaves ssthresh unchanged. If fast recovery has retransmitted the segment, the timeout
    /// lowers ssthresh, because the loss of that retransmission is another sign of congestion.
    //= rfc5681#4.3 "the loss of a retransmission lowers ssthresh again"
    fn is_reduced_for_timeout(&self) -> bool {
        self.is_reduced() && self.snd_una >= self.reductions.resent_to
    }

    fn outstanding(&self) -> f64 {
        (self.snd_max - self.snd_una) as f64 / f64::from(self.mss)
    }

    /// Passes the time and the flight size to a control that sets both windows itself.
    #[inline]
    pub(super) fn tell_control(&mut self, now: Time) {
        if self.windows.ruled() {
            self.windows.at(now, self.outstanding());
        }
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1 % of the time of a LAN run, and only one place calls the function"
    )]
    fn on_new_ack(&mut self, ack: u64, now: Time) {
        if let Some(timing) = self.clock.timing.take_if(|timing| ack >= timing.until) {
            self.on_round_trip(timing, now);
        }
        reached!(AckBeyondNextSegment if ack > self.snd_nxt);
        let acked = ack - self.snd_una;
        let used = self.was_used();
        self.windows.beyond_cwnd = 0.0;
        self.snd_una = ack;
        if !self.rules.profile.is_rfc() {
            self.clock.idle = 0;
        }
        self.snd_nxt = self.snd_nxt.max(ack);
        if !self.board.is_empty() {
            self.board.forget_before(ack);
        }
        self.tell_control(now);
        let reports_mark = self.reduce_if_marked(acked);
        let flight = self.flight(&self.board);
        let progress = self.recovery.on_new_ack(&flight, acked, &mut self.windows);
        if self.next.pending == Pending::Rest {
            self.restart_timer(self.clock.slack);
        } else if ack == self.snd_max {
            self.clock.timer.stop();
        } else if self.clock.rules.restart == TimerRestart::EveryNewAck && progress != Progress::Resend(Timer::Keep) {
            self.restart_timer(self.clock.slack);
        }
        if progress == Progress::Grow && !reports_mark {
            self.windows.on_new_ack(now, acked as f64 / f64::from(self.mss), used);
        }
        if let Progress::Resend(_) = progress {
            // Karn: from now on, an acknowledgement of the timed segment may be caused by its retransmission.
            self.clock.timing = None;
            self.next.pending = Pending::Resend;
            self.next.cause = Cause::PartialAck;
        } else if self.next.pending == Pending::Resend {
            self.next.pending = Pending::Nothing;
        }
        if !self.board.is_empty() && self.recovery.forgets_reports() {
            self.board.clear();
        }
        if self.next.chosen || progress != Progress::Grow {
            self.next.chosen = self.recovery.chooses();
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
        if is_echoed && self.reductions.at.is_none_or(|at| self.snd_una > at) {
            reached!(WindowReducedByMark);
            if let Some(deliveries) = &mut self.departures.deliveries
                && self.windows.model().is_some()
            {
                deliveries.marked = true;
                self.note_reduction();
                return true;
            }
            //= rfc3168#6.1.2 "after a mark at a cwnd of one segment, the next one waits for the retransmission timer"
            let is_least = self.windows.cwnd < 2.0 && self.snd_una == self.snd_max;
            if is_least && marks.rests() && !self.windows.closed() {
                self.next.pending = Pending::Rest;
            }
            let is_share = marks.takes_share();
            self.windows.on_mark(self.outstanding() + acked as f64 / f64::from(self.mss));
            self.note_reduction();
            self.reductions.by_share = is_share;
        } else {
            reached!(MarkIgnoredInWindow if is_echoed);
        }
        is_echoed
    }

    /// Records that the windows were reduced, so that further signs of congestion on outstanding data do not lower
    /// ssthresh again.
    pub(super) fn note_reduction(&mut self) {
        self.reductions.at = Some(self.snd_max);
        self.reductions.by_share = false;
        if let Some(marks) = &mut self.marks {
            marks.on_reduction();
        }
    }

    /// Returns whether the first segment not acknowledged belongs to data that filled the window.
    //= rfc7661#3 "the window counts as used only if it limited what was sent"
    #[inline]
    fn was_used(&self) -> bool {
        self.snd_una < self.reductions.filled_to || self.rules.windows.unused_window == UnusedWindow::Grow
    }

    fn on_duplicate_ack(&mut self, news: bool, now: Time) {
        self.tell_control(now);
        if self.rules.windows.duplicate_acks == DuplicateAcks::GrowWindow {
            self.windows.on_new_ack(now, 1.0, self.was_used());
        }
        let flight = self.flight(&self.board);
        let reduced = flight.reduced;
        let reaction = self.recovery.on_duplicate_ack(&flight, news, &mut self.windows);
        self.windows.beyond_cwnd = 0.0;
        match reaction {
            Reaction::Ignore => self.transmit_beyond_cwnd(),
            Reaction::GoBack => {
                self.on_fast_retransmit(reduced);
                self.go_back(self.clock.slack);
            }
            Reaction::Resend => {
                self.on_fast_retransmit(reduced);
                self.clock.timing = None;
                self.restart_timer(self.clock.slack);
                self.next.pending = Pending::Resend;
            }
        }
        self.reduce_if_marked(0);
        self.next.chosen = self.recovery.chooses();
    }

    /// Records a fast retransmit, and the reduction of the windows unless they were `reduced` before for this data.
    pub(super) fn on_fast_retransmit(&mut self, reduced: bool) {
        reached!(FastRetransmit);
        self.counters.fast_retransmits += 1;
        if self.departures.deliveries.is_some() {
            self.begin_recovery(Recovers::Fast);
        }
        self.windows.after_loss();
        if !reduced {
            self.note_reduction();
        }
        self.next.cause = Cause::DuplicateAcks;
    }

    /// Allows segments beyond cwnd. RFC 3042 (2): each of the first two duplicates allows one more unsent segment,
    /// without a change of cwnd.
    fn transmit_beyond_cwnd(&mut self) {
        let allows = match self.rules.limited_transmit {
            LimitedTransmit::Off => false,
            LimitedTransmit::On => self.snd_nxt == self.snd_max,
            LimitedTransmit::Any => true,
        };
        let allowed = if allows { self.recovery.dup_acks() } else { 0 };
        if allowed < THRESHOLD {
            self.windows.beyond_cwnd = f64::from(allowed);
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.next.pending == Pending::Rest {
            self.next.pending = Pending::Nothing;
            return;
        }
        self.counters.timeouts += 1;
        if self.departures.deliveries.is_some() {
            self.check_application();
        }
        self.clock.rtt.on_timeout();
        if self.clock.rules.backoff == Backoff::Double {
            self.clock.rtt.back_off();
        }
        if self.next.pending == Pending::Opening {
            reached!(SynTimeout);
            // RFC 5681 (3.1): after a lost SYN or SYN-ACK, the initial window is one segment.
            self.windows.cwnd = 1.0;
            if let Some(model) = self.windows.model() {
                model.set_cwnd(1.0);
            }
            self.clock.timing = self.clock.times_again().then_some(Timing { until: 0, ticks: 0, sent: now });
            self.restart_timer(0);
            return;
        }
        reached!(TimeoutAfterMark if self.marks.is_some_and(Marks::is_echoed));
        self.windows.beyond_cwnd = 0.0;
        self.tell_control(now);
        self.windows.on_timeout(self.outstanding(), self.is_reduced_for_timeout());
        if self.departures.deliveries.is_some() {
            self.lose_all(now);
        }
        (self.reductions.timed_out_to, self.reductions.resent_to) = (self.snd_max, 0);
        self.note_reduction();
        self.recovery.at(now);
        let flight = self.flight(&self.board);
        self.recovery.on_timeout(&flight);
        self.next.chosen = self.recovery.chooses();
        self.next.pending = Pending::Nothing;
        self.next.cause = Cause::Timeout;
        if self.recovery.keeps_reports() {
            self.clock.timing = None;
            self.clock.early.stop();
            self.restart_timer(0);
            return;
        }
        self.board.clear();
        self.go_back(0);
    }

    /// Goes back to the first unacknowledged segment, which is sent next and may not be timed (Karn). Restarts the
    /// timer. If the window is closed and nothing can be sent, starts the persist timer instead.
    fn go_back(&mut self, slack: u32) {
        self.clock.timing = None;
        self.restart_timer(slack);
        self.snd_nxt = self.snd_una;
    }

    /// Restarts the timer for all outstanding data. With a timer for each segment, restarts the timer of the first
    /// segment. A timer started at the time of a check needs no extra check.
    pub(super) fn restart_timer(&mut self, slack: u32) {
        self.clock.restart(Segment { seq: self.snd_una, len: self.mss }, slack);
    }
}

/// Returns the whole segments of a window.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(window: f64) -> u64 {
    window as u64
}
