//! The ends of VCs, with the numbered frames sent on each VC.

use typed_index_collections::{TiVec, ti_vec};

use super::{Body, Departure};
use crate::aal5::{Frame, FrameLog};
use crate::cell::{Cell, FrameNumber};
use crate::index::{Label, LinkIndex, VcIndex};
use crate::network::{Link, Network, Vc};
use crate::tcp::SackBlocks;

pub(super) struct Vcs {
    ends: TiVec<VcIndex, VcEnds>,
    /// SACK blocks of acknowledgements in transit, by VC and parallel to the frames. Empty if no ends exchange SACK
    /// blocks.
    blocks: TiVec<VcIndex, Option<FrameLog<SackBlocks>>>,
    /// For the first branch of each merge, all VCs that merge; empty for a VC that does not merge. The whole list is
    /// empty if no VCs merge.
    branches: TiVec<VcIndex, Vec<VcIndex>>,
    /// Frames that links delay, by VC. Empty if no link delays frames.
    delayed: TiVec<VcIndex, Vec<DelayedFrame>>,
}

/// A delayed frame, which later frames may overtake.
struct DelayedFrame {
    number: FrameNumber,
    /// The first frame sent after this frame's release, which therefore cannot overtake it; `None` before the release.
    followed_by: Option<FrameNumber>,
}

/// The first link of a VC and its frames in transit. The record fits one cache line, because every frame that is sent
/// or arrives reads it.
#[repr(align(64))]
pub(super) struct VcEnds {
    link: LinkIndex,
    /// A cell that ends a frame on that link. Its frame number is arbitrary.
    last: Cell,
    /// The VC's branch number in a merge.
    branch: u8,
    pub(super) log: FrameLog<Body>,
    pub(super) offered: u64,
}

impl Vcs {
    /// Creates the ends of a network's VCs. `first_label` is each VC's label on its first link; `exchanges_blocks`
    /// marks the VCs whose acknowledgements carry SACK blocks.
    pub(super) fn new(
        network: &Network,
        first_label: &TiVec<VcIndex, Label>,
        exchanges_blocks: &TiVec<VcIndex, bool>,
    ) -> Self {
        let merges = network.vcs.iter().any(|vc| vc.merge.is_some());
        let mut branches = ti_vec![Vec::new(); if merges { network.vcs.len() } else { 0 }];
        let first_branches = network.first_branches();
        let ends = |(number, vc): (VcIndex, &Vc)| {
            let mut branch = 0;
            if vc.merge.is_some() {
                let siblings: &mut Vec<VcIndex> = &mut branches[first_branches[number]];
                branch = u8::try_from(siblings.len()).expect("a merge has at most 256 branches");
                siblings.push(number);
            }
            let log = FrameLog::with_numbers_of(number_bits(vc.merge.is_some()));
            let last = Cell::new(first_label[number], FrameNumber::default(), true).with_tag(vc.tagged);
            VcEnds { link: vc.path[0], last, branch, log, offered: 0 }
        };
        let ends = network.vcs.iter_enumerated().map(ends).collect();
        let mut blocks = TiVec::new();
        if exchanges_blocks.contains(&true) {
            let of = |(vc, &exchanges): (&Vc, &bool)| {
                exchanges.then(|| FrameLog::with_numbers_of(number_bits(vc.merge.is_some())))
            };
            blocks = network.vcs.iter().zip(exchanges_blocks).map(of).collect();
        }
        let delays = network.links.iter().any(Link::reorders);
        let delayed = network.vcs.iter().take(if delays { usize::MAX } else { 0 }).map(|_| Vec::new()).collect();
        Self { ends, blocks, branches, delayed }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = VcIndex> + use<> {
        self.ends.keys()
    }

    pub(super) fn get(&self, vc: VcIndex) -> &VcEnds {
        &self.ends[vc]
    }

    pub(super) fn get_mut(&mut self, vc: VcIndex) -> &mut VcEnds {
        &mut self.ends[vc]
    }

    /// Returns the SACK blocks in transit on a VC, if its ends exchange them.
    pub(super) fn blocks(&mut self, vc: VcIndex) -> Option<&mut FrameLog<SackBlocks>> {
        self.blocks.get_mut(vc).and_then(Option::as_mut)
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1 % of the run time, because every frame calls this \
                                              function"
    )]
    pub(super) fn put(&mut self, vc: VcIndex, frame: Frame<Body>, blocks: Option<SackBlocks>) -> Departure {
        if let Some(log) = self.blocks(vc) {
            log.push(Frame::new(frame.cells, blocks.unwrap_or(SackBlocks::NONE)));
        }
        let VcEnds { link, mut last, branch, ref mut log, ref mut offered } = self.ends[vc];
        *offered += u64::from(frame.cells);
        last.frame = log.push(frame).on_branch(branch);
        Departure { vc, link, last, cells: frame.cells }
    }

