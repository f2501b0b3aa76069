//! The fast engine against the reference engine where ports schedule and where traffic is not all TCP: random networks drawn
//! from a seed. Everything else is compared on random scenarios, which shrink, in `celltrain-scenario`'s tests.

use proptest::prelude::*;

use super::{fast, reference};
use crate::aal5::{Aal5Options, Encapsulation};
use crate::gfr::Gfr;
use crate::network::{Flow, Graph, Merge, Network, NodeKind, Vc};
use crate::policy::{PerVc, PolicyConfig};
use crate::probe::{Nothing, Recorder, SeriesChoice};
use crate::rng::{Stream, proptest_seeded};
use crate::scheduler::{Class, SchedulerConfig, guaranteed_rate, strict_priority, wfq};
use crate::tcp::{
    Backoff, Congestion, DelayedAcks, OutOfOrder, RttSampling, TcpConfig, TcpOptions, TickPhase, TimerRestart,
    WindowGrowth,
};
use crate::tie::{ServiceOrder, TieOrder};
use crate::traffic::{TrafficConfig, constant_rate, file, on_off};
use crate::units::{BitRate, Bytes, Duration};

/// A random network: a chain of switches with hosts on them, everything drawn from one seed.
fn network(seed: u64) -> Network {
    let mut rng = Stream::new(seed, "differential");
    let mut pick = |n: u32| rng.below(n);
    // Few rates and delays, so that ties are common; sometimes rates without a common unit.
    let rates = [155_520_000, 155_520_000, 155_520_000, 77_760_000, 149_760_000, 34_368_000];
    let delays = [0, 5, 5, 5, 20, 1_000];
    let one_rate = pick(2) == 0;
    let one_delay = pick(2) == 0;
    let (same_rate, same_delay) = (rates[pick(6) as usize], delays[pick(6) as usize]);
    let mut graph = Graph::default();
    let switches: Vec<usize> = (0..=pick(4)).map(|i| graph.add_node(format!("sw{i}"), NodeKind::Switch)).collect();
    let connect = |graph: &mut Graph, a: usize, b: usize, pick: &mut dyn FnMut(u32) -> u32| {
        let rate = if one_rate { same_rate } else { rates[pick(6) as usize] };
        let delay = if one_delay { same_delay } else { delays[pick(6) as usize] };
        graph.connect(a, b, BitRate::from_bits_per_second(rate), Duration::from_microseconds(delay));
    };
    for pair in switches.windows(2) {
        connect(&mut graph, pair[0], pair[1], &mut pick);
    }
    let hosts = 2 + pick(6);
    let hosts: Vec<usize> = (0..hosts)
        .map(|i| {
            let host = graph.add_node(format!("host{i}"), NodeKind::Host);
            let switch = switches[pick(u32::try_from(switches.len()).unwrap()) as usize];
            connect(&mut graph, host, switch, &mut pick);
            host
        })
        .collect();
    let capacities = [12, 13, 25, 60, 100, 300, 1000, 5000];
    for link in &mut graph.links {
        if graph.nodes[link.from].kind == NodeKind::Switch && pick(8) > 0 {
            let capacity = capacities[pick(8) as usize];
            let mut policies = PolicyConfig::samples(capacity);
            link.buffer = Some(capacity);
            link.policy = policies.swap_remove(pick(u32::try_from(policies.len()).unwrap()) as usize);
        }
    }
    let mut flows = Vec::new();
    let mut vcs = Vec::new();
    let leaving = graph.leaving();
    let mut later = Stream::new(seed, "differential/later");
    let tcp = tcp(&mut pick, &mut later);
    for i in 0..=pick(7) {
        let from = hosts[pick(u32::try_from(hosts.len()).unwrap()) as usize];
        let to = hosts[pick(u32::try_from(hosts.len()).unwrap()) as usize];
        if from == to {
            continue;
        }
        let data_vc = vcs.len();
        for (a, b) in [(from, to), (to, from)] {
            vcs.push(Vc {
                path: graph.shortest_path(&leaving, a, b).expect("a chain reaches everywhere"),
                contract: (pick(4) == 0).then(|| contract(&mut pick)),
                tagged: pick(8) == 0,
                ..Vc::default()
            });
        }
        let start = Duration::from_microseconds([0, 0, 0, 3, 500][pick(5) as usize]);
        let tcp = if pick(4) == 0 { self::tcp(&mut pick, &mut later) } else { tcp.clone() };
        flows.push(Flow {
            name: format!("tcp{i}"),
            data_vc,
            ack_vc: data_vc + 1,
            start,
            tcp,
            traffic: TrafficConfig::default(),
        });
    }
    let merges = merge(&graph, &mut vcs, &mut pick);
    Network {
        seed,
        duration: Duration::from_microseconds(u64::from(1 + pick(60_000))),
        nodes: graph.nodes,
        links: graph.links,
        vcs,
        merges,
        flows,
        bottleneck: 0,
        tie_order: [TieOrder::Random, TieOrder::Random, TieOrder::Rotating, TieOrder::Fixed][pick(4) as usize],
        service_order: [ServiceOrder::AfterArrivals, ServiceOrder::BeforeArrivals][pick(2) as usize],
        aal5: Aal5Options {
            encapsulation: [Encapsulation::LlcSnap, Encapsulation::VcMux][pick(2) as usize],
            ..Aal5Options::default()
        },
    }
}

