//! Warnings to consider before trusting the results of a scenario without faults.

use std::collections::BTreeSet;

use celltrain_core::aal5::{CellFormat, Framing};
use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::host::{HostOptions, ProcessingTimes};
use celltrain_core::index::{FlowIndex, LinkIndex};
use celltrain_core::network::Network;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::requests::{Arrivals, RequestGroup};
use celltrain_core::tcp::{
    Congestion, DelayedAcks, DuplicateSack, Ecn, GapAcks, LossDetection, Reduction, RepeatedAcks, TcpConfig, TcpOptions,
};
use celltrain_core::traffic::on_off::Times;
use celltrain_core::units::{Bytes, Duration};
use celltrain_core::wire::Wire;
use celltrain_formula::names::{is_in_range, number_in_range, range};
use typed_index_collections::TiVec;

use super::{refusals, thresholds};
use crate::document::{join, join_setting};
use crate::fault::{KeyFault, Warning};
use crate::request_options::IncastOptions;
use crate::requests::{Table, each_tcp, kind_of, utilisation};
use crate::resolved::ResolvedScenario;
use crate::scenario::{FlowOptions, Scenario, vanilla};
use crate::stack::StackConfig;
use crate::topology::Route;

/// Returns the warnings about a resolved scenario. `malformed` contains faults found by the schema check.
pub(super) fn of(
    resolved: &ResolvedScenario<'_>,
    malformed: &[KeyFault],
    token: &CancellationToken<'_>,
) -> Result<Vec<Warning>, Interrupted> {
    let (scenario, mut warnings) = (resolved.scenario, Vec::new());
    rates(resolved, &mut warnings, token)?;
    timeouts(resolved, &mut warnings, token)?;
    loads(resolved, &mut warnings);
    marks(scenario, &mut warnings);
    companions(scenario, &mut warnings);
    beyond(resolved, &mut warnings, token)?;
    unused_tcp(scenario, &mut warnings);
    unused(scenario, &mut warnings);
    meant_otherwise(scenario, &mut warnings);
    // A policy cannot be built if one of its settings was removed.
    if malformed.is_empty() {
        refusals::check(resolved, &mut warnings, token)?;
        refusals::memories(resolved, &mut warnings);
    }
    warnings.extend(scenario.topology.config().warnings(&resolved.layout));
    Ok(warnings)
}

/// Adds the warnings about the network that was built.
pub(super) fn of_network(network: &Network, warnings: &mut Vec<Warning>) {
    clock(network, warnings);
    large_cells(network, warnings);
}

/// Warns of ranges of names that extend beyond the last connection, because such a range probably contains a wrong
/// number.
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
                let message = format!(
                    "the range {key} ends at {stem}{end}, but {name} is the last name; the rest of the range has \
                         no effect"
                );
                warnings.push(Warning { key, message });
            }
        }
    }
    Ok(())
}

/// Warns of TCP settings that no connection uses, because every connection has a real stack.
fn unused_tcp(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    if let Some(stack) = scenario.stack.as_ref().filter(|_| scenario.tcp != vanilla()) {
        let key = join("tcp", scenario.tcp.name());
        let message = format!("{key} has no effect: stack.{} replaces it", stack.name());
        warnings.push(Warning { key, message });
    }
}

/// Warns of constants and state variables that no formula uses. Their names are probably misspelt.
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

/// Warns of thresholds that were probably meant as a percentage or as one cell.
fn meant_otherwise(scenario: &Scenario, warnings: &mut Vec<Warning>) {
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

/// Warns of packet sources faster than their host's link, as the host's queue would grow without limit.
fn rates(
    resolved: &ResolvedScenario<'_>,
    warnings: &mut Vec<Warning>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, layout, .. } = resolved;
    for (name, options) in &scenario.flow {
        let Some(traffic) = &options.traffic else { continue };
        let Some(pattern) = traffic.packets() else { continue };
        let meant = |flow: &&Route| {
            flow.name == *name || (is_in_range(name, &flow.name) && !scenario.flow.contains_key(&flow.name))
        };
        token.tick(layout.flows.len() / 8)?;
        let slow = layout.flows.iter().filter(meant).map(|flow| &layout.graph.links[flow.data[0]]);
        if let Some(link) = slow.filter(|link| link.rate < pattern.rate).min_by_key(|link| link.rate) {
            warnings.push(Warning {
                key: ["traffic", traffic.name(), "rate"]
                    .into_iter()
                    .fold(join("flow", name), |path, key| join(&path, key)),
                message: format!(
                    "{} is above the {} of {}: the queue of the source grows while the source sends, and data counted \
                     as sent may never leave",
                    pattern.rate, link.rate, link.name
                ),
            });
        }
    }
    Ok(())
}

