//! Trials: a few senders and a bottleneck, for the tests of a stack.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::Duration;

use celltrain_core::engine::Engine;
use celltrain_core::index::FlowIndex;
use celltrain_core::link_loss::{LossPattern, LossRule, LossUnit};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Flow, Graph, Network, NodeKind, Vc};
use celltrain_core::policy::{PolicyConfig, epd};
use celltrain_core::probe::Nothing;
use celltrain_core::tcp::{TcpConfig, TcpOptions};
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::{self, BitRate, Bytes, Time};

use crate::capture::{self, Captured, End, MOST_BYTES, Window};
use crate::driver::{HostedFlow, Hosts};
use crate::outcome::Outcome;
use crate::seen::{Seen, Step};
use crate::stack::{Endpoint, Stack};

/// A network in which senders share the buffer of a switch, for tests of a stack.
///
/// Each sender reaches its receiver over two switches. All links have the same rate, 155.52 Mb/s by default. The first
/// switch has the buffer, by default 1000 cells with EPD above 800.
#[derive(Clone, Debug)]
pub struct Trial {
    senders: usize,
    link_rate: BitRate,
    round_trip: Duration,
    buffer: u32,
    policy: PolicyConfig,
    duration: Duration,
    seed: u64,
    mss: u64,
    /// Numbers of the packets to lose, for each flow with losses.
    losses: Vec<(usize, Vec<u64>)>,
    /// The part of a failing run to capture, if one was selected.
    window: Option<Window>,
}

impl Trial {
    /// Creates a trial on a LAN with a round trip of 30 us, a duration of 5 s and segments of 512 bytes.
    pub fn new(senders: usize) -> Self {
        Self {
            senders,
            link_rate: BitRate::from_bits_per_second(155_520_000),
            round_trip: Duration::from_micros(30),
            buffer: 1000,
            policy: PolicyConfig::Epd(epd::Config::default()),
            duration: Duration::from_secs(5),
            seed: 1,
            mss: 512,
            losses: Vec::new(),
            window: None,
        }
    }

    /// Sets the rate of all links, in bits per second.
    #[must_use]
    pub fn link_rate(self, bits_per_second: u64) -> Self {
        Self { link_rate: BitRate::from_bits_per_second(bits_per_second), ..self }
    }

    /// Sets the propagation delay of a round trip.
    #[must_use]
    pub fn round_trip(self, round_trip: Duration) -> Self {
        Self { round_trip, ..self }
    }

    /// Sets the switch's buffer, in cells.
    #[must_use]
    pub fn buffer(self, cells: u32) -> Self {
        Self { buffer: cells, ..self }
    }

    /// Sets the policy of the switch's buffer.
    #[must_use]
    pub fn policy(self, policy: impl Into<PolicyConfig>) -> Self {
        Self { policy: policy.into(), ..self }
    }

    /// Sets the length of the run.
    #[must_use]
    pub fn duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// Sets the seed of all random numbers.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets the payload of a full packet in bytes, with headers of 40 bytes. Efficiency is relative to the goodput of a
    /// link filled with such packets.
    #[must_use]
    pub fn mss(self, bytes: u64) -> Self {
        Self { mss: bytes, ..self }
    }

    /// Loses packets of a flow's sender on the link to the first switch. Flows are numbered from 0, as in the result,
    /// and packets from 0 in sending order, including handshake and retransmissions. If the flow sends fewer packets,
    /// [`check`](Self::check) fails, and [`run`](Self::run) warns.
    #[must_use]
    pub fn lose(mut self, flow: usize, packets: impl IntoIterator<Item = u64>) -> Self {
        let mut numbers: Vec<u64> = packets.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        self.losses.push((flow, numbers));
        self
    }

    /// Captures a failing run only from `margin` before `time` to `margin` after it. By default, a capture begins up to
    /// 100 ms before a panic. If a requirement is not met, it begins up to 100 ms before the first lost packet. Each
    /// end's capture has at most about 4 MB.
    #[must_use]
    pub fn capture_around(self, time: Duration, margin: Duration) -> Self {
        Self { window: Some(Window { from: time.saturating_sub(margin), to: Some(time + margin) }), ..self }
    }

    /// Returns how long before a failure the capture begins.
    fn shortly(&self) -> Duration {
        let (longest, bytes) = SHORTLY;
        longest.min(Duration::from_nanos(bytes * 8 * 1_000_000_000 / self.link_rate.bits_per_second))
    }

