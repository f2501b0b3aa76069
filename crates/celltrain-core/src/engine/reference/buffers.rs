//! The buffers of contended ports: a port has its own buffer, or shares a memory with other ports.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::shared_memory::SharedMemory;
use crate::cancellation::{CancellationToken, Interrupted, all};
use crate::cell::Cell;
use crate::departing::Departing;
use crate::departure::FrameArrivals;
use crate::events::{Judged, MemoryEvent};
use crate::index::{LinkIndex, MemoryIndex};
use crate::marking::{Counted, Marker};
use crate::network::{Link, LinkTimes, Network, Routing};
use crate::policy::AtHead;
use crate::policy::formula::PortInfo;
use crate::port::{Port, PortEvent};
use crate::rate_control::RateControl;
use crate::rng::Stream;
use crate::tie::TieBreaker;
use crate::units::{Clock, Time};

/// An event at a port's buffer or at a shared memory.
pub(super) enum BufferEvent<'a> {
    /// An event at the port of a link, with the number of cells that waited at the port.
    Port(LinkIndex, u32, PortEvent<'a>),
    /// An event at a shared memory.
    Memory(MemoryEvent),
    /// The policy of a port marks or drops a frame at the head of the queue.
    AtHead { judged: Judged, fate: AtHead },
    /// A memory has room for the first cell of a frame, or refuses the whole frame.
    Frame { admitted: bool, judged: Judged },
}

/// Callback that receives events as they happen.
pub(super) type Emit<'a> = dyn FnMut(BufferEvent<'_>) + 'a;

/// The ports of a run, by link.
pub(super) type Ports = TiSlice<LinkIndex, Port>;

/// A cell that arrives at a port. `length` gives the number of cells in its packet.
#[derive(Clone, Copy)]
pub(super) struct Arriving<'a> {
    pub(super) link: LinkIndex,
    pub(super) cell: Cell,
    pub(super) length: &'a dyn Fn() -> u32,
}

/// The ports at an instant, and the receiver of events.
pub(super) struct At<'a, 'b> {
    pub(super) now: Time,
    pub(super) ports: &'a mut Ports,
    pub(super) emit: &'a mut Emit<'b>,
}

/// The interface between the engine and a buffer.
pub(super) trait Buffering {
    /// Offers an arriving cell to its port.
    fn offer(&mut self, arriving: Arriving<'_>, at: &mut At<'_, '_>);

    /// Records that a port has passed a cell to its transmitter.
    fn leave(&mut self, _link: LinkIndex, _cell: Cell, _now: Time, _emit: &mut Emit<'_>) {}

    /// Returns the number of cells that a port compares with its marking thresholds. `at_port` cells wait at the port
    /// itself.
    fn counted(&self, _of: Counted, _link: LinkIndex, _cell: Cell, at_port: u32) -> u32 {
        at_port
    }

    /// Returns the tie breaker, which orders cells that arrive at the same instant.
    fn ties(&mut self) -> &mut TieBreaker;
}

/// The buffer of one port.
struct OwnBuffer {
    ties: TieBreaker,
}

impl Buffering for OwnBuffer {
    fn offer(&mut self, Arriving { link, cell, length }: Arriving<'_>, At { now, ports, emit }: &mut At<'_, '_>) {
        let port = &mut ports[link];
        let occupancy = port.occupancy();
        let emit = |event: PortEvent<'_>| emit(BufferEvent::Port(link, occupancy, event));
        if port.stores().is_some() {
            port.store_observed(cell, length, *now, emit);
        } else {
            port.offer_observed(cell, *now, emit);
        }
    }

    fn ties(&mut self) -> &mut TieBreaker {
        &mut self.ties
    }
}

pub(super) struct Buffers<'a> {
    pub(super) ports: TiVec<LinkIndex, Port>,
    /// The markers of ports and of their allocators.
    pub(super) markers: TiVec<LinkIndex, Option<Marker>>,
    /// The frames that wait at each port, including shaped ports.
    pub(super) frames: TiVec<LinkIndex, FrameArrivals>,
    own: TiVec<LinkIndex, OwnBuffer>,
    pub(super) memories: TiVec<MemoryIndex, SharedMemory<'a>>,
    /// The memory of each port that shares a memory.
    in_memory: TiVec<LinkIndex, Option<MemoryIndex>>,
}

impl<'a> Buffers<'a> {
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub(super) fn new(
        network: &'a Network,
        routing: &Routing,
        rate_control: &RateControl,
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
            policy.at_port(&PortInfo::of(network, link, clock));
            let queues = network.service(routing, index);
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
        let marker = |link: LinkIndex| {
            network.marker(link).or_else(|| rate_control.marks_above(link).map(Marker::of_every_cell))
        };
        let mut in_memory = ti_vec![None; network.links.len()];
        for (number, memory) in network.memories.iter_enumerated() {
            memory.ports.iter().for_each(|&port| in_memory[port] = Some(number));
        }
        Ok(Self {
            ports: all(network.links.iter_enumerated().map(port))?.into(),
            markers: network.links.keys().map(marker).collect(),
            frames: routing.vcs.iter().map(|vcs| FrameArrivals::new(vcs.len())).collect(),
            own: network.links.iter_enumerated().map(own).collect(),
            memories: network.memories.keys().map(|memory| SharedMemory::new(memory, network, routing)).collect(),
            in_memory,
        })
    }

