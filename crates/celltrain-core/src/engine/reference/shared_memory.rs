//! Ports that share a memory. The memory admits their cells and may remove cells from other ports.

use std::collections::{BTreeMap, BTreeSet};

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::cell::{Cell, FrameNumber};
use crate::coverage::reached;
use crate::engine::predictions::LossRecorder;
use crate::events::{Judged, Loss, MemoryEvent, MemoryStep};
use crate::index::{Label, LinkIndex, MemoryIndex, VcIndex};
use crate::marking::Counted;
use crate::memory::{
    CellClasses, FrameAdmission, Memory, MemoryConfig, Offer, PauseChange, PauseResponse, Pauses, PolicyScope,
    QueueConfig, QueueIndex, Refusal, Removal, Side,
};
use crate::network::{LinkTimes, Network, Routing};
use crate::policy::Decision;
use crate::port::admission::Verdict;
use crate::port::{Buffer, Port, PortEvent};
use crate::rng::Stream;
use crate::tie::TieBreaker;
use crate::units::{BitRate, Time};

/// An event at a memory, or at one of its ports.
pub(super) enum AtMemory<'a> {
    /// An event at the port of a link, with the number of cells that waited at the port.
    Port(LinkIndex, u32, PortEvent<'a>),
    /// An event of the memory itself.
    Memory(MemoryEvent),
    /// The memory has room for the first cell of a frame, or refuses the whole frame.
    Frame { admitted: bool, judged: Judged },
}

/// A priority group that is paused: the link that feeds it, and its priority.
pub(super) type PausedGroup = (LinkIndex, u8);

/// Finds a cycle of paused groups that can never resume, because the cells of each group wait only at ports stopped by
/// other groups of the cycle. `groups` lists the paused groups with the ports at which their cells wait. `is_stopped`
/// returns whether a port is stopped for a priority.
pub(super) fn deadlock(
    mut groups: BTreeMap<PausedGroup, BTreeSet<LinkIndex>>,
    is_stopped: impl Fn(PausedGroup) -> bool,
) -> Option<Vec<PausedGroup>> {
    loop {
        let can_go = |&(&(_, priority), at): &(&PausedGroup, &BTreeSet<LinkIndex>)| {
            at.iter().any(|&port| !is_stopped((port, priority)) || !groups.contains_key(&(port, priority)))
        };
        let Some((&free, _)) = groups.iter().find(can_go) else { break };
        groups.remove(&free);
    }
    let mut way = vec![*groups.keys().next()?];
    loop {
        let &(link, priority) = way.last()?;
        let next = (*groups[&(link, priority)].first()?, priority);
        if let Some(start) = way.iter().position(|&group| group == next) {
            return Some(way.split_off(start));
        }
        way.push(next);
    }
}

mod stored;

pub(super) struct SharedMemories<'a> {
    of_port: TiVec<LinkIndex, Option<MemoryIndex>>,
    pub(super) memories: TiVec<MemoryIndex, SharedMemory<'a>>,
}

impl<'a> SharedMemories<'a> {
    pub(super) fn new(network: &'a Network, routing: &Routing) -> Self {
        let mut of_port = ti_vec![None; network.links.len()];
        for (number, memory) in network.memories.iter_enumerated() {
            for &port in &memory.ports {
                of_port[port] = Some(number);
            }
        }
        let memories = network.memories.keys().map(|memory| SharedMemory::new(memory, network, routing)).collect();
        Self { of_port, memories }
    }

    pub(super) fn of_port(&mut self, port: LinkIndex) -> Option<&mut SharedMemory<'a>> {
        self.of_port[port].map(|memory| &mut self.memories[memory])
    }

    /// Returns the first of the ports whose arrivals are ordered together: the first port of the memory, or the port
    /// itself.
    pub(super) fn first_port(&self, port: LinkIndex) -> LinkIndex {
        self.of_port[port].map_or(port, |memory| self.memories[memory].first_port)
    }

    /// Returns the next time at which a policy acts without an arrival or a departure.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.memories.iter().filter_map(|shared| shared.memory.next_time()).min()
    }
}

