//! Descriptions of the outcomes of frames, and the packets that wait for the outcomes of their frames. A packet waits
//! because it is written together with a comment that describes the outcome.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use typed_index_collections::TiVec;

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{FrameEvent, FrameStep, Judged, MemoryRefusal};
use celltrain_core::index::{LinkIndex, MemoryIndex, VcIndex};
use celltrain_core::memory::{MemoryConfig, QueueConfig, QueueIndex};
use celltrain_core::network::Network;

use crate::{Frame, Place};

/// Captured packets in time order, starting with the first packet whose outcome is unknown.
pub(crate) struct FrameOutcomes {
    waiting: VecDeque<Waiting>,
    /// Sequence number of the first waiting packet, counted from the start.
    first: u64,
    /// Sequence numbers of the packets whose outcome is unknown.
    open: BTreeMap<(VcIndex, FrameNumber), u64>,
    /// Maximum number of waiting packets. If more packets wait, the first packet is written without its outcome.
    most: usize,
}

/// A captured packet that has not been written yet.
pub(crate) struct Waiting {
    pub(crate) time_ns: u64,
    pub(crate) at: Place,
    pub(crate) frame: Frame,
    /// The packet's bytes, if a host outside the simulation sent it.
    pub(crate) own: Option<Box<[u8]>>,
    pub(crate) comment: Option<Box<str>>,
    /// The packet's frame and VC, while the frame's outcome is unknown.
    open: Option<(VcIndex, FrameNumber)>,
}

impl Waiting {
    /// Creates a packet that need not wait for an outcome.
    pub(crate) fn settled(time_ns: u64, at: Place, frame: Frame) -> Self {
        Self { time_ns, at, frame, own: None, comment: None, open: None }
    }
}

/// Maximum number of waiting packets, which take about ten megabytes. Most networks have fewer packets in flight.
const MOST: usize = 1 << 16;

impl Default for FrameOutcomes {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), first: 0, open: BTreeMap::new(), most: MOST }
    }
}

impl FrameOutcomes {
    /// Appends a packet to the queue. `of` is the packet's frame if the packet must wait for that frame's outcome.
    pub(crate) fn push(&mut self, packet: Waiting, of: Option<(VcIndex, FrameNumber)>) {
        if let Some(frame) = of {
            self.open.insert(frame, self.first + self.waiting.len() as u64);
        }
        self.waiting.push_back(Waiting { open: of, ..packet });
    }

    /// Records the outcome of a frame. The function `comment` describes a loss. It is called only if a packet is
    /// waiting for the frame's outcome.
    pub(crate) fn settle(&mut self, frame: (VcIndex, FrameNumber), comment: impl FnOnce() -> Option<String>) {
        let Some(number) = self.open.remove(&frame) else { return };
        let place = usize::try_from(number - self.first).expect("waiting packets are in memory");
        let packet = &mut self.waiting[place];
        packet.open = None;
        packet.comment = comment().map(String::into_boxed_str);
    }

    /// Returns the next packet that can be written; `None` if its outcome is unknown or no packet is waiting.
    pub(crate) fn next(&mut self) -> Option<Waiting> {
        let front = self.waiting.front()?;
        if front.open.is_some() && self.waiting.len() <= self.most { None } else { self.take() }
    }

    /// Returns the next waiting packet, even if its outcome is unknown.
    pub(crate) fn take(&mut self) -> Option<Waiting> {
        let packet = self.waiting.pop_front()?;
        self.first += 1;
        if let Some(frame) = packet.open {
            self.open.remove(&frame);
        }
        Some(packet)
    }
}

/// Names of ports, hosts and pools for comments in a capture.
pub(crate) struct Names {
    ports: TiVec<LinkIndex, String>,
    /// The host at the end of each VC.
    hosts: TiVec<VcIndex, String>,
    /// Name of the pool of each queue of a memory, and the size B of the pool's shared part.
    pools: TiVec<MemoryIndex, TiVec<QueueIndex, (String, u32)>>,
}

impl Names {
    pub(crate) fn of(network: &Network) -> Self {
        let host = |path: &Vec<LinkIndex>| {
            let last = path.last().expect("every VC crosses at least one link");
            network.nodes[network.links[*last].to].name.clone()
        };
        Self {
            ports: network.links.iter().map(|link| link.name.clone()).collect(),
            hosts: network.vcs.iter().map(|vc| host(&vc.path)).collect(),
            pools: network.memories.iter().map(pools_by_queue).collect(),
        }
    }

