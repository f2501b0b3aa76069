//! The receiving end, which tracks arrivals and decides what to acknowledge, and when.
//!
//! Source: RFC 793 and RFC 1122 (4.2.3.2); `docs/mechanisms.md` 3.1. The receiver keeps out-of-order segments
//! and acknowledges every segment immediately unless delayed acknowledgements are on. It sends a duplicate
//! acknowledgement for each segment that is out of order or repeated. Its application reads immediately, so its
//! advertised window shrinks only by the kept bytes, and only if `offered_window` requires it. With selective
//! acknowledgements it reports the segments it keeps, the newest first (RFC 2018, 4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::rules;
use super::scoreboard::{MAX_BLOCKS, SackBlocks, insert};
use super::{Ack, Ecn, Rules, Segment, TcpConfig, window_scale};
use crate::coverage::reached;
use crate::units::Duration;

rules! {
    /// Rules of the receiver.
    pub struct ReceiverRules, ReceiverOptions {
        /// The receiver's treatment of segments beyond a gap.
        out_of_order: OutOfOrder,
        /// Delay of an acknowledgement with `delayed_acks = "timer"`.
        delayed_ack_time: Duration,
        /// When the receiver acknowledges a segment that fills a part of a gap (RFC 5681, 4.2).
        gap_acks: GapAcks,
        /// Acknowledgement of a repetition of the last segment in order (RFC 5681, 4.2).
        repeated_acks: RepeatedAcks,
        /// The window that the receiver advertises while it keeps out-of-order segments.
        offered_window: OfferedWindow,
        /// Report of repeated segments to a sender with selective acknowledgements.
        duplicate_sack: DuplicateSack,
    }

    optional {
    }
}

impl ReceiverRules {
    /// Returns the rules of a profile.
    pub fn of(rules: Rules) -> Self {
        Self {
            out_of_order: OutOfOrder::Keep,
            // Linux 6.12, include/net/tcp.h: TCP_DELACK_MIN.
            delayed_ack_time: Duration::from_milliseconds(if rules == Rules::Today { 40 } else { 200 }),
            gap_acks: GapAcks::AtOnce,
            repeated_acks: if rules == Rules::Ns2 { RepeatedAcks::Delayed } else { RepeatedAcks::AtOnce },
            offered_window: OfferedWindow::Whole,
            // Linux 6.12, net/ipv4/tcp_ipv4.c: sysctl_tcp_dsack.
            duplicate_sack: if rules == Rules::Today { DuplicateSack::On } else { DuplicateSack::Off },
        }
    }
}

/// The receiver's treatment of segments beyond a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutOfOrder {
    /// Keeps segments beyond a gap until the gap is filled.
    #[default]
    Keep,
    /// Discards segments beyond a gap, so the sender sends them again.
    Discard,
}

/// When the receiver acknowledges segments that arrive in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelayedAcks {
    /// Acknowledges each segment at once.
    #[default]
    Off,
    /// Acknowledges every other segment at once, and a single segment at the next tick of the 200 ms timer (RFC 1122,
    /// 4.2.3.2). Acknowledges segments out of order and segments that fill a gap at once (RFC 5681, 4.2).
    #[serde(rename = "200ms")]
    #[schemars(rename = "200ms")]
    On,
    /// Like `200ms`, but the arrival of a single segment starts a timer of `delayed_ack_time`, as in ns-2.
    Timer,
}

/// When the receiver acknowledges a segment that fills a part of a gap (RFC 5681, 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapAcks {
    /// The acknowledgement is sent at once, as the RFC recommends.
    #[default]
    AtOnce,
    /// The acknowledgement may be delayed, unless the segment closes the gap to segments that the receiver kept.
    Delayed,
}

/// Acknowledgement of a repetition of the last segment in order (RFC 5681, 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepeatedAcks {
    /// The acknowledgement is sent at once, as the RFC recommends.
    #[default]
    AtOnce,
    /// The acknowledgement may be delayed, as in ns-2.
    Delayed,
}

/// The window that the receiver advertises while it keeps out-of-order segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OfferedWindow {
    /// The advertised window is the whole window, counted from the next byte expected, as in RFC 793.
    #[default]
    Whole,
    /// The advertised window is reduced by the bytes that the receiver keeps. Their acknowledgements change the window
    /// and are no duplicates, so fast retransmits become rare.
    LessKept,
}

