//! Random policies that decide by the time for which frames wait, with times so short that the policies act in short
//! runs.

use std::collections::BTreeMap;

use celltrain_core::network::{Network, NodeKind};
use celltrain_core::policy::{PerVc, PolicyConfig, codel, dualpi2, fq_codel, pie, red};
use celltrain_core::rng::Stream;
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::tcp::{Ecn, TcpConfig};
use celltrain_core::units::{Bytes, Duration};

use super::{losses, memories, packets, requests};

/// Gives most ports without a scheduler a policy that decides by waiting times, and lets most flows use ECN.
pub(crate) fn add(network: &mut Network, rng: &mut Stream) {
    let merging = network.routing().merging;
    let mut l4s: BTreeMap<String, f64> = network.vcs.iter().map(|vc| (vc.name.clone(), rng.below(2).into())).collect();
    // A default is needed, because later changes to the network may add VCs.
    l4s.insert("default".to_string(), 1.0);
    let Network { nodes, links, flows, .. } = network;
    for (number, link) in links.iter_mut_enumerated() {
        let is_simple = nodes[link.from].kind == NodeKind::Switch
            && link.scheduler == SchedulerConfig::default()
            && link.allocator.is_none()
            && link.marking.is_none()
            && !merging[number].contains(&true);
        if !is_simple || rng.below(4) == 0 {
            continue;
        }
        link.policy = match rng.below(5) {
            0 => codel(rng).into(),
            1 => pie(rng).into(),
            2 => dualpi2(PerVc::ByName(l4s.clone()), rng).into(),
            3 => fq_codel(rng).into(),
            _ => red(link.buffer.unwrap_or(1000), rng),
        };
    }
    for flow in flows.iter_mut().filter(|flow| flow.traffic.packets().is_none()) {
        let mut options = flow.tcp.options().clone();
        options.initial_window = [1, 2, 10][rng.below(3) as usize];
        options.ecn = if rng.below(2) == 0 { Ecn::On } else { options.ecn };
        flow.tcp = TcpConfig::named(flow.tcp.name(), options).expect("the name belongs to a TCP variant");
    }
}

fn time(from: u32, to: u32, rng: &mut Stream) -> Duration {
    Duration::from_microseconds(u64::from(from + rng.below(to - from)))
}

fn codel(rng: &mut Stream) -> codel::Config {
    let target = time(1, 100, rng);
    let interval = Duration { picoseconds: target.picoseconds * u64::from(1 + rng.below(8)) };
    codel::Config { target, interval, maxpacket: Bytes { bytes: rng.below(600).into() }, ecn: rng.below(4) > 0 }
}

fn fq_codel(rng: &mut Stream) -> fq_codel::Config {
    let codel::Config { target, interval, maxpacket, ecn } = codel(rng);
    fq_codel::Config { target, interval, maxpacket, quantum: Bytes { bytes: (1 + rng.below(1000)).into() }, ecn }
}

fn dualpi2(l4s: PerVc, rng: &mut Stream) -> dualpi2::Config {
    dualpi2::Config {
        l4s,
        k: [0.5, 1.0, 2.0, 10.0][rng.below(4) as usize],
        target: time(1, 100, rng),
        t_update: time(1, 100, rng),
        alpha: [0.16, 100.0, 10_000.0][rng.below(3) as usize],
        beta: [0.0, 3.2, 1000.0][rng.below(3) as usize],
        min_th: time(0, 50, rng),
        range: time(0, 50, rng),
        th_len: Bytes { bytes: rng.below(300).into() },
        tshift: time(0, 200, rng),
    }
}

fn pie(rng: &mut Stream) -> pie::Config {
    let mut flag = || rng.below(2) == 0;
    let [dequeue_rate_estimation, derandomization, cap_drop_adjustment] = [flag(), flag(), flag()];
    pie::Config {
        qdelay_ref: time(1, 100, rng),
        t_update: time(1, 100, rng),
        max_burst: time(0, 100, rng),
        alpha: [0.125, 10.0, 10_000.0][rng.below(3) as usize],
        beta: [1.25, 100.0, 10_000.0][rng.below(3) as usize],
        mean_pktsize: Bytes { bytes: rng.below(300).into() },
        mark_ecnth: [0.0, 0.1, 1.0][rng.below(3) as usize],
        dequeue_rate_estimation,
        dq_threshold: Bytes { bytes: (1 + rng.below(2000)).into() },
        derandomization,
        cap_drop_adjustment,
    }
}

fn red(capacity: u32, rng: &mut Stream) -> PolicyConfig {
    let min_th = rng.below(capacity.clamp(1, 60));
    let config = red::Config {
        min_th: min_th.into(),
        max_th: (min_th + 1 + rng.below(100)).into(),
        max_p: [0.02, 0.5, 1.0][rng.below(3) as usize],
        w_q: [0.002, 0.1, 0.9][rng.below(3) as usize],
        mean_pktsize: Bytes { bytes: (1 + rng.below(600)).into() },
        gentle: rng.below(2) == 0,
        adaptive: rng.below(2) == 0,
        interval: time(1, 200, rng),
        ecn: rng.below(4) > 0,
    };
    config.into()
}

pub(crate) fn add_in_memories(network: &mut Network, rng: &mut Stream) {
    requests::add(network, rng);
    add(network, rng);
    memories::add(network, rng);
    losses::add(network, rng);
}

pub(crate) fn add_and_delimit(network: &mut Network, rng: &mut Stream) {
    add(network, rng);
    packets::delimit_and_lose(network, rng);
}

pub(crate) fn add_and_delimit_in_memories(network: &mut Network, rng: &mut Stream) {
    add(network, rng);
    packets::delimit_and_lose_in_memories(network, rng);
}
