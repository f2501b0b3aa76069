//! Warnings to consider before trusting the results of a scenario without faults.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::Network;
use celltrain_formula::names::{number_in_range, range};

use super::{companions, framing, marks, refusals, requests, thresholds, traffic};
use crate::build::ResolvedScenario;
use crate::document::join;
use crate::fault::{KeyFault, Warning};
use crate::scenario::{Scenario, vanilla};

/// Returns the warnings about a resolved scenario. `malformed` contains faults found by the schema check.
pub(super) fn of(
    resolved: &ResolvedScenario<'_>,
    malformed: &[KeyFault],
    token: &CancellationToken<'_>,
) -> Result<Vec<Warning>, Interrupted> {
    let (scenario, mut warnings) = (resolved.scenario, Vec::new());
    traffic::rates(resolved, &mut warnings, token)?;
    traffic::timeouts(resolved, &mut warnings, token)?;
    requests::loads(resolved, &mut warnings);
    marks::without_effect(scenario, &mut warnings);
    companions::without_effect(scenario, &mut warnings);
    beyond(resolved, &mut warnings, token)?;
    unused_tcp(scenario, &mut warnings);
    unused(scenario, &mut warnings);
    meant_otherwise(scenario, &mut warnings);
    // A policy cannot be built if one of its settings was removed.
    if malformed.is_empty() {
        refusals::check(resolved, &mut warnings, token)?;
        refusals::memories(resolved, &mut warnings);
    }
    warnings.extend(scenario.topology.config().warnings(&resolved.layout));
    Ok(warnings)
}

/// Adds the warnings about the network that was built.
pub(super) fn of_network(network: &Network, warnings: &mut Vec<Warning>) {
    clock(network, warnings);
    framing::large_cells(network, warnings);
}

/// Warns of ranges that extend beyond the last connection, because they probably contain a wrong number.
fn beyond(
    resolved: &ResolvedScenario<'_>,
    warnings: &mut Vec<Warning>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, layout, channels, .. } = resolved;
    let flows: Vec<&str> = layout.flows.iter().map(|flow| flow.name.as_str()).collect();
    let vcs: Vec<&str> = channels.vcs.iter().map(|vc| vc.name.as_str()).collect();
    let tables =
        [("flow", &flows, scenario.flow.keys().collect::<Vec<_>>()), ("vc", &vcs, scenario.vc.keys().collect())];
    for (kind, names, keys) in tables {
        for key in keys {
            let Some((stem, numbers)) = range(key) else { continue };
            token.tick(names.len() / 8)?;
            let last = names.iter().filter_map(|name| Some((number_in_range(key, name)?, name))).max();
            if let Some((_, name)) = last.filter(|(number, _)| number < numbers.end()) {
                let (key, end) = (join(kind, key), numbers.end());
                let message =
                    format!("the range {key} ends at {stem}{end}, but {name} is the last one; the rest has no effect");
                warnings.push(Warning { key, message });
            }
        }
    }
    Ok(())
}

/// Warns of TCP settings for all connections that no connection uses, because all have a real stack.
fn unused_tcp(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    if let Some(stack) = scenario.stack.as_ref().filter(|_| scenario.tcp != vanilla()) {
        let key = join("tcp", scenario.tcp.name());
        let message = format!("{key} has no effect: stack.{} replaces it", stack.name());
        warnings.push(Warning { key, message });
    }
}

/// Warns of constants and state that no formula uses. They are probably misspelt.
fn unused(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let of_ports = scenario.port.iter().flat_map(|(name, port)| {
        let at = |kind: &str, which: &str| join(&join(&join("port", name), kind), which);
        let (policy, scheduler) = (&port.policy, &port.scheduler);
        [
            (at("policy", policy.name()), policy.unused()),
            (at("scheduler", scheduler.name()), scheduler.config().unused()),
        ]
    });
    let of_flows =
        scenario.flow.iter().filter_map(|(name, flow)| Some((join(&join("flow", name), "tcp"), flow.tcp.as_ref()?)));
    let of_tcps = of_flows.chain([("tcp".to_string(), &scenario.tcp)]).filter_map(|(at, tcp)| {
        let unused = tcp.options().formula.as_ref()?.unused();
        Some((join(&join(&at, tcp.name()), "formula"), unused))
    });
    for (table, names) in of_ports.chain(of_tcps) {
        for name in names {
            let key = format!("{table}.{name}");
            let message = format!("{key} is not used by any formula; leave it out, or check the spelling");
            warnings.push(Warning { key, message });
        }
    }
}

/// Warns of thresholds that were probably meant as a percentage or as a single cell.
fn meant_otherwise(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    const MOST: usize = 3;
    let doubts = scenario.port.iter().flat_map(|(name, port)| {
        let (policy, allocator) = (&port.policy, port.allocator.as_ref());
        let of_policy = policy.settings().thresholds.into_iter().map(|(key, it)| (("policy", policy.name(), key), it));
        let of_allocator = allocator.into_iter().flat_map(|allocator| {
            allocator.thresholds().into_iter().map(|(key, it)| (("allocator", allocator.name(), key), it))
        });
        let capacity = port.buffer.cells();
        of_policy.chain(of_allocator).filter_map(move |((kind, table, key), threshold)| {
            let key = format!("{}.{kind}.{table}.{key}", join("port", name));
            let message = format!("{key} = {threshold}: {}", thresholds::doubt(threshold, capacity?)?);
            Some(Warning { key, message })
        })
    });
    warnings.extend(doubts.take(MOST));
}

fn clock(network: &Network, warnings: &mut Vec<Warning>) {
    if !network.clock().exact {
        warnings.push(Warning {
            key: "topology".into(),
            message:
                "its rates and delays have no common unit of time of a picosecond or more: times are rounded, so cells \
                 that should arrive together may not. Use rates with a common divisor to avoid this."
                    .into(),
        });
    }
}
