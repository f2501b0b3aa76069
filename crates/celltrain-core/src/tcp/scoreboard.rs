//! Selective acknowledgements: the blocks of an acknowledgement, and the sender's record of all blocks.
//!
//! Source: RFC 2018 (3, 4) for the blocks; RFC 6675 (3, 4) for queries on the record. Differences from the source: none
//! known.

/// RFC 2018 (3): with timestamps, there is room for three blocks. A fourth block would help little.
pub const MAX_BLOCKS: usize = 3;

/// The blocks of one acknowledgement, newest first. A block is given by its first byte and the byte after its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u64, u64); MAX_BLOCKS],
    count: usize,
}

impl SackBlocks {
    /// No block.
    pub const NONE: Self = Self { blocks: [(0, 0); MAX_BLOCKS], count: 0 };

    /// Appends a block if there is room.
    pub fn push(&mut self, start: u64, end: u64) {
        if let Some(place) = self.blocks.get_mut(self.count) {
            *place = (start, end);
            self.count += 1;
        }
    }

    /// Iterates over the blocks.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.blocks[..self.count].iter().copied()
    }

    /// Returns whether the list of blocks is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the bytes of TCP options that the blocks take: two no-operations, kind and length, eight per block (RFC
    /// 2018, 3).
    pub fn option_bytes(&self) -> u64 {
        option_bytes(self.count as u64)
    }
}

/// Returns the bytes of TCP options for `blocks` blocks, padded to whole words; 0 without blocks.
const fn option_bytes(blocks: u64) -> u64 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks }
}

/// Bytes of TCP options in an acknowledgement with the maximum number of blocks.
pub const MAX_OPTION_BYTES: u64 = option_bytes(MAX_BLOCKS as u64);

/// The ranges that the receiver has reported beyond the first unacknowledged byte. They are disjoint and in order.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    ranges: Vec<(u64, u64)>,
}

/// RFC 6675 (2): number of duplicate acknowledgements that indicates a loss.
const DUP_THRESH: u64 = 3;

impl Scoreboard {
    /// A scoreboard without reports.
    #[cfg(test)]
    pub(super) const NOTHING: Self = Self { ranges: Vec::new() };

    /// Records the SACK blocks of an acknowledgement beyond `una`. Returns whether the blocks contain new information.
    pub fn record(&mut self, blocks: &SackBlocks, una: u64) -> bool {
        let mut news = false;
        for (start, end) in blocks.iter() {
            let start = start.max(una);
            if start < end && self.missing(start, end) > 0 {
                insert(&mut self.ranges, start, end);
                news = true;
            }
        }
        news
    }

    /// Discards all ranges before `una`, which is acknowledged.
    pub fn forget_before(&mut self, una: u64) {
        let past = self.ranges.partition_point(|range| range.1 <= una);
        self.ranges.drain(..past);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(una);
        }
    }

    /// Discards all ranges, because after a timeout the receiver may have dropped data it had reported (RFC 2018, 8).
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Returns whether the scoreboard contains no reported data.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the first unreported byte at or after `from`.
    pub fn skip(&self, from: u64) -> u64 {
        let next = self.ranges.partition_point(|range| range.1 <= from);
        self.ranges.get(next).filter(|range| range.0 <= from).map_or(from, |range| range.1)
    }

    /// Returns the first reported byte at or after `from`, or the largest offset if there is none.
    pub fn next_reported(&self, from: u64) -> u64 {
        let next = self.ranges.partition_point(|range| range.1 <= from);
        self.ranges.get(next).map_or(u64::MAX, |range| range.0.max(from))
    }

    /// Returns the first unreported byte at or after `from` that has a reported byte above it.
    pub fn hole(&self, from: u64) -> Option<u64> {
        let hole = self.skip(from);
        self.ranges.last().filter(|last| hole < last.0).map(|_| hole)
    }

    /// Returns the number of unreported bytes from `from` to `to`.
    pub fn missing(&self, from: u64, to: u64) -> u64 {
        let first = self.ranges.partition_point(|range| range.1 <= from);
        let within = self.ranges[first..].iter().take_while(|range| range.0 < to);
        (to - from) - within.map(|range| range.1.min(to) - range.0.max(from)).sum::<u64>()
    }

    /// Iterates over the unreported ranges from `from` to `to`.
    pub fn gaps(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let first = self.ranges.partition_point(|range| range.1 <= from);
        let mut next = from;
        let within = self.ranges[first..].iter().copied().take_while(move |range| range.0 < to);
        within.chain(std::iter::once((to, to))).filter_map(move |(start, end)| {
            let gap = (next, start);
            next = end;
            (gap.0 < gap.1).then_some(gap)
        })
    }

    /// Returns the end of the last unreported byte before `end`, or the scoreboard's beginning if all are reported.
    pub fn last_missing(&self, end: u64) -> u64 {
        self.ranges.last().filter(|last| last.1 >= end).map_or(end, |last| last.0)
    }

    /// Implements `IsLost` (RFC 6675, 4). All unreported bytes below the returned offset are lost. No bytes above it
    /// are. A byte is lost if `DupThresh` ranges above it are reported, or if more than `DupThresh` - 1 segments above
    /// it are.
    pub fn lost_below(&self, mss: u64) -> u64 {
        let mut bytes = 0;
        for (&(start, end), above) in self.ranges.iter().rev().zip(1..) {
            bytes += end - start;
            if above >= DUP_THRESH || bytes > (DUP_THRESH - 1) * mss {
                return start;
            }
        }
        0
    }
}

