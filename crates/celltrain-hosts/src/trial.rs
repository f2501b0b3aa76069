//! Trials: a few senders and a bottleneck, for the tests of a stack.

use std::fs::File;
use std::io::BufWriter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use celltrain_capture::About;
use celltrain_core::engine::Engine;
use celltrain_core::index::FlowIndex;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Flow, Graph, Network, NodeKind, Vc};
use celltrain_core::policy::{PolicyConfig, epd};
use celltrain_core::probe::Nothing;
use celltrain_core::tcp::{TcpConfig, TcpOptions};
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::{self, BitRate, Bytes};

use crate::capture::{HostCapture, LostPackets, Seen};
use crate::driver::{HostedFlow, Hosts};
use crate::stack::{Endpoint, Stack};

/// A network in which senders share a switch's buffer, for the tests of a stack.
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
}

impl Trial {
    /// Creates a trial on a LAN: a round trip of 30 us, 5 s long, with segments of 512 bytes.
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

    /// Sets the payload of a full packet in bytes, with headers of 40 bytes. The efficiency is the share of this
    /// payload in what the link can carry.
    #[must_use]
    pub fn mss(self, bytes: u64) -> Self {
        Self { mss: bytes, ..self }
    }

    /// Returns the network.
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
        network
    }

    /// Runs the trial. `make` creates the stacks at both ends of each flow, the sender first.
    ///
    /// # Panics
    /// If a stack panics or sends a packet that AAL5 cannot carry.
    pub fn run(&self, mut make: impl FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2]) -> RunResult {
        self.observed(&mut make, |_| {})
    }

    /// Runs the trial, then calls `require`, which panics if the result is not as it should be. If it panics, or a
    /// stack does, runs the trial again with a capture of all packets. A packet that is lost says so in a comment.
    ///
    /// # Panics
    /// If `require` or a stack panics, or if the second run differs from the first.
    pub fn check(
        &self,
        capture: impl AsRef<Path>,
        mut make: impl FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2],
        require: impl FnOnce(&RunResult),
    ) {
        let mut lost = LostPackets::default();
        let mut first = None;
        let passed = catch_unwind(AssertUnwindSafe(|| {
            require(first.insert(self.observed(&mut make, |seen| lost.on_packet(seen))));
        }));
        let Err(panic) = passed else { return };
        let (path, second) = self.capture(capture.as_ref(), &mut make, lost);
        eprintln!("the packets of this run are in {}", path.display());
        assert!(
            second == first,
            "a second run with the same seed differs: a stack has a clock or random numbers of its own"
        );
        resume_unwind(panic)
    }

    /// Runs the trial again and captures it. Returns no result if a stack panics.
    fn capture(
        &self,
        path: &Path,
        make: &mut dyn FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2],
        lost: LostPackets,
    ) -> (PathBuf, Option<RunResult>) {
        let failed = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", path.display()) };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).unwrap_or_else(|error| failed(&error));
        }
        let file = BufWriter::new(File::create(path).unwrap_or_else(|error| failed(&error)));
        let about = About {
            application: format!("celltrain {}", env!("CARGO_PKG_VERSION")),
            comment: format!("a trial with {} senders, seed {}", self.senders, self.seed),
        };
        let mut tap = HostCapture::new(file, &about, &self.network(), lost).unwrap_or_else(|error| failed(&error));
        let result = catch_unwind(AssertUnwindSafe(|| self.observed(make, |seen| tap.on_packet(seen))));
        tap.finish().unwrap_or_else(|error| failed(&error));
        (path.canonicalize().unwrap_or_else(|_| path.to_owned()), result.ok())
    }

    fn observed(
        &self,
        make: &mut dyn FnMut([Endpoint; 2]) -> [Box<dyn Stack>; 2],
        mut observe: impl FnMut(&Seen<'_>),
    ) -> RunResult {
        let network = self.network();
        let mut flow = |flow: FlowIndex| HostedFlow { flow, stacks: make(Endpoint::pair(&network, flow)) };
        let flows = network.flows.keys().map(&mut flow).collect();
        let hosts = Hosts::new(&network, flows);
        let run = Engine::Fast.run_hosted(
            &network,
            &mut Nothing,
            |_| true,
            |simulation| hosts.run(simulation, |_, seen| observe(seen)),
        );
        run.unwrap_or_else(|error| panic!("{error}"))
    }
}

const LINKS_OF_A_ROUND_TRIP: u32 = 6;

