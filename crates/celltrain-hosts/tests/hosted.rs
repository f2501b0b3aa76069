//! Random hosted networks. The tests check that both engines agree on every packet and that packets are conserved.
//!
//! `make campaign NAME=hosted COUNT=1000` runs more of these tests.

use std::collections::HashMap;
use std::time::Duration;

use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{MeasureWindow, Network};
use celltrain_core::policy::{PolicyConfig, drop_from_front, epd, fba, ppd, selective_drop, tail_drop};
use celltrain_core::probe::Nothing;
use celltrain_core::rng::Stream;
use celltrain_core::tie::{ServiceOrder, TieOrder};
use celltrain_core::units;
use celltrain_hosts::{Endpoint, HostedFlow, Hosts, Packet, Report, Stack, Step, Trial};

/// Sends packets of random lengths at random times, and answers some packets at once.
struct Chatter {
    end: Endpoint,
    mss: u64,
    random: Stream,
    unit: Duration,
    next: Duration,
    answers: u32,
    received: u64,
}

impl Chatter {
    fn boxed(end: Endpoint, mss: u64) -> Box<dyn Stack> {
        let mut random = Stream::new(end.seed, "chatter");
        let unit = Duration::from_nanos([1, 1000, 77_777][random.below(3) as usize]);
        Box::new(Self { end, mss, random, unit, next: Duration::ZERO, answers: 0, received: 0 })
    }

    fn packet(&mut self) -> Packet {
        let length = self.random.below(u32::try_from(self.mss).unwrap() + 21).min(3000);
        let payload: Vec<u8> = (0..length).map(|_| self.random.next_u64().to_le_bytes()[0]).collect();
        self.end.packet(253, &payload)
    }
}

