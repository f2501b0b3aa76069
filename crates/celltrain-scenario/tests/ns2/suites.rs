//! The tests of ns-2's suites, and the equivalent networks in celltrain.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

use celltrain_core::tcp::{ReceiverRules, RecoveryRules, Rules, TimerRules, WindowRules};
use serde_json::Value;

use super::rules::Rule;
use super::traces::Trace;

/// A test of an ns-2 validation suite.
#[derive(Clone, Debug)]
pub(super) struct Test {
    pub(super) suite: String,
    pub(super) name: String,
    /// Name of the TCP in ns-2.
    pub(super) tcp: String,
    /// Numbers of the packets that the bottleneck loses.
    pub(super) lost: Vec<u64>,
    settings: BTreeMap<String, String>,
}

/// Reads all tests from `tests.csv`.
pub(super) fn tests() -> Vec<Test> {
    let text = std::fs::read_to_string(super::folder().join("tests.csv")).unwrap();
    let mut defaults: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    let mut tests = Vec::new();
    for line in text.lines().skip(1) {
        let [suite, name, tcp, lost, settings] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let settings = settings.split("; ").filter_map(|one| one.split_once(' '));
        let mut all = defaults.get(suite).or(defaults.get("*")).cloned().unwrap_or_default();
        all.extend(settings.map(|(key, value)| (key.to_string(), value.to_string())));
        if name == "*" {
            defaults.insert(suite, all);
            continue;
        }
        let [suite, name, tcp] = [suite, name, tcp].map(str::to_string);
        tests.push(Test { suite, name, tcp, lost: numbers(lost), settings: all });
    }
    tests
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|number| number.parse().expect("the value is a number")).collect()
}

/// A link: rate in bits per second and delay in seconds.
struct Link {
    rate: f64,
    delay: f64,
}

impl Test {
    fn get(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(String::as_str)
    }

