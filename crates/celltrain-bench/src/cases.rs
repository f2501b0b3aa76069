//! The benchmark scenarios, each written as scenario text.

use std::sync::Arc;

use celltrain_core::delay::DelayChoice;
use celltrain_core::network::Network;
use celltrain_scenario::{build, read_toml};

use crate::networks::{
    INFINITE, Mesh, NSource, TAIL_DROP, chain, groups, internetwork, parking_lot, pausing_memory, pausing_star,
    shared_memory,
};

/// A scenario to measure.
#[derive(Clone)]
pub struct Case {
    /// Name on the command line and in tables.
    pub name: String,
    /// The purpose of measuring the scenario.
    pub group: Group,
    /// Description of the case, in one line.
    pub title: String,
    /// The scenario's text, generated on demand because some texts are large and `named` creates all cases to find one.
    text: Arc<dyn Fn() -> String + Send + Sync>,
    /// Delays of packets to measure as well.
    pub delays: DelayChoice,
}

/// The purpose of measuring a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// The speed of both engines on realistic networks.
    Whole,
    /// One point of a series, which shows how cost grows with a parameter.
    Scaling {
        /// Parameter that grows.
        axis: Axis,
        /// The parameter's value, as displayed in tables.
        value: String,
        /// True if the reference engine is also measured at this point.
        reference: bool,
    },
    /// The number of instructions, checked against a budget. Runs are long enough that reading the scenario takes only
    /// a few per cent.
    Guard,
    /// A native policy and the same policy as a formula, to measure the cost of a formula.
    Formula,
}

impl Group {
    /// Returns the case's name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Group::Whole => "whole",
            Group::Scaling { .. } => "scaling",
            Group::Guard => "guard",
            Group::Formula => "formula",
        }
    }
}

/// Parameter that grows in a series of scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Connections that share one port.
    Sources,
    /// Size of the shared port's buffer.
    Buffer,
    /// Number of contended ports in a row.
    Hops,
    /// Simulated seconds.
    Seconds,
    /// Number of switches in a random network with ten VCs per switch.
    Switches,
    /// Trunks per switch in a random network.
    Degree,
    /// VCs that cross a random network.
    Vcs,
}

impl Axis {
    /// Returns the parameter's name, as shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Sources => "sources",
            Axis::Buffer => "buffer",
            Axis::Hops => "hops",
            Axis::Seconds => "seconds",
            Axis::Switches => "switches",
            Axis::Degree => "degree",
            Axis::Vcs => "vcs",
        }
    }
}

impl Case {
    /// Returns the scenario in TOML.
    pub fn toml(&self) -> String {
        (self.text)()
    }

    /// Builds the network as the engines run it, with the scenario's own seed.
    pub fn network(&self) -> Network {
        let scenario = read_toml(&self.toml(), &self.name).expect_scenario();
        Network { delays: self.delays, ..build::network(&scenario, scenario.seed) }
    }

    /// Returns the simulated seconds.
    pub fn duration_s(&self) -> f64 {
        self.network().duration.seconds()
    }

    /// Returns the case with a different duration, such as `60ms`.
    #[must_use]
    pub fn lasting(self, duration: &str) -> Self {
        let (duration, text) = (duration.to_string(), self.text);
        let lasting = move || {
            let text = text();
            let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
            format!("duration = \"{duration}\"\n{rest}")
        };
        Case { text: Arc::new(lasting), ..self }
    }

    fn whole(
        name: impl Into<String>,
        title: impl Into<String>,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Case {
            name: name.into(),
            group: Group::Whole,
            title: title.into(),
            text: Arc::new(text),
            delays: DelayChoice::None,
        }
    }

    fn guard(name: &str, title: &str, text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Case {
            name: format!("guard-{name}"),
            group: Group::Guard,
            title: title.into(),
            text: Arc::new(text),
            delays: DelayChoice::None,
        }
    }

