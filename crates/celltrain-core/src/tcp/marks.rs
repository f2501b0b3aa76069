//! The sender's reaction to marks that acknowledgements report (explicit congestion notification).
//!
//! Source: RFC 3168, 6.1.2.

/// The state of a sender that reacts to marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// True if the acknowledgement being processed reports a mark.
    echoed: bool,
    /// `snd_max` when the window was last reduced. A mark reduces it again only if its acknowledgement exceeds this
    /// value.
    reduced_at: u64,
    /// True if the next new segment reports the reduction (CWR).
    to_report: bool,
    /// True if the last segment sent reports the reduction.
    reports: bool,
    /// `snd_nxt` when a whole window was last acknowledged.
    window_end: u64,
}

impl Marks {
    /// Creates the state of a sender whose data before `offset` has been acknowledged.
    pub(super) fn starting_at(offset: u64) -> Self {
        Self { echoed: false, reduced_at: offset, to_report: false, reports: false, window_end: offset }
    }

    /// Records whether the acknowledgement that is processed next reports a mark (ECE).
    pub(super) fn on_echo(&mut self, echoed: bool) {
        self.echoed = echoed;
    }

    /// Returns whether the acknowledgement being processed reports a mark.
    pub(super) fn is_echoed(self) -> bool {
        self.echoed
    }

    /// Records that a segment is sent, for the first time or again. The first new segment after a reduction reports the
    /// reduction.
    #[inline]
    pub(super) fn on_sent(&mut self, again: bool) {
        self.reports = !again && std::mem::take(&mut self.to_report);
    }

    /// Returns whether the last segment sent reports that the window was reduced because of a mark (CWR).
    pub(super) fn reports_reduction(self) -> bool {
        self.reports
    }

    /// Returns whether an acknowledgement up to `una` covers everything that had been sent when this last returned
    /// true.
    pub(super) fn acknowledges_window(&mut self, una: u64, nxt: u64) -> bool {
        let is_whole = una > self.window_end;
        if is_whole {
            self.window_end = nxt;
        }
        is_whole
    }

    /// Returns whether the acknowledgement up to `una` reduces the window: it reports a mark, and the window has not
    /// been reduced for the same data. `max` is the end of the data sent.
    pub(super) fn reduces(&mut self, una: u64, max: u64) -> bool {
        let reduces = self.echoed && una > self.reduced_at;
        if reduces {
            self.to_report = true;
            self.on_reduction(max);
        }
        reduces
    }

    /// Records that the window is reduced: marks on data sent before `max` do not reduce it again.
    pub(super) fn on_reduction(&mut self, max: u64) {
        self.reduced_at = max;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_on_one_window_of_data_reduce_it_once_and_the_next_new_segment_reports_it() {
        let mut marks = Marks::starting_at(0);
        marks.on_echo(true);
        assert!(marks.reduces(1000, 5000));
        assert!(!marks.reduces(5000, 9000), "that data was sent before the reduction");
        marks.on_sent(true);
        assert!(!marks.reports_reduction());
        let reports = [(); 2].map(|()| {
            marks.on_sent(false);
            marks.reports_reduction()
        });
        assert_eq!(reports, [true, false]);
        assert!(marks.reduces(5001, 9000));
    }

    #[test]
    fn a_window_ends_where_sending_had_come_to() {
        let mut marks = Marks::starting_at(0);
        let ends = [(1000, 4000), (4000, 8000), (4001, 8001)].map(|(una, nxt)| marks.acknowledges_window(una, nxt));
        assert_eq!(ends, [true, false, true]);
    }
}
