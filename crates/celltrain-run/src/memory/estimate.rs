//! Estimates the memory of a run from the numbers of its nodes, links, VCs and flows.
//!
//! There are two estimates. A run whose lower bound does not fit is refused. The likely maximum, with all windows open,
//! is shown to users. The constants were measured (`docs/design/memory.md`) and need not be updated after small changes
//! of record sizes. The test `tests/memory.rs` compares both estimates with a counting allocator.

use celltrain_core::index::LinkIndex;
use celltrain_core::network::{Flow, Network};
use celltrain_core::requests::{Arrivals, RequestGroup};
use celltrain_scenario::Size;

/// Memory estimates of a run, and the numbers from which the estimates were computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// Number of hosts, switches and edge devices.
    pub nodes: u64,
    /// Number of virtual channels, including those for acknowledgements.
    pub vcs: u64,
    /// Number of links crossed, summed over all VCs.
    pub hops: u64,
    /// Expected number of requests that open during the run.
    pub requests: u64,
    /// Minimum number of requests that open during the run.
    pub certain_requests: u64,
    /// Minimum number of bytes that the run takes.
    pub least: u64,
    /// Number of bytes that the run takes if all congestion windows are open.
    pub likely: u64,
}

impl MemoryEstimate {
    /// Estimates the memory of a run from the size of its network, before the network is laid out. Each flow has two
    /// VCs, one of them for acknowledgements.
    pub fn of_size(size: &Size) -> Self {
        let &Size { nodes, links, flows, crossings, .. } = size;
        Self::of_numbers(nodes, links, flows, [flows.saturating_mul(2), crossings.saturating_mul(2)])
    }

    /// Estimates the memory of a run of a network.
    pub fn of(network: &Network) -> Self {
        let [nodes, links] = [network.nodes.len(), network.links.len()];
        let [flows, vcs] = [network.flows.len(), network.vcs.len()];
        let hops: usize = network.vcs.iter().map(|vc| vc.path.len()).sum();
        let of_records = Self::of_numbers(nodes as u64, links as u64, flows as u64, [vcs as u64, hops as u64]);
        let frames = network.flows.iter().map(|flow| window(network, flow)).fold(0, u64::saturating_add);
        // The buffers of stacks at both ends, and the bytes of packets in the network.
        let buffers =
            network.flows.iter().filter(|flow| flow.outside).map(|flow| flow.tcp.options().receive_window.bytes);
        let buffers = buffers.fold(0, u64::saturating_add);
        let [certain_requests, requests, certain_queries, queries] = requests(network);
        let least = of_records.least.saturating_add(buffers.saturating_mul(2));
        let least = least.saturating_add(certain_queries.saturating_mul(QUERY[0]));
        let in_flight = frames.saturating_mul(FRAME);
        let likely = of_records.likely.saturating_add(in_flight).saturating_add(buffers.saturating_mul(4));
        let likely = likely.saturating_add(requests.min(TIMES).saturating_mul(TIME));
        let likely = likely.saturating_add(queries.saturating_mul(QUERY[1]));
        Self { requests, certain_requests, least, likely, ..of_records }
    }

    fn of_numbers(nodes: u64, links: u64, flows: u64, [vcs, hops]: [u64; 2]) -> Self {
        let records = [(nodes, NODE), (links, LINK), (flows, FLOW), (vcs, VC), (hops, HOP)];
        let least = records.iter().fold(0, |sum: u64, (number, each)| sum.saturating_add(number.saturating_mul(*each)));
        Self { nodes, vcs, hops, least, likely: least.saturating_mul(LARGEST), ..Self::default() }
    }

    /// Adds the memory for the records of requests, for a run that stores a record of each request.
    #[must_use]
    pub fn with_records(self) -> Self {
        self.with_requests(RECORD)
    }

    /// Adds the memory for the rows of requests that the caller receives.
    #[must_use]
    pub fn with_rows(self) -> Self {
        self.with_requests(ROW)
    }

    /// Adds memory for requests, from the minimum and the likely number of bytes per request.
    fn with_requests(self, [least, likely]: [u64; 2]) -> Self {
        Self {
            least: self.least.saturating_add(self.certain_requests.saturating_mul(least)),
            likely: self.likely.saturating_add(self.requests.saturating_mul(likely)),
            ..self
        }
    }

    /// Adds the memory for the samples of recorded series. A value takes 8 bytes, and is stored twice while the series
    /// is passed to the caller.
    #[must_use]
    pub fn with_series(self, values: u64) -> Self {
        let bytes = values.saturating_mul(8);
        let [least, likely] = [(self.least, 1), (self.likely, 2)].map(|(sum, times)| sum.saturating_add(times * bytes));
        Self { least, likely, ..self }
    }

