//! Runs a network on several threads by conservative parallel simulation. Each thread simulates a partition of the
//! network.
//!
//! The length of a window is the lookahead: the shortest time in which a cell gets from one partition to another. A
//! cell that starts within a window arrives in another partition after the window. So once everything before the window
//! is settled, each partition knows all arrivals within it and can simulate it independently. At the end of the window,
//! it sends messages to every other partition and waits for their messages. `docs/design/threads.md` explains why the
//! result is the same, and how much faster it is.

mod routes;

use std::io;
use std::panic;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

use typed_index_collections::{TiSlice, TiVec};

use super::engine::Engine;
use super::fabric::Fabric;
use super::lanes::Delivery;
use super::links::StreamIndex;
use super::partitioning::{ParallelOptions, Partition, Partitioning};
use super::plan::LaneIndex;
use super::port_builder::PortBuilder;
use super::port_plan::PortMode;
use super::port_queue::PortEnd;
use super::train::Arriving;
use crate::cancellation::{CancellationToken, Interrupted};
use crate::contracts::Edge;
use crate::end_systems::EndSystems;
use crate::end_systems::partition::{EndMessages, Ends};
use crate::engine::{Advance, Outcome, Progress};
use crate::index::{FlowIndex, Label, LinkIndex, MemoryIndex};
use crate::link_loss::{LinkLosses, LossyIndex};
use crate::memory::MemoryState;
use crate::metrics::RunResult;
use crate::network::Network;
use crate::probe::Nothing;
use crate::units::{Span, Time};
use routes::{Frames, Routes};

/// Runs a network in partitions. Returns `None` if the network is not partitioned.
pub(in crate::engine) fn run(
    mode: PortMode,
    options: ParallelOptions,
    network: &Network,
    progress: &Progress,
    token: &CancellationToken<'_>,
) -> Result<Option<RunResult>, Interrupted> {
    let Some(partitioning) = &partitioning(mode, options, network, token)? else { return Ok(None) };
    let simulate = |number: u32, peers: Peers, progress: &Progress, token: &CancellationToken<'_>| {
        let partition = Partition { partitioning, number };
        let mut engine = Engine::new(network, mode, None, Some(partition), token)?;
        progress.end.set(engine.end);
        let mut windows = Windows { routes: Routes::of(&engine, partition), peers, latest_end: None };
        engine.keep(partition, &windows.routes);
        let mut snapshots = Vec::new();
        for bound in network.window(engine.clock).into_iter().flatten() {
            engine.run_partition(bound, &mut windows, progress, token)?;
            engine.close(token)?;
            snapshots.push(engine.result(engine.port_ends(), &engine.memory_states(), false, token)?);
        }
        engine.run_partition(engine.end, &mut windows, progress, token)?;
        engine.close(token)?;
        Ok((engine, snapshots))
    };
    let outcomes = thread::scope(|scope| {
        let mut all_peers = (0..).zip(Peers::all(partitioning.partitions));
        let (_, own_peers) = all_peers.next().expect("there are at least two partitions");
        let start = |(number, peers)| {
            thread::Builder::new().spawn_scoped(scope, move || {
                let (engine, snapshots) = simulate(number, peers, &Progress::default(), &CancellationToken::never())?;
                Ok((engine.into_ended(), snapshots))
            })
        };
        let Ok(others) = all_peers.map(start).collect::<io::Result<Vec<_>>>() else {
            // The system cannot start more threads. The threads already started end when their channels close.
            return Ok(None);
        };
        let first = simulate(0, own_peers, progress, token);
        let joined =
            others.into_iter().map(|other| other.join().unwrap_or_else(|payload| panic::resume_unwind(payload)));
        let joined: Vec<_> = joined.collect();
        // If a partition is cancelled, its channels to other partitions close, and those are interrupted too.
        let first = first?;
        Ok(Some((first, joined.into_iter().collect::<Result<Vec<(EndedPartition, Vec<RunResult>)>, Interrupted>>()?)))
    });
    let Some(((mut first, mut snapshots), others)) = outcomes? else { return Ok(None) };
    let mut ended = Vec::with_capacity(others.len());
    for (partition, of_partition) in others {
        snapshots.iter_mut().zip(&of_partition).for_each(|(snapshot, other)| snapshot.add_partition(other));
        ended.push(partition);
    }
    let result = first.result_with(ended, token)?;
    let mut snapshots = snapshots.into_iter();
    let bounds = network.window(first.clock).map(|bound| bound.and_then(|_| snapshots.next()));
    Ok(Some(result.within(bounds, network)))
}

