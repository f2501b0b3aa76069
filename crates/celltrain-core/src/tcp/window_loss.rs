//! Deliberate losses: one segment is lost each time the window reaches a value.
//!
//! Source: ATM Forum 97-0831, section 2: "an artificial simulation [...] where the network controlled the TCP rate by
//! dropping a packet every time the TCP window reached a particular value". The window is min(CWND, RCVWND), as that
//! section defines it, so a value above the receiver's window is never reached. Differences from the source: the source
//! does not cover a loss that leaves the window at or above the value; here that counts as reaching it again. Only
//! segments sent for the first time are lost, so that a retransmission cannot be lost for the same window.

use super::Segment;
use crate::coverage::reached;

/// Selects which segments of a sender are lost.
#[derive(Clone, Copy, Debug)]
pub struct WindowLoss {
    /// The window at which a segment is lost, in segments.
    at: f64,
    /// True if the window has shrunk since the last loss, or if nothing has been sent.
    armed: bool,
    /// The window at the time when the last segment was sent.
    window: f64,
    /// First byte of the stream that was never sent.
    snd_max: u64,
}

impl WindowLoss {
    /// Creates losses of one segment each time the window reaches `at` segments. The connection must not have sent
    /// anything yet.
    pub fn new(at: f64) -> Self {
        Self { at, armed: true, window: 0.0, snd_max: 0 }
    }

    /// Returns whether this segment is lost, if it is sent while the window is `window` segments.
    pub fn takes(&mut self, segment: Segment, window: f64) -> bool {
        let first_time = segment.seq >= self.snd_max;
        self.snd_max = self.snd_max.max(segment.end());
        self.armed |= window < self.window;
        self.window = window;
        let takes = self.armed && first_time && window >= self.at;
        self.armed &= !takes;
        reached!(SegmentDamaged if takes);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each segment, given by its number and the window at its transmission, returns whether the segment is lost.
    fn lost(sent: &[(u64, f64)]) -> Vec<bool> {
        let mut loss = WindowLoss::new(4.0);
        sent.iter().map(|&(number, window)| loss.takes(Segment { seq: number * 100, len: 100 }, window)).collect()
    }

    #[test]
    fn the_window_loss_model_drops_one_segment_each_time_cwnd_reaches_the_configured_value() {
        assert_eq!(
            lost(&[(0, 3.9), (1, 4.0), (2, 4.2), (3, 5.0)]),
            [false, true, false, false],
            "only the first segment is lost"
        );
        let again = [(0, 4.0), (1, 5.0), (2, 2.5), (3, 3.5), (4, 4.1)];
        assert_eq!(
            lost(&again),
            [true, false, false, false, true],
            "the window has shrunk and has reached the value again"
        );
        let at_it = [(0, 4.0), (1, 8.0), (2, 4.0), (3, 4.1)];
        assert_eq!(lost(&at_it), [true, false, true, false], "the window has shrunk but is still at the value");
        let resent = [(0, 4.0), (1, 8.0), (0, 4.5), (2, 4.5)];
        assert_eq!(lost(&resent), [true, false, false, true], "a retransmitted segment is not lost");
    }
}