fn picoseconds(time: Duration) -> units::Duration {
    units::Duration { picoseconds: u64::try_from(time.as_nanos() * 1000).expect("a run is shorter than half a year") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::{Packet, Report};
    use std::sync::atomic::{AtomicU8, Ordering};

    /// Sends 40 packets of 1500 bytes every millisecond, which is more than the network can carry.
    struct Flood {
        next: Duration,
        first_byte: u8,
        received: u64,
    }

    impl Stack for Flood {
        fn on_packet(&mut self, _: Duration, packet: &[u8]) {
            self.received += packet.len() as u64;
            assert!(packet[0] < 9, "a stack that panics");
        }

        fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
            if now >= self.next {
                out.extend([(); 40].map(|()| vec![self.first_byte; 1500]));
                self.next = now + Duration::from_millis(1);
            }
        }

        fn next_timeout(&self) -> Option<Duration> {
            Some(self.next)
        }

        fn report(&self) -> Report {
            Report { received: self.received, ..Report::default() }
        }
    }

    fn flood(first_byte: u8) -> impl Fn([Endpoint; 2]) -> [Box<dyn Stack>; 2] {
        move |ends| ends.map(|_| Box::new(Flood { next: Duration::ZERO, first_byte, received: 0 }) as Box<dyn Stack>)
    }

    fn trial() -> Trial {
        Trial::new(2).mss(1460).duration(Duration::from_millis(20))
    }

    /// Returns the message of a panic, and the capture.
    fn failure(name: &str, check: impl FnOnce(&Path)) -> (String, Option<Vec<u8>>) {
        let path = std::env::temp_dir().join(format!("celltrain-{}-{name}.pcapng", std::process::id()));
        let panic = catch_unwind(AssertUnwindSafe(|| check(&path))).err();
        let capture = std::fs::read(&path).ok();
        let _ = std::fs::remove_file(&path);
        let message = panic.map(|panic| match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
        });
        (message.unwrap_or_default(), capture)
    }

    #[test]
    fn a_requirement_that_is_met_leaves_no_capture() {
        let check = |path: &Path| {
            trial().check(path, flood(1), |result| assert!(result.efficiency > 0.8, "{}", result.efficiency));
        };
        assert_eq!(failure("met", check), (String::new(), None));
    }

    #[test]
    fn a_requirement_that_is_not_met_leaves_a_capture_of_the_run() {
        let check = |path: &Path| {
            trial().check(path, flood(1), |result| assert!(result.cells.discarded == 0, "frames were discarded"));
        };
        let (message, capture) = failure("not-met", check);
        assert_eq!(message, "frames were discarded");
        let capture = capture.unwrap();
        assert!(capture.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "it is pcapng");
        let count = |text: &[u8]| capture.windows(text.len()).filter(|window| *window == text).count();
        assert_eq!(["source1", "destination2"].map(|host| count(host.as_bytes())), [1, 1]);
        assert!(count(&[1; 1500]) > 1000, "it has the packets");
        assert!(count(b"lost in the network") > 100);
    }

    #[test]
    fn a_stack_that_panics_leaves_a_capture_up_to_then() {
        let (message, capture) = failure("panic", |path| trial().check(path, flood(9), |_| ()));
        assert_eq!(message, "a stack that panics");
        assert!(capture.unwrap().windows(1500).any(|window| *window == [9; 1500]));
    }

    #[test]
    fn a_stack_that_is_not_deterministic_is_named_as_the_reason() {
        let runs = AtomicU8::new(0);
        let make = |ends| flood(runs.fetch_add(1, Ordering::Relaxed))(ends);
        let (message, _) = failure("changing", |path| trial().check(path, make, |_| panic!("not met")));
        assert_eq!(
            message,
            "a second run with the same seed differs: a stack has a clock or random numbers of its own"
        );
    }

    #[test]
    fn a_stack_that_panics_only_in_the_second_run_is_not_deterministic() {
        let runs = AtomicU8::new(0);
        let make = |ends| flood(if runs.fetch_add(1, Ordering::Relaxed) < 2 { 1 } else { 9 })(ends);
        let (message, _) = failure("panics-later", |path| trial().check(path, make, |_| panic!("not met")));
        assert!(message.starts_with("a second run with the same seed differs"), "{message}");
    }

    #[test]
    fn a_trial_is_the_network_that_it_describes() {
        let network = trial().link_rate(8_000_000).round_trip(Duration::from_millis(30)).buffer(200).network();
        let round_trip: u64 = network.links.iter().take(6).map(|link| link.delay.picoseconds).sum();
        assert_eq!(round_trip, 30_000_000_000);
        let bottleneck = &network.links[network.bottleneck];
        assert_eq!((bottleneck.name.as_str(), bottleneck.buffer), ("switch1->switch2", Some(200)));
        assert!(network.flows.iter().all(|flow| network.vcs[flow.data_vc].path[1] == network.bottleneck));
        assert_eq!(network.flows[FlowIndex::new(0)].frame(&network.aal5), (1460, 32));
    }
}
