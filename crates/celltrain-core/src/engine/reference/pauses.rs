//! Pauses of links, which lossless priority groups request.
//!
//! With packet framing, pauses follow IEEE 802.3 annex 31B: ports send packets whole, so neither a pause nor a pause
//! frame interrupts one. A pause frame waits for the packet that its port is sending, takes 64 bytes of the link, and
//! takes effect a response time after it arrives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use typed_index_collections::{TiVec, ti_vec};

use super::buffers::{BufferEvent, Buffers};
use super::event_sink::event_sink;
use super::{Engine, Event, What};
use crate::cell::Cell;
use crate::events::MemoryEvent;
use crate::index::{Label, LinkIndex};
use crate::memory::{PausedGroup, PausedGroups, deadlock};
use crate::network::{Graph, Link, LinkTimes, Network, PAUSE_FRAME_BITS};
use crate::port::{PauseFrames, PauseOrder, Port};
use crate::probe::Probe;
use crate::units::Time;

/// The pauses of all links.
pub(super) struct PauseState {
    /// For each link, the priorities that pause frames have stopped, one bit each.
    stopped: TiVec<LinkIndex, u8>,
    /// Pause frames as in IEEE 802.3, if the network uses them.
    frames: Option<PauseFrames>,
    /// Number of pause frames sent.
    sent: u64,
    /// True if a change at this instant may complete a deadlock.
    changed: bool,
    /// The first deadlock found, if any.
    pub(super) deadlock: Option<(Time, Vec<PausedGroup>)>,
}

impl PauseState {
    pub(super) fn new(network: &Network) -> Self {
        let links = network.links.len();
        let frames = network.has_pause_frames().then(|| PauseFrames::new(links));
        Self { stopped: ti_vec![0; links], frames, sent: 0, changed: false, deadlock: None }
    }

    /// Returns the number of pause frames sent so far, and counts one more. Frames of the same instant take effect in the
    /// order in which they were sent, so the latest wins.
    fn next_number(&mut self) -> u64 {
        self.sent += 1;
        self.sent - 1
    }

    /// Records that a pause frame has reached the port of a link.
    pub(super) fn arrive(&mut self, link: LinkIndex, priority: u8, stops: bool) {
        let mask = 1 << priority;
        let stopped = &mut self.stopped[link];
        *stopped = if stops { *stopped | mask } else { *stopped & !mask };
        self.changed = true;
    }

    /// Records that a port has passed a cell to its transmitter. If the port holds no other cell of a paused group, the
    /// group may wait only at stopped ports from now on.
    pub(super) fn on_departure(&mut self, link: LinkIndex, cell: Cell, buffers: &Buffers<'_>) {
        let is_any_stopped = || self.stopped.iter().any(|&priorities| priorities != 0);
        self.changed |= buffers.was_last_of_paused_group(link, cell) && is_any_stopped();
    }

    /// Returns whether a pause frame that ends the pause of a group is waiting or on its way.
    fn will_resume(&self, (link, priority): PausedGroup, events: &BinaryHeap<Reverse<Event>>) -> bool {
        let ends = |what| matches!(what, What::Pause { link: of, priority: at, stops: false, .. } if (of, at) == (link, priority));
        events.iter().any(|event| ends(event.0.what))
            || self.frames.as_ref().is_some_and(|frames| frames.will_resume(link, priority))
    }

    /// Passes the next cell of a port to the transmitter.
    pub(super) fn take_cell(
        &mut self,
        link: LinkIndex,
        port: &mut Port,
        priority: impl Fn(Label) -> u8,
    ) -> Option<Cell> {
        let stopped = self.stopped[link];
        let may_go = (stopped != 0).then_some(|label| stopped & (1 << priority(label)) == 0);
        match (&mut self.frames, may_go) {
            (Some(frames), may_go) => {
                let cell = frames.take_cell(link, port, may_go)?;
                // The end of a packet at a stopped port may complete a deadlock.
                self.changed |= stopped != 0 && cell.last_cell();
                Some(cell)
            }
            (None, Some(may_go)) => port.take_unpaused(may_go),
            (None, None) => port.take(),
        }
    }

