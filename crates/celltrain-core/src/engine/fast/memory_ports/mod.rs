//! The ports of one memory, which are settled together.
//!
//! A cell that leaves one port makes room for a cell of another, and the memory may remove a cell of any port. So all
//! arrivals and departures at these ports are processed one by one, in order of time; `docs/design/shared-memory.md`
//! defines the order within an instant. Each port takes its cells from its own streams. A departure is passed on once
//! everything up to that instant is known.

mod arrivals;
mod calendar;
mod inside;
mod pause_frames;
mod plain;
mod port;
mod sent;
mod stored;
mod waiting;

use std::any::Any;

use typed_index_collections::{TiVec, ti_vec};

use super::contended_port::{ContendedPort, Due, Worked};
use super::egress::{Downstream, Egress};
use super::fabric::Fabric;
use super::ingress::{Batch, CellIngress};
use super::links::Links;
use super::output::Arrival;
use super::pauses::{PauseCommand, PauseSenders, Pausing};
use super::plan::MemoryPlace;
use super::port_queue::{PortQueue, VcCounts};
use super::timing::Arrivals;
use crate::cell::{Cell, Run};
use crate::departure::Behind;
use crate::engine::predictions::LossRecorder;
use crate::events::Loss;
use crate::index::{Label, LinkIndex};
use crate::marking::Counted;
use crate::memory::{
    Attempt, CellClass, FrameAdmission, Memory, MemoryConfig, PolicyScope, PoolIndex, QueueIndex, Removal,
};
use crate::policy::View;
use crate::port::FrameOutcome;
use crate::port::admission::Verdict;
use crate::tie::ServiceOrder;
use crate::units::{Span, Time};
use arrivals::Merging;
use calendar::Calendar;
use inside::Sending;
use port::Removals;
pub(super) use port::{CellTimes, MemoryPort};
use waiting::Waiting;

pub(super) struct MemoryPorts {
    pub(super) ingress: CellIngress,
    merging: Merging,
    /// The pauses that the memory sends, unless it only counts them.
    pausing: Option<Box<Pausing>>,
    switch: Switch,
}

/// The ports of the memory, without their input links.
struct Switch {
    memory: Memory,
    ports: TiVec<MemoryPlace, MemoryPort>,
    /// The VCs of all ports. A label is a position in this list.
    vcs: TiVec<Label, ArrivingVc>,
    /// The port of each queue of the memory, if the queue is on the egress side.
    port_of_queue: Vec<Option<MemoryPlace>>,
    calendar: Calendar,
    /// Idle ports that received a cell in this instant, and ports served in this instant. Empty between instants.
    to_start: Vec<MemoryPlace>,
    rules: Rules,
    /// Arrivals recorded for the ports' allocators but not reported yet.
    arrivals: Vec<(LinkIndex, Arrival)>,
    /// Records the lost cells, for predictions.
    recorder: Option<LossRecorder>,
    /// True if cells inside packets only change counts (`inside.rs`).
    is_plain: bool,
    /// The packets that the ports send, by place.
    sending: TiVec<MemoryPlace, Sending>,
    /// The route of pause frames for each group, if they travel as on a wire.
    pause_senders: Option<Box<PauseSenders>>,
    /// True if something may happen at the end of each instant: policies act, or pause frames are sent.
    has_ends: bool,
}

/// A VC that crosses the memory.
#[derive(Clone, Copy)]
pub(super) struct ArrivingVc {
    pub(super) place: MemoryPlace,
    /// The label of the VC at its port.
    pub(super) label: Label,
    pub(super) class: CellClass,
    /// `Recorded` if the port records the VC's arrivals.
    pub(super) arrivals: Arrivals,
}

/// The rules of the memory's ports that do not change during a run.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// A cell has no effect elsewhere for at least this time after its start.
    pub(super) least_lead: Span,
    pub(super) service: ServiceOrder,
    /// With [`FrameAdmission::Whole`], the whole frame is refused when its first cell finds no room.
    pub(super) frames: FrameAdmission,
    pub(super) policies_see: PolicyScope,
}

impl Rules {
    /// Returns the rules of a memory.
    pub(super) fn of(config: &MemoryConfig, service: ServiceOrder, least_lead: Span) -> Self {
        Self { least_lead, service, frames: config.frames, policies_see: config.policies_see }
    }

    fn policies_see_memory(self) -> bool {
        self.policies_see == PolicyScope::Memory
    }
}

