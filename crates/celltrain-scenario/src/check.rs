//! Checks the values of a scenario against each other and against the machine's memory. A scenario that can be parsed
//! may still be impossible to run, or give results that cannot be trusted.
//!
//! Each module checks a scenario once. `settings` needs no layout. `tables`, `vcs` and `ports` check the
//! `ResolvedScenario`, from which the network is built afterwards. A check gets a scope, which contains the current
//! path and collects faults.

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
use crate::{Candidate, Fits};

/// The faults and warnings found by the checks, and the network that the checks built.
#[derive(Debug, Default)]
pub struct Verdict {
    /// All faults of the scenario.
    pub faults: Faults,
    /// Warnings to consider before trusting a result.
    pub warnings: Vec<Warning>,
    /// The network of the scenario; `None` if the scenario has faults other than the network's size.
    pub network: Option<Network>,
    /// True if one of the faults is that the network is too large.
    pub does_not_fit: bool,
}

/// Checks a scenario. `malformed` contains faults found by the schema check, which removed the malformed values.
///
/// # Errors
/// Returns [`Interrupted`] if the token is cancelled.
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
    let laid_out = scenario.topology.check(scenario.has_requests(), &mut root)?;
    let (topology, size) = (scenario.topology.name(), scenario.topology.config().size());
    let (key, value) = size.key;
    let is_too_large = |candidate: Candidate<'_>, root: &mut Scope<'_>| {
        let Err(why) = fits(candidate) else { return false };
        let problem = format!("makes a network that is too large: {why}");
        root.at("topology").at(topology).at(key).refuse_value(value, problem);
        true
    };
    verdict.does_not_fit =
        !root.at("topology").at(topology).at(key).is_refused() && is_too_large(Candidate::Planned(size), &mut root);
    // The layout of a topology can be created only if the topology has no faults and is not too large.
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
    verdict.does_not_fit = is_too_large(Candidate::Built(&network), &mut root);
    verdict.network = Some(network);
    Ok(verdict)
}
