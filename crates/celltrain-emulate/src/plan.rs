//! Hosts of a network, their addresses, and the VCs between them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use celltrain_core::index::{FlowIndex, LinkIndex, NodeIndex, VcIndex};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{LinkTimes, Network};
use celltrain_core::units::Span;

/// The network from which host addresses are taken: 10.77.0.0/16.
const NETWORK: u32 = 0x0a4d_0000;
/// Number of addresses in this network.
const MOST_HOSTS: usize = 65_534;
/// Headers of a TCP segment and its packet without options, in bytes (RFC 9293, RFC 791).
const TCP_IP_HEADERS: u64 = 40;
/// The smallest MTU that Linux accepts for IPv4 (RFC 791).
const LEAST_MTU: u64 = 68;
/// The largest length of an IPv4 packet.
const MOST_MTU: u64 = 65_535;

/// The hosts of a network that exchange packets in real time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The ends of all TCP flows, in flow order.
    pub hosts: Vec<Host>,
    /// Flows between hosts that an earlier flow already connects. The VCs of such flows carry no packets.
    pub unused: Vec<FlowIndex>,
    /// The shortest round-trip time of a cell from a host to its peer, without queues.
    pub shortest_round_trip: Span,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its node.
    pub node: NodeIndex,
    /// Its address.
    pub address: Ipv4Addr,
    /// The hosts to which this host can send.
    pub peers: Vec<Peer>,
    /// Its ports.
    pub ports: BTreeSet<LinkIndex>,
}

/// A host that another host can send packets to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Position of the peer in [`Plan::hosts`].
    pub host: usize,
    /// The flow that connects the two hosts.
    pub flow: FlowIndex,
    /// The VC that carries packets to that host.
    pub vc: VcIndex,
    /// The largest packet, in bytes.
    pub mtu: u16,
}

impl Plan {
    /// Assigns addresses to the ends of all TCP flows, and moves these ends outside the simulation.
    ///
    /// # Errors
    /// If the network has no TCP flow, or cannot be emulated.
    pub fn new(network: &mut Network) -> Result<Self, String> {
        if !network.requests.groups.is_empty() {
            return Err("emulate does not support requests, which open connections by themselves: remove the requests"
                .to_owned());
        }
        let mut plan = Self { hosts: Vec::new(), unused: Vec::new(), shortest_round_trip: Span(u64::MAX) };
        let mut by_node = BTreeMap::new();
        let mut pairs = BTreeSet::new();
        let times = LinkTimes::of(network, network.clock());
        for flow in network.flows.keys() {
            let own = &network.flows[flow];
            if own.traffic.packets().is_some() {
                continue;
            }
            let (vcs, mss) = ([own.data_vc, own.ack_vc], own.tcp.options().mss.bytes);
            let mtu = vcs.map(|vc| {
                let contract = network.vcs[vc].contract.as_ref();
                network.aal5.longest_packet(contract.map(|contract| contract.mfs))
            });
            let mtu = mtu.into_iter().fold(mss + TCP_IP_HEADERS, u64::min).min(MOST_MTU);
            if mtu < LEAST_MTU {
                return Err(format!(
                    "flow {} carries packets of at most {mtu} bytes, but Linux needs an MTU of {LEAST_MTU} bytes: use \
                     a larger mss",
                    own.name
                ));
            }
            let mtu = u16::try_from(mtu).expect("the MTU was checked to be at most 65,535");
            let mut ends = [network.source(own.data_vc), network.destination(own.data_vc)];
            let hosts = ends.map(|node| {
                *by_node.entry(node).or_insert_with(|| {
                    let number = u32::try_from(plan.hosts.len()).unwrap_or(u32::MAX);
                    let address = Ipv4Addr::from_bits(NETWORK | ((number + 1) & 0xffff));
                    plan.hosts.push(Host { node, address, peers: Vec::new(), ports: BTreeSet::new() });
                    plan.hosts.len() - 1
                })
            });
            network.flows[flow].outside = true;
            ends.sort_unstable();
            if !pairs.insert(ends) {
                plan.unused.push(flow);
                continue;
            }
            for (from, to, vc) in [(hosts[0], hosts[1], vcs[0]), (hosts[1], hosts[0], vcs[1])] {
                plan.hosts[from].peers.push(Peer { host: to, flow, vc, mtu });
                plan.hosts[from].ports.insert(network.vcs[vc].path[0]);
            }
            let links = vcs.iter().flat_map(|&vc| &network.vcs[vc].path).map(|&link| times[link]);
            let round_trip = links.fold(Span(0), |sum, LinkTimes { cell_time, delay }| sum + cell_time + delay);
            plan.shortest_round_trip = plan.shortest_round_trip.min(round_trip);
        }
        if plan.hosts.is_empty() {
            return Err("the scenario has no TCP flow, so no host can send to another: add a flow".to_owned());
        }
        if plan.hosts.len() > MOST_HOSTS {
            return Err(format!(
                "{} hosts are too many: emulate has addresses for only {MOST_HOSTS} hosts",
                plan.hosts.len()
            ));
        }
        Ok(plan)
    }
}

/// Names the kernel as the stack of the flows between hosts. Results omit values that the kernel does not report.
pub fn name_stacks(network: &Network, result: &mut RunResult) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    for (_, own) in network.flows.iter().zip(&mut result.flows).filter(|(flow, _)| flow.outside) {
        own.stack = format!("Linux {}", release.trim());
    }
}
