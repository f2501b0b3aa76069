//! Checks values against each other and the machine: a scenario may parse but not be runnable, or not trustworthy.
//!
//! There is one module for each area. A check gets a scope, which knows the path and collects the faults. Properties
//! that only the layout shows are checked on [`ResolvedScenario`], from which the network is then built.

mod cells;
mod edges;
mod memories;
mod ports;
mod refusals;
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
use crate::scenario::Scenario;
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
    /// True if one of the faults is the size of the network.
    pub does_not_fit: bool,
}

/// Checks a scenario. `malformed` holds the faults of form found before; their values were removed from the scenario.
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
        let problem = format!("is not a positive time up to {MAX_DURATION}");
        root.at("duration").refuse_text(scenario.duration, problem);
    }
    cells::check(scenario, &mut root);
    let frames_are_sound = traffic::check(scenario, &mut root);
    let before = root.found().count();
    let laid_out = scenario.topology.check(&mut root)?;
    let size = scenario.topology.config().size();
    verdict.does_not_fit = !root.at("topology").at(scenario.topology.name()).at(size.key.0).is_refused()
        && refused_as_too_large(&scenario.topology, fits(Candidate::Planned(size)), &mut root);
    // Only a topology without faults that is not too large can be laid out.
    let layout = match laid_out.filter(|_| root.found().count() == before) {
        None if root.found().count() == before => Some(scenario.topology.config().lay_out(token)?),
        found => found,
    };
    let resolved = layout.map(|layout| ResolvedScenario::of(scenario, layout, token)).transpose()?;
    let largest_frames = match &resolved {
        Some(resolved) => {
            traffic::tables(resolved, &mut root, token)?;
            scenario.topology.check_layout(&resolved.layout, &mut root);
            token.check()?;
            edges::check(resolved, &mut root, token)?;
            traffic::files(resolved, &mut root);
            vcs::check(resolved, &mut root, token)?;
            memories::check(resolved, &mut root);
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
    beyond(&resolved, &mut verdict.warnings, token)?;
    unused(scenario, &mut verdict.warnings);
    thresholds(scenario, &mut verdict.warnings);
    // A policy from which a setting was removed cannot be built.
    if malformed.is_empty() {
        refusals::check(&resolved, &mut verdict.warnings, token)?;
    }
    verdict.warnings.extend(scenario.topology.config().warnings(&resolved.layout));
    token.check()?;
    let network = resolved.network(scenario.seed);
    token.check()?;
    clock(&network, &mut verdict.warnings);
    verdict.does_not_fit = refused_as_too_large(&scenario.topology, fits(Candidate::Built(&network)), &mut root);
    verdict.network = Some(network);
    Ok(verdict)
}

/// Refuses a network that is too large. Returns whether it did.
fn refused_as_too_large(topology: &Topology, fits: Result<(), String>, root: &mut Scope<'_>) -> bool {
    let Err(why) = fits else { return false };
    let (key, value) = topology.config().size().key;
    let problem = format!("makes a network that does not fit: {why}");
    root.at("topology").at(topology.name()).at(key).refuse_value(value, problem);
    true
}

/// Warns of ranges that extend beyond the last connection: a number may be wrong.
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

/// Warns of constants and state that no formula uses: a name may be wrong.
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

/// Warns of thresholds that probably mean something else: a percentage, or one cell.
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

/// Returns whether a condition holds for any of these names.
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
                "its rates and delays share no unit of time down to a picosecond: times are rounded, and cells that \
                      should tie may not. Use rates with a common divisor to be exact."
                    .into(),
        });
    }
}