/// Returns the number of partitions of a run.
pub(in crate::engine) fn number(
    options: ParallelOptions,
    network: &Network,
    token: &CancellationToken<'_>,
) -> Result<usize, Interrupted> {
    Ok(partitioning(PortMode::default(), options, network, token)?.map_or(1, |partitioning| partitioning.partitions))
}

fn partitioning(
    mode: PortMode,
    options: ParallelOptions,
    network: &Network,
    token: &CancellationToken<'_>,
) -> Result<Option<Partitioning>, Interrupted> {
    if options.threads < 2 {
        return Ok(None);
    }
    let builder = PortBuilder::new(network, mode, None, None, token)?;
    Partitioning::new(network, &builder.plan, &builder.times, &builder.takes_cells()?, options, token)
}

/// The messages from one partition to another at the end of a window.
#[derive(Default)]
struct Messages {
    /// Time of the earliest next event that the sender knows.
    next: Time,
    of_ends: EndMessages,
    /// Complete frames on their way to hosts, each with its lane.
    deliveries: Vec<(LaneIndex, Delivery)>,
    /// Streams, each with its number of cells.
    streams: Vec<(StreamIndex, usize)>,
    cells: Vec<Arriving>,
}

/// The channels between a partition and each other partition, by number. They are closed when the partition ends, even
/// by cancellation or panic, so that no other partition waits for it.
struct Peers(Vec<Option<Peer>>);

struct Peer {
    outgoing: Messages,
    to: Sender<Messages>,
    from: Receiver<Messages>,
}

/// Number of checks before a waiting partition sleeps. Partitions usually end a window within some tens of microseconds
/// of each other, about the time to wake a thread.
const LOOKS: u32 = 1 << 11;
/// Time between two checks for cancellation while a partition sleeps.
const NAP: Duration = Duration::from_millis(20);

impl Peers {
    fn all(partitions: usize) -> Vec<Self> {
        let mut all: Vec<Self> = (0..partitions).map(|_| Self((0..partitions).map(|_| None).collect())).collect();
        for (one, other) in (0..partitions).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let ((to_one, from_other), (to_other, from_one)) = (mpsc::channel(), mpsc::channel());
            let peer = |to, from| Some(Peer { outgoing: Messages::default(), to, from });
            all[one].0[other] = peer(to_other, from_other);
            all[other].0[one] = peer(to_one, from_one);
        }
        all
    }

    fn outgoing(&mut self, to: u32) -> &mut Messages {
        &mut self.0[to as usize].as_mut().expect("a partition sends no messages to itself").outgoing
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.0.iter_mut().flatten()
    }
}

impl Peer {
    /// Sends the outgoing messages with the time of the sender's next event.
    fn send(&mut self, next: Time) -> Result<(), Interrupted> {
        let messages = Messages { next, ..std::mem::take(&mut self.outgoing) };
        self.to.send(messages).map_err(|_| Interrupted)
    }

    /// Waits for the messages that another partition sends at the end of the same window.
    fn receive(&self, token: &CancellationToken<'_>) -> Result<Messages, Interrupted> {
        for _ in 0..LOOKS {
            match self.from.try_recv() {
                Ok(messages) => return Ok(messages),
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                Err(TryRecvError::Disconnected) => return Err(Interrupted),
            }
        }
        loop {
            match self.from.recv_timeout(NAP) {
                Ok(messages) => return Ok(messages),
                Err(RecvTimeoutError::Timeout) => token.check()?,
                Err(RecvTimeoutError::Disconnected) => return Err(Interrupted),
            }
        }
    }
}

/// The state of a partition between windows.
struct Windows {
    routes: Routes,
    peers: Peers,
    latest_end: Option<Time>,
}

