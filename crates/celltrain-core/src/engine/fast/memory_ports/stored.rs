//! Ports that store each packet whole before they send it (`docs/design/packets.md`).

use std::collections::VecDeque;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::waiting::Waiting;
use super::{ArrivingVc, MemoryPort, Room, Switch};
use crate::cell::{Cell, FrameNumber, Run};
use crate::engine::fast::output::Arrival;
use crate::engine::fast::plan::MemoryPlace;
use crate::index::{Label, VcIndex};
use crate::memory::{Attempt, CellClass, QueueEnd, Removal};
use crate::policy::View;
use crate::port::admission::Verdict;
use crate::switching::PacketAdmission;
use crate::units::{Span, Time};

/// The packets that are still arriving at a port.
pub(super) struct Stored {
    pub(super) admission: PacketAdmission,
    /// The VCs that cross the port, by label.
    vcs: TiVec<Label, VcIndex>,
    /// The cells of each VC's packet, by label.
    packets: TiVec<Label, Vec<Cell>>,
    /// Number of cells in all packets.
    pub(super) cells: u32,
    /// Places that each VC's packet has taken for cells that have not arrived, by label.
    places: TiVec<Label, u32>,
    /// Places of all packets.
    all_places: u32,
    /// The packet of each VC that has begun to leave, by label.
    leaving: TiVec<Label, Option<FrameNumber>>,
}

impl Stored {
    pub(super) fn new(vcs: &TiSlice<Label, VcIndex>, admission: PacketAdmission) -> Self {
        Self {
            admission,
            vcs: vcs.to_vec(),
            packets: ti_vec![Vec::new(); vcs.len()],
            cells: 0,
            places: ti_vec![0; vcs.len()],
            all_places: 0,
            leaving: ti_vec![None; vcs.len()],
        }
    }

    /// Returns the stored cells, by VC.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Cell> {
        self.packets.iter().flatten().copied()
    }

    /// Records that a cell leaves.
    #[inline]
    pub(super) fn leave(&mut self, cell: Cell) {
        self.leaving[cell.label()] = (!cell.last_cell()).then_some(cell.frame);
    }

    /// Takes the packet of a VC. Returns its cells, and the places it had taken for other cells.
    fn take(&mut self, label: Label) -> (Vec<Cell>, u32) {
        let cells = std::mem::take(&mut self.packets[label]);
        self.cells -= number_of(&cells);
        (cells, self.release_places(label))
    }

    fn take_places(&mut self, label: Label, cells: u32) {
        self.places[label] = cells;
        self.all_places += cells;
    }

    fn release_places(&mut self, label: Label) -> u32 {
        let places = std::mem::take(&mut self.places[label]);
        self.all_places -= places;
        places
    }
}

fn number_of(cells: &[Cell]) -> u32 {
    u32::try_from(cells.len()).expect("the size of a buffer in cells fits in 32 bits")
}

impl MemoryPort {
    /// Stores a cell that the memory has already counted. Returns the places that its packet had taken for cells that
    /// never came, if the packet is whole now.
    #[inline]
    fn store(&mut self, cell: Cell) -> Option<u32> {
        let label = cell.label();
        self.count_one_in(label);
        if let Some(follower) = self.admission.follower() {
            follower.on_enter(label, 1);
        }
        let stored = self.stored.as_deref_mut().expect("the port stores packets");
        if stored.places[label] > 0 {
            stored.places[label] -= 1;
            stored.all_places -= 1;
        }
        let packet = &mut stored.packets[label];
        packet.push(cell);
        if !cell.last_cell() {
            stored.cells += 1;
            return None;
        }
        stored.cells -= number_of(packet) - 1;
        match &mut self.waiting {
            Waiting::Fifo(cells) => cells.extend(&*packet),
            Waiting::Scheduled(queues) => packet.iter().for_each(|&cell| queues.push(cell)),
        }
        packet.clear();
        Some(stored.release_places(label))
    }

    /// Frees the stored cells of a VC's packet. Returns them, and the places it had taken for other cells.
    fn free_stored(&mut self, label: Label) -> (Vec<Cell>, u32) {
        let (cells, places) = self.stored_mut().take(label);
        for _ in &cells {
            self.count_one_out(label);
        }
        self.admission.on_held_discarded(label, number_of(&cells));
        if let Some(follower) = self.admission.follower() {
            // Virtual queues choose the cells that leave, as for cells that are sent.
            for _ in &cells {
                follower.on_leave(1);
            }
        }
        (cells, places)
    }

    fn stored_mut(&mut self) -> &mut Stored {
        self.stored.as_deref_mut().expect("the port stores packets")
    }

