//! Checks of the traffic: tables of flows, TCP, sources, files, and frame sizes that AAL5 can carry.

use std::collections::BTreeSet;

use celltrain_core::aal5::Framing;
use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::FlowIndex;
use celltrain_core::tcp::TcpConfig;
use celltrain_core::traffic::{Pattern, TrafficConfig};
use celltrain_core::units::{Bytes, Duration};
use celltrain_formula::names::is_in_range;

use crate::build::ResolvedScenario;
use crate::document::{join, join_setting};
use crate::fault::Warning;
use crate::hints::{did_you_mean, hint};
use crate::limits::{MAX_DURATION, MAX_FILE, MAX_RATE, MIN_RATE};
use crate::requests::Table;
use crate::scenario::{FlowOptions, Scenario};
use crate::scope::Scope;
use crate::stack::StackConfig;
use crate::topology::Route;

/// The AAL5 length field has 16 bits (ITU-T I.363.5).
const MAX_SDU: u64 = 65_535;
/// 65535 bytes minus 28 bytes of headers (RFC 768, RFC 791).
const MAX_PACKET: u64 = 65_507;
/// A shorter time probably has a wrong unit.
const MIN_BURST: Duration = Duration::from_microseconds(1);

/// Checks the settings that need no layout. Returns whether the frame sizes of all flows are known.
pub(super) fn check(scenario: &Scenario, root: &mut Scope<'_>) -> bool {
    each_tcp(scenario, root, |tcp, scope| {
        for fault in tcp.options().check() {
            scope.refuse_setting(fault);
        }
        let mut table = scope.at("formula");
        // If one formula was removed, other formulas would contain unknown names.
        let faults = if table.is_malformed() { Vec::new() } else { tcp.options().check_formula() };
        for fault in faults {
            table.refuse_setting(fault);
        }
    });
    each_stack(scenario, root, |stack, scope| {
        // If this check finds the fault, the message can name a line.
        if cfg!(target_family = "wasm") && matches!(stack, StackConfig::Quic(_)) {
            scope.refuse("is not available in the lab; use celltrain run on your computer instead");
        }
        for fault in stack.check() {
            scope.refuse_setting(fault);
        }
    });
    for (name, options) in &scenario.flow {
        if let (Some(stack), Some(tcp)) = (&options.stack, &options.tcp) {
            let problem = format!(
                "is a second transport for the flow, in addition to [flow.{name}.tcp.{}]; choose one of the \
                         two",
                tcp.name()
            );
            root.at("flow").at(name).at("stack").at(stack.name()).refuse(problem);
        }
        if let Some(start) = options.start.filter(|&start| start > MAX_DURATION) {
            let problem = format!("must be a time of at most {MAX_DURATION}");
            root.at("flow").at(name).at("start").refuse_text(start, problem);
        }
    }
    for fault in scenario.host.check() {
        root.at("host").refuse_setting(fault);
    }
    let max_sdu = scenario.aal5.max_sdu;
    if !(1..=MAX_SDU).contains(&max_sdu.bytes) {
        root.at("aal5").at("max_sdu").refuse_text(max_sdu, format!("is outside 1B to {MAX_SDU}B"));
    }
    let mut flows = root.at("flow");
    for (name, options) in &scenario.flow {
        if let Some(traffic) = &options.traffic {
            own_traffic(traffic, options, scenario, &mut flows.at(name));
        }
    }
    file_size(scenario, root);
    window(scenario, root);
    let about_frames = |key: &str| {
        ["tcp.", "stack.", "aal5.", "cell.", "flow.", "requests.", "incast."].iter().any(|table| key.starts_with(table))
    };
    let frames_are_sound = !root.found().iter().any(|fault| about_frames(&fault.key));
    if frames_are_sound {
        let unused = scenario.stack.as_ref().map(|_| &scenario.tcp);
        each_tcp(scenario, root, |tcp, scope| {
            if unused.is_some_and(|unused| std::ptr::eq(tcp, unused)) {
                return;
            }
            let mss = tcp.options().mss;
            frames(mss.bytes, ("mss", mss), scenario, scope);
        });
        each_stack(scenario, root, |stack, scope| frames(stack.sizes().mss, stack.packet_size(), scenario, scope));
    }
    frames_are_sound
}

/// Calls `check` for the common TCP, and for the TCPs of individual flows and of requests.
fn each_tcp(scenario: &Scenario, root: &mut Scope<'_>, mut check: impl FnMut(&TcpConfig, &mut Scope<'_>)) {
    check(&scenario.tcp, &mut root.at("tcp").at(scenario.tcp.name()));
    for (name, options) in &scenario.flow {
        if let Some(tcp) = &options.tcp {
            check(tcp, &mut root.at("flow").at(name).at("tcp").at(tcp.name()));
        }
    }
    for (kind, name, table) in Table::all(scenario) {
        if let Some(tcp) = table.tcp() {
            check(tcp, &mut root.at(kind).at(name).at("tcp").at(tcp.name()));
        }
    }
}

