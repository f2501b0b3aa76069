//! A contended port, in one of three ways: its cells come in trains, or one by one in the streams of its links, with
//! queues or without.

use super::batch::Batch;
use super::onwards::Onwards;
use super::output::Arrival;
use super::queue_port::QueuePort;
use super::stream::Streams;
use super::stream_port::StreamPort;
use super::train_port::TrainPort;
use crate::index::Label;
use crate::port::PortState;
use crate::queue_range::QueueRange;
use crate::units::Time;

/// A contended port, by the way in which it works.
pub(super) enum ContendedPort {
    /// Trains come in and go on.
    Trains(TrainPort),
    /// Cells come in and go on one by one, first in, first out.
    Stream(StreamPort),
    /// Cells come in and go on one by one, and what waits stands in queues.
    Queues(QueuePort),
}

impl ContendedPort {
    /// Whether the order of departures is worked out later than the admission.
    pub(super) fn defers_order(&self) -> bool {
        match self {
            ContendedPort::Trains(port) => port.output.defers_order,
            ContendedPort::Stream(_) => false,
            ContendedPort::Queues(port) => port.output.defers_order,
        }
    }

    /// The end of the next batch, given that everything before `since` is settled: `until`, or earlier where the batch
    /// could take too long for an interrupt.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a batch; the call costs 2 % of a plain run")]
    pub(super) fn reach(&self, since: Time, until: Time, streams: &Streams) -> Time {
        match self {
            ContendedPort::Trains(port) => port.reach(since, until),
            ContendedPort::Stream(port) => port.reach(until, streams),
            ContendedPort::Queues(port) => port.reach(until, streams),
        }
    }

    /// Settles everything before `until`. The batch is empty, and is so again at the end.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a batch; the call costs 2 % of a plain run")]
    pub(super) fn work(&mut self, until: Time, batch: &mut Batch, onwards: &mut Onwards<'_>) {
        match self {
            ContendedPort::Trains(port) => {
                port.work(until, |run, first_start, period| onwards.go(run, first_start, period));
            }
            ContendedPort::Stream(port) => port.work(until, batch, onwards),
            ContendedPort::Queues(port) => port.work(until, batch, onwards),
        }
    }

    /// The earliest instant at which unsettled arrivals of this port can have an effect elsewhere.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a batch; the call costs 2 % of a plain run")]
    pub(super) fn next_effect(&self) -> Option<Time> {
        match self {
            ContendedPort::Trains(port) => port.next_effect(),
            ContendedPort::Stream(port) => port.next_effect(),
            ContendedPort::Queues(port) => port.next_effect(),
        }
    }

    /// The earliest effect elsewhere of a cell that arrives then in a stream.
    #[inline]
    pub(super) fn effect_of(&self, arrival: Time) -> Time {
        match self {
            ContendedPort::Stream(port) => port.effect_of(arrival),
            ContendedPort::Queues(port) => port.effect_of(arrival),
            ContendedPort::Trains(_) => unreachable!("streams go to ports that take them"),
        }
    }

    /// The arrivals noted for the port's allocator since the last call.
    #[inline]
    pub(super) fn take_arrivals(&mut self, note: impl FnMut(Arrival)) {
        let output = match self {
            ContendedPort::Trains(port) => &mut port.output,
            ContendedPort::Stream(_) => return,
            ContendedPort::Queues(port) => &mut port.output,
        };
        output.arrivals().for_each(note);
    }

    /// The number of the stream of an input; `None` where trains come in.
    pub(super) fn stream(&self, input: usize) -> Option<usize> {
        match self {
            ContendedPort::Trains(_) => None,
            ContendedPort::Stream(port) => Some(port.inbox.stream(input)),
            ContendedPort::Queues(port) => Some(port.inbox.stream(input)),
        }
    }

    /// Brings the counts to `until`; everything before it is settled.
    pub(super) fn look_at(&mut self, until: Time) {
        match self {
            ContendedPort::Trains(port) => port.output.look_at(until),
            ContendedPort::Stream(port) => port.fifo.look_at(until),
            ContendedPort::Queues(port) => port.output.look_at(until),
        }
    }

    /// X: cells waiting, after a look.
    pub(super) fn occupancy(&self) -> u32 {
        match self {
            ContendedPort::Trains(port) => port.output.port.occupancy(),
            ContendedPort::Stream(port) => port.fifo.occupancy(),
            ContendedPort::Queues(port) => port.output.port.occupancy(),
        }
    }

    /// The fewest and the most cells waiting since the latest sample, after a look.
    pub(super) fn range(&self) -> QueueRange {
        match self {
            ContendedPort::Trains(port) => port.output.port.range(),
            ContendedPort::Stream(port) => port.fifo.range(),
            ContendedPort::Queues(port) => port.output.port.range(),
        }
    }

    /// Starts a new range at a sample, after a look.
    pub(super) fn start_range(&mut self) {
        match self {
            ContendedPort::Trains(port) => port.output.port.start_range(),
            ContendedPort::Stream(port) => port.fifo.start_range(),
            ContendedPort::Queues(port) => port.output.port.start_range(),
        }
    }

    /// `Y_i`: cells waiting of each VC, by label, after a look.
    pub(super) fn per_vc(&self) -> impl Iterator<Item = u32> {
        let per_vc = match self {
            ContendedPort::Trains(port) => port.output.port.per_vc(),
            ContendedPort::Stream(port) => port.fifo.per_vc(),
            ContendedPort::Queues(port) => port.output.port.per_vc(),
        };
        per_vc.iter().copied()
    }

    /// Cells of a VC's frame that waits until it is whole.
    pub(super) fn held(&self, label: Label) -> u32 {
        match self {
            ContendedPort::Trains(port) => port.output.port.held(label),
            ContendedPort::Stream(_) => 0,
            ContendedPort::Queues(port) => port.output.port.held(label),
        }
    }

    /// The port as results show it, after a look.
    pub(super) fn state(&self) -> PortState {
        match self {
            ContendedPort::Trains(port) => port.output.port.state(),
            ContendedPort::Stream(port) => port.fifo.state(),
            ContendedPort::Queues(port) => port.output.port.state(),
        }
    }

    /// Moves the horizon: the port will be settled up to it next.
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        match self {
            ContendedPort::Trains(port) => {
                port.output.set_horizon(horizon);
                port.output.report_runs();
            }
            ContendedPort::Stream(port) => port.set_horizon(horizon),
            ContendedPort::Queues(port) => port.set_horizon(horizon),
        }
    }

    /// Reports all cells that were gathered.
    pub(super) fn report_all_gathered(&mut self, onwards: &mut Onwards<'_>) {
        match self {
            ContendedPort::Trains(port) => {
                port.report_all_gathered(|run, first_start, period| onwards.go(run, first_start, period));
                port.output.port.report_to_policy();
            }
            ContendedPort::Stream(port) => port.report_all_gathered(onwards),
            ContendedPort::Queues(port) => {
                port.report_all_gathered(onwards);
                port.output.port.report_to_policy();
            }
        }
    }
}