/// Result of searching the memory for room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// The memory has room for the cell, and already counts it.
    Found,
    NotFound,
    /// The memory removed a cell of the same frame, and the port's policy refuses the rest of the frame.
    FrameCut,
}

impl MemoryPorts {
    /// Creates the ports of this memory.
    pub(super) fn new(
        config: &MemoryConfig,
        memory: Memory,
        ingress: CellIngress,
        mut ports: TiVec<MemoryPlace, MemoryPort>,
        vcs: TiVec<Label, ArrivingVc>,
        cell_times: impl ExactSizeIterator<Item = Span>,
        rules: Rules,
    ) -> Self {
        let place = |link: LinkIndex| ports.iter().position(|port| port.link() == link).map(MemoryPlace::from);
        let port_of_queue = config.queues.iter().map(|queue| place(queue.link)).collect();
        let pushes_out = config.pools.iter().any(|pool| pool.policy.pushes_out());
        let counts_all = rules.policies_see_memory() && ports.iter().any(|port| port.vc_counts == VcCounts::Kept);
        for port in &mut ports {
            port.counting = port.classes.iter().map(|&class| memory.counting_queue(class)).collect();
            if pushes_out {
                port.removals = Removals::Possible;
            }
            if counts_all {
                port.vc_counts = VcCounts::Kept;
            }
        }
        let calendar = Calendar::new(cell_times);
        let (to_start, arrivals) = Default::default();
        let recorder = None;
        let sending = ti_vec![Sending::default(); ports.len()];
        let is_plain = inside::are_plain(&memory, &ports, &vcs);
        let has_ends = memory.has_clock();
        let mut switch = Switch {
            memory,
            ports,
            vcs,
            port_of_queue,
            calendar,
            to_start,
            rules,
            arrivals,
            recorder,
            is_plain,
            sending,
            pause_senders: None,
            has_ends,
        };
        switch.find_plain_ports();
        Self { merging: Merging::new(&ingress), ingress, pausing: None, switch }
    }

    /// Lets the memory pause the links that feed its ports.
    #[must_use]
    pub(super) fn pausing(mut self, pausing: Option<(Box<Pausing>, Option<Box<PauseSenders>>)>) -> Self {
        if let Some((pausing, senders)) = pausing {
            self.switch.has_ends |= senders.is_some();
            (self.pausing, self.switch.pause_senders) = (Some(pausing), senders);
        }
        self
    }

    /// Lets a port obey a pause frame that arrives at `now`. Everything before `now` is settled. Returns the earliest instant
    /// at which a cell that may go now can have an effect elsewhere.
    pub(super) fn obey(&mut self, place: MemoryPlace, priority: u8, command: PauseCommand, now: Time) -> Option<Time> {
        let port = &mut self.switch.ports[place];
        match &mut port.wire_pauses {
            Some(pauses) => pauses.stopped.obey(priority, command),
            None => port.waiting.pausable_queue().obey(priority, command),
        }
        if command == PauseCommand::Stop || port.is_busy || !port.is_ready() {
            return None;
        }
        // The port is served in this instant, as if the link had been busy until then.
        port.is_busy = true;
        self.switch.calendar.start_until(place, now);
        Some(now + self.switch.rules.least_lead)
    }

    /// Calls `act` for waiting cells of paused groups, with their port and group.
    pub(super) fn each_paused_cell(&self, mut act: impl FnMut(LinkIndex, QueueIndex)) {
        let Switch { memory, ports, .. } = &self.switch;
        for port in ports {
            for run in port.cells() {
                if let Some(group) = port.class(run.last.label()).ingress.filter(|&group| memory.is_paused(group)) {
                    act(port.link(), group);
                }
            }
        }
    }

    /// Returns the next instant at which a cell may leave or arrive, or a policy of the memory acts.
    pub(super) fn next_change(&self, links: &Links) -> Time {
        let next = self.switch.calendar.first().min(links.first(self.ingress.row()));
        self.switch.memory.next_time().map_or(next, |action| action.min(next))
    }

    /// Returns true with packet framing.
    fn delimits(&self) -> bool {
        self.switch.ports.first().is_some_and(|port| port.admission.delimits())
    }

    /// Returns whether the ports store packets whole.
    fn stores(&self) -> bool {
        self.switch.stores()
    }

