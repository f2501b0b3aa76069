//! Virtual queues: counters that grow and shrink as the queues of a port would that serves each VC apart.
//!
//! Source: Chiussi, Xia and Kumar 1997, as `MECHANISMS` 2.8 recalls it, whose symbols `M_j` and `N_v` are kept.

use crate::cell::Label;
use crate::turns::Turns;

/// The virtual queues of a port: a cell that enters its FIFO enters the virtual queue of its VC, and each that leaves, of
/// whatever VC, is a turn of theirs.
#[derive(Debug)]
pub(super) struct VirtualQueues<T> {
    /// `M_j`, by label.
    pub(super) cells: Vec<u32>,
    /// The sum of all.
    pub(super) sum: u32,
    pub(super) turns: T,
}

impl<T: Turns> VirtualQueues<T> {
    pub(super) fn new(vcs: usize, turns: T) -> Self {
        Self { cells: vec![0; vcs], sum: 0, turns }
    }

    /// Cells of a VC have entered the FIFO.
    #[inline]
    pub(super) fn enter(&mut self, vc: Label, cells: u32) {
        let vc = vc as usize;
        if self.cells[vc] == 0 {
            self.turns.join(vc);
        }
        self.cells[vc] += cells;
        self.sum += cells;
    }

    /// Cells have left the FIFO.
    #[inline]
    pub(super) fn leave(&mut self, mut cells: u32) {
        self.sum = self.sum.checked_sub(cells).expect("what leaves the FIFO had entered it");
        if let Some(vc) = self.turns.alone().filter(|&vc| self.cells[vc] > cells) {
            self.cells[vc] -= cells;
            return;
        }
        let Self { cells: queues, turns, .. } = self;
        while cells > 0 {
            turns.serve(|vc| {
                queues[vc] -= 1;
                queues[vc] > 0
            });
            cells -= 1;
        }
    }

    /// `M_j`, for a decision: the virtual queues hold as many cells as the real one.
    #[inline]
    pub(super) fn of(&self, vc: Label, occupancy: u32) -> f64 {
        assert_eq!(self.sum, occupancy, "the virtual queues hold as many cells as the FIFO");
        f64::from(self.cells[vc as usize])
    }

    /// Whether cells of a VC that arrive one after the other may all be counted with the first, `left` others leaving
    /// meanwhile: at no turn its virtual queue is then empty in truth and not here. `close`: no more than one leaves between
    /// any two of them.
    #[inline]
    pub(super) fn enters_at_once(&self, vc: Label, left: u32, close: bool) -> bool {
        (T::FORGIVES && close) || self.cells[vc as usize] >= left
    }
}
