//! The networks of the benchmark scenarios, as scenario text.

use std::collections::BTreeSet;
use std::fmt::Write;

use celltrain_core::rng::Stream;

macro_rules! line {
    ($text:ident, $($line:tt)*) => { writeln!($text, $($line)*).expect("writing to a string cannot fail") };
}

pub(crate) const INFINITE: &str = "\"infinite\"";
pub(crate) const TAIL_DROP: &str = "tail_drop = {}";

/// N sources that share one port.
#[derive(Clone, Copy)]
pub(crate) struct NSource<'a> {
    pub(crate) sources: u32,
    pub(crate) delay: &'a str,
    pub(crate) window: &'a str,
    pub(crate) buffer: &'a str,
    pub(crate) policy: &'a str,
}

impl NSource<'_> {
    pub(crate) const LAN: NSource<'static> =
        NSource { sources: 5, delay: "5us", window: "65535B", buffer: INFINITE, policy: TAIL_DROP };
    pub(crate) const WAN: NSource<'static> = NSource { delay: "5ms", window: "600000B", ..NSource::LAN };

    pub(crate) fn toml(self, duration: &str) -> String {
        let NSource { sources, delay, window, buffer, policy } = self;
        format!(
            r#"duration = "{duration}"

[topology.n_source]
sources = {sources}
link_delay = "{delay}"

[tcp.vanilla]
receive_window = "{window}"

[port.bottleneck]
buffer = {buffer}
policy.{policy}
"#
        )
    }
}

/// A network given as lists. `hosts` and `switches` are complete lists; `links` and `flows` contain only the items of
/// lists.
struct Listed<'a> {
    hosts: String,
    switches: String,
    links: String,
    flows: String,
    tcp: &'a str,
    buffer: &'a str,
    policy: &'a str,
}

impl Listed<'_> {
    fn toml(self, duration: &str) -> String {
        format!("duration = \"{duration}\"\n{}", self.body())
    }

    /// Returns the scenario text without the duration.
    fn body(self) -> String {
        let Listed { hosts, switches, links, flows, tcp, buffer, policy } = self;
        format!(
            r"
[topology.network]
hosts = {hosts}
switches = {switches}
links = [
{links}]
flows = [
{flows}]

[tcp.{tcp}]

[port.default]
buffer = {buffer}
policy.{policy}
"
        )
    }
}

