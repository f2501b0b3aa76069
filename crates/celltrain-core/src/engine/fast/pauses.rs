//! Pauses of links: pause frames on their way, the ports that obey them, and deadlocks.
//!
//! A pause changes departures that the engine has already computed. Three invariants keep the result exact.
//!
//! *Pause frames are known before they arrive.* A memory starts or ends a pause when a cell enters or leaves, or when a
//! policy acts. The pause frame arrives a fixed time later, at the earliest. This time is one of the leads of the memory, so
//! the event list settles the memory before any change can have reached a port. A pause frame is an event before all others
//! of its instant except those of delay lines, so it precedes every start and every frame of that instant, as in the
//! reference engine. Of several frames of an instant for one group, the latest wins.
//!
//! *Nothing is settled beyond the present.* Ports of switches that obey pauses are in a memory, or simulated like one
//! ([`super::port_plan`]): they decide each departure when they are settled. Hosts' ports send cells ahead
//! ([`super::pausable_nic`]), but a cell that has not started arrives a lead later at the earliest. So it is still on the
//! link and returns to its host's queue. Cells that cannot come back, because their stage ends at a host or at losses, are
//! sent when they start, and so are cells that may arrive after the horizon. Pause frames of that instant precede them, so
//! no cell that counts as late comes back.
//!
//! *A deadlock needs a cycle of stopped ports.* The VCs of most networks let no groups wait for each other in a cycle
//! ([`waits_for`]). In the others, while the ports of a cycle are stopped, all memories are settled to the end of each
//! instant at which a pause frame arrives or a cell may leave, and searched by the same function as in the reference engine.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::event_list::{EventList, Leaf, Rank};
use super::pausing_groups::{pausing_groups, waits_for};
use super::plan::MemoryPlace;
use crate::index::LinkIndex;
use crate::memory::PausedGroup;
use crate::memory::{MemoryConfig, PauseChange, PauseResponse, Pauses, QueueConfig, QueueIndex};
use crate::network::{Graph, LinkTimes, Network, PAUSE_FRAME_BITS};
use crate::units::{Clock, Span, Time};

/// The pause frames and stopped ports of a run.
pub(super) struct LinkPauses {
    /// Pause frames that have not arrived, in the order in which the reference engine takes them.
    frames: BinaryHeap<Reverse<PauseFrame>>,
    /// Number of pause frames sent.
    sent: u64,
    /// For each link, the priorities that pause frames have stopped.
    stopped: TiVec<LinkIndex, StoppedPriorities>,
    /// For each group that can be part of a deadlock, the groups that can make its cells wait.
    waits_for: BTreeMap<PausedGroup, BTreeSet<PausedGroup>>,
    /// The first deadlock found, if any.
    pub(super) deadlock: Option<(Time, Vec<PausedGroup>)>,
    /// While stopped ports wait for each other in a cycle, the next instant that may complete a deadlock;
    /// [`Time::NEVER`] if no cell can leave.
    watched: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PauseFrame {
    /// Arrival at the port of `link`.
    time: Time,
    pub(super) link: LinkIndex,
    pub(super) priority: u8,
    /// Number of frames sent before. Frames of the same instant take effect in this order, so the latest wins.
    number: u64,
    pub(super) command: PauseCommand,
}

/// The command of a pause frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PauseCommand {
    Resume,
    Stop,
}

impl PauseCommand {
    /// Returns the command that a memory sends when a pause begins or ends.
    pub(super) fn after(change: PauseChange) -> Self {
        if change.paused { Self::Stop } else { Self::Resume }
    }
}

/// The priorities that are stopped at a port, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StoppedPriorities(u8);

impl StoppedPriorities {
    pub(super) const NONE: Self = Self(0);

    /// Stops a priority at the port, or lets the priority continue.
    pub(super) fn obey(&mut self, priority: u8, command: PauseCommand) {
        match command {
            PauseCommand::Stop => self.0 |= 1 << priority,
            PauseCommand::Resume => self.0 &= !(1 << priority),
        }
    }

    #[inline]
    pub(super) fn contain(self, priority: u8) -> bool {
        self.0 & (1 << priority) != 0
    }
}

impl LinkPauses {
    /// Creates the state at the start of a run, if links can be paused.
    pub(super) fn new(network: &Network) -> Option<Box<Self>> {
        let groups: BTreeSet<PausedGroup> = pausing_groups(network).collect();
        if groups.is_empty() {
            return None;
        }
        let (frames, sent, deadlock, watched) = Default::default();
        let stopped = ti_vec![StoppedPriorities::NONE; network.links.len()];
        Some(Box::new(Self { frames, sent, stopped, waits_for: waits_for(network, &groups), deadlock, watched }))
    }

    /// Sends a pause frame that arrives at `time`.
    pub(super) fn send(
        &mut self,
        time: Time,
        (link, priority): PausedGroup,
        command: PauseCommand,
        event_list: &mut EventList,
    ) {
        self.frames.push(Reverse(PauseFrame { time, link, priority, number: self.sent, command }));
        self.sent += 1;
        self.schedule(event_list);
    }

    pub(super) fn schedule(&self, event_list: &mut EventList) {
        let next = self.frames.peek().map(|next| next.0.time).into_iter().chain(self.watched).min();
        let next = next.filter(|&time| time < Time::NEVER);
        event_list.set(Leaf::Pauses, next.map(|time| (time, Rank::Line)));
    }