    fn point(
        axis: Axis,
        value: impl Into<String>,
        reference: bool,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        let value = value.into().trim_matches('"').to_string();
        let name = format!("{}-{value}", axis.name());
        let title = match axis {
            Axis::Sources => format!("LAN, {value} sources, infinite buffer, 10 s"),
            Axis::Buffer => format!("WAN, 20 sources, windows of 4 MB, K = {value}, tail drop, 5 s"),
            Axis::Hops => format!("chain of {value} hops with cross traffic on each, Selective Drop, 2 s"),
            Axis::Seconds => format!("LAN, 5 sources, infinite buffer, {value} s"),
            Axis::Switches => format!("random network of {value} switches with 10 VCs each, EPD, 0.2 s"),
            Axis::Degree => format!("random network of 100 switches with {value} trunks each, 1000 VCs, EPD, 0.2 s"),
            Axis::Vcs => format!("random network of 100 switches, {value} VCs, EPD, 0.2 s"),
        };
        Case {
            name,
            group: Group::Scaling { axis, value, reference },
            title,
            text: Arc::new(text),
            delays: DelayChoice::None,
        }
    }
}

/// Returns the case of this name.
pub fn named(name: &str) -> Option<Case> {
    all().into_iter().find(|case| case.name == name)
}

/// Returns every case: whole scenarios, points of series, scenarios for the instruction guard, policies and their
/// formulas.
pub fn all() -> Vec<Case> {
    [whole(), scaling(), guard(), formulas()].concat()
}

fn whole() -> Vec<Case> {
    let mut cases = Vec::new();
    for sources in LOADS {
        // Five sources run as long as the timed runs of other simulators (see `docs/performance.md`).
        let seconds = if sources == 5 { 10 } else { 5 };
        let toml = move || NSource { sources, ..NSource::LAN }.toml(&format!("{seconds}s"));
        let title = format!("LAN, {sources} sources, infinite buffer, {seconds} s");
        cases.push(Case::whole(format!("n-source-lan-{sources}-infinite"), title, toml));
    }
    for sources in LOADS {
        let toml = move || NSource { sources, ..NSource::WAN }.toml("5s");
        let title = format!("WAN, {sources} sources, infinite buffer, 5 s");
        cases.push(Case::whole(format!("n-source-wan-{sources}-infinite"), title, toml));
    }
    for buffer in ["1000", "3000"] {
        let toml = move || NSource { sources: 15, buffer, policy: FBA, ..NSource::LAN }.toml("5s");
        let title = format!("LAN, 15 sources, K = {buffer}, FBA, 5 s");
        cases.push(Case::whole(format!("n-source-lan-15-fba-{buffer}"), title, toml));
    }
    cases.push(Case::whole("n-source-lan-1000-fq-codel", "LAN, 1000 sources, K = 10000, FQ-CoDel, 10 s", || {
        NSource { sources: 1000, buffer: "10000", policy: "fq_codel = {}", ..NSource::LAN }.toml("10s")
    }));
    cases.push(Case::whole("n-source-wan-5-epd-12000", "WAN, 5 sources, K = 12000, EPD, 10 s", || WAN_EPD.toml("10s")));
    cases.push(Case::whole("chain", "chain of 5 switches, cross traffic, Selective Drop, 1 s", || chain(4, "1s")));
    for sources in [5, 15] {
        cases.extend(scheduled(sources));
        for (policy, title) in [("tail_drop", "tail drop"), ("drop_from_front", "drop from front")] {
            let name = format!("lan-{sources}-{}", policy.replace('_', "-"));
            let title = format!("LAN, {sources} sources, K = 1000, {title}, 5 s");
            let toml = move || {
                NSource { sources, buffer: "1000", policy: &format!("{policy} = {{}}"), ..NSource::LAN }.toml("5s")
            };
            cases.push(Case::whole(name, title, toml));
        }
    }
    for (policy, name, title) in HEAD_POLICIES {
        let title = format!("LAN, 5 sources of NewReno, K = 10000, {title}, 5 s");
        let toml = move || {
            NSource { buffer: "10000", policy, ..NSource::LAN }.toml("5s").replace("tcp.vanilla", "tcp.newreno")
        };
        cases.push(Case::whole(format!("lan-5-{name}"), title, toml));
    }
    for (vcs, per_vc) in [(1, 5), (1, 15), (5, 3)] {
        for (merges, name, title) in [(false, "apart", "apart"), (true, "merged", "merged")] {
            let title = format!("LAN, {vcs} x {per_vc} sources, VCs {title}, 5 s");
            let name = format!("vcs-{vcs}x{per_vc}-{name}");
            cases.push(Case::whole(name, title, move || groups(vcs, per_vc, merges, "5s")));
        }
    }
    for (name, delay, title) in [("parking-lot", "5us", "LAN"), ("parking-lot-wan", "1ms", "trunks of 1 ms")] {
        let title = format!("parking lot of 10 switches, 3 connections a hop, EPD, {title}, 1 s");
        cases.push(Case::whole(name, title, move || parking_lot(10, 3, delay, "1s")));
    }
    let title = "random network of 100 switches, 1000 VCs, EPD, 1 s";
    cases.push(Case::whole("mesh", title, || Mesh::USUAL.toml("1s")));
    for (ports, name, title) in MESH_PORTS {
        let title = format!("the random network with {title}, 0.2 s");
        let toml = || Mesh::USUAL.toml("200ms").replace(MESH_POLICY, ports);
        cases.push(Case::whole(format!("mesh-{name}"), title, toml));
    }
    for (policy, name, title) in MEMORY_POLICIES {
        let title = format!("32 ports of 10 Gb/s that share 8000 cells, incast, {title}, 10 ms");
        let toml = || shared_memory(32, "10Gbps", policy, "10ms");
        cases.push(Case::whole(format!("memory-{name}"), title, toml));
    }
    let title = "four hosts with pause frames on their links, Dynamic Threshold, 1 s";
    cases.push(Case::whole("pauses-star", title, pausing_star));
    let title = "32 ports of 10 Gb/s that share 8000 cells, incast, links that pause, 10 ms";
    cases.push(Case::whole("pauses-32", title, || pausing_memory(32, "10Gbps", "10ms")));
    for (control, title) in [("ubr", "UBR, EPD"), ("efci", "ABR, EFCI"), ("er", "ABR, ER"), ("ada", "ABR, ER and ADA")]
    {
        let title = format!("internetwork, 10 sources, {title}, 5 s");
        cases.push(Case::whole(format!("internetwork-{control}"), title, move || internetwork(10, control, "5s")));
    }
    cases.push(Case::whole("idle", "idle: one segment in flight on links of 250 ms, 20000 s", || IDLE.toml("20000s")));
    cases
}

