//! Recovery by time: loss detection after acknowledgements and timers, and probes for lost tails.
//!
//! Source: RFC 8985 (6.2 step 5, 7.2, 7.3, 8).

use super::clock::EarlyKind;
use super::{Cause, Sender};
use crate::coverage::reached;
use crate::tcp::recovery::{Choice, Detected, EarlyTimer};
use crate::units::Time;

impl Sender {
    /// Lets the recovery detect losses. Returns whether a recovery has started.
    #[inline(never)]
    pub(super) fn detect_losses(&mut self, now: Time) -> bool {
        self.tell_control(now);
        let flight = self.flight(&self.board);
        let reduced = flight.reduced;
        let detected = self.recovery.detect(&flight, &mut self.windows);
        match detected {
            Detected::Nothing => {}
            Detected::Loss => {
                self.on_fast_retransmit(reduced);
                self.clock.timing = None;
                self.restart_timer(self.clock.slack);
            }
            Detected::Repaired => {
                self.windows.after_loss();
                if !reduced {
                    self.note_reduction();
                }
            }
        }
        detected == Detected::Loss
    }

    /// Starts or stops the early timer after an acknowledgement. A probe timeout restarts only if the acknowledgement
    /// `advances`.
    pub(super) fn run_early_timer(&mut self, advances: bool) {
        let timer = self.recovery.early_timer(&self.flight(&self.board));
        let is_probe = self.clock.early_kind == EarlyKind::Probe && self.clock.early.is_running();
        match timer {
            Some(EarlyTimer::Probe { .. }) if is_probe && !advances => {}
            Some(timer) => self.clock.start_early(timer, self.snd_una),
            None => self.clock.early.stop(),
        }
    }

    /// Handles the end of the early timer. Returns whether the retransmission timer has started again.
    //= rfc8985#7.3 "the retransmission timer restarts when the probe timeout ends"
    #[inline(never)]
    pub(super) fn on_early_timer(&mut self, now: Time) -> bool {
        self.recovery.at(now);
        self.departures.begin_burst();
        match self.clock.early_kind {
            EarlyKind::Reordering => {
                reached!(ReorderingTimerExpires);
                let lost = self.detect_losses(now);
                self.run_early_timer(false);
                lost
            }
            EarlyKind::Probe => {
                self.recovery.on_probe_timer();
                self.restart_timer(0);
                true
            }
        }
    }

    /// Restarts the probe timeout after new data that is not a probe.
    pub(super) fn on_chosen_sent(&mut self, choice: Choice) {
        if !self.rules.observes || self.next.cause == Cause::TailProbe || !matches!(choice, Choice::New(_)) {
            return;
        }
        if let Some(timer @ EarlyTimer::Probe { .. }) = self.recovery.early_timer(&self.flight(&self.board)) {
            self.clock.start_early(timer, self.snd_una);
        }
    }

    /// Notes a full window, and probes a closed one, as in recoveries that leave the choice of segments to the windows.
    pub(super) fn on_nothing_chosen(&mut self) {
        let Some(in_flight) = self.recovery.in_flight() else { return };
        let has_room = self.windows.cwnd - in_flight as f64 >= 1.0;
        if !has_room || !self.flight(&self.board).fits(self.snd_max, &self.windows) {
            self.reductions.filled_to = self.snd_max;
        }
        if self.windows.closed() && in_flight == 0 && self.snd_una < self.end {
            self.persist();
        }
    }
}
