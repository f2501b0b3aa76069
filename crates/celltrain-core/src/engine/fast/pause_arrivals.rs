//! Arrivals of pause frames: ports stop or continue, and the engine looks for deadlocks.

use super::engine::Engine;
use super::event_list::{Leaf, Rank};
use super::fabric::Fabric;
use super::memory_ports::MemoryPorts;
use super::pausable_nic::TakenBack;
use super::pauses::PauseFrame;
use super::plan::{PausableIndex, Role, StageEnd};
use crate::cancellation::{CancellationToken, Interrupted};
use crate::memory::{PausedGroups, deadlock};
use crate::units::{Span, Time};

impl Engine<'_> {
    /// Lets ports obey the pause frames that arrive at `now`, and looks for a deadlock at the end of this instant. All cells
    /// that arrive by then are known.
    pub(super) fn obey_pauses(&mut self, now: Time, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        while let Some(frame) = self.fabric.pauses.as_mut().and_then(|pauses| pauses.take(now)) {
            let PauseFrame { link, priority, command, .. } = frame;
            match self.fabric.plan.roles[link] {
                Role::Pausable(nic) => {
                    self.take_back_at_host(nic, now);
                    self.pausable_nics[nic].obey(priority, command);
                    // The host sends after all pause frames of this instant.
                    self.schedule_host(nic, now);
                }
                Role::Contended(port) => {
                    let (unit, place) = self.links.unit(port);
                    self.work(unit, now, token)?;
                    let ports = self.ports[unit].as_deref_mut().and_then(MemoryPorts::of_mut);
                    let ports = ports.expect("a port that obeys pauses is in a memory");
                    if let Some(effect) = ports.obey(place, priority, command, now) {
                        self.fabric.event_list.settle_by(unit, effect);
                    }
                }
                Role::Host(_) | Role::Shaped(_) | Role::Transparent => unreachable!("the port obeys no pauses"),
            }
        }
        let Fabric { pauses: Some(pauses), event_list, .. } = &mut self.fabric else { return Ok(()) };
        if !pauses.may_deadlock() {
            pauses.watch(None, event_list);
            return Ok(());
        }
        self.look_for_deadlock(now, token)
    }

    /// Schedules the next search for a deadlock, if stopped ports wait for each other in a cycle. Must be called after each
    /// event, because the event may have sent cells that arrive before all others.
    #[cold]
    pub(super) fn watch_for_deadlock(&mut self) {
        let memories = self.fabric.plan.memories.keys();
        let next = memories.map(|memory| self.memory_ports(memory).next_change(&self.links)).min();
        if let Some(pauses) = &mut self.fabric.pauses {
            pauses.watch(next, &mut self.fabric.event_list);
        }
    }

    /// Looks for groups that pause each other forever at the end of the instant `now`.
    fn look_for_deadlock(&mut self, now: Time, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        let mut groups = PausedGroups::new();
        for memory in self.fabric.plan.memories.keys() {
            self.work(self.fabric.plan.memories[memory].lead, now + Span(1), token)?;
            let config = &self.network.memories[memory];
            self.memory_ports(memory).each_paused_cell(|port, group| {
                let queue = &config.queues[group];
                groups.entry((queue.link, queue.priority)).or_default().insert(port);
            });
            token.tick(groups.len() + 1)?;
        }
        if let Some(pauses) = &mut self.fabric.pauses {
            let found = deadlock(groups, |group| pauses.stays_stopped(group));
            pauses.deadlock = found.map(|cycle| (now, cycle));
            // The caller of the event sets the instant of the next search.
            pauses.watch(pauses.deadlock.is_none().then_some(Time::NEVER), &mut self.fabric.event_list);
        }
        Ok(())
    }

    /// Takes back the cells of a host's port that would start at `now` or later.
    fn take_back_at_host(&mut self, nic: PausableIndex, now: Time) {
        let link = self.fabric.plan.pausable[nic];
        while let Some(TakenBack { label, cells }) = self.pausable_nics[nic].take_back(now) {
            let StageEnd::Port { port, input, .. } = self.fabric.plan.stages[link][label].end else {
                unreachable!("cells are passed on early only to contended ports");
            };
            self.links.take_back(port, input, cells);
        }
    }

    /// Sends the cells of a host's port that may start at `now`. Later cells are sent early, if they can be taken back.
    pub(super) fn send_from_host(&mut self, nic: PausableIndex, now: Time) {
        let link = self.fabric.plan.pausable[nic];
        let ahead = self.nics_ahead[nic].and_then(|lead| self.fabric.horizon.0.checked_sub(lead.0));
        let until = ahead.map_or(now, |until| now.max(Time(until)));
        let cell_time = self.pausable_nics[nic].cell_time();
        while let Some((mut run, first_start)) = self.pausable_nics[nic].send(now, until) {
            // No policed cell is sent ahead.
            if ahead.is_none() && self.fabric.polices_departures(self.routing.vcs[link][run.last.label()], link) {
                run = self.police(link, run, first_start, cell_time, Time::default());
            }
            self.go(link, run, first_start, cell_time);
        }
        self.schedule_host(nic, now);
    }

    fn schedule_host(&mut self, nic: PausableIndex, now: Time) {
        let next = self.pausable_nics[nic].next_start().map(|start| (start.max(now), Rank::Shape));
        self.fabric.event_list.set(Leaf::Pausable(nic), next);
    }
}
