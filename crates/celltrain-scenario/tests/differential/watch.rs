//! Compares events with results: the numbers of events must equal the counters, and both engines must emit the same
//! events.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::aal5::Framing;
use celltrain_core::cell::FrameNumber;
use celltrain_core::engine::Engine;
use celltrain_core::events::{
    CellEvent, CellStep, Event, Failure, FrameEvent, FrameStep, HandshakeStep, Loss, MemoryEvent, MemoryStep, Observer,
    RateEvent, RequestEvent, RequestStep, SegmentEvent, SegmentStep, Timer, TimerEvent, TimerStep,
};
use celltrain_core::index::{FlowIndex, LinkIndex, MemoryIndex, VcIndex};
use celltrain_core::memory::{QueueCounters, QueueIndex};
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::port::PortCounters;
use celltrain_core::probe::{NetworkView, Probe};
use celltrain_core::requests::GroupIndex;
use celltrain_core::switching::PacketAdmission;
use celltrain_core::units::{CELL_BITS, Span, Time};
use typed_index_collections::{TiVec, ti_vec};

use super::compare::same_results;

/// Returns an error that describes the first difference between events and results, or between the engines' events.
pub(crate) fn adds_up(network: &Network) -> Result<(), String> {
    let unwatched = Engine::Reference.run_to_end(network);
    let mut told = ReportedEvents::new(network);
    let result = Engine::Reference.run(network, &mut told, |_| true).expect("nothing cancels this run");
    same_results(&result, &unwatched).map_err(|difference| format!("watched: {difference}"))?;
    if let Some(wrong) = told.wrong.take() {
        return Err(wrong);
    }
    for ((link, port), events) in result.ports.iter_enumerated().zip(&told.ports) {
        same(&port.name, &port.counters, &events.counters())?;
        let is_edge = told.is_shaped[link];
        if !is_edge {
            same(&format!("{}: largest queue", port.name), &u64::from(port.max_queue_cells), &events.largest)?;
        }
        let of_other =
            if is_edge { events.refused_frames + events.with_frame + events.by_memory } else { events.dropped_frames };
        same(&format!("{}: events that this kind of device cannot have", port.name), &of_other, &0)?;
        if is_edge {
            same(
                &format!("{}: lost packets and their first cells", port.name),
                &events.no_room_frames,
                &events.first_lost,
            )?;
        }
    }
    let reasons = result.ports.iter().map(|port| port.counters.lost() + port.counters.discarded()).sum::<u64>();
    let on_links: u64 = result.losses.iter().map(|losses| losses.counters.lost).sum();
    same("dropped cells, by reason", &(reasons + on_links), &(result.cells.lost + result.cells.discarded))?;
    for losses in &result.losses {
        let link =
            network.links.position(|link| link.name == losses.name).expect("the network has a link or VC of this name");
        let AtPort { lost_on_link, cut_on_link, .. } = told.ports[link];
        let counted = (losses.counters.lost, losses.counters.cut_frames);
        same(&format!("{}: losses on the link", losses.name), &counted, &(lost_on_link, cut_on_link))?;
    }
    for (flow, (result, events)) in result.flows.iter().zip(&told.flows).enumerate() {
        let counted = OfFlow {
            sent: result.segments_sent + result.packets_sent,
            retransmitted: result.retransmitted_segments,
            timeouts: result.timeouts,
            repeated: result.repeated_segments,
            ..*events
        };
        same(&format!("flow {flow}"), &counted, events)?;
        if result.packets_delivered > 0 {
            same("packets that arrived", &result.packets_delivered, &events.arrived)?;
        }
    }
    for (flow, (group, number)) in &told.requests {
        let record = &result.requests[*group].records[*number as usize];
        let events = told.of_requests[flow];
        let counted = OfFlow {
            sent: u64::from(record.segments_sent),
            retransmitted: u64::from(record.retransmitted_segments),
            timeouts: u64::from(record.timeouts),
            ..events
        };
        same(&format!("request {flow:?}"), &counted, &events)?;
        same(&format!("end of request {flow:?}"), &record.completed().is_some(), &told.completed.contains(flow))?;
    }
    let opened: u64 = result.requests.iter().map(|group| group.opened).sum();
    same("requests", &opened, &(told.requests.len() as u64))?;
    told.outcomes()?;
    for (number, memory) in result.memories.iter_enumerated() {
        for (queue, counted) in memory.queues.iter_enumerated() {
            let QueueCounters { refused, pauses, .. } = counted.counters;
            let events = told.at_memories.get(&(number, queue)).copied().unwrap_or_default();
            same(&format!("{queue:?} of {number:?}"), &(refused, pauses), &(events.refused, events.pauses))?;
        }
        if told.takes_places {
            continue;
        }
        let events = told.occupancies[number].at_least(told.end);
        same(&format!("time for which the memory held {number:?} cells"), &memory.occupancy.at_least(), &&events[..])?;
    }
    for abr in &result.abr {
        let vc = network.vcs.position(|vc| vc.name == abr.name).expect("the network has a link or VC of this name");
        if let Some(acr) = told.rates.get(&vc) {
            same(&format!("ACR of {}", abr.name), &abr.acr_mbps, &(acr * CELL_BITS as f64 / 1e6))?;
        }
    }
    let mut by_fast = ReportedEvents::new(network);
    let fast = Engine::Fast.run(network, &mut by_fast, |_| true).expect("nothing cancels this run");
    same_results(&fast, &unwatched)?;
    let differs = told.ends.iter().zip(&by_fast.ends).position(|(reference, fast)| reference != fast);
    match differs {
        Some(i) => Err(format!("event {i}:\n  fast      {:?}\n  reference {:?}", by_fast.ends[i], told.ends[i])),
        None => same("number of events in end systems", &told.ends.len(), &by_fast.ends.len()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, counted: &T, events: &T) -> Result<(), String> {
    if counted == events { Ok(()) } else { Err(format!("{what}:\n  counted {counted:?}\n  events  {events:?}")) }
}

/// Sums of all events of a run.
pub(super) struct ReportedEvents {
    ports: TiVec<LinkIndex, AtPort>,
    is_shaped: TiVec<LinkIndex, bool>,
    flows: TiVec<FlowIndex, OfFlow>,
    /// Group and number of each request that opened.
    requests: BTreeMap<FlowIndex, (GroupIndex, u32)>,
    of_requests: BTreeMap<FlowIndex, OfFlow>,
    completed: BTreeSet<FlowIndex>,
    closed: BTreeSet<FlowIndex>,
    /// The most recently reported rate of each VC.
    rates: BTreeMap<VcIndex, f64>,
    /// The timers that are running.
    running: BTreeSet<(FlowIndex, u8)>,
    /// Outcomes of frames, by VC and number.
    frames: BTreeMap<(VcIndex, FrameNumber), FrameRecord>,
    /// Counters of the queues of memories. Only refused cells and pauses are counted, because only these have events.
    at_memories: BTreeMap<(MemoryIndex, QueueIndex), QueueCounters>,
    /// The frame of the cell that a memory has just refused, until the port reports an event for this cell.
    just_refused: Option<(VcIndex, FrameNumber)>,
    /// For each link and VC, whether a memory refused the frame that was refused last. With AAL5, if the last cell of
    /// this frame is missing, the decision also applies to the cells of the next frame.
    by_memory: BTreeMap<(LinkIndex, VcIndex), bool>,
    /// The frame of the latest data cell to arrive.
    arriving: BTreeMap<(LinkIndex, VcIndex), FrameNumber>,
    memory_of: BTreeMap<LinkIndex, MemoryIndex>,
    occupancies: TiVec<MemoryIndex, Occupancy>,
    /// Events that the fast engine also emits.
    ends: Vec<(Time, Event)>,
    now: Time,
    step: Span,
    next: Time,
    end: Time,
    /// True with packet framing, with which no packet is joined to another packet.
    delimits: bool,
    /// True if packets take places for cells that have not arrived, so that events do not give the occupancy.
    takes_places: bool,
    /// True if every switch stores packets whole and no link loses cells, so that no damaged packet arrives.
    is_whole: bool,
    /// The links that delay packets, so that later packets of a VC may arrive earlier.
    overtaken: Vec<LinkIndex>,
    wrong: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct AtPort {
    arrived: u64,
    admitted: u64,
    departed: u64,
    no_room: u64,
    pushed_out: u64,
    with_frame: u64,
    /// Cells of frames that the memory refused.
    by_memory: u64,
    with_rest: u64,
    dropped: u64,
    refused_frames: u64,
    cut_frames: u64,
    dropped_frames: u64,
    /// Number of packets refused by a full edge device, and number of cells reported as the first lost cell of their
    /// frame.
    no_room_frames: u64,
    first_lost: u64,
    /// Numbers of cells and frames lost on the link after the port.
    lost_on_link: u64,
    cut_on_link: u64,
    largest: u64,
}

impl AtPort {
    fn waiting(&self) -> u64 {
        self.admitted - self.departed - self.pushed_out - self.dropped
    }

    fn counters(&self) -> PortCounters {
        PortCounters {
            offered: self.arrived,
            forwarded: self.departed,
            lost_overflow: self.no_room,
            lost_pushed_out: self.pushed_out,
            discarded_frame: self.with_frame + self.dropped,
            refused_by_memory: self.by_memory,
            discarded_remainder: self.with_rest,
            discarded_frames: self.refused_frames + self.dropped_frames,
            cut_frames: self.cut_frames,
        }
    }
}

/// Counters of a port, with the number of admitted cells and the largest queue.
pub(super) type Numbers = [u64; NUMBERS];
pub(super) const NUMBERS: usize = 11;

pub(super) fn numbers(of: &PortCounters, waiting: u64, largest: u64) -> Numbers {
    let admitted = of.forwarded + of.lost_pushed_out + waiting;
    [
        of.offered, admitted, of.forwarded, of.lost_overflow, of.lost_pushed_out, of.discarded_frame,
        of.refused_by_memory, of.discarded_remainder, of.discarded_frames, of.cut_frames, largest,
    ]
}

/// Number of cells in a memory according to events, and the time for which the memory contained each number of cells.
#[derive(Default)]
struct Occupancy {
    cells: usize,
    since: Time,
    /// Time for which the memory contained exactly n cells, by n, up to the last change.
    times: Vec<u64>,
}

impl Occupancy {
    fn change(&mut self, cells: usize, now: Time) {
        self.times.resize(self.times.len().max(cells + 1).max(self.cells + 1), 0);
        self.times[self.cells] += (now - self.since).0;
        (self.cells, self.since) = (cells, now);
    }

    /// Returns the time for which the memory contained at least n cells, by n.
    fn at_least(&mut self, end: Time) -> Vec<Span> {
        self.change(self.cells, end);
        (0..self.times.len()).map(|cells| Span(self.times[cells..].iter().sum())).collect()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct OfFlow {
    sent: u64,
    retransmitted: u64,
    timeouts: u64,
    arrived: u64,
    repeated: u64,
}

/// The outcome of a frame so far.
#[derive(Clone, Copy, Debug, Default)]
struct FrameRecord {
    put_in: bool,
    lost: bool,
    delivered: bool,
    failed: Option<Failure>,
}

impl ReportedEvents {
    pub(super) fn new(network: &Network) -> Self {
        let clock = network.clock();
        let end = network.end(clock);
        let shaped = |link: LinkIndex| {
            network.vcs.iter().any(|vc| {
                let part = network.atm_part(vc);
                vc.path[part.start] == link && (part.start > 0 || vc.abr.is_some())
            })
        };
        Self {
            ports: ti_vec![AtPort::default(); network.links.len()],
            is_shaped: network.links.keys().map(shaped).collect(),
            flows: ti_vec![OfFlow::default(); network.flows.len()],
            requests: BTreeMap::new(),
            of_requests: BTreeMap::new(),
            completed: BTreeSet::new(),
            closed: BTreeSet::new(),
            rates: BTreeMap::new(),
            running: BTreeSet::new(),
            frames: BTreeMap::new(),
            at_memories: BTreeMap::new(),
            just_refused: None,
            by_memory: BTreeMap::new(),
            arriving: BTreeMap::new(),
            memory_of: network
                .memories
                .iter_enumerated()
                .flat_map(|(number, memory)| memory.ports.iter().map(move |&port| (port, number)))
                .collect(),
            occupancies: network.memories.iter().map(|_| Occupancy::default()).collect(),
            ends: Vec::new(),
            now: Time::default(),
            step: Span(((end - Time::default()).0 / 23).max(1)),
            next: Time::default(),
            end,
            delimits: network.aal5.framing == Framing::Packets,
            takes_places: network.links.keys().any(|link| network.stores(link) == Some(PacketAdmission::Fits)),
            is_whole: network.links.iter_enumerated().all(|(number, link)| {
                let sends = network.nodes[link.from].kind == NodeKind::Host;
                link.losses.is_empty() && (sends || network.stores(number).is_some())
            }),
            overtaken: network
                .links
                .keys()
                .filter(|&link| {
                    let link = &network.links[link];
                    !link.late.is_empty() || link.changes().reordering.is_some()
                })
                .collect(),
            wrong: None,
        }
    }

    /// Returns the numbers of a port after the events so far, in the order of [`numbers`].
    pub(super) fn numbers(&self, link: LinkIndex) -> Numbers {
        let port = &self.ports[link];
        numbers(&port.counters(), port.waiting(), port.largest)
    }

    fn must(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.get_or_insert_with(what);
        }
    }

    /// Returns the sums of a flow, or of the connection of an open request.
    fn of(&mut self, flow: FlowIndex) -> &mut OfFlow {
        if flow < self.flows.next_key() {
            return &mut self.flows[flow];
        }
        let is_open = self.requests.contains_key(&flow) && !self.closed.contains(&flow);
        self.must(is_open, || format!("{flow:?} is not open"));
        self.of_requests.entry(flow).or_default()
    }

    fn on_request(&mut self, RequestEvent { flow, step }: RequestEvent) {
        let is_first = match step {
            RequestStep::Opened { group, number, .. } => {
                self.of_requests.insert(flow, OfFlow::default());
                self.requests.insert(flow, (group, number)).is_none()
            }
            RequestStep::Completed => self.completed.insert(flow),
            RequestStep::Closed => {
                let runs = self.running.iter().any(|&(of, _)| of == flow);
                self.must(!runs, || format!("a timer of {flow:?} is still running"));
                self.completed.contains(&flow) && self.closed.insert(flow)
            }
        };
        self.must(is_first, || format!("{flow:?}: {step:?} is inconsistent with earlier events"));
    }

    fn on_segment(&mut self, SegmentEvent { flow, vc, frame, step, .. }: SegmentEvent) {
        let of = self.of(flow);
        match step {
            SegmentStep::Sent { .. } => of.sent += 1,
            SegmentStep::Retransmitted { .. } => {
                of.sent += 1;
                of.retransmitted += 1;
            }
            SegmentStep::Arrived { kind, .. } => {
                of.arrived += 1;
                of.repeated += u64::from(kind == celltrain_core::events::ArrivalKind::Repeated);
            }
            SegmentStep::AckSent { .. } | SegmentStep::Acknowledged { .. } | SegmentStep::Handshake(_) => {}
        }
        let arrives = matches!(
            step,
            SegmentStep::Arrived { .. }
                | SegmentStep::Acknowledged { .. }
                | SegmentStep::Handshake(HandshakeStep::SynArrived | HandshakeStep::SynAckArrived)
        );
        if !arrives {
            let fate = self.frames.entry((vc, frame)).or_default();
            let is_first = !std::mem::replace(&mut fate.put_in, true);
            self.must(is_first, || format!("{frame:?} of {vc:?} enters the network twice"));
        }
    }

    fn on_timer(&mut self, TimerEvent { flow, timer, step }: TimerEvent) {
        if (timer, step) == (Timer::Retransmission, TimerStep::Expired) {
            self.of(flow).timeouts += 1;
        }
        let key = (flow, timer as u8);
        let (unlike_before, runs) = match step {
            TimerStep::Started { left } => (!self.running.insert(key), left > 0),
            TimerStep::Restarted { left } => (!self.running.contains(&key), left > 0),
            TimerStep::Expired | TimerStep::Stopped => (!self.running.remove(&key), true),
        };
        self.must(!unlike_before && runs, || {
            format!("{timer:?} of {flow:?}: {step:?} is inconsistent with earlier events")
        });
    }

    fn on_frame(&mut self, FrameEvent { vc, frame, step }: FrameEvent) {
        let fate = self.frames.entry((vc, frame)).or_default();
        let (was, already) = (*fate, fate.delivered || fate.failed.is_some());
        match step {
            FrameStep::Admitted(_) | FrameStep::Marked(_) => {}
            FrameStep::Refused(judged) => {
                fate.lost = true;
                self.ports[judged.link].refused_frames += 1;
                self.by_memory.insert((judged.link, vc), self.just_refused == Some((vc, frame)));
            }
            FrameStep::DroppedAtHead(judged) => {
                fate.lost = true;
                self.ports[judged.link].refused_frames += 1;
                // The memory may have refused a later frame of the VC that is still arriving.
                if self.arriving.get(&(judged.link, vc)) == Some(&frame) {
                    self.by_memory.insert((judged.link, vc), false);
                }
            }
            FrameStep::Cut { link, .. } => {
                fate.lost = true;
                self.ports[link].cut_frames += 1;
            }
            FrameStep::NoRoom(judged) => {
                fate.lost = true;
                self.ports[judged.link].cut_frames += 1;
                self.ports[judged.link].no_room_frames += 1;
            }
            FrameStep::LostJoined { .. } => fate.lost = true,
            FrameStep::LostOnLink { link, .. } => {
                fate.lost = true;
                self.ports[link].cut_on_link += 1;
            }
            FrameStep::Dropped { link, rate_fell, .. } => {
                fate.lost = true;
                let port = &mut self.ports[link];
                port.dropped_frames += u64::from(rate_fell);
                port.cut_frames += u64::from(!rate_fell);
            }
            FrameStep::Delivered => {
                fate.delivered = true;
                self.must(!already && !was.lost, || format!("{frame:?} of {vc:?} is delivered after {was:?}"));
            }
            FrameStep::Failed(why) => {
                fate.failed = Some(why);
                let is_explained = match why {
                    Failure::Incomplete => was.lost,
                    Failure::Joined => !self.delimits,
                    Failure::Damaged => true,
                };
                // A sender may damage a packet itself, so the packet may fail even if no port damaged it.
                let fits = !already && is_explained && (why == Failure::Damaged || !self.is_whole);
                self.must(fits, || format!("{frame:?} of {vc:?} fails, {why:?}, after {was:?}"));
            }
        }
    }

    fn on_cell(&mut self, CellEvent { link, vc, step, frame, rm, .. }: CellEvent) {
        let by_memory = self.by_memory.get(&(link, vc)) == Some(&true);
        let port = &mut self.ports[link];
        if matches!(step, CellStep::Admitted | CellStep::Lost(_)) {
            self.just_refused = None;
        }
        match step {
            CellStep::Arrived => {
                port.arrived += 1;
                if rm.is_none() {
                    self.arriving.insert((link, vc), frame);
                }
            }
            CellStep::Admitted => {
                port.admitted += 1;
                port.largest = port.largest.max(port.waiting());
            }
            CellStep::Departed => port.departed += 1,
            CellStep::PushedOut => port.pushed_out += 1,
            CellStep::Dropped | CellStep::DroppedAtHead => port.dropped += 1,
            CellStep::Lost(Loss::NoRoom { cuts }) => {
                port.no_room += 1;
                port.first_lost += u64::from(cuts);
            }
            CellStep::Lost(Loss::WithFrame) if by_memory => port.by_memory += 1,
            CellStep::Lost(Loss::WithFrame) => port.with_frame += 1,
            CellStep::Lost(Loss::WithRest) => port.with_rest += 1,
            CellStep::LostOnLink(_) => port.lost_on_link += 1,
            CellStep::Marked | CellStep::Tagged => {}
        }
        if let Some(&memory) = self.memory_of.get(&link) {
            let occupancy = &mut self.occupancies[memory];
            let cells = occupancy.cells;
            match step {
                CellStep::Admitted => occupancy.change(cells + 1, self.now),
                CellStep::Departed | CellStep::PushedOut | CellStep::DroppedAtHead => {
                    occupancy.change(cells - 1, self.now);
                }
                _ => {}
            }
        }
    }

    /// Checks that every frame has a known outcome, unless the frame was lost or no later frame of its VC has arrived.
    fn outcomes(&self) -> Result<(), String> {
        let mut latest_end: BTreeMap<VcIndex, FrameNumber> = BTreeMap::new();
        for (&(vc, frame), fate) in &self.frames {
            if !fate.put_in {
                return Err(format!("{frame:?} of {vc:?} never entered the network: {fate:?}"));
            }
            if fate.delivered || fate.failed.is_some() {
                latest_end.insert(vc, frame);
            }
            if fate.failed == Some(Failure::Joined) {
                let before = self.frames.range(..(vc, frame)).rev();
                let is_explained = fate.lost || self.frames.values().any(|other| other.lost && other.failed.is_none());
                if !is_explained {
                    let before: Vec<_> = before.take(3).collect();
                    return Err(format!("{frame:?} of {vc:?} was joined with a frame that was not lost: {before:?}"));
                }
            }
        }
        for (&(vc, frame), fate) in &self.frames {
            let ended = fate.delivered || fate.failed.is_some() || fate.lost;
            if !ended && self.overtaken.is_empty() && latest_end.get(&vc).is_some_and(|&latest| latest > frame) {
                return Err(format!("{frame:?} of {vc:?} has no outcome, but a later frame has: {fate:?}"));
            }
        }
        Ok(())
    }
}

impl Probe for ReportedEvents {
    fn next_snapshot(&self) -> Option<Time> {
        (self.next <= self.end).then_some(self.next)
    }

    fn snapshot(&mut self, now: Time, view: &NetworkView<'_>) {
        self.next = now + self.step;
        for link in self.ports.keys() {
            // Skip the fast engine, which emits no cell events.
            if self.ports[link].arrived > 0 {
                let (waiting, told) = (view.queues.occupancy(link), self.ports[link].waiting());
                self.must(u64::from(waiting) == told, || {
                    format!("{link:?} at {now:?}: {waiting} cells wait, but {told} were reported")
                });
            }
        }
    }
}

impl Observer for ReportedEvents {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        let before = self.now;
        self.must(now >= before, || format!("{event:?} at {now:?} is reported after {before:?}"));
        self.now = now;
        match event {
            Event::Segment(event) => self.on_segment(event),
            Event::Timer(event) => self.on_timer(event),
            Event::Rate(RateEvent { vc, before, after, .. }) => {
                let was = self.rates.insert(vc, after);
                self.must(before != after && was.is_none_or(|was| was == before), || {
                    format!("{was:?}, then {event:?}")
                });
            }
            Event::Frame(event) => self.on_frame(event),
            Event::Cell(event) => self.on_cell(event),
            Event::Request(event) => self.on_request(event),
            Event::Memory(MemoryEvent { memory, queue, step, .. }) => {
                let counts = self.at_memories.entry((memory, queue)).or_default();
                match step {
                    MemoryStep::Refused { vc, frame, .. } => {
                        counts.refused += 1;
                        self.just_refused = Some((vc, frame));
                    }
                    MemoryStep::Paused => counts.pauses += 1,
                    MemoryStep::Resumed | MemoryStep::Deadlocked => {}
                }
            }
        }
        if matches!(event, Event::Segment(_) | Event::Timer(_) | Event::Request(_)) {
            self.ends.push((now, event));
        }
    }
}
