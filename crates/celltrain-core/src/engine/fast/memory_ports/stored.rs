//! Ports that store each packet whole before they send it (`docs/design/packets.md`).

use std::collections::VecDeque;

use typed_index_collections::{TiSlice, TiVec};

use super::waiting::Waiting;
use super::{ArrivingVc, MemoryPort, Room, Switch};
use crate::cell::{Cell, FrameNumber, Run};
use crate::engine::fast::output::Arrival;
use crate::engine::fast::plan::MemoryPlace;
use crate::engine::fast::timing::Arrivals;
use crate::index::{Label, VcIndex};
use crate::memory::{Attempt, CellClass, FrameAdmission, QueueEnd, Removal};
use crate::policy::View;
use crate::port::admission::Verdict;
use crate::switching::PacketAdmission;
use crate::units::{Span, Time};

/// The packets that are still arriving at a port, and the packet that it sends.
pub(super) struct Stored {
    pub(super) admission: PacketAdmission,
    packets: TiVec<Label, Packet>,
    /// Number of cells in all packets.
    pub(super) cells: u32,
    /// Places that all stored packets occupy.
    all_places: u32,
    /// Cells of the packet being sent that have left but have not been passed on, if the port is first in, first out.
    pub(super) sent: u32,
}

/// A VC's packet that is arriving, and its packet that is leaving.
struct Packet {
    vc: VcIndex,
    /// The cells that have arrived. They are one run unless they have different header bits.
    cells: Vec<Run>,
    /// Places taken for cells that have not arrived.
    places: u32,
    /// The packet that has begun to leave.
    leaving: Option<FrameNumber>,
}

impl Packet {
    #[inline]
    fn append(&mut self, run: Run) {
        match self.cells.last_mut() {
            Some(last) if last.goes_on_with(run) => *last = Run { last: run.last, cells: last.cells + run.cells },
            _ => self.cells.push(run),
        }
    }
}

impl Stored {
    pub(super) fn new(vcs: &TiSlice<Label, VcIndex>, admission: PacketAdmission) -> Self {
        let packet = |&vc: &VcIndex| Packet { vc, cells: Vec::new(), places: 0, leaving: None };
        Self { admission, packets: vcs.iter().map(packet).collect(), cells: 0, all_places: 0, sent: 0 }
    }

    /// Returns the stored cells, by VC.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Run> {
        self.packets.iter().flat_map(|packet| &packet.cells).copied()
    }

    /// Records that a cell leaves.
    #[inline]
    pub(super) fn leave(&mut self, cell: Cell) {
        self.packets[cell.label()].leaving = (!cell.last_cell()).then_some(cell.frame);
    }

    /// Returns whether the packet of a cell has begun to leave.
    pub(super) fn is_leaving(&self, cell: Cell) -> bool {
        self.packets[cell.label()].leaving == Some(cell.frame)
    }

    /// Stores cells inside a packet. The port has counted them.
    pub(super) fn append(&mut self, run: Run) {
        self.packets[run.last.label()].append(run);
        self.cells += run.cells;
    }

    /// Takes the packet of a VC.
    fn take(&mut self, label: Label) -> Freed {
        let packet = &mut self.packets[label];
        let (runs, places) = (std::mem::take(&mut packet.cells), std::mem::take(&mut packet.places));
        self.cells -= number_of(&runs);
        self.all_places -= places;
        Freed { runs, places }
    }

    fn take_places(&mut self, label: Label, cells: u32) {
        self.packets[label].places = cells;
        self.all_places += cells;
    }
}

/// The cells of a removed packet, and the places that it had taken for other cells.
struct Freed {
    runs: Vec<Run>,
    places: u32,
}

fn number_of(runs: &[Run]) -> u32 {
    runs.iter().map(|run| run.cells).sum()
}

