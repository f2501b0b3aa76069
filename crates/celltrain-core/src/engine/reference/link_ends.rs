//! Ends of links: losses, delays of packets, and forwarding to the next port or host.

use std::cmp::Reverse;

use typed_index_collections::{TiVec, ti_vec};

use super::event_sink::event_sink;
use super::{AtEnd, Engine, Event, PortArrival, What};
use crate::cell::Cell;
use crate::delay_line::DelayLine;
use crate::events::CellStep;
use crate::index::LinkIndex;
use crate::link_loss::{Fate, LinkLosses, LossyIndex};
use crate::network::{Network, Next, Routing};
use crate::probe::Probe;
use crate::units::{Clock, Time};

/// The losses and delays of links that have any.
pub(super) struct LinkEnds {
    pub(super) losses: TiVec<LossyIndex, LinkLosses>,
    /// The delay lines of links that delay packets.
    pub(super) lines: TiVec<LossyIndex, Option<Box<DelayLine>>>,
    /// Time of each delay line's next event, if the event is in the list.
    line_events: TiVec<LossyIndex, Option<Time>>,
    lossy: TiVec<LinkIndex, Option<LossyIndex>>,
}

impl LinkEnds {
    pub(super) fn new(network: &Network, routing: &Routing, clock: Clock) -> Self {
        let losses = network.losses(routing, clock);
        let mut lossy = ti_vec![None; network.links.len()];
        for (number, of_link) in losses.iter_enumerated() {
            lossy[of_link.link] = Some(number);
        }
        let (lines, line_events) = (network.delay_lines(routing, clock), ti_vec![None; losses.len()]);
        Self { losses, lines, line_events, lossy }
    }
}

impl Engine<'_> {
    /// Handles a cell that reaches the end of a link.
    pub(super) fn arrive(&mut self, link: LinkIndex, cell: Cell, now: Time, probe: &mut impl Probe) {
        let Some(number) = self.link_ends.lossy[link] else { return self.pass_on(link, cell, now, probe) };
        let vc = self.routing.vcs[link][cell.label()];
        match self.link_ends.losses[number].take(cell, now, || self.end_systems.segment(vc, cell.frame)) {
            Fate::Lost(loss) => event_sink!(self, now, probe).lost_on_link(link, cell, loss),
            Fate::Passes if self.link_ends.lines[number].is_none() => self.pass_on(link, cell, now, probe),
            fate @ (Fate::Passes | Fate::InOrder(_)) => self.move_line(link, Some((cell, fate)), now, probe),
            fate @ Fate::Delayed(_) => {
                self.end_systems.delay(vc, cell.frame);
                self.move_line(link, Some((cell, fate)), now, probe);
            }
        }
    }

    /// Advances the delay line at the end of a link to `now`. If `entering` is given, that cell enters the line.
    pub(super) fn move_line(
        &mut self,
        link: LinkIndex,
        entering: Option<(Cell, Fate)>,
        now: Time,
        probe: &mut impl Probe,
    ) {
        let number = self.link_ends.lossy[link].expect("the link has rules");
        let delayed = self.link_ends.lines[number].as_mut().expect("the link has a delay line");
        let vcs = &self.routing.vcs[link];
        let mut released = |label, frame| self.end_systems.release(vcs[label], frame);
        match entering {
            Some((cell, fate)) => delayed.enter(cell, fate, now, &mut released),
            None => delayed.advance(now, &mut released),
        }
        let leaving = delayed.take(now);
        let event = &mut self.link_ends.line_events[number];
        if let Some(time) = delayed.next_action().filter(|&time| event.is_none_or(|other| other <= now || time < other))
        {
            *event = Some(time);
            self.events.push(Reverse(Event { time, what: What::AtEnd(link, AtEnd::Line), cell: Cell::NONE }));
        }
        if let Some(cell) = leaving {
            self.pass_on(link, cell, now, probe);
        }
    }

    /// Handles a cell that has reached the end of a link and is not lost.
    fn pass_on(&mut self, link: LinkIndex, cell: Cell, now: Time, probe: &mut impl Probe) {
        let vc = self.routing.vcs[link][cell.label()];
        if self.rate_control.ends(vc, link) {
            if cell.is_rm() {
                self.now.at_ends.push((vc, cell.frame));
                return;
            }
            self.rate_control.on_data_end(vc, cell.efci());
        }
        match self.routing.next[link][cell.label()] {
            Next::Host { vc } => self.now.at_hosts.push((vc, cell)),
            Next::Port { link: port, label } => {
                if let Some(place) = self.rate_control.allocator_at(link, cell.label()).filter(|_| cell.is_rm()) {
                    self.now.passing.push((vc, cell.frame, place));
                }
                let input = self.routing.input[link];
                let polices_here = self.edge.polices_at(vc, link);
                let came_tagged = cell.tagged();
                let cell = if polices_here { self.edge.on_cell(vc, now, cell) } else { cell }.relabelled(label);
                if cell.tagged() != came_tagged {
                    event_sink!(self, now, probe).cell(port, cell, CellStep::Tagged);
                }
                self.now.at_ports.push(PortArrival { port, input, vc, cell });
            }
        }
    }
}