    /// Processes all arrivals and departures before `until`. `DELIMITS` is true with packet framing, and `STORES` if
    /// the ports store packets whole.
    #[inline(never)]
    fn take_cells<const DELIMITS: bool, const STORES: bool>(&mut self, until: Time, downstream: &mut Downstream<'_>) {
        self.take_arrivals::<DELIMITS, STORES>(until, downstream);
        let switch = &mut self.switch;
        switch.settle::<STORES>(until, downstream);
        if STORES {
            switch.update_sent();
        } else {
            switch.pass_on(downstream);
        }
        while let Some(change) = switch.memory.next_pause_change() {
            if let (Some(pausing), Fabric { pauses: Some(pauses), event_list, .. }) =
                (&self.pausing, &mut *downstream.fabric)
            {
                let (time, group) = pausing.arrival(change);
                pauses.send(time, group, PauseCommand::after(change), event_list);
            }
        }
    }

    /// Returns the earliest instant at which a waiting cell can have an effect elsewhere.
    fn effect_of_waiting(&self) -> Option<Time> {
        let Switch { calendar, ports, rules, .. } = &self.switch;
        if self.stores() {
            let ready =
                calendar.busy().filter(|&(.., place)| ports[place].is_ready() || ports[place].has_pause_frame());
            let effect = |(free_at, cell_time, place): (Time, Span, MemoryPlace)| {
                // The departure of any cell may end a pause.
                let before = if self.pausing.is_some() { 0 } else { ports[place].least_to_an_effect() };
                free_at + cell_time * u64::from(before)
            };
            return Some(ready.map(effect).min()? + rules.least_lead);
        }
        Some(calendar.first_of(|place| ports[place].is_ready())? + rules.least_lead)
    }

    /// Returns the earliest instant at which an action of the memory's policies can have an effect elsewhere: it removes
    /// cells, which may end a pause.
    fn effect_of_action(&self) -> Option<Time> {
        let action = self.switch.memory.next_time().filter(|_| self.pausing.is_some())?;
        Some(action + self.switch.rules.least_lead)
    }

    /// Returns this port if it stands for the ports of a memory.
    pub(super) fn of(port: &dyn ContendedPort) -> Option<&Self> {
        (port as &dyn Any).downcast_ref()
    }

    pub(super) fn of_mut(port: &mut dyn ContendedPort) -> Option<&mut Self> {
        (port as &mut dyn Any).downcast_mut()
    }

    pub(super) fn port(&self, place: MemoryPlace) -> &MemoryPort {
        &self.switch.ports[place]
    }

    /// Starts recording which arriving cells are lost.
    pub(super) fn record(&mut self) {
        self.switch.recorder = Some(LossRecorder::default());
        self.switch.is_plain = false;
        self.switch.ports.iter_mut().for_each(|port| port.plain = None);
    }

    /// Returns, for each recorded arrival, whether the cell was lost.
    pub(super) fn take_record(&mut self) -> Vec<bool> {
        self.switch.recorder.take().map(LossRecorder::into_losses).unwrap_or_default()
    }

    /// Gives the policy of a pool its predictions: for each arrival, whether Longest Queue Drop loses the cell.
    pub(super) fn predict(&mut self, pool: PoolIndex, losses: Vec<bool>) {
        self.switch.memory.predict(pool, losses.into());
    }

    /// Returns the memory's state at the instant up to which its ports are simulated.
    pub(super) fn memory(&self) -> &Memory {
        &self.switch.memory
    }
}

impl ContendedPort for MemoryPorts {
    fn work(&mut self, Due { port, until, .. }: Due, _: &mut Batch, downstream: &mut Downstream<'_>) -> Worked {
        let reached = self.ingress.reach(until, downstream.links, |first| first);
        if self.stores() {
            self.take_cells::<true, true>(reached, downstream);
        } else if self.delimits() {
            self.take_cells::<true, false>(reached, downstream);
        } else {
            self.take_cells::<false, false>(reached, downstream);
        }
        self.switch.arrivals.drain(..).for_each(|(link, arrival)| arrival.report(link, downstream));
        let next = self.ingress.next_to_matter;
        let effect_of_waiting = self.effect_of_waiting().into_iter().chain(self.effect_of_action()).min();
        let next_effect = downstream.links.next_effect(port, Time::default(), next, effect_of_waiting);
        Worked { reached, next_effect }
    }

    fn name(&self) -> String {
        "MemoryPorts".into()
    }

