//! Frames that hosts send: segments, packets and acknowledgements.

use std::cmp::Reverse;

use super::frames::{Body, Departure};
use super::processing::Processing;
use super::{EndSystems, emit};
use crate::aal5::{Aal5Options, Frame};
use crate::events::Observer;
use crate::index::FlowIndex;
use crate::tcp::{Ack, Segment};
use crate::units::Time;

impl EndSystems {
    pub(super) fn send(&mut self, flow: FlowIndex, now: Time, observer: &mut impl Observer, out: &mut Vec<Departure>) {
        let connection = &mut self.connections[flow];
        let (vc, cells) = (connection.data_vc, connection.data_cells);
        let mut resent = connection.sender.counters().retransmitted_segments;
        while let Some(segment) = connection.sender.next_segment(now) {
            // A window probe carries one byte. Every other segment has the full size.
            let cells = if segment.len > 1 { cells } else { probe_cells(&self.aal5, segment) };
            let lost = connection.loss.as_mut().is_some_and(|loss| loss.takes(segment, connection.sender.window()));
            let reduced = connection.sender.reports_reduction();
            let capable = connection.sender.sends_capable();
            let body = if lost {
                Body::Damaged { len: segment.len }
            } else {
                Body::Data { flow, segment, sent: now, reduced, capable }
            };
            let departure = self.vcs.put(vc, Frame::new(cells, body), None).with_capable(capable);
            if let Some(delays) = &mut self.delays {
                delays.on_segment(flow, segment, now);
            }
            leave(&mut self.processing, departure, now, out);
            emit::sent(connection, departure, (flow, segment, lost), &mut resent, now, observer);
        }
        if let Some(files) = &mut connection.files {
            // A call here is enough, because this function runs for every acknowledgement and every segment.
            files.on_progress(connection.sender.acknowledged(), connection.sender.sent(), now);
        }
        let departure = connection.sender.next_departure(now);
        if departure.is_some() && departure != connection.departure {
            // The previously recorded departure is in the past, because the pacing time changes only when a segment is
            // sent.
            connection.departure = departure;
            self.departures.extend(departure.map(|time| Reverse((time, flow))));
        }
    }

    /// Sends a packet and schedules the next packet.
    pub(super) fn emit(&mut self, flow: FlowIndex, now: Time, observer: &mut impl Observer, out: &mut Vec<Departure>) {
        let connection = &mut self.connections[flow];
        let packets = connection.packets.as_mut().expect("a sender whose timer is due sends packets");
        let number = packets.counters.sent;
        let frame = Frame::new(connection.data_cells, Body::Packet { flow, number, sent: now });
        packets.counters.sent += 1;
        let vc = connection.data_vc;
        let departure = self.vcs.put(vc, frame, None).with_capable(false);
        leave(&mut self.processing, departure, now, out);
        emit::packet_sent(packets, departure, (flow, number), now, observer);
        self.departures.push(Reverse((packets.emissions.next_emission(), flow)));
    }

    pub(super) fn acknowledge(
        &mut self,
        flow: FlowIndex,
        ack: Ack,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let connection = &self.connections[flow];
        let mut cells = connection.ack_cells;
        let blocks = connection.selective.then(|| connection.receiver.blocks());
        if let Some(blocks) = blocks.filter(|blocks| !blocks.is_empty()) {
            cells = self.aal5.segment_cells(blocks.option_bytes());
        }
        let echoes = connection.receiver.echoes_mark();
        let frame = Frame::new(cells, Body::Ack { flow, ack, echoes });
        let vc = connection.ack_vc;
        let capable = connection.sender.acknowledges_capable();
        let departure = self.vcs.put(vc, frame, blocks).with_capable(capable);
        leave(&mut self.processing, departure, now, out);
        emit::ack_sent(connection, departure, (flow, ack, blocks), now, observer);
    }
}

/// Returns the number of cells of a window probe.
#[cold]
fn probe_cells(aal5: &Aal5Options, probe: Segment) -> u32 {
    aal5.segment_cells(u64::from(probe.len))
}

/// Passes a frame to its host's port, or to the host's packet processing if that takes time.
#[inline]
pub(super) fn leave(
    processing: &mut Option<Box<Processing>>,
    departure: Departure,
    now: Time,
    out: &mut Vec<Departure>,
) {
    match processing {
        None => out.push(departure),
        Some(processing) => processing.take(departure, now),
    }
}
