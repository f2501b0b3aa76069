//! Memories of a network's switches.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::{LinkTimes, Network, Routing};
use crate::index::{Label, LinkIndex, VcIndex};
use crate::memory::{CellClass, CellClasses, Memory, MemoryConfig, QueueConfig, Side};
use crate::units::Clock;

impl Network {
    /// Creates an empty memory for links with the given cell times on `clock`.
    pub fn memory(&self, config: &MemoryConfig, times: &TiSlice<LinkIndex, LinkTimes>, clock: Clock) -> Memory {
        let memory = Memory::new(config, |link| times[link].cell_time, clock, self.aal5.cell, self.seed);
        match &self.recording {
            // The memory of a single port has no name.
            Some(recording) if !config.name.is_empty() => recording.memory(memory, config),
            _ => memory,
        }
    }

    /// Returns the name of a queue in results: `sw/sw->host1/0` for the memory, the link and the priority.
    pub fn queue_name(&self, memory: &MemoryConfig, queue: &QueueConfig) -> String {
        format!("{}/{}/{}", memory.name, self.links[queue.link].name, queue.priority)
    }

    /// Finds the queues of every VC in a memory.
    ///
    /// # Panics
    /// Panics if a side has a pool but a VC has no queue there.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are indices of lists in memory")]
    pub fn cell_classes(&self, routing: &Routing, memory: &MemoryConfig) -> CellClasses {
        let counts = |side| memory.pools.iter().any(|pool| pool.side == side);
        let queue = |side: Side, link: LinkIndex, priority: u8| {
            let mut queues = memory.queues.iter_enumerated();
            let found = queues.find(|(_, queue)| {
                (queue.link, queue.priority, memory.pools[queue.pool].side) == (link, priority, side)
            });
            counts(side).then(|| found.expect("every cell that crosses a memory has a queue").0)
        };
        let mut classes: TiVec<LinkIndex, TiVec<Label, CellClass>> = ti_vec![TiVec::new(); self.links.len()];
        for &port in &memory.ports {
            let class = |&vc: &VcIndex| {
                let vc = &self.vcs[vc];
                let place =
                    vc.path.iter().position(|&link| link == port).expect("the path of the VC contains the port");
                CellClass {
                    egress: queue(Side::Egress, port, vc.priority),
                    ingress: queue(Side::Ingress, vc.path[place - 1], vc.priority),
                }
            };
            classes[port] = routing.vcs[port].iter().map(class).collect();
        }
        CellClasses::new(classes)
    }
}
