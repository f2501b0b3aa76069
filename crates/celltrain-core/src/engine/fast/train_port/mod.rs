//! A contended port at which trains of cells arrive on several links. One cell leaves per cell time.
//!
//! The cells of a frame that left together arrive at a fixed period, as a [`Train`](super::train::Train). The port
//! takes single cells from its trains in the order of arrival; the scenario's rule decides ties. It offers them to its
//! [`OutputBuffer`](super::output_buffer::OutputBuffer), which uses the same admission as the reference engine's port.
//! In a first-in first-out queue that loses no admitted cell, the departure of a cell is known when it is admitted: it
//! starts when everything before it has been sent. So the port is processed in batches. A batch is processed later than
//! the instants it covers, but before any of its cells could have an effect elsewhere.

mod in_step;
mod interleaving;
mod port;

pub(super) use port::TrainPort;

use super::output::Depart;
use crate::coverage::reached;
use crate::units::Time;

impl TrainPort {
    /// Settles everything before `until`. `depart` receives the cells with known departures: a run, the start of its
    /// first cell, and the period.
    #[inline]
    pub(super) fn work(&mut self, until: Time, mut depart: impl Depart) {
        loop {
            let first = self.ingress.next.first();
            let (now, input) = (first.time(), first.input());
            if now >= until {
                break;
            }
            let other = self.ingress.next.at(1).time().min(until);
            let overlap = other < until && other <= self.ingress.inputs[input as usize].train.last();
            if overlap
                && ((self.plan.any_order && self.admit_stretch(now, until, &mut depart))
                    || (self.plan.interleaves
                        && self.interleaving_pays()
                        && self.is_interleaved(until)
                        && self.interleave(until, &mut depart)))
            {
                continue;
            }
            if other == now {
                self.tie(now, until, &mut depart);
            } else {
                reached!(TrainSplitByOther if other < until && self.ingress.inputs[input as usize].train.last() > other);
                if self.plan.delimits {
                    self.delimit(1);
                }
                let (run, period) = self.ingress.take_first(input, other);
                self.arrive_in_step(now, period, run, &mut depart);
            }
        }
        self.output.settle(until, &mut depart);
    }
}