/// Many hosts on one switch of a chain whose trunks all depart late or merge, with windows that keep them busy: long trains
/// that come alone, in step and interleaved, faster and slower than the trunk.
fn crowded(seed: u64) -> Network {
    let mut rng = Stream::new(seed, "differential/crowded");
    let mut pick = |n: u32| rng.below(n);
    let mut graph = Graph::default();
    let switches: Vec<usize> = (0..2 + pick(2)).map(|i| graph.add_node(format!("sw{i}"), NodeKind::Switch)).collect();
    let trunk = BitRate::from_bits_per_second(155_520_000);
    let delay = Duration::from_microseconds([0, 5, 300][pick(3) as usize]);
    for pair in switches.windows(2) {
        graph.connect(pair[0], pair[1], trunk, delay);
    }
    let (same_rate, hosts) = (pick(2) == 0, 2 + pick(11));
    let rates = [155_520_000, 155_520_000, 622_080_000, 77_760_000, 149_760_000];
    let rate = rates[pick(5) as usize];
    let sources: Vec<usize> = (0..hosts)
        .map(|i| {
            let host = graph.add_node(format!("host{i}"), NodeKind::Host);
            let rate = if same_rate { rate } else { rates[pick(5) as usize] };
            // Some come in behind the first trunk.
            let switch = switches[usize::from(pick(5) == 0) * (switches.len() - 2)];
            graph.connect(host, switch, BitRate::from_bits_per_second(rate), Duration::from_microseconds(5));
            host
        })
        .collect();
    let ends: Vec<usize> = (0..=pick(3))
        .map(|i| {
            let end = graph.add_node(format!("end{i}"), NodeKind::Host);
            graph.connect(switches[switches.len() - 1], end, trunk, Duration::from_microseconds(5));
            end
        })
        .collect();
    for link in graph.links.iter_mut().filter(|link| graph.nodes[link.from].kind == NodeKind::Switch) {
        let capacity = [1, 13, 100, 1000, 5000][pick(5) as usize];
        let mut policies = PolicyConfig::samples(capacity);
        if pick(5) > 0 {
            link.buffer = Some(capacity);
            link.policy = policies.swap_remove(pick(u32::try_from(policies.len()).unwrap()) as usize);
        }
    }
    let leaving = graph.leaving();
    let mut later = Stream::new(seed, "differential/crowded/tcp");
    let tcp = self::tcp(&mut pick, &mut later);
    let options = TcpOptions { receive_window: Bytes { bytes: 300_000 }, ..tcp.options().clone() };
    let tcp = TcpConfig::named(tcp.name(), options).expect("a listed name");
    let (mut flows, mut vcs) = (Vec::new(), Vec::new());
    for (&from, i) in sources.iter().zip(0..) {
        let to = ends[pick(u32::try_from(ends.len()).unwrap()) as usize];
        let data_vc = vcs.len();
        for (a, b) in [(from, to), (to, from)] {
            let path = graph.shortest_path(&leaving, a, b).expect("a chain reaches everywhere");
            vcs.push(Vc { path, tagged: pick(8) == 0, ..Vc::default() });
        }
        let start = Duration::from_microseconds([0, 0, 3, 500][pick(4) as usize]);
        let traffic = TrafficConfig::default();
        flows.push(Flow { name: format!("tcp{i}"), data_vc, ack_vc: data_vc + 1, start, tcp: tcp.clone(), traffic });
    }
    let merges = if pick(3) == 0 { merge(&graph, &mut vcs, &mut pick) } else { Vec::new() };
    Network {
        seed,
        duration: Duration::from_microseconds(u64::from(1 + pick(30_000))),
        nodes: graph.nodes,
        links: graph.links,
        vcs,
        merges,
        flows,
        bottleneck: 0,
        tie_order: [TieOrder::Random, TieOrder::Rotating, TieOrder::Fixed][pick(3) as usize],
        service_order: [ServiceOrder::AfterArrivals, ServiceOrder::BeforeArrivals][pick(2) as usize],
        aal5: Aal5Options::default(),
    }
}

