//! Ports that share a memory. The memory admits their cells and may remove cells from other ports.

use std::collections::{BTreeMap, BTreeSet};

use typed_index_collections::TiVec;

use super::buffers::{Arriving, At, BufferEvent, Buffering, Emit, Ports};

use crate::cell::{Cell, FrameNumber};
use crate::coverage::reached;
use crate::engine::predictions::LossRecorder;
use crate::events::{Judged, Loss, MemoryEvent, MemoryStep};
use crate::index::{Label, LinkIndex, MemoryIndex, VcIndex};
use crate::marking::Counted;
use crate::memory::{
    CellClasses, FrameAdmission, Memory, MemoryConfig, Offer, PauseChange, PauseResponse, PausedGroups, Pauses,
    PolicyScope, QueueConfig, QueueIndex, Refusal, Removal, Side,
};
use crate::network::{LinkTimes, Network, Routing};
use crate::policy::Decision;
use crate::port::admission::Verdict;
use crate::port::{Buffer, PortEvent};
use crate::rng::Stream;
use crate::tie::TieBreaker;
use crate::units::{BitRate, Time};

mod stored;

/// A memory, and the properties of its ports that the engine needs.
pub(super) struct SharedMemory<'a> {
    number: MemoryIndex,
    config: &'a MemoryConfig,
    vcs: TiVec<LinkIndex, TiVec<Label, VcIndex>>,
    pub(super) memory: Memory,
    classes: CellClasses,
    /// The cells that each port compares with its marking thresholds.
    counted: TiVec<LinkIndex, Counted>,
    pub(super) first_port: LinkIndex,
    ties: TieBreaker,
    /// Frames that have lost a cell for lack of room, if some of their cells may still be waiting.
    cut_frames: BTreeMap<(LinkIndex, Label), BTreeSet<FrameNumber>>,
    /// Pause frames that the engine has not sent yet.
    pause_frames: Vec<PauseChange>,
    /// True if the memory has removed cells since the last call of [`SharedMemory::take_has_removed`].
    has_removed: bool,
    /// Recorder of the lost cells, for predictions.
    pub(super) recorder: Option<LossRecorder>,
}

/// The request to a memory when a cell arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Admit this single cell.
    Cell,
    /// Admit all cells of the packet. The value is the number of cells.
    Packet(u32),
    /// Find a free place for the cell, because the memory has already admitted its packet.
    Place,
}

/// The result of making room for an arriving cell.
#[derive(Clone, Copy, PartialEq)]
enum Room {
    /// The memory has room for the cell and has counted it.
    Found,
    NotFound(Refusal),
    /// The memory removed a cell of the same frame, and the port's policy refuses the rest of the frame.
    FrameCut,
}

impl<'a> SharedMemory<'a> {
    pub(super) fn new(number: MemoryIndex, network: &'a Network, routing: &Routing) -> Self {
        let config = &network.memories[number];
        let first_port = config.ports.iter().copied().min().expect("every memory has at least one port");
        let times = LinkTimes::of(network, network.clock());
        let inputs = routing.inputs[network.links[first_port].from].iter();
        let stream = Stream::new(network.seed, &format!("memory/{}/ties", config.name));
        Self {
            number,
            config,
            vcs: routing.vcs.clone(),
            memory: network.memory(config, &times, network.clock()),
            classes: network.cell_classes(routing, config),
            counted: network
                .links
                .iter()
                .map(|link| link.marking.as_ref().map_or(Counted::Port, |own| own.of))
                .collect(),
            first_port,
            ties: TieBreaker::new(network.tie_order, inputs.map(|&from| times[from].cell_time), stream),
            cut_frames: BTreeMap::new(),
            pause_frames: Vec::new(),
            has_removed: false,
            recorder: None,
        }
    }

