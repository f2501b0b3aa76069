//! Connections of a network as a capture represents them, with addresses of hosts, labels of VCs and parameters of TCP.

use typed_index_collections::{TiVec, ti_vec};

use celltrain_core::index::{FlowIndex, LinkIndex, NodeIndex, VcIndex};
use celltrain_core::network::{Flow, Network, NodeKind};
use celltrain_core::requests::{GroupIndex, RequestGroup};
use celltrain_core::tcp::{Ecn, TcpConfig};

use crate::selection::Selected;
use crate::{Circuit, Connection, End, Interface, Labels, Tcp};

/// Creates the connections that represent flows and requests in a capture.
pub(crate) struct Connections {
    /// For each node, its host number, and its interface if the capture observes the node.
    ends: TiVec<NodeIndex, End>,
    /// First and last host of each VC.
    hosts: TiVec<VcIndex, [NodeIndex; 2]>,
    labels: TiVec<VcIndex, Labels>,
    /// Name and TCP parameters of each group of requests; no parameters if real stacks send the group's packets.
    groups: TiVec<GroupIndex, (String, Option<Tcp>)>,
    /// Two flags for requests: whether the capture observes their senders, and whether it observes their receivers.
    of_requests: [bool; 2],
}

impl Connections {
    /// Numbers the hosts of a network. The two flags `looks_at` tell whether the capture observes senders and
    /// receivers.
    pub(crate) fn new(
        network: &Network,
        circuits: &TiVec<VcIndex, Vec<Circuit>>,
        looks_at: [bool; 2],
        chosen: &Selected,
    ) -> Self {
        let hosts = |path: &Vec<LinkIndex>| {
            let [first, last] = [path.first(), path.last()]
                .map(|link: Option<&LinkIndex>| &network.links[*link.expect("every VC crosses at least one link")]);
            [first.from, last.to]
        };
        let hosts: TiVec<VcIndex, _> = network.vcs.iter().map(|vc| hosts(&vc.path)).collect();
        let of_requests = looks_at.map(|looks| looks && chosen.requests);
        let mut is_seen: TiVec<NodeIndex, bool> = ti_vec![false; network.nodes.len()];
        let flows = network.flows.iter().zip(&chosen.flows).filter(|(_, chosen)| **chosen);
        let flows = flows.map(|(flow, _)| (hosts[flow.data_vc], looks_at));
        let pairs = network.requests.groups.iter().flat_map(RequestGroup::pairs);
        let pairs = pairs.map(|pair| &network.requests.pairs[pair]).map(|pair| ([pair.from, pair.to], of_requests));
        for (ends, looks_at) in flows.chain(pairs) {
            ends.into_iter().zip(looks_at).filter(|(_, looks)| *looks).for_each(|(host, _)| is_seen[host] = true);
        }
        // Packets of hosts outside the simulation contain addresses in 10.0.0.0/9, so all other hosts get addresses
        // above.
        let of_flows = network.flows.iter().any(|flow| flow.outside);
        let has_stacks = of_flows || network.requests.groups.iter().any(|group| group.outside);
        let mut host = if has_stacks { 1 << 23 } else { 0 };
        let mut interfaces = 0..;
        let end = |(node, &is_seen): (&celltrain_core::network::Node, &bool)| {
            let end = End { host, interface: if is_seen { interfaces.next() } else { None } };
            host += u32::from(node.kind == NodeKind::Host);
            end
        };
        let ends = network.nodes.iter().zip(&is_seen).map(end).collect();
        let ends_of = |circuits: &Vec<Circuit>| Labels {
            first: circuits.first().copied().unwrap_or_default(),
            last: circuits.last().copied().unwrap_or_default(),
        };
        Self {
            ends,
            hosts,
            labels: circuits.iter().map(ends_of).collect(),
            groups: (network.requests.groups.iter())
                .map(|group| (group.name.clone(), (!group.outside).then(|| tcp(&group.tcp))))
                .collect(),
            of_requests,
        }
    }

    /// Returns the hosts that the capture observes, as interfaces.
    pub(crate) fn interfaces(&self, network: &Network) -> Vec<Interface> {
        let seen = network.nodes.iter().zip(&self.ends).filter(|(_, end)| end.interface.is_some());
        seen.map(|(node, _)| Interface { name: node.name.clone(), description: "host".to_owned() }).collect()
    }

    /// Returns the connection of a flow. The two flags `looks_at` tell whether the capture observes its sender and
    /// receiver.
    pub(crate) fn of_flow(&self, flow: &Flow, looks_at: [bool; 2]) -> Connection {
        let is_tcp = flow.uses_tcp();
        let mut connection = self.connection(flow.name.clone(), [flow.data_vc, flow.ack_vc], looks_at);
        if !is_tcp && !flow.outside {
            connection.acks = Labels::default();
        }
        Connection { tcp: is_tcp.then(|| tcp(&flow.tcp)), ..connection }
    }

    /// Returns the connection of a request in a group.
    pub(crate) fn of_request(&self, group: GroupIndex, number: u32, vcs: [VcIndex; 2]) -> Connection {
        let (name, tcp) = &self.groups[group];
        Connection { tcp: *tcp, ..self.connection(format!("{name}{number}"), vcs, self.of_requests) }
    }

    fn connection(&self, name: String, [data, acks]: [VcIndex; 2], looks_at: [bool; 2]) -> Connection {
        let end = |host: NodeIndex, looks: bool| {
            let End { host, interface } = self.ends[host];
            End { host, interface: interface.filter(|_| looks) }
        };
        let [from, to] = self.hosts[data];
        Connection {
            name,
            sender: end(from, looks_at[0]),
            receiver: end(to, looks_at[1]),
            data: self.labels[data],
            acks: self.labels[acks],
            tcp: None,
        }
    }
}

fn tcp(config: &TcpConfig) -> Tcp {
    let options = config.options();
    Tcp {
        mss: options.mss.bytes,
        receive_window: options.receive_window.bytes,
        selective: config.selective(),
        ecn: options.ecn == Ecn::On,
    }
}

/// Returns the chosen flows, with their indices.
pub(crate) fn chosen_flows<'a>(
    network: &'a Network,
    chosen: &'a TiVec<FlowIndex, bool>,
) -> impl Iterator<Item = (FlowIndex, &'a Flow)> {
    network.flows.iter_enumerated().filter(|(flow, _)| chosen[*flow])
}
