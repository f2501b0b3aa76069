//! One run on several threads: conservative parallel simulation. Each thread simulates a partition of the network.
//!
//! A window is as long as the lookahead, the shortest way from one partition to another. A cell that starts within a
//! window arrives after it. So when everything before the window is settled, each partition knows all arrivals within
//! it, and needs no other. At the end of the window partitions exchange messages through mailboxes and wait at a
//! barrier. `docs/design/threads.md` says why the result is the same, and how much faster it is.

mod barrier;
mod exchange;
mod partitioning;

use std::io;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use typed_index_collections::{TiSlice, TiVec};

use super::fabric::{Delivery, schedule_lane};
use super::links::NEVER;
use super::links::StreamIndex;
use super::plan::LaneIndex;
use super::results::PortEnd;
use super::train::Arriving;
use super::{Advance, Engine, Outcome, Plan, PortBuilder, PortMode, Progress};
use crate::cancellation::{CancellationToken, Interrupted};
use crate::contracts::Edge;
use crate::end_systems::EndSystems;
use crate::end_systems::partition::{EndMessages, Ends};
use crate::index::{FlowIndex, LinkIndex};
use crate::metrics::RunResult;
use crate::network::{LinkTimes, Network};
use crate::probe::Nothing;
use crate::rate_control::RateControl;
use crate::units::{Span, Time};
use barrier::{Barrier, BarrierGuard};
use exchange::Exchange;
pub(super) use partitioning::{Partition, Partitioning};

/// Number of threads of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelOptions {
    /// Threads at most; a network that cannot be partitioned that far takes fewer.
    pub threads: usize,
    /// True if the network is partitioned even if nothing is gained, for tests.
    pub at_any_cost: bool,
}

impl ParallelOptions {
    /// Up to `threads` threads, if that pays.
    pub fn up_to(threads: usize) -> Self {
        Self { threads, at_any_cost: false }
    }
}

