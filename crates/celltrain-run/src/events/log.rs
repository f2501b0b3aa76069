//! The probe that records events.

use std::collections::BTreeMap;
use std::sync::Arc;

use typed_index_collections::{TiVec, ti_vec};

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{
    CellEvent, Event, FrameEvent, MemoryStep, Observer, RateEvent, RequestEvent, RequestStep, SegmentEvent, TimerEvent,
};
use celltrain_core::index::{FlowIndex, LinkIndex, MemoryIndex, MergeIndex, VcIndex};
use celltrain_core::memory::{QueueConfig, QueueIndex};
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::requests::GroupIndex;
use celltrain_core::tcp::TcpConfig;
use celltrain_core::units::{Clock, Time};

use celltrain_capture::selection::{Selected, Wrong};

use super::choice::Choice;
use super::columns::{Block, ConnectionName, Names, PortVc, Row, Rows};
use super::places::Places;
use super::tables::{CELLS, FRAMES, InPool, MEMORIES, RATES, SEGMENTS, TIMERS};
use super::{KINDS, Kind};

/// Observer that records the selected events and delivers them in blocks.
pub struct Log<'a> {
    kinds: [bool; KINDS.len()],
    chosen: Selected,
    names: Names,
    clock: Clock,
    /// For each flow, the tick of its retransmission clock, in seconds.
    ticks: TiVec<FlowIndex, f64>,
    /// For each group of requests, the tick of its retransmission clocks, in seconds.
    group_ticks: TiVec<GroupIndex, f64>,
    /// The open connections of requests, each with the request's group and its number in the group.
    requests: BTreeMap<FlowIndex, (GroupIndex, u32)>,
    flow_of: TiVec<VcIndex, Option<FlowIndex>>,
    /// For each VC that merges with other VCs, the merge and the links after the merge.
    merged: TiVec<VcIndex, Option<(MergeIndex, Vec<LinkIndex>)>>,
    places: Places,
    segments: Rows<SegmentEvent>,
    timers: Rows<TimerEvent>,
    frames: Rows<FrameEvent>,
    cells: Rows<CellEvent>,
    rates: Rows<RateEvent>,
    memories: Rows<InPool>,
    /// For each memory and queue: the index of the queue's pool, and the number of cells in the pool's shared part.
    pools: TiVec<MemoryIndex, TiVec<QueueIndex, (u32, u32)>>,
    sink: &'a mut dyn FnMut(Block) -> bool,
    has_failed: bool,
}

impl<'a> Log<'a> {
    /// Creates a log of the events that `choice` selects in a run of this network. `sink` receives the blocks.
    /// Recording ends when `sink` returns false.
    ///
    /// # Errors
    /// Returns an error if a port, VC or flow does not exist.
    pub fn new(choice: &Choice, network: &Network, sink: &'a mut dyn FnMut(Block) -> bool) -> Result<Self, Wrong> {
        let chosen = choice.of.of(network)?;
        let kinds = KINDS.map(|(kind, ..)| choice.kinds().contains(&kind));
        let list = |names: &mut dyn Iterator<Item = &String>| -> Arc<[String]> { names.cloned().collect() };
        let names = Names {
            flows: list(&mut network.flows.iter().map(|flow| &flow.name)),
            groups: network.requests.groups.iter().map(|group| group.name.clone()).collect(),
            vcs: list(&mut network.vcs.iter().map(|vc| &vc.name)),
            port_vcs: list(
                &mut network.vcs.iter().map(|vc| &vc.name).chain(network.merges.iter().map(|merge| &merge.name)),
            ),
            ports: list(&mut network.links.iter().map(|link| &link.name)),
            pools: (network.memories.iter())
                .flat_map(|memory| memory.pools.iter().map(move |pool| format!("{}/{}", memory.name, pool.name)))
                .collect(),
        };
        let mut before = 0;
        let pools = network.memories.iter().map(|memory| {
            let of = |queue: &QueueConfig| (before + whole(usize::from(queue.pool)), memory.pools[queue.pool].cells);
            let pools = memory.queues.iter().map(of).collect();
            before += whole(memory.pools.len());
            pools
        });
        let merged = network.vcs.iter().map(|vc| {
            let behind = vc.path.iter().copied().filter(|&link| network.merged_at(vc, link).is_some());
            vc.merge.map(|merge| (merge, behind.collect()))
        });
        let vcs = whole(network.vcs.len());
        let mut flow_of: TiVec<VcIndex, Option<FlowIndex>> = ti_vec![None; network.vcs.len()];
        for (number, flow) in network.flows.iter_enumerated() {
            for vc in [flow.data_vc, flow.ack_vc] {
                flow_of[vc].get_or_insert(number);
            }
        }
        let seconds = |tcp: &TcpConfig| tcp.options().timer_granularity.picoseconds as f64 / PICOSECONDS_PER_SECOND;
        Ok(Self {
            ticks: network.flows.iter().map(|flow| seconds(&flow.tcp)).collect(),
            group_ticks: network.requests.groups.iter().map(|group| seconds(&group.tcp)).collect(),
            requests: BTreeMap::new(),
            clock: network.clock(),
            flow_of,
            merged: merged.collect(),
            places: Places::default(),
            segments: Rows::new(Kind::Segments, SEGMENTS, vcs),
            timers: Rows::new(Kind::Timers, TIMERS, vcs),
            frames: Rows::new(Kind::Frames, FRAMES, vcs),
            cells: Rows::new(Kind::Cells, CELLS, vcs),
            rates: Rows::new(Kind::Rates, RATES, vcs),
            memories: Rows::new(Kind::Memories, MEMORIES, vcs),
            pools: pools.collect(),
            kinds,
            chosen,
            names,
            sink,
            has_failed: false,
        })
    }

