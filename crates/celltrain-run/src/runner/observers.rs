//! Outputs created from the events of a run, and the observers that write them.

use celltrain_capture::watch::Ended;
use celltrain_core::engine::Engine;
use celltrain_core::events::{self, Observer};
use celltrain_core::index::LinkIndex;
use celltrain_core::network::Network;
use celltrain_core::probe::{NetworkView, Probe, Recorder};
use celltrain_core::units::{self, Time};
use celltrain_hosts::Seen;
use celltrain_scenario::Scenario;

use crate::Unfinished;
use crate::buffer::Buffer;
use crate::captured::{Captured, Capturing};
use crate::events::{Block, Choice, Log};
use crate::hosting;
use crate::requests::alone;

/// Outputs created from the events of a run. The sink of each output returns whether to continue the output.
#[derive(Default)]
pub struct Watched<'a> {
    /// Tables of events to write.
    pub events: Option<EventOutput<'a>>,
    /// Captures to write.
    pub captures: Vec<Captured<'a>>,
    /// Engine that reports the events, if it is not the run's engine. If all time windows end before the end of the
    /// run, this engine stops after the last window, and the run's engine computes the answer. Otherwise, this engine
    /// executes the whole run.
    pub event_engine: Option<Engine>,
}

impl Watched<'_> {
    pub(super) fn has_any(&self) -> bool {
        self.events.is_some() || !self.captures.is_empty()
    }

    /// Returns the time after which no output is recorded; `None` if recording continues until the end of the run.
    pub(super) fn until(&self, duration: units::Duration) -> Option<units::Duration> {
        let events = self.events.as_ref().map(|kept| kept.choice.until());
        // A capture writes a packet together with its outcome, which may not be known until after the capture's window.
        let captures = self.captures.iter();
        let captures = captures.map(|captured| captured.choice.until().filter(|_| captured.choice.of_cells()));
        let last = events
            .into_iter()
            .chain(captures)
            .try_fold(units::Duration::default(), |last, until| until.map(|until| last.max(until)))?;
        (last < duration).then_some(last)
    }
}

/// Events to record, and the sink that receives each full block.
pub struct EventOutput<'a> {
    /// Selection of the events to record.
    pub choice: &'a Choice,
    /// Function that receives each full block and returns whether to continue.
    pub sink: &'a mut dyn FnMut(Block) -> bool,
}

/// All observers of a run with events. They are combined into one type, because the compiler creates a copy of the
/// engines for each type of observer.
#[derive(Default)]
pub struct Observers<'a> {
    /// Recorder of time series.
    pub recorder: Option<&'a mut Recorder>,
    /// Log of events.
    pub log: Option<Log<'a>>,
    /// Captures of the run's traffic.
    pub captures: Vec<Box<dyn Capturing + 'a>>,
    /// History of a port's buffer.
    pub buffer: Option<Buffer<'a>>,
    /// Observer of the arrival times of a connection without other traffic on its path.
    pub alone: Option<&'a mut alone::Recorder>,
}

impl hosting::Tap for Observers<'_> {
    fn on_packet(&mut self, seen: &Seen<'_>) {
        let &Seen { time, flow, vc, frame, segment, bytes, .. } = seen;
        if let (Some(log), Some(step)) = (&mut self.log, segment) {
            let ecn = celltrain_hosts::ecn::bits(bytes);
            let event = events::SegmentEvent { flow, vc, frame, step, sender: None, ecn };
            log.on_event(time, events::Event::Segment(event));
        }
        if let Some(packet) = seen.captured() {
            self.captures.iter_mut().for_each(|capture| capture.on_packet(time, &packet));
        }
    }
}

impl Observers<'_> {
    /// Runs the network of a scenario up to `until` for these observers only. The run has no result.
    ///
    /// # Errors
    /// If `keep_going` returns false, as in [`Engine::run`], or the scenario has a stack that is not in this build.
    pub fn observe(
        &mut self,
        engine: Engine,
        scenario: &Scenario,
        (network, until): (&Network, units::Duration),
        keep_going: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(), Unfinished> {
        let hosts = hosting::hosts(scenario, network)?;
        hosting::observe(engine, (network, until), self, hosts, keep_going)
    }

    /// Writes the remaining output. Returns how each capture ended.
    pub(super) fn finish(self) -> Result<Vec<Ended>, String> {
        if let Some(mut log) = self.log {
            log.finish();
        }
        self.captures.into_iter().map(Capturing::finish).collect()
    }
}

impl Probe for Observers<'_> {
    fn next_snapshot(&self) -> Option<Time> {
        let recorder = self.recorder.as_ref().and_then(Probe::next_snapshot);
        recorder.into_iter().chain(self.buffer.as_ref().and_then(Probe::next_snapshot)).min()
    }

    fn traced_ports(&self) -> &[LinkIndex] {
        self.recorder.as_ref().map_or(&[], |recorder| recorder.traced_ports())
    }

    fn snapshot(&mut self, now: Time, view: &NetworkView<'_>) {
        if let Some(recorder) = &mut self.recorder
            && recorder.next_snapshot() == Some(now)
        {
            recorder.snapshot(now, view);
        }
        if let Some(buffer) = &mut self.buffer
            && buffer.next_snapshot() == Some(now)
        {
            buffer.snapshot(now, view);
        }
    }
}

impl Observer for Observers<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: events::Event) {
        if let Some(log) = &mut self.log {
            log.on_event(now, event);
        }
        self.captures.iter_mut().for_each(|capture| capture.on_event(now, event));
        if let Some(buffer) = &mut self.buffer {
            buffer.on_event(now, event);
        }
        if let Some(alone) = &mut self.alone {
            alone.on_event(now, event);
        }
    }
}
