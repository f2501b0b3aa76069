//! What a run would take of memory, against what there is: before a network is laid out by how much there is of it, then by
//! its records.

use celltrain_core::engine::Engine;
use celltrain_core::footprint::Footprint;
use celltrain_core::network::Network;
use celltrain_core::stop::{Interrupted, Stop};

use super::topology::flows;
use crate::Machine;
use crate::fault::KeyFault;
use crate::scenario::{Scenario, Topology};

/// A topology so large that its bare network does not fit is refused before it is laid out; whether it is.
pub(super) fn before_layout(scenario: &Scenario, machine: Machine, faults: &mut Vec<KeyFault>) -> bool {
    let topology = &scenario.topology;
    let (_, key) = flows(topology);
    if faults.iter().any(|fault| fault.key == key) {
        return false;
    }
    let least = least(topology);
    let lacks = machine.lacks(&least);
    faults.extend(lacks.map(|free| refusal(topology, &least, "more than", free)));
    lacks.is_some()
}

/// A run that does not fit is refused before it starts; what it takes otherwise.
pub(super) fn of_run(
    scenario: &Scenario,
    network: &Network,
    machine: Machine,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<Footprint, Interrupted> {
    let footprint = Footprint::of(network, Engine::Fast, stop)?;
    if let Some(free) = machine.lacks(&footprint) {
        faults.push(refusal(&scenario.topology, &footprint, "about", free));
    }
    Ok(footprint)
}

/// The least a topology takes, whatever is sent over it.
#[expect(clippy::arithmetic_side_effects, reason = "sums of products of two numbers of 32 bits each, in 64 bits")]
fn least(topology: &Topology) -> Footprint {
    let (flows, _) = flows(topology);
    let wide = u64::from;
    let [nodes, links, hops] = match topology {
        Topology::NSource(_) => [2 + 2 * flows, 2 + 4 * flows, 3 * flows],
        Topology::VcMerge(config) => {
            [2 + 2 * wide(config.vcs) + flows, 2 + 4 * wide(config.vcs) + 2 * flows, 4 * flows]
        }
        Topology::Internetwork(config) => [2 + 4 * wide(config.sources), 2 + 8 * wide(config.sources), 5 * flows],
        Topology::Chain(config) => {
            let [hops, long] = [config.hops, config.long].map(wide);
            [hops + 1 + 2 * flows, 2 * hops + 4 * flows, long * (hops + 2) + 3 * (flows - long)]
        }
        Topology::Star(config) => [1 + wide(config.hosts), 2 * wide(config.hosts), 2 * flows],
        Topology::Network(config) => {
            let nodes = config.hosts.len() + config.switches.len() + config.edge_devices.len();
            [nodes as u64, 2 * config.links.len() as u64, flows]
        }
    };
    let bytes = Footprint::at_least(nodes, links, flows, hops);
    Footprint { nodes, vcs: 2 * flows, hops: 2 * hops, flows, bytes, kept: bytes }
}

fn refusal(topology: &Topology, footprint: &Footprint, about: &str, free: u64) -> KeyFault {
    let (number, key) = flows(topology);
    let value = match topology {
        Topology::NSource(config) => u64::from(config.sources),
        Topology::VcMerge(config) => u64::from(config.vcs),
        Topology::Internetwork(config) => u64::from(config.sources),
        Topology::Chain(config) => u64::from(config.cross),
        Topology::Star(config) => u64::from(config.hosts),
        Topology::Network(_) => number,
    };
    let problem = format!("makes a network that does not fit: {}", footprint.in_words(about, free));
    KeyFault::of_value(key, value, problem)
}