    /// Checks the settings.
    fn assert_possible(&self, network: &Network) {
        let Self { senders, link_rate, buffer, duration, mss, .. } = self;
        assert!(*senders > 0, "a trial has no senders; it needs at least one");
        assert!(link_rate.bits_per_second > 0, "the links of a trial have a rate of 0 bit/s; choose a positive rate");
        assert!(*duration > Duration::ZERO, "a trial lasts 0 s; choose a positive duration");
        assert!(*mss > 0, "the packets of a trial carry 0 bytes; choose a positive mss");
        let longest = network.aal5.longest_packet(None).saturating_sub(HEADERS);
        assert!(
            *mss <= longest,
            "an mss of {mss} bytes does not fit into an AAL5 frame, which has room for {longest} \
                                  bytes"
        );
        let cells = network.aal5.segment_cells(*mss);
        assert!(
            *buffer >= cells,
            "a buffer of {buffer} cells is smaller than a packet with {mss} bytes of payload; the buffer needs at \
             least {cells} cells"
        );
        for (flow, _) in &self.losses {
            assert!(flow < senders, "flow {flow} cannot lose packets; the trial has flows 0 to {}", senders - 1);
        }
    }

    /// Returns the network.
    ///
    /// # Panics
    /// If the settings are impossible: no senders, no time, a rate of 0, or a buffer smaller than a packet.
    pub fn network(&self) -> Network {
        let mut graph = Graph::default();
        let [first, last] = ["switch1", "switch2"].map(|name| graph.add_node(name, NodeKind::Switch));
        let delay = picoseconds(self.round_trip / LINKS_OF_A_ROUND_TRIP);
        let bottleneck = graph.connect(first, last, self.link_rate, delay);
        let mut paths = Vec::new();
        for number in 1..=self.senders {
            let [source, destination] =
                ["source", "destination"].map(|name| graph.add_node(format!("{name}{number}"), NodeKind::Host));
            let access = graph.connect(source, first, self.link_rate, delay);
            paths.push(vec![access, bottleneck, graph.connect(last, destination, self.link_rate, delay)]);
        }
        let mut network = Network::new(graph, picoseconds(self.duration));
        self.assert_possible(&network);
        network.seed = self.seed;
        network.bottleneck = bottleneck;
        network.links[bottleneck].buffer = Some(self.buffer);
        network.links[bottleneck].policy = self.policy.clone();
        for (number, path) in (1..).zip(paths) {
            let back = path.iter().rev().map(|&link| Graph::way_back(link)).collect();
            let name = format!("flow{number}");
            let vc = |name, path| Vc { name, path, ..Vc::default() };
            let data_vc = network.vcs.push_and_get_key(vc(name.clone(), path));
            let ack_vc = network.vcs.push_and_get_key(vc(format!("{name}-acks"), back));
            let tcp = TcpConfig::Vanilla(TcpOptions { mss: Bytes { bytes: self.mss }, ..TcpOptions::default() });
            let start = units::Duration::default();
            network.flows.push(Flow {
                name,
                data_vc,
                ack_vc,
                start,
                tcp,
                traffic: TrafficConfig::default(),
                outside: true,
            });
        }
        for (flow, packets) in &self.losses {
            let vc = network.flows[FlowIndex::new(u32::try_from(*flow).expect("the number of flows fits in 32 bits"))]
                .data_vc;
            let access = network.vcs[vc].path[0];
            let pattern = LossPattern::Numbers(packets.clone());
            network.links[access].losses.push(LossRule { vc, unit: LossUnit::Packets, pattern });
        }
        network
    }

