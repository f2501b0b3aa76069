//! Checks of the settings that need no layout: cells, framing, traffic, and the transports of flows and requests.

use celltrain_core::aal5::{Aal5Options, CellFormat, Framing};
use celltrain_core::policy::{Overflow, PolicyConfig};
use celltrain_core::switching::PacketAdmission;
use celltrain_core::tcp::{TcpConfig, TickPhase};
use celltrain_core::traffic::{Pattern, TrafficConfig};
use celltrain_core::units::{Bytes, Duration};

use crate::limits::{MAX_DURATION, MAX_FILE, MAX_RATE, MIN_RATE};
use crate::requests::Table;
use crate::scenario::{FlowOptions, PortConfig, Scenario};
use crate::scope::Scope;
use crate::stack::StackConfig;

/// Maximum size of a cell in bytes. The largest cells of known switches have 4096 bytes.
const MAX_SIZE: u64 = 65_536;
/// Minimum payload of a cell in bytes, because a cell must have room for the AAL5 trailer.
const MIN_PAYLOAD: u64 = 8;
/// Maximum payload of an AAL5 frame, whose length field has 16 bits (ITU-T I.363.5).
const MAX_SDU: u64 = 65_535;
/// Maximum payload of a UDP packet: 65535 bytes minus 28 bytes of headers (RFC 768, RFC 791).
const MAX_PACKET: u64 = 65_507;
/// Minimum time of a burst or pause. A shorter time probably has a wrong unit.
const MIN_BURST: Duration = Duration::from_microseconds(1);

/// Checks the settings that need no layout. Returns whether the frame sizes of all flows are known.
pub(super) fn check(scenario: &Scenario, root: &mut Scope<'_>) -> bool {
    if scenario.duration == Duration::default() || scenario.duration > MAX_DURATION {
        let problem = format!("must be a positive time of at most {MAX_DURATION}");
        root.at("duration").refuse_text(scenario.duration, problem);
    }
    cells(scenario, root);
    framing(scenario, root);
    let frames_are_sound = traffic(scenario, root);
    requests(scenario, root);
    classes(scenario, root);
    frames_are_sound
}

/// Checks the cell format. A service that is defined for ATM cells needs cells of the ATM format.
fn cells(scenario: &Scenario, root: &mut Scope<'_>) {
    let (size, payload) = (scenario.cell.size, scenario.cell.payload);
    if !(MIN_PAYLOAD..=MAX_SIZE).contains(&size.bytes) {
        let problem = format!("must be from {MIN_PAYLOAD}B to {MAX_SIZE}B; an ATM cell has 53B");
        root.at("cell").at("size").refuse_text(size, problem);
        return;
    }
    if let Some(payload) = payload.filter(|payload| !(MIN_PAYLOAD..=size.bytes).contains(&payload.bytes)) {
        let problem = format!("must be from {MIN_PAYLOAD}B to the size of a cell, {size}");
        root.at("cell").at("payload").refuse_text(payload, problem);
        return;
    }
    if scenario.cell.format() == CellFormat::ATM {
        return;
    }
    if let Some(service) = service_of_atm(scenario) {
        let key = if size.bytes == 53 { ("payload", payload.unwrap_or(Bytes { bytes: 48 })) } else { ("size", size) };
        let problem = format!("is not possible with {service}, which is defined for ATM cells only; leave [cell] out");
        root.at("cell").at(key.0).refuse_text(key.1, problem);
    }
}

/// Returns the name of a service in the scenario that is defined for ATM cells only.
fn service_of_atm(scenario: &Scenario) -> Option<&'static str> {
    let uses_abr = scenario.vc.values().any(|vc| vc.abr.is_some());
    let uses_gfr = scenario.vc.values().any(|vc| vc.gfr.is_some());
    let services =
        [("ABR", uses_abr), ("a guaranteed frame rate", uses_gfr), ("edge devices", !scenario.edge.is_empty())];
    services.into_iter().find_map(|(service, is_used)| is_used.then_some(service))
}