impl MemoryPort {
    /// Stores a cell that the memory has already counted. Returns the places that its packet had taken for cells that
    /// never came, if the packet is whole now.
    #[inline(always)]
    fn store(&mut self, cell: Cell) -> Option<u32> {
        let label = cell.label();
        self.count_one_in(label);
        if let Some(follower) = self.admission.follower() {
            follower.on_enter(label, 1);
        }
        let stored = self.stored.as_deref_mut().expect("the port stores packets");
        let packet = &mut stored.packets[label];
        if packet.places > 0 {
            packet.places -= 1;
            stored.all_places -= 1;
        }
        packet.append(Run { last: cell, cells: 1 });
        stored.cells += 1;
        if !cell.last_cell() {
            return None;
        }
        stored.cells -= number_of(&packet.cells);
        match &mut self.waiting {
            Waiting::Packets(runs) => runs.extend(&packet.cells),
            Waiting::Scheduled(queues) => {
                packet.cells.iter().flat_map(|run| run.iter()).for_each(|cell| queues.push(cell));
            }
            Waiting::Fifo(_) | Waiting::Pausable(_) => unreachable!("the port stores packets"),
        }
        packet.cells.clear();
        let places = std::mem::take(&mut packet.places);
        stored.all_places -= places;
        Some(places)
    }

    /// Frees the stored cells of a VC's packet.
    fn free_stored(&mut self, label: Label) -> Freed {
        let freed = self.stored_mut().take(label);
        let cells = number_of(&freed.runs);
        self.count_out_all(label, cells);
        self.admission.on_held_discarded(label, cells);
        if let Some(follower) = self.admission.follower() {
            // Virtual queues choose the cells that leave, as for cells that are sent.
            (0..cells).for_each(|_| follower.on_leave(1));
        }
        freed
    }

    fn count_out_all(&mut self, label: Label, cells: u32) {
        (0..cells).for_each(|_| self.count_one_out(label));
    }

    #[inline]
    pub(super) fn stored_mut(&mut self) -> &mut Stored {
        self.stored.as_deref_mut().expect("the port stores packets")
    }

    /// Removes the first or last packet of a queue that has not begun to leave, or a packet that is still arriving.
    fn remove_packet(
        &mut self,
        end: QueueEnd,
        arriving: Option<Cell>,
        is_in: impl Fn(CellClass) -> bool,
    ) -> Option<Freed> {
        let stored = self.stored.as_deref().expect("the port stores packets");
        let Waiting::Packets(queue) = &mut self.waiting else {
            unreachable!("cells can be removed only if a single queue holds all cells")
        };
        let label_is_in = |label: Label| is_in(self.classes[label]);
        let may_go = |run: &Run| label_is_in(run.last.label()) && !stored.is_leaving(run.last);
        let freed = if let Some(runs) = take_packet(queue, end, may_go) {
            Freed { runs, places: 0 }
        } else {
            let holds = |&label: &Label| label_is_in(label) && !stored.packets[label].cells.is_empty();
            let label = stored.packets.keys().find(holds)?;
            self.stored_mut().take(label)
        };
        for (number, cell) in freed.runs.iter().flat_map(|run| run.iter()).enumerate() {
            self.count_one_out(cell.label());
            self.admission.on_removed(cell, number == 0, arriving);
        }
        Some(freed)
    }
}

/// Removes the first or last packet whose cells may go. The runs of a packet are next to each other.
fn take_packet(queue: &mut VecDeque<Run>, end: QueueEnd, may_go: impl Fn(&Run) -> bool) -> Option<Vec<Run>> {
    let ends_packet = |run: &Run| run.last.last_cell();
    let (first, last) = match end {
        QueueEnd::Head => {
            let first = queue.iter().position(may_go)?;
            (first, first + queue.range(first..).position(ends_packet)?)
        }
        QueueEnd::Tail => {
            let last = queue.iter().rposition(may_go)?;
            (queue.range(..last).rposition(ends_packet).map_or(0, |before| before + 1), last)
        }
    };
    Some(queue.drain(first..=last).collect())
}

