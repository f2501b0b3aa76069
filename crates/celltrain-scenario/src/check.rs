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
mod warnings;

use std::collections::BTreeMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::Network;
use celltrain_core::units::Duration;

use crate::build::ResolvedScenario;
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
    let resolved = layout.map(|layout| ResolvedScenario::of(scenario, layout, &mut root)).transpose()?;
    let largest_frames = match &resolved {
        Some(resolved) => {
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
    verdict.warnings = warnings::of(&resolved, malformed, token)?;
    token.check()?;
    let network = resolved.network(scenario.seed);
    token.check()?;
    warnings::of_network(&network, &mut verdict.warnings);
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