/// Adds a range to disjoint, ordered ranges.
pub(super) fn insert(ranges: &mut Vec<(u64, u64)>, mut start: u64, mut end: u64) {
    let first = ranges.partition_point(|range| range.1 < start);
    let after = ranges.partition_point(|range| range.0 <= end);
    for range in &ranges[first..after] {
        start = start.min(range.0);
        end = end.max(range.1);
    }
    ranges.splice(first..after, [(start, end)]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn blocks(ranges: &[(u64, u64)]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for &(start, end) in ranges {
            blocks.push(start, end);
        }
        blocks
    }

    #[test]
    fn a_missing_segment_counts_as_lost_once_three_later_segments_or_ranges_are_sacked() {
        for (ranges, mss, lost) in
            [(&[(10, 30)][..], 10, 0), (&[(10, 40)], 10, 10), (&[(20, 21), (40, 41), (60, 61)], 100, 20)]
        {
            let mut board = Scoreboard::default();
            board.record(&blocks(ranges), 0);
            assert_eq!(board.lost_below(mss), lost, "{ranges:?}");
        }
    }

    #[test]
    fn the_last_hole_in_the_sack_scoreboard_ends_before_the_highest_received_range() {
        let mut board = Scoreboard::default();
        board.record(&blocks(&[(10, 20), (30, 60)]), 0);
        assert_eq!([59, 60, 61].map(|end| board.last_missing(end)), [30, 30, 61]);
    }

    #[test]
    fn a_sack_scoreboard_is_empty_after_it_was_cleared() {
        let mut board = Scoreboard::default();
        board.record(&blocks(&[(10, 20), (30, 60)]), 0);
        assert_eq!((board.is_empty(), board.missing(0, 60), board.hole(0)), (false, 20, Some(0)));
        board.clear();
        assert_eq!((board.is_empty(), board.missing(0, 60), board.hole(0), board.lost_below(10)), (true, 60, None, 0));
        assert!(board.record(&blocks(&[(30, 40)]), 0), "ranges that were cleared count as new again");
    }

    #[test]
    fn acknowledgements_with_three_sack_blocks_have_28_bytes_of_tcp_options() {
        assert_eq!(MAX_OPTION_BYTES, 28);
        assert_eq!(blocks(&[(0, 1)]).option_bytes(), 12);
        assert_eq!(blocks(&[]).option_bytes(), 0);
        assert_eq!(blocks(&[(0, 1), (2, 3), (4, 5), (6, 7)]).iter().count(), 3, "there is no room for a fourth block");
    }

    proptest! {
        #![proptest_config(crate::rng::proptest_seeded(6))]

        #[test]
        fn the_sack_scoreboard_matches_a_simple_model(
            operations in prop::collection::vec((0u64..60, 0u64..8, 0u64..8, prop::bool::weighted(0.1)), 1..60),
        ) {
            const MSS: u64 = 10;
            const MAX: u64 = 90 * MSS;
            let mut board = Scoreboard::default();
            // The model is a set of reported segments, without acknowledged segments.
            let mut set = BTreeSet::new();
            let mut una = 0;
            for (first, length, second, acknowledged) in operations {
                if acknowledged {
                    una = una.max(first);
                    set.retain(|&segment| segment >= una);
                    board.forget_before(una * MSS);
                } else {
                    let ranges = [(first, first + length), (first + length + 1, first + length + 1 + second)];
                    let before = set.len();
                    for (start, end) in ranges {
                        set.extend((start..end).filter(|&segment| segment >= una));
                    }
                    let news = board.record(&blocks(&ranges.map(|(a, b)| (a * MSS, b * MSS))), una * MSS);
                    prop_assert_eq!(news, set.len() > before);
                }
                let missing = |from: u64| (from..90).filter(|segment| !set.contains(segment));
                for from in [una, una + 7, 50] {
                    prop_assert_eq!(board.skip(from * MSS), missing(from).next().unwrap() * MSS);
                    let highest = set.last().copied();
                    let hole = missing(from).next().filter(|&segment| highest.is_some_and(|highest| segment < highest));
                    prop_assert_eq!(board.hole(from * MSS), hole.map(|segment| segment * MSS));
                    prop_assert_eq!(board.missing(from * MSS, MAX), missing(from).count() as u64 * MSS);
                }
                prop_assert_eq!(board.last_missing(MAX), (missing(0).next_back().unwrap() + 1) * MSS);
                let runs_above = |segment: u64| {
                    set.iter().filter(|&&s| s > segment && !set.contains(&(s - 1))).count()
                };
                for segment in missing(una) {
                    let lost = runs_above(segment) >= 3 || set.iter().filter(|&&s| s > segment).count() > 2;
                    prop_assert_eq!(segment * MSS < board.lost_below(MSS), lost, "segment {} of {:?}", segment, &set);
                }
                prop_assert!(board.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "the ranges are separate and in order");
            }
        }
    }
}
