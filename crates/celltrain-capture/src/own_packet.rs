//! Captured packets whose bytes come from end systems outside the simulation.

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::EcnBits;
use celltrain_core::index::{FlowIndex, VcIndex};

use crate::{Carries, Frame, Place};

/// A packet of a host outside the simulation, captured at an end of its flow.
#[derive(Clone, Copy, Debug)]
pub struct OwnPacket<'a> {
    /// Flow to which the packet belongs.
    pub flow: FlowIndex,
    /// The VC that carries the packet.
    pub vc: VcIndex,
    /// Number of the packet's frame within its VC.
    pub frame: FrameNumber,
    /// The end of the flow at which the packet was captured.
    pub at: Place,
    /// True if the packet leaves this end of the flow.
    pub leaves: bool,
    /// The packet's number in the run.
    pub number: u64,
    /// Bytes of the packet, starting with its IP header.
    pub bytes: &'a [u8],
}

impl OwnPacket<'_> {
    pub(crate) fn frame(&self) -> Frame {
        let is_data = self.leaves == (self.at == Place::Sender);
        let carries = Carries::Own { packet: self.number, is_data };
        Frame { connection: self.flow.number(), number: self.frame.number(), ecn: EcnBits::default(), carries }
    }
}