/// Returns the LAN with a scheduler at the shared port; the case n-source-lan-SOURCES-infinite is the same without the
/// scheduler. Also returns the LAN with VBR background traffic that uses three fifths of the link, under FIFO and under
/// the schedulers that distinguish classes.
fn scheduled(sources: u32) -> Vec<Case> {
    let lan: NSource<'static> = NSource { sources, ..NSource::LAN };
    let seconds = if sources == 5 { 10 } else { 5 };
    let toml = move || wfq(lan, &format!("{seconds}s"));
    let title = format!("LAN, {sources} sources, WFQ, {seconds} s");
    let mut cases = vec![Case::whole(format!("lan-{sources}-wfq"), title, toml)];
    for (scheduler, name, title) in [
        ("fifo = {}", "fifo", "FIFO"),
        ("strict_priority = {}", "strict-priority", "strict priority"),
        ("guaranteed_rate = { share = 0.5 }", "guaranteed-rate", "guaranteed rate"),
    ] {
        let background = sources + 1;
        let toml = move || {
            let toml = NSource { sources: background, ..lan }.toml("5s");
            format!(
                r#"{toml}scheduler.{scheduler}

[flow.tcp{background}.traffic.on_off]
on = "300ms"
off = "100ms"

[vc.tcp{background}]
class = "vbr"
"#
            )
        };
        let title = format!("LAN, {sources} sources and VBR, {title}, 5 s");
        cases.push(Case::whole(format!("lan-{sources}-vbr-{name}"), title, toml));
    }
    cases
}

fn wfq(network: NSource<'_>, duration: &str) -> String {
    let weights = "{ tcp1-2 = 1, tcp3-4 = 2, default = 3 }";
    format!("{}scheduler.wfq.weights = {weights}\n", network.toml(duration))
}