    /// Makes the engine look for a deadlock at an instant, or stop doing so.
    pub(super) fn watch(&mut self, next: Option<Time>, event_list: &mut EventList) {
        self.watched = next;
        self.schedule(event_list);
    }

    /// Returns whether the engine looks for a deadlock whenever a cell may leave.
    #[inline]
    pub(super) fn is_watching(&self) -> bool {
        self.watched.is_some()
    }

    /// Takes the next pause frame that arrives at `now`.
    pub(super) fn take(&mut self, now: Time) -> Option<PauseFrame> {
        let Reverse(frame) = self.frames.peek().copied().filter(|next| next.0.time == now)?;
        self.frames.pop();
        self.stopped[frame.link].obey(frame.priority, frame.command);
        Some(frame)
    }

    fn is_stopped(&self, (link, priority): PausedGroup) -> bool {
        self.stopped[link].contain(priority)
    }

    /// Returns whether a port is stopped for a priority, and no pause frame that ends this is on its way.
    pub(super) fn stays_stopped(&self, group: PausedGroup) -> bool {
        let ends = |Reverse(frame): &Reverse<PauseFrame>| {
            (frame.link, frame.priority) == group && frame.command == PauseCommand::Resume
        };
        self.is_stopped(group) && !self.frames.iter().any(ends)
    }

    /// Returns whether stopped ports wait for each other in a cycle, which is necessary for a deadlock.
    pub(super) fn may_deadlock(&self) -> bool {
        if self.waits_for.is_empty() || self.deadlock.is_some() {
            return false;
        }
        let mut stopped: BTreeSet<PausedGroup> =
            self.waits_for.keys().copied().filter(|&group| self.is_stopped(group)).collect();
        while let Some(&free) = stopped.iter().find(|group| self.waits_for[group].is_disjoint(&stopped)) {
            stopped.remove(&free);
        }
        !stopped.is_empty()
    }
}

/// The route of pause frames for a group.
#[derive(Clone, Copy)]
pub(super) struct PauseSender {
    /// The port that sends the pause frames.
    pub(super) place: MemoryPlace,
    /// The time that the port takes to send a pause frame.
    pub(super) sending: Span,
    /// The time from the end of the transmission until the other port obeys.
    pub(super) response: Span,
}

/// The route of pause frames for each group of a memory, by queue.
pub(super) type PauseSenders = TiVec<QueueIndex, Option<(PausedGroup, PauseSender)>>;

/// The pauses that a memory sends to the ports that feed it.
pub(super) struct Pausing {
    /// For each queue, its link and priority.
    groups: TiVec<QueueIndex, PausedGroup>,
    /// For each queue, the time from a change until the pause frame arrives.
    leads: TiVec<QueueIndex, Span>,
}

impl Pausing {
    /// Returns `None` if the memory only counts pauses. If pause frames travel as on a wire, also returns the route of
    /// each group's pause frames.
    pub(super) fn new(
        network: &Network,
        config: &MemoryConfig,
        ports: &TiSlice<MemoryPlace, LinkIndex>,
        times: &TiSlice<LinkIndex, LinkTimes>,
        clock: Clock,
    ) -> Option<(Box<Self>, Option<Box<PauseSenders>>)> {
        if config.pauses == Pauses::Counted {
            return None;
        }
        let sender = |queue: &QueueConfig| {
            queue.lossless?;
            let (rate, by) = (network.links[queue.link].rate, Graph::way_back(queue.link));
            let place = MemoryPlace::from(ports.iter().position(|&port| port == by)?);
            let sending = network.links[by].wire.frame_bits(PAUSE_FRAME_BITS / 8);
            let sending = clock.sending_time(sending, network.links[by].rate);
            let response = config.pause_response.unwrap_or_else(|| PauseResponse::limit(rate)).span(rate, clock);
            let sender = PauseSender { place, sending, response: times[by].delay + response };
            Some(((queue.link, queue.priority), sender))
        };
        let senders: Option<PauseSenders> =
            network.has_pause_frames().then(|| config.queues.iter().map(sender).collect());
        let lead = |(number, queue): (QueueIndex, &QueueConfig)| match senders.as_ref().map(|senders| senders[number]) {
            Some(sender) => sender.map_or(Span(u64::MAX), |(_, sender)| sender.sending + sender.response),
            // A pause frame is as long as a cell, and takes the link's delay to travel back.
            None => times[queue.link].cell_time + times[queue.link].delay,
        };
        let leads = config.queues.iter_enumerated().map(lead).collect();
        let groups = config.queues.iter().map(|queue| (queue.link, queue.priority)).collect();
        Some((Box::new(Self { groups, leads }), senders.map(Box::new)))
    }

    /// Returns the shortest time from a change to the arrival of its pause frame.
    pub(super) fn least_lead(&self) -> Option<Span> {
        self.leads.iter().copied().min()
    }

    /// Returns the arrival of a pause frame, and its link and priority.
    pub(super) fn arrival(&self, change: PauseChange) -> (Time, PausedGroup) {
        (change.at + self.leads[change.queue], self.groups[change.queue])
    }
}