/// Report of repeated segments to a sender with selective acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DuplicateSack {
    /// Blocks report only segments beyond a gap.
    #[default]
    Off,
    /// The first block of the acknowledgement of a repeated segment reports that segment (RFC 2883).
    On,
}

/// The receiving end of a connection.
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent state")]
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next byte expected. All bytes before it have been delivered to the application.
    rcv_nxt: u64,
    /// Disjoint ranges of bytes kept beyond a gap, in order.
    kept: Vec<(u64, u64)>,
    /// First byte of the latest segment in each kept range, newest first. Empty unless the ends exchange selective
    /// acknowledgements.
    newest: Vec<u64>,
    /// The segment that arrived last, if it was repeated and acknowledgements report repeated segments.
    repeated: Option<(u64, u64)>,
    selective: bool,
    /// Bytes of the receive window.
    window: u64,
    scale: u32,
    rules: ReceiverRules,
    delayed_acks: DelayedAcks,
    /// Number of clock ticks by which an acknowledgement is delayed, and number of ticks left for the waiting
    /// acknowledgement.
    delay: u32,
    delay_left: u32,
    ack_pending: bool,
    echo: Echo,
    /// True if acknowledgements report a mark.
    echoes: bool,
    /// True if the arriving segment is acknowledged immediately because its mark differs from the previous segment's.
    differs: bool,
    counters: ReceiverCounters,
}

/// Rule by which the receiver reports marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Never,
    /// Reports marks from the first mark until the sender has reduced its window (RFC 3168, 6.1.3).
    UntilReduced,
    /// Reports exactly the marks of the segments that an acknowledgement covers (RFC 8257, 3.2).
    Exactly,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Number of segments that arrived complete.
    pub segments: u64,
    /// Payload bytes of the counted segments, including repetitions.
    pub bytes: u64,
    /// Number of segments without new data.
    pub repeated_segments: u64,
    /// Acknowledgements sent.
    pub acks: u64,
}

impl Receiver {
    /// Creates the receiving end of an open connection.
    pub fn new(config: &TcpConfig) -> Self {
        let options = config.options();
        let (rules, scale) = (options.receiver_rules(), window_scale(options.receive_window.bytes));
        Self {
            rcv_nxt: 0,
            kept: Vec::new(),
            newest: Vec::new(),
            repeated: None,
            selective: config.selective(),
            window: options.receive_window.bytes,
            scale,
            rules,
            delayed_acks: options.delayed_acks,
            delay: match options.delayed_acks {
                DelayedAcks::Timer => {
                    let ticks = rules.delayed_ack_time.picoseconds.div_ceil(options.resolution().picoseconds);
                    u32::try_from(ticks).unwrap_or(u32::MAX)
                }
                DelayedAcks::On | DelayedAcks::Off => 1,
            },
            delay_left: 0,
            ack_pending: false,
            echo: match options.ecn {
                Ecn::Off => Echo::Never,
                Ecn::On if options.congestion.needs_exact_echo() => Echo::Exactly,
                Ecn::On => Echo::UntilReduced,
            },
            echoes: false,
            differs: false,
            counters: ReceiverCounters::default(),
        }
    }

    /// Starts at `offset`, as if all earlier bytes had arrived.
    #[must_use]
    pub fn starting_at(self, offset: u64) -> Self {
        Self { rcv_nxt: offset, ..self }
    }