    fn queue(&self, place: MemoryPlace) -> &dyn PortQueue {
        &self.switch.ports[place]
    }

    fn queue_mut(&mut self, place: MemoryPlace) -> &mut dyn PortQueue {
        &mut self.switch.ports[place]
    }

    /// The ports are always simulated up to the present. Updates the counts of all ports.
    fn look_at(&mut self, until: Time) {
        self.merging.inside_mut().for_each(|inside| self.switch.store_entered(inside));
        self.switch.ports.iter_mut().for_each(|port| port.look_at(until));
    }

    fn each_egress(&mut self, act: &mut dyn FnMut(&mut Egress)) {
        self.switch.ports.iter_mut().for_each(|port| act(&mut port.egress));
    }

    fn report_partial_frames(&mut self, downstream: &mut Downstream<'_>) {
        for port in &mut self.switch.ports {
            port.collect_all_sent(downstream.fabric);
            port.egress.to_hosts.report_partial_frames(downstream.fabric);
        }
    }
}

impl Switch {
    /// Returns whether the ports store packets whole.
    fn stores(&self) -> bool {
        self.ports.first().is_some_and(|port| port.stored.is_some())
    }

    /// Processes all departures before the first arrival of an instant.
    #[inline(always)]
    fn begin_instant<const STORES: bool>(&mut self, now: Time, downstream: &mut Downstream<'_>) {
        self.settle::<STORES>(now, downstream);
        if self.rules.service == ServiceOrder::BeforeArrivals {
            self.serve::<STORES>(now, downstream);
        }
    }

    /// Processes the instants before `until` that have no arrivals.
    #[inline(always)]
    fn settle<const STORES: bool>(&mut self, until: Time, downstream: &mut Downstream<'_>) {
        if !STORES || self.has_ends {
            self.settle_each::<STORES>(until, downstream);
        } else if self.calendar.first() < until {
            self.send_before(until, downstream);
        }
    }

    /// Processes the instants before `until` that have no arrivals, one after another.
    #[inline]
    fn settle_each<const STORES: bool>(&mut self, until: Time, downstream: &mut Downstream<'_>) {
        loop {
            let departure = self.calendar.first();
            let now = self.memory.next_time().map_or(departure, |action| departure.min(action));
            if now >= until {
                return;
            }
            self.end_instant::<STORES>(now, downstream);
        }
    }

    /// Serves the ports at the end of an instant, and lets the memory's policies act.
    #[inline(always)]
    fn end_instant<const STORES: bool>(&mut self, now: Time, downstream: &mut Downstream<'_>) {
        if !self.to_start.is_empty() || self.calendar.first() == now {
            self.serve::<STORES>(now, downstream);
        }
        if self.has_ends {
            self.act::<STORES>(now, downstream);
        }
    }

    /// Lets the memory's policies act at the end of an instant, and orders pause frames.
    #[inline(never)]
    fn act<const STORES: bool>(&mut self, now: Time, downstream: &mut Downstream<'_>) {
        if self.memory.next_time().is_some_and(|time| time <= now) {
            while let Some(removal) = self.memory.on_time(now) {
                if STORES {
                    let cells = self.remove_packet(removal, None, now);
                    self.memory.removed(removal.queue, cells);
                } else {
                    self.remove(removal, None, now);
                }
            }
        }
        self.order_pauses(now, downstream);
    }

    /// Starts a transmission at every port that is free and has a cell, in order of the ports.
    #[inline(never)]
    fn serve<const STORES: bool>(&mut self, now: Time, downstream: &mut Downstream<'_>) {
        if STORES && self.to_start.is_empty() {
            return self.send_before(now + Span(1), downstream);
        }
        if self.to_start.is_empty() {
            return self.start_busy(now, downstream);
        }
        while let Some((_, place)) = self.calendar.take_before(now + Span(1)) {
            self.to_start.push(place);
        }
        self.to_start.sort_unstable();
        for i in 0..self.to_start.len() {
            if STORES {
                self.send_next(self.to_start[i], now, downstream);
            } else {
                self.start::<false>(self.to_start[i], now, downstream);
            }
        }
        self.to_start.clear();
    }

