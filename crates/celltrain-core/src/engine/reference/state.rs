//! The state of a run as seen by probes, and the results.

use std::cmp::Reverse;

use typed_index_collections::{TiVec, ti_vec};

use super::{AtEnd, Engine, What};
use crate::cancellation::CancellationToken;
use crate::delay::PortDelays;
use crate::engine::Outcome;
use crate::index::{LinkIndex, MemoryIndex, VcIndex};
use crate::memory::Memory;
use crate::metrics::FinalState;
use crate::port::Port;
use crate::probe::{NetworkView, Queues};
use crate::queue_range::QueueRange;
use crate::units::Time;

impl Engine<'_> {
    pub(super) fn start_ranges(&mut self, links: &[LinkIndex]) {
        for &link in links {
            match self.rate_control.port_mut(link) {
                Some(shaped) => shaped.start_range(),
                None => self.buffers.ports[link].start_range(),
            }
        }
    }

    pub(super) fn view(&self) -> NetworkView<'_> {
        NetworkView { queues: self, rate_control: &self.rate_control, end_systems: &self.end_systems }
    }

    /// Computes the results up to `end`, which the run must have reached.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub(in crate::engine) fn snapshot(&self, end: Time, token: &CancellationToken<'_>) -> Outcome {
        let mut on_links: TiVec<VcIndex, u64> = ti_vec![0; self.network.vcs.len()];
        for Reverse(event) in &self.events {
            if let What::AtEnd(link, AtEnd::Arrival) = event.what {
                let vc = self.routing.vcs[link][event.cell.label()];
                on_links[vc] += 1;
            }
        }
        for (losses, line) in self.link_ends.losses.iter().zip(&self.link_ends.lines) {
            for cell in line.iter().flat_map(|line| line.cells()) {
                on_links[self.routing.vcs[losses.link][cell.label()]] += 1;
            }
        }
        let state = |(link, port): (LinkIndex, &Port)| match self.rate_control.port(link) {
            Some(shaped) => shaped.state(),
            None => port.state(),
        };
        let ports: TiVec<LinkIndex, _> = self.buffers.ports.iter_enumerated().map(state).collect();
        let memories: TiVec<MemoryIndex, _> =
            self.buffers.memories.iter().map(|shared| shared.memory.state(end)).collect();
        let (ports, on_links, memories) = (&ports, &on_links, &memories);
        let &Self { network, ref routing, clock, ref end_systems, ref edge, ref link_ends, ref rate_control, .. } =
            self;
        FinalState {
            network,
            routing,
            clock,
            end,
            ports,
            memories,
            deadlock: self.pauses.deadlock.as_ref(),
            on_ethernet: Some(&self.on_ethernet),
            end_systems,
            on_links,
            losses: &link_ends.losses,
            edge,
            rate_control,
            delays: self.delays.as_ref().map(PortDelays::times),
            token,
        }
        .measure()
    }
}

impl Queues for Engine<'_> {
    fn occupancy(&self, link: LinkIndex) -> u32 {
        match self.rate_control.port(link) {
            Some(shaped) => shaped.occupancy(),
            None => self.buffers.ports[link].occupancy(),
        }
    }

    fn range(&self, link: LinkIndex) -> QueueRange {
        match self.rate_control.port(link) {
            Some(shaped) => shaped.buffer().range(),
            None => self.buffers.ports[link].range(),
        }
    }

    fn per_vc(&self, link: LinkIndex, into: &mut Vec<u32>) {
        match self.rate_control.port(link) {
            Some(shaped) => into.extend(shaped.per_vc()),
            None => into.extend(self.buffers.ports[link].per_vc()),
        }
    }

    fn memory(&self, memory: MemoryIndex) -> &Memory {
        &self.buffers.memories[memory].memory
    }
}