    /// Returns the message that refuses the run, with the size of its network, the `bytes` that the run needs, and the
    /// free bytes.
    pub fn in_words(&self, bytes: u64, free: u64) -> String {
        let Self { nodes, vcs, hops, requests, .. } = self;
        let (also, advice) = match requests {
            0 => (String::new(), "Use fewer connections, shorter paths or smaller windows"),
            _ => (
                format!(" and {requests} requests"),
                "Use fewer requests, rows of requests or connections, shorter paths or smaller windows",
            ),
        };
        format!(
            "{nodes} nodes and {vcs} VCs, which cross links {hops} times,{also} need more than {} of memory; a run may \
             use three quarters of the {} that are free. {advice}",
            in_units(bytes),
            in_units(free)
        )
    }
}

/// Returns the maximum number of data frames that a flow can have in flight: its window, its file, or the frames that
/// its host can send during the run. Returns 0 for flows without TCP, because the number of their packets is unlimited.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is a positive number of frames")]
fn window(network: &Network, flow: &Flow) -> u64 {
    if !flow.outside && flow.traffic.packets().is_some() {
        return 0;
    }
    let options = flow.tcp.options();
    let file = flow.traffic.bytes().map_or(u64::MAX, |file| file.bytes.div_ceil(options.mss.bytes.max(1)));
    let cells = f64::from(flow.frame(&network.aal5).1.max(1));
    let rate =
        |&link: &LinkIndex| network.links[link].rate.bits_per_second as f64 / (network.aal5.cell.bits() as f64 * cells);
    let sent = network.vcs[flow.data_vc].path.first().map_or(0.0, rate) * network.duration.seconds();
    options.window_segments().min(file).min(sent.ceil() as u64)
}

/// Returns the minimum and the expected number of requests that open during the run, followed by both numbers for
/// queries. The minimum is eight standard deviations of a Poisson process below the expected number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is a positive number of events")]
fn requests(network: &Network) -> [u64; 4] {
    let numbers = |group: &RequestGroup| {
        let (interval, each, asks) = match group.arrivals {
            Arrivals::Poisson { mean, .. } => (mean, 1, 0),
            Arrivals::Incast { interval, senders, .. } => (interval, u64::from(senders), 1),
        };
        let mean = network.duration.picoseconds / interval.picoseconds.max(1);
        let deviation = (mean as f64).sqrt().ceil() as u64;
        let certain = mean.saturating_sub(8 * deviation);
        [certain.saturating_mul(each), mean.saturating_mul(each), certain * asks, mean * asks]
    };
    let add = |sums: [u64; 4], group: [u64; 4]| std::array::from_fn(|i| sums[i].saturating_add(group[i]));
    network.requests.groups.iter().map(numbers).fold([0; 4], add)
}

/// Formats bytes with a unit, such as 1.5 GiB.
fn in_units(bytes: u64) -> String {
    let (whole, unit) = if bytes >= 1 << 30 { (1u64 << 30, "GiB") } else { (1 << 20, "MiB") };
    format!("{:.1} {unit}", bytes as f64 / whole as f64)
}

/// Bytes per node: the node's description.
const NODE: u64 = 150;
/// Bytes per link: the link's description, port and results.
const LINK: u64 = 700;
/// Bytes per flow: the flow's sender, receiver, timers and results.
const FLOW: u64 = 1000;
/// Bytes per VC: the records at its two ends.
const VC: u64 = 250;
/// Bytes per hop (a VC on a link): the VC's label, next hop, counters and state at the port.
const HOP: u64 = 60;
/// Largest ratio between the memory before any cell is in flight and the lower bound. The largest measured ratio is
/// 3.3, in networks with ABR.
const LARGEST: u64 = 4;
/// Likely number of bytes per distinct completion time of requests.
const TIME: u64 = 150;
/// Likely number of distinct completion times of requests.
const TIMES: u64 = 500_000;
/// Minimum and likely number of bytes per request: a record in the engine and one in the results, in lists whose
/// capacity has doubled.
const RECORD: [u64; 2] = [112, 240];
/// Minimum and likely number of bytes per query: a record in a list whose capacity has doubled, and the completion
/// time.
const QUERY: [u64; 2] = [32, 100];
/// Minimum and likely number of bytes per row in the table of requests, while the results still contain the record.
const ROW: [u64; 2] = [44, 340];
/// Bytes per frame in flight, in lists whose capacity has doubled.
const FRAME: u64 = 150;

#[cfg(test)]
mod tests {
    use super::*;
    use celltrain_core::index::FlowIndex;
    use celltrain_scenario::{build, read_toml};