    /// Looks for groups that pause each other forever. Returns an event for each group of the first such cycle.
    fn look_for_deadlock(
        &mut self,
        buffers: &mut Buffers<'_>,
        events: &BinaryHeap<Reverse<Event>>,
        now: Time,
    ) -> Vec<MemoryEvent> {
        for memory in &mut buffers.memories {
            self.changed |= memory.take_has_removed();
        }
        if !std::mem::take(&mut self.changed) || self.deadlock.is_some() {
            return Vec::new();
        }
        let (ports, memories) = (&buffers.ports, &buffers.memories);
        let mut groups = PausedGroups::new();
        memories.iter().for_each(|memory| memory.add_paused_groups(ports, &mut groups));
        let finishes = |link| self.frames.as_ref().is_some_and(|frames| frames.is_in_packet(link, &ports[link]));
        let is_stopped = |(link, priority): PausedGroup| {
            self.stopped[link] & (1 << priority) != 0 && !finishes(link) && !self.will_resume((link, priority), events)
        };
        let Some(cycle) = deadlock(groups, is_stopped) else { return Vec::new() };
        let event = |&(link, priority)| memories.iter().find_map(|memory| memory.deadlocked(link, priority, now));
        let events = cycle.iter().filter_map(event).collect();
        self.deadlock = Some((now, cycle));
        events
    }
}

impl Engine<'_> {
    /// Ends an instant: lets memory policies act, sends pause frames and looks for deadlocks.
    pub(super) fn act_on_memories(&mut self, now: Time, probe: &mut impl Probe) {
        let Buffers { ports, memories, .. } = &mut self.buffers;
        let mut event_sink = event_sink!(self, now, probe);
        for memory in memories {
            memory.on_time(ports, now, &mut |event| event_sink.buffer(Cell::NONE, &event));
        }
        self.send_pauses(now);
        if self.pauses.frames.is_some() {
            self.serve(now, probe);
        }
        for event in self.pauses.look_for_deadlock(&mut self.buffers, &self.events, now) {
            event_sink!(self, now, probe).buffer(Cell::NONE, &BufferEvent::Memory(event));
        }
    }

    /// Sends the pause frames of this instant to the ports that feed the paused or released groups.
    fn send_pauses(&mut self, now: Time) {
        for memory in &mut self.buffers.memories {
            for (link, priority, stops) in memory.take_pause_frames() {
                if let Some(frames) = &mut self.pauses.frames {
                    let rate = self.network.links[link].rate;
                    let response = memory.pause_response(rate).span(rate, self.clock);
                    let by = Graph::way_back(link);
                    frames.push(by, PauseOrder { link, priority, stops, response });
                    self.now.to_serve.push(by);
                    continue;
                }
                // A pause frame is as long as a cell, and takes the link's delay to travel back.
                let LinkTimes { cell_time, delay } = self.times[link];
                let what = What::Pause { link, priority, number: self.pauses.next_number(), stops };
                self.events.push(Reverse(Event { time: now + cell_time + delay, what, cell: Cell::NONE }));
            }
        }
    }

    /// Starts to send the pause frame that waits at a free port, if no packet is under way. Returns whether the port
    /// has started.
    pub(super) fn send_pause_frame(&mut self, link: LinkIndex, now: Time) -> bool {
        let Some(frames) = &mut self.pauses.frames else { return false };
        let orders = frames.take(link, &self.buffers.ports[link]);
        if orders.is_empty() {
            return false;
        }
        let Link { wire, rate, .. } = self.network.links[link];
        let sent = now + self.clock.sending_time(wire.frame_bits(PAUSE_FRAME_BITS / 8), rate);
        self.transmitting[link] = Some(Cell::NONE);
        self.events.push(Reverse(Event { time: sent, what: What::Sent(link), cell: Cell::NONE }));
        for PauseOrder { link: stopped, priority, stops, response } in orders {
            let what = What::Pause { link: stopped, priority, number: self.pauses.next_number(), stops };
            let time = sent + self.times[link].delay + response;
            self.events.push(Reverse(Event { time, what, cell: Cell::NONE }));
        }
        true
    }
}