impl Engine<'_> {
    /// Runs a partition up to the horizon, window by window.
    fn run_partition(
        &mut self,
        horizon: Time,
        Windows { routes, peers, latest_end }: &mut Windows,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        let lookahead = self.partition.expect("the engine runs as one of several partitions").partitioning.lookahead;
        self.set_horizon(horizon);
        let behind = horizon + Span(1);
        // First exchange the cells held back at an earlier horizon, in a window of zero length.
        let mut until = latest_end.unwrap_or(Time(lookahead.0)).min(behind);
        loop {
            // The instant at which the window ends already belongs to the next window.
            let advance = Advance { until: Time(until.0 - 1), snapshots_end: Time::default() };
            self.process_events(advance, &mut Nothing, progress, token)?;
            for &number in &routes.ports {
                token.tick(1)?;
                self.work(number, until, token)?;
            }
            let mut next = self.write_messages(routes, peers);
            peers.iter_mut().try_for_each(|peer| peer.send(next))?;
            for peer in peers.iter_mut() {
                let mut messages = peer.receive(token)?;
                next = next.min(messages.next);
                self.apply(&mut messages, &routes.data_goes_first);
                peer.outgoing = messages;
            }
            *latest_end = Some(until);
            if until == behind {
                return Ok(());
            }
            // No partition has an event before the earliest next event of all partitions.
            until = Time(until.0.saturating_add(lookahead.0)).max(next).min(behind);
        }
    }

    /// Collects the messages for other partitions. Returns the time of this partition's earliest next event.
    fn write_messages(&mut self, routes: &mut Routes, peers: &mut Peers) -> Time {
        let Self { links, fabric: Fabric { lanes, end_systems, event_list, .. }, .. } = self;
        let mut next = event_list.first().time();
        for Frames { vc, sent, to, blocks_to, are_needed_here } in &mut routes.frames {
            let put_in = end_systems.next_frame(*vc);
            if put_in == *sent {
                continue;
            }
            for &to in &*to {
                end_systems.add_frames(*vc, *sent, &mut peers.outgoing(to).of_ends);
            }
            if let Some(to) = *blocks_to {
                end_systems.add_blocks(*vc, &mut peers.outgoing(to).of_ends);
            }
            if !*are_needed_here {
                end_systems.forget_all(*vc);
            }
            *sent = put_in;
        }
        for &(lane, to) in &routes.lanes {
            let frames = &mut lanes.frames[lane];
            let Some(first) = frames.get(FOR_ANOTHER) else { continue };
            next = next.min(first.time);
            for delivery in frames.drain(FOR_ANOTHER..) {
                let messages = peers.outgoing(to);
                end_systems.hand_over(delivery.vc, delivery.frame, &mut messages.of_ends);
                messages.deliveries.push((lane, delivery));
            }
        }
        for &(stream, to) in &routes.streams {
            let cells = links.streams[stream].cells_elsewhere();
            let Some(first) = cells.first() else { continue };
            next = next.min(first.time);
            let messages = peers.outgoing(to);
            messages.streams.push((stream, cells.len()));
            messages.cells.extend_from_slice(cells);
            links.streams[stream].forget_elsewhere();
        }
        for &(flow, to) in &routes.flows {
            if end_systems.has_sights_of(flow) {
                end_systems.add_observations(flow, &mut peers.outgoing(to).of_ends);
            }
        }
        next
    }

    /// Applies the messages received from another partition, and clears them.
    fn apply(&mut self, messages: &mut Messages, data_goes_first: &TiSlice<FlowIndex, bool>) {
        // Add frames first, because the port that collects a frame's cells must know the frame before they arrive.
        self.fabric.end_systems.receive(&mut messages.of_ends, data_goes_first);
        let Fabric { lanes, event_list, .. } = &mut self.fabric;
        for (lane, delivery) in messages.deliveries.drain(..) {
            lanes.push_frame(lane, delivery, event_list);
        }
        let mut cells = &messages.cells[..];
        for (stream, count) in messages.streams.drain(..) {
            let (of_stream, rest) = cells.split_at(count);
            let mut downstream = self.downstream().0;
            for &Arriving { time, cell } in of_stream {
                downstream.push(stream, time, cell);
            }
            cells = rest;
        }
        messages.cells.clear();
    }

    /// Restricts the engine to the ends of flows in this partition, and stores what will be sent to other partitions.
    fn keep(&mut self, partition: Partition<'_>, routes: &Routes) {
        self.fabric.end_systems.keep(&simulated_by(self.network, partition));
        self.schedule_ticks();
        for &(lane, _) in &routes.lanes {
            // A lane enters the event list when its first frame is added. A placeholder at its front prevents this.
            let (link, vc, frame) = Default::default();
            let placeholder = Delivery { time: Time::NEVER, link, vc, frame, cells: 0 };
            self.fabric.lanes.frames[lane].push_back(placeholder);
        }
    }

    /// Returns the result, once all other partitions have ended.
    fn result_with(&mut self, others: Vec<EndedPartition>, token: &CancellationToken<'_>) -> Outcome {
        let (mut ends, mut memories) = (self.port_ends(), self.memory_states());
        let partitioning = self.partition.expect("the engine runs as one of several partitions").partitioning;
        for (partition, number) in others.into_iter().zip(1..) {
            let EndedPartition { ports, memories: of_partition, late, losses, end_systems, edge } = partition;
            let Fabric { plan, late: late_here, losses: losses_here, .. } = &mut self.fabric;
            let is_there = |link: LinkIndex| partitioning.of(self.network.links[plan.beginning(link)].from) == number;
            for ((link, mine), theirs) in ends.iter_mut_enumerated().zip(ports) {
                if partitioning.of(self.network.links[link].from) == number {
                    *mine = theirs;
                }
            }
            for ((link, mine), theirs) in late_here.counts.iter_mut_enumerated().zip(late) {
                if is_there(link) {
                    *mine = theirs;
                }
            }
            for (mine, theirs) in losses_here.iter_mut().zip(losses) {
                if is_there(mine.link) {
                    *mine = theirs;
                }
            }
            let all = self.fabric.plan.memories.iter().zip(&mut memories).zip(of_partition);
            for ((memory, mine), theirs) in all {
                if partitioning.of(self.network.links[self.fabric.plan.contended[memory.lead]].from) == number {
                    *mine = theirs;
                }
            }
            let (network, there) = (self.network, Partition { partitioning, number });
            self.fabric.end_systems.take_over(end_systems, &simulated_by(network, there));
            self.fabric.edge.take_over(edge, |vc| there.has(network.source(vc)));
        }
        self.fabric.end_systems.fold_all_sights();
        self.result(ends, &memories, true, token)
    }

    fn into_ended(self) -> EndedPartition {
        let (ports, memories) = (self.port_ends(), self.memory_states());
        let Fabric { late, losses, end_systems, edge, .. } = self.fabric;
        EndedPartition { ports, memories, late: late.counts, losses, end_systems, edge }
    }
}

/// Index of the first real frame in a lane to another partition.
const FOR_ANOTHER: usize = 1;

fn simulated_by(network: &Network, partition: Partition<'_>) -> Ends {
    Ends {
        senders: network.flows.iter().map(|flow| partition.has(network.source(flow.data_vc))).collect(),
        receivers: network.flows.iter().map(|flow| partition.has(network.destination(flow.data_vc))).collect(),
    }
}

/// The counts of a partition at the end of the run.
struct EndedPartition {
    ports: TiVec<LinkIndex, PortEnd>,
    memories: TiVec<MemoryIndex, MemoryState>,
    late: TiVec<LinkIndex, TiVec<Label, Box<[u64]>>>,
    losses: TiVec<LossyIndex, LinkLosses>,
    end_systems: EndSystems,
    edge: Edge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stops_waiting_for_a_partition_if_the_partition_ends_or_the_run_is_cancelled() {
        let [one, other] = Peers::all(2).try_into().unwrap_or_else(|_| panic!("a partition has peers"));
        let peer = one.0[1].as_ref().unwrap();
        assert!(peer.receive(&CancellationToken::new(&|| false)).is_err());
        drop(other);
        assert!(peer.receive(&CancellationToken::never()).is_err());
    }
}
