//! One run on several threads: each simulates a part of the network, and they meet at the end of every window.
//!
//! Why the result is the same, and what it gains, stands in `docs/design/threads.md`. In short: a window is as long as the
//! shortest way from one part to another. A cell that starts within a window arrives after
//! it. So when everything before the window is settled, each part knows all that arrives within, and works by itself.

mod errands;
mod meeting;
mod partition;

use std::io;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use typed_index_collections::{TiSlice, TiVec};

use super::fabric::{Delivery, schedule_lane};
use super::measure::PortEnd;
use super::stream::{Arriving, NEVER};
use super::{EVENTS_AT_ONCE, Engine, Making, Outcome, PIECES_OF_AN_EVENT, Plan, Progress, Ways};
use crate::contracts::Edge;
use crate::end_systems::EndSystems;
use crate::end_systems::apart::{Ends, News};
use crate::index::{FlowIndex, LinkIndex};
use crate::metrics::RunResult;
use crate::network::{LinkTimes, Network};
use crate::probe::Nothing;
use crate::rate_control::RateControl;
use crate::stop::{Interrupted, Stop};
use crate::units::{Span, Time};
use errands::Errands;
use meeting::{Attendance, Meeting};
pub(super) use partition::{Part, Partition};

/// How a run is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Threads at most; a network that does not come apart so far takes fewer.
    pub threads: usize,
    /// Whether it is shared out even where nothing is gained, for tests.
    pub at_any_cost: bool,
}

impl Sharing {
    /// Among so many threads, where that is worth while.
    pub fn among(threads: usize) -> Self {
        Self { threads, at_any_cost: false }
    }
}

/// Runs a network in parts; `None` where it stays whole.
pub(in crate::engine) fn run(
    (ways, sharing): (Ways, Sharing),
    network: &Network,
    progress: &Progress,
    stop: &Stop<'_>,
) -> Result<Option<RunResult>, Interrupted> {
    let Some(partition) = partition(ways, sharing, network, stop)? else { return Ok(None) };
    let partition = &partition;
    let meeting = Meeting::new(partition.parts);
    let post = Post::new(partition.parts);
    let simulate = |number: usize, progress: &Progress, stop: &Stop<'_>| {
        let number = u32::try_from(number).expect("fewer parts than nodes");
        let mut attendance = Attendance { meeting: &meeting, has_ended: false };
        let mut engine = Engine::new(network, (ways, None), Some(Part { partition, number }), stop)?;
        progress.end.set(engine.end);
        let mut run = PartRun { errands: Errands::of(&engine, Part { partition, number }), window: 0, until: None };
        let mut snapshots = Vec::new();
        for bound in network.window(engine.clock).into_iter().flatten() {
            engine.run_part(bound, &mut run, (&meeting, &post), progress, stop)?;
            engine.close(stop)?;
            snapshots.push(engine.measure(engine.port_ends(stop)?, false, stop)?);
        }
        engine.run_part(engine.end, &mut run, (&meeting, &post), progress, stop)?;
        engine.close(stop)?;
        attendance.has_ended = true;
        Ok((engine, snapshots))
    };
    let ended = thread::scope(|scope| {
        let mut attendance = Attendance { meeting: &meeting, has_ended: false };
        let start = |number| {
            let (simulate, meeting) = (&simulate, &meeting);
            thread::Builder::new().spawn_scoped(scope, move || {
                let go_on = || !meeting.is_broken();
                let stop = Stop::new(&go_on);
                let (engine, snapshots) = simulate(number, &Progress::default(), &stop)?;
                Ok((engine.into_ended(&stop)?, snapshots))
            })
        };
        let Ok(others) = (1..partition.parts).map(start).collect::<io::Result<Vec<_>>>() else {
            // The system has no more threads. Those that were started find the meeting broken up, and end.
            return Ok(None);
        };
        let first = simulate(0, progress, stop);
        attendance.has_ended = true;
        let joined =
            others.into_iter().map(|other| other.join().unwrap_or_else(|payload| panic::resume_unwind(payload)));
        let joined: Vec<_> = joined.collect();
        // A part that is told to stop breaks the meeting up, which interrupts the others.
        let first = first?;
        Ok(Some((first, joined.into_iter().collect::<Result<Vec<(EndedPart, Vec<RunResult>)>, Interrupted>>()?)))
    });
    let Some(((mut first, mut snapshots), others)) = ended? else { return Ok(None) };
    let mut parts = Vec::new();
    for (part, of_part) in others {
        snapshots.iter_mut().zip(&of_part).for_each(|(snapshot, other)| snapshot.add_partition(other));
        parts.push(part);
    }
    let result = first.measure_with(parts, stop)?;
    Ok(Some(result.within(network.window(first.clock).map(|bound| bound.map(|_| snapshots.remove(0))), network)))
}

/// In how many parts it is run.
pub(in crate::engine) fn number(sharing: Sharing, network: &Network, stop: &Stop<'_>) -> Result<usize, Interrupted> {
    Ok(partition(Ways::default(), sharing, network, stop)?.map_or(1, |partition| partition.parts))
}

