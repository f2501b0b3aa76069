//! Warnings about marks that no end system uses.

use celltrain_core::tcp::Ecn;

use crate::document::join;
use crate::fault::Warning;
use crate::requests::{Table, each_tcp};
use crate::scenario::Scenario;
use crate::stack::StackConfig;

/// Warns of ports that mark packets if no end system uses ECN, and of TCPs that use ECN if no port marks packets.
pub(super) fn without_effect(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    // ABR also uses marks, and edge devices copy the marks of its switches into packets.
    if scenario.vc.values().any(|vc| vc.abr.is_some()) {
        return;
    }
    let marking = scenario.port.iter().find(|(_, port)| port.marking.is_some());
    let ecn = each_tcp(scenario).into_iter().find(|(_, tcp)| tcp.options().ecn == Ecn::On);
    match (marking, ecn) {
        (Some((port, _)), None) if !each_stack(scenario).any(StackConfig::may_use_ecn) => {
            let key = join(&join("port", port), "marking");
            let reason = match &scenario.stack {
                None => format!("no TCP uses ECN; set tcp.{}.ecn = \"on\"", scenario.tcp.name()),
                Some(stack) => format!("stack.{} does not use ECN; leave {key} out", stack.name()),
            };
            let message = format!("{key} drops packets above k_min instead of marking them, because {reason}");
            warnings.push(Warning { key, message });
        }
        (None, Some((table, tcp))) => {
            let key = join(&join(&table, tcp.name()), "ecn");
            let advice = "no port marks packets; add a table [port.NAME.marking]";
            warnings.push(Warning { message: format!("{key} = \"on\" has no effect, because {advice}"), key });
        }
        _ => {}
    }
}

/// Returns the common stack, and the stacks of individual flows and of requests.
fn each_stack(scenario: &Scenario) -> impl Iterator<Item = &StackConfig> {
    let of_flows = scenario.flow.values().filter_map(|flow| flow.stack.as_ref());
    scenario.stack.iter().chain(of_flows).chain(Table::all(scenario).filter_map(|(_, _, table)| table.own_stack()))
}
