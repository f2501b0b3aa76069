//! The loop of a run: events in order, looks of a probe in between, and what is settled at the end.

use super::{Engine, Outcome, Progress, Ways};
use crate::network::Network;
use crate::probe::{NetworkView, Probe};
use crate::stop::{Interrupted, Stop};
use crate::units::{Span, Time};

/// Runs a network to its end, unless the run is interrupted.
///
/// # Errors
/// When it is.
pub(in crate::engine) fn run(
    ways: Ways,
    network: &Network,
    probe: &mut impl Probe,
    progress: &Progress,
    stop: &Stop<'_>,
) -> Outcome {
    let mut engine = Engine::new(network, (ways, probe.next_look().map(|_| probe.traced_ports())), None, stop)?;
    progress.end.set(engine.end);
    let mut events = 0;
    loop {
        let key = engine.event_list.first();
        if let Some(look) = probe.next_look().filter(|&look| look < key.time() && look <= engine.end) {
            engine.settle(look, stop)?;
            let seen = engine.seen(look);
            let Engine { rate_control, end_systems, .. } = &engine;
            probe.look(look, &NetworkView { queues: &seen, rate_control, end_systems });
            engine.start_ranges(probe.traced_ports(), look);
            // A probe makes ports settle, which may schedule an event before the one that was next.
            continue;
        }
        if key.time() > engine.end {
            break;
        }
        if events == 0 {
            events = EVENTS_AT_ONCE;
            progress.now.set(key.time());
            stop.steps(EVENTS_AT_ONCE * PIECES_OF_AN_EVENT)?;
        }
        events -= 1;
        engine.step(key, probe, stop)?;
    }
    progress.now.set(engine.end);
    engine.close(stop)?;
    let ends = engine.port_ends(stop)?;
    engine.measure(ends, stop)
}

/// An event is a frame at a host, or a batch of cells at a port. Longer batches ask in between, see
/// [`super::contended_port::ContendedPort::reach`].
pub(super) const PIECES_OF_AN_EVENT: usize = 4;
/// Events are counted in groups, which costs less than counting single events.
pub(super) const EVENTS_AT_ONCE: usize = 8;

impl Engine<'_> {
    /// Settles every contended port up to and including `now`; no event on the event list comes before.
    pub(super) fn settle(&mut self, now: Time, stop: &Stop<'_>) -> Result<(), Interrupted> {
        for number in 0..self.plan.shaped.len() {
            stop.step()?;
            let link = self.plan.shaped[number];
            self.take_back(link, now + Span(1));
            self.schedule_shaped(link, now);
        }
        for number in 0..self.contended_ports.len() {
            stop.step()?;
            let link = self.plan.contended[number];
            if self.part.is_some_and(|part| !part.has(self.network.links[link].from)) {
                continue;
            }
            self.work(number, now + Span(1), stop)?;
            self.contended_ports[number].look_at(now + Span(1));
        }
        // The probe itself takes time too.
        stop.step()
    }

    /// Settles everything up to the end.
    pub(super) fn close(&mut self, stop: &Stop<'_>) -> Result<(), Interrupted> {
        self.settle(self.end, stop)?;
        for number in 0..self.contended_ports.len() {
            let link = self.plan.contended[number];
            let (port, _, mut onwards) = self.at_port(number, link);
            port.report_all_gathered(&mut onwards);
        }
        Ok(())
    }
}
