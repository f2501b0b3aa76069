//! A contended port at which trains of cells arrive on several links. One cell leaves per cell time.
//!
//! The cells of a frame that left together arrive at a fixed period, as a [`Train`](super::train::Train). The port
//! takes single cells from its trains in the order of arrival; the scenario's rule decides ties. It offers them to its
//! [`OutputBuffer`](super::output_buffer::OutputBuffer), which uses the same admission as the reference engine's port.
//! In a first-in first-out queue that loses no admitted cell, the departure of a cell is known when it is admitted: it
//! starts when everything before it has been sent. So the port is processed in batches. A batch is processed later than
//! the instants it covers, but before any of its cells could have an effect elsewhere.

mod in_step;
mod port;

pub(super) use port::{TrainDiscipline, TrainPort};

use super::contended_port::{ContendedPort, Due, Worked};
use super::egress::{Depart, Downstream};
use super::ingress::Batch;
use super::late::HeldBack;
use super::plan::MemoryPlace;
use super::port_queue::PortQueue;
use super::train::Train;
use crate::coverage::reached;
use crate::scheduler::waiting::ReportGranularity;
use crate::units::Time;

impl<D: TrainDiscipline> ContendedPort for TrainPort<D> {
    fn work(&mut self, Due { port, since, until }: Due, _: &mut Batch, downstream: &mut Downstream<'_>) -> Worked {
        downstream.links.swap_trains(port, &mut self.ingress);
        let (link, reached) = (self.link, self.reach(since, until));
        self.take_trains(reached, downstream.leaving(link));
        let next_arrival = self.next_to_matter();
        downstream.links.swap_trains(port, &mut self.ingress);
        self.output.report_arrivals(link, downstream);
        let (free_at, effect_of_waiting) = (self.output.free_at(), self.output.effect_of_waiting());
        let next_effect = downstream.links.next_effect(port, free_at, next_arrival, effect_of_waiting);
        Worked { reached, next_effect }
    }

    fn take_alone(&mut self, train: Train, downstream: &mut Downstream<'_>) -> Option<Time> {
        D::admit_alone(self, train, &mut downstream.leaving(self.link)).then(|| self.output.free_at())
    }

    fn queue(&self, _: MemoryPlace) -> &dyn PortQueue {
        &self.output
    }

    fn queue_mut(&mut self, _: MemoryPlace) -> &mut dyn PortQueue {
        &mut self.output
    }

    fn set_horizon(&mut self, horizon: Time) {
        self.output.set_horizon(horizon);
        // Report departures in runs again, until the new horizon is so close that single departures matter.
        self.output.granularity = ReportGranularity::Runs;
    }

    fn update_waiting(&mut self, HeldBack { run, first_start, period, .. }: HeldBack, before: Time) {
        self.output.update_waiting(run, first_start, period, before);
    }

    fn report_partial_frames(&mut self, downstream: &mut Downstream<'_>) {
        self.partial_frames.report_all(downstream.leaving(self.link));
        self.output.report_parts(&mut downstream.leaving(self.link));
        self.output.buffer.report_to_policy();
    }

    fn name(&self) -> String {
        format!("TrainPort<{}>", D::NAME)
    }
}

impl<D: TrainDiscipline> TrainPort<D> {
    /// Settles everything before `until`. `depart` receives the cells with known departures: a run, the start of its
    /// first cell, and the period.
    #[inline]
    fn take_trains(&mut self, until: Time, mut depart: impl Depart) {
        loop {
            let first = self.ingress.next.first();
            let (now, input) = (first.time(), first.input());
            if now >= until {
                break;
            }
            let other = self.ingress.next.at(1).time().min(until);
            let overlap = other < until && other <= self.ingress.inputs[input as usize].train.last();
            if overlap && D::admit_overlap(self, now, until, &mut depart) {
                continue;
            }
            if other == now {
                self.tie(now, until, &mut depart);
            } else {
                reached!(TrainSplitByOther if other < until && self.ingress.inputs[input as usize].train.last() > other);
                self.delimit(1);
                let (run, period) = self.ingress.take_first(input, other);
                self.arrive_in_step(now, period, run, &mut depart);
            }
        }
        self.output.settle(until, &mut depart);
    }
}

#[cfg(test)]
mod tests;