    /// Returns the buffer of a port.
    pub(super) fn of(&mut self, port: LinkIndex) -> &mut dyn Buffering {
        Self::select(&mut self.own, &mut self.memories, self.in_memory[port], port)
    }

    /// Returns whether a cell that has just left a port was the port's last cell of a paused group of the port's
    /// memory.
    pub(super) fn was_last_of_paused_group(&self, link: LinkIndex, cell: Cell) -> bool {
        self.in_memory[link]
            .is_some_and(|memory| self.memories[memory].was_last_of_paused_group(link, cell, &self.ports))
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

    /// Offers a cell that arrives at `now` to the buffer of its port.
    pub(super) fn offer(&mut self, arriving: Arriving<'_>, now: Time, emit: &mut Emit<'_>) {
        let Self { ports, frames, own, memories, in_memory, .. } = self;
        let Arriving { link, cell, .. } = arriving;
        let mut has_entered = false;
        let mut emit = |event: BufferEvent<'_>| {
            if let BufferEvent::Port(_, _, PortEvent::Admitted) = event {
                frames[link].enter(cell, now);
                has_entered = true;
            }
            emit(event);
        };
        let mut at = At { now, ports, emit: &mut emit };
        Self::select(own, memories, in_memory[link], link).offer(arriving, &mut at);
        let port = &mut ports[link];
        if has_entered && port.admission_mut().decides_at_head() {
            let waiting = port.occupancy();
            frames[link].decide_on_entry(cell, waiting, now, port.admission_mut());
            port.on_enter(cell, now);
        }
    }

    /// Lets the policy of a port decide about the frame of a cell that would leave the port at `now`.
    pub(super) fn at_head(&mut self, link: LinkIndex, cell: Cell, now: Time, emit: &mut Emit<'_>) -> AtHead {
        let port = &mut self.ports[link];
        if !port.admission_mut().decides_at_head() {
            return AtHead::Send;
        }
        let (occupancy, vc_cells, active_vcs) = (port.occupancy(), port.per_vc()[cell.label()], port.active_vcs());
        let left = port.left_in_queue_of(cell.label());
        self.frames[link].decide(cell, left, now, port.admission_mut(), |head, fate, admission| {
            let policy = admission.policy.head_policy().filter(|_| fate != AtHead::Send);
            if let Some(decision) = policy.map(|policy| policy.explain_head(head)) {
                let judged = Judged { link, occupancy, vc_cells, active_vcs, tagged: cell.tagged(), decision };
                emit(BufferEvent::AtHead { judged, fate });
            }
        })
    }

    /// Returns the number of cells that a port compares with its marking thresholds for a cell.
    pub(super) fn counted(&mut self, link: LinkIndex, cell: Cell) -> u32 {
        let Self { ports, markers, own, memories, in_memory, .. } = self;
        let of = markers[link].as_ref().map_or(Counted::Port, |marker| marker.of);
        Self::select(own, memories, in_memory[link], link).counted(of, link, cell, ports[link].occupancy())
    }

    /// Returns a cell that leaves the head of its queue at `now`, with the data for rules that act on such cells.
    pub(super) fn departing(&mut self, link: LinkIndex, cell: Cell, now: Time) -> Departing {
        let waited = self.frames[link].leave(cell, now);
        Departing { cell, left: self.counted(link, cell), waited }
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