    /// Offers a cell to a port that keeps cells, not whole packets.
    fn offer_cell(&mut self, link: LinkIndex, cell: Cell, at: &mut At<'_, '_>) {
        let label = cell.label();
        let occupancy = at.ports[link].occupancy();
        if cell.is_rm() {
            at.ports[link].admission_mut().on_cells_between(label, 1);
            let event = if self.make_room(link, cell, Asked::Cell, at) == Room::Found {
                at.ports[link].enqueue(cell);
                PortEvent::Admitted
            } else {
                at.ports[link].admission_mut().lose_rm(label);
                PortEvent::Lost(Loss::NoRoom { cuts: false })
            };
            return (at.emit)(BufferEvent::Port(link, occupancy, event));
        }
        let mut room = None;
        if at.ports[link].admission_mut().on_arrival(cell) {
            let buffer = self.buffer(at.ports, link, cell);
            let is_whole = self.config.frames == FrameAdmission::Whole || at.ports[link].admission_mut().delimits();
            let mut judged = None;
            at.ports[link].judge(cell, at.now, buffer, |event| match event {
                PortEvent::Judged { view, admitted: true, policy } if is_whole => {
                    judged = Some(Judged::of(link, label, view, policy.explain(view, label)));
                }
                event => (at.emit)(BufferEvent::Port(link, occupancy, event)),
            });
            room = judged.map(|judged| self.admit_frame(link, cell, Asked::Cell, judged, at));
        }
        let mut is_full = false;
        if at.ports[link].wants(cell) {
            let asked = if at.ports[link].admission_mut().delimits() { Asked::Place } else { Asked::Cell };
            let room = room.unwrap_or_else(|| self.make_room(link, cell, asked, at));
            is_full = matches!(room, Room::NotFound(_));
        }
        let mut verdict = at.ports[link].admission_mut().verdict(cell, is_full, false);
        if verdict == Verdict::PushOut {
            at.ports[link].push_out_front(cell, &mut |event| {
                if let PortEvent::PushedOut { cell, .. } = &event {
                    self.memory.push_out(self.classes.get(link, cell.label()), at.now);
                }
                (at.emit)(BufferEvent::Port(link, occupancy, event));
            });
            is_full = at.ports[link].wants(cell) && self.find(link, cell, Asked::Cell, at) != Room::Found;
            verdict = at.ports[link].admission_mut().final_verdict(cell, is_full);
        }
        let event = match verdict {
            Verdict::Enter => {
                at.ports[link].enqueue(cell);
                PortEvent::Admitted
            }
            Verdict::Refuse(loss) => {
                if loss == (Loss::NoRoom { cuts: true }) {
                    self.cut_frames.entry((link, label)).or_default().insert(cell.frame);
                }
                PortEvent::Lost(loss)
            }
            Verdict::DiscardHeld(_) | Verdict::PushOut => {
                unreachable!("no VCs merge here, and the decision of the memory is final")
            }
        };
        (at.emit)(BufferEvent::Port(link, occupancy, event));
        self.emit_pauses(at.now, at.emit);
    }

    /// Asks for room for a frame that the port's policy has admitted, and reports the decision.
    fn admit_frame(&mut self, link: LinkIndex, cell: Cell, asked: Asked, judged: Judged, at: &mut At<'_, '_>) -> Room {
        let room = self.make_room(link, cell, asked, at);
        let event = if let Room::NotFound(Refusal { queue, threshold, held, .. }) = room {
            at.ports[link].admission_mut().refuse_frame(cell.label());
            let (rule, held) = (self.memory.rule(queue), Some(f64::from(held)));
            let decision = Decision { rule, share: threshold, held, ..Decision::default() };
            BufferEvent::Frame { admitted: false, judged: Judged { decision, ..judged } }
        } else {
            BufferEvent::Frame { admitted: true, judged }
        };
        (at.emit)(event);
        room
    }

    /// Counts an arriving cell and finds room for it or its packet.
    fn make_room(&mut self, link: LinkIndex, cell: Cell, asked: Asked, at: &mut At<'_, '_>) -> Room {
        self.memory.arrive(self.classes.get(link, cell.label()), at.now);
        let room = self.find(link, cell, asked, at);
        self.record(link, cell, room == Room::Found, at.ports);
        room
    }

