//! GFR at the edge of the network: tests whether cells conform to their VC's contract and whether frames are eligible
//! for its guarantee, and tags ineligible frames.
//!
//! Source: ATM Forum TM 4.1 as recalled in `docs/mechanisms.md` 2.13 \[R\]; the code uses its names PCR, MCR, MBS, MFS,
//! CDVT, T and tau. Differences from the source: all cells of a frame have the CLP of its first cell, so the test for a
//! change of the CLP within a frame never fails. Cells that do not conform are counted and forwarded.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::coverage::reached;
use crate::error::Fault;
use crate::units::{BitRate, CELL_BITS, Clock, Duration, Span, Time};

/// The contract of a VC with a guaranteed frame rate (GFR). Rates count cells with their headers.
///
/// Source: ATM Forum TM 4.1; ATM Forum 97-0831, section 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gfr {
    /// MCR: the rate up to which the delivery of whole frames is guaranteed.
    pub mcr: BitRate,
    /// PCR: the rate that the VC's cells may not exceed. Default: the rate of its first link.
    #[serde(default)]
    pub pcr: Option<BitRate>,
    /// MFS: the longest frame that conforms to the contract.
    #[schemars(range(min = 1), extend("x-unit" = "cells"))]
    pub mfs: u32,
    /// MBS: the longest burst at PCR that is eligible, at least twice `mfs`. Default: twice `mfs`.
    #[serde(default)]
    #[schemars(range(min = 1), extend("x-unit" = "cells"))]
    pub mbs: Option<u32>,
    /// CDVT: tolerance for cells that arrive too early.
    #[serde(default)]
    pub cdvt: Duration,
    /// True if the network tags ineligible frames (GFR.2), false if it only counts ineligible frames (GFR.1).
    #[serde(default = "tags")]
    pub tagging: bool,
}

fn tags() -> bool {
    true
}

impl Gfr {
    /// Checks the contract of a VC whose first link has this rate and whose longest frame has `longest_frame` cells.
    pub fn check(&self, link_rate: BitRate, longest_frame: u32) -> Vec<Fault> {
        let pcr = self.pcr.unwrap_or(link_rate);
        let mut faults = Vec::from_iter(check_pcr(pcr, link_rate));
        let mut refuse = |key, value: String, problem: String| faults.push(Fault::new(key, value, problem));
        if self.mcr > pcr || self.mcr.bits_per_second == 0 {
            refuse("mcr", format!("\"{}\"", self.mcr), format!("is not a positive rate up to pcr = \"{pcr}\""));
        }
        if self.mfs < longest_frame {
            let problem = format!("cells are fewer than the {longest_frame} cells of the VC's longest frame");
            refuse("mfs", self.mfs.to_string(), problem);
        }
        if let Some(mbs) = self.mbs.filter(|&mbs| u64::from(mbs) < 2 * u64::from(self.mfs)) {
            let (mfs, least) = (self.mfs, 2 * u64::from(self.mfs));
            let problem = format!(
                "cells are fewer than {least}, two frames of mfs = {mfs}; even a source that sends exactly at MCR would not conform"
            );
            refuse("mbs", mbs.to_string(), problem);
        }
        if self.cdvt > MAX_CDVT {
            refuse("cdvt", format!("\"{}\"", self.cdvt), format!("must be a time of at most {MAX_CDVT}"));
        }
        faults
    }
}

/// Checks the PCR of a VC of any class whose first link has this rate.
pub(crate) fn check_pcr(pcr: BitRate, link_rate: BitRate) -> Option<Fault> {
    let is_wrong = pcr > link_rate || pcr.bits_per_second == 0;
    let problem = || format!("must be a positive rate of at most {link_rate}, the rate of the VC's first link");
    is_wrong.then(|| Fault::new("pcr", format!("\"{pcr}\""), problem()))
}

const MAX_CDVT: Duration = Duration::from_milliseconds(1_000);

/// Counters of a VC's cells at the edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCounters {
    /// Number of frames that arrived.
    pub frames: u64,
    /// Number of frames eligible for the guarantee.
    pub eligible_frames: u64,
    /// Number of ineligible frames, which the network tagged.
    pub tagged_frames: u64,
    /// Number of cells that arrived faster than PCR allows, or beyond the MFS of their frame.
    pub nonconforming_cells: u64,
}

