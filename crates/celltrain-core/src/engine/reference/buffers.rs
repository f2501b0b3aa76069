//! The buffers of contended ports: each port's own, or a memory that ports share.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::shared_memory::SharedMemory;
use crate::cancellation::{CancellationToken, Interrupted, all};
use crate::cell::Cell;
use crate::events::{Judged, MemoryEvent};
use crate::index::{LinkIndex, MemoryIndex};
use crate::marking::{Counted, Marker};
use crate::network::{Link, LinkTimes, Network, Routing};
use crate::policy::formula::PortInfo;
use crate::port::{Port, PortEvent};
use crate::rng::Stream;
use crate::tie::TieBreaker;
use crate::units::{Clock, Time};

/// An event at a buffer.
pub(super) enum BufferEvent<'a> {
    /// An event at the port of a link, with the number of cells that waited at the port.
    Port(LinkIndex, u32, PortEvent<'a>),
    /// An event of a memory.
    Memory(MemoryEvent),
    /// A memory has room for the first cell of a frame, or refuses the whole frame.
    Frame { admitted: bool, judged: Judged },
}

/// Receives events as they happen.
pub(super) type Emit<'a> = dyn FnMut(BufferEvent<'_>) + 'a;

/// The ports of a run, by link.
pub(super) type Ports = TiSlice<LinkIndex, Port>;

/// The interface between the engine and a buffer.
pub(super) trait Buffering {
    /// Offers a cell that arrives at `now` to a port. `length` gives the number of cells in its packet.
    fn offer(
        &mut self,
        ports: &mut Ports,
        link: LinkIndex,
        cell: Cell,
        length: &dyn Fn() -> u32,
        now: Time,
        emit: &mut Emit<'_>,
    );

    /// Records that a port has handed a cell to its transmitter.
    fn leave(&mut self, link: LinkIndex, cell: Cell, now: Time, emit: &mut Emit<'_>);

    /// Returns the number of cells that a port, where `at_port` cells wait, compares with its marking thresholds.
    fn counted(&self, of: Counted, link: LinkIndex, cell: Cell, at_port: u32) -> u32;

    /// Returns the order of cells that arrive at the same instant.
    fn ties(&mut self) -> &mut TieBreaker;
}

/// The buffer of one port.
struct OwnBuffer {
    ties: TieBreaker,
}

impl Buffering for OwnBuffer {
    fn offer(
        &mut self,
        ports: &mut Ports,
        link: LinkIndex,
        cell: Cell,
        length: &dyn Fn() -> u32,
        now: Time,
        emit: &mut Emit<'_>,
    ) {
        let port = &mut ports[link];
        let occupancy = port.occupancy();
        let emit = |event: PortEvent<'_>| emit(BufferEvent::Port(link, occupancy, event));
        if port.stores().is_some() {
            port.store_observed(cell, length, now, emit);
        } else {
            port.offer_observed(cell, now, emit);
        }
    }