    /// Finds room for an arriving cell or its packet, and removes waiting cells or packets if the policy decides to.
    fn find(&mut self, link: LinkIndex, cell: Cell, asked: Asked, at: &mut At<'_, '_>) -> Room {
        let class = self.classes.get(link, cell.label());
        loop {
            let offer = match asked {
                Asked::Cell => self.memory.offer(class, at.now),
                Asked::Packet(cells) => self.memory.offer_packet(class, cells, at.now),
                Asked::Place => self.memory.offer_rest(class, at.now),
            };
            let refusal = match offer {
                Offer::Entered => return Room::Found,
                Offer::Refused(refusal) => refusal,
                Offer::PushOut(removal) => {
                    if self.remove(removal, Some((link, cell)), at) == 0 {
                        self.memory.refuse(removal, at.now)
                    } else if cell.is_rm() || at.ports[link].wants(cell) {
                        continue;
                    } else {
                        reached!(FrameCutByOwnPushOut);
                        return Room::FrameCut;
                    }
                }
            };
            let vc = self.vcs[link][cell.label()];
            let Refusal { queue, limit, threshold, .. } = refusal;
            let step = MemoryStep::Refused { vc, frame: cell.frame, limit, rule: self.memory.rule(queue) };
            (at.emit)(BufferEvent::Memory(MemoryEvent { threshold, ..self.event(queue, step, at.now) }));
            return Room::NotFound(refusal);
        }
    }

    fn event(&self, queue: QueueIndex, step: MemoryStep, now: Time) -> MemoryEvent {
        let QueueConfig { link, priority, pool, .. } = self.config.queues[queue];
        MemoryEvent {
            memory: self.number,
            queue,
            link,
            priority,
            side: self.config.pools[pool].side,
            step,
            held: self.memory.held(queue),
            shared: self.memory.shared(queue),
            used: self.memory.used_of(queue),
            threshold: self.memory.threshold(queue, now),
        }
    }

    /// Reports pauses that began or ended, and records these changes for the links.
    fn emit_pauses(&mut self, now: Time, emit: &mut Emit<'_>) {
        while let Some(change) = self.memory.next_pause_change() {
            let PauseChange { queue, paused, .. } = change;
            if self.config.pauses == Pauses::Links {
                self.pause_frames.push(change);
            }
            let step = if paused { MemoryStep::Paused } else { MemoryStep::Resumed };
            emit(BufferEvent::Memory(self.event(queue, step, now)));
        }
    }

    /// Removes a waiting cell or packet from its port. Returns the number of removed cells. `arriving` is the cell that
    /// needs the room.
    fn remove(&mut self, removal: Removal, arriving: Option<(LinkIndex, Cell)>, at: &mut At<'_, '_>) -> u32 {
        let Removal { queue, end } = removal;
        self.has_removed = true;
        let link = self.config.queues[queue].link;
        let arriving = arriving.filter(|&(to, _)| to == link).map(|(_, cell)| cell);
        let is_in = |label| self.classes.get(link, label).egress == Some(queue);
        if at.ports[link].stores().is_some() {
            let packet = at.ports[link].remove_packet(end, is_in);
            return packet.map_or(0, |(cells, places)| self.remove_packet(link, &cells, places, arriving, at));
        }
        let occupancy = at.ports[link].occupancy();
        let cell = at.ports[link].remove(end, is_in);
        let label = cell.label();
        self.memory.push_out(self.classes.get(link, label), at.now);
        if let Some(recorder) = &mut self.recorder {
            recorder.remove(queue, end);
        }
        let cuts = !cell.is_rm() && self.cut_frames.entry((link, label)).or_default().insert(cell.frame);
        at.ports[link].admission_mut().on_removed(cell, cuts, arriving);
        (at.emit)(BufferEvent::Port(link, occupancy, PortEvent::PushedOut { cell, cuts }));
        1
    }

    /// Lets each policy act whose next action is due.
    pub(super) fn on_time(&mut self, ports: &mut Ports, now: Time, emit: &mut Emit<'_>) {
        let at = &mut At { now, ports, emit };
        while let Some(removal) = self.memory.on_time(now) {
            let cells = self.remove(removal, None, at);
            self.memory.removed(removal.queue, cells);
        }
        self.emit_pauses(at.now, at.emit);
    }

    /// Records the arrival of a cell, for predictions.
    fn record(&mut self, link: LinkIndex, cell: Cell, enters: bool, ports: &Ports) {
        let Some(recorder) = &mut self.recorder else { return };
        let queue = self.classes.get(link, cell.label()).egress;
        if ports[link].stores().is_some() {
            recorder.arrive_whole(queue, cell, enters);
        } else {
            recorder.arrive(queue, enters);
        }
    }

