//! Named features of scenarios, with which a test checks that random scenarios have every feature.

use std::collections::BTreeSet;

use celltrain_core::aal5::Framing;
use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::edge_device::DiscardConfig;
use celltrain_core::host::ProcessingTimes;
use celltrain_core::index::LinkIndex;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::{Class, SchedulerConfig};
use celltrain_core::tcp::{Congestion, TcpConfig};
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::Duration;
use celltrain_scenario::{Scenario, build};

/// Features of scenarios that no list of the schema contains.
const OTHERS: &[&str] = &[
    "a pace", "a loss at a window", "a flow with its own TCP", "a flow with its own start time", "a contract",
    "a contract without tagging", "a tagged VC", "a merge", "VCs with contracts that merge into one",
    "a merge with a scheduler", "packets with a scheduler", "a controlled rate", "an ABR VC behind an edge device",
    "out-of-rate RM cells", "an edge device", "hosts with processing time", "hosts with random processing times",
    "clocks with an offset or a skew", "starts at random", "packet framing",
];

/// Returns the names of all features.
pub(crate) fn every_one() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = OTHERS.iter().map(ToString::to_string).collect();
    let kinds = [
        ("policy", PolicyConfig::NAMES),
        ("scheduler", SchedulerConfig::NAMES),
        ("TCP", TcpConfig::NAMES),
        ("congestion control", Congestion::NAMES),
        ("traffic", TrafficConfig::NAMES),
        ("allocator of an ABR VC", AllocatorConfig::NAMES),
        ("discard", DiscardConfig::NAMES),
    ];
    for (kind, names) in kinds {
        all.extend(names.iter().map(|name| format!("{kind} {name}")));
    }
    all.extend(Class::ALL.map(|class| format!("class {}", class.name())));
    all
}

/// Returns the features of a scenario. Ports count only if cells cross them, and tables of flows count only if the
/// flows exist.
pub(crate) fn all_of(scenario: &Scenario) -> BTreeSet<String> {
    let network = build::network(scenario, scenario.seed);
    let mut all = BTreeSet::new();
    let is_crossed = |link: LinkIndex| network.vcs.iter().any(|vc| vc.path[1..].contains(&link));
    let mut is_scheduled = false;
    for link in network.links.iter_enumerated().filter(|&(link, _)| is_crossed(link)).map(|(_, link)| link) {
        all.insert(format!("policy {}", link.policy.name()));
        all.insert(format!("scheduler {}", link.scheduler.name()));
        is_scheduled |= link.scheduler != SchedulerConfig::default();
    }
    let mut others = Vec::new();
    for flow in &network.flows {
        all.insert(format!("traffic {}", flow.traffic.name()));
        let options = flow.tcp.options();
        if flow.traffic.packets().is_none() {
            all.insert(format!("TCP {}", flow.tcp.name()));
            all.insert(format!("congestion control {}", options.congestion.name()));
            others.push((options.pacing_rate.is_some(), "a pace"));
            others.push((options.windows.lose_at_window.is_some(), "a loss at a window"));
        }
        others.push((is_scheduled && flow.traffic.packets().is_some(), "packets with a scheduler"));
    }
    let host = &network.host;
    let is_random = host.processing_times == ProcessingTimes::Uniform;
    others.push((host.process() && !is_random, "hosts with processing time"));
    others.push((host.process() && is_random, "hosts with random processing times"));
    others.push((host.clock_offset > Duration::default() && host.clock_skew > 0.0, "clocks with an offset or a skew"));
    others.push((host.start_spread > Duration::default(), "starts at random"));
    others.push((network.aal5.framing == Framing::Packets, "packet framing"));
    for flow in scenario.flow.values() {
        others.push((flow.tcp.is_some(), "a flow with its own TCP"));
        others.push((flow.start.is_some(), "a flow with its own start time"));
    }
    for vc in &network.vcs {
        all.insert(format!("class {}", vc.class.name()));
        let behind_an_edge = network.atm_part(vc).start > 0;
        others.push((vc.abr.is_some(), "a controlled rate"));
        others.push((vc.abr.as_ref().is_some_and(|abr| abr.out_of_rate), "out-of-rate RM cells"));
        others.push((behind_an_edge, "an edge device"));
        others.push((vc.abr.is_some() && behind_an_edge, "an ABR VC behind an edge device"));
        for link in vc.path.iter().map(|&link| &network.links[link]) {
            if let Some(edge) = link.edge.as_ref().filter(|_| behind_an_edge) {
                all.insert(format!("discard {}", edge.discard.name()));
            }
            if let Some(allocator) = link.allocator.as_ref().filter(|_| vc.abr.is_some()) {
                all.insert(format!("allocator of an ABR VC {}", allocator.name()));
            }
        }
        others.push((vc.tagged, "a tagged VC"));
        others.push((vc.merge.is_some(), "a merge"));
        others.push((vc.merge.is_some() && is_scheduled, "a merge with a scheduler"));
        if let Some(contract) = &vc.contract {
            others.push((true, "a contract"));
            others.push((!contract.tagging, "a contract without tagging"));
            others.push((vc.merge.is_some(), "VCs with contracts that merge into one"));
        }
    }
    all.extend(others.into_iter().filter(|(has, _)| *has).map(|(_, what)| what.to_string()));
    all
}
