//! Checks values against each other and against the machine's memory. A scenario that can be parsed may still be
//! impossible to run, or give results that cannot be trusted.
//!
//! There is one module for each area. A check gets a scope, which contains the current path and collects faults. Checks
//! that require a layout use [`ResolvedScenario`], from which the network is built afterwards.

mod cells;
mod companions;
mod edges;
mod framing;
mod marks;
mod memories;
mod ports;
mod refusals;
mod requests;
mod thresholds;
mod traffic;
mod vcs;

use std::collections::BTreeMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::Network;
use celltrain_core::units::Duration;
use celltrain_formula::names::{number_in_range, range};

use crate::build::ResolvedScenario;
use crate::document::join;
use crate::fault::{Faults, KeyFault, Warning};
use crate::limits::MAX_DURATION;
use crate::losses;
use crate::scenario::{Scenario, vanilla};
use crate::scope::Scope;
use crate::topology::Topology;
use crate::{Candidate, Fits};

/// The findings of the checks.
#[derive(Debug, Default)]
pub struct Verdict {
    /// All faults.
    pub faults: Faults,
    /// Warnings to consider before trusting a result.
    pub warnings: Vec<Warning>,
    /// The network to run, unless the scenario has other faults.
    pub network: Option<Network>,
    /// True if one of the faults is that the network is too large.
    pub does_not_fit: bool,
}

/// Checks a scenario. `malformed` contains faults found by the schema check, which removed the malformed values.
///
/// # Errors
/// Returns [`Interrupted`] if cancelled.
pub fn check(
    scenario: &Scenario,
    malformed: &[KeyFault],
    fits: &Fits<'_>,
    token: &CancellationToken<'_>,
) -> Result<Verdict, Interrupted> {
    let mut verdict = Verdict::default();
    let mut root = Scope::root(&mut verdict.faults, malformed, token);
    if scenario.duration == Duration::default() || scenario.duration > MAX_DURATION {
        let problem = format!("must be a positive time of at most {MAX_DURATION}");
        root.at("duration").refuse_text(scenario.duration, problem);
    }
    cells::check(scenario, &mut root);
    framing::check(scenario, &mut root);
    let frames_are_sound = traffic::check(scenario, &mut root);
    requests::tcp(scenario, &mut root);
    requests::classes(scenario, &mut root);
    let before = root.found().count();
    let laid_out = scenario.topology.check(&mut root)?;
    let size = scenario.topology.config().size();
    if size.flows == 0 && !scenario.has_requests() {
        scenario.topology.config().without_flows(&mut root.at("topology").at(scenario.topology.name()));
    }
    verdict.does_not_fit = !root.at("topology").at(scenario.topology.name()).at(size.key.0).is_refused()
        && refused_as_too_large(&scenario.topology, fits(Candidate::Planned(size)), &mut root);
    // The layout can be created only if the topology has no faults and is not too large.
    let layout = match laid_out.filter(|_| root.found().count() == before) {
        None if root.found().count() == before => Some(scenario.topology.config().lay_out(token)?),
        found => found,
    };
    let mut resolved = layout.map(|layout| ResolvedScenario::of(scenario, layout, token)).transpose()?;
    let largest_frames = match &mut resolved {
        Some(resolved) => {
            root.report(std::mem::take(&mut resolved.request_faults));
            traffic::tables(resolved, &mut root, token)?;
            scenario.topology.check_layout(&resolved.layout, &mut root);
            token.check()?;
            edges::check(resolved, &mut root, token)?;
            traffic::files(resolved, &mut root);
            traffic::common_stack(resolved, &mut root);
            traffic::until(resolved, &mut root);
            vcs::check(resolved, &mut root, token)?;
            framing::merging(resolved, &mut root);
            memories::check(resolved, &mut root);
            losses::resolve(scenario, &resolved.layout, &resolved.channels, &mut root);
            ports::check(resolved, &mut root, token)?
        }
        None => BTreeMap::new(),
    };
    for (name, config) in &scenario.port {
        let largest_frame = largest_frames.get(name.as_str()).copied().filter(|_| frames_are_sound);
        let shared = resolved.as_ref().and_then(|resolved| memories::shared_capacity(resolved, name));
        ports::settings(config, shared, largest_frame.unwrap_or(1), &mut root.at("port").at(name));
    }
    let Some(resolved) = resolved.filter(|_| root.found().is_empty()) else { return Ok(verdict) };
    traffic::rates(&resolved, &mut verdict.warnings, token)?;
    traffic::timeouts(&resolved, &mut verdict.warnings, token)?;
    requests::loads(&resolved, &mut verdict.warnings);
    marks::without_effect(scenario, &mut verdict.warnings);
    companions::without_effect(scenario, &mut verdict.warnings);
    beyond(&resolved, &mut verdict.warnings, token)?;
    unused_tcp(scenario, &mut verdict.warnings);
    unused(scenario, &mut verdict.warnings);
    thresholds(scenario, &mut verdict.warnings);
    // A policy cannot be built if one of its settings was removed.
    if malformed.is_empty() {
        refusals::check(&resolved, &mut verdict.warnings, token)?;
        refusals::memories(&resolved, &mut verdict.warnings);
    }
    verdict.warnings.extend(scenario.topology.config().warnings(&resolved.layout));
    token.check()?;
    let network = resolved.network(scenario.seed);
    token.check()?;
    clock(&network, &mut verdict.warnings);
    framing::large_cells(&network, &mut verdict.warnings);
    verdict.does_not_fit = refused_as_too_large(&scenario.topology, fits(Candidate::Built(&network)), &mut root);
    verdict.network = Some(network);
    Ok(verdict)
}

/// Reports a fault if the network is too large. Returns whether it is.
fn refused_as_too_large(topology: &Topology, fits: Result<(), String>, root: &mut Scope<'_>) -> bool {
    let Err(why) = fits else { return false };
    let (key, value) = topology.config().size().key;
    let problem = format!("makes a network that is too large: {why}");
    root.at("topology").at(topology.name()).at(key).refuse_value(value, problem);
    true
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
fn thresholds(scenario: &Scenario, warnings: &mut Vec<Warning>) {
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

/// Returns whether a condition holds for at least one of these names.
fn any<'a>(
    names: impl IntoIterator<Item = &'a str>,
    holds: impl Fn(&str) -> bool,
    token: &CancellationToken<'_>,
) -> Result<bool, Interrupted> {
    for name in token.each(names) {
        if holds(name?) {
            return Ok(true);
        }
    }
    Ok(false)
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