    /// Removes the first or last packet of a queue that has not begun to leave, or a packet that is still arriving. Returns
    /// its cells, and the places it had taken for other cells.
    fn remove_packet(
        &mut self,
        end: QueueEnd,
        arriving: Option<Cell>,
        is_in: impl Fn(CellClass) -> bool,
    ) -> Option<(Vec<Cell>, u32)> {
        let stored = self.stored.as_deref().expect("the port stores packets");
        let Waiting::Fifo(queue) = &mut self.waiting else {
            unreachable!("cells can be removed only if a single queue holds all cells")
        };
        let label_is_in = |label: Label| is_in(self.classes[label]);
        let may_go = |cell: &Cell| label_is_in(cell.label()) && stored.leaving[cell.label()] != Some(cell.frame);
        let (cells, places) = if let Some(cells) = take_packet(queue, end, may_go) {
            (cells, 0)
        } else {
            let holds = |&label: &Label| label_is_in(label) && !stored.packets[label].is_empty();
            let label = stored.packets.keys().find(holds)?;
            self.stored_mut().take(label)
        };
        for (number, &cell) in cells.iter().enumerate() {
            self.count_one_out(cell.label());
            self.admission.on_removed(cell, number == 0, arriving);
        }
        Some((cells, places))
    }
}

/// Removes the first or last packet whose cells may go. The cells of a packet are next to each other.
fn take_packet(queue: &mut VecDeque<Cell>, end: QueueEnd, may_go: impl Fn(&Cell) -> bool) -> Option<Vec<Cell>> {
    let (first, last) = match end {
        QueueEnd::Head => {
            let first = queue.iter().position(may_go)?;
            (first, first + queue.range(first..).position(|cell| cell.last_cell())?)
        }
        QueueEnd::Tail => {
            let last = queue.iter().rposition(may_go)?;
            (queue.range(..last).rposition(|cell| cell.last_cell()).map_or(0, |before| before + 1), last)
        }
    };
    Some(queue.drain(first..=last).collect())
}

impl Switch {
    /// Takes a cell that arrives at a port that stores packets whole. `length` gives the number of cells in a packet.
    pub(super) fn store(&mut self, now: Time, cell: Cell, length: impl FnOnce(VcIndex, FrameNumber) -> u32) {
        let ArrivingVc { place, label, class, is_noted } = self.vcs[cell.label()];
        let mut cell = cell.relabelled(label);
        if is_noted {
            let arrival = Arrival { run: Run { last: cell, cells: 1 }, first: now, period: Span(0) };
            self.arrivals.push((self.ports[place].link(), arrival));
        }
        let port = &mut self.ports[place];
        if let Some(marker) = &mut port.marker {
            let waiting = self.memory.counted(marker.of, class, port.occupancy);
            cell = marker.on_arrival(cell, waiting);
        }
        if port.admission.starts_packet(cell) {
            self.free_stored(place, label, class, now);
        }
        let port = &mut self.ports[place];
        let admission = port.stored_mut().admission;
        let starts = port.admission.starts_frame(label);
        let decides = match admission {
            PacketAdmission::Start | PacketAdmission::Fits => starts,
            PacketAdmission::End => cell.last_cell(),
        };
        let cells = if decides && admission == PacketAdmission::Fits {
            length(port.stored_mut().vcs[label], cell.frame)
        } else {
            1
        };
        let at_end = admission == PacketAdmission::End;
        let admits_all = !self.rules.policies_see_memory
            && port.occupancy + port.stored_mut().all_places + (cells - 1) < port.admission.asked_from()
            || !port.admission.may_refuse_frames();
        let arrived = port.admission.on_cell(cell, at_end || admits_all);
        let is_asked = arrived.starts() || (at_end && decides && arrived.passes() && !admits_all);
        let passes = if is_asked { self.judge_packet(now, place, (cell, class), cells - 1) } else { arrived.passes() };
        if !passes {
            return self.lose_packet(place, cell, class, false, now);
        }
        let room = if admission == PacketAdmission::Fits && !starts {
            self.memory.arrive(class, now);
            self.record_arrival(class, cell, true);
            Room::Found
        } else {
            self.find_room(now, place, cell, class, if decides { Some(cells) } else { None })
        };
        match room {
            Room::Found => {
                let port = &mut self.ports[place];
                if decides && admission == PacketAdmission::Fits {
                    port.stored_mut().take_places(label, cells);
                }
                let Some(unused) = port.store(cell) else { return };
                if !port.is_busy {
                    port.is_busy = true;
                    self.to_start.push(place);
                }
                (0..unused).for_each(|_| self.memory.leave(class, now));
            }
            Room::NotFound => {
                if decides && self.rules.refuses_whole_frames {
                    self.ports[place].admission.refuse_frame(label);
                }
                self.lose_packet(place, cell, class, true, now);
            }
            Room::FrameCut => self.lose_packet(place, cell, class, false, now),
        }
    }

