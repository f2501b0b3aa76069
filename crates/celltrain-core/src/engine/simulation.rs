//! A run that can be advanced in steps, with an interface for end systems outside the simulation.

use std::fmt;

use super::checks::Checks;
use super::{Advance, Engine, Interrupted, Outcome, PortMode, Progress, fast, reference};
use crate::cancellation::CancellationToken;
use crate::end_systems::{Delivered, EndSystems, InjectedFrame};
use crate::index::{LinkIndex, NodeIndex, VcIndex};
use crate::metrics::RunResult;
use crate::network::Network;
use crate::probe::{Nothing, Probe, Queues};
use crate::units::{Clock, Span, Time};

/// A packet that a caller passes to a host.
#[derive(Clone, Copy)]
pub(super) struct InjectedPacket {
    pub(super) vc: VcIndex,
    pub(super) bytes: u64,
    /// True if ports may mark the packet instead of losing it.
    pub(super) capable: bool,
    pub(super) tag: u64,
}

/// A run of a network that can be advanced in steps, inspected, and given frames from outside.
///
/// The result is exactly that of [`Engine::run`], whichever steps are taken. An injected frame joins the queue of its
/// host's port after all other events of the current instant.
///
/// ```
/// use celltrain_core::engine::{Engine, Simulation};
/// use celltrain_core::network::{Graph, Network, NodeKind, Vc};
/// use celltrain_core::units::{BitRate, Duration};
///
/// let mut graph = Graph::default();
/// let [a, b] = ["a", "b"].map(|name| graph.add_node(name, NodeKind::Host));
/// let switch = graph.add_node("switch", NodeKind::Switch);
/// let (rate, delay) = (BitRate::from_bits_per_second(155_520_000), Duration::from_microseconds(5));
/// let path = vec![graph.connect(a, switch, rate, delay), graph.connect(switch, b, rate, delay)];
/// let mut network = Network::new(graph, Duration::from_milliseconds(10));
/// let vc = network.vcs.push_and_get_key(Vc { name: "a to b".into(), path, ..Vc::default() });
///
/// let mut simulation = Simulation::new(Engine::Fast, &network);
/// let clock = simulation.clock();
/// simulation.advance(clock.time(Duration::from_milliseconds(1)))?;
/// simulation.inject(a, vc, 1500, 7)?;
/// simulation.advance(clock.time(Duration::from_milliseconds(2)))?;
/// let delivered = simulation.take_deliveries();
/// assert_eq!((delivered[0].vc, delivered[0].tag), (vc, 7));
/// assert_eq!(simulation.snapshot()?.cells.delivered, 32);
/// # Ok::<(), celltrain_core::engine::SimulationError>(())
/// ```
pub struct Simulation<'a, P = Nothing> {
    network: &'a Network,
    running: Running<'a>,
    probe: P,
    clock: Clock,
    now: Time,
    end: Time,
    /// The ends of the measuring window, and the results at both ends.
    window: [Option<Time>; 2],
    bounds: [Option<RunResult>; 2],
    /// Instants at which the run may end early.
    checks: Option<Checks>,
}