/// Conformance tests of one VC.
pub(crate) struct Policer {
    frame_rate: Bucket,
    /// F-GCRA's tau, in the unit of the bucket.
    tau: u128,
    peak_rate: Bucket,
    cdvt: u128,
    mfs: u32,
    tagging: bool,
    /// Number of cells of the current frame received so far.
    in_frame: u32,
    passed: bool,
    tags: bool,
    pub(crate) counters: EdgeCounters,
}

/// An exact leaky bucket for cells on any clock. Each cell adds 424 times the clock's units per second. In each unit of
/// time, the bucket drains by the rate in bits per second.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: u128,
    cell: u128,
    level: u128,
    at: Time,
}

impl Bucket {
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: 424 times a 64-bit number fits in 128 bits")]
    fn new(rate: BitRate, clock: Clock) -> Self {
        let cell = u128::from(CELL_BITS) * u128::from(clock.units_per_second);
        Self { rate: u128::from(rate.bits_per_second), cell, level: 0, at: Time::default() }
    }

    #[expect(
        clippy::arithmetic_side_effects,
        reason = "no underflow: the earlier time is subtracted from the later one"
    )]
    fn level(&self, now: Time) -> u128 {
        self.level.saturating_sub(self.of(now - self.at))
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: the level is at most tau plus one cell")]
    fn add_cell(&mut self, now: Time) {
        self.level = self.level(now) + self.cell;
        self.at = now;
    }

    /// Converts a span of time to the bucket's unit.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a product of two 64-bit numbers fits in 128 bits")]
    fn of(&self, span: Span) -> u128 {
        u128::from(span.0) * self.rate
    }
}