    /// Processes a segment that arrived complete. Returns the acknowledgement to send now, if any.
    pub fn on_segment(&mut self, segment: Segment) -> Option<Ack> {
        self.counters.segments += 1;
        self.counters.bytes += u64::from(segment.len);
        let in_order = segment.seq <= self.rcv_nxt && segment.end() > self.rcv_nxt;
        let filled_a_gap = in_order && !self.kept.is_empty();
        reached!(GapFilled if filled_a_gap);
        self.repeated = None;
        // Cells of a VC stay in order. The sender learns that the window is open only after any earlier copy of the
        // segment has filled the gap, so it repeats the byte of a probe only in another probe.
        debug_assert!(!in_order || segment.seq == self.rcv_nxt, "a segment brings only new data or no data");
        if in_order {
            self.rcv_nxt = segment.end();
            self.hand_up_kept();
        } else if segment.end() <= self.rcv_nxt || self.holds(segment) {
            reached!(SegmentRepeated);
            self.counters.repeated_segments += 1;
            if self.selective && self.rules.duplicate_sack == DuplicateSack::On {
                self.repeated = Some((segment.seq, segment.end()));
            }
        } else if self.rules.out_of_order == OutOfOrder::Keep {
            insert(&mut self.kept, segment.seq, segment.end());
        } else {
            reached!(SegmentDiscardedOutOfOrder);
        }
        if self.selective {
            self.note(segment);
        }
        //= rfc8257#3.2 "a segment whose mark differs from the one before is acknowledged at once"
        if self.delayed_acks != DelayedAcks::Off
            && !self.ack_pending
            && !self.differs
            && (in_order || self.rules.repeated_acks == RepeatedAcks::Delayed)
            && segment.end() == self.rcv_nxt
            && (self.rules.gap_acks == GapAcks::Delayed || (!filled_a_gap && self.kept.is_empty()))
        {
            self.ack_pending = true;
            self.delay_left = self.delay;
            return None;
        }
        Some(self.acknowledge())
    }

    /// Returns the acknowledgement to send before a segment is processed, if its mark differs from the mark of earlier
    /// segments that wait for an acknowledgement (RFC 8257, 3.2). Called before [`Receiver::on_mark`].
    pub fn acknowledge_before(&mut self, marked: bool) -> Option<Ack> {
        let differs = self.echo == Echo::Exactly && self.ack_pending && marked != self.echoes;
        reached!(AckBeforeMark if differs);
        differs.then(|| self.acknowledge())
    }

    /// Records whether the arriving segment is marked, and whether its sender has reduced the window because of a mark.
    /// Called before [`Receiver::on_segment`].
    pub fn on_mark(&mut self, marked: bool, reduced: bool) {
        self.differs = self.echo == Echo::Exactly && marked != self.echoes;
        self.echoes = match self.echo {
            Echo::Never => false,
            Echo::UntilReduced => marked || (self.echoes && !reduced),
            Echo::Exactly => marked,
        };
    }

    /// Returns whether an acknowledgement sent now reports a mark (ECE).
    pub fn echoes_mark(&self) -> bool {
        self.echoes
    }

    /// Handles a tick of the clock that ends delays. Returns the acknowledgement whose delay has ended, if any.
    pub fn on_delayed_ack_tick(&mut self) -> Option<Ack> {
        self.delay_left = self.delay_left.saturating_sub(1);
        self.repeated = None;
        reached!(DelayedAckByTimer if self.ack_pending && self.delay_left == 0);
        (self.ack_pending && self.delay_left == 0).then(|| self.acknowledge())
    }

    /// Returns the number of coming ticks at which no acknowledgement is due.
    pub fn quiet_ticks(&self) -> u64 {
        if self.ack_pending { u64::from(self.delay_left.saturating_sub(1)) } else { u64::MAX }
    }

    /// Counts ticks at which no acknowledgement is due.
    pub fn skip_ticks(&mut self, ticks: u64) {
        self.delay_left = self.delay_left.saturating_sub(u32::try_from(ticks).unwrap_or(u32::MAX));
    }

