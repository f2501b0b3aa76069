//! File delay: a TCP connection's stream is divided into files of equal size, and the delay of each file is measured.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, sections 3 and 3.1, where a file has 100 KB; `docs/mechanisms.md` section 6
//! . Symbols: L is the size of a file. D is its delay, from the instant when its first byte is first sent to the
//! network until the sender receives the acknowledgement of its last byte. Differences from the source: the padding of
//! a last segment counts as part of the stream, as it does everywhere.

use std::collections::VecDeque;

use crate::units::{Clock, Span, Time};

/// The files of one connection, which are consecutive pieces of its stream.
#[derive(Clone, Debug)]
pub struct Files {
    /// L.
    size: u64,
    /// Position in the stream at which the next file to be sent begins.
    next: u64,
    /// Position in the stream at which the oldest incomplete file ends.
    until: u64,
    /// Start times of the incomplete files, oldest first. The window limits the number of incomplete files.
    began: VecDeque<Time>,
    /// Delays D of the complete files, in order.
    delays: Vec<Span>,
}

impl Files {
    /// Creates the record of a connection that has sent nothing; `size` is the size of its files in bytes, above 0.
    pub fn of(size: u64) -> Self {
        assert!(size > 0, "scenario checks refuse an empty file");
        Self { size, next: 0, until: size, began: VecDeque::new(), delays: Vec::new() }
    }

    /// Records that all bytes before `acknowledged` are acknowledged at `now`, and all before `sent` were sent at least
    /// once.
    pub fn on_progress(&mut self, acknowledged: u64, sent: u64, now: Time) {
        while self.until <= acknowledged {
            let began = self.began.pop_front().expect("an acknowledged file has been started before");
            self.delays.push(now - began);
            self.until += self.size;
        }
        while self.next < sent {
            self.began.push_back(now);
            self.next += self.size;
        }
    }

    /// Returns the delays D of the complete files, in order.
    pub fn delays(&self) -> &[Span] {
        &self.delays
    }
}

/// Statistics of the delay D over several files, in milliseconds; `None` if no file is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FileDelay {
    /// Mean.
    pub mean_ms: Option<f64>,
    /// Median.
    pub median_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// Number of complete files.
    pub files: u64,
}

impl FileDelay {
    /// Computes the statistics of delays on `clock`.
    pub fn of(mut delays: Vec<Span>, clock: Clock) -> Self {
        if delays.is_empty() {
            return Self::default();
        }
        delays.sort_unstable();
        let ms = |units: f64| Some(units / clock.units_per_second as f64 * 1e3);
        let sum: u128 = delays.iter().map(|delay| u128::from(delay.0)).sum();
        Self {
            mean_ms: ms(sum as f64 / delays.len() as f64),
            median_ms: ms(percentile(&delays, 50)),
            p95_ms: ms(percentile(&delays, 95)),
            files: delays.len() as u64,
        }
    }
}

/// Returns a percentile of n sorted values, at position (n - 1) p (counted from 0), with linear interpolation between
/// two positions.
///
/// Source: Hyndman and Fan, *Sample quantiles in statistical packages*, 1996, definition 7.
fn percentile(sorted: &[Span], percent: usize) -> f64 {
    let place = (sorted.len() - 1) * percent;
    let value = |place: usize| sorted[place].0 as f64;
    let (below, above) = (value(place / 100), value(place.div_ceil(100)));
    below + (above - below) * (place % 100) as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock::exact(1000);

    fn spans(delays: &[u64]) -> Vec<Span> {
        delays.iter().map(|&delay| Span(delay)).collect()
    }

    /// Returns the delays of files of 1024 bytes. A step gives the numbers of segments of 512 bytes acknowledged and
    /// sent so far, and the time.
    fn delays(steps: &[(u64, u64, u64)]) -> Vec<Vec<Span>> {
        let mut files = Files::of(1024);
        let mut after = |&(acknowledged, sent, now)| {
            files.on_progress(acknowledged * 512, sent * 512, Time(now));
            files.delays().to_vec()
        };
        steps.iter().map(&mut after).collect()
    }

    #[test]
    fn retransmitting_the_first_byte_of_a_file_does_not_change_the_start_of_its_delay() {
        // The first byte is retransmitted at 3005. Then a second file begins and ends.
        let found = delays(&[(0, 1, 5), (0, 1, 3005), (1, 3, 3010), (2, 4, 3020), (4, 6, 3030)]);
        let from_the_first_time = [&[][..], &[], &[], &[3015], &[3015, 20]].map(spans);
        assert_eq!(found, from_the_first_time);
    }

    #[test]
    fn one_acknowledgement_can_complete_two_files() {
        let found = delays(&[(0, 1, 0), (1, 3, 10), (2, 5, 13), (3, 7, 15), (6, 12, 100)]);
        assert_eq!(
            found,
            [&[][..], &[], &[13], &[13], &[13, 90, 87]].map(spans),
            "the second and third file begin in segments 2 and 4"
        );
    }

    #[test]
    fn the_delay_of_a_file_ends_when_its_last_byte_is_acknowledged() {
        let mut files = Files::of(100);
        files.on_progress(0, 250, Time(7));
        files.on_progress(99, 250, Time(8));
        assert_eq!(files.delays(), []);
        files.on_progress(100, 300, Time(9));
        assert_eq!(files.delays(), spans(&[2]));
        files.on_progress(300, 301, Time(20));
        assert_eq!(files.delays(), spans(&[2, 13, 13]), "the third file began with the last 50 bytes of the segment");
        files.on_progress(400, 400, Time(21));
        assert_eq!(files.delays(), spans(&[2, 13, 13, 1]));
    }

    #[test]
    fn percentiles_of_file_delays_are_interpolated_linearly_between_samples() {
        // numpy.percentile([1, 2, 4, 8, 16, 100], [50, 95]) gives 6 and 79.
        let delay = FileDelay::of(spans(&[16, 1, 100, 2, 8, 4]), CLOCK);
        let close = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
        assert!(close(delay.mean_ms, 131.0 / 6.0) && close(delay.median_ms, 6.0) && close(delay.p95_ms, 79.0));
        assert_eq!(delay.files, 6);
        let one = FileDelay::of(spans(&[7]), CLOCK);
        assert_eq!((one.mean_ms, one.median_ms, one.p95_ms, one.files), (Some(7.0), Some(7.0), Some(7.0), 1));
        let none = FileDelay::of(Vec::new(), CLOCK);
        assert_eq!((none.mean_ms, none.median_ms, none.p95_ms, none.files), (None, None, None, 0));
    }
}
