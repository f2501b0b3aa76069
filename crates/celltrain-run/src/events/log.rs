//! The probe that keeps events.

use std::sync::Arc;

use typed_index_collections::{TiVec, ti_vec};

use celltrain_core::events::{
    CellEvent, Event, FrameEvent, FrameStep, Kind, RateEvent, SegmentEvent, TimerEvent, Watcher,
};
use celltrain_core::index::{FlowIndex, LinkIndex, VcIndex};
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::units::{Clock, Time};

use super::choice::{Choice, Chosen, Wrong};
use super::columns::{Block, Names, Row, Rows};
use super::places::Places;
use super::tables::{CELLS, FRAMES, RATES, SEGMENTS, TIMERS};

/// Keeps the events of a choice, and hands them over block by block.
pub struct Log<'a> {
    chosen: Chosen,
    names: Names,
    clock: Clock,
    /// By flow: seconds between two ticks of its retransmission clock.
    ticks: TiVec<FlowIndex, f64>,
    /// By VC: its flow.
    flow_of: TiVec<VcIndex, Option<FlowIndex>>,
    places: Places,
    segments: Rows<SegmentEvent>,
    timers: Rows<TimerEvent>,
    frames: Rows<FrameEvent>,
    cells: Rows<CellEvent>,
    rates: Rows<RateEvent>,
    sink: &'a mut dyn FnMut(Block) -> bool,
    has_failed: bool,
}

impl<'a> Log<'a> {
    /// Keeps what `choice` asks for of a run of this network. `sink` takes the blocks; when it says no, nothing is kept
    /// from then on.
    ///
    /// # Errors
    /// A port, VC or flow that is not there.
    pub fn new(choice: &Choice, network: &Network, sink: &'a mut dyn FnMut(Block) -> bool) -> Result<Self, Wrong> {
        let chosen = choice.of(network)?;
        let list = |names: &mut dyn Iterator<Item = &String>| -> Arc<[String]> { names.cloned().collect() };
        let names = Names {
            flows: list(&mut network.flows.iter().map(|flow| &flow.name)),
            vcs: list(&mut network.vcs.iter().map(|vc| &vc.name)),
            ports: list(&mut network.links.iter().map(|link| &link.name)),
        };
        let mut flow_of: TiVec<VcIndex, Option<FlowIndex>> = ti_vec![None; network.vcs.len()];
        for (number, flow) in network.flows.iter_enumerated() {
            for vc in [flow.data_vc, flow.ack_vc] {
                flow_of[vc].get_or_insert(number);
            }
        }
        let seconds = |flow: &celltrain_core::network::Flow| {
            flow.tcp.options().timer_granularity.picoseconds as f64 / PICOSECONDS_PER_SECOND
        };
        Ok(Self {
            ticks: network.flows.iter().map(seconds).collect(),
            clock: network.clock(),
            flow_of,
            places: Places::default(),
            segments: Rows::new(Kind::Segments, SEGMENTS),
            timers: Rows::new(Kind::Timers, TIMERS),
            frames: Rows::new(Kind::Frames, FRAMES),
            cells: Rows::new(Kind::Cells, CELLS),
            rates: Rows::new(Kind::Rates, RATES),
            chosen,
            names,
            sink,
            has_failed: false,
        })
    }

    /// Whether the sink has said no.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Hands over what is left.
    pub fn finish(&mut self) {
        let Self { names, segments, timers, frames, cells, rates, .. } = self;
        let left = [segments.take(names), timers.take(names), frames.take(names), cells.take(names), rates.take(names)];
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
        let tick_s = flow.map_or(0.0, |flow| self.ticks[flow]);
        Row { event, time_s: self.clock.seconds(now), flow, tick_s, index: None }
    }

    fn keeps(&self, vc: VcIndex) -> bool {
        self.chosen.vcs[vc]
    }
}

impl Probe for Log<'_> {}

impl Watcher for Log<'_> {
    const WATCHES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        // Where a cell stands in its frame follows from all cells before it.
        let index = match &event {
            Event::Cell(cell) if self.chosen.kinds[Kind::Cells as usize] && self.chosen.cells[cell.link] => {
                self.places.of(cell)
            }
            _ => None,
        };
        let [from, to] = self.chosen.window;
        if now < from || now >= to || self.has_failed {
            return;
        }
        let has = |kind: Kind| self.chosen.kinds[kind as usize];
        let block = match event {
            Event::Segment(event) if has(Kind::Segments) && self.chosen.flows[event.flow] => {
                let row = self.row(now, event, Some(event.flow));
                if self.segments.push(row) { self.segments.take(&self.names) } else { None }
            }
            Event::Timer(event) if has(Kind::Timers) && self.chosen.flows[event.flow] => {
                let row = self.row(now, event, Some(event.flow));
                if self.timers.push(row) { self.timers.take(&self.names) } else { None }
            }
            Event::Frame(event) if has(Kind::Frames) => {
                if !self.keeps(event.vc) {
                    return;
                }
                if link_of(&event).is_some_and(|link| !self.chosen.frames[link]) {
                    return;
                }
                let row = self.row(now, event, self.flow_of[event.vc]);
                if self.frames.push(row) { self.frames.take(&self.names) } else { None }
            }
            Event::Cell(event) if has(Kind::Cells) && self.chosen.cells[event.link] => {
                if !self.keeps(event.vc) {
                    return;
                }
                let row = Row { index, ..self.row(now, event, self.flow_of[event.vc]) };
                if self.cells.push(row) { self.cells.take(&self.names) } else { None }
            }
            Event::Rate(event) if has(Kind::Rates) => {
                if !self.keeps(event.vc) {
                    return;
                }
                let row = self.row(now, event, self.flow_of[event.vc]);
                if self.rates.push(row) { self.rates.take(&self.names) } else { None }
            }
            _ => None,
        };
        self.hand_over(block);
    }
}

/// The link of the port where something happened to a frame; none at a host.
pub(crate) fn link_of(event: &FrameEvent) -> Option<LinkIndex> {
    match event.step {
        FrameStep::Admitted(judged) | FrameStep::Refused(judged) => Some(judged.link),
        FrameStep::Cut { link, .. } | FrameStep::LostJoined { link, .. } | FrameStep::Dropped { link, .. } => {
            Some(link)
        }
        FrameStep::Delivered | FrameStep::Failed(_) => None,
    }
}

const PICOSECONDS_PER_SECOND: f64 = 1e12;
