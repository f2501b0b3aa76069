//! `HyStart++`: slow start ends when round-trip times grow, before the buffer overflows.
//!
//! Source: RFC 9406, whose constants and variables are used (4.2, 4.3). The first slow start uses it, later ones do
//! not, as 4.3 recommends. Differences from the source: the acknowledgement that ends a round still gives a sample to
//! this round, because it acknowledges the round's last segment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Clock, Duration, Span};

/// Whether the first slow start ends when round-trip times grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hystart {
    /// Slow start lasts until cwnd reaches ssthresh.
    #[default]
    Off,
    /// Slow start continues more slowly once round-trip times grow, and ends five rounds later (RFC 9406). It grows by
    /// what is acknowledged, without pacing by at most eight segments at once.
    On,
}

const MIN_RTT_THRESH: Duration = Duration::from_milliseconds(4);
const MAX_RTT_THRESH: Duration = Duration::from_milliseconds(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// L of senders that are not paced, in segments.
const L: f64 = 8.0;

/// State of the first slow start.
#[derive(Debug)]
pub(super) struct HyStart {
    /// L: at most this many segments of an acknowledgement count.
    limit: f64,
    thresholds: [Span; 2],
    /// `windowEnd`: the round ends when this offset is acknowledged.
    window_end: Option<u64>,
    last_round_min_rtt: Option<Span>,
    current_round_min_rtt: Option<Span>,
    rtt_sample_count: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start (CSS).
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// `cssBaselineMinRtt`.
    baseline_min_rtt: Span,
    rounds: u32,
}

impl HyStart {
    pub(super) fn new(paced: bool, clock: Clock) -> Self {
        Self {
            limit: if paced { f64::INFINITY } else { L },
            thresholds: [MIN_RTT_THRESH, MAX_RTT_THRESH].map(|threshold| clock.span(threshold)),
            window_end: None,
            last_round_min_rtt: None,
            current_round_min_rtt: None,
            rtt_sample_count: 0,
            conservative: None,
        }
    }

    /// Returns the growth of cwnd for `acked` segments.
    pub(super) fn growth(&self, acked: f64) -> f64 {
        let counted = acked.min(self.limit);
        if self.conservative.is_some() { counted / CSS_GROWTH_DIVISOR } else { counted }
    }

    /// Processes an acknowledgement of data up to `una`, after cwnd has grown and before data from `next` on is sent.
    /// Returns whether slow start ends.
    pub(super) fn on_ack(&mut self, una: u64, next: u64, rtt: Option<Span>) -> bool {
        if let Some(rtt) = rtt {
            self.current_round_min_rtt = Some(self.current_round_min_rtt.map_or(rtt, |least| least.min(rtt)));
            self.rtt_sample_count += 1;
        }
        if let Some(current) = self.current_round_min_rtt.filter(|_| self.rtt_sample_count >= N_RTT_SAMPLE) {
            match self.conservative {
                Some(conservative) if current < conservative.baseline_min_rtt => self.conservative = None,
                Some(_) => {}
                None => self.conservative = self.begin(current),
            }
        }
        una >= *self.window_end.get_or_insert(next) && self.end_round(next)
    }

    /// Returns conservative slow start, if the round-trip time has grown.
    fn begin(&self, current: Span) -> Option<Conservative> {
        let last = self.last_round_min_rtt?;
        let [minimum, maximum] = self.thresholds;
        let threshold = Span(last.0 / MIN_RTT_DIVISOR).min(maximum).max(minimum);
        (current.0 >= last.0 + threshold.0).then_some(Conservative { baseline_min_rtt: current, rounds: 0 })
    }

    fn end_round(&mut self, next: u64) -> bool {
        self.window_end = Some(next);
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_sample_count = 0;
        let Some(conservative) = &mut self.conservative else { return false };
        conservative.rounds += 1;
        conservative.rounds == CSS_ROUNDS
    }
}

#[cfg(test)]
mod tests;