    /// Returns the pause frames to send, with the links and priorities that they pause or release.
    pub(super) fn take_pause_frames(&mut self) -> Vec<(LinkIndex, u8, bool)> {
        let queues = &self.config.queues;
        let frame = |PauseChange { queue, paused, .. }| (queues[queue].link, queues[queue].priority, paused);
        self.pause_frames.drain(..).map(frame).collect()
    }

    /// Returns the time that a port with a link of this rate takes to obey the pause frames of the memory.
    pub(super) fn pause_response(&self, rate: BitRate) -> PauseResponse {
        self.config.pause_response.unwrap_or_else(|| PauseResponse::limit(rate))
    }

    /// Returns whether the memory has removed cells since the last call.
    pub(super) fn take_has_removed(&mut self) -> bool {
        std::mem::take(&mut self.has_removed)
    }

    /// Returns whether a cell that has just left a port was the port's last cell of a paused group.
    pub(super) fn was_last_of_paused_group(&self, link: LinkIndex, cell: Cell, ports: &Ports) -> bool {
        let group = |cell: Cell| self.classes.get(link, cell.label()).ingress;
        let of_cell = group(cell);
        of_cell.is_some_and(|group| self.memory.is_paused(group))
            && !ports[link].waiting().any(|other| group(other) == of_cell)
    }

    /// Adds the paused groups that have cells.
    pub(super) fn add_paused_groups(&self, ports: &Ports, groups: &mut PausedGroups) {
        for &port in &self.config.ports {
            for cell in ports[port].waiting() {
                let Some(group) = self.classes.get(port, cell.label()).ingress else { continue };
                if self.memory.is_paused(group) {
                    let QueueConfig { link, priority, .. } = self.config.queues[group];
                    groups.entry((link, priority)).or_default().insert(port);
                }
            }
        }
    }

    pub(super) fn deadlocked(&self, link: LinkIndex, priority: u8, now: Time) -> Option<MemoryEvent> {
        let pools = &self.config.pools;
        let mut queues = self.config.queues.iter_enumerated();
        let (queue, _) = queues.find(|(_, queue)| {
            (queue.link, queue.priority, pools[queue.pool].side) == (link, priority, Side::Ingress)
        })?;
        Some(self.event(queue, MemoryStep::Deadlocked, now))
    }

    fn buffer(&self, ports: &Ports, link: LinkIndex, cell: Cell) -> Buffer {
        let own = ports[link].buffer();
        let own = Buffer { counted: self.counted(self.counted[link], link, cell, own.occupancy), ..own };
        match self.config.policies_see {
            PolicyScope::Port => own,
            PolicyScope::Memory => {
                let active_vcs = self.config.ports.iter().map(|&port| ports[port].active_vcs()).sum();
                Buffer { occupancy: self.memory.seen_by_policies(), active_vcs, ..own }
            }
        }
    }
}

impl Buffering for SharedMemory<'_> {
    fn offer(&mut self, arriving: Arriving<'_>, at: &mut At<'_, '_>) {
        if at.ports[arriving.link].stores().is_some() {
            self.store(arriving, at);
        } else {
            self.offer_cell(arriving.link, arriving.cell, at);
        }
    }

    fn leave(&mut self, link: LinkIndex, cell: Cell, now: Time, emit: &mut Emit<'_>) {
        let class = self.classes.get(link, cell.label());
        self.memory.leave(class, now);
        if let Some(recorder) = &mut self.recorder {
            recorder.leave(class.egress);
            if cell.last_cell() {
                recorder.end_packet(class.egress, cell, false);
            }
        }
        if let Some(cut) = self.cut_frames.get_mut(&(link, cell.label())).filter(|_| !cell.is_rm()) {
            // Cells of a VC leave in order.
            cut.retain(|&frame| frame >= cell.frame);
        }
        self.emit_pauses(now, emit);
    }

    fn counted(&self, of: Counted, link: LinkIndex, cell: Cell, at_port: u32) -> u32 {
        self.memory.counted(of, self.classes.get(link, cell.label()), at_port)
    }

    fn ties(&mut self) -> &mut TieBreaker {
        &mut self.ties
    }
}

#[cfg(test)]
mod tests;
