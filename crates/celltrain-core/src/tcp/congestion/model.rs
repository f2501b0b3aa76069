//! Controls that model the path: they set cwnd and the pace after every acknowledgement.

use crate::rng::Stream;
use crate::tcp::delivery::{DeliveryRate, Lost, Sample};
use crate::units::{Span, Time};

/// The sender's interface to a control with a model of the path. It replaces all rules of the windows.
pub trait Model {
    /// Sets the source of random numbers, before the first event.
    fn draw_from(&mut self, stream: Stream);

    /// Returns cwnd in segments.
    fn cwnd(&self) -> f64;

    /// Sets cwnd, of a connection that has sent nothing.
    fn set_cwnd(&mut self, cwnd: f64);

    /// Returns the interval between segments.
    fn interval(&self) -> Span;

    /// Prepares for a segment that is about to leave.
    fn on_transmit(&mut self, rates: &DeliveryRate, now: Time);

    /// Records a segment declared lost.
    fn on_lost(&mut self, rates: &DeliveryRate, lost: Lost, now: Time);

    /// Records the start of a recovery, before its losses are declared.
    fn on_recovery(&mut self, by: Recovers);

    /// Sets cwnd after a timeout, once its losses are declared.
    fn on_timeout(&mut self, rates: &DeliveryRate);

    /// Records that everything sent before a recovery is acknowledged.
    fn on_recovered(&mut self);

    /// Processes an acknowledgement that reports deliveries, and with `marked` a mark for which the sender must slow
    /// down.
    fn on_ack(&mut self, rates: &mut DeliveryRate, sample: &Sample, marked: bool, now: Time);

    /// Returns the state, for tests.
    #[cfg(test)]
    fn bbr(&self) -> &super::bbr::Bbr;
}

/// The sign of a loss that started a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovers {
    /// Duplicate acknowledgements.
    Fast,
    /// The retransmission timer.
    Timeout,
}