/// Warns of retransmission timeouts that are shorter than the transmission of a segment by its host. The host's queue
/// then grows until an acknowledgement arrives.
fn timeouts(
    resolved: &ResolvedScenario<'_>,
    warnings: &mut Vec<Warning>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, layout, tables, .. } = resolved;
    let mut keys = BTreeSet::new();
    for (number, route) in layout.flows.iter().enumerate() {
        token.tick(1)?;
        let own = tables.flows[FlowIndex::from(number)];
        if own.and_then(|own| own.traffic.as_ref()?.packets()).is_some() || scenario.stack_with(own).is_some() {
            continue;
        }
        let own_tcp = own.and_then(|own| own.tcp.as_ref());
        let tcp = own_tcp.unwrap_or(&scenario.tcp);
        let (timeout, setting) = tcp.options().repeated_timeout();
        let link = &layout.graph.links[route.data[0]];
        let cells = scenario.framing().segment_cells(tcp.options().mss.bytes);
        let bits = scenario.cell.format().bits().saturating_mul(u64::from(cells)) as f64;
        let sending = bits / link.rate.bits_per_second as f64;
        if timeout.seconds() >= sending {
            continue;
        }
        let is_own = |(_, options): &(&String, &FlowOptions)| own.is_some_and(|own| std::ptr::eq(own, *options));
        let table = match scenario.flow.iter().find(is_own).filter(|_| own_tcp.is_some()) {
            Some((name, _)) => join(&join("flow", name), "tcp"),
            None => "tcp".to_string(),
        };
        let key = join_setting(&join(&table, tcp.name()), setting);
        if keys.insert(key.clone()) {
            warnings.push(too_short(key, (timeout, sending), &link.name, &route.name));
        }
    }
    for group in resolved.requests.groups.iter().filter(|group| !group.outside) {
        token.tick(group.pairs().count())?;
        let options = group.tcp.options();
        let (timeout, setting) = options.repeated_timeout();
        let vcs = group.pairs().flat_map(|pair| &resolved.requests.pairs[pair].vcs);
        let first = vcs.map(|&vc| &layout.graph.links[resolved.channels.vcs[vc].path[0]]);
        let Some(link) = first.min_by_key(|link| link.rate) else { continue };
        let cells = scenario.framing().segment_cells(options.mss.bytes);
        let bits = scenario.cell.format().bits().saturating_mul(u64::from(cells)) as f64;
        let sending = bits / link.rate.bits_per_second as f64;
        let own = Table::all(scenario).find(|(_, name, table)| *name == group.name && table.tcp().is_some());
        let table = own.map_or("tcp".to_string(), |(kind, name, _)| join(&join(kind, name), "tcp"));
        let key = join_setting(&join(&table, group.tcp.name()), setting);
        if timeout.seconds() < sending && keys.insert(key.clone()) {
            warnings.push(too_short(key, (timeout, sending), &link.name, &group.name));
        }
    }
    Ok(())
}

/// Returns the warning about a timeout that is shorter than the transmission time of a segment on a link, in seconds.
fn too_short(key: String, (timeout, sending): (Duration, f64), link: &str, sender: &str) -> Warning {
    let message = format!(
        "retransmission timeouts of {timeout} are shorter than the {:.3}us that a segment takes on {link}: {sender} sends \
         segments again before they have left, and its host's queue grows until an acknowledgement arrives. Raise \
         minimum_rto and timer.maximum_rto.",
        sending * 1e6
    );
    Warning { key, message }
}

/// Warns of requests that need more than the rate of a link, so that the number of open connections grows throughout
/// the run.
fn loads(resolved: &ResolvedScenario<'_>, warnings: &mut Vec<Warning>) {
    let ResolvedScenario { scenario, layout, channels, requests, .. } = resolved;
    let framing = scenario.framing();
    let by_group: Vec<TiVec<LinkIndex, f64>> =
        (requests.groups.iter()).map(|group| utilisation(group, (layout, channels), (requests, &framing))).collect();
    let sum = |link: LinkIndex| by_group.iter().map(|taken| taken[link]).sum::<f64>();
    let busiest = layout.graph.links.keys().max_by(|&a, &b| sum(a).total_cmp(&sum(b)).then(b.cmp(&a)));
    let Some(busiest) = busiest.filter(|&link| sum(link) > 1.0) else { return };
    // The advice concerns the group with the largest load on the link.
    let most = by_group.iter().zip(&requests.groups).max_by(|(a, _), (b, _)| a[busiest].total_cmp(&b[busiest]));
    let Some((own, group)) = most else { return };
    let stretch = |link: LinkIndex| (1.0 - (sum(link) - own[link])) / own[link];
    let least = layout.graph.links.keys().filter(|&link| own[link] > 0.0).map(stretch).fold(f64::INFINITY, f64::min);
    let (key, value, advice) = remedy(group, least, scenario);
    let key = join(&join(kind_of(group), &group.name), key);
    let message = format!(
        "{key} = {value}: requests are expected to need {:.1} % of the rate of {}, acknowledgements included, so that open \
         connections accumulate as long as the run lasts. {advice}",
        sum(busiest) * 100.0,
        layout.graph.links[busiest].name
    );
    warnings.push(Warning { key, message });
}

