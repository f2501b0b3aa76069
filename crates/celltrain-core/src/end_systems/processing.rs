//! The time that hosts take to process outgoing packets. A host processes packets in order, so no packet overtakes
//! another.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use typed_index_collections::{TiVec, ti_vec};

use super::Departure;
use crate::coverage::reached;
use crate::host::{ProcessingTimes, up_to};
use crate::index::{NodeIndex, VcIndex};
use crate::network::{Network, Vc};
use crate::rng::Stream;
use crate::units::{Clock, Span, Time};

pub(super) struct Processing {
    longest: Span,
    times: ProcessingTimes,
    /// Number of the host that sends on each VC, in node order.
    host_of: TiVec<VcIndex, u32>,
    hosts: Vec<Host>,
    /// Times at which hosts finish processing their first waiting packet.
    done: BinaryHeap<Reverse<(Time, u32)>>,
    /// Number of cells in packets that have not left their host yet, by VC.
    cells: TiVec<VcIndex, u64>,
}

struct Host {
    rng: Stream,
    /// Time at which the host will have finished all its packets.
    free: Time,
    /// Packets, each with the time at which its processing ends.
    packets: VecDeque<(Time, Departure)>,
}

impl Processing {
    /// Creates the packet processing of a network's hosts; `None` if it takes no time.
    pub(super) fn new(network: &Network, clock: Clock) -> Option<Self> {
        if !network.host.process() {
            return None;
        }
        let node_of = |vc: &Vc| network.links[vc.path[0]].from;
        let mut nodes: Vec<NodeIndex> = network.vcs.iter().map(node_of).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let number = |node: NodeIndex| nodes.binary_search(&node).expect("the list contains the node of every VC");
        let host_of = network
            .vcs
            .iter()
            .map(|vc| u32::try_from(number(node_of(vc))).expect("the number of nodes fits in 32 bits"));
        let host = |&node: &NodeIndex| Host {
            rng: Stream::new(network.seed, &format!("host/{}/processing", network.nodes[node].name)),
            free: Time::default(),
            packets: VecDeque::new(),
        };
        Some(Self {
            // Processing takes at least one unit, so no packet leaves at the instant at which it arrived.
            longest: clock.span(network.host.processing).max(Span(1)),
            times: network.host.processing_times,
            host_of: host_of.collect(),
            hosts: nodes.iter().map(host).collect(),
            done: BinaryHeap::new(),
            cells: ti_vec![0; network.vcs.len()],
        })
    }

    /// Adds a packet to its host's queue.
    pub(super) fn take(&mut self, packet: Departure, now: Time) {
        let number = self.host_of[packet.vc];
        let host = &mut self.hosts[number as usize];
        let takes = match self.times {
            ProcessingTimes::Fixed => self.longest,
            ProcessingTimes::Uniform => up_to(self.longest, &mut host.rng).max(Span(1)),
        };
        host.free = host.free.max(now) + takes;
        reached!(PacketWaitsAtHost if !host.packets.is_empty());
        if host.packets.is_empty() {
            self.done.push(Reverse((host.free, number)));
        }
        host.packets.push_back((host.free, packet));
        self.cells[packet.vc] += u64::from(packet.cells);
    }

    /// Returns when the next packet leaves the host.
    pub(super) fn next(&self) -> Option<Time> {
        self.done.peek().map(|done| done.0.0)
    }

    /// Moves the packets that leave at `now` to `out`, in host order.
    pub(super) fn leave(&mut self, now: Time, out: &mut Vec<Departure>) {
        while let Some(&Reverse((_, number))) = self.done.peek().filter(|done| done.0.0 == now) {
            self.done.pop();
            let packets = &mut self.hosts[number as usize].packets;
            let (_, packet) = packets.pop_front().expect("the host has just processed a packet");
            self.done.extend(packets.front().map(|&(time, _)| Reverse((time, number))));
            self.cells[packet.vc] -= u64::from(packet.cells);
            out.push(packet);
        }
    }

