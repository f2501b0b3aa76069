//! What a run would take of memory, against what there is: before a network is laid out by how much there is of it,
//! then by its records.

use celltrain_core::engine::Engine;
use celltrain_core::footprint::Footprint;
use celltrain_core::network::Network;
use celltrain_core::stop::{Interrupted, Stop};

use crate::Machine;
use crate::scope::Scope;
use crate::topology::Topology;

/// A topology so large that its bare network does not fit is refused before it is laid out; whether it is.
pub(super) fn before_layout(topology: &Topology, machine: Machine, root: &mut Scope<'_>) -> bool {
    let size = topology.config().size();
    if root.at("topology").at(topology.name()).at(size.key.0).is_refused() {
        return false;
    }
    let least = size.least();
    let lacks = machine.lacks(&least);
    if let Some(free) = lacks {
        refuse(topology, &least, "more than", free, root);
    }
    lacks.is_some()
}

/// A run that does not fit is refused before it starts; what it takes otherwise.
pub(super) fn of_run(
    topology: &Topology,
    network: &Network,
    machine: Machine,
    root: &mut Scope<'_>,
    stop: &Stop<'_>,
) -> Result<Footprint, Interrupted> {
    let footprint = Footprint::of(network, Engine::Fast, stop)?;
    if let Some(free) = machine.lacks(&footprint) {
        refuse(topology, &footprint, "about", free, root);
    }
    Ok(footprint)
}

fn refuse(topology: &Topology, footprint: &Footprint, about: &str, free: u64, root: &mut Scope<'_>) {
    let (key, value) = topology.config().size().key;
    let problem = format!("makes a network that does not fit: {}", footprint.in_words(about, free));
    root.at("topology").at(topology.name()).at(key).refuse_value(value, problem);
}
