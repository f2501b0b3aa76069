//! Frames of end systems outside the simulation. The caller injects such frames and retrieves those that arrive
//! complete.

use super::{Body, Departure, EndSystems, leave};
use crate::aal5::Frame;
use crate::cell::FrameNumber;
use crate::fingerprint::Fingerprint;
use crate::index::{FlowIndex, VcIndex};
use crate::units::Time;

/// An injected frame that has arrived complete at the host where its VC ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The VC that carried the frame.
    pub time: Time,
    /// The tag that the caller gave to the injected frame.
    pub vc: VcIndex,
    /// The tag with which the frame was injected.
    pub tag: u64,
}

/// Counters of a flow whose ends are outside the simulation. These end systems report them.
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
    /// The tag by which the caller recognises the frame when it arrives.
    pub(crate) tag: u64,
}

/// Frames that have arrived.
#[derive(Default)]
pub(super) struct Outside {
    /// Arrived frames that the caller has not retrieved yet, in order of arrival.
    delivered: Vec<Delivered>,
    /// Fingerprint of all frames that have arrived.
    pub(super) fingerprint: Fingerprint,
}

impl Outside {
    pub(super) fn receive(&mut self, delivered: Delivered, cells: u32) {
        let Delivered { time, vc, tag } = delivered;
        self.fingerprint.fold_all([time.0, u64::from(vc.number()), u64::from(cells), tag]);
        self.delivered.push(delivered);
    }
}

impl EndSystems {
    /// Injects a frame. Its host sends it like its own frames.
    pub(crate) fn inject(&mut self, frame: InjectedFrame, now: Time, out: &mut Vec<Departure>) {
        let InjectedFrame { vc, cells, tag } = frame;
        self.outside.get_or_insert_default();
        let departure = self.vcs.put(vc, Frame::new(cells, Body::Outside { tag }), None);
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

    /// Returns whether some arrived frames have not been retrieved yet.
    pub(crate) fn has_delivered(&self) -> bool {
        self.outside.as_ref().is_some_and(|outside| !outside.delivered.is_empty())
    }

    /// Returns the injected frames that have arrived since the previous call, in order of arrival.
    pub(crate) fn take_delivered(&mut self) -> Vec<Delivered> {
        self.outside.as_mut().map(|outside| std::mem::take(&mut outside.delivered)).unwrap_or_default()
    }
}
