//! Checks values against each other and against the machine's memory. A scenario that can be parsed may still be
//! impossible to run, or give results that cannot be trusted.
//!
//! A scenario passes each module once: `settings` needs no layout; `tables`, `vcs` and `ports` judge the
//! `ResolvedScenario`, from which the network is built afterwards. A check gets a scope, which contains the current path
//! and collects faults.

mod ports;
mod refusals;
mod settings;
mod tables;
mod thresholds;
mod vcs;
mod warnings;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::Network;

use crate::fault::{Faults, KeyFault, Warning};
use crate::resolved::ResolvedScenario;
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
    let frames_are_sound = settings::check(scenario, &mut root);
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
    if let Some(resolved) = &resolved {
        tables::check(resolved, &mut root)?;
        vcs::check(resolved, &mut root)?;
    }
    ports::check(scenario, resolved.as_ref(), frames_are_sound, &mut root)?;
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
