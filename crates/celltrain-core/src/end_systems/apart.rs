//! End systems of which only some are simulated here, and the others elsewhere at the same time: what they tell each
//! other, and how they are put together at the end. `docs/design/threads.md`.

use typed_index_collections::{TiSlice, TiVec};

use super::connection::{Connection, Sight};
use super::{Body, ClockKind, EndSystems};
use crate::aal5::Frame;
use crate::cell::FrameNumber;
use crate::index::{FlowIndex, VcIndex};
use crate::tcp::SackBlocks;

/// Which ends of connections are simulated here, by flow.
pub(crate) struct Ends {
    pub(crate) senders: TiVec<FlowIndex, bool>,
    pub(crate) receivers: TiVec<FlowIndex, bool>,
}

/// What end systems that are simulated apart tell each other.
#[derive(Default)]
pub(crate) struct News {
    /// Frames that were put in, those of a VC in order.
    frames: Vec<(VcIndex, Frame<Body>)>,
    /// The blocks of acknowledgements among them, likewise.
    blocks: Vec<(VcIndex, Frame<SackBlocks>)>,
    /// What receiving ends saw, those of a flow in order and together.
    sights: Vec<(FlowIndex, Sight)>,
}

impl EndSystems {
    /// Only these will be simulated: clocks of others do not tick, and what the ends of a connection see is kept where
    /// they are not both here.
    pub(crate) fn keep(&mut self, here: &Ends) {
        for clock in &mut self.clocks {
            let ends = match clock.kind {
                ClockKind::Retransmission => &here.senders,
                ClockKind::DelayedAck => &here.receivers,
            };
            clock.flows.retain(|&flow| ends[flow]);
        }
        self.clocks.retain(|clock| !clock.flows.is_empty());
        for (flow, connection) in self.flows.iter_mut_enumerated() {
            connection.sights = (here.senders[flow] != here.receivers[flow]).then(Box::default);
        }
    }

    /// The number the next frame of a VC will have.
    pub(crate) fn next_frame(&self, vc: VcIndex) -> FrameNumber {
        self.vcs.get(vc).log.next()
    }

    /// Tells of the frames of a VC from this number on.
    pub(crate) fn tell_frames(&self, vc: VcIndex, from: FrameNumber, news: &mut News) {
        news.frames.extend(self.vcs.get(vc).log.since(from).map(|frame| (vc, frame)));
    }

    /// Tells of the blocks of acknowledgements, which are for its destination alone.
    pub(crate) fn tell_blocks(&mut self, vc: VcIndex, news: &mut News) {
        if let Some(blocks) = self.vcs.blocks(vc) {
            news.blocks.extend(std::iter::from_fn(|| blocks.take_oldest()).map(|blocks| (vc, blocks)));
        }
    }

    /// Forgets all frames of a VC before this one, which is handed over elsewhere.
    pub(crate) fn forget_before(&mut self, vc: VcIndex, frame: FrameNumber) {
        let sender = self.vcs.sender_of(vc, frame);
        self.vcs.get_mut(sender).log.forget_before(frame);
    }

    /// Forgets all frames of a VC, as they are needed elsewhere only.
    pub(crate) fn forget_all(&mut self, vc: VcIndex) {
        let next = self.next_frame(vc);
        self.vcs.get_mut(vc).log.forget_before(next);
    }

    /// Whether the receiving end of a connection saw something whose sending end is elsewhere, since it last told.
    pub(crate) fn has_sights_of(&self, flow: FlowIndex) -> bool {
        self.flows[flow].sights.as_ref().is_some_and(|sights| !sights.is_empty())
    }

    /// Tells what it saw.
    pub(crate) fn tell_sights(&mut self, flow: FlowIndex, news: &mut News) {
        let sights = self.flows[flow].sights.as_mut().expect("its ends are simulated apart");
        news.sights.extend(sights.drain(..).map(|sight| (flow, sight)));
    }

    /// Takes the news in. `data_goes_first`: of each flow, whether in an instant its receiving end comes before its
    /// sending end.
    pub(crate) fn hear(&mut self, news: &mut News, data_goes_first: &TiSlice<FlowIndex, bool>) {
        for (vc, frame) in news.frames.drain(..) {
            self.vcs.get_mut(vc).log.push(frame);
        }
        for (vc, blocks) in news.blocks.drain(..) {
            self.vcs.blocks(vc).expect("both ends exchange blocks").push(blocks);
        }
        for sights in news.sights.chunk_by(|(flow, _), (next, _)| flow == next) {
            let flow = sights[0].0;
            self.flows[flow].fold_sights(sights.iter().map(|&(_, sight)| sight), data_goes_first[flow]);
        }
        news.sights.clear();
    }

    /// At the end of a run: takes over what others have simulated.
    pub(crate) fn take_over(&mut self, mut others: EndSystems, there: &Ends) {
        let flows = self.flows.iter_mut().zip(&mut others.flows);
        for ((mine, theirs), (&sent, &received)) in flows.zip(there.senders.iter().zip(&there.receivers)) {
            if sent {
                std::mem::swap(mine, theirs);
                mine.swap_receiving_ends(theirs);
            }
            if received {
                mine.swap_receiving_ends(theirs);
            }
        }
        for vc in self.vcs.keys() {
            // Each of these was counted in one place or another.
            let counted = others.vc_counters(vc);
            self.vcs.get_mut(vc).offered += counted.offered;
            self.collections[vc].damaged += counted.damaged;
            self.collections[vc].delivered += counted.delivered;
        }
    }

    /// Folds what is left of what connections' ends saw, when all was told.
    pub(crate) fn fold_all_sights(&mut self) {
        for connection in self.flows.iter_mut().filter(|connection| connection.sights.is_some()) {
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
