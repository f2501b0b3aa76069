//! The sender's reaction to marks that acknowledgements report (explicit congestion notification).
//!
//! Source: RFC 3168, 6.1.2.

/// The state of a sender that reacts to marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// True if the acknowledgement being processed reports a mark.
    echoed: bool,
    /// True if the next new segment reports the reduction (CWR).
    to_report: bool,
    /// The kind of the last segment sent.
    last: Last,
    to_mark: ToMark,
    capable: Capable,
    /// `snd_nxt` when a whole window was last acknowledged.
    window_end: u64,
}

/// A sender's reaction to a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToMark {
    /// The window is reduced to at least one segment.
    Reduce,
    /// The window is reduced to at least one segment. At a cwnd of one segment, the sender pauses until its
    /// retransmission timer expires (RFC 3168).
    ReduceOrRest,
    /// The window shrinks by the share of marked segments (RFC 8257).
    Share,
}

/// Determines which packets of a connection are ECN-capable (ECT). Ports drop other packets instead of marking them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capable {
    /// New data is ECN-capable (RFC 3168).
    NewData,
    /// New data, the SYN and the SYN-ACK are ECN-capable (RFC 8257).
    NewDataAndSyns,
    /// All packets are ECN-capable, as with DCTCP in Linux and in ns-3 (`DctcpEcn`), which the papers about shared
    /// memories use.
    All,
}

/// The kind of a segment that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// The segment was sent before, or is a window probe.
    Again,
    New,
    /// The segment is new and reports a reduction of the window (CWR).
    Reporting,
}

impl Marks {
    /// Creates the state of a sender that has sent nothing.
    pub(super) fn new(to_mark: ToMark, capable: Capable) -> Self {
        Self { echoed: false, to_report: false, last: Last::Again, to_mark, capable, window_end: 0 }
    }

    /// Returns the sender's state after all data before `offset` has been acknowledged.
    pub(super) fn starting_at(self, offset: u64) -> Self {
        Self { window_end: offset, ..self }
    }

    /// Returns whether the SYN and its answer are ECN-capable.
    pub(super) fn opens_capable(self) -> bool {
        self.capable != Capable::NewData
    }

    /// Returns whether acknowledgements without data are ECN-capable.
    pub(super) fn acknowledges_capable(self) -> bool {
        self.capable == Capable::All
    }

    /// Returns whether a mark at a cwnd of one segment stops the sender until its retransmission timer expires.
    pub(super) fn rests(self) -> bool {
        self.to_mark == ToMark::ReduceOrRest
    }

    /// Returns whether a mark reduces the window by the share of marked segments.
    pub(super) fn takes_share(self) -> bool {
        self.to_mark == ToMark::Share
    }

    /// Records whether the acknowledgement to be processed next reports a mark (ECE).
    pub(super) fn on_echo(&mut self, echoed: bool) {
        self.echoed = echoed;
    }

    /// Returns whether the acknowledgement being processed reports a mark.
    pub(super) fn is_echoed(self) -> bool {
        self.echoed
    }

    /// Records that a segment is sent or retransmitted. The first new segment after a reduction reports the reduction.
    #[inline]
    pub(super) fn on_sent(&mut self, again: bool) {
        self.last = if again {
            Last::Again
        } else if std::mem::take(&mut self.to_report) {
            Last::Reporting
        } else {
            Last::New
        };
    }

    /// Returns whether the last segment sent is ECN-capable.
    //= rfc3168#6.1.5 "a segment that is sent again is not ECN-capable"
    //= rfc3168#6.1.6 "a window probe is not ECN-capable"
    pub(super) fn is_capable(self) -> bool {
        self.last != Last::Again || self.capable == Capable::All
    }

    /// Returns whether the last segment sent reports that the window was reduced because of a mark (CWR).
    pub(super) fn reports_reduction(self) -> bool {
        self.last == Last::Reporting
    }

    /// Returns whether an acknowledgement up to `una` covers everything sent before this function last returned true.
    pub(super) fn acknowledges_window(&mut self, una: u64, nxt: u64) -> bool {
        let is_whole = una > self.window_end;
        if is_whole {
            self.window_end = nxt;
        }
        is_whole
    }

    /// Records a reduction of the window, which the next new segment reports.
    //= rfc3168#6.1.2 "the first new segment after any reduction of the window carries CWR"
    pub(super) fn on_reduction(&mut self) {
        self.to_report = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= test rfc3168#6.1.2 "the first new segment after any reduction of the window carries CWR"
    //= test rfc3168#6.1.5 "a segment that is sent again is not ECN-capable"
    #[test]
    fn the_first_new_segment_after_a_window_reduction_carries_cwr_and_only_new_segments_are_ecn_capable() {
        let mut marks = Marks::new(ToMark::Reduce, Capable::NewData);
        marks.on_reduction();
        let sent = [true, false, false, true].map(|again| {
            marks.on_sent(again);
            (marks.reports_reduction(), marks.is_capable())
        });
        assert_eq!(sent, [(false, false), (true, true), (false, true), (false, false)]);
    }

    #[test]
    fn the_observation_window_of_a_mark_ends_at_the_highest_sequence_number_sent() {
        let mut marks = Marks::new(ToMark::Reduce, Capable::NewData);
        let ends = [(1000, 4000), (4000, 8000), (4001, 8001)].map(|(una, nxt)| marks.acknowledges_window(una, nxt));
        assert_eq!(ends, [true, false, true]);
    }
}