    /// Asks the policy of a port about a packet, of which it sees `rest` cells as if they waited.
    fn judge_packet(&mut self, now: Time, place: MemoryPlace, (cell, class): (Cell, CellClass), rest: u32) -> bool {
        let sees_memory = self.rules.policies_see_memory;
        let of_all = sees_memory.then(|| self.ports.iter().map(|port| port.counts.active_vcs).sum());
        let port = &mut self.ports[place];
        let places = port.stored_mut().all_places;
        let at_port = port.occupancy.saturating_add(places);
        let found = if sees_memory { self.memory.seen_by_policies() } else { at_port };
        let counted = self.memory.counted(port.counted(), class, at_port);
        port.counts.per_vc[cell.label()] += rest;
        let view = View {
            occupancy: found.saturating_add(rest),
            counted: counted.saturating_add(rest),
            capacity: port.capacity,
            active_vcs: of_all.unwrap_or(port.counts.active_vcs),
            per_vc: &port.counts.per_vc,
            tagged: cell.tagged(),
            capable: cell.capable(),
            now,
        };
        let admitted = port.admission.judge_frame(&view, cell.label());
        port.counts.per_vc[cell.label()] -= rest;
        admitted
    }

    /// Finds room for a cell, or for a packet of `asked` cells; without `asked`, for a cell of an admitted packet. Removes
    /// waiting packets if the memory's policy decides to.
    fn find_room(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass, asked: Option<u32>) -> Room {
        self.memory.arrive(class, now);
        let room = loop {
            let attempt = match asked {
                None => self.memory.try_enter_rest(class, now),
                Some(1) if self.ports[place].stored_mut().admission != PacketAdmission::Fits => {
                    self.memory.try_enter(class, now)
                }
                Some(cells) => self.memory.try_enter_packet(class, cells, now),
            };
            match attempt {
                Attempt::Entered => break Room::Found,
                Attempt::Refused(..) => break Room::NotFound,
                Attempt::PushOut(removal) => {
                    if self.remove_packet(removal, Some((place, cell)), now) == 0 {
                        self.memory.refuse(removal, now);
                        break Room::NotFound;
                    }
                    if !self.wants(place, cell) {
                        break Room::FrameCut;
                    }
                }
            }
        };
        self.record_arrival(class, cell, room == Room::Found);
        room
    }

    /// Loses an arriving cell, and frees the stored cells of its packet.
    #[cold]
    fn lose_packet(&mut self, place: MemoryPlace, cell: Cell, class: CellClass, is_full: bool, now: Time) {
        let verdict = self.ports[place].admission.verdict(cell, is_full, true);
        debug_assert!(matches!(verdict, Verdict::Refuse(_) | Verdict::DiscardHeld(_)), "the cell is lost");
        self.free_stored(place, cell.label(), class, now);
    }

    /// Frees the stored cells of a VC's packet that is still arriving.
    #[cold]
    fn free_stored(&mut self, place: MemoryPlace, label: Label, class: CellClass, now: Time) {
        let (cells, places) = self.ports[place].free_stored(label);
        self.free((cells, places), class, now);
    }

    /// Removes a waiting packet. `arriving` is the cell that needs the room, with its port. Returns the number of removed
    /// cells, which is 0 if every packet has begun to leave.
    pub(super) fn remove_packet(
        &mut self,
        Removal { queue, end }: Removal,
        arriving: Option<(MemoryPlace, Cell)>,
        now: Time,
    ) -> u32 {
        let place = self.port_of_queue[usize::from(queue)].expect("cells are removed from queues at ports");
        let arriving = arriving.filter(|&(to, _)| to == place).map(|(_, cell)| cell);
        let port = &mut self.ports[place];
        let Some((cells, places)) = port.remove_packet(end, arriving, |class| class.egress == Some(queue)) else {
            return 0;
        };
        let (class, removed) = (port.class(cells[0].label()), number_of(&cells));
        self.free((cells, places), class, now);
        removed
    }

    /// Frees the places of removed cells in the memory, and places taken for cells that have not arrived.
    fn free(&mut self, (cells, places): (Vec<Cell>, u32), class: CellClass, now: Time) {
        if let (Some(recorder), Some(&cell)) = (&mut self.recorder, cells.first()) {
            recorder.end_packet(class.egress, cell, true);
        }
        for _ in &cells {
            self.memory.push_out(class, now);
        }
        (0..places).for_each(|_| self.memory.leave(class, now));
    }

    fn record_arrival(&mut self, class: CellClass, cell: Cell, enters: bool) {
        if let Some(recorder) = &mut self.recorder {
            recorder.arrive_whole(class.egress, cell, enters);
        }
    }
}
