//! Adds random requests between the hosts of a random network.

use std::collections::BTreeMap;

use celltrain_core::index::{NodeIndex, VcIndex};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Link, Network, Vc};
use celltrain_core::policy::{PolicyConfig, tail_drop};
use celltrain_core::requests::{Arrivals, Opening, Pair, PairIndex, PairOrder, QueryTimes, RequestGroup, Sizes};
use celltrain_core::rng::Stream;
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::tcp::{Congestion, DelayedAcks, Ecn, TcpConfig, TickPhase};
use celltrain_core::units::{Bytes, Duration};
use typed_index_collections::TiVec;

/// Kinds of requests, and their possible outcomes.
pub(crate) const KINDS: &[&str] = &[
    "Poisson", "in turn", "an incast", "queries at random", "spread", "a handshake", "open at once", "several VCs",
    "SACK", "delayed ACKs", "ECN", "pacing", "a timeout", "a retransmission", "completed", "not completed", "no flows",
];

pub(crate) fn kinds(network: &Network, result: &RunResult) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for group in &network.requests.groups {
        match &group.arrivals {
            Arrivals::Poisson { order, .. } => {
                kinds.push("Poisson");
                kinds.extend((*order == PairOrder::InTurn).then_some("in turn"));
            }
            Arrivals::Incast { times, spread, .. } => {
                kinds.push("an incast");
                kinds.extend((*times == QueryTimes::Exponential).then_some("queries at random"));
                kinds.extend((*spread > Duration::default()).then_some("spread"));
            }
        }
        kinds.push(if group.opening == Opening::Handshake { "a handshake" } else { "open at once" });
        let options = group.tcp.options();
        kinds.extend(group.tcp.selective().then_some("SACK"));
        kinds.extend((options.delayed_acks == DelayedAcks::On).then_some("delayed ACKs"));
        kinds.extend((options.ecn == Ecn::On).then_some("ECN"));
        kinds.extend(options.pacing_rate.is_some().then_some("pacing"));
    }
    kinds.extend(network.requests.pairs.iter().any(|pair| pair.vcs.len() > 1).then_some("several VCs"));
    kinds.extend(network.flows.is_empty().then_some("no flows"));
    let records = || result.requests.iter().flat_map(|group| &group.records);
    kinds.extend(records().any(|record| record.timeouts > 0).then_some("a timeout"));
    kinds.extend(records().any(|record| record.retransmitted_segments > 0).then_some("a retransmission"));
    kinds.extend(records().any(|record| record.completed().is_some()).then_some("completed"));
    kinds.extend(records().any(|record| record.completed().is_none()).then_some("not completed"));
    kinds
}

/// Adds VCs between the hosts of flows, along the flows' paths, and one to three groups of requests on these VCs.
pub(crate) fn add(network: &mut Network, rng: &mut Stream) {
    let mut vcs: BTreeMap<(NodeIndex, NodeIndex), Vec<VcIndex>> = BTreeMap::new();
    let tcps: Vec<TcpConfig> = network.flows.iter().map(|flow| flow.tcp.clone()).collect();
    let ways: Vec<[VcIndex; 2]> = network.flows.iter().map(|flow| [flow.data_vc, flow.ack_vc]).collect();
    for way in ways {
        let ends = [network.source(way[0]), network.destination(way[0])];
        if (network.source(way[1]), network.destination(way[1])) != (ends[1], ends[0]) {
            continue;
        }
        for _ in 0..=rng.below(2) {
            let copies = way.map(|vc| {
                let name = format!("{}-requests{}", network.vcs[vc].name, network.vcs.len());
                let Vc { path, class, priority, abr, .. } = network.vcs[vc].clone();
                network.vcs.push_and_get_key(Vc { name, path, class, priority, abr, ..Vc::default() })
            });
            for (copy, partner) in [(copies[0], copies[1]), (copies[1], copies[0])] {
                network.vcs[copy].partner = network.vcs[copy].abr.is_some().then_some(partner);
            }
            vcs.entry((ends[0], ends[1])).or_default().push(copies[0]);
            vcs.entry((ends[1], ends[0])).or_default().push(copies[1]);
        }
    }
    let ends: Vec<(NodeIndex, NodeIndex)> = vcs.keys().copied().collect();
    let number = |ends_of: (NodeIndex, NodeIndex)| {
        PairIndex::from(ends.binary_search(&ends_of).expect("the network has VCs in both directions"))
    };
    let pairs: TiVec<PairIndex, Pair> =
        vcs.iter().map(|(&(from, to), vcs)| Pair { from, to, vcs: vcs.clone(), back: number((to, from)) }).collect();
    if pairs.is_empty() {
        return;
    }
    for name in ["web", "backup", "query"].into_iter().take(1 + rng.below(3) as usize) {
        let tcp = tcp(&tcps[rng.below(count(tcps.len())) as usize], rng);
        let opening = if rng.below(3) == 0 { Opening::Open } else { Opening::Handshake };
        let arrivals = if rng.below(3) == 0 { incast(&pairs, network, rng) } else { poisson(&pairs, network, rng) };
        network.requests.groups.push(RequestGroup { name: name.into(), tcp, outside: false, opening, arrivals });
    }
    network.requests.pairs = pairs;
    replace_unsound_settings(network);
    if rng.below(8) == 0 {
        network.flows.clear();
    }
}

