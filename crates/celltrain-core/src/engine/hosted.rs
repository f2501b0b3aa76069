//! A run with end systems outside the simulation, which react during the run.

use super::simulation::InjectedPacket;
use super::{Advance, Progress, Simulation, SimulationError};
use crate::cancellation::{CancellationToken, Interrupted};
use crate::cell::FrameNumber;
use crate::end_systems::{Delivered, OpenedOutside, OutsideCounters};
use crate::index::{FlowIndex, LinkIndex, NodeIndex, VcIndex};
use crate::metrics::Outcome;
use crate::network::Network;
use crate::probe::{Nothing, Probe};
use crate::units::{Clock, Span, Time};

/// A run that pauses whenever a frame arrives for an end system outside the simulation, or a request opens between two
/// of them ([`Engine::run_hosted`]).
///
/// End systems outside the simulation act last in an instant: when the simulation stops, all other events of the
/// instant have happened. Cells of a VC never overtake each other. So when a frame arrives, every older frame of the VC
/// that has not arrived is lost.
///
/// [`Engine::run_hosted`]: super::Engine::run_hosted
pub struct HostedSimulation<'s, 'a, P = Nothing> {
    simulation: Simulation<'a, P>,
    end: Time,
    progress: &'s Progress,
    token: &'s CancellationToken<'s>,
}

impl<'s, 'a, P: Probe> HostedSimulation<'s, 'a, P> {
    /// Creates a run that the function `hosts` may advance up to `end`.
    pub(super) fn new(
        simulation: Simulation<'a, P>,
        end: Time,
        progress: &'s Progress,
        token: &'s CancellationToken<'s>,
    ) -> Self {
        progress.end.set(end);
        Self { simulation, end, progress, token }
    }

    /// Returns the simulated network.
    pub fn network(&self) -> &'a Network {
        self.simulation.network()
    }

    /// Returns the current simulation time. Once the simulation has advanced, everything up to and including this time
    /// has happened.
    pub fn now(&self) -> Time {
        self.simulation.now()
    }

    /// Returns the end of the run, or the end of the observed part of the run.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Returns the clock, which defines the unit of all times.
    pub fn clock(&self) -> Clock {
        self.simulation.clock()
    }

    /// Advances to `until`, or only to the end of the first instant in which an injected frame arrives or a request with
    /// ends outside the simulation opens. `until` must be between the present and the end of the run.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub fn advance_to_delivery(&mut self, until: Time) -> Result<(), Interrupted> {
        assert!((self.now()..=self.end()).contains(&until), "the target time is between now and the end of the run");
        self.simulation.reach_delivery(until, self.progress, self.token)?;
        // The simulation may have found that all measured traffic is complete.
        self.end = self.end.min(self.simulation.end());
        Ok(())
    }

    /// Returns the time of the next event up to the end of the run, if any. Nothing happens before it unless a frame is
    /// injected.
    pub fn next_event(&self) -> Option<Time> {
        self.simulation.next_event()
    }

    /// Moves the end of the run to `end`, which must be neither before the present nor after the end of the network's
    /// run.
    pub fn end_at(&mut self, end: Time) {
        assert!(
            (self.now()..=self.network().end(self.clock())).contains(&end),
            "the new end is between now and the \
            end of the network's run"
        );
        self.end = end;
        self.simulation.end_at(end);
    }

    /// Returns the number of cells waiting now at the port of a host.
    pub fn waiting(&mut self, port: LinkIndex) -> u32 {
        self.simulation.waiting(port)
    }

    /// Returns the probe. End systems may report their own events to the probe.
    pub fn probe(&mut self) -> &mut P {
        self.simulation.probe()
    }

    /// Passes a frame to the port of `host` at the present instant, as [`Simulation::inject`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Simulation::inject`].
    pub fn inject(&mut self, host: NodeIndex, vc: VcIndex, bytes: u64, tag: u64) -> Result<(), SimulationError> {
        self.put(host, InjectedPacket { vc, bytes, capable: false, tag })
    }

    /// Passes a frame with an ECN-capable packet to the port of `host` at the present instant. Ports may mark it.
    ///
    /// # Errors
    /// Returns the errors of [`Simulation::inject`].
    pub fn inject_capable(
        &mut self,
        host: NodeIndex,
        vc: VcIndex,
        bytes: u64,
        tag: u64,
    ) -> Result<(), SimulationError> {
        self.put(host, InjectedPacket { vc, bytes, capable: true, tag })
    }

    fn put(&mut self, host: NodeIndex, packet: InjectedPacket) -> Result<(), SimulationError> {
        let frame = self.simulation.frame(host, packet)?;
        Ok(self.simulation.put(frame, self.token)?)
    }

    /// Returns the number, within its VC, of the next frame injected on a VC.
    pub fn next_frame(&mut self, vc: VcIndex) -> FrameNumber {
        self.simulation.end_systems().next_number(vc)
    }

    /// Returns the injected frames that have arrived complete since the previous call, in order of arrival.
    pub fn take_deliveries(&mut self) -> Vec<Delivered> {
        self.simulation.take_deliveries()
    }

    /// Returns the requests with ends outside the simulation that have opened since the last call, in the order of
    /// opening.
    pub fn take_opened(&mut self) -> Vec<OpenedOutside> {
        self.simulation.end_systems().take_opened()
    }

    /// Counts the bytes that the receiver of an open request has received so far. The request is complete if these are
    /// all of its bytes.
    pub fn progress(&mut self, request: FlowIndex, received: u64) {
        let now = self.now();
        let (end_systems, probe) = self.simulation.parts();
        end_systems.progress_outside(request, received, now, probe);
    }

    /// Closes the connection of an open request. Its counters are no longer available.
    pub fn close_request(&mut self, request: FlowIndex) {
        let now = self.now();
        let (end_systems, probe) = self.simulation.parts();
        end_systems.close_outside(request, now, probe);
    }

    /// Returns the counters of a flow whose ends are outside the simulation, for its end systems to update.
    pub fn counters(&mut self, flow: FlowIndex) -> &mut OutsideCounters {
        self.simulation.end_systems().outside_counters(flow).expect("the flow's ends are outside the simulation")
    }

    /// Lets the probe take its last snapshots, without computing a result.
    pub(super) fn close(mut self) -> Result<(), Interrupted> {
        let advance = Advance { until: self.end, snapshots_end: self.end + Span(1) };
        self.simulation.reach(advance, self.progress, self.token)
    }

    pub(super) fn finish(self) -> Outcome {
        self.simulation.finish_by(self.progress, self.token)
    }
}

#[cfg(test)]
mod tests;
