//! The ends of one VC: the frames put in, with their numbers.

use super::{Body, Departure};
use crate::aal5::{Frame, FrameLog};
use crate::cell::FrameNumber;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::tcp::SackBlocks;

/// The two ends of a VC: what was put in, and what has been collected.
pub(super) struct VcEnds {
    pub(super) link: LinkIndex,
    pub(super) label: Label,
    /// Which branch of a merge it is.
    pub(super) branch: u8,
    pub(super) tagged: bool,
    pub(super) log: FrameLog<Body>,
    /// The blocks of acknowledgements on their way, in step with the frames; only where some ends exchange them.
    pub(super) blocks: Option<FrameLog<SackBlocks>>,
    pub(super) offered: u64,
    pub(super) damaged: u64,
}

impl VcEnds {
    #[inline]
    pub(super) fn put(&mut self, vc: VcIndex, frame: Frame<Body>, blocks: Option<SackBlocks>) -> Departure {
        if let Some(log) = &mut self.blocks {
            log.push(Frame { cells: frame.cells, body: blocks.unwrap_or(SackBlocks::NONE) });
        }
        self.offered += u64::from(frame.cells);
        let number = self.log.push(frame).on_branch(self.branch);
        let VcEnds { link, label, tagged, .. } = *self;
        Departure { vc, link, label, frame: number, cells: frame.cells, tagged }
    }
}

/// The VC a frame was sent on, by its number: `vc` itself, or one of those that have become one with it.
#[inline]
pub(super) fn sender_of(branches: &[VcIndex], vc: VcIndex, frame: FrameNumber) -> VcIndex {
    if branches.is_empty() { vc } else { branches[usize::from(frame.branch())] }
}