fn scaling() -> Vec<Case> {
    let mut cases = Vec::new();
    for sources in [5, 10, 20, 50, 100, 200, 500, 1000] {
        // The windows of 1000 sources fill a queue that takes four seconds to drain. While the windows grow, all trains
        // tie.
        let toml = move || NSource { sources, ..NSource::LAN }.toml("10s");
        cases.push(Case::point(Axis::Sources, sources.to_string(), [5, 100, 1000].contains(&sources), toml));
    }
    for buffer in ["1000", "3000", "10000", "30000", "100000", "300000", "1000000", INFINITE] {
        let toml = move || NSource { sources: 20, window: "4MB", buffer, ..NSource::WAN }.toml("5s");
        cases.push(Case::point(Axis::Buffer, buffer, ["1000", INFINITE].contains(&buffer), toml));
    }
    for hops in 1..=8 {
        cases.push(Case::point(Axis::Hops, hops.to_string(), [1, 8].contains(&hops), move || chain(hops, "2s")));
    }
    for seconds in [1, 2, 5, 10, 20, 50, 100] {
        let toml = move || NSource::LAN.toml(&format!("{seconds}s"));
        cases.push(Case::point(Axis::Seconds, seconds.to_string(), [1, 10].contains(&seconds), toml));
    }
    for switches in [10, 30, 100, 300, 1000] {
        let mesh = Mesh { switches, vcs: 10 * switches, ..Mesh::USUAL };
        let toml = move || mesh.toml("200ms");
        cases.push(Case::point(Axis::Switches, switches.to_string(), [10, 100].contains(&switches), toml));
    }
    for degree in [2, 4, 8, 16] {
        let mesh = Mesh { degree, ..Mesh::USUAL };
        let toml = move || mesh.toml("200ms");
        cases.push(Case::point(Axis::Degree, degree.to_string(), [2, 16].contains(&degree), toml));
    }
    for vcs in [100, 300, 1000, 3000, 10_000] {
        let mesh = Mesh { vcs, ..Mesh::USUAL };
        let toml = move || mesh.toml("200ms");
        cases.push(Case::point(Axis::Vcs, vcs.to_string(), [100, 10_000].contains(&vcs), toml));
    }
    cases
}

fn guard() -> Vec<Case> {
    let fba = NSource { sources: 15, buffer: "3000", policy: FBA, ..NSource::LAN };
    let packets = || {
        let toml = shared_memory(32, "10Gbps", MEMORY_POLICIES[0].0, "1ms");
        toml.replace("policy.ppd = {}", "policy.tail_drop = {}").replacen('\n', "\nframing = \"packets\"\n", 1)
    };
    vec![
        Case::guard("lan-5-infinite", "LAN, 5 sources, infinite buffer, 1 s", || NSource::LAN.toml("1s")),
        Case::guard("lan-15-fba-3000", "LAN, 15 sources, K = 3000, FBA, 1 s", move || fba.toml("1s")),
        Case::guard("wan-5-epd-12000", "WAN, 5 sources, K = 12000, EPD, 2 s", || WAN_EPD.toml("2s")),
        Case::guard("wfq", "LAN, 5 sources, WFQ, 0.3 s", || wfq(NSource::LAN, "300ms")),
        Case::guard("merged", "LAN, 5 x 3 sources, VCs merged, 0.5 s", || groups(5, 3, true, "500ms")),
        Case::guard("er", "internetwork, 10 sources, ABR, ER, 0.2 s", || internetwork(10, "er", "200ms")),
        Case::guard("chain", "chain of 5 switches, cross traffic, Selective Drop, 0.5 s", || chain(4, "500ms")),
        Case::guard("mesh", "random network of 100 switches, 1000 VCs, EPD, 40 ms", || Mesh::USUAL.toml("40ms")),
        Case::guard("packets", "32 ports that share 8000 cells, packets, Dynamic Threshold, 1 ms", packets),
    ]
}

fn formulas() -> Vec<Case> {
    let mut cases = Vec::new();
    for (sources, buffer) in [(5, "1000"), (15, "2000")] {
        for (policy, name, title) in [(FBA, "native", "FBA"), (FBA_FORMULA, "formula", "FBA as a formula")] {
            cases.push(Case {
                name: format!("fba-lan-{sources}-{name}"),
                group: Group::Formula,
                title: format!("LAN, {sources} sources, K = {buffer}, {title}, 2 s"),
                text: Arc::new(move || NSource { sources, buffer, policy, ..NSource::LAN }.toml("2s")),
                delays: DelayChoice::None,
            });
        }
    }
    cases
}

const LOADS: [u32; 4] = [5, 15, 100, 1000];
const FBA: &str = "fba = { threshold = 0.9, z = 0.8 }";
const FBA_FORMULA: &str = "formula = { admit = \"X <= R or Y * N / X <= Z * (K - R) / (X - R)\", \
                           constants = { R = \"0.9 * K\", Z = 0.8 } }";
const WAN_EPD: NSource = NSource { buffer: "12000", policy: "epd = { threshold = 11800 }", ..NSource::WAN };
/// Scenario in which almost every cell time has only clock ticks.
const IDLE: NSource = NSource { sources: 1, delay: "250ms", window: "512B", buffer: "1000", policy: TAIL_DROP };