/// The same network with classes of its VCs and schedulers at its ports.
fn scheduled(mut network: Network) -> Network {
    let mut rng = Stream::new(network.seed, "differential/schedulers");
    for (vc, i) in network.vcs.iter_mut().zip(0..) {
        vc.name = format!("vc{i}");
        vc.class = [Class::Cbr, Class::Vbr, Class::Ubr, Class::Ubr][rng.below(4) as usize];
    }
    let merging: Vec<usize> = network.merges.iter().map(|merge| merge.at).collect();
    for (index, link) in network.links.iter_mut().enumerate() {
        let scheduler = match rng.below(5) {
            0 | 1 => continue,
            2 => SchedulerConfig::StrictPriority(strict_priority::Config {}),
            3 => {
                let share = [0.0, 0.1, 0.5, 0.9, 1.0][rng.below(5) as usize];
                SchedulerConfig::GuaranteedRate(guaranteed_rate::Config { share })
            }
            _ => {
                let weights = [("vc0-3", 4), ("vc4", 7), ("default", 3)];
                let weight = |(name, most): (&str, u32)| (name.to_string(), f64::from(1 + rng.below(most)));
                let weights = PerVc::ByName(weights.map(weight).into());
                SchedulerConfig::Wfq(wfq::Config { weights })
            }
        };
        let pushes_out = matches!(link.policy, PolicyConfig::DropFromFront(_));
        if network.nodes[link.from].kind == NodeKind::Switch && !pushes_out && !merging.contains(&index) {
            link.scheduler = scheduler;
        }
    }
    network
}

/// The same network with files, and packets that nothing answers, among its flows.
fn loaded(mut network: Network) -> Network {
    let mut rng = Stream::new(network.seed, "differential/traffic");
    for flow in &mut network.flows {
        let rates = [10_000_000, 34_368_000, 124_416_000, 155_520_000, 200_000_000, 7_777_777];
        let rate = BitRate::from_bits_per_second(rates[rng.below(6) as usize]);
        let packet = Bytes { bytes: [1, 64, 512, 1472, 9140][rng.below(5) as usize] };
        let time = |n: u32| Duration::from_microseconds([1, 333, 1_000, 5_000][n as usize]);
        let (on, off) = (time(rng.below(4)), time(rng.below(4)));
        let times = [on_off::Times::Fixed, on_off::Times::Exponential][rng.below(2) as usize];
        let bytes = Bytes { bytes: [1, 512, 5_000, 100_000][rng.below(4) as usize] };
        flow.traffic = match rng.below(6) {
            0 | 1 => TrafficConfig::File(file::Config { bytes }),
            2 => TrafficConfig::ConstantRate(constant_rate::Config { rate, packet }),
            3 => TrafficConfig::OnOff(on_off::Config { rate, packet, on, off, times }),
            _ => continue,
        };
    }
    network
}

fn contract(pick: &mut impl FnMut(u32) -> u32) -> Gfr {
    let mcr = BitRate::from_bits_per_second([1_000_000, 15_552_000, 31_104_000][pick(3) as usize]);
    let cdvt = Duration::from_microseconds([0, 0, 3, 100][pick(4) as usize]);
    Gfr { mcr, pcr: None, mfs: 12 + pick(200), mbs: None, cdvt, tagging: pick(4) > 0 }
}

/// Makes branches of one merge of VCs that end at one host, sometimes.
fn merge(graph: &Graph, vcs: &mut [Vc], pick: &mut impl FnMut(u32) -> u32) -> Vec<Merge> {
    let mut merges = Vec::new();
    let ends: std::collections::BTreeSet<usize> = vcs.iter().filter_map(|vc| vc.path.last().copied()).collect();
    for end in ends {
        if pick(2) == 0 {
            continue;
        }
        // From the link on that all of them share.
        let branches: Vec<usize> = (0..vcs.len()).filter(|&vc| vcs[vc].path.last() == Some(&end)).collect();
        let shared = |behind: usize| {
            let of = |vc: usize| vcs[vc].path.iter().rev().nth(behind);
            branches.iter().all(|&vc| of(vc).is_some() && of(vc) == of(branches[0]))
        };
        let behind = (0..vcs[branches[0]].path.len()).take_while(|&behind| shared(behind)).count();
        let at = vcs[branches[0]].path[vcs[branches[0]].path.len() - behind];
        let from_switch = graph.nodes[graph.links[at].from].kind == NodeKind::Switch;
        let keeps_order = !matches!(graph.links[at].policy, PolicyConfig::DropFromFront(_));
        let diverse = branches.iter().all(|&vc| vcs[vc].path[0] != at);
        if branches.len() > 1 && from_switch && keeps_order && diverse {
            for vc in branches {
                vcs[vc].merge = Some(merges.len());
            }
            merges.push(Merge { name: format!("merged{end}"), at });
        }
    }
    merges
}

