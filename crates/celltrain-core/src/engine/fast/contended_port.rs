//! The interface of contended ports. [`super::port_plan`] selects the implementation of each port.
//!
//! Ports that process cells at once, and all ports of a memory except the first, do not implement it. They exist only
//! as entries of [`Links`](super::links::Links).

use std::any::Any;

use typed_index_collections::TiVec;

use super::egress::{Downstream, Egress};
use super::ingress::Batch;
use super::late::HeldBack;
use super::plan::{MemoryPlace, PortIndex};
use super::port_queue::PortQueue;
use super::train::Train;
use crate::units::Time;

/// Contended ports. `None` for a port that exists only as an entry of the links:
/// [`Ingress::AtOnce`](super::links::Ingress::AtOnce) or [`Ingress::Member`](super::links::Ingress::Member).
pub(super) type Ports = TiVec<PortIndex, Option<Box<dyn ContendedPort>>>;

/// A contended port, or all ports of a memory.
pub(super) trait ContendedPort: Any {
    /// Settles a period, or only a part of it if everything would delay a check for cancellation too long. `batch` must be
    /// empty, and is empty again afterwards.
    fn work(&mut self, due: Due, batch: &mut Batch, downstream: &mut Downstream<'_>) -> Worked;

    /// Settles the arrival of a frame that arrives alone at a port without other cells in flight. Returns when the link
    /// will be free, or `None` without any effect if the port is not idle.
    fn take_alone(&mut self, _train: Train, _downstream: &mut Downstream<'_>) -> Option<Time> {
        None
    }

    /// Returns the queue of the port, or of the port with this place in its memory.
    fn queue(&self, place: MemoryPlace) -> &dyn PortQueue;

    fn queue_mut(&mut self, place: MemoryPlace) -> &mut dyn PortQueue;

    /// Updates the counts to their state at `until`. All earlier events must have been simulated.
    fn look_at(&mut self, until: Time) {
        self.queue_mut(MemoryPlace::default()).look_at(until);
    }

    /// Calls `act` for the egress of each port of single cells.
    fn each_egress(&mut self, _act: &mut dyn FnMut(&mut Egress)) {}

    /// Moves the horizon up to which the port can be simulated next.
    fn set_horizon(&mut self, horizon: Time) {
        self.queue_mut(MemoryPlace::default()).set_horizon(horizon);
        self.each_egress(&mut |egress| egress.to_hosts.set_horizon(horizon));
    }

    /// After the horizon has moved from `before`, updates which held-back cells count as waiting at the port.
    fn update_waiting(&mut self, _held: HeldBack, _before: Time) {}

    /// Reports the cells of incomplete frames that have been sent to hosts.
    fn report_partial_frames(&mut self, downstream: &mut Downstream<'_>) {
        self.each_egress(&mut |egress| egress.to_hosts.report_partial_frames(downstream.fabric));
    }

    /// Returns the name of the type, for `--explain-plan`.
    fn name(&self) -> String;
}

/// The period that a port must simulate next. Earlier periods are already simulated.
#[derive(Clone, Copy)]
pub(super) struct Due {
    /// The port's own number.
    pub(super) port: PortIndex,
    pub(super) since: Time,
    pub(super) until: Time,
}

pub(super) struct Worked {
    /// The port has processed all events before this instant.
    pub(super) reached: Time,
    /// The earliest instant at which unprocessed arrivals can have an effect at another node.
    pub(super) next_effect: Option<Time>,
}