    fn leave(&mut self, _link: LinkIndex, _cell: Cell, _now: Time, _emit: &mut Emit<'_>) {}

    fn counted(&self, _of: Counted, _link: LinkIndex, _cell: Cell, at_port: u32) -> u32 {
        at_port
    }

    fn ties(&mut self) -> &mut TieBreaker {
        &mut self.ties
    }
}

pub(super) struct Buffers<'a> {
    pub(super) ports: TiVec<LinkIndex, Port>,
    markers: TiVec<LinkIndex, Option<Marker>>,
    own: TiVec<LinkIndex, OwnBuffer>,
    pub(super) memories: TiVec<MemoryIndex, SharedMemory<'a>>,
    /// The memory of each port that shares one.
    in_memory: TiVec<LinkIndex, Option<MemoryIndex>>,
}

impl<'a> Buffers<'a> {
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub(super) fn new(
        network: &'a Network,
        routing: &Routing,
        clock: Clock,
        token: &CancellationToken<'_>,
    ) -> Result<Self, Interrupted> {
        let stream = |link: LinkIndex, purpose: &str| {
            Stream::new(network.seed, &format!("port/{}/{purpose}", network.links[link].name))
        };
        let port = |(index, link): (LinkIndex, &Link)| {
            let vcs = routing.vcs[index].len();
            token.tick(vcs)?;
            let mut policy = network.policy(routing, index);
            policy.at_port(&PortInfo::of(&link.name, link.buffer, link.rate, clock));
            let queues = link.scheduler.build(&network.vc_kinds(routing, index));
            let port = Port::new(link.buffer, vcs, policy, stream(index, "policy"));
            Ok(port
                .merging(&routing.merging[index])
                .scheduled(queues)
                .framed(network.aal5.framing)
                .storing(network.stores(index)))
        };
        let times = LinkTimes::of(network, clock);
        let own = |(index, link): (LinkIndex, &Link)| {
            let cell_times = routing.inputs[link.from].iter().map(|&from| times[from].cell_time);
            OwnBuffer { ties: TieBreaker::new(network.tie_order, cell_times, stream(index, "ties")) }
        };
        let mut in_memory = ti_vec![None; network.links.len()];
        for (number, memory) in network.memories.iter_enumerated() {
            memory.ports.iter().for_each(|&port| in_memory[port] = Some(number));
        }
        Ok(Self {
            ports: all(network.links.iter_enumerated().map(port))?.into(),
            markers: network.links.keys().map(|link| network.marker(link)).collect(),
            own: network.links.iter_enumerated().map(own).collect(),
            memories: network.memories.keys().map(|memory| SharedMemory::new(memory, network, routing)).collect(),
            in_memory,
        })
    }

    /// Returns the buffer of a port.
    pub(super) fn of(&mut self, port: LinkIndex) -> &mut dyn Buffering {
        Self::select(&mut self.own, &mut self.memories, self.in_memory[port], port)
    }

    fn select<'b>(
        own: &'b mut TiSlice<LinkIndex, OwnBuffer>,
        memories: &'b mut TiSlice<MemoryIndex, SharedMemory<'a>>,
        memory: Option<MemoryIndex>,
        port: LinkIndex,
    ) -> &'b mut (dyn Buffering + 'b) {
        match memory {
            Some(memory) => &mut memories[memory],
            None => &mut own[port],
        }
    }

    /// Offers a cell that arrives at `now` to the buffer of a port. `length` gives the number of cells in its packet.
    pub(super) fn offer(
        &mut self,
        link: LinkIndex,
        cell: Cell,
        length: &dyn Fn() -> u32,
        now: Time,
        emit: &mut Emit<'_>,
    ) {
        let Self { ports, own, memories, in_memory, .. } = self;
        Self::select(own, memories, in_memory[link], link).offer(ports, link, cell, length, now, emit);
    }

    /// Passes a cell to the port's marker, on arrival or at departure. Returns the cell, perhaps marked.
    pub(super) fn mark(&mut self, link: LinkIndex, cell: Cell, on: fn(&mut Marker, Cell, u32) -> Cell) -> Cell {
        let Self { ports, markers, own, memories, in_memory } = self;
        let Some(marker) = &mut markers[link] else { return cell };
        let buffer = Self::select(own, memories, in_memory[link], link);
        let waiting = buffer.counted(marker.of, link, cell, ports[link].occupancy());
        on(marker, cell, waiting)
    }

    /// Returns the first of the ports whose arrivals are ordered together: the first port of the memory, or the port
    /// itself.
    pub(super) fn first_port(&self, port: LinkIndex) -> LinkIndex {
        self.in_memory[port].map_or(port, |memory| self.memories[memory].first_port)
    }

    /// Returns the next time at which a memory policy acts without an arrival or a departure.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.memories.iter().filter_map(|shared| shared.memory.next_time()).min()
    }
}
