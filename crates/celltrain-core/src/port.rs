//! The output port: one buffer, its per-VC counts, the frame bookkeeping every policy shares, and its counters.
//!
//! Source: `MECHANISMS` 2.0, whose skeleton [`Port::offer`] is. The queue counts waiting cells, not the one in service
//! [`Port::take`] hands a cell to the transmitter, and it stops being counted.

use std::collections::VecDeque;

use crate::cell::{Cell, Label};
use crate::policy::{BufferPolicy, Overflow, View};
use crate::rng::Stream;

/// An output port's buffer with its policy.
pub struct Port {
    capacity: u32,
    /// Kept beside the queue, whose own length is a machine word to be converted at every cell.
    occupancy: u32,
    max_queue: u32,
    active_vcs: u32,
    fifo: VecDeque<Cell>,
    per_vc: Vec<u32>,
    vcs: Vec<VcState>,
    policy: Box<dyn BufferPolicy>,
    overflow: Overflow,
    rng: Stream,
}

/// What became of the cells offered to a port, for one VC or for all together. At any time `offered` equals the sum of
/// the others and the cells waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Cells that arrived.
    pub offered: u64,
    /// Cells handed to the transmitter.
    pub forwarded: u64,
    /// Cells lost for want of room.
    pub lost_overflow: u64,
    /// Waiting cells pushed out for want of room.
    pub lost_pushed_out: u64,
    /// Cells of frames the policy refused whole.
    pub discarded_frame: u64,
    /// Later cells of frames that had already lost one.
    pub discarded_remainder: u64,
}

impl PortCounters {
    /// Cells lost for want of room, whatever the way.
    pub fn lost(&self) -> u64 {
        self.lost_overflow + self.lost_pushed_out
    }

    /// Cells discarded by the policy's word.
    pub fn discarded(&self) -> u64 {
        self.discarded_frame + self.discarded_remainder
    }

    /// All VCs of a port together.
    pub fn sum(counters: impl IntoIterator<Item = PortCounters>) -> PortCounters {
        let mut sum = PortCounters::default();
        for counters in counters {
            sum.add(&counters);
        }
        sum
    }

    pub(crate) fn add(&mut self, other: &PortCounters) {
        self.offered += other.offered;
        self.forwarded += other.forwarded;
        self.lost_overflow += other.lost_overflow;
        self.lost_pushed_out += other.lost_pushed_out;
        self.discarded_frame += other.discarded_frame;
        self.discarded_remainder += other.discarded_remainder;
    }
}

/// A port at the end of a run, however an engine kept it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// What became of each VC's cells, by label.
    pub counters: Vec<PortCounters>,
    /// Cells waiting of each VC, by label.
    pub waiting: Vec<u32>,
    /// The largest number of cells that ever waited.
    pub max_queue: u32,
}

/// What the port keeps of a VC besides its count of waiting cells.
#[derive(Clone, Copy, Debug)]
struct VcState {
    mode: Mode,
    /// The next cell starts a frame: there is no start marker, so this means "the last one seen ended one".
    at_start: bool,
    /// Frame number of the latest cell.
    current: u32,
    counters: PortCounters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    RefuseFrame,
    RefuseRest { keep_last_cell: bool },
}

/// What a port reserves at its start; a larger queue grows into its room as it fills.
const RESERVED_CELLS: u32 = 1 << 16;

impl Port {
    /// A port with room for `capacity` waiting cells (`None`: without limit), crossed by `vcs` VCs.
    pub fn new(capacity: Option<u32>, vcs: usize, policy: Box<dyn BufferPolicy>, rng: Stream) -> Self {
        let start = VcState { mode: Mode::Pass, at_start: true, current: 0, counters: PortCounters::default() };
        Self {
            capacity: capacity.unwrap_or(u32::MAX),
            occupancy: 0,
            max_queue: 0,
            active_vcs: 0,
            fifo: VecDeque::with_capacity(capacity.map_or(0, |k| k.min(RESERVED_CELLS) as usize)),
            per_vc: vec![0; vcs],
            vcs: vec![start; vcs],
            overflow: policy.overflow(),
            policy,
            rng,
        }
    }

    /// Admits an arriving cell, or counts why not; whether it was admitted.
    #[inline]
    pub fn offer(&mut self, cell: Cell) -> bool {
        let vc = &mut self.vcs[cell.label() as usize];
        vc.counters.offered += 1;
        let starts_frame = vc.at_start;
        vc.at_start = cell.last_cell();
        vc.current = cell.frame;
        if starts_frame {
            self.judge_frame(cell.label());
        }
        if self.occupancy < self.capacity && self.vcs[cell.label() as usize].mode == Mode::Pass {
            self.enqueue(cell);
            return true;
        }
        self.offer_unwelcome(cell)
    }

