//! Warns of policies that refuse frames at an empty or nearly empty buffer.
//!
//! The result is a warning and not a fault, for two reasons. If a policy has state or uses random numbers, a probe
//! proves nothing. Moreover, a user may let a port refuse all frames on purpose, to study the effect on other ports.
//! `celltrain vet` rejects such a policy.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::LinkIndex;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::policy::formula::PortInfo;
use celltrain_core::units::{Clock, Time};

use super::ports::{counts_vcs, has_settings_by_vc};
use crate::document::join;
use crate::fault::Warning;
use crate::liveness::{ROUNDS, VCS, memory, probe};
use crate::memories::path_of;
use crate::resolved::ResolvedScenario;
use crate::scenario::PortConfig;

/// Picoseconds per second, the resolution of the probe's clock.
const UNITS_PER_SECOND: u64 = 1_000_000_000_000;

/// Probes the policy of every port table once, at the table's port that is crossed by the most VCs.
pub(super) fn check(
    resolved: &ResolvedScenario<'_>,
    warnings: &mut Vec<Warning>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ports = &resolved.scenario.port;
    if !ports.values().any(needs_probe) {
        return Ok(());
    }
    let asks = |port: &PortConfig| has_settings_by_vc(port) || counts_vcs(port);
    let names =
        if ports.values().any(|port| needs_probe(port) && asks(port)) { Some(resolved.crossing()) } else { None };
    let vcs_of = |link: LinkIndex| names.as_ref().map_or(&VCS[..], |names| &names[link]);
    let mut probed: BTreeMap<&str, LinkIndex> = BTreeMap::new();
    for (link, table) in resolved.tables.ports.iter_enumerated() {
        let Some((name, _)) = table.filter(|(_, port)| needs_probe(port)) else { continue };
        let chosen = probed.entry(name).or_insert(link);
        if vcs_of(link).len() > vcs_of(*chosen).len() {
            *chosen = link;
        }
    }
    for (name, link) in probed {
        let port = &ports[name];
        let capacity = resolved.capacity(link);
        let vcs = if asks(port) { vcs_of(link) } else { &VCS[..] };
        token.tick(vcs.len().saturating_add(ROUNDS as usize))?;
        let of_link = &resolved.layout.graph.links[link];
        let port_info = PortInfo {
            name: &of_link.name,
            capacity,
            cells_per_second: of_link.rate.bits_per_second as f64 / resolved.scenario.cell.format().bits() as f64,
            clock: Clock {
                units_per_second: UNITS_PER_SECOND,
                exact: true,
                cell_bits: resolved.scenario.cell.format().bits(),
            },
            aal5: &resolved.scenario.framing(),
        };
        let end = Time(resolved.scenario.duration.picoseconds);
        let key = join(&join(&join("port", name), "policy"), port.policy.name());
        let probe = probe(port.policy.build(capacity, vcs), &port_info, vcs, end, ROUNDS);
        for refusal in probe.refusals.into_iter().chain(probe.remark) {
            warnings.push(Warning { key: key.clone(), message: format!("{key} {refusal}") });
        }
    }
    Ok(())
}

/// Probes the policy of every pool. All memories described by one table have the same policies, so each table gets one
/// warning.
pub(super) fn memories(resolved: &ResolvedScenario<'_>, warnings: &mut Vec<Warning>) {
    let (mut seen, cell) = (BTreeSet::new(), resolved.scenario.cell.format());
    for memory in &resolved.memories {
        for (number, pool) in memory.pools.iter_enumerated() {
            let Some(problem) = memory::probe(memory, number, cell) else { continue };
            let Some(table) = path_of(resolved.scenario, &resolved.layout, memory) else { continue };
            let pool_key = join(&join(&table, "pool"), &pool.name);
            let key = join(&join(&pool_key, "policy"), pool.policy.name());
            if seen.insert(key.clone()) {
                warnings.push(Warning { message: format!("{key} {problem}"), key });
            }
        }
    }
}

/// Returns whether a policy needs a probe. Python classes are called only in runs, because checking a scenario must not
/// execute user code.
fn needs_probe(port: &PortConfig) -> bool {
    !matches!(port.policy, PolicyConfig::Python(_) | PolicyConfig::TailDrop(_))
}