    /// Returns the number, with its branch, of the next frame that is sent on a VC.
    pub(super) fn next_number(&self, vc: VcIndex) -> FrameNumber {
        let VcEnds { branch, ref log, .. } = self.ends[vc];
        log.next().on_branch(branch)
    }

    /// Returns the VC on which a frame was sent: `vc` itself, or one of the VCs merged into it.
    #[inline]
    pub(super) fn sender_of(&self, vc: VcIndex, frame: FrameNumber) -> VcIndex {
        match self.branches.get(vc) {
            Some(branches) if !branches.is_empty() => branches[usize::from(frame.branch())],
            _ => vc,
        }
    }

    /// Marks a frame in transit after a switch has marked its last cell.
    pub(super) fn mark(&mut self, vc: VcIndex, frame: FrameNumber) {
        let sender = self.sender_of(vc, frame);
        self.ends[sender].log.frame_mut(frame).marked = true;
    }

    /// Records that a link delays a frame of `vc`. The caller may repeat this for each cell.
    pub(super) fn delay(&mut self, vc: VcIndex, number: FrameNumber) {
        let sender = self.sender_of(vc, number);
        let delayed = &mut self.delayed[sender];
        if delayed.last().is_none_or(|last| last.number != number || last.followed_by.is_some()) {
            delayed.push(DelayedFrame { number, followed_by: None });
        }
    }

    /// Records that a delayed frame of `vc` leaves the link's delay line, so that later frames no longer overtake it.
    pub(super) fn release(&mut self, vc: VcIndex, number: FrameNumber) {
        let sender = self.sender_of(vc, number);
        let next = self.ends[sender].log.next();
        let is_released = |frame: &&mut DelayedFrame| frame.number == number && frame.followed_by.is_none();
        self.delayed[sender].iter_mut().find(is_released).expect("the frame was delayed").followed_by = Some(next);
    }

    /// When frame `number` is delivered, returns the oldest frame of the VC that may still arrive: that frame, or an
    /// older delayed frame.
    #[inline]
    pub(super) fn oldest_after(&mut self, sender: VcIndex, number: FrameNumber) -> FrameNumber {
        if self.delayed.is_empty() { number } else { self.oldest_delayed(sender, number) }
    }

    #[cold]
    fn oldest_delayed(&mut self, sender: VcIndex, number: FrameNumber) -> FrameNumber {
        let log = &self.ends[sender].log;
        let older = |number: FrameNumber| log.older_than(number);
        let delayed = &mut self.delayed[sender];
        delayed.retain(|frame| frame.followed_by.is_none_or(|next| older(number) < older(next)));
        delayed.iter().map(|frame| frame.number).chain([number]).min_by_key(|&number| older(number)).unwrap_or(number)
    }

    /// Returns the number of cells in a frame that arrives at the end of `vc`.
    #[inline]
    pub(super) fn cells_of(&self, vc: VcIndex, frame: FrameNumber) -> u32 {
        self.ends[self.sender_of(vc, frame)].log.frame(frame).cells
    }
}

fn number_bits(merges: bool) -> u32 {
    if merges { FrameNumber::BITS_WHERE_VCS_MERGE } else { u32::BITS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_vc_at_an_end_system_fits_in_one_cache_line() {
        assert_eq!(size_of::<VcEnds>(), 64);
    }
}