enum Running<'a> {
    Fast(Box<fast::Engine<'a>>),
    Reference(Box<reference::Engine<'a>>),
}

impl<'a> Simulation<'a> {
    /// Starts a run without a probe.
    pub fn new(engine: Engine, network: &'a Network) -> Self {
        Self::observed(engine, network, Nothing)
    }
}

impl<'a, P: Probe> Simulation<'a, P> {
    /// Starts a run with a probe. The probe's snapshot of an instant includes all events of that instant.
    pub fn observed(engine: Engine, network: &'a Network, probe: P) -> Self {
        Self::by(engine, PortMode::default(), network, probe, &CancellationToken::never())
            .expect("nothing cancels this run")
    }

    /// Like [`Simulation::observed`], with a forced implementation of contended ports.
    ///
    /// # Errors
    /// Returns an error if `token` is cancelled.
    #[doc(hidden)]
    pub fn by(
        engine: Engine,
        mode: PortMode,
        network: &'a Network,
        probe: P,
        token: &CancellationToken<'_>,
    ) -> Result<Self, Interrupted> {
        // The fast engine may be replaced by the reference engine, because both give the same result.
        let engine = engine.for_network(network);
        let running = match engine {
            Engine::Fast => {
                let traced = probe.next_snapshot().map(|_| probe.traced_ports());
                Running::Fast(Box::new(fast::Engine::start(network, mode, traced, token)?))
            }
            Engine::Reference => {
                let mut engine = reference::Engine::new(network, token)?;
                token.check()?;
                if P::OBSERVES {
                    engine.note_fates();
                }
                Running::Reference(Box::new(engine))
            }
        };
        let clock = network.clock();
        Ok(Self {
            network,
            running,
            probe,
            clock,
            now: Time::default(),
            end: network.end(clock),
            window: network.window(clock),
            bounds: [None, None],
            checks: Checks::of(network, clock),
        })
    }

    pub(super) fn network(&self) -> &'a Network {
        self.network
    }

    /// Returns the current simulation time. Everything up to and including this time has happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the end of the run.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Returns the clock, which defines the unit of all times.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Simulates everything up to and including `until`.
    ///
    /// # Errors
    /// Returns an error if `until` is before the present or after the end of the run.
    pub fn advance(&mut self, until: Time) -> Result<(), SimulationError> {
        self.advance_unless(until, &CancellationToken::never())
    }

    /// Like [`Simulation::advance`], but `token` can cancel it.
    ///
    /// # Errors
    /// Returns the errors of [`Simulation::advance`], and an error if it is interrupted.
    pub fn advance_unless(&mut self, until: Time, token: &CancellationToken<'_>) -> Result<(), SimulationError> {
        let Self { clock, now, end, .. } = *self;
        if until < now {
            return Err(SimulationError::Backwards { until: clock.seconds(until), now: clock.seconds(now) });
        }
        if until > end {
            return Err(SimulationError::PastEnd { until: clock.seconds(until), end: clock.seconds(end) });
        }
        Ok(self.reach(Advance::to(until), &Progress::default(), token)?)
    }

    /// Returns the results as if the run ended now. The run continues unchanged.
    ///
    /// # Errors
    ///
    /// Never fails, unlike [`Simulation::snapshot_unless`], because nothing can interrupt it.
    pub fn snapshot(&mut self) -> Result<RunResult, SimulationError> {
        self.snapshot_unless(&CancellationToken::never())
    }

    /// Like [`Simulation::snapshot`], but `token` can cancel it.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub fn snapshot_unless(&mut self, token: &CancellationToken<'_>) -> Result<RunResult, SimulationError> {
        self.reach(Advance::to(self.now), &Progress::default(), token)?;
        Ok(self.measure(token)?)
    }

    /// Passes a frame with a packet of `bytes` to the port of `host` now, on a VC that starts there. The tag identifies
    /// the frame when it arrives. The packet is not ECN-capable.
    ///
    /// # Errors
    /// Returns an error if the VC does not exist or starts at another host, or the frame is too long for it.
    pub fn inject(&mut self, host: NodeIndex, vc: VcIndex, bytes: u64, tag: u64) -> Result<(), SimulationError> {
        let frame = self.frame(host, InjectedPacket { vc, bytes, capable: false, tag })?;
        let (now, token) = (self.now, &CancellationToken::never());
        self.reach(Advance::to(now), &Progress::default(), token)?;
        Ok(self.put(frame, token)?)
    }

    /// Returns the frame of an injected packet.
    ///
    /// # Errors
    /// Returns the errors of [`Simulation::inject`].
    pub(super) fn frame(
        &self,
        host: NodeIndex,
        InjectedPacket { vc, bytes, capable, tag }: InjectedPacket,
    ) -> Result<InjectedFrame, SimulationError> {
        let network = self.network;
        let Some(of_vc) = network.vcs.get(vc) else {
            return Err(SimulationError::UnknownVc { vc: vc.number(), vcs: network.vcs.len() });
        };
        if network.source(vc) != host {
            let name = |node: NodeIndex| match network.nodes.get(node) {
                Some(node) => node.name.clone(),
                None => format!("node {}", node.number()),
            };
            let (vc, host, source) = (of_vc.name.clone(), name(host), name(network.source(vc)));
            return Err(SimulationError::NotFromHost { vc, host, source });
        }
        let most = network.aal5.longest_packet(of_vc.contract.as_ref().map(|contract| contract.mfs));
        if bytes > most {
            return Err(SimulationError::TooLong { vc: of_vc.name.clone(), bytes, most });
        }
        Ok(InjectedFrame { vc, cells: network.aal5.frame_cells(bytes), bytes, capable, tag })
    }

    /// Passes a frame to its host's port now.
    pub(super) fn put(&mut self, frame: InjectedFrame, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        match &mut self.running {
            Running::Fast(engine) => engine.inject(frame, self.now, &mut self.probe, token)?,
            Running::Reference(engine) => engine.inject(frame, self.now, &mut self.probe),
        }
        Ok(())
    }

    /// Returns the injected frames that have arrived complete since the last call, in order of arrival. A frame that
    /// lost a cell never arrives.
    pub fn take_deliveries(&mut self) -> Vec<Delivered> {
        self.end_systems().take_delivered()
    }

    /// Runs to the end. Returns the results of the run, or of the part that the network's measuring window covers.
    pub fn finish(self) -> RunResult {
        self.finish_by(&Progress::default(), &CancellationToken::never()).expect("nothing cancels this run")
    }

    pub(super) fn finish_by(mut self, progress: &Progress, token: &CancellationToken<'_>) -> Outcome {
        progress.end.set(self.end);
        self.reach(Advance { until: self.end, snapshots_end: self.end + Span(1) }, progress, token)?;
        let result = self.measure(token)?;
        Ok(result.within(self.bounds, self.network))
    }

    /// Advances to the end of `advance`. At the ends of the measuring window, results are computed at the same point
    /// within the instant as a probe's snapshots.
    pub(super) fn reach(
        &mut self,
        advance: Advance,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        for i in 0..self.window.len() {
            if let Some(bound) = self.window[i].take_if(|&mut bound| bound < advance.snapshots_end) {
                self.advance_engine(Advance::to(bound), progress, token)?;
                self.bounds[i] = Some(self.measure(token)?.without_records());
            }
        }
        while let Some(check) = self.next_check().filter(|&check| check < advance.until) {
            self.advance_engine(Advance::to(check), progress, token)?;
            if self.ends() {
                return self.advance_engine(Advance { until: check, snapshots_end: check + Span(1) }, progress, token);
            }
        }
        self.advance_engine(Advance { until: advance.until.min(self.end), ..advance }, progress, token)
    }

    fn next_check(&self) -> Option<Time> {
        self.checks.as_ref().map(|checks| checks.next)
    }

    /// Returns whether the run ends now, at a check, because all measured traffic is complete.
    fn ends(&mut self) -> bool {
        let end_systems = match &mut self.running {
            Running::Fast(engine) => engine.end_systems(),
            Running::Reference(engine) => engine.end_systems(),
        };
        let ends = self.checks.as_mut().is_some_and(|checks| checks.ends(self.network, end_systems));
        if ends {
            self.end = self.now;
            self.checks = None;
        }
        ends
    }

    fn advance_engine(
        &mut self,
        advance: Advance,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        match &mut self.running {
            Running::Fast(engine) => engine.advance(advance, &mut self.probe, progress, token)?,
            Running::Reference(engine) => engine.advance(advance, &mut self.probe, progress, token)?,
        }
        self.now = advance.until;
        Ok(())
    }

    /// Advances to `until`, or only to the end of the first instant in which an injected frame arrives. After such a
    /// step, the fast engine's horizon is ahead of the present, so only injections and steps of the same kind may
    /// follow.
    pub(super) fn reach_delivery(
        &mut self,
        until: Time,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        for i in 0..self.window.len() {
            if let Some(bound) = self.window[i].filter(|&bound| bound < until) {
                if self.step_to_delivery(bound, bound, progress, token)? {
                    return Ok(());
                }
                self.window[i] = None;
                self.bounds[i] = Some(self.measure(token)?.without_records());
            }
        }
        while let Some(check) = self.next_check().filter(|&check| check < until) {
            if self.step_to_delivery(check, check, progress, token)? || self.ends() {
                return Ok(());
            }
        }
        let horizon = self.window.iter().flatten().copied().chain(self.next_check()).fold(self.end, Time::min);
        self.step_to_delivery(until, horizon, progress, token)?;
        Ok(())
    }

    /// Advances instant by instant to `until`, which must not be after the horizon. Returns true if it stopped because
    /// a frame arrived.
    fn step_to_delivery(
        &mut self,
        until: Time,
        horizon: Time,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<bool, Interrupted> {
        if let Running::Fast(engine) = &mut self.running {
            engine.set_horizon(horizon);
        }
        loop {
            let next = self.next_event().unwrap_or(Time::NEVER);
            let step = match self.probe.next_snapshot().filter(|&at| at < next && at < until) {
                // A snapshot may schedule an event that comes before the event found above.
                Some(at) => Advance { until: at, snapshots_end: at + Span(1) },
                None => Advance::to(next),
            };
            if step.until > until {
                progress.now.set(until);
                self.now = until;
                return Ok(false);
            }
            match &mut self.running {
                Running::Fast(engine) => engine.process_events(step, &mut self.probe, progress, token)?,
                Running::Reference(engine) => engine.advance(step, &mut self.probe, progress, token)?,
            }
            self.now = step.until;
            if self.end_systems().has_delivered() {
                return Ok(true);
            }
        }
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        match &self.running {
            Running::Fast(engine) => engine.next_event(),
            Running::Reference(engine) => engine.next_instant(),
        }
    }

    /// Moves the end of the run. The engines themselves only know the end of the network's run.
    pub(super) fn end_at(&mut self, end: Time) {
        self.end = end;
    }

    pub(super) fn waiting(&mut self, port: LinkIndex) -> u32 {
        match &mut self.running {
            Running::Fast(engine) => engine.waiting(port, self.now),
            Running::Reference(engine) => engine.occupancy(port),
        }
    }

    pub(super) fn probe(&mut self) -> &mut P {
        &mut self.probe
    }

    pub(super) fn end_systems(&mut self) -> &mut EndSystems {
        match &mut self.running {
            Running::Fast(engine) => engine.end_systems(),
            Running::Reference(engine) => engine.end_systems(),
        }
    }

    /// Returns the end systems and the probe.
    pub(super) fn parts(&mut self) -> (&mut EndSystems, &mut P) {
        let end_systems = match &mut self.running {
            Running::Fast(engine) => engine.end_systems(),
            Running::Reference(engine) => engine.end_systems(),
        };
        (end_systems, &mut self.probe)
    }

    fn measure(&mut self, token: &CancellationToken<'_>) -> Outcome {
        match &mut self.running {
            Running::Fast(engine) => engine.snapshot(token),
            Running::Reference(engine) => engine.snapshot(self.now, token),
        }
    }
}

