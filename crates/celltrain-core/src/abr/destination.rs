//! The destination of an ABR VC. It returns forward RM cells to the source as backward RM cells.
//!
//! Source: ATM Forum TM 4.0, the destination's rules 1 to 6, as `docs/mechanisms.md` 4.3 gives them.
//!
//! Choices that the rules leave open: a destination is never congested itself (rule 2b) and creates no backward RM
//! cells of its own (rule 5). If a backward RM cell is still waiting when the next one is turned around, the waiting
//! cell is overwritten (rule 3, in [`Source::turn_around`](super::Source::turn_around)), so RM cells never return out
//! of order (rule 4). An out-of-rate forward cell is returned out of rate (rule 6 allows both).

use super::RmCell;

/// The destination of one ABR VC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// EFCI bit of the last data cell, cleared when an RM cell has carried it to the source.
    efci: bool,
}

impl Destination {
    /// Creates a destination at which no cell has arrived.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the EFCI of an arriving data cell (rule 1).
    pub fn on_data(&mut self, efci: bool) {
        self.efci = efci;
    }

    /// Turns a forward RM cell into a backward one (rule 2): sets DIR = 1, BN = 0, and CI = 1 if the last data cell had
    /// EFCI = 1. The EFCI of a data cell is reported only once. All other fields are unchanged. An out-of-rate cell is
    /// returned out of rate (rule 6).
    pub fn turn_around(&mut self, rm: &RmCell) -> RmCell {
        assert!(!rm.backward, "a destination turns forward RM cells around");
        RmCell { backward: true, bn: false, ci: std::mem::take(&mut self.efci) || rm.ci, ..*rm }
    }
}
