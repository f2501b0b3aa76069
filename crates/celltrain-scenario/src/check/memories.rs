//! Checks of the tables of ports that share a memory.

use celltrain_core::network::NodeKind;

use crate::build::ResolvedScenario;
use crate::memories;
use crate::scenario::{Buffer, Infinite, Shared};
use crate::scope::Scope;

/// Checks that a port has a shared buffer if and only if it belongs to a memory.
pub(super) fn check(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let ResolvedScenario { layout, tables, .. } = resolved;
    for (port, link) in layout.graph.links.iter_enumerated() {
        let Some((name, table)) = tables.ports[port] else { continue };
        let mut of_all = root.at("port");
        let mut scope = of_all.at(name);
        let mut scope = scope.at("buffer");
        match (resolved.memory_of(port), table.buffer) {
            (Some(memory), Buffer::Cells(_) | Buffer::Infinite(_)) => {
                let problem = format!(
                    "is the buffer of {}, which belongs to the memory {}; write \"shared\", or leave the port out of \
                     the memory",
                    link.name, memory.name
                );
                scope.once(|scope| match table.buffer {
                    Buffer::Cells(cells) => scope.refuse_value(cells, problem),
                    Buffer::Infinite(Infinite::Infinite) => scope.refuse_text("infinite", problem),
                    Buffer::Shared(Shared::Shared) => {}
                });
            }
            (None, Buffer::Shared(_)) if layout.graph.nodes[link.from].kind == NodeKind::Switch => {
                let switch = &layout.graph.nodes[link.from].name;
                let problem = format!(
                    "needs a memory, but {} belongs to no memory; write a number of cells, or a table \
                     [switch.{switch}.memory]",
                    link.name
                );
                scope.once(|scope| scope.refuse_text("shared", problem));
            }
            _ => {}
        }
    }
}

/// Returns the smallest buffer size K among the ports of a table that belong to a memory.
pub(super) fn shared_capacity(resolved: &ResolvedScenario<'_>, table: &str) -> Option<u32> {
    let ports = resolved.tables.ports.iter_enumerated();
    let own = ports.filter(|(_, own)| own.is_some_and(|(name, _)| name == table)).map(|(port, _)| port);
    own.filter_map(|port| resolved.memory_of(port)).map(memories::capacity).min()
}
