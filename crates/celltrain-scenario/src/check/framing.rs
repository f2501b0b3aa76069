//! Checks of packets that delimit themselves. Rules of AAL5 do not apply to such packets.

use celltrain_core::aal5::{Aal5Options, CellFormat, Framing};
use celltrain_core::network::Network;
use celltrain_core::policy::{Overflow, PolicyConfig};
use celltrain_core::switching::PacketAdmission;
use celltrain_core::units::Bytes;
use celltrain_core::wire::Wire;

use crate::build::ResolvedScenario;
use crate::fault::Warning;
use crate::scenario::{PortConfig, Scenario};
use crate::scope::Scope;

/// Checks that a scenario whose packets delimit themselves uses nothing that needs AAL5.
pub(super) fn check(scenario: &Scenario, root: &mut Scope<'_>) {
    let (cut_through, admission) = (scenario.switch.cut_through, scenario.switch.admission);
    if scenario.framing().framing == Framing::Aal5 {
        let problem = "is a setting for framing = \"packets\", but the framing is AAL5, whose cells are \
                       forwarded one by one; leave it out, or set framing = \"packets\"";
        if let Some(cut_through) = cut_through {
            root.at("switch").at("cut_through").refuse_value(cut_through, problem);
        }
        if let Some(admission) = admission {
            root.at("switch").at("admission").refuse_text(name_of(admission), problem);
        }
        return;
    }
    if let Some(admission) = admission.filter(|&admission| admission != PacketAdmission::Start)
        && cut_through == Some(true)
    {
        let problem = "needs ports that store packets whole; set cut_through = false, or admission = \"start\"";
        root.at("switch").at("admission").refuse_text(name_of(admission), problem);
    }
    let (given, standard) = (&scenario.aal5, Aal5Options::default());
    let no_effect = "has no effect with framing = \"packets\"; leave [aal5] out, or set framing = \"aal5\"";
    if given.encapsulation != standard.encapsulation {
        root.at("aal5").at("encapsulation").refuse(no_effect);
    }
    if given.max_sdu != standard.max_sdu {
        root.at("aal5").at("max_sdu").refuse_text(given.max_sdu, no_effect);
    }
    // Without this key, these services refuse the size of the cells.
    if scenario.framing.is_some()
        && let Some(service) = super::cells::service_of_atm(scenario)
    {
        refuse_key(scenario, root, &format!("is not possible with {service}, which needs AAL5; leave framing out"));
    }
    for (name, port) in &scenario.port {
        policy(port, admission, &mut root.at("port").at(name));
    }
}

fn name_of(admission: PacketAdmission) -> &'static str {
    match admission {
        PacketAdmission::Start => "start",
        PacketAdmission::Fits => "fits",
        PacketAdmission::End => "end",
    }
}

/// Checks that a port does not depend on last cells.
fn policy(port: &PortConfig, admission: Option<PacketAdmission>, scope: &mut Scope<'_>) {
    let name = port.policy.name();
    let reason = match port.policy {
        PolicyConfig::Ppd(_) => {
            "is a rule for AAL5: with framing = \"packets\", every port refuses the rest of a packet that loses a \
             cell; use tail_drop, or set framing = \"aal5\""
        }
        _ if port.policy.build(Some(1), &[]).overflow() == Overflow::PushOutFront => {
            "pushes out cells but keeps last cells, which only AAL5 needs; choose another policy, or set framing = \
             \"aal5\""
        }
        _ if admission == Some(PacketAdmission::Fits) && port.policy.build(Some(1), &[]).follower().is_some() => {
            "follows single cells in virtual queues, and cannot decide about a packet with its length; set \
             switch.admission = \"start\" or \"end\""
        }
        _ => return,
    };
    scope.at("policy").at(name).refuse(reason);
}

/// Checks that no VCs merge if packets delimit themselves.
pub(super) fn merging(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let ResolvedScenario { scenario, channels, .. } = resolved;
    if scenario.framing().framing == Framing::Packets
        && let Some(merge) = channels.merges.first()
    {
        let problem = format!("is not possible with merging VCs such as {}, which need AAL5", merge.name);
        refuse_key(scenario, root, &problem);
    }
}

/// Warns of cells that are longer than every packet, on links that carry whole cells: each packet then takes the time of a
/// cell.
pub(super) fn large_cells(network: &Network, warnings: &mut Vec<Warning>) {
    let aal5 = &network.aal5;
    let is_delimited = aal5.framing == Framing::Packets && aal5.cell != CellFormat::ATM;
    let carries_cells = network.links.iter().any(|link| link.wire == Wire::Cells);
    if !is_delimited || !carries_cells {
        return;
    }
    let of_flows = network.flows.iter().map(|flow| match flow.traffic.packets().filter(|_| !flow.outside) {
        Some(pattern) => aal5.packet_sdu(pattern.packet.bytes),
        None => aal5.segment_sdu(flow.tcp.options().mss.bytes),
    });
    let of_requests = network.requests.groups.iter().map(|group| aal5.segment_sdu(group.tcp.options().mss.bytes));
    let Some(longest) = of_flows.chain(of_requests).max().filter(|&longest| longest < aal5.cell.payload) else {
        return;
    };
    let [size, longest] = [aal5.cell.size, longest].map(|bytes| Bytes { bytes });
    let message = format!(
        "cell.size = \"{size}\" is longer than every packet (at most {longest}), and links carry whole cells, so each packet \
         takes the time of {size}; choose at most {longest}, or set wire = \"ethernet\" in [link.\"*\"]"
    );
    warnings.push(Warning { key: "cell.size".into(), message });
}

/// Refuses the key that makes packets delimit themselves.
fn refuse_key(scenario: &Scenario, root: &mut Scope<'_>, problem: &str) {
    if scenario.framing.is_some() {
        root.at("framing").refuse_text("packets", problem);
    } else {
        root.at("cell").at("size").refuse_text(scenario.cell.size, format!("{problem}; set framing = \"aal5\""));
    }
}
