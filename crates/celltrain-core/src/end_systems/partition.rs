//! End systems split across partitions that run in parallel: the messages they exchange, and the merge at the end of a
//! run. See `docs/design/threads.md`.

use typed_index_collections::{TiSlice, TiVec};

use super::connection::{Connection, Sight};
use super::{Body, ClockKind, EndSystems};
use crate::aal5::Frame;
use crate::cell::FrameNumber;
use crate::index::{FlowIndex, VcIndex};
use crate::tcp::SackBlocks;

/// Connection ends that this partition simulates, by flow.
pub(crate) struct Ends {
    pub(crate) senders: TiVec<FlowIndex, bool>,
    pub(crate) receivers: TiVec<FlowIndex, bool>,
}

/// Messages exchanged between the end systems of partitions.
#[derive(Default)]
pub(crate) struct EndMessages {
    /// Frames that were sent, in order for each VC.
    frames: Vec<(VcIndex, Frame<Body>)>,
    /// The SACK blocks of the acknowledgements in `frames`, in order for each VC.
    blocks: Vec<(VcIndex, Frame<SackBlocks>)>,
    /// Frames that a switch has marked after they were sent, for delivery in the other partition.
    marks: Vec<(VcIndex, FrameNumber)>,
    /// Observations at receiving ends, in order and without gaps for each flow.
    sights: Vec<(FlowIndex, Sight)>,
}

impl EndSystems {
    /// Restricts the simulation to the ends in this partition, so the clocks of other ends do not tick. If only one end
    /// of a connection is in this partition, its observations are stored.
    pub(crate) fn keep(&mut self, here: &Ends) {
        for clock in &mut self.clocks {
            let ends = match clock.kind {
                ClockKind::Retransmission => &here.senders,
                ClockKind::DelayedAck => &here.receivers,
            };
            clock.flows.retain(|&flow| ends[flow]);
        }
        self.clocks.retain(|clock| !clock.flows.is_empty());
        for (flow, connection) in self.connections.flows.iter_mut_enumerated() {
            connection.sights = (here.senders[flow] != here.receivers[flow]).then(Box::default);
        }
    }

    pub(crate) fn next_frame(&self, vc: VcIndex) -> FrameNumber {
        self.vcs.get(vc).log.next()
    }

    pub(crate) fn add_frames(&self, vc: VcIndex, from: FrameNumber, messages: &mut EndMessages) {
        messages.frames.extend(self.vcs.get(vc).log.since(from).map(|frame| (vc, frame)));
    }

    /// Adds the SACK blocks of acknowledgements to the messages. Only the acknowledgement's destination needs them.
    pub(crate) fn add_blocks(&mut self, vc: VcIndex, messages: &mut EndMessages) {
        if let Some(blocks) = self.vcs.blocks(vc) {
            messages.blocks.extend(std::iter::from_fn(|| blocks.take_oldest()).map(|blocks| (vc, blocks)));
        }
    }

    /// Forwards the mark of a frame that another partition delivers, if the frame is marked. Discards all earlier
    /// frames of the VC.
    pub(crate) fn hand_over(&mut self, vc: VcIndex, frame: FrameNumber, messages: &mut EndMessages) {
        let sender = self.vcs.sender_of(vc, frame);
        if self.vcs.get(sender).log.frame(frame).marked {
            messages.marks.push((vc, frame));
        }
        self.vcs.get_mut(sender).log.forget_before(frame);
    }

    /// Discards all frames of a VC that only other partitions need.
    pub(crate) fn forget_all(&mut self, vc: VcIndex) {
        let next = self.next_frame(vc);
        self.vcs.get_mut(vc).log.forget_before(next);
    }

    /// Returns whether some observations of a connection still have to be sent to the partition of its sending end.
    pub(crate) fn has_sights_of(&self, flow: FlowIndex) -> bool {
        self.connections[flow].sights.as_ref().is_some_and(|sights| !sights.is_empty())
    }

    pub(crate) fn add_observations(&mut self, flow: FlowIndex, messages: &mut EndMessages) {
        let sights =
            self.connections[flow].sights.as_mut().expect("the ends of this connection are in different partitions");
        messages.sights.extend(sights.drain(..).map(|sight| (flow, sight)));
    }

    /// Receives the messages. `data_goes_first` states for each flow which of its two ends is handled first at the same
    /// instant.
    pub(crate) fn receive(&mut self, messages: &mut EndMessages, data_goes_first: &TiSlice<FlowIndex, bool>) {
        for (vc, frame) in messages.frames.drain(..) {
            self.vcs.get_mut(vc).log.push(frame);
        }
        for (vc, frame) in messages.marks.drain(..) {
            self.vcs.mark(vc, frame);
        }
        for (vc, blocks) in messages.blocks.drain(..) {
            self.vcs.blocks(vc).expect("the VC has a list of frame blocks at both ends").push(blocks);
        }
        for sights in messages.sights.chunk_by(|(flow, _), (next, _)| flow == next) {
            let flow = sights[0].0;
            self.connections[flow].fold_sights(sights.iter().map(|&(_, sight)| sight), data_goes_first[flow]);
        }
        messages.sights.clear();
    }

    /// Adds the results of another partition at the end of a run.
    pub(crate) fn take_over(&mut self, mut others: EndSystems, there: &Ends) {
        let flows = self.connections.flows.iter_mut().zip(&mut others.connections.flows);
        for ((mine, theirs), (&sent, &received)) in flows.zip(there.senders.iter().zip(&there.receivers)) {
            if sent {
                std::mem::swap(mine, theirs);
                mine.swap_receiving_ends(theirs);
            }
            if received {
                mine.swap_receiving_ends(theirs);
            }
        }
        self.timeouts.add_partition(&others.timeouts);
        for vc in self.vcs.keys() {
            // Exactly one partition counted each cell of the network.
            let counted = others.vc_counters(vc);
            self.vcs.get_mut(vc).offered += counted.offered;
            self.collections[vc].damaged += counted.damaged;
            self.collections[vc].delivered += counted.delivered;
        }
    }

    /// Adds the remaining observations of all connections to the fingerprint, after all messages have been exchanged.
    pub(crate) fn fold_all_sights(&mut self) {
        for connection in self.connections.flows.iter_mut().filter(|connection| connection.sights.is_some()) {
            connection.fold_sights(std::iter::empty(), true);
        }
    }
}

impl Connection {
    fn swap_receiving_ends(&mut self, other: &mut Connection) {
        std::mem::swap(&mut self.receiver, &mut other.receiver);
        if let (Some(mine), Some(theirs)) = (&mut self.packets, &mut other.packets) {
            let (mine, theirs) = (&mut mine.counters, &mut theirs.counters);
            std::mem::swap(&mut mine.delivered, &mut theirs.delivered);
            std::mem::swap(&mut mine.delivered_bytes, &mut theirs.delivered_bytes);
        }
    }
}