    /// Returns the blocks for an acknowledgement sent now; empty unless the ends exchange them.
    pub fn blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some((start, end)) = self.repeated {
            blocks.push(start, end);
        }
        reached!(BlocksDoNotFit if self.newest.len() > MAX_BLOCKS);
        for &byte in self.newest.iter().take(MAX_BLOCKS) {
            let range = self.kept.iter().find(|range| range.0 <= byte && byte < range.1);
            let &(start, end) = range.expect("every entry refers to a stored range");
            blocks.push(start, end);
        }
        blocks
    }

    /// Returns the number of bytes delivered to the application.
    pub fn delivered(&self) -> u64 {
        self.rcv_nxt
    }

    /// Returns the number of ticks left for the delayed acknowledgement; 0 if none waits.
    pub fn ack_delay(&self) -> u32 {
        if self.ack_pending { self.delay_left } else { 0 }
    }

    /// Returns the receiver's counters.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    fn acknowledge(&mut self) -> Ack {
        self.ack_pending = false;
        self.counters.acks += 1;
        Ack { ack: self.rcv_nxt, window: self.window_field() }
    }

    /// Returns the window field of an acknowledgement sent now.
    fn window_field(&self) -> u16 {
        let kept: u64 = match self.rules.offered_window {
            OfferedWindow::Whole => 0,
            OfferedWindow::LessKept => self.kept.iter().map(|(start, end)| end - start).sum(),
        };
        let field = (self.window.saturating_sub(kept) >> self.scale).min(u64::from(u16::MAX));
        u16::try_from(field).expect("the bound ensures that the value is in range")
    }

    fn holds(&self, segment: Segment) -> bool {
        self.kept.iter().any(|&(start, end)| start <= segment.seq && segment.end() <= end)
    }

    /// Records the range of a new segment as the newest. RFC 2018 (4): the first block "MUST specify the contiguous
    /// block of data containing the segment which triggered this ACK", the others repeat the most recent ones.
    fn note(&mut self, segment: Segment) {
        let Self { kept, newest, rcv_nxt, .. } = self;
        let range = |byte: u64| kept.iter().position(|range| range.0 <= byte && byte < range.1);
        newest.retain(|&byte| byte >= *rcv_nxt);
        if let Some(here) = range(segment.seq) {
            newest.retain(|&byte| range(byte) != Some(here));
            newest.insert(0, segment.seq);
        }
    }

    fn hand_up_kept(&mut self) {
        let reached = self.kept.partition_point(|range| range.0 <= self.rcv_nxt);
        for (_, end) in self.kept.drain(..reached) {
            self.rcv_nxt = self.rcv_nxt.max(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::tcp::TcpOptions;

    fn receiver(options: &TcpOptions) -> Receiver {
        Receiver::new(&TcpConfig::Vanilla(options.clone()))
    }

    fn segment(i: u64) -> Segment {
        Segment { seq: i * 10, len: 10 }
    }

    fn acks(receiver: &mut Receiver, order: &[u64]) -> Vec<Option<u64>> {
        order.iter().map(|&i| receiver.on_segment(segment(i)).map(|ack| ack.ack)).collect()
    }

    #[test]
    fn the_receiver_acknowledges_and_counts_every_repeated_segment() {
        let mut r = receiver(&TcpOptions::default());
        assert_eq!(acks(&mut r, &[0, 0, 2, 2]), [10; 4].map(Some));
        assert_eq!(r.counters().repeated_segments, 2);
    }

    #[test]
    fn a_scaled_advertised_window_is_rounded_to_the_precision_of_the_header_field() {
        let wan = TcpOptions { receive_window: crate::units::Bytes { bytes: 600_000 }, ..TcpOptions::default() };
        assert_eq!(receiver(&wan).acknowledge().window, 37_500);
    }

    #[test]
    fn out_of_order_data_reduces_the_advertised_window_only_with_an_option() {
        let offered = |offered_window| {
            let mut r = receiver(&TcpOptions {
                receiver: ReceiverOptions { offered_window: Some(offered_window), ..ReceiverOptions::default() },
                ..TcpOptions::default()
            });
            [0, 2, 3, 5, 5, 1, 4].map(|i| r.on_segment(segment(i)).map(|ack| u64::from(ack.window)))
        };
        assert_eq!(offered(OfferedWindow::Whole), [Some(65535); 7]);
        let kept = [0, 10, 20, 30, 30, 10, 0];
        assert_eq!(offered(OfferedWindow::LessKept), kept.map(|kept| Some(65535 - kept)));
    }

    proptest! {
        #![proptest_config(crate::rng::proptest_seeded(4))]

        #[test]
        fn the_receiver_delivers_the_same_data_as_a_simple_model(order in prop::collection::vec(0u64..30, 0..120)) {
            let mut r = receiver(&TcpOptions::default());
            let mut seen = std::collections::BTreeSet::new();
            for i in order {
                seen.insert(i);
                let expected = (0..=30).find(|i| !seen.contains(i)).unwrap() * 10;
                prop_assert_eq!(r.on_segment(segment(i)).map(|ack| ack.ack), Some(expected));
            }
        }
    }
}
