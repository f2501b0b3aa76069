//! Tail loss probes: a segment that asks for an acknowledgement if none has come for two round trips.
//!
//! Source: RFC 8985 (7), with its names. Differences from the source: none known.

use crate::tcp::recovery::Arrival;

/// The state of the probes of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailProbe {
    /// `TLP.end_seq`: the next byte to send when the probe left, until the probe is acknowledged.
    end_seq: Option<u64>,
    /// `TLP.is_retrans`: true if the probe was a retransmission.
    is_retrans: bool,
    /// True if the round-trip time was measured since the last probe or the start of the connection.
    is_measured: bool,
    /// True while the probe is due.
    pub(super) is_due: bool,
}

impl TailProbe {
    /// Implements `TLP_init`.
    //= rfc8985#7.1 "a recovery forgets an unacknowledged probe"
    pub(super) fn reset(&mut self) {
        (self.end_seq, self.is_retrans, self.is_due) = (None, false, false);
    }

    /// Records a sample of the round-trip time.
    pub(super) fn on_round_trip(&mut self) {
        self.is_measured = true;
    }

    /// Handles the end of the probe timeout: a probe is due unless one is outstanding, or no round trip was measured
    /// since the last one.
    //= rfc8985#7.3 "no probe leaves while another is outstanding, or before a new sample of the round-trip time"
    pub(super) fn on_timer(&mut self) {
        self.is_due = self.end_seq.is_none() && self.is_measured;
    }

    /// Records that the probe is sent, which ends at `end_seq`.
    pub(super) fn on_sent(&mut self, end_seq: u64, is_retrans: bool) {
        *self = Self { end_seq: Some(end_seq), is_retrans, is_measured: false, is_due: false };
    }

    /// Implements `TLP_process_ack`. Returns whether the probe has repaired a loss, which reduces the window.
    //= rfc8985#7.4.2 "an acknowledgement beyond a retransmitted probe shows a repaired loss, without a sign of two copies"
    pub(super) fn repairs(&mut self, arrival: &Arrival<'_>) -> bool {
        let Some(end_seq) = self.end_seq.filter(|&end| arrival.ack >= end) else { return false };
        let is_second_copy = arrival.dsack().is_some_and(|(_, end)| end == end_seq);
        let is_plain_duplicate = arrival.ack == arrival.una && arrival.blocks.is_empty();
        let repairs = self.is_retrans && !is_second_copy && arrival.ack > end_seq;
        if repairs || !self.is_retrans || is_second_copy || is_plain_duplicate {
            self.end_seq = None;
        }
        repairs
    }
}
