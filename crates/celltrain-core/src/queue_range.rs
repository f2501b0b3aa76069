//! The smallest and largest queue length of a port, between samples and over the whole run.

/// The smallest and largest queue lengths of a port over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueRange {
    /// The fewest.
    pub least: u32,
    /// The most.
    pub largest: u32,
}

/// Tracks the range of a queue that is empty at the start of a run.
///
/// A cell whose transmission starts when it arrives still counts as waiting at that instant, as in
/// [`PortState::max_queue`](crate::port::PortState::max_queue).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueTracker {
    since_sample: QueueRange,
    /// The largest queue before the latest sample.
    largest_before: u32,
}

impl QueueTracker {
    /// Records that the queue has become shorter and now has `cells` cells.
    #[inline]
    pub(crate) fn fall(&mut self, cells: u32) {
        self.since_sample.least = self.since_sample.least.min(cells);
    }

    /// Records that the queue has become longer and now has `cells` cells.
    #[inline]
    pub(crate) fn rise(&mut self, cells: u32) {
        self.since_sample.largest = self.since_sample.largest.max(cells);
    }

    /// Records all lengths within `range`.
    #[inline]
    pub(crate) fn include(&mut self, QueueRange { least, largest }: QueueRange) {
        self.fall(least);
        self.rise(largest);
    }

    /// Returns the range since the latest sample, given that `cells` cells are waiting now.
    pub(crate) fn range(&self, cells: u32) -> QueueRange {
        let QueueRange { least, largest } = self.since_sample;
        QueueRange { least: least.min(cells), largest: largest.max(cells) }
    }

    /// Starts a new range at a sample, when `cells` cells are waiting.
    pub(crate) fn start_range(&mut self, cells: u32) {
        self.largest_before = self.max_queue();
        self.since_sample = QueueRange { least: cells, largest: cells };
    }

    /// Returns the largest queue length since the start of the run.
    #[inline]
    pub(crate) fn max_queue(&self) -> u32 {
        self.largest_before.max(self.since_sample.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_range_covers_the_last_sampled_length_and_all_lengths_since_that_sample() {
        let mut tracker = QueueTracker::default();
        tracker.rise(7);
        assert_eq!(tracker.range(4), QueueRange { least: 0, largest: 7 });
        tracker.start_range(4);
        assert_eq!(tracker.range(4), QueueRange { least: 4, largest: 4 });
        tracker.include(QueueRange { least: 2, largest: 5 });
        assert_eq!(tracker.range(3), QueueRange { least: 2, largest: 5 });
        assert_eq!(tracker.range(1), QueueRange { least: 1, largest: 5 });
        assert_eq!(tracker.max_queue(), 7);
    }
}
