//! Warnings about marks without effect.

use celltrain_core::tcp::Ecn;

use crate::document::join;
use crate::fault::Warning;
use crate::requests::each_tcp;
use crate::scenario::Scenario;

/// Warns of ports that mark packets if no TCP uses ECN, and of TCPs that use ECN if no port marks packets.
pub(super) fn without_effect(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    // ABR also uses marks, and edge devices copy the marks of its switches into packets.
    if scenario.vc.values().any(|vc| vc.abr.is_some()) {
        return;
    }
    let marking = scenario.port.iter().find(|(_, port)| port.marking.is_some());
    let ecn = each_tcp(scenario).into_iter().find(|(_, tcp)| tcp.options().ecn == Ecn::On);
    match (marking, ecn) {
        (Some((port, _)), None) => {
            let key = join(&join("port", port), "marking");
            let advice = match &scenario.stack {
                None => format!("set tcp.{}.ecn = \"on\"", scenario.tcp.name()),
                Some(stack) => format!("stack.{} does not react to marks", stack.name()),
            };
            let message = format!("{key} has no effect, because no TCP uses ECN; {advice}");
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
