//! The main loop, which advances a run step by step up to a horizon.
//!
//! The engine knows departures of cells in advance. It holds back cells that would arrive after the horizon and counts
//! them as late, as at the end of a run. So all counts at the horizon are exact, and a frame injected at the horizon
//! comes before every event that is not yet processed.

use super::contended_port::Ports;
use super::engine::Engine;
use super::event_list::Key;
use super::fabric::Fabric;
use super::late::{HeldBack, RmDeparture};
use super::links::Ingress;
use super::nic::Phase;
use super::plan::{Plan, Role, StageEnd};
use super::port_plan::PortMode;
use super::port_queue::PortQueue as _;
use crate::cancellation::{CancellationToken, Interrupted};
use crate::cell::{Cell, FrameNumber, Run};
use crate::end_systems::{EndSystems, InjectedFrame};
use crate::engine::predictions::predictions;
use crate::engine::{Advance, Outcome, Progress};
use crate::index::LinkIndex;
use crate::network::Network;
use crate::probe::{NetworkView, Nothing, Probe, Queues};
use crate::units::{Span, Time};

/// An event is a frame at a host or a batch of cells at a port. Long batches also check the token, see
/// [`super::contended_port::ContendedPort::work`].
const PIECES_OF_AN_EVENT: usize = 4;
/// Events are counted in groups, because counting each event costs more time.
const EVENTS_AT_ONCE: usize = 8;

impl<'a> Engine<'a> {
    /// Creates the engine of a whole network at the start of a run. `traced` contains the ports whose ranges probes
    /// read during the run.
    pub(in crate::engine) fn start(
        network: &'a Network,
        mode: PortMode,
        traced: Option<&[LinkIndex]>,
        token: &CancellationToken<'_>,
    ) -> Result<Self, Interrupted> {
        let mut engine = Self::new(network, mode, traced, None, token)?;
        engine.predict(mode, token)?;
        Ok(engine)
    }

    /// Uses a separate run to record which cells Longest Queue Drop loses, and passes these losses to the policies of
    /// memories.
    fn predict(&mut self, mode: PortMode, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        let predictions = predictions(self.network, |network, memory| {
            let mut recorded = Engine::new(network, mode, None, None, token)?;
            recorded.memory_ports_mut(memory).record();
            recorded.advance(Advance::to(recorded.end), &mut Nothing, &Progress::default(), token)?;
            recorded.close(token)?;
            Ok(recorded.memory_ports_mut(memory).take_record())
        })?;
        for (memory, pool, losses) in predictions {
            self.memory_ports_mut(memory).predict(pool, losses);
        }
        Ok(())
    }

    /// Advances the run to the end of `advance`, and includes the events at that instant.
    pub(in crate::engine) fn advance(
        &mut self,
        advance: Advance,
        probe: &mut impl Probe,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        self.set_horizon(advance.until);
        self.process_events(advance, probe, progress, token)?;
        progress.now.set(advance.until);
        Ok(())
    }

    /// Processes all events up to the end of `advance`, which is not after the horizon.
    pub(in crate::engine) fn process_events(
        &mut self,
        Advance { until, snapshots_end }: Advance,
        probe: &mut impl Probe,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        self.undisturbed_until = until;
        let (mut events, mut reached) = (0, Time::default());
        loop {
            let key = self.fabric.event_list.first();
            if let Some(at) = probe.next_snapshot().filter(|&at| at < key.time() && at < snapshots_end) {
                self.settle(at, token)?;
                let seen = self.seen(at);
                let Fabric { rate_control, end_systems, .. } = &self.fabric;
                probe.snapshot(at, &NetworkView { queues: &seen, rate_control, end_systems });
                self.start_ranges(probe.traced_ports(), at);
                // A snapshot simulates the ports up to the present, so the next event may now be earlier.
                continue;
            }
            if key.time() > until {
                return Ok(());
            }
            assert!(reached <= key.time(), "time never runs backwards");
            reached = key.time();
            if events == 0 {
                events = EVENTS_AT_ONCE;
                progress.now.set(key.time());
                token.tick(EVENTS_AT_ONCE * PIECES_OF_AN_EVENT)?;
            }
            events -= 1;
            self.step(key, probe, token)?;
            if self.is_watching() {
                self.watch_for_deadlock();
            }
        }
    }

    /// Passes a frame to its host's port at `now`, after all other events of this instant. The run must have reached
    /// `now`.
    pub(in crate::engine) fn inject(
        &mut self,
        frame: InjectedFrame,
        now: Time,
        probe: &mut impl Probe,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        let vc = frame.vc;
        self.fabric.end_systems.inject(frame, now, &mut self.departures);
        if let Role::Host(nic) = self.fabric.plan.roles[self.network.vcs[vc].path[0]] {
            self.nics[nic].begin_phase_in_any(now, Phase::Timers);
        }
        if let Role::Pausable(nic) = self.fabric.plan.roles[self.network.vcs[vc].path[0]] {
            self.pausable_nics[nic].begin_phase(now, Phase::Timers);
        }
        self.depart(now, Phase::Timers);
        if self.is_watching() {
            self.watch_for_deadlock();
        }
        // If the host takes time to process the frame, a tick must be scheduled.
        self.schedule_ticks();
        // A shaped port may send the frame at once.
        self.process_events(Advance::to(now), probe, &Progress::default(), token)
    }

    /// Returns whether stopped ports wait for each other in a cycle.
    #[inline]
    fn is_watching(&self) -> bool {
        self.fabric.pauses.as_ref().is_some_and(|pauses| pauses.is_watching())
    }