    /// Returns whether the sink has ended the recording by returning false.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Delivers the rows that have not been delivered yet.
    pub fn finish(&mut self) {
        let Self { names, segments, timers, frames, cells, rates, memories, .. } = self;
        let left = [
            segments.take(names),
            timers.take(names),
            frames.take(names),
            cells.take(names),
            rates.take(names),
            memories.take(names),
        ];
        for block in left.into_iter().flatten() {
            self.hand_over(Some(block));
        }
    }

    fn hand_over(&mut self, block: Option<Block>) {
        if let Some(block) = block.filter(|_| !self.has_failed) {
            self.has_failed = !(self.sink)(block);
        }
    }

    fn row<E>(&self, now: Time, event: E, flow: Option<FlowIndex>) -> Row<E> {
        let (flow, tick_s) = match (flow, flow.and_then(|flow| self.ticks.get(flow))) {
            (Some(flow), Some(&tick_s)) => (Some(ConnectionName::Flow(flow)), tick_s),
            (Some(flow), None) => {
                let (group, number) = self.requests[&flow];
                (Some(ConnectionName::Request(group, number)), self.group_ticks[group])
            }
            (None, _) => (None, 0.0),
        };
        Row { event, time_s: self.clock.seconds(now), flow, tick_s, number: 0, port_vc: None, index: None }
    }

    /// Returns the number of a frame without the bits that identify the branch of a merge.
    fn number(&self, vc: VcIndex, frame: FrameNumber) -> u32 {
        if self.merged[vc].is_some() { frame.within_branch() } else { frame.number() }
    }

    fn port_vc(&self, vc: VcIndex, link: LinkIndex) -> PortVc {
        match &self.merged[vc] {
            Some((merge, behind)) if behind.contains(&link) => PortVc::Merged(*merge),
            _ => PortVc::Own(vc),
        }
    }

    fn keeps(&self, vc: VcIndex) -> bool {
        self.chosen.vcs[vc]
    }

    /// Updates the names of open requests.
    fn on_request(&mut self, RequestEvent { flow, step }: RequestEvent) {
        match step {
            RequestStep::Opened { group, number, .. } => drop(self.requests.insert(flow, (group, number))),
            RequestStep::Closed => drop(self.requests.remove(&flow)),
            RequestStep::Completed => {}
        }
    }
}

impl Probe for Log<'_> {}

impl Observer for Log<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        // The index of a cell in its frame depends on earlier cells, including cells before the window.
        let index = match &event {
            Event::Cell(cell) if self.kinds[Kind::Cells as usize] && self.chosen.cells[cell.link] => {
                self.places.of(cell)
            }
            _ => None,
        };
        if let Event::Request(request) = event {
            self.on_request(request);
        }
        let [from, to] = self.chosen.window;
        if now < from || now >= to || self.has_failed {
            return;
        }
        let has = |kind: Kind| self.kinds[kind as usize];
        let block = match event {
            Event::Segment(event) if has(Kind::Segments) && self.chosen.keeps(event.flow) => {
                let number = self.number(event.vc, event.frame);
                let row = Row { number, ..self.row(now, event, Some(event.flow)) };
                self.segments.push(row, &self.names)
            }
            Event::Timer(event) if has(Kind::Timers) && self.chosen.keeps(event.flow) => {
                let row = self.row(now, event, Some(event.flow));
                self.timers.push(row, &self.names)
            }
            Event::Frame(event) if has(Kind::Frames) => {
                if !self.keeps(event.vc) {
                    return;
                }
                let link = event.step.link();
                if link.is_some_and(|link| !self.chosen.frames[link]) {
                    return;
                }
                let number = self.number(event.vc, event.frame);
                let port_vc = link.map(|link| self.port_vc(event.vc, link));
                let row = Row { number, port_vc, ..self.row(now, event, self.flow_of[event.vc]) };
                self.frames.push(row, &self.names)
            }
            Event::Cell(event) if has(Kind::Cells) && self.chosen.cells[event.link] => {
                if !self.keeps(event.vc) {
                    return;
                }
                let is_frame = event.rm.is_none();
                let number = if is_frame { self.number(event.vc, event.frame) } else { event.frame.number() };
                let port_vc = Some(self.port_vc(event.vc, event.link));
                let row = Row { number, port_vc, index, ..self.row(now, event, self.flow_of[event.vc]) };
                self.cells.push(row, &self.names)
            }
            Event::Rate(event) if has(Kind::Rates) => {
                if !self.keeps(event.vc) {
                    return;
                }
                let row = self.row(now, event, self.flow_of[event.vc]);
                self.rates.push(row, &self.names)
            }
            Event::Memory(event) if has(Kind::Memories) => {
                let refused = match event.step {
                    MemoryStep::Refused { vc, frame, .. } if self.keeps(vc) => Some((vc, frame)),
                    MemoryStep::Refused { .. } => return,
                    MemoryStep::Paused | MemoryStep::Resumed | MemoryStep::Deadlocked => None,
                };
                let number = refused.map_or(0, |(vc, frame)| self.number(vc, frame));
                let flow = refused.and_then(|(vc, _)| self.flow_of[vc]);
                let (pool, cells) = self.pools[event.memory][event.queue];
                let row = Row { number, ..self.row(now, InPool { event, pool, cells }, flow) };
                self.memories.push(row, &self.names)
            }
            _ => None,
        };
        self.hand_over(block);
    }
}

const PICOSECONDS_PER_SECOND: f64 = 1e12;

fn whole(index: usize) -> u32 {
    u32::try_from(index).expect("the parts of a network are fewer than 2^31")
}
