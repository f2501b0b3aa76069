//! Creates the reference engine at the start of a run.

use std::cmp::Reverse;

use typed_index_collections::ti_vec;

use super::buffers::Buffers;
use super::event_sink::ReportedLosses;
use super::link_ends::LinkEnds;
use super::pauses::PauseState;
use super::{Engine, Event, Instant, What};
use crate::cancellation::{CancellationToken, Interrupted};
use crate::cell::Cell;
use crate::contracts::Edge;
use crate::delay::PortDelays;
use crate::end_systems::EndSystems;
use crate::engine::predictions::{LossRecorder, predictions};
use crate::engine::{Advance, Progress};
use crate::index::FlowIndex;
use crate::network::{Flow, LinkTimes, Network};
use crate::probe::Nothing;
use crate::rate_control::RateControl;
use crate::units::Time;

impl<'a> Engine<'a> {
    /// Creates the engine at the start of a run.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub(in crate::engine) fn new(network: &'a Network, token: &CancellationToken<'_>) -> Result<Self, Interrupted> {
        let clock = network.clock();
        let routing = network.routing();
        let start = |(index, flow): (FlowIndex, &Flow)| {
            let time = Time::default() + clock.span(flow.start);
            Reverse(Event { time, what: What::Start(index), cell: Cell::NONE })
        };
        let rate_control = RateControl::new(network, &routing, clock, token)?;
        let delays = network.delays.at_ports().then(|| PortDelays::new(network, &routing, &rate_control, clock));
        let mut engine = Self {
            network,
            buffers: Buffers::new(network, &routing, &rate_control, clock, token)?,
            times: LinkTimes::of(network, clock),
            transmitting: ti_vec![None; network.links.len()],
            pauses: PauseState::new(network),
            transmitters: network.transmitters(clock),
            on_ethernet: ti_vec![0; network.links.len()],
            rate_control,
            looked_after: ti_vec![None; network.links.len()],
            edge: Edge::new(network, clock),
            link_ends: LinkEnds::new(network, &routing, clock),
            end_systems: EndSystems::new(network, &routing, clock),
            events: network.flows.iter_enumerated().map(start).collect(),
            now: Instant::default(),
            reported_losses: ReportedLosses::default(),
            delays,
            clock,
            routing,
        };
        engine.predict(token)?;
        Ok(engine)
    }

    /// Passes the losses of Longest Queue Drop, recorded in a separate run, to the memory policies that use them as
    /// predictions.
    fn predict(&mut self, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        let predictions = predictions(self.network, |network, memory| {
            let mut run = Engine::new(network, token)?;
            run.buffers.memories[memory].recorder = Some(LossRecorder::default());
            run.advance(Advance::to(network.end(run.clock)), &mut Nothing, &Progress::default(), token)?;
            Ok(run.buffers.memories[memory].recorder.take().map(LossRecorder::into_losses).unwrap_or_default())
        })?;
        for (memory, pool, losses) in predictions {
            self.buffers.memories[memory].memory.predict(pool, losses.into());
        }
        Ok(())
    }
}
