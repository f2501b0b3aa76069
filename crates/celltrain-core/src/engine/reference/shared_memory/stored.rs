//! Memories whose ports store each packet whole before they send it (`docs/design/packets.md`).

use typed_index_collections::TiSlice;

use super::{AtMemory, Room, SharedMemory};
use crate::cell::Cell;
use crate::coverage::reached;
use crate::events::{Judged, MemoryEvent, MemoryStep};
use crate::index::{Label, LinkIndex};
use crate::memory::{Offer, PolicyScope, Refusal, Removal};
use crate::policy::Decision;
use crate::port::admission::Verdict;
use crate::port::{Buffer, Freed, Port, PortEvent};
use crate::switching::PacketAdmission;
use crate::units::Time;

/// The question for the policy of a memory when a cell arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// About a single cell.
    Cell,
    /// About all cells of its packet.
    Packet(u32),
    /// Only for a free place, because the memory has admitted the packet.
    Place,
}

impl SharedMemory<'_> {
    /// Offers a cell that arrives at `now` to a port that stores packets whole. `length` gives the number of cells in its
    /// packet. Reports events to `emit` as they happen.
    pub(in crate::engine::reference) fn store(
        &mut self,
        ports: &mut TiSlice<LinkIndex, Port>,
        link: LinkIndex,
        cell: Cell,
        length: impl FnOnce() -> u32,
        now: Time,
        mut emit: impl FnMut(AtMemory<'_>),
    ) {
        let label = cell.label();
        let occupancy = ports[link].occupancy();
        let freed = ports[link].free_unfinished(cell, &mut |event| {
            self.end_recorded(link, &event);
            emit(AtMemory::Port(link, occupancy, event));
        });
        self.free(link, label, freed, now);
        let starts = ports[link].admission_mut().on_arrival(cell);
        let mut room = None;
        if ports[link].must_decide(cell, starts) {
            let asked = match ports[link].stores() {
                Some(PacketAdmission::Fits) => Asked::Packet(length()),
                _ => Asked::Cell,
            };
            let rest = if let Asked::Packet(cells) = asked { cells - 1 } else { 0 };
            let buffer = self.buffer_with(ports, link, cell, rest);
            let mut judged = None;
            ports[link].judge_packet((cell, rest), now, buffer, |event| match event {
                PortEvent::Judged { view, admitted: true, policy } => {
                    judged = Some(Judged::of(link, label, view, policy.explain(view, label)));
                }
                event => emit(AtMemory::Port(link, occupancy, event)),
            });
            if let Some(judged) = judged {
                let made = self.find(ports, link, cell, asked, now, &mut emit);
                if let Room::NotFound(Refusal { queue, threshold, held, .. }) = made {
                    ports[link].admission_mut().refuse_frame(label);
                    let (rule, held) = (self.memory.rule(queue), Some(f64::from(held)));
                    let decision = Decision { rule, share: threshold, held, ..Decision::default() };
                    emit(AtMemory::Frame { admitted: false, judged: Judged { decision, ..judged } });
                } else {
                    emit(AtMemory::Frame { admitted: true, judged });
                }
                if let (Asked::Packet(cells), Room::Found) = (asked, made) {
                    ports[link].take_places(label, cells);
                }
                room = Some(made);
            }
        }
        let mut is_full = false;
        if ports[link].wants(cell) {
            let room = match room {
                Some(room) => room,
                None if ports[link].has_place(label) => {
                    self.memory.arrive(self.classes.get(link, label), now);
                    self.record(link, cell, true);
                    Room::Found
                }
                None => self.find(ports, link, cell, Asked::Place, now, &mut emit),
            };
            is_full = matches!(room, Room::NotFound(_));
        }
        match ports[link].admission_mut().verdict(cell, is_full, true) {
            Verdict::Enter => {
                ports[link].enqueue(cell);
                if cell.last_cell() {
                    let places = ports[link].release_places(label);
                    reached!(PlacesNeverUsed if places > 0);
                    self.free(link, label, Freed { cells: 0, places }, now);
                }
                emit(AtMemory::Port(link, occupancy, PortEvent::Admitted));
            }
            Verdict::Refuse(loss) | Verdict::DiscardHeld(loss) => {
                let freed = ports[link].lose_packet(cell, loss, &mut |event| {
                    self.end_recorded(link, &event);
                    emit(AtMemory::Port(link, occupancy, event));
                });
                self.free(link, label, freed, now);
            }
            Verdict::PushOut => unreachable!("only drop from front pushes out cells, which needs AAL5"),
        }
        self.emit_pauses(now, &mut emit);
    }

    /// Finds room for an arriving cell or its packet, and removes waiting packets if the policy decides to.
    fn find(
        &mut self,
        ports: &mut TiSlice<LinkIndex, Port>,
        link: LinkIndex,
        cell: Cell,
        asked: Asked,
        now: Time,
        emit: &mut impl FnMut(AtMemory<'_>),
    ) -> Room {
        let class = self.classes.get(link, cell.label());
        self.memory.arrive(class, now);
        let room = loop {
            let offer = match asked {
                Asked::Cell => self.memory.offer(class, now),
                Asked::Packet(cells) => self.memory.offer_packet(class, cells, now),
                Asked::Place => self.memory.offer_rest(class, now),
            };
            let refusal = match offer {
                Offer::Entered => break Room::Found,
                Offer::Refused(refusal) => refusal,
                Offer::PushOut(removal) => {
                    if self.remove_packet(ports, removal, Some((link, cell)), now, emit) == 0 {
                        self.memory.refuse(removal, now)
                    } else if ports[link].wants(cell) {
                        continue;
                    } else {
                        reached!(FrameCutByOwnPushOut);
                        break Room::FrameCut;
                    }
                }
            };
            let vc = self.vcs[link][cell.label()];
            let Refusal { queue, limit, threshold, .. } = refusal;
            let step = MemoryStep::Refused { vc, frame: cell.frame, limit, rule: self.memory.rule(queue) };
            emit(AtMemory::Memory(MemoryEvent { threshold, ..self.event(queue, step, now) }));
            break Room::NotFound(refusal);
        };
        self.record(link, cell, room == Room::Found);
        room
    }

    /// Removes a waiting packet from its port. Returns the number of its cells, which is 0 if there is no such packet.
    pub(super) fn remove_packet(
        &mut self,
        ports: &mut TiSlice<LinkIndex, Port>,
        Removal { queue, end }: Removal,
        arriving: Option<(LinkIndex, Cell)>,
        now: Time,
        emit: &mut impl FnMut(AtMemory<'_>),
    ) -> u32 {
        let link = self.config.queues[queue].link;
        let occupancy = ports[link].occupancy();
        let is_in = |label| self.classes.get(link, label).egress == Some(queue);
        let Some((cells, places)) = ports[link].remove_packet(end, is_in) else { return 0 };
        let arriving = arriving.filter(|&(to, _)| to == link).map(|(_, cell)| cell);
        let mut removed = 0;
        for &cell in &cells {
            let cuts = removed == 0;
            removed += 1;
            ports[link].admission_mut().on_removed(cell, cuts, arriving);
            let event = PortEvent::PushedOut { cell, cuts };
            self.end_recorded(link, &event);
            emit(AtMemory::Port(link, occupancy, event));
        }
        self.free(link, cells[0].label(), Freed { cells: removed, places }, now);
        removed
    }

    /// Frees the places of a VC's cells, and the places that its packet has taken for cells that have not arrived.
    fn free(&mut self, link: LinkIndex, label: Label, Freed { cells, places }: Freed, now: Time) {
        let class = self.classes.get(link, label);
        (0..cells).for_each(|_| self.memory.push_out(class, now));
        (0..places).for_each(|_| self.memory.leave(class, now));
    }

    fn record(&mut self, link: LinkIndex, cell: Cell, enters: bool) {
        if let Some(recorder) = &mut self.recorder {
            recorder.arrive_whole(self.classes.get(link, cell.label()).egress, cell, enters);
        }
    }

    fn end_recorded(&mut self, link: LinkIndex, event: &PortEvent<'_>) {
        if let (Some(recorder), PortEvent::PushedOut { cell, .. }) = (&mut self.recorder, event) {
            recorder.end_packet(self.classes.get(link, cell.label()).egress, *cell, true);
        }
    }

    /// Returns the buffer that a port's policy sees for a packet of which `rest` cells follow the first one.
    fn buffer_with(&self, ports: &TiSlice<LinkIndex, Port>, link: LinkIndex, cell: Cell, rest: u32) -> Buffer {
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