    /// Returns the number of a VC's cells in packets that have not left yet.
    pub(super) fn in_processing(&self, vc: VcIndex) -> u64 {
        self.cells[vc]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cell::{Cell, FrameNumber};
    use crate::host::HostOptions;
    use crate::index::{Label, LinkIndex};
    use crate::network::tests::simple_network;
    use crate::units::Duration;

    /// Creates the processing of two sources and their destinations, with a clock of one microsecond.
    fn processing(options: HostOptions) -> Option<Processing> {
        let network = Network { host: options, ..simple_network(2, "1s") };
        Processing::new(&network, Clock::exact(1_000_000))
    }

    fn taking(microseconds: u64, processing_times: ProcessingTimes) -> Processing {
        let processing = Duration::from_microseconds(microseconds);
        self::processing(HostOptions { processing, processing_times, ..HostOptions::default() })
            .expect("the processing time is above zero")
    }

    fn packet(vc: u32, number: u32) -> Departure {
        let last = Cell::new(Label::default(), FrameNumber::new(number), true);
        Departure { vc: VcIndex::from(vc as usize), link: LinkIndex::default(), last, cells: 12 }
    }

    #[test]
    fn a_host_without_processing_time_adds_no_delay() {
        assert!(processing(HostOptions::default()).is_none());
    }

    #[test]
    fn a_host_processes_packets_one_after_the_other_independently_of_other_hosts() {
        let mut processing = taking(10, ProcessingTimes::Fixed);
        // VCs 0 and 2 start at the two sources.
        processing.take(packet(0, 0), Time(5));
        processing.take(packet(0, 1), Time(6));
        processing.take(packet(2, 0), Time(15));
        assert_eq!(processing.in_processing(VcIndex::from(0)), 24);
        let mut left = Vec::new();
        while let Some(now) = processing.next() {
            let mut out = Vec::new();
            processing.leave(now, &mut out);
            left.extend(out.iter().map(|packet| (now.0, packet.vc.number(), packet.last.frame)));
        }
        let number = FrameNumber::new;
        assert_eq!(left, [(15, 0, number(0)), (25, 0, number(1)), (25, 2, number(0))]);
        assert_eq!(processing.in_processing(VcIndex::from(0)), 0);
    }

    proptest! {
        #![proptest_config(crate::rng::proptest_seeded(21))]

        #[test]
        fn a_host_keeps_packets_in_order_and_processes_each_for_the_configured_time(
            arrivals in prop::collection::vec((0u64..40, 0u32..4), 0..80), longest in 1u64..50,
        ) {
            let mut processing = taking(longest, ProcessingTimes::Uniform);
            let (mut now, mut came, mut left) = (0, Vec::new(), Vec::new());
            let mut drain = |processing: &mut Processing, until: u64| {
                while let Some(time) = processing.next().filter(|time| time.0 <= until) {
                    let mut out = Vec::new();
                    processing.leave(time, &mut out);
                    left.extend(out.into_iter().map(|packet| (time.0, packet)));
                }
            };
            for (number, &(after, vc)) in arrivals.iter().enumerate() {
                now += after;
                drain(&mut processing, now);
                let packet = packet(vc, u32::try_from(number).unwrap());
                processing.take(packet, Time(now));
                came.push((now, packet));
            }
            drain(&mut processing, u64::MAX);
            prop_assert_eq!(left.len(), came.len());
            // An independent model with one queue per host. The sources send on VCs 0 and 2, and their destinations on
            // VCs 1 and 3.
            for hosts in [&[0u32][..], &[2], &[1], &[3]] {
                let of = |all: &[(u64, Departure)]| -> Vec<(u64, Departure)> {
                    all.iter().filter(|(_, packet)| hosts.contains(&packet.vc.number())).copied().collect()
                };
                let (came, left) = (of(&came), of(&left));
                let mut free = 0;
                for (&(at, packet), &(end, other)) in came.iter().zip(&left) {
                    prop_assert_eq!(packet, other);
                    let begin = at.max(free);
                    prop_assert!((1..=longest).contains(&(end - begin)), "{begin} to {end}");
                    free = end;
                }
            }
        }
    }
}