    fn sources(number: usize, duration: &str) -> Network {
        let text = format!(
            "duration = '{duration}'\ntopology.n_source = {{sources = {number}, link_delay = '5us'}}\ntcp.vanilla = {{}}\n\
             port.bottleneck = {{buffer = 1000, policy.tail_drop = {{}}}}"
        );
        build::network(&read_toml(&text, "sources").scenario.expect("the scenario is valid"), 1)
    }

    #[test]
    fn the_memory_estimate_of_a_run_includes_every_allocation_exactly_once() {
        let estimate = MemoryEstimate::of(&sources(3, "1s"));
        let least = 8 * NODE + 14 * LINK + 3 * FLOW + 6 * VC + 18 * HOP;
        let likely = LARGEST * least + 3 * 127 * FRAME;
        let of_network = MemoryEstimate { nodes: 8, vcs: 6, hops: 18, least, likely, ..MemoryEstimate::default() };
        assert_eq!(estimate, of_network);
        assert_eq!(
            MemoryEstimate::of_size(&Size { key: ("sources", 3), nodes: 8, links: 14, flows: 3, crossings: 9 }),
            MemoryEstimate { likely: LARGEST * least, ..estimate }
        );
        let recorded = estimate.with_series(1000);
        assert_eq!([recorded.least - least, recorded.likely - likely], [8000, 16_000]);
        let words = estimate.in_words(7 << 30, 5 << 20);
        assert!(words.starts_with(
            "8 nodes and 6 VCs, which cross links 18 times, need more than 7.0 GiB of memory; a run may use three quarters of the 5.0 MiB"
        ));
    }

    #[test]
    fn the_memory_estimate_doubles_if_the_size_of_the_network_doubles() {
        let [one, two] = [1000, 2000].map(|number| MemoryEstimate::of(&sources(number, "1ms")));
        for (one, two) in [(one.least, two.least), (one.likely, two.likely)] {
            assert!((1.9..2.1).contains(&(two as f64 / one as f64)), "{one} {two}");
        }
    }

    #[test]
    fn the_minimum_and_likely_memory_estimates_and_the_error_message_include_requests() {
        let of = |duration: &str| {
            let text = format!(
                "duration = '{duration}'\ntopology.n_source = {{sources = 8, link_delay = '5us', link_rate = '10Gbps'}}\n\
                 tcp.vanilla = {{}}\nport.default = {{buffer = 1000, policy.tail_drop = {{}}}}\n\
                 requests.web = {{load = 0.5, sizes = '1B'}}"
            );
            MemoryEstimate::of(&build::network(
                &read_toml(&text, "requests").scenario.expect("the scenario is valid"),
                1,
            ))
        };
        let (short, long) = (of("1ms"), of("1000s"));
        let times = long.requests / short.requests;
        assert!((999_000..1_001_000).contains(&times), "{times}");
        assert!(long.certain_requests < long.requests && long.certain_requests > long.requests / 1000 * 999);
        assert_eq!(long.with_rows().least - long.least, 44 * long.certain_requests);
        let machine = crate::memory::Machine { memory: Some(64 << 30) };
        assert_eq!([short, long].map(|estimate| machine.fits(&estimate)), [Ok(()), Ok(())]);
        assert_eq!(machine.fits(&short.with_records()), Ok(()));
        let words = machine.fits(&long.with_records()).expect_err("a run of hundreds of gigabytes is refused");
        assert!(words.contains(&format!("times, and {} requests need more than", long.requests)), "{words}");
        assert!(
            words.ends_with("Use fewer requests, rows of requests or connections, shorter paths or smaller windows"),
            "{words}"
        );
    }

    #[test]
    fn the_estimated_data_in_flight_is_limited_by_the_window_the_file_and_the_run() {
        // 65535 bytes are 127 segments of 512 bytes. A segment is 12 cells, so a host sends 30,566 segments a second.
        assert_eq!(window(&sources(1, "1s"), &sources(1, "1s").flows[FlowIndex::new(0)]), 127);
        assert_eq!(window(&sources(1, "1ms"), &sources(1, "1ms").flows[FlowIndex::new(0)]), 31);
        let of = |traffic: &str| {
            let mut network = sources(1, "1s");
            network.flows[FlowIndex::new(0)].traffic = serde_json::from_str(traffic).unwrap();
            window(&network, &network.flows[FlowIndex::new(0)])
        };
        assert_eq!(of(r#"{"file": {"bytes": "1025B"}}"#), 3);
        assert_eq!(of(r#"{"constant_rate": {"rate": "4.24Mbps", "packet": "520B"}}"#), 0);
    }
}