    /// Returns the time of the next event, if there is one.
    pub(in crate::engine) fn next_event(&self) -> Option<Time> {
        let key = self.fabric.event_list.first();
        (key != Key::NEVER).then(|| key.time())
    }

    /// Returns the number of cells waiting at the port of a host. The run must have reached `now`.
    pub(in crate::engine) fn waiting(&mut self, port: LinkIndex, now: Time) -> u32 {
        if let Role::Shaped(_) = self.fabric.plan.roles[port] {
            self.take_back(port, now + Span(1));
            self.schedule_shaped(port, now);
        }
        self.seen(now).occupancy(port)
    }

    /// Returns the end systems.
    pub(in crate::engine) fn end_systems(&mut self) -> &mut EndSystems {
        &mut self.fabric.end_systems
    }

    /// Returns the results up to the horizon, which the run must have reached.
    pub(in crate::engine) fn snapshot(&mut self, token: &CancellationToken<'_>) -> Outcome {
        self.close(token)?;
        self.result(self.port_ends(), &self.memory_states(), true, token)
    }

    /// Moves the horizon, and releases the cells that were held back.
    pub(in crate::engine) fn set_horizon(&mut self, horizon: Time) {
        if horizon == self.fabric.horizon {
            return;
        }
        let before = std::mem::replace(&mut self.fabric.horizon, horizon);
        for port in self.ports.iter_mut().flatten() {
            port.set_horizon(horizon);
        }
        for port in &mut self.at_once {
            port.fifo.set_horizon(horizon);
            port.to_hosts.set_horizon(horizon);
        }
        for &RmDeparture { link, label, start } in &self.fabric.late.rm_cells {
            let run = Run { last: Cell::rm(label, FrameNumber::default()), cells: 1 };
            let held = HeldBack { link, run, first_start: start, period: Span(1), lead: Span(0) };
            update_waiting(&self.fabric.plan, &mut self.ports, held, before);
        }
        self.fabric.late.move_horizon(&self.fabric.plan, before, horizon);
        // Release cells held back on their way to hosts first, then those on their way to the port that sent them,
        // because a port may have processed cells early. Cells behind a link's losses come before cells in front of
        // them.
        let plan = &self.fabric.plan;
        let way_left = |held: &HeldBack| {
            let (link, label) = (held.link, held.run.last.label());
            let is_to_host = matches!(plan.stages[link][label].end, StageEnd::Host { .. });
            (!is_to_host, plan.stages_from(link, label).count())
        };
        if let Some(delays) = &mut self.fabric.delays {
            delays.now = Time::NEVER;
        }
        let mut held_back = std::mem::take(&mut self.fabric.late.held_back);
        held_back.sort_by_key(way_left);
        for held in held_back {
            self.release(held, before);
        }
    }

    /// Releases cells that were held back at the horizon `before`.
    fn release(&mut self, held: HeldBack, before: Time) {
        let HeldBack { link, mut run, first_start, period, lead } = held;
        // Cells behind the losses of a link have already been policed.
        let vc = self.routing.vcs.get(link).map(|vcs| vcs[run.last.label()]);
        if vc.is_some_and(|vc| self.fabric.polices_departures(vc, link)) {
            run = self.police(link, run, first_start, period, before);
        }
        update_waiting(&self.fabric.plan, &mut self.ports, held, before);
        let (mut downstream, ..) = self.downstream();
        let Fabric { late, plan, .. } = &mut *downstream.fabric;
        late.forget(&held, plan, before);
        if downstream.fabric.is_on_ethernet(link) {
            downstream.go_on_ethernet(link, run, first_start);
            return;
        }
        if downstream.fabric.changes_rate.get(link) == Some(&true) {
            let sending = Span(lead.0 - downstream.fabric.plan.delays[link].0);
            downstream.send_alone(link, run.last, first_start, sending);
            return;
        }
        if let Some(onward) = downstream.fabric.go_unwatched(link, run, first_start, period) {
            downstream.join(onward);
        }
    }

    /// Simulates every contended port up to and including `now`. The event list must have no earlier event.
    fn settle(&mut self, now: Time, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        for number in self.fabric.plan.shaped.keys() {
            token.tick(1)?;
            let link = self.fabric.plan.shaped[number];
            self.take_back(link, now + Span(1));
            self.schedule_shaped(link, now);
        }
        for port in self.ports.keys() {
            token.tick(1)?;
            let link = self.fabric.plan.contended[port];
            if self.partition.is_some_and(|partition| !partition.has(self.network.links[link].from)) {
                continue;
            }
            self.work(port, now + Span(1), token)?;
            if let Some(port) = &mut self.ports[port] {
                port.look_at(now + Span(1));
            }
        }
        token.tick(1)
    }

    /// Simulates everything up to the horizon.
    pub(super) fn close(&mut self, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        self.settle(self.fabric.horizon, token)?;
        for port in self.ports.keys() {
            let (mut downstream, ports, _) = self.downstream();
            match (&mut ports[port], &downstream.links.ingress[port]) {
                (Some(port), _) => port.report_partial_frames(&mut downstream),
                (None, &Ingress::AtOnce(number)) => downstream.report_partial_frames_at_once(number),
                (None, _) => {}
            }
        }
        Ok(())
    }
}

/// After the horizon has moved from `before`, updates which of the cells held back count as waiting at their port.
fn update_waiting(plan: &Plan, ports: &mut Ports, held: HeldBack, before: Time) {
    if let Some(&Role::Contended(number)) = plan.roles.get(held.link)
        && let Some(port) = &mut ports[number]
    {
        port.update_waiting(held, before);
    }
}