/// Checks that a scenario with packet framing uses nothing that needs AAL5.
fn framing(scenario: &Scenario, root: &mut Scope<'_>) {
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
    // Without the key `framing`, the check of the cell format has already reported the fault of these services.
    if scenario.framing.is_some()
        && let Some(service) = service_of_atm(scenario)
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

/// Checks that a port's policy works with packet framing, which does not mark the last cell of a packet.
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

/// Refuses the key that selects packet framing.
pub(super) fn refuse_key(scenario: &Scenario, root: &mut Scope<'_>, problem: &str) {
    if scenario.framing.is_some() {
        root.at("framing").refuse_text("packets", problem);
    } else {
        root.at("cell").at("size").refuse_text(scenario.cell.size, format!("{problem}; set framing = \"aal5\""));
    }
}

/// Checks the settings that need no layout. Returns whether the frame sizes of all flows are known.
fn traffic(scenario: &Scenario, root: &mut Scope<'_>) -> bool {
    each_tcp(scenario, root, |tcp, scope| {
        for fault in tcp.options().check() {
            scope.refuse_setting(fault);
        }
        let mut table = scope.at("formula");
        // If a malformed formula was removed, other formulas would contain unknown names.
        let faults = if table.is_malformed() { Vec::new() } else { tcp.options().check_formula() };
        for fault in faults {
            table.refuse_setting(fault);
        }
    });
    each_stack(scenario, root, |stack, scope| {
        // Check the stack here, so that a message about its settings can name a line.
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

/// Calls `check` for the TCP of all flows, and for the TCPs of individual flows and of requests.
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

/// Calls `check` for the stack of all flows, and for the stacks of individual flows and of requests.
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

/// Checks the settings of traffic that is sent without TCP.
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

/// Checks that AAL5 can carry a frame with a payload of `sdu` bytes, and that a receiver can reassemble the frame's
/// `cells`. `size` is the value of the setting that a fault names.
fn collected(size: Bytes, sdu: u64, cells: u32, scenario: &Scenario, scope: &mut Scope<'_>) {
    let most = scenario.framing().max_cells();
    let delimits = scenario.framing().framing == Framing::Packets;
    if cells > most && !delimits {
        let problem = format!(
            "makes frames of {cells} cells, but with this aal5.max_sdu receivers accept at most \
                               {most}"
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

/// Checks that the connections of requests can use their TCP or stack. A separate phase of ticks for each connection
/// would need a separate clock for each connection, and a run has millions of connections.
fn requests(scenario: &Scenario, root: &mut Scope<'_>) {
    let problem = "gives each connection its own clock, which is not possible for requests; write \"common\"";
    for (kind, name, table) in Table::all(scenario) {
        if let Some(stack) = table.stack(scenario) {
            if !table.has_handshake() {
                let problem =
                    format!("is not possible with stack.{}, which opens its connections; leave it out", stack.name());
                root.at(kind).at(name).at("handshake").refuse_value(false, problem);
            }
            continue;
        }
        if let (Some(stack), Some(tcp)) = (table.own_stack(), table.tcp()) {
            let problem = format!(
                "is a second transport for the requests, in addition to [{kind}.{name}.tcp.{}]; choose one of the two",
                tcp.name()
            );
            root.at(kind).at(name).at("stack").at(stack.name()).refuse(problem);
        }
        let tcp = table.tcp().unwrap_or(&scenario.tcp);
        if tcp.options().timer_rules().tick_phase != TickPhase::Random {
            continue;
        }
        let refuse = |scope: &mut Scope<'_>| {
            scope.at("timer").at("tick_phase").once(|scope| scope.refuse_text("random", problem));
        };
        match table.tcp() {
            Some(_) => refuse(&mut root.at(kind).at(name).at("tcp").at(tcp.name())),
            None => refuse(&mut root.at("tcp").at(tcp.name())),
        }
    }
}

/// Checks that the limit of short requests is not above the limit of long requests.
fn classes(scenario: &Scenario, root: &mut Scope<'_>) {
    let (short, long) = (scenario.measure.short(), scenario.measure.long());
    let mut measure = root.at("measure");
    if short > long {
        let key = if scenario.measure.short_requests.is_some() { "short_requests" } else { "long_requests" };
        let (value, other) = if key == "short_requests" {
            (short, format!("is above long_requests; write at most {long}"))
        } else {
            (long, format!("is below short_requests; write at least {short}"))
        };
        measure.at(key).refuse_text(value, other);
    }
}
