//! Probes of a closed window.
//!
//! Source: RFC 1122 (4.2.2.17). Differences from the source: a probe carries one byte.

use super::{Pending, Sender};
use crate::coverage::reached;
use crate::tcp::Segment;

impl Sender {
    /// Starts probing a closed window when all data is acknowledged or considered lost. RFC 1122 (4.2.2.17): the first
    /// probe waits for a retransmission timeout, and later intervals grow exponentially. In 4.3BSD the persist timer
    /// also replaces the retransmission timer.
    pub(super) fn persist(&mut self) {
        if !self.clock.persist.is_running() {
            reached!(WindowClosed);
            self.clock.timer.stop();
            self.clock.timing = None;
            self.clock.start_persist(self.clock.slack);
        }
    }

    pub(super) fn on_persist_timeout(&mut self) {
        self.clock.probes += 1;
        reached!(WindowProbedAgain if self.clock.probes > 1);
        self.next.pending = Pending::Probe;
        self.clock.start_persist(0);
    }

    /// Sends one byte. As in 4.3BSD, the byte counts as sent but `snd_nxt` does not move, so the next segment includes
    /// the byte again.
    pub(super) fn probe(&mut self) -> Segment {
        self.counters.segments_sent += 1;
        if let Some(marks) = &mut self.marks {
            // Like a retransmitted segment, a probe does not report a reduction.
            marks.on_sent(true);
        }
        self.snd_max = self.snd_max.max(self.snd_una + 1);
        Segment { seq: self.snd_una, len: 1 }
    }
}
