//! Captures of runs. The runner calls captures through a trait object, so that a program that never calls
//! [`Captured::new`], such as the lab page, does not contain the code of captures.

use celltrain_capture::watch::{Destination, Ended, OwnPacket};
use celltrain_capture::{CaptureChoice, Watch};
use celltrain_core::events::{Event, Observer};
use celltrain_core::network::Network;
use celltrain_core::units::Time;

/// Traffic to capture, and the sink for the bytes of the capture.
pub struct Captured<'a> {
    pub(crate) choice: &'a CaptureChoice,
    pub(crate) sink: &'a mut dyn FnMut(&[u8]) -> bool,
    pub(crate) start: Start,
}

impl<'a> Captured<'a> {
    /// Captures the part of a run that `choice` selects. `sink` receives the bytes of the capture, and returns whether
    /// to continue.
    pub fn new(choice: &'a CaptureChoice, sink: &'a mut dyn FnMut(&[u8]) -> bool) -> Self {
        let start: Start = |choice, network, into| Ok(Box::new(Watch::new(choice, network, into)?));
        Self { choice, sink, start }
    }
}

/// Function that starts a capture.
pub(crate) type Start =
    for<'a> fn(&CaptureChoice, &Network, Destination<'a>) -> Result<Box<dyn Capturing + 'a>, String>;

/// A capture that receives the events of a run.
pub trait Capturing {
    /// Captures an event.
    fn on_event(&mut self, now: Time, event: Event);

    /// Captures a packet of a host outside the simulation.
    fn on_packet(&mut self, now: Time, seen: &OwnPacket<'_>);

    /// Ends the capture.
    ///
    /// # Errors
    /// If some traffic cannot be represented.
    fn finish(self: Box<Self>) -> Result<Ended, String>;
}

impl Capturing for Watch<'_> {
    fn on_event(&mut self, now: Time, event: Event) {
        Observer::on_event(self, now, event);
    }

    fn on_packet(&mut self, now: Time, seen: &OwnPacket<'_>) {
        Watch::on_packet(self, now, seen);
    }

    fn finish(self: Box<Self>) -> Result<Ended, String> {
        Watch::finish(*self)
    }
}