/// Returns the setting of a group that determines its load, the setting's value, and advice. `factor` is the largest
/// factor by which the number of requests may be multiplied.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is positive and was checked to be below the limit"
)]
fn remedy(group: &RequestGroup, factor: f64, scenario: &Scenario) -> (&'static str, String, String) {
    let others = "The other requests alone exceed the rate of the link.".to_string();
    match &group.arrivals {
        Arrivals::Poisson { .. } => {
            let load = scenario.requests.get(&group.name).map_or(0.0, |own| own.load);
            // Round the advised load down to three decimals, so that it does not exceed the rate of the link.
            let stable = (load * factor * 1e3).floor() / 1e3;
            let advice = if factor > 0.0 { format!("The largest stable load is {stable}.") } else { others };
            ("load", load.to_string(), advice)
        }
        Arrivals::Incast { interval, .. } => {
            let picoseconds = interval.picoseconds as f64 / factor;
            let microseconds = (picoseconds / 1e6).ceil();
            let shortest = Duration::from_microseconds(microseconds as u64);
            let advice = if factor > 0.0 { format!("The shortest stable interval is {shortest}.") } else { others };
            ("interval", format!("\"{interval}\""), advice)
        }
    }
}

/// Warns of ports that mark packets although no end system uses ECN, and of TCPs that use ECN although no port marks
/// packets.
fn marks(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    // Allocators of ABR also set marks in cells, and edge devices copy these marks into packets.
    if scenario.vc.values().any(|vc| vc.abr.is_some()) {
        return;
    }
    let marking = scenario.port.iter().find(|(_, port)| port.marking.is_some());
    let ecn = each_tcp(scenario).into_iter().find(|(_, tcp)| tcp.options().ecn == Ecn::On);
    let may_mark = |policy: &PolicyConfig| {
        policy.build(Some(1), &[]).head_policy().is_some() && !matches!(policy, PolicyConfig::Formula(_))
    };
    let policy_may_mark = || scenario.port.values().any(|port| may_mark(&port.policy));
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
        (None, Some((table, tcp))) if !policy_may_mark() => {
            let key = join(&join(&table, tcp.name()), "ecn");
            let advice = "no port marks packets; add a table [port.NAME.marking]";
            warnings.push(Warning { message: format!("{key} = \"on\" has no effect, because {advice}"), key });
        }
        _ => {}
    }
}

/// Returns the stack of all flows, and the stacks of individual flows and of requests.
fn each_stack(scenario: &Scenario) -> impl Iterator<Item = &StackConfig> {
    let of_flows = scenario.flow.values().filter_map(|flow| flow.stack.as_ref());
    scenario.stack.iter().chain(of_flows).chain(Table::all(scenario).filter_map(|(_, _, table)| table.own_stack()))
}

/// Warns of settings that have no effect because another setting is missing. A setting equal to its default is not
/// reported.
fn companions(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let mut warn = |table: &str, key: &str, reason: &str| {
        let key = join_setting(table, key);
        warnings.push(Warning { message: format!("{key} {reason}"), key });
    };
    for (table, tcp) in each_tcp(scenario) {
        for (key, reason) in of_tcp(tcp.options()).into_iter().chain(of_variant(tcp)) {
            warn(&join(&table, tcp.name()), key, reason);
        }
    }
    for (name, port) in &scenario.port {
        if port.marking.as_ref().is_some_and(|marking| marking.k_max.is_none() && marking.p_max < 1.0) {
            let table = join(&join("port", name), "marking");
            warn(
                &table,
                "p_max",
                "has no effect without k_max, because every packet above k_min is marked; write k_max too",
            );
        }
    }
    let HostOptions { processing_times, .. } = scenario.host;
    if processing_times != ProcessingTimes::default() && !scenario.host.process() {
        warn("host", "processing_times", "has no effect without a processing time; write host.processing");
    }
    if !scenario.has_requests() {
        let measure = &scenario.measure;
        for (key, size) in [("short_requests", measure.short_requests), ("long_requests", measure.long_requests)] {
            if size.is_some() {
                warn("measure", key, "has no effect without requests; write a table [requests.NAME] or [incast.NAME]");
            }
        }
    }
    let has_memory = scenario.switch.own.values().any(|switch| switch.memory.is_some() || !switch.memories.is_empty());
    if !has_memory {
        for (name, _) in scenario.vc.iter().filter(|(_, vc)| vc.priority > 0) {
            warn(
                &join("vc", name),
                "priority",
                "has no effect without a memory that ports share; write [switch.NAME.memory]",
            );
        }
    }
    for (name, flow) in &scenario.flow {
        if let Some(start) = flow.start.filter(|&start| start >= scenario.duration) {
            let end = scenario.duration;
            let message =
                format!("flow.{name}.start = \"{start}\": the flow sends nothing, because the run ends at {end}");
            warnings.push(Warning { key: join(&join("flow", name), "start"), message });
        }
    }
    queries(scenario, warnings);
}