    /// Starts a transmission at every port that becomes free and has a cell, if no other port has a cell to send.
    #[inline(always)]
    fn start_busy(&mut self, now: Time, downstream: &mut Downstream<'_>) {
        loop {
            let Self { calendar, memory, ports, recorder, .. } = &mut *self;
            let sends = |now, place: MemoryPlace| {
                let port = &mut ports[place];
                match port.leave_plain(now, memory, downstream) {
                    Some(leaves) => leaves,
                    None => port.has_equal_times() && send_one(port, now, memory, recorder, downstream),
                }
            };
            let Some((_, place)) = calendar.restart_while(now + Span(1), sends) else { return };
            self.start::<false>(place, now, downstream);
        }
    }

    /// Makes a free port send its next cell, if any cell waits.
    #[inline(always)]
    fn start<const STORES: bool>(&mut self, place: MemoryPlace, now: Time, downstream: &mut Downstream<'_>) {
        let port = &mut self.ports[place];
        if !port.has_equal_times() {
            return self.start_with_own_time::<STORES>(place, now, downstream);
        }
        if let Some(leaves) = port.leave_plain(now, &mut self.memory, downstream) {
            port.is_busy = leaves;
            if leaves {
                self.calendar.start(place, now);
            }
            return;
        }
        let cell = loop {
            let Some(cell) = (if STORES { port.take_stored() } else { port.take() }) else {
                port.is_busy = false;
                return;
            };
            if STORES {
                port.collect_sent(cell, downstream.fabric);
            }
            if let Some(cell) = leave(port, cell, now, &mut self.memory, &mut self.recorder) {
                break cell;
            }
        };
        self.calendar.start(place, now);
        port.egress.send_first_to_hosts(cell, now, downstream);
    }

    /// Makes a free port whose cells take different times send its next cell, if any cell waits and the port may send it
    /// now.
    #[inline(never)]
    fn start_with_own_time<const STORES: bool>(
        &mut self,
        place: MemoryPlace,
        now: Time,
        downstream: &mut Downstream<'_>,
    ) {
        let port = &mut self.ports[place];
        if let CellTimes::Changing(transmitter) = &mut port.times
            && let ready = transmitter.ready(now)
            && ready > now
        {
            self.calendar.start_until(place, ready);
            return;
        }
        let cell = loop {
            let Some(cell) = (if STORES { port.take_stored() } else { port.take() }) else {
                port.is_busy = false;
                return;
            };
            if STORES {
                port.collect_sent(cell, downstream.fabric);
            }
            if let Some(cell) = leave(port, cell, now, &mut self.memory, &mut self.recorder) {
                break cell;
            }
        };
        let link = port.link();
        let time = match &mut port.times {
            CellTimes::Changing(transmitter) => transmitter.send(cell, now),
            CellTimes::Equal | CellTimes::Ethernet => downstream.fabric.sending_time(link, cell),
        };
        self.calendar.start_until(place, now + time);
        if let CellTimes::Changing(_) = port.times {
            downstream.send_alone(link, cell, now, time);
        } else {
            port.on_ethernet += time.0;
            downstream.send_on_ethernet(link, cell, now, time);
        }
    }

    #[inline(always)]
    fn arrive<const DELIMITS: bool>(&mut self, now: Time, cell: Cell) {
        let vc = self.vcs[cell.label()];
        let cell = cell.relabelled(vc.label);
        if !self.enter_plain::<DELIMITS>(vc.place, cell, vc.class, now) {
            self.offer::<DELIMITS>(now, cell, vc);
        }
    }

    #[inline(never)]
    fn offer<const DELIMITS: bool>(&mut self, now: Time, mut cell: Cell, vc: ArrivingVc) {
        let ArrivingVc { place, label, class, arrivals } = vc;
        if arrivals == Arrivals::Recorded {
            let arrival = Arrival { run: Run { last: cell, cells: 1 }, first: now, period: Span(0) };
            self.arrivals.push((self.ports[place].link(), arrival));
        }
        if cell.is_rm() {
            self.arrive_rm(now, place, cell, class);
            return;
        }
        let port = &mut self.ports[place];
        if DELIMITS {
            port.admission.delimit(cell);
        }
        if let Some(rule) = &mut port.rule {
            let of = rule.marker.as_ref().map_or(Counted::Port, |marker| marker.of);
            let waiting = self.memory.counted(of, class, port.occupancy);
            cell = rule.on_arrival(cell, waiting);
        }
        let starts = self.rules.frames == FrameAdmission::Whole && port.admission.starts_frame(label);
        let admits_all = if self.rules.policies_see_memory() {
            // X counts only the cells of one pool, so a VC with cells in several pools may have more than X cells.
            !port.admission.may_refuse_frames()
        } else {
            port.occupancy < port.admission.asked_from()
        };
        let arrived = port.admission.on_cell(cell, admits_all);
        let passes = arrived.passes() || (arrived.starts() && self.judge_frame(now, place, cell, class));
        if !passes {
            self.arrive_unwelcome(now, place, cell, class);
            return;
        }
        let room = if DELIMITS && !starts {
            self.make_room::<true>(now, place, cell, class)
        } else {
            self.make_room::<false>(now, place, cell, class)
        };
        match room {
            Room::Found => self.enqueue(now, place, cell),
            Room::NotFound if starts => {
                self.ports[place].admission.refuse_frame(label);
                self.refuse(now, place, cell, class, true);
            }
            Room::NotFound => self.refuse(now, place, cell, class, true),
            Room::FrameCut => self.refuse(now, place, cell, class, false),
        }
    }