/// Reasons why a simulation refuses a step or a frame. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulationError {
    /// The given time is earlier than the current time of the simulation.
    Backwards {
        /// The instant.
        until: f64,
        /// The present.
        now: f64,
    },
    /// The given time is after the end of the run.
    PastEnd {
        /// The instant.
        until: f64,
        /// The end of the run.
        end: f64,
    },
    /// The network does not have this VC.
    UnknownVc {
        /// The VC's number.
        vc: u32,
        /// Number of VCs in the network.
        vcs: usize,
    },
    /// The VC starts at another host.
    NotFromHost {
        /// The VC's name.
        vc: String,
        /// The host's name.
        host: String,
        /// The name of the host at which the VC starts.
        source: String,
    },
    /// The frame is too long for the VC.
    TooLong {
        /// The VC's name.
        vc: String,
        /// Length of the packet.
        bytes: u64,
        /// Length of the longest packet that fits a frame.
        most: u64,
    },
    /// The run was interrupted.
    Interrupted,
}

impl From<Interrupted> for SimulationError {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backwards { until, now } => {
                write!(f, "cannot advance to {until} s: the simulation has already reached {now} s")
            }
            Self::PastEnd { until, end } => write!(f, "cannot advance to {until} s: the run ends at {end} s"),
            Self::UnknownVc { vc, vcs } => write!(f, "there is no VC {vc}: the network has {vcs} VCs, numbered from 0"),
            Self::NotFromHost { vc, host, source } => {
                write!(f, "cannot inject a frame on VC {vc} at {host}: the VC starts at {source}")
            }
            Self::TooLong { vc, bytes, most } => {
                write!(
                    f,
                    "a packet of {bytes} bytes is too long for VC {vc}: its longest frame has room for {most} \
                           bytes"
                )
            }
            Self::Interrupted => write!(f, "the run was interrupted"),
        }
    }
}

impl std::error::Error for SimulationError {}

#[cfg(test)]
mod tests;
