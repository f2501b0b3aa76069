//! Packets of hosted flows, observed at their ends.

use celltrain_capture::Place;
use celltrain_capture::watch::OwnPacket;
use celltrain_core::cell::FrameNumber;
use celltrain_core::events::SegmentStep;
use celltrain_core::index::{FlowIndex, VcIndex};
use celltrain_core::units::Time;

use crate::stack::Side;

/// A packet of a hosted flow, seen at one of its ends.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Time of the observation. For a lost packet, the time when its loss became known.
    pub time: Time,
    /// Time at which the packet was sent.
    pub sent: Time,
    /// The flow.
    pub flow: FlowIndex,
    /// The end at which the packet was observed. For a lost packet, the end to which it was sent.
    pub side: Side,
    /// The event.
    pub step: Step,
    /// The VC that carries the packet.
    pub vc: VcIndex,
    /// Number of the packet's frame within its VC.
    pub frame: FrameNumber,
    /// The event of the packet's TCP segment or acknowledgement, if the packet has one. Data flows from the sender to
    /// the receiver.
    pub segment: Option<SegmentStep>,
    /// Number of the packet in the run, from 0, in sending order.
    pub number: u64,
    /// The packet.
    pub bytes: &'a [u8],
}

/// An event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A stack has sent the packet.
    Sent,
    /// The packet has arrived at its stack.
    Arrived,
    /// The packet is lost.
    Lost,
}

impl<'a> Seen<'a> {
    /// Returns the packet for a capture; `None` for a lost packet, which neither end observes.
    pub fn captured(&self) -> Option<OwnPacket<'a>> {
        let &Self { flow, side, step, vc, frame, number, bytes, .. } = self;
        let at = if side == Side::Sender { Place::Sender } else { Place::Receiver };
        (step != Step::Lost).then_some(OwnPacket { flow, vc, frame, at, leaves: step == Step::Sent, number, bytes })
    }
}