impl Switch {
    /// Takes a cell inside a packet that has been admitted and is whole so far.
    #[inline(always)]
    fn store_inside(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass) {
        let room = if self.ports[place].stored_mut().admission == PacketAdmission::Fits {
            self.enter_reserved(now, cell, class)
        } else {
            self.find_room(now, place, cell, class, None)
        };
        if room != Room::Found {
            return self.lose_packet(place, cell, class, room == Room::NotFound, now);
        }
        let port = &mut self.ports[place];
        if let Some(rule) = port.rule.as_mut().filter(|rule| rule.decides()) {
            rule.enter(cell, now, port.occupancy + 1, &mut port.admission);
            port.waiting.on_enter(cell, now);
        }
        let whole = self.ports[place].store(cell);
        debug_assert_eq!(whole, None, "the packet's last cell has not arrived");
    }

    /// Lets a cell enter for which its packet has taken a place.
    #[inline]
    fn enter_reserved(&mut self, now: Time, cell: Cell, class: CellClass) -> Room {
        self.memory.arrive(class, now);
        self.record_arrival(class, cell, true);
        Room::Found
    }

    /// Takes a cell that arrives at a port that stores packets whole. `length` gives the number of cells in a packet.
    pub(super) fn store(&mut self, now: Time, cell: Cell, length: impl FnOnce(VcIndex, FrameNumber) -> u32) {
        let ArrivingVc { place, label, class, arrivals } = self.vcs[cell.label()];
        let mut cell = cell.relabelled(label);
        if arrivals == Arrivals::Recorded {
            let arrival = Arrival { run: Run { last: cell, cells: 1 }, first: now, period: Span(0) };
            self.arrivals.push((self.ports[place].link(), arrival));
        }
        let port = &mut self.ports[place];
        if port.admission.on_cell_inside(cell) {
            return self.store_inside(now, place, cell, class);
        }
        let of = port.counted();
        if let Some(rule) = &mut port.rule {
            let waiting = self.memory.counted(of, class, port.occupancy);
            cell = rule.on_arrival(cell, waiting);
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
            length(port.stored_mut().packets[label].vc, cell.frame)
        } else {
            1
        };
        let at_end = admission == PacketAdmission::End;
        let admits_all = !self.rules.policies_see_memory()
            && port.occupancy + port.stored_mut().all_places + (cells - 1) < port.admission.asked_from()
            || !port.admission.may_refuse_frames();
        let arrived = port.admission.on_cell(cell, at_end || admits_all);
        let is_asked = arrived.starts() || (at_end && decides && arrived.passes() && !admits_all);
        let passes = if is_asked { self.judge_packet(now, place, cell, class, cells - 1) } else { arrived.passes() };
        if !passes {
            return self.lose_packet(place, cell, class, false, now);
        }
        let room = if admission == PacketAdmission::Fits && !starts {
            self.enter_reserved(now, cell, class)
        } else {
            self.find_room(now, place, cell, class, if decides { Some(cells) } else { None })
        };
        match room {
            Room::Found => {
                let port = &mut self.ports[place];
                if decides && admission == PacketAdmission::Fits {
                    port.stored_mut().take_places(label, cells);
                }
                if let Some(rule) = &mut port.rule {
                    rule.enter(cell, now, port.occupancy + 1, &mut port.admission);
                    if rule.decides() {
                        port.waiting.on_enter(cell, now);
                    }
                }
                let Some(unused) = port.store(cell) else { return };
                if !port.is_busy {
                    port.is_busy = true;
                    self.to_start.push(place);
                }
                (0..unused).for_each(|_| self.memory.leave(class, now));
            }
            Room::NotFound => {
                if decides && self.rules.frames == FrameAdmission::Whole {
                    self.ports[place].admission.refuse_frame(label);
                }
                self.lose_packet(place, cell, class, true, now);
            }
            Room::FrameCut => self.lose_packet(place, cell, class, false, now),
        }
    }

