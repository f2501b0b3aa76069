//! Ports that store each packet whole before they send it (`docs/design/packets.md`).
//!
//! The stored cells of an arriving packet count as waiting. They join the port's queue once the last cell has arrived.

use super::{Buffer, Port, PortEvent};
use crate::cell::Cell;
use crate::coverage::reached;
use crate::events::Loss;
use crate::index::Label;
use crate::memory::QueueEnd;
use crate::port::admission::{Verdict, is_of_frame};
use crate::switching::PacketAdmission;
use crate::units::Time;

/// The waiting cells of an arriving packet that have been removed from a port.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freed {
    /// Number of cells that had arrived.
    pub(crate) cells: u32,
    /// Number of places taken for cells of the packet that have not arrived.
    pub(crate) places: u32,
}

impl Port {
    /// Makes packets wait until they are whole, if `stores` is given. Must be called last.
    #[must_use]
    pub fn storing(mut self, stores: Option<PacketAdmission>) -> Self {
        if stores.is_some() {
            assert!(self.admission.delimits(), "packets are stored whole only with packet framing");
            self.held.iter_mut().for_each(|held| *held = Some(Vec::new()));
            self.queues = self.queues.map(super::CellQueues::of_packets);
        }
        self.stores = stores;
        self
    }

    /// Returns how the port admits packets, if it stores them whole.
    pub(crate) fn stores(&self) -> Option<PacketAdmission> {
        self.stores
    }

    /// Returns whether the port must ask policies now. Called once for each cell, after `Port::start_cell`.
    pub(crate) fn must_decide(&mut self, cell: Cell, starts: bool) -> bool {
        match self.stores {
            Some(PacketAdmission::End) => {
                if starts {
                    self.admission.pass_frame(cell.label());
                }
                cell.last_cell() && self.wants(cell)
            }
            _ => starts,
        }
    }