impl Policer {
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "products of MBS (33 bits), rates (64 bits) and times (62 bits) fit in 128 bits"
    )]
    pub(crate) fn new(contract: &Gfr, link_rate: BitRate, clock: Clock) -> Self {
        let pcr = contract.pcr.unwrap_or(link_rate);
        let (frame_rate, peak_rate) = (Bucket::new(contract.mcr, clock), Bucket::new(pcr, clock));
        let cdvt = clock.span(contract.cdvt);
        let mbs = contract.mbs.map_or(2 * u64::from(contract.mfs), u64::from);
        // Bucket depth (MBS - 1) (1/MCR - 1/PCR), in units in which 1/MCR is one cell.
        let at_pcr = frame_rate.cell * frame_rate.rate / peak_rate.rate;
        let burst = u128::from(mbs.saturating_sub(1)) * (frame_rate.cell - at_pcr);
        Self {
            tau: burst + frame_rate.of(cdvt),
            cdvt: peak_rate.of(cdvt),
            frame_rate,
            peak_rate,
            mfs: contract.mfs,
            tagging: contract.tagging,
            in_frame: 0,
            passed: false,
            tags: false,
            counters: EdgeCounters::default(),
        }
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are counts of arrived cells and frames")]
    pub(crate) fn on_cell(&mut self, now: Time, cell: Cell) -> Cell {
        if self.in_frame == 0 {
            self.counters.frames += 1;
            // F-GCRA: the first cell decides about the whole frame.
            self.passed = !cell.tagged() && self.frame_rate.level(now) <= self.tau;
            self.tags = !self.passed && self.tagging && !cell.tagged();
            reached!(FrameTagged if self.tags);
            self.counters.eligible_frames += u64::from(self.passed);
            self.counters.tagged_frames += u64::from(self.tags);
        }
        self.in_frame += 1;
        if self.passed {
            self.frame_rate.add_cell(now);
        }
        let too_fast = self.peak_rate.level(now) > self.cdvt;
        reached!(CellTooFast if too_fast);
        if !too_fast {
            self.peak_rate.add_cell(now);
        }
        // A cell is within MFS if it is the last of its frame, or if fewer than MFS cells of the frame have arrived so
        // far, including this cell.
        let too_long = !cell.last_cell() && self.in_frame >= self.mfs;
        self.counters.nonconforming_cells += u64::from(too_fast || too_long);
        if cell.last_cell() {
            self.in_frame = 0;
        }
        cell.with_tag(cell.tagged() || self.tags)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cell::tests::cell;

    const FRAME: u32 = 12;
    const LINK: BitRate = BitRate::from_bits_per_second(155_520_000);

    pub(crate) fn clock() -> Clock {
        Clock::covering(crate::units::CELL_BITS, [LINK], [])
    }

    pub(crate) fn contract(mcr: u64) -> Gfr {
        let mcr = BitRate::from_bits_per_second(mcr);
        Gfr { mcr, pcr: None, mfs: FRAME, mbs: None, cdvt: Duration::default(), tagging: true }
    }

    /// Sends one frame every `gap` cell times, with its cells back to back at the link's rate. Returns how many cells
    /// are tagged.
    fn send(policer: &mut Policer, frames: u64, gap: u64) -> u64 {
        let cell_time = clock().cell_time(LINK);
        let mut tagged = 0;
        for frame in 0..frames {
            for i in 0..u64::from(FRAME) {
                let now = Time::default() + cell_time * (frame * gap + i);
                let cell = cell(0, 0, i + 1 == u64::from(FRAME));
                tagged += u64::from(policer.on_cell(now, cell).tagged());
            }
        }
        tagged
    }

    fn policer(contract: &Gfr) -> Policer {
        Policer::new(contract, LINK, clock())
    }

    /// Implements virtual scheduling, the other definition of GCRA: a cell conforms if it is at most `tau` before the
    /// theoretical arrival time `tat`. Times are multiplied by the rate, as in a [`Bucket`], so `increment` is T.
    fn schedule(tat: &mut Option<u128>, arrival: u128, increment: u128, tau: u128) -> bool {
        let expected = tat.unwrap_or(arrival);
        let conforms = expected <= arrival + tau;
        if conforms {
            *tat = Some(expected.max(arrival) + increment);
        }
        conforms
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, ..crate::rng::proptest_seeded(31) })]

        #[test]
        fn both_standard_definitions_of_the_generic_cell_rate_algorithm_give_the_same_decisions(
            gaps in prop::collection::vec(prop_oneof![0u64..1_000, 0u64..8_000], 1..80),
            mcr in 1_000_000u64..70_000_000,
            cdvt in 0u64..20,
            mbs in 2u32..10,
        ) {
            let pcr = BitRate::from_bits_per_second(77_760_000);
            let cdvt = Duration { picoseconds: cdvt * 500_000 };
            let contract = Gfr { pcr: Some(pcr), mfs: 1, mbs: Some(mbs), cdvt, ..contract(mcr) };
            let mut policer = policer(&contract);
            let (frame_rate, peak_rate, tau) = (policer.frame_rate, policer.peak_rate, policer.tau);
            let cdvt = policer.cdvt;
            let [mut at_mcr, mut at_pcr] = [None; 2];
            let mut now = Time::default();
            for gap in gaps {
                // `gap` is in thousandths of a cell time on the link.
                now += Span(clock().cell_time(LINK).0 * gap / 1_000);
                let before = policer.counters;
                policer.on_cell(now, cell(0, 0, true));
                let after = policer.counters;
                let arrival = |bucket: &Bucket| bucket.of(now - Time::default());
                let eligible = schedule(&mut at_mcr, arrival(&frame_rate), frame_rate.cell, tau);
                let conforms = schedule(&mut at_pcr, arrival(&peak_rate), peak_rate.cell, cdvt);
                prop_assert_eq!(after.eligible_frames - before.eligible_frames, u64::from(eligible));
                prop_assert_eq!(after.nonconforming_cells - before.nonconforming_cells, u64::from(!conforms));
            }
        }
    }

    #[test]
    fn frames_of_a_gfr_source_that_sends_exactly_at_mcr_are_never_tagged() {
        // MCR is a fifth of the link's rate, so it allows a frame of 12 cells every 60 cell times.
        let mut policer = policer(&contract(31_104_000));
        assert_eq!(send(&mut policer, 100_000, 60), 0);
        assert_eq!(policer.counters.eligible_frames, 100_000);
        assert_eq!(policer.counters.nonconforming_cells, 0);
    }

    #[test]
    fn half_of_the_frames_of_a_gfr_source_that_sends_at_twice_mcr_are_tagged() {
        let mut policer = policer(&contract(31_104_000));
        let tagged = send(&mut policer, 100_000, 30);
        assert_eq!(tagged % u64::from(FRAME), 0, "whole frames only");
        assert!((tagged / u64::from(FRAME)).abs_diff(50_000) <= 2, "{tagged}");
        assert_eq!(policer.counters.tagged_frames * u64::from(FRAME), tagged);
    }

    #[test]
    fn a_burst_of_mbs_cells_at_pcr_is_eligible_and_later_cells_are_not() {
        // MCR is a quarter of the link's rate and PCR half of it: a cell drains from the bucket in four cell times, and
        // tau is 23 (4 - 2) = 46 cell times. Cells arrive every second cell time, so a frame of 12 cells adds 48 cell
        // times to the level, of which 24 drain meanwhile. The second frame finds a level of 24 and the third a level
        // of 48. If the third frame arrives two cell times later, it finds a level of 46, which still conforms.
        let pcr = Some(BitRate::from_bits_per_second(77_760_000));
        for (pause, eligible) in [(0, 2), (1, 2), (2, 3)] {
            let contract = Gfr { pcr, ..contract(38_880_000) };
            let mut policer = policer(&contract);
            let cell_time = clock().cell_time(LINK);
            for i in 0..36 {
                let wait = if i < 24 { 0 } else { pause };
                policer.on_cell(Time::default() + cell_time * (2 * i + wait), cell(0, 0, i % 12 == 11));
            }
            let EdgeCounters { frames, eligible_frames, nonconforming_cells, .. } = policer.counters;
            assert_eq!((frames, eligible_frames, nonconforming_cells), (3, eligible, 0), "{pause} cell times");
        }
    }

    #[test]
    fn a_gfr_contract_without_tagging_only_counts_the_excess_frames() {
        let contract = Gfr { tagging: false, ..contract(1_555_200) };
        let mut policer = policer(&contract);
        assert_eq!(send(&mut policer, 5, u64::from(FRAME)), 0);
        assert_eq!((policer.counters.eligible_frames, policer.counters.tagged_frames), (2, 0));
    }

    #[test]
    fn cells_above_pcr_or_the_maximum_frame_size_violate_a_gfr_contract() {
        let pcr = Some(BitRate::from_bits_per_second(77_760_000));
        let nonconforming = |mfs| {
            let contract = Gfr { pcr, mfs, mbs: Some(24), ..contract(31_104_000) };
            let mut policer = policer(&contract);
            send(&mut policer, 1, 60);
            policer.counters.nonconforming_cells
        };
        // Of 12 cells at twice PCR, every other cell is too fast, so 6 do not conform. If MFS is 11, the eleventh cell
        // exceeds it, because it is not the last. If MFS is 10, the tenth cell also exceeds it, but that cell was
        // already too fast. The last cell never exceeds MFS.
        assert_eq!([12, 11, 10].map(nonconforming), [6, 7, 7]);
    }

    #[test]
    fn a_gfr_contract_to_which_no_cells_can_conform_is_refused() {
        let keys =
            |contract: Gfr| contract.check(LINK, FRAME).iter().map(|fault| fault.key.clone()).collect::<Vec<_>>();
        assert!(keys(contract(31_104_000)).is_empty());
        assert_eq!(keys(contract(200_000_000)), ["mcr"]);
        assert_eq!(keys(Gfr { mfs: 11, ..contract(31_104_000) }), ["mfs"]);
        assert_eq!(keys(Gfr { mbs: Some(23), ..contract(31_104_000) }), ["mbs"]);
        let longest = Duration::from_milliseconds(1_000);
        let longer = Duration { picoseconds: longest.picoseconds + 1 };
        assert_eq!(keys(Gfr { cdvt: longest, ..contract(31_104_000) }), [""; 0]);
        assert_eq!(keys(Gfr { cdvt: longer, ..contract(31_104_000) }), ["cdvt"]);
    }
}