/// Calls `check` for the common stack, and for the stacks of individual flows and of requests.
fn each_stack(scenario: &Scenario, root: &mut Scope<'_>, mut check: impl FnMut(&StackConfig, &mut Scope<'_>)) {
    if let Some(stack) = &scenario.stack {
        check(stack, &mut root.at("stack").at(stack.name()));
    }
    for (name, options) in &scenario.flow {
        if let Some(stack) = &options.stack {
            check(stack, &mut root.at("flow").at(name).at("stack").at(stack.name()));
        }
    }
    for (kind, name, table) in Table::all(scenario) {
        if let Some(stack) = table.own_stack() {
            check(stack, &mut root.at(kind).at(name).at("stack").at(stack.name()));
        }
    }
}

/// Checks that at least one flow or request uses the common stack.
pub(super) fn common_stack(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let scenario = resolved.scenario;
    let Some(common) = &scenario.stack else { return };
    let is_common = |stack: Option<&StackConfig>| stack.is_some_and(|stack| std::ptr::eq(stack, common));
    let by_flow = resolved.tables.flows.iter().any(|&own| is_common(scenario.stack_with(own)));
    if by_flow || Table::all(scenario).any(|(_, _, table)| is_common(table.stack(scenario))) {
        return;
    }
    let problem = "is used by no flow and no request: each has a transport of its own, or sends packets without one; \
                   leave it out, or leave out a [flow.NAME.tcp] or [requests.NAME.tcp]";
    root.at("stack").at(common.name()).refuse(problem);
}

fn own_traffic(traffic: &TrafficConfig, options: &FlowOptions, scenario: &Scenario, flow: &mut Scope<'_>) {
    if let Some(pattern) = traffic.packets() {
        packets(&pattern, scenario, &mut flow.at("traffic").at(traffic.name()));
        if let Some(tcp) = &options.tcp {
            let problem = "has no effect: the flow sends packets without TCP; leave it out";
            flow.at("tcp").at(tcp.name()).refuse(problem);
        }
        if let Some(stack) = &options.stack {
            let problem = "has no effect: the flow sends packets without a stack; leave it out";
            flow.at("stack").at(stack.name()).refuse(problem);
        }
    }
    let mut table = flow.at("traffic");
    let mut scope = table.at(traffic.name());
    if let Some(file) = traffic.bytes().filter(|file| !(1..=MAX_FILE).contains(&file.bytes)) {
        scope.at("bytes").refuse_text(file, format!("is outside 1B to {}", Bytes { bytes: MAX_FILE }));
    }
    if let Some(bursts) = traffic.bursts() {
        if let Some(StackConfig::Python(_)) = scenario.stack_with(Some(options)) {
            scope.refuse("is not possible with a Python stack; choose traffic.greedy or traffic.file");
        }
        burst("pause", bursts.pause, &mut scope);
    }
}

/// Checks packets sent without TCP.
fn packets(pattern: &Pattern<'_>, scenario: &Scenario, scope: &mut Scope<'_>) {
    let Pattern { rate, packet, .. } = *pattern;
    if rate < MIN_RATE || rate > MAX_RATE {
        scope.at("rate").refuse_text(rate, format!("is not a positive rate from {MIN_RATE} to {MAX_RATE}"));
    }
    if (1..=MAX_PACKET).contains(&packet.bytes) {
        let (sdu, cells) = (scenario.framing().packet_sdu(packet.bytes), scenario.framing().packet_cells(packet.bytes));
        collected(packet, sdu, cells, scenario, &mut scope.at("packet"));
    } else {
        scope.at("packet").refuse_text(packet, format!("is outside 1B to {MAX_PACKET}B, as UDP and IP require"));
    }
    if let Some(bursts) = pattern.bursts {
        burst("on", bursts.on, scope);
        burst("off", bursts.off, scope);
    }
}

fn burst(key: &str, time: Duration, scope: &mut Scope<'_>) {
    if time < MIN_BURST || time > MAX_DURATION {
        scope.at(key).refuse_text(time, format!("is not a time from {MIN_BURST} to {MAX_DURATION}"));
    }
}

/// Checks that a segment fits into a frame that the receiver can reassemble.
fn frames(mss: u64, (key, size): (&str, Bytes), scenario: &Scenario, scope: &mut Scope<'_>) {
    let (sdu, cells) = (scenario.framing().segment_sdu(mss), scenario.framing().segment_cells(mss));
    collected(size, sdu, cells, scenario, &mut scope.at(key));
}

/// Checks that AAL5 can carry a frame with an SDU of `sdu` bytes, and that a receiver can reassemble its `cells`.
/// `size` is the setting to report.
fn collected(size: Bytes, sdu: u64, cells: u32, scenario: &Scenario, scope: &mut Scope<'_>) {
    let most = scenario.framing().max_cells();
    let delimits = scenario.framing().framing == Framing::Packets;
    if cells > most && !delimits {
        let problem = format!(
            "makes frames of {cells} cells, but aal5.max_sdu limits the frames of receivers to \
                               {most} cells"
        );
        scope.refuse_text(size, problem);
    } else if sdu > MAX_SDU {
        let largest = size.bytes.saturating_sub(sdu.saturating_sub(MAX_SDU));
        let (what, carrier) = if delimits { ("packets", "IPv4") } else { ("frames", "AAL5") };
        let problem = format!(
            "makes {what} of {sdu} bytes with headers, but {carrier} can carry only {MAX_SDU}; use at most {largest}B"
        );
        scope.refuse_text(size, problem);
    }
}

