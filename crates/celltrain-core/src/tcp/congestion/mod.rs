//! Congestion controls, which grow and shrink the congestion window. Each has its own file.
//!
//! The sender stores the windows and grows cwnd in slow start. A control decides how cwnd grows in congestion avoidance
//! and how far it shrinks after congestion. To add a control, add a file here, two lines in this file and one page
//! under `docs/models/`. Its name in scenarios, its Python access and the shared tests then exist automatically.

pub mod bbr;
pub mod cubic;
pub mod dctcp;
pub mod formula;
pub mod jacobson;
pub mod model;
pub mod rules;
mod windows;

use super::TcpOptions;
use crate::registry;
use crate::units::{Clock, Span, Time};

pub use model::Model;
pub use windows::Windows;

registry! {
    /// Growth of cwnd in congestion avoidance, and its reduction after congestion.
    pub enum Congestion {
        /// cwnd grows by a segment per round trip and is halved by congestion (Jacobson 1988).
        #[default]
        jacobson: Jacobson,
        /// cwnd is a cubic function of the time since the last loss. Congestion reduces cwnd to 0.7 of its value (RFC
        /// 9438).
        cubic: Cubic,
        /// After marks, cwnd shrinks by half the fraction of marked segments (RFC 8257). Requires `ecn = "on"`.
        dctcp: Dctcp,
        /// cwnd and the pace follow a model of the path's rate and round-trip time (BBR version 3,
        /// draft-ietf-ccwg-bbr). Needs selective acknowledgements to recover well.
        bbr: Bbr,
        /// cwnd follows your own formulas (the TCP's key `formula`).
        formula: Formula,
    }

    /// Creates the control of a connection that has sent nothing. Times are on `clock`.
    pub fn control(self, options: &TcpOptions, clock: Clock) -> Box<dyn CongestionControl> {
        |type Control| Box::new(Control::new(options, clock))
    }
}

impl Congestion {
    /// Returns whether the control must know for each segment whether it was marked.
    pub fn needs_exact_echo(self) -> bool {
        self == Self::Dctcp
    }

    /// Returns whether the control sets the rate at which the sender is paced.
    pub fn paces(self) -> bool {
        self == Self::Bbr
    }
}

/// The sender's interface to its congestion control. Windows are in segments, and `window` means min(cwnd, rwnd).
pub trait CongestionControl: Send {
    /// Returns cwnd after an acknowledgement of new data in congestion avoidance. [`Windows`] handles slow start, and
    /// caps cwnd at rwnd if cwnd may not exceed it.
    fn on_new_ack(&mut self, ack: NewAck) -> f64;

    /// Returns the fraction of a window that remains after congestion, above 0 and below 1.
    fn decrease(&self, window: f64) -> f64;

    /// Returns the fraction of a window that remains after a mark.
    fn decrease_after_mark(&self, window: f64) -> f64 {
        self.decrease(window)
    }

    /// Returns the window to which the decrease after a mark applies, if `flight` segments of the window were used.
    //= rfc9438#4.6 "a mark leaves a share of the flight, not of a window that was not used"
    fn marked_window(&self, window: f64, flight: f64) -> f64 {
        if flight < window.floor() { flight } else { window }
    }

    /// Records an acknowledgement of `acked` segments, and whether it reports a mark.
    fn on_echo(&mut self, acked: f64, marked: bool) {
        let _ = (acked, marked);
    }

    /// Reports that all data sent before the previous call has been acknowledged, which takes about one round trip.
    fn on_window_acknowledged(&mut self) {}

    /// Records the round-trip time of a segment that was sent only once.
    fn on_round_trip(&mut self, took: Span) {
        let _ = took;
    }

    /// Reports that a fast retransmit reduces the window to the fraction that `decrease` returned.
    fn on_fast_retransmit(&mut self, window: f64) {
        let _ = window;
    }

    /// Reports that a timeout restarts slow start and reduces the window. `None` means that the window was already
    /// reduced for the lost data.
    fn on_timeout(&mut self, window: Option<f64>) {
        let _ = window;
    }

    /// Reports that the sender sends less than the window allows, until cwnd grows again.
    fn on_pause(&mut self) {}

    /// Reports that cwnd restarts from the initial window after a long pause.
    fn on_restart(&mut self) {}

    /// Returns whether the control always sets both windows itself, even in slow start and after a loss. The methods
    /// below are called only for such controls.
    fn sets_windows(&self) -> bool {
        false
    }

    /// Sets the current time and the number of outstanding segments. Called before each event.
    fn at(&mut self, now: Time, flight: f64) {
        let _ = (now, flight);
    }

    /// Returns new values for the windows after an event.
    fn set(&mut self, event: Event, seen: Seen) -> Set {
        let _ = (event, seen);
        Set::default()
    }

    /// Returns cwnd for the start of the recovery after a fast retransmit, if the variant's value does not apply.
    fn after_loss(&mut self) -> Option<f64> {
        None
    }

    /// Returns how many results of the control's formulas were replaced so far because they were not finite numbers.
    fn replaced_results(&self) -> u64 {
        0
    }

    /// Returns the control's model of the path, if it sets cwnd and the pace by a model.
    fn model(&mut self) -> Option<&mut dyn Model> {
        None
    }
}

/// Events reported to a control that sets the windows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An acknowledgement of new data. It lets cwnd grow.
    NewAck,
    /// Duplicate acknowledgements start a fast retransmit.
    FastRetransmit,
    /// The retransmission timer expired.
    Timeout,
}

/// State of a sender before an event, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// cwnd.
    pub cwnd: f64,
    /// ssthresh.
    pub ssthresh: f64,
    /// rwnd.
    pub rwnd: f64,
    /// Number of segments that an acknowledgement covers.
    pub acked: f64,
}

/// New values of the windows, in segments. If a value is `None`, the window keeps its usual rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Set {
    /// cwnd.
    pub cwnd: Option<f64>,
    /// ssthresh.
    pub ssthresh: Option<f64>,
}

/// An acknowledgement of new data, as reported to a control.
#[derive(Clone, Copy, Debug)]
pub struct NewAck {
    /// Arrival time.
    pub now: Time,
    /// Number of segments that this acknowledgement acknowledges.
    pub acked: f64,
    /// cwnd, in segments; at least ssthresh.
    pub cwnd: f64,
    /// rwnd, in segments.
    pub rwnd: f64,
}

#[cfg(test)]
mod conformance;