    /// Puts a cell that the memory has already counted into its port's queue.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, place: MemoryPlace, cell: Cell) {
        let port = &mut self.ports[place];
        port.enqueue(now, cell);
        if !port.is_busy {
            port.is_busy = true;
            self.to_start.push(place);
        }
    }

    /// Offers a resource management cell. The cell belongs to no frame, so it is lost only if there is no room.
    #[cold]
    fn arrive_rm(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass) {
        self.ports[place].admission.on_cells_between(cell.label(), 1);
        match self.make_room::<false>(now, place, cell, class) {
            Room::Found => self.enqueue(now, place, cell),
            Room::NotFound => self.ports[place].admission.lose_rm(cell.label()),
            Room::FrameCut => unreachable!("an RM cell belongs to no frame"),
        }
    }

    /// Asks the policy of a port about a frame whose first cell arrives. Returns whether the frame may enter.
    #[inline(never)]
    fn judge_frame(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass) -> bool {
        let sees_memory = self.rules.policies_see_memory();
        let of_all = sees_memory.then(|| self.ports.iter().map(|port| port.counts.active_vcs).sum());
        let port = &mut self.ports[place];
        let view = View {
            occupancy: if sees_memory { self.memory.seen_by_policies() } else { port.occupancy },
            counted: self.memory.counted(port.counted(), class, port.occupancy),
            capacity: port.capacity,
            active_vcs: of_all.unwrap_or(port.counts.active_vcs),
            per_vc: &port.counts.per_vc,
            tagged: cell.tagged(),
            capable: cell.capable(),
            now,
        };
        port.admission.judge_frame(&view, cell)
    }

    /// Finds room for a cell that has just arrived, as [`Switch::find_place`] does.
    #[inline(always)]
    fn make_room<const REST: bool>(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass) -> Room {
        self.memory.arrive(class, now);
        let room = self.find_place::<REST>(now, place, cell, class);
        if let Some(recorder) = &mut self.recorder {
            recorder.arrive(class.egress, room == Room::Found);
        }
        room
    }

    /// Finds room for a cell, and removes other cells if the memory's policy decides to. `REST` is true, with packet
    /// framing, if the memory has already admitted the cell's packet.
    #[inline(always)]
    fn find_place<const REST: bool>(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass) -> Room {
        let attempt = if REST {
            self.memory.try_enter_rest(class, now)
        } else {
            self.memory.try_enter_counting(self.ports[place].counting[cell.label()], class, now)
        };
        match attempt {
            Attempt::Entered => Room::Found,
            Attempt::Refused(..) => Room::NotFound,
            Attempt::PushOut(removal) => self.push_out::<REST>(removal, now, place, cell, class),
        }
    }

    #[inline(always)]
    fn try_enter<const REST: bool>(&mut self, class: CellClass, now: Time) -> Attempt {
        if REST { self.memory.try_enter_rest(class, now) } else { self.memory.try_enter(class, now) }
    }

    /// Removes waiting cells until there is room for an arriving cell, or no cell can be removed.
    #[inline(never)]
    fn push_out<const REST: bool>(
        &mut self,
        mut removal: Removal,
        now: Time,
        place: MemoryPlace,
        cell: Cell,
        class: CellClass,
    ) -> Room {
        loop {
            self.remove(removal, Some((place, cell)), now);
            if !cell.is_rm() && !self.wants(place, cell) {
                return Room::FrameCut;
            }
            removal = match self.try_enter::<REST>(class, now) {
                Attempt::Entered => return Room::Found,
                Attempt::Refused(..) => return Room::NotFound,
                Attempt::PushOut(next) => next,
            };
        }
    }

    /// Returns whether an arriving cell enters its port, provided there is room.
    fn wants(&self, place: MemoryPlace, cell: Cell) -> bool {
        self.ports[place].admission.fate(cell) != FrameOutcome::Refused
    }

    /// Removes a waiting cell. `arriving` is the cell that needs its place, with the port of that cell.
    #[inline(never)]
    fn remove(&mut self, Removal { queue, end }: Removal, arriving: Option<(MemoryPlace, Cell)>, now: Time) {
        let place = self.port_of_queue[usize::from(queue)].expect("cells are removed from queues at ports");
        let arriving = arriving.filter(|&(to, _)| to == place).map(|(_, cell)| cell);
        let port = &mut self.ports[place];
        let cell = port.remove(end, arriving, |class| class.egress == Some(queue));
        self.memory.push_out(port.class(cell.label()), now);
        if let Some(recorder) = &mut self.recorder {
            recorder.remove(queue, end);
        }
    }

    /// Offers a cell of a frame that its port has refused or damaged. The frame's last cell may still enter.
    #[cold]
    fn arrive_unwelcome(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass) {
        let room =
            if self.wants(place, cell) { self.make_room::<false>(now, place, cell, class) } else { Room::FrameCut };
        self.refuse(now, place, cell, class, room == Room::NotFound);
    }

    /// Decides what happens to a cell that finds no room (`is_full`) or whose frame is refused.
    #[cold]
    fn refuse(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass, is_full: bool) {
        let port = &mut self.ports[place];
        let mut verdict = port.admission.verdict(cell, is_full, false);
        if verdict == Verdict::PushOut {
            port.push_out_front(cell, |class| self.memory.push_out(class, now));
            let is_full = self.wants(place, cell) && self.find_place::<false>(now, place, cell, class) != Room::Found;
            verdict = self.ports[place].admission.final_verdict(cell, is_full);
        }
        match verdict {
            Verdict::Enter => self.enqueue(now, place, cell),
            Verdict::Refuse(Loss::NoRoom { cuts: true }) => self.ports[place].note_cut(cell),
            Verdict::Refuse(_) => {}
            Verdict::DiscardHeld(_) | Verdict::PushOut => {
                unreachable!("no VCs merge here, and the decision of the memory is final")
            }
        }
    }
}