/// Checks that the measured files are at least one segment long, since a smaller file takes as long as a segment.
fn file_size(scenario: &Scenario, root: &mut Scope<'_>) {
    let Some(size) = scenario.measure.file_size else { return };
    let own = scenario.flow.values().filter_map(|options| options.tcp.as_ref());
    let longest = own.chain([&scenario.tcp]).map(|tcp| tcp.options().mss).max().expect("a scenario has a TCP");
    let least = longest.bytes.clamp(1, MAX_FILE);
    if !(least..=MAX_FILE).contains(&size.bytes) {
        let most = Bytes { bytes: MAX_FILE };
        let problem = format!("must be from one segment ({least}B) to {most}; the papers use 100kB");
        root.at("measure").at("file_size").refuse_text(size, problem);
    }
}

/// Checks that the measuring window is within the run.
fn window(scenario: &Scenario, root: &mut Scope<'_>) {
    let (duration, measure) = (scenario.duration, &scenario.measure);
    if let Some(to) = measure.to.filter(|&to| to == Duration::default() || to > duration) {
        let problem = format!("is outside the run; use a positive time up to its duration of {duration}");
        root.at("measure").at("to").refuse_text(to, problem);
    }
    let end = measure.to.map_or(duration, |to| to.min(duration));
    if let Some(from) = measure.from.filter(|&from| from >= end) {
        let named = if measure.to.is_some() { "measure.to" } else { "the run" };
        let problem = format!("leaves no time to measure; use a time before the end of {named}, {end}");
        root.at("measure").at("from").refuse_text(from, problem);
    }
}

/// Checks that a run which ends early waits for something, and for a limited number of requests.
pub(super) fn until(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let scenario = resolved.scenario;
    if scenario.until.is_duration() {
        return;
    }
    let own = resolved.tables.flows.iter().flatten();
    let has_files = own.filter_map(|own| own.traffic.as_ref()).any(|traffic| matches!(traffic, TrafficConfig::File(_)));
    let problem = match scenario.measure.to {
        _ if !scenario.has_requests() && !has_files => {
            "has no effect: no flow sends a file, and there are no requests; leave it out".to_owned()
        }
        None if scenario.has_requests() => {
            "has no effect without measure.to: new requests open until the end of the run; write measure.to, well before \
             the duration"
                .to_owned()
        }
        _ => return,
    };
    root.at("until").refuse_text("finished", problem);
}

/// Checks that every flow table names a flow.
pub(super) fn tables(
    resolved: &ResolvedScenario<'_>,
    root: &mut Scope<'_>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, layout, .. } = resolved;
    let known: BTreeSet<&str> = layout.flows.iter().map(|flow| flow.name.as_str()).collect();
    for key in scenario.flow.keys() {
        token.tick(1)?;
        let mut names = layout.flows.iter().map(|flow| flow.name.as_str());
        if known.contains(key.as_str()) || token.any(names.clone(), |name| is_in_range(key, name))? {
            continue;
        }
        let example = names.next().unwrap_or_default();
        let hint = did_you_mean(hint(key, names, root.found(), token));
        let write = if hint.is_empty() { "write" } else { "Write" };
        let problem = format!("is not a flow; {hint}{write} a flow's name such as \"{example}\", or a range of names");
        root.at("flow").at(key).refuse(problem);
    }
    Ok(())
}

/// Checks that at least one flow has a stream to be divided into files.
pub(super) fn files(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let Some(size) = resolved.scenario.measure.file_size else { return };
    let no_stream = |own: Option<&FlowOptions>| {
        own.and_then(|own| own.traffic.as_ref()?.packets()).is_some() || resolved.scenario.stack_with(own).is_some()
    };
    if resolved.tables.flows.iter().copied().all(no_stream) {
        let problem = "has no effect: no flow uses the simulation's own TCP; leave it out";
        root.at("measure").at("file_size").refuse_text(size, problem);
    }
}

/// Warns of packet sources faster than their host's link, as the host's queue would grow without limit.
pub(super) fn rates(
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

/// Warns of segments that time out before they leave their host. The host's queue then grows until an acknowledgement
/// arrives.
pub(super) fn timeouts(
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

/// Returns the warning of a timeout that is shorter than the time, in seconds, that a segment takes on a link.
fn too_short(key: String, (timeout, sending): (Duration, f64), link: &str, sender: &str) -> Warning {
    let message = format!(
        "retransmission timeouts of {timeout} are shorter than the {:.3}us that a segment takes on {link}: {sender} sends \
         segments again before they have left, and its host's queue grows until an acknowledgement arrives. Raise \
         minimum_rto and timer.maximum_rto.",
        sending * 1e6
    );
    Warning { key, message }
}