    /// Describes where and why a frame was lost; `None` if the frame was not lost.
    pub(crate) fn loss(&self, event: &FrameEvent) -> Option<String> {
        let how = match event.step {
            FrameStep::Admitted(_) | FrameStep::Marked(_) | FrameStep::Delivered => return None,
            FrameStep::Refused(_) => "refused: ",
            FrameStep::Cut { .. } | FrameStep::NoRoom(_) | FrameStep::Dropped { rate_fell: false, .. } => "cut: ",
            FrameStep::Dropped { rate_fell: true, .. } | FrameStep::DroppedAtHead(_) => "dropped: ",
            FrameStep::LostJoined { .. } | FrameStep::LostOnLink { .. } | FrameStep::Failed(_) => "",
        };
        let reason = event.step.reason();
        let Some(link) = event.step.link() else {
            return Some(format!("not delivered at {}: {how}{reason}", self.hosts[event.vc]));
        };
        if let FrameStep::LostOnLink { loss, .. } = event.step {
            return Some(format!("lost on {}: {} (number {})", self.ports[link], loss.reason(), loss.number));
        }
        let mut text = format!("lost at {}: {how}{reason}", self.ports[link]);
        if let Some(occupancy) = event.step.occupancy() {
            write!(text, " (X = {occupancy} cells waiting").expect("writing to a string cannot fail");
        }
        if let FrameStep::Refused(judged) | FrameStep::DroppedAtHead(judged) = event.step {
            write_numbers(&mut text, &judged);
        }
        if let FrameStep::Cut { refusal: Some(refusal), .. } = event.step {
            let MemoryRefusal { memory, queue, shared, used, threshold, .. } = refusal;
            let (pool, cells) = &self.pools[memory][queue];
            write!(text, ", pool {pool}: Q = {used} of {cells} cells, q_i = {shared} cells")
                .expect("writing to a string cannot fail");
            write_number(&mut text, "threshold ", threshold, " cells");
        }
        text.push(')');
        Some(text)
    }
}

/// Appends the numbers on which a policy based its decision, except X.
fn write_numbers(text: &mut String, judged: &Judged) {
    let Judged { vc_cells, active_vcs, decision, .. } = judged;
    let of_vc = decision.share.is_some();
    let threshold = if decision.rule.starts_with("X is above R") { "threshold R = " } else { "threshold " };
    let counts = [
        ("Y_i = ", of_vc.then_some(f64::from(*vc_cells)), " cells"),
        ("N_a = ", of_vc.then_some(f64::from(*active_vcs)), ""),
        (threshold, decision.threshold, " cells"),
        ("share ", decision.share, " cells"),
        ("held ", decision.held, " cells"),
        ("waited ", decision.waited.map(|seconds| seconds * 1e3), " ms"),
        ("target ", decision.target.map(|seconds| seconds * 1e3), " ms"),
        ("probability ", decision.probability, ""),
    ];
    for (name, number, unit) in counts {
        write_number(text, name, number, unit);
    }
}

fn write_number(text: &mut String, name: &str, number: Option<f64>, unit: &str) {
    if let Some(number) = number {
        let digits = if number.fract() == 0.0 { 0 } else { 3 };
        write!(text, ", {name}{number:.digits$}{unit}").expect("writing to a string cannot fail");
    }
}

/// Returns the name of each queue's pool, and the size B of the pool's shared part.
fn pools_by_queue(memory: &MemoryConfig) -> TiVec<QueueIndex, (String, u32)> {
    let pool = |queue: &QueueConfig| {
        let pool = &memory.pools[queue.pool];
        (format!("{}/{}", memory.name, pool.name), pool.cells)
    };
    memory.queues.iter().map(pool).collect()
}

#[cfg(test)]
mod tests {
    use celltrain_core::events::EcnBits;
    use celltrain_core::tcp::Segment;

    use super::*;
    use crate::Carries;

    fn packet(number: u32) -> Waiting {
        let carries = Carries::Data(Segment { seq: 0, len: 1 });
        Waiting::settled(
            number.into(),
            Place::Sender,
            Frame { connection: 0, number, ecn: EcnBits::default(), carries },
        )
    }

    fn of(number: u32) -> (VcIndex, FrameNumber) {
        (VcIndex::new(0), FrameNumber::new(number))
    }

    /// Removes and returns the packets that can be written, with their comments.
    fn ready(outcomes: &mut FrameOutcomes) -> Vec<(u32, Option<String>)> {
        std::iter::from_fn(|| outcomes.next())
            .map(|packet| (packet.frame.number, packet.comment.map(String::from)))
            .collect()
    }

    #[test]
    fn captured_packets_wait_until_the_outcome_of_the_first_is_known() {
        let mut outcomes = FrameOutcomes::default();
        outcomes.push(packet(1), Some(of(1)));
        outcomes.push(packet(2), None);
        outcomes.push(packet(3), Some(of(3)));
        assert_eq!(ready(&mut outcomes), []);
        outcomes.settle(of(3), || Some("lost".to_owned()));
        outcomes.settle(of(3), || panic!("known outcomes are not requested again"));
        assert_eq!(ready(&mut outcomes), []);
        outcomes.settle(of(1), || None);
        assert_eq!(ready(&mut outcomes), [(1, None), (2, None), (3, Some("lost".to_owned()))]);
        assert!(outcomes.open.is_empty());
    }

    #[test]
    fn the_number_of_captured_packets_waiting_for_their_outcome_is_bounded() {
        let mut outcomes = FrameOutcomes { most: 2, ..FrameOutcomes::default() };
        (1..=3).for_each(|number| outcomes.push(packet(number), Some(of(number))));
        assert_eq!(ready(&mut outcomes), [(1, None)]);
        outcomes.settle(of(1), || panic!("the packet has not been written yet"));
        outcomes.settle(of(2), || Some("lost".to_owned()));
        assert_eq!(ready(&mut outcomes), [(2, Some("lost".to_owned()))]);
        assert_eq!(outcomes.take().map(|packet| packet.frame.number), Some(3), "the run ends");
        assert!(outcomes.open.is_empty() && outcomes.take().is_none());
    }
}
