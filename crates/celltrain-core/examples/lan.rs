//! Builds the LAN of ATM Forum 96-1269 in Rust, runs it and prints its efficiency.

use celltrain_core::engine::{Engine, Simulation};
use celltrain_core::network::{Flow, Graph, Network, NodeKind, Vc};
use celltrain_core::tcp::{TcpConfig, TcpOptions};
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::{BitRate, Duration};

fn main() {
    let (rate, delay) = (BitRate::from_bits_per_second(155_520_000), Duration::from_microseconds(5));
    let mut graph = Graph::default();
    let [left, right] = ["left", "right"].map(|name| graph.add_node(name, NodeKind::Switch));
    let trunk = graph.connect(left, right, rate, delay);
    graph.links[trunk].buffer = Some(1000);
    let hosts: Vec<_> = (0..10).map(|i| graph.add_node(format!("host{i}"), NodeKind::Host)).collect();
    let up: Vec<_> = (0..10).map(|i| graph.connect(hosts[i], if i < 5 { left } else { right }, rate, delay)).collect();
    let mut network = Network::new(graph, Duration::from_milliseconds(10_000));
    for i in 0..5 {
        let there = vec![up[i], trunk, Graph::way_back(up[i + 5])];
        let back = there.iter().rev().map(|&link| Graph::way_back(link)).collect();
        let [data_vc, ack_vc] = [("data", there), ("acks", back)]
            .map(|(name, path)| network.vcs.push_and_get_key(Vc { name: format!("{name}{i}"), path, ..Vc::default() }));
        let (tcp, traffic) = (TcpConfig::Vanilla(TcpOptions::default()), TrafficConfig::default());
        network.flows.push(Flow {
            name: format!("tcp{i}"),
            data_vc,
            ack_vc,
            start: Duration::default(),
            tcp,
            traffic,
            outside: false,
        });
    }
    println!("efficiency {:.2}", Simulation::new(Engine::Fast, &network).finish().efficiency);
}