/// A memory, and those properties of its ports that the engine needs.
pub(super) struct SharedMemory<'a> {
    number: MemoryIndex,
    config: &'a MemoryConfig,
    vcs: TiVec<LinkIndex, TiVec<Label, VcIndex>>,
    pub(super) memory: Memory,
    classes: CellClasses,
    /// The cells that each port compares with its marking thresholds.
    counted: TiVec<LinkIndex, Counted>,
    first_port: LinkIndex,
    pub(super) ties: TieBreaker,
    /// Frames that have lost a cell for lack of room, if some of their cells may still be waiting.
    cut_frames: BTreeMap<(LinkIndex, Label), BTreeSet<FrameNumber>>,
    /// Pause frames that the engine has not sent yet.
    pause_frames: Vec<PauseChange>,
    /// Records the lost cells, for predictions.
    pub(super) recorder: Option<LossRecorder>,
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
    fn new(number: MemoryIndex, network: &'a Network, routing: &Routing) -> Self {
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
            recorder: None,
        }
    }

    /// Offers a cell that arrives at `now` to a port, and reports events to `emit` as they happen.
    pub(super) fn offer(
        &mut self,
        ports: &mut TiSlice<LinkIndex, Port>,
        link: LinkIndex,
        cell: Cell,
        now: Time,
        mut emit: impl FnMut(AtMemory<'_>),
    ) {
        let label = cell.label();
        let occupancy = ports[link].occupancy();
        if cell.is_rm() {
            ports[link].admission_mut().on_cells_between(label, 1);
            if self.make_room(ports, link, cell, false, now, &mut emit) == Room::Found {
                ports[link].enqueue(cell);
                emit(AtMemory::Port(link, occupancy, PortEvent::Admitted));
            } else {
                ports[link].admission_mut().lose_rm(label);
                emit(AtMemory::Port(link, occupancy, PortEvent::Lost(Loss::NoRoom { cuts: false })));
            }
            return;
        }
        let mut room = None;
        if ports[link].admission_mut().on_arrival(cell) {
            let buffer = self.buffer(ports, link, cell);
            let whole = self.config.frames == FrameAdmission::Whole || ports[link].admission_mut().delimits();
            let mut judged = None;
            ports[link].judge(cell, now, buffer, |event| match event {
                PortEvent::Judged { view, admitted: true, policy } if whole => {
                    judged = Some(Judged::of(link, label, view, policy.explain(view, label)));
                }
                event => emit(AtMemory::Port(link, occupancy, event)),
            });
            if let Some(judged) = judged {
                let made = self.make_room(ports, link, cell, false, now, &mut emit);
                if let Room::NotFound(Refusal { queue, threshold, held, .. }) = made {
                    ports[link].admission_mut().refuse_frame(label);
                    let (rule, held) = (self.memory.rule(queue), Some(f64::from(held)));
                    let decision = Decision { rule, share: threshold, held, ..Decision::default() };
                    emit(AtMemory::Frame { admitted: false, judged: Judged { decision, ..judged } });
                } else {
                    emit(AtMemory::Frame { admitted: true, judged });
                }
                room = Some(made);
            }
        }
        let mut is_full = false;
        if ports[link].wants(cell) {
            let rest = ports[link].admission_mut().delimits();
            let room = room.unwrap_or_else(|| self.make_room(ports, link, cell, rest, now, &mut emit));
            is_full = matches!(room, Room::NotFound(_));
        }
        let mut verdict = ports[link].admission_mut().verdict(cell, is_full, false);
        if verdict == Verdict::PushOut {
            ports[link].push_out_front(cell, &mut |event| {
                if let PortEvent::PushedOut { cell, .. } = &event {
                    self.memory.push_out(self.classes.get(link, cell.label()), now);
                }
                emit(AtMemory::Port(link, occupancy, event));
            });
            is_full = ports[link].wants(cell) && self.place(ports, link, cell, false, now, &mut emit) != Room::Found;
            verdict = ports[link].admission_mut().final_verdict(cell, is_full);
        }
        match verdict {
            Verdict::Enter => {
                ports[link].enqueue(cell);
                emit(AtMemory::Port(link, occupancy, PortEvent::Admitted));
            }
            Verdict::Refuse(loss) => {
                if loss == (Loss::NoRoom { cuts: true }) {
                    self.cut_frames.entry((link, label)).or_default().insert(cell.frame);
                }
                emit(AtMemory::Port(link, occupancy, PortEvent::Lost(loss)));
            }
            Verdict::DiscardHeld(_) | Verdict::PushOut => {
                unreachable!("no VCs merge here, and the decision of the memory is final")
            }
        }
        self.emit_pauses(now, &mut emit);
    }

    /// Returns the number of cells that a port compares with its marking thresholds.
    pub(super) fn counted(&self, of: Counted, link: LinkIndex, cell: Cell, at_port: u32) -> u32 {
        self.memory.counted(of, self.classes.get(link, cell.label()), at_port)
    }

    /// Finds room for an arriving cell, and removes other cells if the policy decides to. `rest` is true if the memory
    /// has already admitted the cell's packet, which delimits itself.
    fn make_room(
        &mut self,
        ports: &mut TiSlice<LinkIndex, Port>,
        link: LinkIndex,
        cell: Cell,
        rest: bool,
        now: Time,
        emit: &mut impl FnMut(AtMemory<'_>),
    ) -> Room {
        let class = self.classes.get(link, cell.label());
        self.memory.arrive(class, now);
        let room = self.place(ports, link, cell, rest, now, emit);
        if let Some(recorder) = &mut self.recorder {
            recorder.arrive(class.egress, room == Room::Found);
        }
        room
    }

    fn place(
        &mut self,
        ports: &mut TiSlice<LinkIndex, Port>,
        link: LinkIndex,
        cell: Cell,
        rest: bool,
        now: Time,
        emit: &mut impl FnMut(AtMemory<'_>),
    ) -> Room {
        let class = self.classes.get(link, cell.label());
        loop {
            let offer = if rest { self.memory.offer_rest(class, now) } else { self.memory.offer(class, now) };
            match offer {
                Offer::Entered => return Room::Found,
                Offer::Refused(refusal) => {
                    let vc = self.vcs[link][cell.label()];
                    let Refusal { queue, limit, threshold, .. } = refusal;
                    let rule = self.memory.rule(queue);
                    let step = MemoryStep::Refused { vc, frame: cell.frame, limit, rule };
                    emit(AtMemory::Memory(MemoryEvent { threshold, ..self.event(queue, step, now) }));
                    return Room::NotFound(refusal);
                }
                Offer::PushOut(removal) => {
                    self.remove(ports, removal, Some((link, cell)), now, emit);
                    if !cell.is_rm() && !ports[link].wants(cell) {
                        reached!(FrameCutByOwnPushOut);
                        return Room::FrameCut;
                    }
                }
            }
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
    fn emit_pauses(&mut self, now: Time, emit: &mut impl FnMut(AtMemory<'_>)) {
        while let Some(change) = self.memory.next_pause_change() {
            let PauseChange { queue, paused } = change;
            if self.config.pauses == Pauses::Links {
                self.pause_frames.push(change);
            }
            let step = if paused { MemoryStep::Paused } else { MemoryStep::Resumed };
            emit(AtMemory::Memory(self.event(queue, step, now)));
        }
    }

    /// Removes a waiting cell from its port. `arriving` is the cell that needs the room.
    fn remove(
        &mut self,
        ports: &mut TiSlice<LinkIndex, Port>,
        Removal { queue, end }: Removal,
        arriving: Option<(LinkIndex, Cell)>,
        now: Time,
        emit: &mut impl FnMut(AtMemory<'_>),
    ) {
        let link = self.config.queues[queue].link;
        if ports[link].stores().is_some() {
            let cells = self.remove_packet(ports, Removal { queue, end }, arriving, now, emit);
            return self.memory.removed(queue, cells);
        }
        let occupancy = ports[link].occupancy();
        let is_in = |label| self.classes.get(link, label).egress == Some(queue);
        let cell = ports[link].remove(end, is_in);
        let label = cell.label();
        self.memory.push_out(self.classes.get(link, label), now);
        if let Some(recorder) = &mut self.recorder {
            recorder.remove(queue, end);
        }
        let cuts = !cell.is_rm() && self.cut_frames.entry((link, label)).or_default().insert(cell.frame);
        let arriving = arriving.filter(|&(to, _)| to == link).map(|(_, cell)| cell);
        ports[link].admission_mut().on_removed(cell, cuts, arriving);
        emit(AtMemory::Port(link, occupancy, PortEvent::PushedOut { cell, cuts }));
    }

    /// Lets each policy act, if it is due to act.
    pub(super) fn on_time(
        &mut self,
        ports: &mut TiSlice<LinkIndex, Port>,
        now: Time,
        mut emit: impl FnMut(AtMemory<'_>),
    ) {
        while let Some(removal) = self.memory.on_time(now) {
            self.remove(ports, removal, None, now, &mut emit);
        }
        self.emit_pauses(now, &mut emit);
    }

    /// Records that a port has handed a cell to its transmitter.
    pub(super) fn leave(&mut self, link: LinkIndex, cell: Cell, now: Time, mut emit: impl FnMut(AtMemory<'_>)) {
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
        self.emit_pauses(now, &mut emit);
    }

    /// Returns the pause frames to send, with the links and priorities that they pause or release.
    pub(super) fn take_pause_frames(&mut self) -> Vec<(LinkIndex, u8, bool)> {
        let queues = &self.config.queues;
        let frame = |PauseChange { queue, paused }| (queues[queue].link, queues[queue].priority, paused);
        self.pause_frames.drain(..).map(frame).collect()
    }

    /// Returns the time that a port with a link of this rate takes to obey the pause frames of the memory.
    pub(super) fn pause_response(&self, rate: BitRate) -> PauseResponse {
        self.config.pause_response.unwrap_or_else(|| PauseResponse::limit(rate))
    }

    /// Returns the paused groups that have cells, as links and priorities, each with the output ports at which its
    /// cells wait.
    pub(super) fn paused_groups(&self, ports: &TiSlice<LinkIndex, Port>) -> BTreeMap<PausedGroup, BTreeSet<LinkIndex>> {
        let mut groups: BTreeMap<PausedGroup, BTreeSet<LinkIndex>> = BTreeMap::new();
        for &port in &self.config.ports {
            for cell in ports[port].waiting() {
                let Some(group) = self.classes.get(port, cell.label()).ingress else { continue };
                if self.memory.is_paused(group) {
                    let QueueConfig { link, priority, .. } = self.config.queues[group];
                    groups.entry((link, priority)).or_default().insert(port);
                }
            }
        }
        groups
    }

    pub(super) fn deadlocked(&self, (link, priority): PausedGroup, now: Time) -> Option<MemoryEvent> {
        let pools = &self.config.pools;
        let mut queues = self.config.queues.iter_enumerated();
        let (queue, _) = queues.find(|(_, queue)| {
            (queue.link, queue.priority, pools[queue.pool].side) == (link, priority, Side::Ingress)
        })?;
        Some(self.event(queue, MemoryStep::Deadlocked, now))
    }

    fn buffer(&self, ports: &TiSlice<LinkIndex, Port>, link: LinkIndex, cell: Cell) -> Buffer {
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

#[cfg(test)]
mod tests;