/// Returns the TCP settings that have no effect because of another setting, each with the reason.
fn of_tcp(tcp: &TcpOptions) -> Vec<(&'static str, &'static str)> {
    let (receiver, default) = (tcp.receiver_rules(), TcpOptions::default());
    let acks_at_once = "has no effect with delayed_acks = \"off\"";
    let mut found = Vec::new();
    let mut add = |has_no_effect: bool, key, reason| {
        if has_no_effect {
            found.push((key, reason));
        }
    };
    #[expect(clippy::float_cmp, reason = "the setting is compared with its exact default")]
    let has_gain = tcp.window_rules().dctcp_gain != default.window_rules().dctcp_gain;
    add(
        has_gain && tcp.congestion != Congestion::Dctcp,
        "windows.dctcp_gain",
        "has no effect without congestion = \"dctcp\"",
    );
    let has_time = receiver.delayed_ack_time != default.receiver_rules().delayed_ack_time;
    add(
        has_time && tcp.delayed_acks != DelayedAcks::Timer,
        "receiver.delayed_ack_time",
        "has no effect without delayed_acks = \"timer\"",
    );
    let is_off = tcp.delayed_acks == DelayedAcks::Off;
    let is_set = tcp.receiver.gap_acks == Some(GapAcks::Delayed);
    add(is_off && is_set, "receiver.gap_acks", acks_at_once);
    let is_set = tcp.receiver.repeated_acks == Some(RepeatedAcks::Delayed);
    add(is_off && is_set, "receiver.repeated_acks", acks_at_once);
    found
}

/// Returns the TCP settings that have no effect with this variant, each with the value and the reason.
fn of_variant(tcp: &TcpConfig) -> Vec<(&'static str, &'static str)> {
    let options = tcp.options();
    let mut found = Vec::new();
    if !matches!(tcp, TcpConfig::Sack(_)) {
        match options.recovery.loss_detection {
            Some(LossDetection::Rack) => found.push((
                "recovery.loss_detection",
                "= \"rack\" has no effect: only sack \
                detects losses by time; choose the table [tcp.sack], or leave the key out",
            )),
            Some(LossDetection::RackTlp) => found.push((
                "recovery.loss_detection",
                "= \"rack_tlp\" has no effect: only \
                sack detects losses by time; choose the table [tcp.sack], or leave the key out",
            )),
            Some(LossDetection::DuplicateAcks) | None => {}
        }
        if options.recovery.reduction == Some(Reduction::Prr) {
            found.push((
                "recovery.reduction",
                "= \"prr\" has no effect: only sack reduces cwnd in proportion to what is \
                delivered; choose the table [tcp.sack], or leave the key out",
            ));
        }
    }
    if options.receiver.duplicate_sack == Some(DuplicateSack::On) && !tcp.selective() {
        found.push((
            "receiver.duplicate_sack",
            "= \"on\" has no effect: only sack and sack_pipe exchange selective \
            acknowledgements; choose the table [tcp.sack], or leave the key out",
        ));
    }
    found
}

/// Warns of incasts whose first query arrives after the end of the run.
fn queries(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let end = scenario.duration;
    for (kind, name, table) in Table::all(scenario) {
        let Table::Incast(IncastOptions { interval, times, .. }) = table else { continue };
        if *interval < end {
            continue;
        }
        let key = join(&join(kind, name), "interval");
        let first = if *times == Times::Fixed { "the first query arrives" } else { "most first queries arrive" };
        let message =
            format!("{key} = \"{interval}\": {first} after the end of the run at {end}; write a shorter interval");
        warnings.push(Warning { key, message });
    }
}

/// Warns of cells that are longer than every packet, on links that carry whole cells. Each packet then takes the
/// transmission time of a cell.
fn large_cells(network: &Network, warnings: &mut Vec<Warning>) {
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