/// Sends the next cell of a free port. Returns whether any cell waits.
#[inline(never)]
fn send_one(
    port: &mut MemoryPort,
    now: Time,
    memory: &mut Memory,
    recorder: &mut Option<LossRecorder>,
    downstream: &mut Downstream<'_>,
) -> bool {
    while let Some(cell) = port.take() {
        if let Some(cell) = leave(port, cell, now, memory, recorder) {
            port.egress.send_first_to_hosts(cell, now, downstream);
            return true;
        }
    }
    false
}

/// Frees the place of a cell that leaves its port. Returns the cell, which the port may have marked, or `None` if the
/// port's policy drops it.
#[inline(always)]
fn leave(
    port: &mut MemoryPort,
    mut cell: Cell,
    now: Time,
    memory: &mut Memory,
    recorder: &mut Option<LossRecorder>,
) -> Option<Cell> {
    let class = port.class(cell.label());
    match port.counting[cell.label()] {
        Some(queue) => memory.count_out(queue, now),
        None => memory.leave(class, now),
    }
    if let Some(rule) = &mut port.rule {
        let of = rule.marker.as_ref().map_or(Counted::Port, |marker| marker.of);
        let label = cell.label();
        let counted = memory.counted(of, class, port.occupancy);
        let left = match &port.waiting {
            Waiting::Scheduled(queues) if rule.decides() => queues.left(label),
            _ => port.occupancy - port.stored.as_ref().map_or(0, |stored| stored.cells),
        };
        let Some(sent) = rule.on_departure(cell, Behind { left, counted }, now, &mut port.admission) else {
            if let Waiting::Scheduled(queues) = &mut port.waiting {
                queues.on_dropped(label);
            }
            return None;
        };
        cell = sent;
    }
    if let Some(recorder) = recorder {
        recorder.leave(class.egress);
        if cell.last_cell() {
            recorder.end_packet(class.egress, cell, false);
        }
    }
    Some(cell)
}