impl Stack for Chatter {
    fn on_packet(&mut self, _: Duration, packet: &[u8]) {
        self.received += packet.len() as u64 - 20;
        self.answers += self.random.below(2);
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        let mut packets = std::mem::take(&mut self.answers);
        if now >= self.next {
            packets += self.random.below(6);
            // The timeout is sometimes in the past.
            let pause = Duration::from_micros(u64::from(self.random.below(1500)));
            self.next = (now + pause).saturating_sub(Duration::from_micros(20));
        }
        for _ in 0..packets {
            out.push(self.packet());
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        Some(self.next)
    }

    fn report(&self) -> Report {
        Report { received: self.received, ..Report::default() }
    }

    fn unit(&self) -> Duration {
        self.unit
    }
}

/// Draws one of the given options.
fn pick<T: Clone>(random: &mut Stream, options: &[T]) -> T {
    let number = random.below(u32::try_from(options.len()).unwrap());
    options[number as usize].clone()
}

/// Draws a network. Some of its flows use the simulation's own TCP.
fn network(random: &mut Stream) -> Network {
    let trial = Trial::new(1 + random.below(5) as usize)
        .link_rate(pick(random, &[155_520_000, 8_000_000, 25_600_000, 622_080_000]))
        .round_trip(Duration::from_nanos(u64::from(random.below(4_000_000))))
        .policy(pick(
            random,
            &[
                PolicyConfig::TailDrop(tail_drop::Config {}),
                PolicyConfig::Epd(epd::Config::default()),
                PolicyConfig::Ppd(ppd::Config::default()),
                PolicyConfig::SelectiveDrop(selective_drop::Config::default()),
                PolicyConfig::Fba(fba::Config::default()),
                PolicyConfig::DropFromFront(drop_from_front::Config::default()),
            ],
        ))
        .mss(pick(random, &[512, 1460, 9140]))
        .seed(random.next_u64())
        .duration(Duration::from_millis(40));
    let mut network = trial.network();
    // A trial refuses a buffer smaller than a packet, which a network accepts.
    network.links[network.bottleneck].buffer = Some(20 + random.below(500));
    let ms =
        |most: u32, random: &mut Stream| units::Duration { picoseconds: 1_000_000 * u64::from(random.below(most)) };
    for flow in &mut network.flows {
        flow.outside = random.below(4) > 0;
        flow.start = ms(5_000, random);
    }
    network.tie_order = pick(random, &[TieOrder::Random, TieOrder::Rotating, TieOrder::Fixed]);
    network.service_order = pick(random, &[ServiceOrder::BeforeArrivals, ServiceOrder::AfterArrivals]);
    if random.below(3) == 0 {
        network.host.processing = ms(100, random);
        network.host.start_spread = ms(3_000, random);
    }
    if random.below(3) == 0 {
        network.measure = MeasureWindow { from: Some(ms(15_000, random)), to: Some(ms(40_000, random)) };
        network.measure.to = network.measure.to.max(network.measure.from);
    }
    network
}

/// Draws the stacks of a flow.
fn stacks(ends: [Endpoint; 2], mss: u64) -> [Box<dyn Stack>; 2] {
    let mut random = Stream::new(ends[0].seed, "stacks");
    match random.below(3) {
        #[cfg(feature = "smoltcp")]
        0 => smoltcp(ends, mss, &mut random),
        #[cfg(feature = "quic")]
        1 if mss + 40 >= u64::from(celltrain_hosts::quic::Config::MIN_MTU) => quic(ends, mss, &mut random),
        _ => ends.map(|end| Chatter::boxed(end, mss)),
    }
}

#[cfg(feature = "smoltcp")]
fn smoltcp(ends: [Endpoint; 2], mss: u64, random: &mut Stream) -> [Box<dyn Stack>; 2] {
    use celltrain_hosts::smoltcp::{Config, Congestion, Reads, Smoltcp};
    let config = Config {
        congestion: pick(random, &[Congestion::None, Congestion::Reno, Congestion::Cubic]),
        mss: usize::try_from(mss).unwrap(),
        receive_window: 1000 + random.below(200_000) as usize,
        send_buffer: 1000 + random.below(200_000) as usize,
        ack_delay: pick(random, &[None, Some(Duration::from_millis(10))]),
        nagle: random.below(2) == 0,
        reads: pick(random, &[Reads::BeforeAcks, Reads::AfterAcks]),
    };
    Smoltcp::pair(&config, ends, application(random))
}

#[cfg(feature = "quic")]
fn quic(ends: [Endpoint; 2], mss: u64, random: &mut Stream) -> [Box<dyn Stack>; 2] {
    use celltrain_hosts::quic::{Config, Congestion, Quic};
    let mtu = u16::try_from(mss).unwrap() + 40;
    let config = Config {
        congestion: pick(random, &[Congestion::NewReno, Congestion::Cubic]),
        mtu,
        receive_window: 2 * u32::from(mtu) + random.below(200_000),
        send_buffer: u64::from(2 * u32::from(mtu) + random.below(400_000)),
        initial_window: pick(random, &[None, Some(2 * u32::from(mtu)), Some(100_000)]),
        initial_rtt: Duration::from_micros(1 + u64::from(random.below(400_000))),
        ack_delay: pick(random, &[None, Some(Duration::from_millis(1)), Some(Duration::from_millis(10))]),
    };
    Quic::pair(&config, ends, application(random))
}

#[cfg(any(feature = "quic", feature = "smoltcp"))]
fn application(random: &mut Stream) -> celltrain_hosts::Application {
    use celltrain_hosts::Application;
    let pause = Duration::from_micros(u64::from(random.below(2000)));
    match random.below(3) {
        0 => Application::Bulk,
        1 => Application::File(1 + u64::from(random.below(100_000))),
        _ => Application::Bursts { bytes: 1 + u64::from(random.below(20_000)), pause: Box::new(move || pause) },
    }
}

/// Runs a network. Checks that each packet either arrives once with its own bytes, after it was sent, or is lost once.
fn run(network: &Network, engine: Engine) -> RunResult {
    let flow = |flow| {
        let stacks = stacks(Endpoint::pair(network, flow), network.flows[flow].tcp.options().mss.bytes);
        HostedFlow { flow, stacks }
    };
    let outside = network.flows.iter_enumerated().filter(|(_, flow)| flow.outside);
    let hosts = Hosts::new(network, outside.map(|(index, _)| flow(index)).collect());
    let mut on_the_way = HashMap::new();
    let result = engine.run_hosted(
        network,
        Nothing,
        |_| true,
        |simulation| {
            hosts.run(simulation, |_, seen| {
                if seen.step == Step::Sent {
                    on_the_way.insert(seen.number, (seen.time, seen.bytes.to_vec()));
                    return;
                }
                let (sent, bytes) =
                    on_the_way.remove(&seen.number).expect("the packet was sent earlier and has not arrived yet");
                assert!(sent < seen.time && bytes == seen.bytes);
            })
        },
    );
    result.unwrap()
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().expect("the value is a whole number"))
}

#[test]
fn both_engines_agree_on_random_networks_with_protocol_stacks_and_equal_seeds_give_equal_runs() {
    let (mut offered, mut lost) = (0, 0);
    let runs = asked("CELLTRAIN_HOSTED").unwrap_or(8);
    let first = asked("CELLTRAIN_HOSTED_SEED").unwrap_or(0) << 32;
    for number in first..first + runs {
        let mut random = Stream::new(number, "hosted");
        let network = network(&mut random);
        let fast = run(&network, Engine::Fast);
        assert_eq!(fast, run(&network, Engine::Reference), "network {number}");
        assert_eq!(fast, run(&network, Engine::Fast), "network {number}, repeated");
        offered += fast.cells.offered;
        lost += fast.cells.lost + fast.cells.discarded;
    }
    assert!(offered > 5000 * runs && lost > 50 * runs, "{offered} {lost}");
}