/// Port settings of the random network, and the settings that replace them in other cases.
const MESH_POLICY: &str = "policy.epd = { threshold = 800 }";
const MESH_PORTS: [(&str, &str, &str); 5] = [
    ("policy.epd = { threshold = 800 }\nscheduler.wfq.weights = 1", "wfq", "EPD and WFQ"),
    ("policy.epd = { threshold = 800 }\nscheduler.round_robin = {}", "round-robin", "EPD and round robin"),
    ("policy.drop_from_front = {}", "drop-from-front", "drop from front"),
    ("policy.virtual_queuing.threshold = 800", "virtual-queuing", "virtual queuing"),
    ("policy.fba = { threshold = 0.8, z = 0.8 }", "fba", "FBA"),
];

/// EPD, and the policies that decide at the head of the queue.
const HEAD_POLICIES: [(&str, &str, &str); 5] = [
    ("epd = { threshold = 8000 }", "epd", "EPD"),
    ("codel = {}", "codel", "CoDel"),
    ("fq_codel = {}", "fq-codel", "FQ-CoDel"),
    ("pie = {}", "pie", "PIE"),
    ("red = {}", "red", "RED"),
];

const MEMORY_POLICIES: [(&str, &str, &str); 2] = [
    ("dynamic_threshold = { alpha = 1 }", "dynamic-threshold", "Dynamic Threshold"),
    ("longest_queue_drop = {}", "longest-queue-drop", "Longest Queue Drop"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use celltrain_core::engine::Engine;
    use celltrain_core::index::FlowIndex;
    use celltrain_core::metrics::RunResult;

    use super::*;

    fn run(case: &Case) -> RunResult {
        Engine::Fast.run_to_end(&case.network())
    }

    #[test]
    fn every_benchmark_case_has_a_unique_name() {
        let mut names = BTreeSet::new();
        for case in all() {
            assert!(names.insert(case.name.clone()), "two cases have the name {}", case.name);
        }
    }

    fn are_valid_scenarios(longest: usize) {
        for case in all() {
            let text = case.toml();
            if text.len() <= longest {
                let reading = read_toml(&text, &case.name);
                assert!(reading.faults.is_empty() && reading.warnings.is_empty(), "{reading:?}");
            }
        }
    }

    #[test]
    fn every_benchmark_case_of_at_most_100_kb_is_a_valid_scenario() {
        are_valid_scenarios(100_000);
    }

    #[test]
    #[ignore = "slow; the nightly job runs this test"]
    fn every_benchmark_case_is_a_valid_scenario() {
        are_valid_scenarios(usize::MAX);
    }

    #[test]
    #[ignore = "slow; the nightly job runs this test"]
    fn every_source_of_a_benchmark_scenario_sends_data() {
        for case in whole() {
            let result = run(&case);
            let stuck = result.flows.iter().filter(|flow| flow.delivered_bytes == 0).count();
            assert_eq!(stuck, 0, "{}: every source delivers data", case.name);
        }
    }

    /// Both engines assert that no cell appears or disappears.
    #[test]
    fn both_engines_give_the_same_result_for_a_random_network_of_100_switches() {
        let short = Case::whole("short", "", || Mesh::USUAL.toml("5ms"));
        let [fast, reference] = [Engine::Fast, Engine::Reference].map(|engine| engine.run_to_end(&short.network()));
        assert!(fast == reference, "{:?} {:?}", fast.cells, reference.cells);
        assert!(fast.cells.lost + fast.cells.discarded > 0 && fast.cells.delivered > 30_000, "{:?}", fast.cells);
    }

    #[test]
    fn in_the_idle_network_benchmark_the_tcp_window_limits_the_rate() {
        let result = run(&named("idle").unwrap());
        assert_eq!(result.flows[FlowIndex::new(0)].timeouts, 0);
        assert!(result.ports.iter().all(|port| port.utilisation < 1e-3));
    }

    #[test]
    fn in_the_chain_benchmark_several_connections_compete_for_every_link_between_switches() {
        let case = named("chain").unwrap();
        let result = run(&case);
        for hop in 0..4 {
            let name = format!("sw{hop}->sw{}", hop + 1);
            let port = result.ports.iter().find(|port| port.name == name).unwrap();
            assert!(port.utilisation > 0.4 && port.counters.lost() + port.counters.discarded() > 0, "{port:?}");
        }
    }
}