/// Replaces policies and schedulers that the new VCs make invalid, such as a formula that divides by 10 minus the
/// number of VCs.
fn replace_unsound_settings(network: &mut Network) {
    let routing = network.routing();
    for link in network.links.keys() {
        let names = network.vc_names(&routing, link);
        let Link { policy, buffer, scheduler, .. } = &network.links[link];
        let is_bad_policy = !policy.check_vcs(*buffer, &names).is_empty();
        let is_bad_scheduler = !scheduler.config().check_vcs(&names).is_empty();
        if is_bad_policy {
            network.links[link].policy = PolicyConfig::TailDrop(tail_drop::Config {});
        }
        if is_bad_scheduler {
            network.links[link].scheduler = SchedulerConfig::default();
        }
    }
}

/// Returns the TCP of a group: the TCP of a flow, often with a timer short enough for the short run.
fn tcp(of_flow: &TcpConfig, rng: &mut Stream) -> TcpConfig {
    let mut options = of_flow.options().clone();
    options.timer.tick_phase = Some(TickPhase::Common);
    if rng.below(4) > 0 {
        options.timer_granularity = Duration::from_microseconds([100, 500, 1000][rng.below(3) as usize]);
        options.timer.initial_rto = Some(Duration::from_microseconds([1_000, 2_000, 5_000][rng.below(3) as usize]));
        options.minimum_rto = 1 + rng.below(4);
        options.timer.maximum_rto = Some(Duration::from_milliseconds(50));
    }
    if rng.below(3) == 0 {
        options.initial_window = [2, 10][rng.below(2) as usize];
        options.ecn = Ecn::On;
        if options.formula.is_none() && rng.below(2) == 0 {
            options.congestion = Congestion::Dctcp;
        }
    }
    TcpConfig::named(of_flow.name(), options).expect("the name is that of a TCP variant")
}

fn poisson(pairs: &TiVec<PairIndex, Pair>, network: &Network, rng: &mut Stream) -> Arrivals {
    let mut chosen: Vec<PairIndex> = pairs.keys().filter(|_| rng.below(3) > 0).collect();
    if chosen.is_empty() {
        chosen.push(PairIndex::new(0));
    }
    let sizes = match rng.below(3) {
        0 => Sizes::constant(Bytes { bytes: [1, 600, 5_000][rng.below(3) as usize] }),
        1 => Sizes::new(vec![(1.0, 0.1), (3_000.0, 0.8), (30_000.0, 1.0)]),
        _ => Sizes::new(vec![(600.0, 0.5), (200_000.0, 1.0)]),
    };
    Arrivals::Poisson {
        mean: part_of(network, rng),
        sizes,
        pairs: chosen,
        order: if rng.below(2) == 0 { PairOrder::InTurn } else { PairOrder::Random },
    }
}

fn incast(pairs: &TiVec<PairIndex, Pair>, network: &Network, rng: &mut Stream) -> Arrivals {
    let mut receivers: BTreeMap<NodeIndex, Vec<PairIndex>> = BTreeMap::new();
    for (number, pair) in pairs.iter_enumerated() {
        receivers.entry(pair.to).or_default().push(number);
    }
    let most = receivers.values().map(Vec::len).max().expect("at least one pair of hosts has a receiver");
    let senders = 1 + rng.below(count(most));
    Arrivals::Incast {
        interval: part_of(network, rng),
        times: if rng.below(2) == 0 { QueryTimes::Fixed } else { QueryTimes::Exponential },
        bytes: Bytes { bytes: [1, 3_000, 40_000][rng.below(3) as usize] },
        senders,
        receivers: receivers.into_values().filter(|pairs| pairs.len() >= senders as usize).collect(),
        spread: Duration::from_microseconds([0, 0, 100, 3_000][rng.below(4) as usize]),
    }
}

/// Returns a random fraction of the duration of the run, of at least a microsecond.
fn part_of(network: &Network, rng: &mut Stream) -> Duration {
    let times = [3, 10, 40, 150][rng.below(4) as usize];
    Duration { picoseconds: (network.duration.picoseconds / times).max(1_000_000) }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).expect("the length of this list fits in 32 bits")
}