    /// Asks the policy about the frame whose first cell has arrived.
    fn judge_frame(&mut self, label: Label) {
        let view = View {
            occupancy: self.occupancy,
            capacity: self.capacity,
            active_vcs: self.active_vcs,
            per_vc: &self.per_vc,
        };
        let admitted = self.policy.admit_frame(&view, label, &mut self.rng);
        self.vcs[label as usize].mode = if admitted { Mode::Pass } else { Mode::RefuseFrame };
    }

    /// A cell of a refused frame, or one that finds no room.
    #[cold]
    fn offer_unwelcome(&mut self, cell: Cell) -> bool {
        let vc = cell.label() as usize;
        if self.vcs[vc].mode == Mode::Pass {
            match self.overflow {
                Overflow::LoseCell => {}
                Overflow::LoseRestOfFrame { keep_last_cell } => {
                    self.vcs[vc].mode = Mode::RefuseRest { keep_last_cell };
                    self.vcs[vc].counters.lost_overflow += 1;
                    return false;
                }
                Overflow::PushOutFront => self.push_out_front(cell),
            }
        }
        let is_full = self.occupancy >= self.capacity;
        let VcState { mode, counters, .. } = &mut self.vcs[vc];
        match *mode {
            Mode::RefuseFrame => counters.discarded_frame += 1,
            Mode::RefuseRest { keep_last_cell } if !(keep_last_cell && cell.last_cell()) => {
                counters.discarded_remainder += 1;
            }
            Mode::Pass | Mode::RefuseRest { .. } if is_full => counters.lost_overflow += 1,
            Mode::Pass | Mode::RefuseRest { .. } => {
                self.enqueue(cell);
                return true;
            }
        }
        false
    }

    /// Hands the next cell to the transmitter.
    #[inline]
    pub fn take(&mut self) -> Option<Cell> {
        let cell = self.fifo.pop_front()?;
        self.uncount(cell.label());
        self.vcs[cell.label() as usize].counters.forwarded += 1;
        Some(cell)
    }

    /// X: cells waiting.
    pub fn occupancy(&self) -> u32 {
        self.occupancy
    }

    /// `Y_i`: cells waiting of each VC, by label.
    pub fn per_vc(&self) -> &[u32] {
        &self.per_vc
    }

    /// `N_a`: VCs with at least one cell waiting.
    pub fn active_vcs(&self) -> u32 {
        self.active_vcs
    }

    /// The largest number of cells that ever waited.
    pub fn max_queue(&self) -> u32 {
        self.max_queue
    }

    /// The waiting cells, the next to be sent first.
    pub fn waiting(&self) -> impl Iterator<Item = Cell> {
        self.fifo.iter().copied()
    }

    /// What became of each VC's cells, by label.
    pub fn vc_counters(&self) -> impl Iterator<Item = PortCounters> {
        self.vcs.iter().map(|vc| vc.counters)
    }

    /// The port as results show it.
    pub fn state(&self) -> PortState {
        PortState { counters: self.vc_counters().collect(), waiting: self.per_vc.clone(), max_queue: self.max_queue }
    }

    /// What became of all cells together.
    pub fn counters(&self) -> PortCounters {
        PortCounters::sum(self.vc_counters())
    }

    #[inline]
    fn enqueue(&mut self, cell: Cell) {
        let count = &mut self.per_vc[cell.label() as usize];
        self.active_vcs += u32::from(*count == 0);
        *count += 1;
        self.fifo.push_back(cell);
        self.occupancy += 1;
        self.max_queue = self.max_queue.max(self.occupancy);
    }

    #[inline]
    fn uncount(&mut self, label: Label) {
        let count = &mut self.per_vc[label as usize];
        *count -= 1;
        self.active_vcs -= u32::from(*count == 0);
        self.occupancy -= 1;
    }

    /// Makes room for `arriving`: removes the waiting cell nearest to transmission that does not end a frame, and the
    /// waiting rest of its frame but for the last cell, which keeps the next frame apart from the remains.
    fn push_out_front(&mut self, arriving: Cell) {
        let victim = self.fifo.iter().position(|cell| !cell.last_cell()).unwrap_or(0);
        let Some(victim) = self.fifo.get(victim).copied() else {
            return; // A buffer of no places: the arriving cell is lost.
        };
        let of_victim = |cell: Cell| cell.label() == victim.label() && cell.frame == victim.frame;
        let before = self.fifo.len();
        self.fifo.retain(|&cell| !of_victim(cell) || (cell.last_cell() && !victim.last_cell()));
        let vc = victim.label() as usize;
        for _ in self.fifo.len()..before {
            self.uncount(victim.label());
            self.vcs[vc].counters.lost_pushed_out += 1;
        }
        let frame = &mut self.vcs[vc];
        let in_progress = of_victim(arriving) || (!frame.at_start && frame.current == victim.frame);
        if in_progress {
            frame.mode = Mode::RefuseRest { keep_last_cell: true };
        }
    }
}