    /// Asks the policy of a port about a packet, of which it sees `rest` cells as if they waited.
    fn judge_packet(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass, rest: u32) -> bool {
        let sees_memory = self.rules.policies_see_memory();
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
        let admitted = port.admission.judge_frame(&view, cell);
        port.counts.per_vc[cell.label()] -= rest;
        admitted
    }

    /// Finds room for a cell, or for a packet of `asked` cells; without `asked`, for a cell of an admitted packet. Removes
    /// waiting packets if the memory's policy decides to.
    #[inline(always)]
    fn find_room(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass, asked: Option<u32>) -> Room {
        self.memory.arrive(class, now);
        let room = match self.try_enter_stored(now, place, class, asked) {
            Attempt::Entered => Room::Found,
            Attempt::Refused(..) => Room::NotFound,
            Attempt::PushOut(removal) => self.push_out_packets(removal, now, place, cell, class, asked),
        };
        self.record_arrival(class, cell, room == Room::Found);
        room
    }

    #[inline(always)]
    fn try_enter_stored(&mut self, now: Time, place: MemoryPlace, class: CellClass, asked: Option<u32>) -> Attempt {
        match asked {
            None => self.memory.try_enter_rest(class, now),
            Some(1) if self.ports[place].stored_mut().admission != PacketAdmission::Fits => {
                self.memory.try_enter(class, now)
            }
            Some(cells) => self.memory.try_enter_packet(class, cells, now),
        }
    }

    /// Removes waiting packets until there is room for an arriving cell or packet, or no packet can be removed.
    #[inline(never)]
    fn push_out_packets(
        &mut self,
        mut removal: Removal,
        now: Time,
        place: MemoryPlace,
        cell: Cell,
        class: CellClass,
        asked: Option<u32>,
    ) -> Room {
        loop {
            if self.remove_packet(removal, Some((place, cell)), now) == 0 {
                self.memory.refuse(removal, now);
                return Room::NotFound;
            }
            if !self.wants(place, cell) {
                return Room::FrameCut;
            }
            removal = match self.try_enter_stored(now, place, class, asked) {
                Attempt::Entered => return Room::Found,
                Attempt::Refused(..) => return Room::NotFound,
                Attempt::PushOut(next) => next,
            };
        }
    }

    /// Loses an arriving cell, and frees the stored cells of its packet.
    #[cold]
    pub(super) fn lose_packet(&mut self, place: MemoryPlace, cell: Cell, class: CellClass, is_full: bool, now: Time) {
        let verdict = self.ports[place].admission.verdict(cell, is_full, true);
        debug_assert!(matches!(verdict, Verdict::Refuse(_) | Verdict::DiscardHeld(_)), "the cell is lost");
        self.free_stored(place, cell.label(), class, now);
    }

    /// Frees the stored cells of a VC's packet that is still arriving.
    #[cold]
    fn free_stored(&mut self, place: MemoryPlace, label: Label, class: CellClass, now: Time) {
        let freed = self.ports[place].free_stored(label);
        self.free(freed, class, now);
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
        let Some(freed) = port.remove_packet(end, arriving, |class| class.egress == Some(queue)) else {
            return 0;
        };
        let (class, removed) = (port.class(freed.runs[0].last.label()), number_of(&freed.runs));
        self.free(freed, class, now);
        removed
    }

    /// Frees the places of removed cells in the memory, and places taken for cells that have not arrived.
    fn free(&mut self, Freed { runs, places }: Freed, class: CellClass, now: Time) {
        if let (Some(recorder), Some(run)) = (&mut self.recorder, runs.first()) {
            recorder.end_packet(class.egress, run.last, true);
        }
        (0..number_of(&runs)).for_each(|_| self.memory.push_out(class, now));
        (0..places).for_each(|_| self.memory.leave(class, now));
    }

    #[inline]
    fn record_arrival(&mut self, class: CellClass, cell: Cell, enters: bool) {
        if let Some(recorder) = &mut self.recorder {
            recorder.arrive_whole(class.egress, cell, enters);
        }
    }
}