    /// Returns whether a setting of the test is true.
    pub(super) fn is(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value != "0")
    }

    /// Returns whether the receiver delays acknowledgements.
    pub(super) fn delays_acks(&self) -> bool {
        self.get("delayed_ack").is_some()
    }

    /// Returns a setting whose value is a number.
    pub(super) fn number(&self, key: &str) -> f64 {
        let value = self.get(key).unwrap_or_else(|| panic!("{} has {key}", self.name));
        value.parse().unwrap_or_else(|_| panic!("{key} {value} is a number"))
    }

    fn link(&self, key: &str) -> Link {
        let (rate, delay) =
            self.get(key).and_then(|link| link.split_once(' ')).expect("the link has a rate and a delay");
        let scaled = |text: &str, units: [(&str, f64); 2]| -> f64 {
            let (number, unit) = units.iter().find_map(|(end, unit)| Some((text.strip_suffix(end)?, unit))).unwrap();
            number.parse::<f64>().unwrap() * unit
        };
        Link { rate: scaled(rate, [("Mb", 1e6), ("Kb", 1e3)]), delay: scaled(delay, [("ms", 1e-3), ("s", 1.0)]) }
    }

    /// Returns celltrain's TCP variant for the test.
    pub(super) fn variant(&self) -> &'static str {
        match self.tcp.as_str() {
            "Tahoe" if self.is("noFastRetrans_") => "vanilla",
            "Tahoe" | "FullTcpTahoe" => "tahoe",
            "Reno" | "FullTcp" => "reno",
            "Newreno" | "FullTcpNewreno" => "newreno",
            _ => "sack_pipe",
        }
    }

    /// Returns the reason why celltrain cannot model the test; `None` if celltrain can model it.
    pub(super) fn missing(&self) -> Option<&'static str> {
        if self.tcp == "Fack" {
            Some("forward acknowledgements (FACK)")
        } else if self.tcp == "SackRH" {
            Some("rate halving")
        } else if self.is("partial_ack_") {
            Some("the experiment `partial_ack_`")
        } else if self.is("numdupacksFrac_") {
            Some("the experiment `numdupacksFrac_`, where cwnd determines the number of duplicates")
        } else if self.is("ecn_") {
            Some("ECN marks on listed packets")
        } else {
            None
        }
    }

    /// Length of a packet with its headers, in bytes.
    fn bytes(&self) -> u32 {
        if self.tcp.starts_with("Full") {
            return 576;
        }
        1000 + if self.is("useHeaders_") { 40 } else { 0 } + if self.is("timestamps_") { 10 } else { 0 }
    }

    /// Bits of a packet.
    fn bits(&self) -> f64 {
        f64::from(self.bytes() * 8)
    }

    /// Number of cells in a packet if an acknowledgement takes one cell.
    fn cells(&self) -> u32 {
        (self.bytes() + ACK / 2) / ACK
    }

    /// Payload that exactly fills the cells of a packet.
    pub(super) fn mss(&self) -> u64 {
        48 * u64::from(self.cells() - 1)
    }

    /// Returns the access link of a connection in celltrain, in both directions. On a shared link, two connections
    /// would mix the cells of their packets. So with two connections, TCP paces the packets, which wait for the time
    /// that the link takes in ns-2 and then cross the link almost instantly.
    fn access_links(&self, flow: usize) -> [Link; 2] {
        let Link { rate, delay } = self.link(&self.of("access", flow));
        [self.bytes(), ACK].map(|bytes| match self.flows() {
            1 => Link { rate, delay },
            _ => Link { rate: rate * 1000.0, delay: delay + f64::from(bytes * 8) / rate },
        })
    }

    /// Seconds from a packet's first cell to its last cell on an access link.
    fn rest(&self) -> f64 {
        (1.0 - 1.0 / f64::from(self.cells())) * self.bits() / self.access_links(1)[0].rate
    }

    /// Seconds that a packet takes on the access link of a connection, and the delay of that link.
    pub(super) fn access(&self, flow: usize) -> [f64; 2] {
        let link = self.link(&self.of("access", flow));
        [self.bits() / link.rate, link.delay]
    }

    /// Additional delay of packets of the first connection on the access link, in seconds, by the number of the packet.
    /// ns-2 does not count lost packets.
    pub(super) fn delays(&self) -> BTreeMap<u64, f64> {
        let counted = (0..).filter(|number| !self.lost.contains(number));
        let late = self.get("delayed").map(numbers).unwrap_or_default();
        let of_late = counted.enumerate().take(1000).filter(|(count, _)| late.contains(&(*count as u64)));
        of_late.map(|(_, number)| (number - self.first(), self.number("delay_"))).collect()
    }

    /// Number of the first compared packet. In celltrain, connections are already open, so the SYN, which is ns-2's
    /// first packet of a connection that opens, has no counterpart.
    pub(super) fn first(&self) -> u64 {
        u64::from(self.is("syn_"))
    }

    /// Number of connections.
    pub(super) fn flows(&self) -> usize {
        if self.get("window2").is_some() { 2 } else { 1 }
    }

    /// Returns the key of a setting for connection `flow`, counted from 1.
    fn of(&self, key: &str, flow: usize) -> String {
        let own = format!("{}{flow}", key.trim_end_matches('_'));
        if flow > 1 && self.get(&own).is_some() { own } else { key.to_string() }
    }

    /// Time in seconds at which a connection sends its first compared packet.
    fn start(&self, flow: usize, trace: &Trace) -> f64 {
        let first = |what: &str| {
            trace.get(&format!("{what}{flow}")).map(|packets| packets[usize::try_from(self.first()).unwrap()].time)
        };
        let at_bottleneck = || first("data").map(|time| time - self.access(flow).iter().sum::<f64>());
        self.phase() + first("sent").or_else(at_bottleneck).expect("the trace contains the sent packets")
    }

    /// Number of seconds by which the run is later than the test in ns-2. celltrain's clocks tick at multiples of the
    /// tick. ns-2's clocks tick 0.555 of a tick earlier, as the round-trip times that ns-2 measures show.
    pub(super) fn phase(&self) -> f64 {
        0.555 * self.number("tcpTick_")
    }

    /// Number of seconds by which the times of a packet may differ: half of the packet's transmission time at the
    /// bottleneck.
    pub(super) fn tolerance(&self) -> f64 {
        self.bits() / self.link("bottleneck").rate / 2.0
    }

    /// Returns the scenario of the test with the given rules of ns-2.
    pub(super) fn scenario(&self, rules: &[&Rule], trace: &Trace) -> String {
        let bottleneck = self.link("bottleneck");
        // A cell takes the same fraction of a packet's time as in ns-2.
        let cells = f64::from(self.cells());
        let rate = |rate: f64| (rate * cells * 424.0 / self.bits()).round();
        let picoseconds = |seconds: f64| format!("{:.0}ps", seconds * 1e12);
        // ns-2 receives a whole packet before it forwards the packet, whereas celltrain forwards the first cell at
        // once. So the delay of the bottleneck link includes the difference.
        let (there, back) = (picoseconds(bottleneck.delay + self.rest()), picoseconds(bottleneck.delay));
        let mut text = format!(
            "duration = \"{end:.0}us\"\naal5.encapsulation = \"vc_mux\"\n\
             switch.tie_order = \"fixed\"\nswitch.service_order = \"before_arrivals\"\n\
             [topology.network]\nhosts = [\"s1\", \"s2\", \"k1\"]\nswitches = [\"r1\"]\nbottleneck = \"r1->k1\"\n\
             [[topology.network.links]]\nbetween = [\"r1\", \"k1\"]\nrate = \"{slow}bps\"\n\
             delay = \"{there}\"\ndelay_back = \"{back}\"\n",
            // The run lasts half a second longer than the test, because its packets are later than in ns-2.
            end = (self.number("end") + 0.5) * 1e6,
            slow = rate(bottleneck.rate),
        );
        for flow in 1..=2 {
            let [there, back] = self.access_links(flow);
            let (rate, delay, back) = (rate(there.rate), picoseconds(there.delay), picoseconds(back.delay));
            let delays = format!("delay = \"{delay}\"\ndelay_back = \"{back}\"\n");
            let link = format!("between = [\"s{flow}\", \"r1\"]\nrate = \"{rate}bps\"\n{delays}");
            write!(text, "[[topology.network.links]]\n{link}").unwrap();
        }
        for flow in 1..=self.flows() {
            // Each connection starts a microsecond after the previous connection, so that the first connection is
            // served first.
            let start = picoseconds(self.start(flow, trace) + flow as f64 * 1e-6);
            let ends = format!("from = \"s{flow}\"\nto = \"k1\"\nstart = \"{start}\"\n");
            write!(text, "[[topology.network.flows]]\n{ends}").unwrap();
        }
        let mut lost =
            BTreeMap::from([("s1->r1".to_string(), self.lost.iter().map(|number| number - self.first()).collect())]);
        if rules.iter().any(|rule| rule.lists_losses()) {
            text.push_str("[port.bottleneck]\nbuffer = \"infinite\"\npolicy.tail_drop = {}\n");
            for flow in 1..=self.flows() {
                let packets = trace[&format!("data{flow}")].iter().skip(usize::try_from(self.first()).unwrap());
                let lost_of = (0..).zip(packets).filter(|(_, packet)| packet.lost).map(|(number, _)| number);
                lost.insert(format!("s{flow}->r1"), lost_of.collect::<Vec<_>>());
            }
        } else {
            // ns-2 drops a packet if its queue has no room for it. The queue does not include the packet in
            // transmission.
            let least = (self.number("queue") - 1.0) * cells;
            let (buffer, threshold) = (least + 3.0 * cells, least - 1.0);
            write!(text, "[port.bottleneck]\nbuffer = {buffer}\npolicy.epd.threshold = {threshold}\n").unwrap();
        }
        text.push_str("[port.default]\nbuffer = \"infinite\"\npolicy.tail_drop = {}\n");
        let acks = self.get("lost_acks").map(numbers).unwrap_or_default();
        lost.insert("k1->r1".to_string(), acks.iter().map(|number| number - self.first()).collect());
        let mut links: BTreeMap<_, String> = BTreeMap::new();
        for (link, lost) in lost.iter().filter(|(_, lost)| !lost.is_empty()) {
            let flow = if link.starts_with("s2") { 2 } else { 1 };
            let rules = format!("lose = [{{ flow = \"tcp{flow}\", packets = {lost:?} }}]\n");
            links.insert(link.as_str(), rules);
        }
        let late = self.delays().into_iter();
        let late = late
            .map(|(packet, by)| format!("{{ flow = \"tcp1\", packets = [{packet}], by = \"{}\" }}", picoseconds(by)));
        let late = late.collect::<Vec<_>>();
        if !late.is_empty() {
            writeln!(links.entry("s1->r1").or_default(), "delay = [{}]", late.join(", ")).unwrap();
        }
        for (link, rules) in links {
            write!(text, "[link.\"{link}\"]\n{rules}").unwrap();
        }
        for flow in 1..=self.flows() {
            let packets = ["packets", "packets2"][flow - 1];
            if self.get(packets).is_some() {
                let bytes = self.number(packets) * self.mss() as f64;
                writeln!(text, "[flow.tcp{flow}.traffic.file]\nbytes = \"{bytes}B\"").unwrap();
            }
            let variant = self.variant();
            let window = self.number(&self.of("window_", flow));
            let mut options = self.options(window, rules);
            if self.flows() > 1 {
                let rate = rate(self.link(&self.of("access", flow)).rate);
                options.insert("pacing_rate", format!("\"{rate}bps\""));
            }
            let options = options.iter().map(|(key, value)| format!("{key} = {value}\n"));
            write!(text, "[flow.tcp{flow}.tcp.{variant}]\n{}", options.collect::<String>()).unwrap();
        }
        text
    }

    /// Returns the options of a TCP with a window of `window` segments: the profile of ns-2, and all differences from
    /// this profile.
    fn options(&self, window: f64, rules: &[&Rule]) -> BTreeMap<&'static str, String> {
        let quoted = |text: &str| format!("\"{text}\"");
        let tick = self.number("tcpTick_");
        let ticks = |seconds: f64| (seconds / tick).round().max(2.0);
        let mut options = BTreeMap::from([
            ("rules", quoted("ns2")),
            ("mss", format!("\"{}B\"", self.mss())),
            ("receive_window", format!("\"{}B\"", window * self.mss() as f64)),
            ("timer_granularity", format!("\"{}ms\"", tick * 1e3)),
            ("timer.resolution", quoted("1ms")),
            ("minimum_rto", ticks(self.number("minrto_")).to_string()),
            ("timer.maximum_rto", quoted("60s")),
            ("initial_window", self.number("windowInit_").to_string()),
            ("windows.ssthresh_rule", quoted("half_of_window")),
            (
                "windows.ssthresh_arithmetic",
                quoted(if self.is("precisionReduce_") { "fractions" } else { "whole_segments" }),
            ),
            ("recovery.fast_retransmit", quoted(self.fast_retransmit())),
            (
                "recovery.partial_acks",
                quoted(if self.is("partial_window_deflation_") { "deflate" } else { "drop_inflation" }),
            ),
            ("recovery.partial_ack_timer", quoted(if self.is("newreno_changes1_") { "first" } else { "every" })),
            ("recovery.limited_transmit", quoted(if self.is("singledup_") { "on" } else { "off" })),
            // Set celltrain's defaults, which the rules of ns-2 below replace.
            ("recovery.end", quoted("hold")),
            ("recovery.window", quoted("ssthresh")),
            ("recovery.full_acks", quoted("ssthresh")),
            ("recovery.pipe", quoted("paper")),
            ("timer.rtt_arithmetic", quoted("bsd_integers")),
            ("receiver.repeated_acks", quoted("at_once")),
        ]);
        // The SYN's round trip determines the first timeout: three times the round trip, which is at least a tick.
        let initial = if self.is("syn_") { 3.0 * tick } else { 6.0 };
        options.insert(
            "timer.initial_rto",
            format!("\"{}ms\"", (initial.max(ticks(self.number("minrto_")) * tick)) * 1e3),
        );
        if self.is("exit_recovery_fix_") {
            options.insert("recovery.full_acks", quoted("flight"));
        }
        if self.is("maxburst_") {
            options.insert("windows.max_burst", self.number("maxburst_").to_string());
        }
        if let Some(time) = self.get("delayed_ack") {
            options.insert("delayed_acks", quoted("timer"));
            options.insert("receiver.delayed_ack_time", quoted(time));
            options.insert(
                "receiver.gap_acks",
                quoted(if self.is("RFC2581_immediate_ack_") { "at_once" } else { "delayed" }),
            );
        }
        for rule in rules.iter().filter(|rule| !rule.lists_losses()) {
            let (key, value) = rule.options.split_once(" = ").expect("the rule has the form key = value");
            options.insert(key, value.to_string());
        }
        options.retain(|key, value| profile().get(*key) != Some(value));
        options
    }

    fn fast_retransmit(&self) -> &'static str {
        match () {
            () if !self.is("bugFix_") || self.tcp == "FullTcp" => "always",
            () if self.is("lessCareful_") => "less_careful",
            () if self.is("bugFix_ack_") => "ack_heuristic",
            () => "careful",
        }
    }
}

/// Returns the values of ns-2's profile, as in a scenario.
fn profile() -> &'static BTreeMap<String, String> {
    static PROFILE: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let groups = [
            ("recovery", serde_json::to_value(RecoveryRules::of(Rules::Ns2))),
            ("receiver", serde_json::to_value(ReceiverRules::of(Rules::Ns2))),
            ("timer", serde_json::to_value(TimerRules::of(Rules::Ns2))),
            ("windows", serde_json::to_value(WindowRules::of(Rules::Ns2))),
        ];
        let of_group = |(group, rules): (&str, serde_json::Result<Value>)| {
            let rules = rules.expect("rules have a form in JSON").as_object().cloned().unwrap_or_default();
            rules.into_iter().map(|(key, value)| (format!("{group}.{key}"), value.to_string())).collect::<Vec<_>>()
        };
        groups.into_iter().flat_map(of_group).collect()
    });
    &PROFILE
}

/// Length of an acknowledgement in bytes.
const ACK: u32 = 40;