/// Runs a network in partitions; `None` if it stays whole.
pub(in crate::engine) fn run(
    mode: PortMode,
    options: ParallelOptions,
    network: &Network,
    progress: &Progress,
    token: &CancellationToken<'_>,
) -> Result<Option<RunResult>, Interrupted> {
    let Some(partitioning) = partitioning(mode, options, network, token)? else { return Ok(None) };
    let partitioning = &partitioning;
    let barrier = Barrier::new(partitioning.partitions);
    let mailboxes = Mailboxes::new(partitioning.partitions);
    let simulate = |number: usize, progress: &Progress, token: &CancellationToken<'_>| {
        let number = u32::try_from(number).expect("fewer partitions than nodes");
        let mut guard = BarrierGuard { barrier: &barrier, has_ended: false };
        let mut engine = Engine::new(network, mode, None, Some(Partition { partitioning, number }), token)?;
        progress.end.set(engine.end);
        let exchange = Exchange::of(&engine, Partition { partitioning, number });
        let mut windows = Windows { exchange, count: 0, latest_end: None };
        let mut snapshots = Vec::new();
        for bound in network.window(engine.clock).into_iter().flatten() {
            engine.run_partition(bound, &mut windows, &barrier, &mailboxes, progress, token)?;
            engine.close(token)?;
            snapshots.push(engine.result(engine.port_ends(), false, token)?);
        }
        engine.run_partition(engine.end, &mut windows, &barrier, &mailboxes, progress, token)?;
        engine.close(token)?;
        guard.has_ended = true;
        Ok((engine, snapshots))
    };
    let outcomes = thread::scope(|scope| {
        let mut guard = BarrierGuard { barrier: &barrier, has_ended: false };
        let start = |number| {
            let (simulate, barrier) = (&simulate, &barrier);
            thread::Builder::new().spawn_scoped(scope, move || {
                let go_on = || !barrier.is_cancelled();
                let token = CancellationToken::new(&go_on);
                let (engine, snapshots) = simulate(number, &Progress::default(), &token)?;
                Ok((engine.into_ended(), snapshots))
            })
        };
        let Ok(others) = (1..partitioning.partitions).map(start).collect::<io::Result<Vec<_>>>() else {
            // The system has no more threads. Those that were started find the barrier cancelled, and end.
            return Ok(None);
        };
        let first = simulate(0, progress, token);
        guard.has_ended = true;
        let joined =
            others.into_iter().map(|other| other.join().unwrap_or_else(|payload| panic::resume_unwind(payload)));
        let joined: Vec<_> = joined.collect();
        // A cancelled partition cancels the barrier, which interrupts the others.
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
    let clock = network.clock();
    let routing = network.routing();
    let times = LinkTimes::of(network, clock);
    let mut rate_control = RateControl::new(network, &routing, clock, token)?;
    let plan = Plan::new(network, &routing, &rate_control, &times, |_| 0, &[]);
    token.check()?;
    let end = network.end(clock);
    let builder = PortBuilder { network, routing: &routing, times: &times, plan: &plan, end, clock, partition: None };
    let takes_cells = builder.takes_cells(mode, &mut rate_control, token)?;
    Partitioning::new(network, &plan, &times, &takes_cells, options, token)
}

/// Messages exchanged between partitions at the end of a window.
struct Mailboxes {
    partitions: usize,
    /// By sender, receiver and whether the window is odd, so that a slow partition never finds the next window's
    /// messages.
    messages: Vec<Mutex<Messages>>,
    /// By sender and whether the window is odd: the earliest next event that the sender knows of.
    next: Vec<[AtomicU64; 2]>,
}

/// The messages of one partition for another.
#[derive(Default)]
struct Messages {
    of_ends: EndMessages,
    /// Whole frames on their way to hosts, and the numbers of their lanes.
    deliveries: Vec<(LaneIndex, Delivery)>,
    /// Streams, and the number of cells of each.
    streams: Vec<(StreamIndex, usize)>,
    cells: Vec<Arriving>,
}

impl Mailboxes {
    fn new(partitions: usize) -> Self {
        Self {
            partitions,
            messages: (0..2 * partitions * partitions).map(|_| Mutex::default()).collect(),
            next: (0..partitions).map(|_| [const { AtomicU64::new(0) }; 2]).collect(),
        }
    }

    fn with<T>(&self, from: u32, to: u32, window: usize, use_them: impl FnOnce(&mut Messages) -> T) -> T {
        let place = (from as usize * self.partitions + to as usize) * 2 + window % 2;
        use_them(&mut self.messages[place].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Progress of a partition through its windows.
struct Windows {
    exchange: Exchange,
    /// Number of windows so far.
    count: usize,
    /// The end of the latest window.
    latest_end: Option<Time>,
}

impl Engine<'_> {
    /// Runs a partition up to the horizon, window by window.
    fn run_partition(
        &mut self,
        horizon: Time,
        Windows { exchange, count: window, latest_end }: &mut Windows,
        barrier: &Barrier,
        mailboxes: &Mailboxes,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        let partition = self.partition.expect("it is one of several");
        self.set_horizon(horizon);
        let behind = horizon + Span(1);
        // Cells held back at an earlier horizon are exchanged first, in a window without length.
        let mut until = latest_end.unwrap_or(Time(partition.partitioning.lookahead.0)).min(behind);
        loop {
            // The instant of the window's end belongs to the next window.
            let advance = Advance { until: Time(until.0 - 1), snapshots_end: Time::default() };
            self.process_events(advance, &mut Nothing, progress, token)?;
            for &number in &exchange.ports {
                token.tick(1)?;
                self.work(number, until, token)?;
            }
            let next = self.send_messages(exchange, mailboxes, *window);
            mailboxes.next[partition.number as usize][*window % 2].store(next.0, Ordering::Relaxed);
            barrier.wait_for_all(token)?;
            for from in (0..partition.partitioning.partitions).filter(|&from| from != partition.number as usize) {
                let from = u32::try_from(from).expect("fewer partitions than nodes");
                mailboxes.with(from, partition.number, *window, |messages| {
                    self.receive(messages, &exchange.data_goes_first);
                });
            }
            let parity = *window % 2;
            *window += 1;
            *latest_end = Some(until);
            if until == behind {
                return Ok(());
            }
            // Nothing happens anywhere before the next event that any partition knows of.
            let next = mailboxes.next.iter().map(|next| next[parity].load(Ordering::Relaxed)).min();
            let window_end = Time(until.0.saturating_add(partition.partitioning.lookahead.0));
            until = window_end.max(Time(next.expect("there are partitions"))).min(behind);
        }
    }

    /// Puts messages for other partitions into the mailboxes. Returns the earliest next event known here.
    fn send_messages(&mut self, exchange: &mut Exchange, mailboxes: &Mailboxes, window: usize) -> Time {
        let Self { links, lanes, end_systems, event_list, .. } = self;
        let mut next = event_list.first().time();
        let number = exchange.number;
        for frames in &mut exchange.frames {
            let put_in = end_systems.next_frame(frames.vc);
            if put_in == frames.sent {
                continue;
            }
            for &to in &frames.to {
                mailboxes.with(number, to, window, |messages| {
                    end_systems.add_frames(frames.vc, frames.sent, &mut messages.of_ends);
                });
            }
            if let Some(to) = frames.blocks_to {
                mailboxes.with(number, to, window, |messages| end_systems.add_blocks(frames.vc, &mut messages.of_ends));
            }
            if !frames.are_needed_here {
                end_systems.forget_all(frames.vc);
            }
            frames.sent = put_in;
        }
        for &(lane, to) in &exchange.lanes {
            let Some(first) = lanes[lane].get(FOR_ANOTHER) else { continue };
            next = next.min(first.time);
            mailboxes.with(number, to, window, |messages| {
                for delivery in lanes[lane].drain(FOR_ANOTHER..) {
                    end_systems.forget_before(delivery.vc, delivery.frame);
                    messages.deliveries.push((lane, delivery));
                }
            });
        }
        for &(stream, to) in &exchange.streams {
            let cells = links.stream(stream).cells_elsewhere();
            let Some(first) = cells.first() else { continue };
            next = next.min(first.time);
            mailboxes.with(number, to, window, |messages| {
                messages.streams.push((stream, cells.len()));
                messages.cells.extend_from_slice(cells);
            });
            links.stream_mut(stream).forget_elsewhere();
        }
        for &(flow, to) in &exchange.flows {
            if end_systems.has_sights_of(flow) {
                mailboxes
                    .with(number, to, window, |messages| end_systems.add_observations(flow, &mut messages.of_ends));
            }
        }
        next
    }

    /// Applies the messages received from another partition.
    fn receive(&mut self, messages: &mut Messages, data_goes_first: &TiSlice<FlowIndex, bool>) {
        // A frame is known at the port that collects its cells before the cells arrive there.
        self.end_systems.receive(&mut messages.of_ends, data_goes_first);
        for (lane, delivery) in messages.deliveries.drain(..) {
            self.lanes[lane].push_back(delivery);
            if self.lanes[lane].len() == 1 {
                schedule_lane(&mut self.event_list, lane, &self.lanes[lane]);
            }
        }
        let mut cells = &messages.cells[..];
        for (stream, count) in messages.streams.drain(..) {
            let (of_stream, rest) = cells.split_at(count);
            self.arrive(stream, of_stream);
            cells = rest;
        }
        messages.cells.clear();
    }

    /// Restricts the engine to the ends of flows that are here, and keeps what goes to other partitions.
    pub(super) fn keep(&mut self, partition: Partition<'_>) {
        self.end_systems.keep(&simulated_by(self.network, partition));
        for (lane, _) in exchange::lanes_elsewhere(self, partition) {
            // A lane is put on the event list when its first frame arrives. Behind this frame no frame is the first.
            let (link, vc, frame) = Default::default();
            self.lanes[lane].push_back(Delivery { time: NEVER, link, vc, frame, cells: 0 });
        }
    }

    /// Returns the result, when the other partitions have ended too.
    fn result_with(&mut self, others: Vec<EndedPartition>, token: &CancellationToken<'_>) -> Outcome {
        let mut ends = self.port_ends();
        let partitioning = self.partition.expect("it is one of several").partitioning;
        for (partition, number) in others.into_iter().zip(1..) {
            let EndedPartition { ports, late, end_systems, edge } = partition;
            for (((mine, theirs), (late_here, late)), link) in
                ends.iter_mut().zip(ports).zip(self.late.counts.iter_mut().zip(late)).zip(self.network.links.keys())
            {
                if partitioning.of(self.network.links[link].from) == number {
                    *mine = theirs;
                    *late_here = late;
                }
            }
            let (network, there) = (self.network, Partition { partitioning, number });
            self.end_systems.take_over(end_systems, &simulated_by(network, there));
            self.edge.take_over(edge, |vc| there.has(network.source(vc)));
        }
        self.end_systems.fold_all_sights();
        self.result(ends, true, token)
    }

    fn into_ended(self) -> EndedPartition {
        let ports = self.port_ends();
        let Engine { late, end_systems, edge, .. } = self;
        EndedPartition { ports, late: late.counts, end_systems, edge }
    }
}

/// Place of the first frame in a lane whose frames are for another partition.
const FOR_ANOTHER: usize = 1;

/// Returns the ends of connections that a partition simulates.
fn simulated_by(network: &Network, partition: Partition<'_>) -> Ends {
    Ends {
        senders: network.flows.iter().map(|flow| partition.has(network.source(flow.data_vc))).collect(),
        receivers: network.flows.iter().map(|flow| partition.has(network.destination(flow.data_vc))).collect(),
    }
}

/// The counts of a partition at the end.
struct EndedPartition {
    ports: TiVec<LinkIndex, PortEnd>,
    late: TiVec<LinkIndex, Vec<u64>>,
    end_systems: EndSystems,
    edge: Edge,
}

#[cfg(test)]
mod tests {
    use crate::cancellation::CancellationToken;
    use crate::engine::{Engine, Interrupted, ParallelOptions};
    use crate::metrics::RunResult;
    use crate::network::Network;
    use crate::network::tests::{FIRST, SECOND, n_source_network};
    use crate::policy::{PolicyConfig, tail_drop};
    use crate::probe::Nothing;
    use crate::tcp::{TcpConfig, TcpOptions};
    use crate::traffic::{TrafficConfig, constant_rate};
    use crate::units::{BitRate, Bytes, Duration};

    /// With a delay of 50 ms each side has enough to do until cells of the other arrive.
    fn apart(sources: usize, delay: &str) -> Network {
        let tcp = TcpConfig::Sack(TcpOptions::default());
        n_source_network(sources, delay, Some(100), PolicyConfig::TailDrop(tail_drop::Config {}), &tcp, "8s")
    }

    fn whole(engine: Engine, network: &Network) -> RunResult {
        engine.run(network, &mut Nothing, |_| true).unwrap()
    }

    #[test]
    fn a_run_on_two_threads_has_the_result_of_one_to_the_last_bit() {
        let mut network = apart(3, "50ms");
        network.flows[SECOND].traffic = TrafficConfig::ConstantRate(constant_rate::Config {
            rate: BitRate::from_bits_per_second(10_000_000),
            packet: Bytes { bytes: 500 },
        });
        network.flows[FIRST].tcp = TcpConfig::Vanilla(TcpOptions::default());
        network.host.processing = Duration::from_microseconds(10);
        let alone = whole(Engine::Reference, &network);
        let timeouts: u64 = alone.flows.iter().map(|flow| flow.timeouts).sum();
        assert!(alone.cells.lost > 0 && timeouts > 0, "something happens: {:?}, {timeouts} timeouts", alone.cells);
        for threads in [2, 3] {
            let options = ParallelOptions::up_to(threads);
            assert_eq!(
                Engine::Fast.threads_of(options, &network, &CancellationToken::never()),
                Ok(2),
                "it comes apart at one link"
            );
            assert_eq!(Engine::Fast.run_parallel(options, &network, |_| true).unwrap(), alone);
            assert_eq!(Engine::Reference.run_parallel(options, &network, |_| true).unwrap(), alone);
        }
        let near = apart(3, "5us");
        assert_eq!(Engine::Fast.threads_of(ParallelOptions::up_to(2), &near, &CancellationToken::never()), Ok(1));
        assert_eq!(
            Engine::Fast.run_parallel(ParallelOptions::up_to(2), &near, |_| true).unwrap(),
            whole(Engine::Fast, &near)
        );
    }

    #[test]
    fn a_run_on_two_threads_ends_when_it_is_told_to() {
        let network = apart(3, "50ms");
        for most in [0.0, 0.01, 0.3] {
            let mut shares = Vec::new();
            let keep_going = |share: f64| {
                shares.push(share);
                share < most
            };
            assert_eq!(Engine::Fast.run_parallel(ParallelOptions::up_to(2), &network, keep_going), Err(Interrupted));
            assert!(shares.is_sorted(), "it goes on, and never back: {shares:?}");
        }
    }
}
