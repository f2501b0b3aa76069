//! Everything behind a port: the fabric, the links into the next ports, and the ports that take cells at once.

use typed_index_collections::TiSlice;

use super::at_once::{AtOnceIndex, AtOncePort};
use super::fabric::{Fabric, Onward};
use super::links::{Ingress, Links, StreamIndex};
use crate::cell::{Cell, Run};
use crate::index::LinkIndex;
use crate::units::{Span, Time};

/// The places to which a port sends cells.
pub(super) struct Downstream<'e> {
    pub(super) fabric: Fabric<'e>,
    pub(super) links: &'e mut Links,
    pub(super) at_once: &'e mut TiSlice<AtOnceIndex, AtOncePort>,
}

impl Downstream<'_> {
    /// Sends cells from the port of a link to wherever they can wait or end next. The first starts at `first_start`,
    /// the others a `period` apart.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a train at two places; the call costs 4 % of a plain run")]
    pub(super) fn go(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) {
        if let Some(onward) = self.fabric.go(link, run, first_start, period) {
            self.join(onward);
        }
    }

    /// [`Downstream::go`] for rare callers.
    #[inline(never)]
    pub(super) fn go_rarely(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) {
        self.go(link, run, first_start, period);
    }

    /// Puts cells on the way to a contended port.
    #[inline]
    pub(super) fn join(&mut self, Onward { port, input, train }: Onward) {
        let arrival = match self.links.ingress_mut(port) {
            Ingress::Trains(trains) => trains.join(input as usize, train),
            &mut Ingress::Streams(first) => self.links.join_stream(first.input(input), train),
            &mut Ingress::AtOnce(to) => {
                let mut time = train.next;
                for cell in train.run().iter() {
                    self.take_at_once(to, time, cell);
                    time += train.period;
                }
                return;
            }
        };
        if let Some(arrival) = arrival {
            self.fabric.event_list.settle_by(port, self.links.effect_of(port, arrival));
        }
    }

    /// Sends a cell into a stream, where it arrives at `time`, by the horizon.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell; the call costs 3 % of a mesh")]
    pub(super) fn push(&mut self, stream: StreamIndex, time: Time, cell: Cell) {
        if let Some(arrival) = self.links.push(stream, time, cell) {
            self.bring_forward(stream, arrival);
        }
    }

    /// Schedules a port for a cell that may matter elsewhere before all others known in its stream.
    #[inline(never)]
    fn bring_forward(&mut self, stream: StreamIndex, arrival: Time) {
        let port = self.links.stream(stream).port;
        self.fabric.event_list.settle_by(port, self.links.effect_of(port, arrival));
    }

    /// Sends a cell to a port that takes it at once; it arrives at `time`, by the horizon.
    #[inline(never)]
    pub(super) fn take_at_once(&mut self, to: AtOnceIndex, time: Time, cell: Cell) {
        self.at_once[to].take(time, cell, &mut self.fabric);
    }
}
