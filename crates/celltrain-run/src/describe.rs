//! Converts readings, networks, port plans and policy checks to JSON.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::engine;
use celltrain_core::max_min;
use celltrain_core::memory::MemoryPolicyConfig;
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::policy::PolicyConfig;
use celltrain_scenario::Scenario;
use celltrain_scenario::document::{Document, SyntaxFault};
use celltrain_scenario::liveness::VCS;
use celltrain_scenario::stack::StackConfig;
use serde_json::{Value, json};

use crate::reading::Estimated;
use crate::vetting::Verdict;
use crate::{Unfinished, outside, vetting};

/// Reports the faults and warnings of a scenario and its memory estimate, without the scenario itself.
pub fn reading(read: &Estimated) -> Value {
    let Estimated { reading, memory, .. } = read;
    json!({
        "faults": reading.faults,
        "warnings": reading.warnings,
        "memory_bytes": memory.map(|memory| memory.likely),
        "does_not_fit": reading.does_not_fit,
    })
}

/// Returns the values of a parsed scenario and the line of every key, or the syntax errors of `source`.
pub fn document(document: Result<Document, Vec<SyntaxFault>>, source: &str) -> Value {
    match document {
        Ok(document) => json!({"root": document.root, "lines": document.lines(), "faults": []}),
        Err(faults) => {
            let faults: Vec<_> = faults.into_iter().map(|fault| fault.reported(source)).collect();
            json!({"root": null, "lines": {}, "faults": faults})
        }
    }
}

/// Describes the network of a scenario: the data needed to draw it, and each flow's stack and fair share.
///
/// # Errors
/// Returns an error if the token is cancelled.
pub fn network(scenario: &Scenario, network: &Network, token: &CancellationToken<'_>) -> Result<Value, Interrupted> {
    let nodes = network.nodes.iter().map(|node| {
        let kind = match node.kind {
            NodeKind::Host => "host",
            NodeKind::Switch => "switch",
            NodeKind::EdgeDevice => "edge_device",
        };
        json!({"name": node.name, "kind": kind})
    });
    let links = network.links.iter().map(|link| {
        json!({
            "name": link.name,
            "from": link.from.number(),
            "to": link.to.number(),
            "rate": link.rate.to_string(),
            "delay": link.delay.to_string(),
            "rate_mbps": link.rate.bits_per_second as f64 / 1e6,
            "delay_s": link.delay.seconds(),
        })
    });
    let flows = network.flows.iter().zip(max_min::goodputs_mbps(network, token)?).map(|(flow, max_min_mbps)| {
        let path: Vec<u32> = network.vcs[flow.data_vc].path.iter().map(|link| link.number()).collect();
        let stack = scenario.stack_of(&flow.name).map_or("", |stack| match stack {
            StackConfig::Python(own) => &own.class,
            _ => stack.name(),
        });
        json!({
            "name": flow.name,
            "links": path,
            "max_min_mbps": max_min_mbps,
            "stack": stack,
            "retransmits": flow.retransmits(),
        })
    });
    Ok(json!({
        "name": scenario.name,
        "nodes": nodes.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "flows": flows.collect::<Vec<_>>(),
        "bottleneck": network.bottleneck.number(),
    }))
}

/// Reports which code path of the fast engine each port uses.
///
/// # Errors
/// Returns an error if the token is cancelled.
pub fn plan(network: &Network, token: &CancellationToken<'_>) -> Result<Value, Interrupted> {
    let ports = engine::explain_plan(network, token)?.into_iter().map(|port| {
        json!({
            "port": network.links[port.link].name,
            "code": port.code,
            "details": port.details,
            "why": port.why,
            "feeds": port.feeds,
        })
    });
    Ok(json!({"ports": ports.collect::<Vec<_>>()}))
}

/// Checks a policy (the JSON of a port's `policy`) against the rules for all policies, with random cells derived from
/// this seed.
///
/// # Errors
/// Returns an error if the text is not the JSON of a policy, or if the policy raises an error.
pub fn conformance(policy: &str, seed: u64) -> Result<String, Unfinished> {
    let config: PolicyConfig = serde_json::from_str(policy).map_err(|error| error.to_string())?;
    let make = |capacity| {
        let knows = |vc: &&str| config.settings().per_vc.iter().all(|(_, values)| values.of(vc).is_some());
        let fits = config.check(Some(capacity)).is_empty()
            && VCS.iter().all(knows)
            && config.check_vcs(Some(capacity), &VCS).is_empty();
        fits.then(|| config.build(Some(capacity), &VCS))
    };
    verdicts(|| vetting::conformance(make, seed))
}

/// Checks a memory policy (the JSON of a pool's `policy`) against the rules for all memory policies, like
/// [`conformance`].
///
/// # Errors
/// Returns an error if the text is not the JSON of a memory policy, or if the policy raises an error.
pub fn memory_conformance(policy: &str, seed: u64) -> Result<String, Unfinished> {
    let config: MemoryPolicyConfig = serde_json::from_str(policy).map_err(|error| error.to_string())?;
    verdicts(|| vetting::memory::conformance(&config, seed))
}

/// Runs checks of a policy. Returns the verdicts of the checks as JSON.
fn verdicts(check: impl FnOnce() -> Vec<Verdict>) -> Result<String, Unfinished> {
    drop(outside::take());
    let verdicts = check();
    if let Some(problem) = outside::take() {
        return Err(Unfinished::Refused(problem));
    }
    let rows = verdicts
        .into_iter()
        .map(|verdict| json!({"check": verdict.check.name(), "holds": verdict.holds, "evidence": verdict.evidence}));
    Ok(rows.collect::<Value>().to_string())
}