    /// Runs the trial. `make` creates the stacks at both ends of each flow, the sender first.
    ///
    /// # Panics
    /// If a stack panics, sends a packet with a wrong IP header or beyond its MTU, floods its host's port, reports more
    /// bytes than have arrived, or is polled repeatedly without effect.
    pub fn run(&self, mut make: impl FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2]) -> Outcome {
        let network = self.network();
        let run = observed(&network, &mut make, |_| {});
        run.unmet_rules(&network).iter().for_each(|warning| eprintln!("warning: {warning}"));
        run.into()
    }

    /// Runs the trial twice, then calls `require`, which panics if the result is wrong. After a panic of `require` or
    /// of a stack, runs the trial again and captures the packets around the failure. Senders and receivers have a file
    /// each: `x.pcapng` becomes `x-sender.pcapng` and `x-receiver.pcapng`. Comments in the capture give the place and
    /// reason of each loss.
    ///
    /// # Panics
    /// If `require` or a stack panics, if the second run differs from the first, if a packet to lose was never sent, or
    /// if the settings are impossible.
    pub fn check(
        &self,
        capture: impl AsRef<Path>,
        mut make: impl FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2],
        require: impl FnOnce(&Outcome),
    ) {
        let network = self.network();
        let (mut first_loss, mut last) = (None, Time::default());
        let clock = network.clock();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            observed(&network, &mut make, |seen| {
                last = seen.time;
                if seen.step == Step::Lost {
                    first_loss.get_or_insert(seen.sent);
                }
            })
        }));
        // Captures begin slightly earlier.
        let before = |time: Time| {
            Duration::from_nanos(celltrain_capture::nanoseconds(clock, time)).saturating_sub(self.shortly())
        };
        let (panic, failure) = match ran {
            Ok(first) => {
                let second = catch_unwind(AssertUnwindSafe(|| observed(&network, &mut make, |_| {})));
                assert!(second.is_ok_and(|second| second == first), "{DIFFERS}");
                let unmet = first.unmet_rules(&network);
                let met = catch_unwind(AssertUnwindSafe(|| require(&first.into())));
                let Err(panic) = met else {
                    let unmet: Vec<String> = unmet.iter().map(ToString::to_string).collect();
                    assert!(unmet.is_empty(), "{}", unmet.join("; "));
                    return;
                };
                (panic, Failure { is_panic: false, from: first_loss.map_or(Duration::ZERO, before) })
            }
            Err(panic) => (panic, Failure { is_panic: true, from: before(last) }),
        };
        self.capture(capture.as_ref(), &network, &mut make, &failure);
        resume_unwind(panic)
    }

    /// Runs the trial again and captures the packets.
    fn capture(
        &self,
        path: &Path,
        network: &Network,
        make: &mut dyn FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2],
        failure: &Failure,
    ) {
        let window = self.window.unwrap_or(Window { from: failure.from, to: None });
        let comment = format!("a trial with {} senders, seed {}", self.senders, self.seed);
        let Captured { paths, end } = capture::write(path, &comment, network, window, hosts(network, make));
        let from = window.from.as_secs_f64();
        let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let until = window.to.map_or_else(
            || format!("until its end (at most {} MB on each side)", MOST_BYTES / 1_000_000),
            |to| format!("to {} s", to.as_secs_f64()),
        );
        eprintln!("the packets that this run sends from {from} s {until} are in {}", files.join(" and "));
        assert!(end != End::Complete || !failure.is_panic, "{DIFFERS}");
    }
}

fn observed(
    network: &Network,
    make: &mut dyn FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2],
    mut observe: impl FnMut(&Seen<'_>),
) -> RunResult {
    let hosts = hosts(network, make);
    let run = Engine::Fast.run_hosted(
        network,
        Nothing,
        |_| true,
        |simulation| hosts.run(simulation, |_, seen| observe(seen)),
    );
    run.unwrap_or_else(|error| panic!("{error}"))
}

/// A failure of a trial.
struct Failure {
    /// True if a stack has panicked, false if a requirement was not met.
    is_panic: bool,
    /// Start of the part of the run to capture.
    from: Duration,
}

fn hosts(network: &Network, make: &mut dyn FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2]) -> Hosts {
    let mut flow = |flow: FlowIndex| HostedFlow { flow, stacks: make(Endpoint::pair(network, flow)) };
    let flows = network.flows.keys().map(&mut flow).collect();
    Hosts::new(network, flows)
}

const DIFFERS: &str = "a second run with the same seed differs: a stack has a clock or random numbers of its own";

/// Longest captured time before a failure, and the maximum number of bytes that a link carries in that time.
const SHORTLY: (Duration, u64) = (Duration::from_millis(100), 1_000_000);

/// Headers of a packet with a payload of `mss` bytes.
const HEADERS: u64 = celltrain_core::aal5::TCP_IP_HEADERS;

const LINKS_OF_A_ROUND_TRIP: u32 = 6;

fn picoseconds(time: Duration) -> units::Duration {
    units::Duration { picoseconds: u64::try_from(time.as_nanos() * 1000).expect("a run is shorter than half a year") }
}

#[cfg(test)]
mod tests;