/// `later` draws what came later, so that old seeds still mean the same networks.
fn tcp(pick: &mut impl FnMut(u32) -> u32, later: &mut Stream) -> TcpConfig {
    let mss = [512, 1, 1460, 9140][pick(4) as usize];
    let options = TcpOptions {
        mss: Bytes { bytes: mss },
        receive_window: Bytes { bytes: [mss, 65_535, 65_535, 300_000][pick(4) as usize].max(mss) },
        timer_granularity: Duration::from_milliseconds([1, 2, 10][pick(3) as usize]),
        initial_rto: Duration::from_milliseconds(10),
        tick_phase: [TickPhase::Common, TickPhase::Random][pick(2) as usize],
        window_growth: [WindowGrowth::Uncapped, WindowGrowth::Capped][pick(2) as usize],
        out_of_order: [OutOfOrder::Keep, OutOfOrder::Discard][pick(2) as usize],
        delayed_acks: [DelayedAcks::Off, DelayedAcks::Off, DelayedAcks::On][pick(3) as usize],
        rtt_sampling: [RttSampling::Karn, RttSampling::IncludeRetransmissions][pick(2) as usize],
        backoff: [Backoff::Double, Backoff::None][pick(2) as usize],
        timer_restart: [TimerRestart::EveryNewAck, TimerRestart::WhenAllAcked][pick(2) as usize],
        congestion: [Congestion::Jacobson, Congestion::Cubic][later.below(2) as usize],
        pacing_rate: [None, None, Some(155_520_000), Some(34_368_000)][later.below(4) as usize]
            .map(BitRate::from_bits_per_second),
        lose_at_window: (later.below(4) == 0).then(|| Bytes { bytes: mss * u64::from(2 + later.below(100)) }),
        ..TcpOptions::default()
    };
    let name = TcpConfig::NAMES[pick(u32::try_from(TcpConfig::NAMES.len()).unwrap()) as usize];
    TcpConfig::named(name, options).expect("a listed name")
}

fn recorder(network: &Network) -> Recorder {
    let clock = network.clock();
    let choice = SeriesChoice { queue: true, occupancy: true, windows: true };
    let step = Duration { picoseconds: (network.duration.picoseconds / 50).max(1) };
    Recorder::new(choice, (0..network.links.len()).collect(), step, clock, network.end(clock))
}

fn compare(network: &Network) -> Result<(), TestCaseError> {
    let (mut by_reference, mut by_fast) = (recorder(network), recorder(network));
    let expected = reference::run(network, &mut by_reference, |_| true).expect("nothing interrupts it");
    let watched = fast::run(network, &mut by_fast, |_| true).expect("nothing interrupts it");
    prop_assert_eq!(&watched, &expected);
    prop_assert_eq!(&by_fast.times, &by_reference.times);
    prop_assert_eq!(&by_fast.queue_cells, &by_reference.queue_cells);
    prop_assert_eq!(&by_fast.occupancy_cells, &by_reference.occupancy_cells);
    prop_assert_eq!(&by_fast.cwnd_segments, &by_reference.cwnd_segments);
    prop_assert_eq!(&by_fast.ssthresh_segments, &by_reference.ssthresh_segments);
    let unwatched = fast::run(network, &mut Nothing, |_| true).expect("nothing interrupts it");
    prop_assert_eq!(&unwatched, &expected);
    Ok(())
}

/// How many random networks: `CELLTRAIN_DIFFERENTIAL` for a longer campaign.
fn cases() -> u32 {
    std::env::var("CELLTRAIN_DIFFERENTIAL").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..proptest_seeded(5) })]

    #[test]
    fn both_engines_agree_where_ports_schedule(seed in any::<u64>()) {
        compare(&scheduled(network(seed)))?;
    }

    #[test]
    fn both_engines_agree_where_long_trains_meet_late_ports(seed in any::<u64>()) {
        compare(&scheduled(crowded(seed)))?;
    }

    #[test]
    fn both_engines_agree_on_traffic_of_every_kind(seed in any::<u64>()) {
        let network = loaded(network(seed));
        compare(&if seed % 2 == 0 { scheduled(network) } else { network })?;
    }
}