/// Returns groups of sources, each group behind a local switch and with a destination host of its own. A group's VCs
/// merge into one in the local switch, or stay separate.
pub(crate) fn groups(vcs: u32, per_vc: u32, merge: bool, duration: &str) -> String {
    let (mut hosts, mut switches) = (Vec::new(), vec!["sw1".to_string(), "sw2".to_string()]);
    let mut links = vec![["sw1".to_string(), "sw2".to_string()]];
    let mut flows = String::new();
    for group in 1..=vcs {
        let (local, to) = (format!("local{group}"), format!("to{group}"));
        let vc = if merge { format!(", vc = \"vc{group}\"") } else { String::new() };
        for i in 1..=per_vc {
            let host = format!("host{group}-{i}");
            links.push([host.clone(), local.clone()]);
            line!(flows, r#"    {{ from = "{host}", to = "{to}"{vc} }},"#);
            hosts.push(host);
        }
        links.push([local.clone(), "sw1".into()]);
        links.push(["sw2".into(), to.clone()]);
        hosts.push(to);
        switches.push(local);
    }
    let link = |between: &[String; 2]| format!("    {{ between = {between:?}, delay = \"5us\" }},\n");
    let links = links.iter().map(link).collect();
    let (hosts, switches) = (format!("{hosts:?}"), format!("{switches:?}"));
    let network = Listed { hosts, switches, links, flows, tcp: "vanilla", buffer: INFINITE, policy: TAIL_DROP };
    network.toml(duration)
}

/// Returns N sources in IP networks around an ATM network, as in draft-jagan. They start one after another. `control`
/// is `ubr`, or selects how ABR controls rates: `efci`, `er` (explicit rates) or `ada` (explicit rates, and edge
/// devices that drop early).
pub(crate) fn internetwork(sources: u32, control: &str, duration: &str) -> String {
    let (discard, policy, allocator) = match control {
        "ubr" => ("tail_drop = {}", "policy.epd = { threshold = 700 }", ""),
        "efci" => ("tail_drop = {}", "policy.tail_drop = {}", "allocator.efci = { threshold = 250 }"),
        "er" => ("tail_drop = {}", "policy.tail_drop = {}", "allocator.equal_share = {}"),
        "ada" => ("adaptive_discard = {}", "policy.tail_drop = {}", "allocator.equal_share = {}"),
        other => unreachable!("{other} is not a kind of rate control"),
    };
    let mut toml = format!(
        r#"duration = "{duration}"

[topology.internetwork]
sources = {sources}
ip_delay = "3ms"
atm_delay = "3ms"

[tcp.newreno_hoe]
mss = "1460B"
receive_window = "655360B"

[edge."*"]
buffer = 500
discard.{discard}

[port."sw*->sw*"]
buffer = 1000
{policy}
{allocator}
"#
    );
    if control != "ubr" {
        write!(toml, "\n[vc.\"tcp1-{sources}\".abr]\nrif = 0.03125\nrdf = 0.03125\n")
            .expect("writing to a string cannot fail");
    }
    for flow in 2..=sources {
        write!(toml, "\n[flow.tcp{flow}]\nstart = \"{}ms\"\n", 10 * (flow - 1))
            .expect("writing to a string cannot fail");
    }
    toml
}

/// Returns a chain of switches joined by `trunks` links. Two connections cross all trunks, and each trunk has two
/// connections of its own.
pub(crate) fn chain(trunks: u32, duration: &str) -> String {
    let (mut hosts, mut links, mut flows) = (String::new(), String::new(), String::new());
    let mut flow = |name: String, first: u32, last: u32| {
        write!(hosts, r#""{name}", "to-{name}", "#).expect("writing to a string cannot fail");
        line!(links, r#"    {{ between = ["{name}", "sw{first}"], delay = "5us" }},"#);
        line!(links, r#"    {{ between = ["sw{last}", "to-{name}"], delay = "5us" }},"#);
        line!(flows, r#"    {{ name = "{name}", from = "{name}", to = "to-{name}" }},"#);
    };
    for i in 1..=2 {
        flow(format!("long{i}"), 0, trunks);
        for hop in 0..trunks {
            flow(format!("cross{hop}-{i}"), hop, hop + 1);
        }
    }
    for hop in 0..trunks {
        line!(links, r#"    {{ between = ["sw{hop}", "sw{}"], delay = "100us" }},"#, hop + 1);
    }
    let switches: Vec<String> = (0..=trunks).map(|i| format!("\"sw{i}\"")).collect();
    let (hosts, switches) = (format!("[{hosts}]"), format!("[{}]", switches.join(", ")));
    let policy = "selective_drop = { threshold = 0.9, z = 0.8 }";
    Listed { hosts, switches, links, flows, tcp: "vanilla", buffer: "4000", policy }.toml(duration)
}

/// A random network: a ring of switches, plus trunks between random pairs; a quarter of the trunks are four times as
/// fast. Each connection has its own two hosts at random switches.
#[derive(Clone, Copy)]
pub(crate) struct Mesh {
    pub(crate) switches: u32,
    /// Mean number of trunks per switch. The actual mean is lower if several trunks were drawn between the same two
    /// switches, since only one of them is kept.
    pub(crate) degree: u32,
    pub(crate) vcs: u32,
}

impl Mesh {
    /// The network in the main table of results.
    pub(crate) const USUAL: Mesh = Mesh { switches: 100, degree: 4, vcs: 1000 };

    pub(crate) fn toml(self, duration: &str) -> String {
        format!("duration = \"{duration}\"\n{}", self.body())
    }
}

/// Returns a row of switches. Connections enter at each switch and all leave at the last, so the load grows from trunk
/// to trunk.
pub(crate) fn parking_lot(switches: u32, each: u32, delay: &str, duration: &str) -> String {
    let (mut hosts, mut links, mut flows) = (String::new(), String::new(), String::new());
    for switch in 1..switches {
        line!(links, r#"    {{ between = ["sw{switch}", "sw{}"], delay = "{delay}" }},"#, switch + 1);
        for i in 1..=each {
            let name = format!("{switch}-{i}");
            write!(hosts, r#""from{name}", "to{name}", "#).expect("writing to a string cannot fail");
            line!(links, r#"    {{ between = ["from{name}", "sw{switch}"], delay = "5us" }},"#);
            line!(links, r#"    {{ between = ["sw{switches}", "to{name}"], delay = "5us" }},"#);
            line!(flows, r#"    {{ from = "from{name}", to = "to{name}" }},"#);
        }
    }
    let names: Vec<String> = (1..=switches).map(|i| format!("\"sw{i}\"")).collect();
    let (hosts, switches) = (format!("[{hosts}]"), format!("[{}]", names.join(", ")));
    let policy = "epd = { threshold = 800 }";
    Listed { hosts, switches, links, flows, tcp: "reno", buffer: "1000", policy }.toml(duration)
}

impl Mesh {
    /// Returns the scenario text without a duration.
    fn body(self) -> String {
        let Mesh { switches, degree, vcs } = self;
        let mut draws = Stream::new(1, "bench/mesh");
        let mut joined = BTreeSet::new();
        let mut trunks = String::new();
        let ring = (0..switches).map(|i| (i, (i + 1) % switches));
        let mut pairs: Vec<(u32, u32)> = ring.collect();
        while pairs.len() < (degree * switches / 2) as usize {
            pairs.push((draws.below(switches), draws.below(switches)));
            pairs.retain(|&(a, b)| a != b);
        }
        for (a, b) in pairs {
            if joined.insert((a.min(b), a.max(b))) {
                let rate = if draws.below(4) == 0 { "622.08Mbps" } else { "155.52Mbps" };
                line!(trunks, r#"    {{ between = ["sw{a}", "sw{b}"], rate = "{rate}", delay = "100us" }},"#);
            }
        }
        let (mut hosts, mut links, mut ends) = (String::new(), String::new(), String::new());
        for i in 0..vcs {
            let from = draws.below(switches);
            let to = (from + 1 + draws.below(switches - 1)) % switches;
            write!(hosts, r#""from{i}", "to{i}", "#).expect("writing to a string cannot fail");
            line!(links, r#"    {{ between = ["from{i}", "sw{from}"], delay = "5us" }},"#);
            line!(links, r#"    {{ between = ["sw{to}", "to{i}"], delay = "5us" }},"#);
            line!(ends, r#"    {{ from = "from{i}", to = "to{i}" }},"#);
        }
        let switches: Vec<String> = (0..switches).map(|i| format!("\"sw{i}\"")).collect();
        let (hosts, switches) = (format!("[{hosts}]"), format!("[{}]", switches.join(", ")));
        let links = trunks + &links;
        let policy = "epd = { threshold = 800 }";
        Listed { hosts, switches, links, flows: ends, tcp: "reno", buffer: "1000", policy }.body()
    }
}

/// Returns a switch whose ports share 8000 cells by Dynamic Threshold. Each host sends endless data to the next. All
/// hosts also send bursts to every eighth host; each host sends its next burst 4 ms after the acknowledgement of the
/// last one.
pub(crate) fn shared_memory(hosts: u32, rate: &str, policy: &str, duration: &str) -> String {
    let (mut names, mut links, mut flows, mut bursts) = (Vec::new(), String::new(), String::new(), Vec::new());
    for i in 0..hosts {
        names.push(format!("h{i}"));
        line!(links, r#"    {{ between = ["h{i}", "sw"], rate = "{rate}", delay = "1us" }},"#);
        line!(flows, r#"    {{ name = "steady{i}", from = "h{i}", to = "h{}" }},"#, (i + 1) % hosts);
    }
    for to in (0..hosts).step_by(8) {
        for from in (0..hosts).filter(|&from| from != to) {
            let name = format!("burst{to}-{from}");
            line!(flows, r#"    {{ name = "{name}", from = "h{from}", to = "h{to}" }},"#);
            bursts.push(name);
        }
    }
    let (hosts, switches, tcp) = (format!("{names:?}"), "[\"sw\"]".into(), "newreno");
    let network = Listed { hosts, switches, links, flows, tcp, buffer: "\"shared\"", policy: "ppd = {}" };
    let mut toml = network.toml(duration).replace("[tcp.newreno]", NEWRENO_OF_A_DATA_CENTRE);
    write!(toml, "\n[switch.sw.memory]\ncells = 8000\npool.main.policy.{policy}\n")
        .expect("writing to a string cannot fail");
    for name in bursts {
        write!(toml, "\n[flow.{name}.traffic.bursts]\nbytes = \"40kB\"\npause = \"4ms\"\n")
            .expect("writing to a string cannot fail");
    }
    toml
}

/// Returns the scenario `memory-lossless` from its duration on.
pub(crate) fn pausing_star() -> String {
    let toml = include_str!("../../../scenarios/memory-lossless.toml");
    let (_, body) = toml.split_once("duration").expect("the scenario has a duration");
    format!("duration{body}")
}

/// Returns the switch of [`shared_memory`], which pauses its hosts' links instead of losing cells.
pub(crate) fn pausing_memory(hosts: u32, rate: &str, duration: &str) -> String {
    let lossless = r#"cells = 8000
pauses = "links"
pool.lossless = { side = "ingress", policy.dynamic_threshold = { alpha = 1.0 } }
queue = [{ pool = "lossless", lossless = true, headroom = 60, xon_offset = 4 }]
"#;
    shared_memory(hosts, rate, "complete_sharing = {}", duration).replacen("cells = 8000\n", lossless, 1)
}

const NEWRENO_OF_A_DATA_CENTRE: &str = r#"[tcp.newreno]
mss = "1460B"
receive_window = "65535B"
timer_granularity = "1ms"
timer.initial_rto = "10ms"
"#;
