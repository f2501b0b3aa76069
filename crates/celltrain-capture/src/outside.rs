//! Times of packets and cells outside the time window of a capture.

/// First and last time, in nanoseconds, of the packets or cells that were left out only because they were outside the
/// time window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outside(Option<[u64; 2]>);

impl Outside {
    pub(crate) fn add(&mut self, time_ns: u64) {
        let first = self.0.map_or(time_ns, |[first, _]| first);
        self.0 = Some([first, time_ns]);
    }

    /// Returns the first and the last time of a packet or cell outside the window; `None` if there is no such packet or
    /// cell.
    pub(crate) fn times(self) -> Option<[u64; 2]> {
        self.0
    }
}
