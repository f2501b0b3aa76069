//! Packets of hosted flows, as seen at their ends, and captures of them.

use std::collections::BTreeSet;
use std::io::Write;

use celltrain_capture::{
    About, Capture, CaptureError, CaptureKind, Circuit, Direction, Interface, SeenPacket, Setting,
};
use celltrain_core::cell::FrameNumber;
use celltrain_core::events::SegmentStep;
use celltrain_core::index::{FlowIndex, NodeIndex, VcIndex};
use celltrain_core::network::Network;
use celltrain_core::units::{Clock, Time};

use crate::stack::Side;

/// A packet of a hosted flow, seen at one of its ends.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// When it was seen. For a lost packet, when its loss became known.
    pub time: Time,
    /// The flow.
    pub flow: FlowIndex,
    /// The end at which it was seen. For a lost packet, the end to which it was sent.
    pub side: Side,
    /// What happened.
    pub step: Step,
    /// The VC that carries it.
    pub vc: VcIndex,
    /// The number of its frame within its VC.
    pub frame: FrameNumber,
    /// The step of its TCP segment or acknowledgement, if it has one. Data flows from the sender to the receiver.
    pub segment: Option<SegmentStep>,
    /// Number of the packet in the run, from 0, in the order of sending.
    pub number: u64,
    /// The packet.
    pub bytes: &'a [u8],
}

/// An event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A stack has sent it.
    Sent,
    /// It has arrived at its stack.
    Arrived,
    /// It is lost.
    Lost,
}

/// Records the numbers of the packets that are lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostPackets(pub BTreeSet<u64>);

impl LostPackets {
    /// Records a packet if it is lost.
    pub fn on_packet(&mut self, seen: &Seen<'_>) {
        if seen.step == Step::Lost {
            self.0.insert(seen.number);
        }
    }
}

/// Captures the packets of all hosted flows at both ends, in a pcapng file with an interface for each host.
pub struct HostCapture<W: Write> {
    capture: Capture<W>,
    clock: Clock,
    /// By flow: the interfaces of the sender and the receiver.
    interfaces: Vec<[u32; 2]>,
    lost: LostPackets,
    error: Option<CaptureError>,
}

impl<W: Write> HostCapture<W> {
    /// Begins a capture. Packets that an earlier, equal run has lost get a comment when they are sent.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn new(out: W, about: &About, network: &Network, lost: LostPackets) -> Result<Self, CaptureError> {
        let ends =
            |flow: &celltrain_core::network::Flow| [network.source(flow.data_vc), network.destination(flow.data_vc)];
        let mut hosts: Vec<NodeIndex> = network.flows.iter().filter(|flow| flow.outside).flat_map(ends).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let interface =
            |&host: &NodeIndex| Interface { name: network.nodes[host].name.clone(), description: "host".to_owned() };
        let number = |host: NodeIndex| {
            u32::try_from(hosts.binary_search(&host).unwrap_or_default()).expect("indices fit 32 bits")
        };
        let setting = Setting {
            kind: CaptureKind::Ip,
            framing: network.aal5.clone(),
            interfaces: hosts.iter().map(interface).collect(),
            connections: Vec::new(),
        };
        Ok(Self {
            capture: Capture::new(out, about, setting)?,
            clock: network.clock(),
            interfaces: network.flows.iter().map(|flow| ends(flow).map(number)).collect(),
            lost,
            error: None,
        })
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// The first error that occurred.
    pub fn finish(self) -> Result<W, CaptureError> {
        match self.error {
            None => self.capture.finish(),
            Some(error) => Err(error),
        }
    }

    /// Captures a packet.
    pub fn on_packet(&mut self, seen: &Seen<'_>) {
        let direction = match seen.step {
            Step::Sent => Direction::Outbound,
            Step::Arrived => Direction::Inbound,
            Step::Lost => return,
        };
        let is_lost = seen.step == Step::Sent && self.lost.0.contains(&seen.number);
        let packet = SeenPacket {
            time_ns: celltrain_capture::nanoseconds(self.clock, seen.time),
            interface: self.interfaces[usize::from(seen.flow)][usize::from(seen.side == Side::Receiver)],
            direction,
            circuit: Circuit::default(),
            bytes: seen.bytes,
            comment: is_lost.then_some("lost in the network"),
        };
        if self.error.is_none() {
            self.error = self.capture.packet(&packet).err();
        }
    }
}
