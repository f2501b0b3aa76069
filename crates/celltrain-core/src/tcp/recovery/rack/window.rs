//! The reordering window: how long RACK waits for segments that may only be late.
//!
//! Source: RFC 8985 (6.2, steps 1, 3 and 4), with its names. Differences from the source: none known.

use crate::units::{Span, Time};

/// RFC 8985 (6.2, step 4): recoveries without a DSACK option after which the window has its initial size again.
const RECOVERIES: u32 = 16;
/// RFC 6675 (2).
const DUP_THRESH: u64 = 3;

/// The state of the reordering window.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReorderingWindow {
    /// The highest end of a delivered segment.
    fack: u64,
    reordering_seen: bool,
    /// End of the data that must be acknowledged before a DSACK option widens the window again.
    dsack_round: Option<u64>,
    reo_wnd_mult: u64,
    reo_wnd_persist: u32,
}

impl Default for ReorderingWindow {
    fn default() -> Self {
        Self { fack: 0, reordering_seen: false, dsack_round: None, reo_wnd_mult: 1, reo_wnd_persist: RECOVERIES }
    }
}

impl ReorderingWindow {
    /// Records a delivered segment (step 3). Segments of one acknowledgement are recorded in the order of the stream.
    //= rfc8985#6.2 "a segment that was sent once and is delivered below a delivered one shows reordering"
    pub(super) fn on_delivered(&mut self, end_seq: u64, retransmitted: bool) {
        self.reordering_seen |= end_seq < self.fack && !retransmitted;
        self.fack = self.fack.max(end_seq);
    }

    /// Records an acknowledgement up to `una`, when `nxt` is the next byte to send.
    //= rfc8985#6.2 "each round trip with a DSACK option widens the reordering window by a quarter of min_RTT"
    pub(super) fn on_ack(&mut self, una: u64, nxt: u64, dsack: bool) {
        self.dsack_round = self.dsack_round.filter(|&end| una < end);
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = RECOVERIES;
        }
    }

    /// Records the end of a recovery.
    //= rfc8985#6.2 "after 16 recoveries without a DSACK option the reordering window is a quarter of min_RTT again"
    pub(super) fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// Returns `RACK.reo_wnd`.
    //= rfc8985#6.2 "without reordering the window is zero in recovery and after three SACKed segments"
    //= rfc8985#6.2 "the reordering window is at most SRTT"
    pub(super) fn reo_wnd(&self, recovers: bool, segs_sacked: u64, min_rtt: Span, srtt: Span) -> Span {
        if !self.reordering_seen && (recovers || segs_sacked >= DUP_THRESH) {
            return Span(0);
        }
        Span(self.reo_wnd_mult.saturating_mul(min_rtt.0) / 4).min(srtt)
    }
}

/// The smallest round-trip time of the last 5 to 10 minutes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    window: Span,
    /// Start of the current window, the minimum of the current window, and the minimum of the previous window.
    start: Time,
    current: Span,
    previous: Span,
}

impl MinRtt {
    pub(super) fn new(window: Span) -> Self {
        Self { window, start: Time::default(), current: Span(u64::MAX), previous: Span(u64::MAX) }
    }

    /// Returns the minimum; zero before the first sample.
    pub(super) fn min(&self) -> Span {
        let least = self.current.min(self.previous);
        if least == Span(u64::MAX) { Span(0) } else { least }
    }

    //= rfc8985#6.2 "min_RTT follows recent samples, so that it can rise on a longer path"
    pub(super) fn sample(&mut self, rtt: Span, now: Time) {
        if now - self.start >= self.window {
            (self.start, self.previous, self.current) = (now, self.current, rtt);
        }
        self.current = self.current.min(rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarters(window: &ReorderingWindow) -> u64 {
        window.reo_wnd(false, 0, Span(4), Span(1000)).0
    }

    //= test rfc8985#6.2 "each round trip with a DSACK option widens the reordering window by a quarter of min_RTT"
    //= test rfc8985#6.2 "after 16 recoveries without a DSACK option the reordering window is a quarter of min_RTT again"
    //= test rfc8985#6.2 "the reordering window is at most SRTT"
    #[test]
    fn the_reordering_window_grows_once_per_round_trip_with_dsack_and_shrinks_after_16_recoveries() {
        let mut window = ReorderingWindow::default();
        assert_eq!(quarters(&window), 1);
        window.on_ack(10, 100, true);
        window.on_ack(50, 120, true);
        assert_eq!(quarters(&window), 2, "the second option is of the same round trip");
        window.on_ack(100, 150, true);
        assert_eq!(quarters(&window), 3);
        assert_eq!(window.reo_wnd(false, 0, Span(400), Span(250)), Span(250), "at most SRTT");
        (0..15).for_each(|_| window.on_recovered());
        assert_eq!(quarters(&window), 3);
        window.on_recovered();
        assert_eq!(quarters(&window), 1);
    }

    //= test rfc8985#6.2 "without reordering the window is zero in recovery and after three SACKed segments"
    //= test rfc8985#6.2 "a segment that was sent once and is delivered below a delivered one shows reordering"
    #[test]
    fn the_reordering_window_is_zero_in_recovery_or_after_three_sacked_segments_until_reordering_is_seen() {
        let mut window = ReorderingWindow::default();
        let all = |window: &ReorderingWindow| {
            [(false, 2), (false, 3), (true, 0)]
                .map(|(recovers, sacked)| window.reo_wnd(recovers, sacked, Span(40), Span(100)).0)
        };
        window.on_delivered(300, false);
        window.on_delivered(200, true);
        assert_eq!(all(&window), [10, 0, 0], "a retransmission shows no reordering");
        window.on_delivered(100, false);
        assert_eq!(all(&window), [10, 10, 10]);
    }

    //= test rfc8985#6.2 "min_RTT follows recent samples, so that it can rise on a longer path"
    #[test]
    fn the_minimum_round_trip_time_excludes_samples_of_earlier_windows() {
        let mut rtt = MinRtt::new(Span(100));
        assert_eq!(rtt.min(), Span(0));
        for (now, sample, least) in [(0, 7, 7), (50, 5, 5), (100, 9, 5), (199, 8, 5), (200, 9, 8), (300, 9, 9)] {
            rtt.sample(Span(sample), Time(now));
            assert_eq!(rtt.min(), Span(least), "at {now}");
        }
    }
}