fn partition(
    ways: Ways,
    sharing: Sharing,
    network: &Network,
    stop: &Stop<'_>,
) -> Result<Option<Partition>, Interrupted> {
    if sharing.threads < 2 {
        return Ok(None);
    }
    let clock = network.clock();
    let routing = network.routing(stop)?;
    let times = LinkTimes::of(network, clock);
    let mut rate_control = RateControl::new(network, &routing, clock, stop)?;
    let plan = Plan::new(network, &routing, &rate_control, &times, (|_| 0, &[]), stop)?;
    let end = network.end(clock);
    let making = Making { network, routing: &routing, times: &times, plan: &plan, end, clock, part: None };
    let takes_cells = making.takes_cells(ways, &mut rate_control, stop)?;
    Partition::new(network, &plan, &times, &takes_cells, sharing, stop)
}

/// What parts have for each other at the end of a window.
struct Post {
    parts: usize,
    /// By sender, addressee and whether the window is an odd one: a slow part never finds the next window's.
    parcels: Vec<Mutex<Parcel>>,
    /// By sender, likewise: when the next thing happens at the earliest, as far as it knows.
    next: Vec<[AtomicU64; 2]>,
}

/// What one part has for another.
#[derive(Default)]
struct Parcel {
    news: News,
    /// Whole frames on their way to hosts, and the numbers of their lanes.
    deliveries: Vec<(usize, Delivery)>,
    /// Streams, and how many cells of each.
    streams: Vec<(u32, usize)>,
    cells: Vec<Arriving>,
}

impl Post {
    fn new(parts: usize) -> Self {
        Self {
            parts,
            parcels: (0..2 * parts * parts).map(|_| Mutex::default()).collect(),
            next: (0..parts).map(|_| [const { AtomicU64::new(0) }; 2]).collect(),
        }
    }

