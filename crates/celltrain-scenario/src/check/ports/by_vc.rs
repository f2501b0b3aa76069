//! Checks of the settings that a port's policy or scheduler has for each VC.

use std::collections::BTreeSet;

use celltrain_core::index::LinkIndex;
use celltrain_core::policy::PerVc;
use typed_index_collections::TiSlice;

use crate::build::ResolvedScenario;
use crate::hints::{closest, did_you_mean};
use crate::scenario::PortConfig;
use crate::scope::Scope;

/// Checks that per-VC settings name existing VCs.
pub(super) fn vcs(resolved: &ResolvedScenario<'_>, crossing: &TiSlice<LinkIndex, Vec<&str>>, root: &mut Scope<'_>) {
    let every_vc: BTreeSet<&str> = crossing.iter().flatten().copied().collect();
    let every_vc: Vec<String> = every_vc.into_iter().map(String::from).collect();
    for (name, config) in &resolved.scenario.port {
        for table in by_vc(config) {
            for &(key, setting) in &table.settings {
                for unknown in setting.unknown(&every_vc) {
                    let hint = did_you_mean(closest(unknown, every_vc.iter().map(String::as_str), root.token()));
                    let problem = format!(
                        "is not a VC; {hint}A VC has the name of its flow; the VC with the suffix -acks carries the \
                         acknowledgements"
                    );
                    let mut root = root.at("port");
                    let mut port = root.at(name);
                    let mut kind = port.at(table.kind);
                    table.in_table(&mut kind, |scope| scope.at(key).at(unknown).refuse(problem));
                }
            }
        }
    }
}

/// Per-VC settings of a port's policy or scheduler.
struct ByVc<'a> {
    /// `policy` or `scheduler`.
    kind: &'static str,
    name: &'static str,
    /// Name of the inner table that contains the settings; `None` if they are in the main table.
    inside: Option<&'static str>,
    settings: Vec<(&'a str, &'a PerVc)>,
}

impl ByVc<'_> {
    /// Calls `act` in the table that contains the settings. `kind` is the scope of the enclosing table.
    fn in_table<T>(&self, kind: &mut Scope<'_>, act: impl FnOnce(&mut Scope<'_>) -> T) -> T {
        let mut own = kind.at(self.name);
        match self.inside {
            Some(table) => act(&mut own.at(table)),
            None => act(&mut own),
        }
    }
}

fn by_vc(port: &PortConfig) -> [ByVc<'_>; 4] {
    let PortConfig { policy, scheduler, .. } = port;
    let constants = Some("constants");
    [
        ByVc { kind: "policy", name: policy.name(), inside: constants, settings: policy.constants_by_vc() },
        ByVc { kind: "policy", name: policy.name(), inside: None, settings: policy.settings().per_vc },
        ByVc {
            kind: "scheduler",
            name: scheduler.name(),
            inside: constants,
            settings: scheduler.config().constants_by_vc(),
        },
        ByVc { kind: "scheduler", name: scheduler.name(), inside: None, settings: scheduler.config().per_vc() },
    ]
}

pub(in crate::check) fn has_settings_by_vc(port: &PortConfig) -> bool {
    by_vc(port).iter().any(|table| !table.settings.is_empty())
}

/// Returns whether a port's settings depend on the number of VCs that cross it.
pub(in crate::check) fn counts_vcs(port: &PortConfig) -> bool {
    port.policy.counts_vcs() || port.scheduler.config().counts_vcs()
}

/// Checks that every VC that crosses a port has a value for each per-VC setting, and that the values are consistent.
pub(super) fn of_vcs(config: &PortConfig, capacity: Option<u32>, link: &str, vcs: &[&str], port: &mut Scope<'_>) {
    let mut are_there = true;
    for table in by_vc(config) {
        let mut of_kind = port.at(table.kind);
        // If the table was refused, do not report consequences.
        are_there &= !of_kind.at(table.name).is_malformed()
            && table.in_table(&mut of_kind, |scope| have_values(&table.settings, link, vcs, scope));
        if table.inside.is_some() || !std::mem::replace(&mut are_there, true) {
            continue;
        }
        let mut scope = of_kind.at(table.name);
        let told = match table.kind {
            "policy" => config.policy.check_vcs(capacity, vcs),
            _ => config.scheduler.config().check_vcs(vcs),
        };
        // Report a fault once, as a table may apply to several ports.
        for fault in told {
            scope.refuse_setting_once(fault);
        }
    }
}

/// Checks that every VC that crosses a port has a value for each of these settings. Returns whether all have.
fn have_values(settings: &[(&str, &PerVc)], link: &str, vcs: &[&str], scope: &mut Scope<'_>) -> bool {
    let mut all = true;
    for (key, setting) in settings {
        let without: Vec<&str> = vcs.iter().copied().filter(|vc| setting.of(vc).is_none()).collect();
        let Some(first) = without.first() else { continue };
        all = false;
        let others = match without.len() {
            1 => String::new(),
            n => format!(" and {} more", n.saturating_sub(1)),
        };
        let problem = format!(
            "has no value for \"{first}\"{others}, which cross {link}; give each VC a value, or add the key \
                     default"
        );
        scope.at(key).once(|scope| scope.refuse(problem));
    }
    all
}
