//! Memories whose ports store each packet whole before they send it (`docs/design/packets.md`).

use super::{Asked, Room, SharedMemory};
use crate::cell::Cell;
use crate::coverage::reached;
use crate::engine::reference::buffers::{Arriving, At, BufferEvent, Buffering as _, Ports};
use crate::events::Judged;
use crate::index::{Label, LinkIndex};
use crate::memory::PolicyScope;
use crate::port::admission::Verdict;
use crate::port::{Buffer, Freed, PortEvent};
use crate::switching::PacketAdmission;
use crate::units::Time;

impl SharedMemory<'_> {
    /// Offers a cell to a port that stores packets whole.
    pub(super) fn store(&mut self, Arriving { link, cell, length }: Arriving<'_>, at: &mut At<'_, '_>) {
        let label = cell.label();
        let occupancy = at.ports[link].occupancy();
        let freed = at.ports[link].free_unfinished(cell, &mut |event| {
            self.end_recorded(link, &event);
            (at.emit)(BufferEvent::Port(link, occupancy, event));
        });
        self.free(link, label, freed, at.now);
        let starts = at.ports[link].admission_mut().on_arrival(cell);
        let mut room = None;
        if at.ports[link].must_decide(cell, starts) {
            let asked = match at.ports[link].stores() {
                Some(PacketAdmission::Fits) => Asked::Packet(length()),
                _ => Asked::Cell,
            };
            let rest = if let Asked::Packet(cells) = asked { cells - 1 } else { 0 };
            let buffer = self.buffer_with(at.ports, link, cell, rest);
            let mut judged = None;
            at.ports[link].judge_packet(cell, rest, at.now, buffer, |event| match event {
                PortEvent::Judged { view, admitted: true, policy } => {
                    judged = Some(Judged::of(link, label, view, policy.explain(view, label)));
                }
                event => (at.emit)(BufferEvent::Port(link, occupancy, event)),
            });
            room = judged.map(|judged| self.admit_frame(link, cell, asked, judged, at));
            if let (Asked::Packet(cells), Some(Room::Found)) = (asked, room) {
                at.ports[link].take_places(label, cells);
            }
        }
        let mut is_full = false;
        if at.ports[link].wants(cell) {
            let room = match room {
                Some(room) => room,
                None if at.ports[link].has_place(label) => {
                    self.memory.arrive(self.classes.get(link, label), at.now);
                    self.record(link, cell, true, at.ports);
                    Room::Found
                }
                None => self.make_room(link, cell, Asked::Place, at),
            };
            is_full = matches!(room, Room::NotFound(_));
        }
        match at.ports[link].admission_mut().verdict(cell, is_full, true) {
            Verdict::Enter => {
                at.ports[link].enqueue(cell);
                if cell.last_cell() {
                    let places = at.ports[link].release_places(label);
                    reached!(PlacesNeverUsed if places > 0);
                    self.free(link, label, Freed { cells: 0, places }, at.now);
                }
                (at.emit)(BufferEvent::Port(link, occupancy, PortEvent::Admitted));
            }
            Verdict::Refuse(loss) | Verdict::DiscardHeld(loss) => {
                let freed = at.ports[link].lose_packet(cell, loss, &mut |event| {
                    self.end_recorded(link, &event);
                    (at.emit)(BufferEvent::Port(link, occupancy, event));
                });
                self.free(link, label, freed, at.now);
            }
            Verdict::PushOut => unreachable!("only drop from front pushes out cells, which needs AAL5"),
        }
        self.emit_pauses(at.now, at.emit);
    }

    /// Counts a packet that a port has removed: its cells, and `places` reserved for cells that have not arrived.
    /// Returns the number of cells.
    pub(super) fn remove_packet(
        &mut self,
        link: LinkIndex,
        cells: &[Cell],
        places: u32,
        arriving: Option<Cell>,
        at: &mut At<'_, '_>,
    ) -> u32 {
        let removed = u32::try_from(cells.len()).expect("a port counts its cells in 32 bits");
        let occupancy = at.ports[link].occupancy() + removed;
        for (number, &cell) in cells.iter().enumerate() {
            let cuts = number == 0;
            at.ports[link].admission_mut().on_removed(cell, cuts, arriving);
            let event = PortEvent::PushedOut { cell, cuts };
            self.end_recorded(link, &event);
            (at.emit)(BufferEvent::Port(link, occupancy, event));
        }
        self.free(link, cells[0].label(), Freed { cells: removed, places }, at.now);
        removed
    }

    /// Frees the places of a VC's cells, and the places that its packet has taken for cells that have not arrived.
    fn free(&mut self, link: LinkIndex, label: Label, Freed { cells, places }: Freed, now: Time) {
        let class = self.classes.get(link, label);
        (0..cells).for_each(|_| self.memory.push_out(class, now));
        (0..places).for_each(|_| self.memory.leave(class, now));
    }

    fn end_recorded(&mut self, link: LinkIndex, event: &PortEvent<'_>) {
        if let (Some(recorder), PortEvent::PushedOut { cell, .. }) = (&mut self.recorder, event) {
            recorder.end_packet(self.classes.get(link, cell.label()).egress, *cell, true);
        }
    }

    /// Returns the buffer state that a port's policy sees for a packet with `rest` cells after its first cell.
    fn buffer_with(&self, ports: &Ports, link: LinkIndex, cell: Cell, rest: u32) -> Buffer {
        let of = self.counted[link];
        let counted = self.counted(of, link, cell, ports[link].buffer_with(0).occupancy).saturating_add(rest);
        match self.config.policies_see {
            PolicyScope::Port => Buffer { counted, ..ports[link].buffer_with(rest) },
            PolicyScope::Memory => {
                let seen = self.buffer(ports, link, cell);
                Buffer { occupancy: seen.occupancy.saturating_add(rest), counted, ..seen }
            }
        }
    }
}