    fn with<T>(&self, from: u32, to: u32, window: usize, what: impl FnOnce(&mut Parcel) -> T) -> T {
        let place = (from as usize * self.parts + to as usize) * 2 + window % 2;
        what(&mut self.parcels[place].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How far the run of a part has come.
struct PartRun {
    errands: Errands,
    window: usize,
    /// The end of the latest window.
    until: Option<Time>,
}

impl Engine<'_> {
    /// Runs a part up to the horizon, window by window.
    fn run_part(
        &mut self,
        horizon: Time,
        PartRun { errands, window, until: latest }: &mut PartRun,
        (meeting, post): (&Meeting, &Post),
        progress: &Progress,
        stop: &Stop<'_>,
    ) -> Result<(), Interrupted> {
        let part = self.part.expect("it is one of several");
        self.set_horizon(horizon);
        let behind = horizon + Span(1);
        // What was held back at an earlier horizon is exchanged first.
        let mut until = latest.unwrap_or(Time(part.partition.window.0)).min(behind);
        loop {
            self.work_until(until, progress, stop)?;
            for &number in &errands.ports {
                stop.step()?;
                self.work(number, until, stop)?;
            }
            let next = self.tell(errands, post, *window);
            post.next[part.number as usize][*window % 2].store(next.0, Ordering::Relaxed);
            meeting.meet(stop)?;
            for from in (0..part.partition.parts).filter(|&from| from != part.number as usize) {
                let from = u32::try_from(from).expect("fewer parts than nodes");
                post.with(from, part.number, *window, |parcel| self.hear(parcel, &errands.data_goes_first));
            }
            let read = *window % 2;
            *window += 1;
            *latest = Some(until);
            if until == behind {
                return Ok(());
            }
            // Nothing happens anywhere before the next that any part knows of.
            let next = post.next.iter().map(|next| next[read].load(Ordering::Relaxed)).min();
            let window_end = Time(until.0.saturating_add(part.partition.window.0));
            until = window_end.max(Time(next.expect("there are parts"))).min(behind);
        }
    }

    /// Everything that happens before `until`.
    fn work_until(&mut self, until: Time, progress: &Progress, stop: &Stop<'_>) -> Result<(), Interrupted> {
        let mut events = 0;
        loop {
            let key = self.event_list.first();
            if key.time() >= until {
                return Ok(());
            }
            if events == 0 {
                events = EVENTS_AT_ONCE;
                progress.now.set(key.time());
                stop.steps(EVENTS_AT_ONCE * PIECES_OF_AN_EVENT)?;
            }
            events -= 1;
            self.step(key, &mut Nothing, stop)?;
        }
    }

    /// Puts what other parts have to know into the post. When the next thing happens, as far as is known here.
    fn tell(&mut self, errands: &mut Errands, post: &Post, window: usize) -> Time {
        let Self { streams, lanes, end_systems, event_list, .. } = self;
        let mut next = event_list.first().time();
        let number = errands.number;
        for frames in &mut errands.frames {
            let put_in = end_systems.next_frame(frames.vc);
            if put_in == frames.told {
                continue;
            }
            for &to in &frames.to {
                post.with(number, to, window, |parcel| {
                    end_systems.tell_frames(frames.vc, frames.told, &mut parcel.news);
                });
            }
            if let Some(to) = frames.blocks_to {
                post.with(number, to, window, |parcel| end_systems.tell_blocks(frames.vc, &mut parcel.news));
            }
            if !frames.are_needed_here {
                end_systems.forget_all(frames.vc);
            }
            frames.told = put_in;
        }
        for &(lane, to) in &errands.lanes {
            let Some(first) = lanes[lane].get(FOR_ANOTHER) else { continue };
            next = next.min(first.time);
            post.with(number, to, window, |parcel| {
                for delivery in lanes[lane].drain(FOR_ANOTHER..) {
                    end_systems.forget_before(delivery.vc, delivery.frame);
                    parcel.deliveries.push((lane, delivery));
                }
            });
        }
        for &(stream, to) in &errands.streams {
            let cells = streams.get(stream as usize).cells_elsewhere();
            let Some(first) = cells.first() else { continue };
            next = next.min(first.time);
            post.with(number, to, window, |parcel| {
                parcel.streams.push((stream, cells.len()));
                parcel.cells.extend_from_slice(cells);
            });
            streams.get_mut(stream as usize).forget_elsewhere();
        }
        for &(flow, to) in &errands.flows {
            if end_systems.has_sights_of(flow) {
                post.with(number, to, window, |parcel| end_systems.tell_sights(flow, &mut parcel.news));
            }
        }
        next
    }

    /// Takes in what another part has to tell.
    fn hear(&mut self, parcel: &mut Parcel, data_goes_first: &TiSlice<FlowIndex, bool>) {
        // Before the cells of a frame come to the port where they are collected, the frame is known there.
        self.end_systems.hear(&mut parcel.news, data_goes_first);
        for (lane, delivery) in parcel.deliveries.drain(..) {
            self.lanes[lane].push_back(delivery);
            if self.lanes[lane].len() == 1 {
                schedule_lane(&mut self.event_list, self.contended_ports.len(), lane, &self.lanes[lane]);
            }
        }
        let mut cells = &parcel.cells[..];
        for (stream, count) in parcel.streams.drain(..) {
            let (of_stream, rest) = cells.split_at(count);
            self.arrive(stream, of_stream);
            cells = rest;
        }
        parcel.cells.clear();
    }

    /// Only the ends of flows that are here will be simulated, and what goes to other parts is kept for them.
    pub(super) fn keep(&mut self, part: Part<'_>) {
        self.end_systems.keep(&simulated_by(self.network, part));
        for (lane, _) in errands::lanes_elsewhere(self, part) {
            // A lane is put on the event list when its first frame comes. Behind this one no frame is the first.
            let (link, vc, frame) = Default::default();
            self.lanes[lane].push_back(Delivery { time: NEVER, link, vc, frame, cells: 0 });
        }
    }

    /// The result, when the other parts have ended too.
    fn measure_with(&mut self, others: Vec<EndedPart>, stop: &Stop<'_>) -> Outcome {
        let mut ends = self.port_ends(stop)?;
        let partition = self.part.expect("it is one of several").partition;
        for (part, number) in others.into_iter().zip(1..) {
            let EndedPart { ports, late, end_systems, edge } = part;
            for (((mine, theirs), (late_here, late)), link) in
                ends.iter_mut().zip(ports).zip(self.late.iter_mut().zip(late)).zip(self.network.links.keys())
            {
                if partition.of(self.network.links[link].from) == number {
                    *mine = theirs;
                    *late_here = late;
                }
            }
            let (network, there) = (self.network, Part { partition, number });
            self.end_systems.take_over(end_systems, &simulated_by(network, there));
            self.edge.take_over(edge, |vc| there.has(network.source(vc)));
        }
        self.end_systems.fold_all_sights();
        self.measure(ends, true, stop)
    }

    fn into_ended(self, stop: &Stop<'_>) -> Result<EndedPart, Interrupted> {
        let ports = self.port_ends(stop)?;
        let Engine { late, end_systems, edge, .. } = self;
        Ok(EndedPart { ports, late, end_systems, edge })
    }
}

/// In a lane whose frames are for another part: the place of the first of them.
const FOR_ANOTHER: usize = 1;

/// The ends of connections that a part simulates.
fn simulated_by(network: &Network, part: Part<'_>) -> Ends {
    Ends {
        senders: network.flows.iter().map(|flow| part.has(network.source(flow.data_vc))).collect(),
        receivers: network.flows.iter().map(|flow| part.has(network.destination(flow.data_vc))).collect(),
    }
}

/// What a part has to show.
struct EndedPart {
    ports: TiVec<LinkIndex, PortEnd>,
    late: TiVec<LinkIndex, Vec<u64>>,
    end_systems: EndSystems,
    edge: Edge,
}

#[cfg(test)]
mod tests;