    /// Frees the cells of the VC's previous packet if its last cell is missing.
    pub(crate) fn free_unfinished(&mut self, cell: Cell, emit: &mut impl FnMut(PortEvent<'_>)) -> Freed {
        if !self.admission.starts_packet(cell) {
            return Freed::default();
        }
        let freed = self.free_stored(cell.label(), emit);
        reached!(UnfinishedPacketFreed if freed.cells > 0);
        freed
    }

    /// Frees the stored cells of a VC's arriving packet.
    pub(crate) fn free_stored(&mut self, label: Label, emit: &mut impl FnMut(PortEvent<'_>)) -> Freed {
        let cells = self.held[label].as_ref().map_or(0, Vec::len);
        self.discard_held(label, emit);
        Freed {
            cells: u32::try_from(cells).expect("the size of a buffer in cells fits in 32 bits"),
            places: self.release_places(label),
        }
    }

    /// Takes places for all cells of a packet whose first cell arrives.
    pub(crate) fn take_places(&mut self, label: Label, cells: u32) {
        self.places[label] = cells;
    }

    /// Releases the places that a VC's packet has taken for cells that have not arrived. Returns their number.
    pub(crate) fn release_places(&mut self, label: Label) -> u32 {
        std::mem::take(&mut self.places[label])
    }

    /// Returns the places taken for cells that have not arrived.
    pub(crate) fn places(&self) -> u32 {
        self.places.iter().sum()
    }

    /// Returns whether a VC's packet has taken a place for its next cell.
    pub(crate) fn has_place(&self, label: Label) -> bool {
        self.places[label] > 0
    }

    /// Returns the buffer state that the policy sees for a packet with `rest` cells after its first cell.
    pub(crate) fn buffer_with(&self, rest: u32) -> Buffer {
        let own = self.buffer();
        let occupancy = own.occupancy.saturating_add(self.places()).saturating_add(rest);
        Buffer { occupancy, counted: occupancy, ..own }
    }

    /// Asks the policy about a packet. The policy sees the packet's other `rest` cells as waiting.
    pub(crate) fn judge_packet(
        &mut self,
        cell: Cell,
        rest: u32,
        now: Time,
        buffer: Buffer,
        emit: impl FnMut(PortEvent<'_>),
    ) -> bool {
        self.per_vc[cell.label()] += rest;
        let admitted = self.judge(cell, now, buffer, emit);
        self.per_vc[cell.label()] -= rest;
        admitted
    }

    /// Offers a cell to a port outside memories. `length` gives the number of cells in its packet.
    pub(crate) fn store_observed(
        &mut self,
        cell: Cell,
        length: impl FnOnce() -> u32,
        now: Time,
        mut emit: impl FnMut(PortEvent<'_>),
    ) {
        let label = cell.label();
        self.free_unfinished(cell, &mut emit);
        let starts = self.admission.on_arrival(cell);
        let mut cells = 1;
        if self.must_decide(cell, starts) {
            let fits = self.stores == Some(PacketAdmission::Fits);
            cells = if fits { length() } else { 1 };
            let admitted = self.judge_packet(cell, cells - 1, now, self.buffer_with(cells - 1), &mut emit);
            if fits && admitted && cells <= self.room().saturating_sub(self.places()) {
                self.take_places(label, cells);
            }
        }
        let is_full = !self.has_place(label) && self.room().saturating_sub(self.places()) < cells;
        match self.admission.verdict(cell, is_full, true) {
            Verdict::Enter => {
                self.enqueue(cell);
                if cell.last_cell() {
                    reached!(PlacesNeverUsed if self.has_place(label));
                    self.release_places(label);
                }
                emit(PortEvent::Admitted);
            }
            Verdict::Refuse(loss) | Verdict::DiscardHeld(loss) => {
                self.lose_packet(cell, loss, &mut emit);
            }
            Verdict::PushOut => unreachable!("only drop from front pushes out cells, which needs AAL5"),
        }
    }

    /// Loses an arriving cell, and frees the stored cells of its packet.
    pub(crate) fn lose_packet(&mut self, cell: Cell, loss: Loss, emit: &mut impl FnMut(PortEvent<'_>)) -> Freed {
        let freed = self.free_stored(cell.label(), emit);
        reached!(StoredPacketCut if freed.cells > 0 && loss != Loss::WithFrame);
        reached!(StoredPacketRefused if freed.cells > 0 && loss == Loss::WithFrame);
        emit(PortEvent::Lost(loss));
        freed
    }

    /// Removes the first or the last packet that has not begun to leave, of the VCs that `is_in` selects. If there is
    /// none, removes a packet that is still arriving, of the lowest label. Returns the packet's cells and the places it
    /// had taken, if there is a packet. The port must have a single FIFO queue.
    pub(crate) fn remove_packet(&mut self, end: QueueEnd, is_in: impl Fn(Label) -> bool) -> Option<(Vec<Cell>, u32)> {
        assert!(self.queues.is_none(), "cells can be removed only at a port with a single queue");
        let may_go = |cell: &&Cell| is_in(cell.label()) && self.leaving[cell.label()] != Some(cell.frame);
        let victim = match end {
            QueueEnd::Head => self.fifo.iter().find(may_go),
            QueueEnd::Tail => self.fifo.iter().rev().find(may_go),
        };
        let (cells, places) = if let Some(&victim) = victim {
            let of_packet = |cell: &Cell| is_of_frame(*cell, victim);
            let cells: Vec<Cell> = self.fifo.iter().copied().filter(of_packet).collect();
            self.fifo.retain(|cell| !of_packet(cell));
            (cells, 0)
        } else {
            let holds =
                |label: &Label| is_in(*label) && self.held[*label].as_ref().is_some_and(|held| !held.is_empty());
            let label = self.held.keys().find(holds)?;
            reached!(ArrivingPacketRemoved);
            (self.held[label].as_mut().map(std::mem::take).unwrap_or_default(), self.release_places(label))
        };
        for cell in &cells {
            self.occupancy -= 1;
            self.tracker.fall(self.occupancy);
            self.per_vc[cell.label()] -= 1;
        }
        Some((cells, places))
    }
}
