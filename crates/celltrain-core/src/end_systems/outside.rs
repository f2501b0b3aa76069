//! Frames of end systems outside the simulation. The caller injects such frames and retrieves those that arrive
//! complete.

use super::sending::leave;
use super::{Body, Departure, EndSystems};
use crate::aal5::Frame;
use crate::cell::FrameNumber;
use crate::events::Observer;
use crate::fingerprint::Fingerprint;
use crate::index::{FlowIndex, VcIndex};
use crate::requests::GroupIndex;
use crate::units::Time;

/// An injected frame that has arrived complete at the host where its VC ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Time at which the frame arrived.
    pub time: Time,
    /// The VC that carried the frame.
    pub vc: VcIndex,
    /// The tag with which the frame was injected.
    pub tag: u64,
    /// True if a port marked the frame, which is ECN-capable.
    pub marked: bool,
}

/// The connection of a request that has opened and whose ends are outside the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedOutside {
    /// The connection, for counters and events. Its number is never used twice.
    pub flow: FlowIndex,
    /// The group to which the request belongs.
    pub group: GroupIndex,
    /// Number of the request within the group, from 0.
    pub number: u32,
    /// The VC of the sender's packets and the VC of the receiver's packets.
    pub vcs: [VcIndex; 2],
    /// Number of bytes to send.
    pub bytes: u64,
}

/// Counters of a flow whose ends are outside the simulation. The end systems report the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutsideCounters {
    /// Bytes passed to the application, each counted once.
    pub delivered_bytes: u64,
    /// Segments with data that left the sender.
    pub segments_sent: u64,
    /// Segments that began with data already sent before. Without TCP: lost packets whose data was sent again.
    pub retransmitted_segments: u64,
    /// Payload of all segments that reached the receiver, in bytes.
    pub received_bytes: u64,
    /// Segments that reached the receiver and contained no new data.
    pub repeated_segments: u64,
    /// Time at which the sender learned that all its data had arrived; `None` if its data is endless.
    pub completed: Option<Time>,
    /// The sender's congestion window; 0 if its end system does not report it. Not in the fingerprint, because packets
    /// show its effect.
    pub cwnd_bytes: u64,
    /// Number of packets sent without TCP or UDP, which no other counter includes. Not in the fingerprint, which
    /// includes the packets.
    pub unknown_packets: u64,
    /// Fingerprint of the contents and times of the flow's packets.
    pub packets: Fingerprint,
}

impl OutsideCounters {
    pub(super) fn fold_into(&self, fingerprint: &mut Fingerprint) {
        let Self {
            delivered_bytes,
            segments_sent,
            retransmitted_segments,
            received_bytes,
            repeated_segments,
            completed,
            cwnd_bytes: _,
            unknown_packets: _,
            packets,
        } = *self;
        fingerprint.fold_all([delivered_bytes, segments_sent, retransmitted_segments, received_bytes]);
        fingerprint.fold_all([repeated_segments, completed.unwrap_or(Time::NEVER).0, packets.value()]);
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct InjectedFrame {
    pub(crate) vc: VcIndex,
    pub(crate) cells: u32,
    /// Length of the packet.
    pub(crate) bytes: u64,
    /// True if the packet is ECN-capable.
    pub(crate) capable: bool,
    /// The tag that identifies the frame when it arrives.
    pub(crate) tag: u64,
}

/// Record of the injected frames that have arrived.
#[derive(Default)]
pub(super) struct Outside {
    /// Arrived frames that the caller has not retrieved yet, in order of arrival.
    delivered: Vec<Delivered>,
    /// Fingerprint of all frames that have arrived.
    pub(super) fingerprint: Fingerprint,
}

impl Outside {
    pub(super) fn receive(&mut self, delivered: Delivered, cells: u32) {
        let Delivered { time, vc, tag, .. } = delivered;
        self.fingerprint.fold_all([time.0, u64::from(vc.number()), u64::from(cells), tag]);
        self.delivered.push(delivered);
    }
}

impl EndSystems {
    /// Injects a frame. The host sends the frame like its own frames.
    pub(crate) fn inject(&mut self, frame: InjectedFrame, now: Time, out: &mut Vec<Departure>) {
        let InjectedFrame { vc, cells, bytes, capable, tag } = frame;
        self.outside.get_or_insert_default();
        let frame = Frame::new(cells, Body::Outside { tag, bytes, capable });
        let departure = self.vcs.put(vc, frame, None).with_capable(capable);
        leave(&mut self.processing, departure, now, out);
    }

    /// Returns the number, with its branch, of the next frame that is sent on a VC.
    pub(crate) fn next_number(&self, vc: VcIndex) -> FrameNumber {
        self.vcs.next_number(vc)
    }

    /// Returns the counters of a flow whose ends are outside.
    pub(crate) fn outside_counters(&mut self, flow: FlowIndex) -> Option<&mut OutsideCounters> {
        self.connections[flow].outside.as_deref_mut()
    }

    /// Returns whether the caller has not yet retrieved some frames that arrived or connections that opened.
    pub(crate) fn has_delivered(&self) -> bool {
        self.outside.as_ref().is_some_and(|outside| !outside.delivered.is_empty())
            || self.requests.as_ref().is_some_and(|requests| requests.has_opened())
    }

    /// Returns the connections with ends outside that have opened since the last call, in the order of opening.
    pub(crate) fn take_opened(&mut self) -> Vec<OpenedOutside> {
        self.requests.as_mut().map(|requests| requests.take_opened()).unwrap_or_default()
    }

    /// Counts the bytes that the receiver of a request reports, which may complete the request.
    pub(crate) fn progress_outside(&mut self, flow: FlowIndex, received: u64, now: Time, observer: &mut impl Observer) {
        let outside = self.connections[flow].outside.as_mut().expect(IS_OUTSIDE);
        if outside.delivered_bytes != received {
            outside.delivered_bytes = received;
            self.on_progress(flow, now, observer);
        }
    }

    /// Closes the connection of a request after both ends have finished.
    pub(crate) fn close_outside(&mut self, flow: FlowIndex, now: Time, observer: &mut impl Observer) {
        self.connections[flow].outside.as_mut().expect(IS_OUTSIDE).completed = Some(now);
        self.close(flow, now, observer);
    }

    /// Returns the injected frames that have arrived since the previous call, in order of arrival.
    pub(crate) fn take_delivered(&mut self) -> Vec<Delivered> {
        self.outside.as_mut().map(|outside| std::mem::take(&mut outside.delivered)).unwrap_or_default()
    }
}

const IS_OUTSIDE: &str = "the ends of the connection are outside the simulation";
