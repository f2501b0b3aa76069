//! Random changes of the rates and delays of links in a random network, often together with losses.

use std::collections::BTreeSet;

use celltrain_core::aal5::Framing;
use celltrain_core::engine::Engine;
use celltrain_core::link_changes::{
    DelayChange, Distribution, Jitter, LinkChanges, RateChange, Reordering, Trace, Walk,
};
use celltrain_core::memory::Pauses;
use celltrain_core::network::{Link, Network, NodeKind};
use celltrain_core::rng::Stream;
use celltrain_core::units::{BitRate, Duration};
use celltrain_core::wire::Wire;

use super::losses;

/// Kinds of changes of links, and kinds of links and of engines for which changes occur.
pub(crate) const KINDS: &[&str] = &[
    "steps of rates", "a random walk of rates", "a trace", "an outage", "steps of delays", "a random walk of delays",
    "uniform jitter", "normal jitter", "packets that overtake", "rate and delay of the same link",
    "changes and losses", "the rate of a port of a memory", "the delay of a host's link", "the fast engine",
];

pub(crate) fn kinds(network: &Network) -> BTreeSet<&'static str> {
    let mut kinds = BTreeSet::new();
    for (number, link) in network.links.iter_enumerated() {
        let changes = link.changes();
        kinds.extend(changes.rate.iter().map(|change| match change {
            RateChange::Steps(_) => "steps of rates",
            RateChange::Walk(_) => "a random walk of rates",
            RateChange::Trace(_) => "a trace",
        }));
        if let Some(RateChange::Steps(steps)) = &changes.rate {
            kinds.extend(steps.iter().any(|step| step.1.bits_per_second == 0).then_some("an outage"));
        }
        kinds.extend(changes.delay.iter().map(|change| match change {
            DelayChange::Steps(_) => "steps of delays",
            DelayChange::Walk(_) => "a random walk of delays",
        }));
        kinds.extend(changes.jitter.map(|jitter| match jitter.distribution {
            Distribution::Uniform => "uniform jitter",
            Distribution::Normal => "normal jitter",
        }));
        let is_host = network.nodes[link.from].kind == NodeKind::Host;
        let in_memory = network.memories.iter().any(|memory| memory.ports.contains(&number));
        let (rate, delay) = (changes.rate.is_some(), changes.delay.is_some() || changes.jitter.is_some());
        let others = [
            (changes.reordering.is_some(), "packets that overtake"),
            (rate && delay, "rate and delay of the same link"),
            ((rate || delay) && !link.losses.is_empty(), "changes and losses"),
            (rate && in_memory, "the rate of a port of a memory"),
            (delay && is_host, "the delay of a host's link"),
            (rate && Engine::Fast.for_network(network) == Engine::Fast, "the fast engine"),
        ];
        kinds.extend(others.into_iter().filter_map(|(has, kind)| has.then_some(kind)));
    }
    kinds
}

/// Adds losses to half of the networks. Then adds changes of the rate to a third of the links, and changes of the delay
/// to a third of the links.
pub(crate) fn add(network: &mut Network, rng: &mut Stream) {
    if rng.below(2) == 0 {
        losses::add(network, rng);
    }
    let has_abr = network.vcs.iter().any(|vc| vc.abr.is_some());
    let pauses = network.memories.iter().any(|memory| memory.pauses == Pauses::Links);
    let keeps_hosts = rng.below(4) > 0;
    let (duration, delimits) = (network.duration, network.aal5.framing == Framing::Packets);
    let nodes = &network.nodes;
    for link in &mut network.links {
        let is = |kind| [link.from, link.to].iter().any(|&node| nodes[node].kind == kind);
        if pauses || link.wire == Wire::Ethernet || is(NodeKind::EdgeDevice) {
            continue;
        }
        let from_host = nodes[link.from].kind == NodeKind::Host;
        let mut changes = LinkChanges::default();
        if !(has_abr || from_host && keeps_hosts) && rng.below(3) == 0 {
            changes.rate = Some(rate(link, duration, rng));
        }
        if link.late.is_empty() && rng.below(3) == 0 {
            change_delay(link, &mut changes, duration, delimits, rng);
        }
        link.changes = (changes != LinkChanges::default()).then(|| Box::new(changes));
    }
}

fn rate(link: &Link, duration: Duration, rng: &mut Stream) -> RateChange {
    let own = link.rate.bits_per_second;
    match rng.below(4) {
        0 => {
            let most = own / u64::from(1 + rng.below(4));
            let least = most / u64::from(2 + rng.below(4));
            let step = 1 + (most - least) / u64::from(1 + rng.below(9));
            let every = Duration { picoseconds: 1 + duration.picoseconds / u64::from(3 + rng.below(40)) };
            RateChange::Walk(Walk { every, first: most, step, least, most })
        }
        1 => {
            // An ATM cell takes 0.04 delivery opportunities.
            let milliseconds = 1 + u64::from(rng.below(3));
            let mut times: Vec<u64> = (0..rng.below(60)).map(|_| u64::from(rng.below(3)).min(milliseconds)).collect();
            times.push(milliseconds);
            times.sort_unstable();
            RateChange::Trace(Trace::new(times).expect("the times are in order"))
        }
        _ => {
            let mut steps = Vec::new();
            for at in times(duration, rng) {
                let bits_per_second = [own, own / 2, own / 3, own / 10, 0][rng.below(5) as usize];
                steps.push((at, BitRate { bits_per_second }));
            }
            RateChange::Steps(steps)
        }
    }
}

fn change_delay(link: &Link, changes: &mut LinkChanges, duration: Duration, delimits: bool, rng: &mut Stream) {
    let least = link.delay.picoseconds;
    // The delay is up to the time of several packets, and sometimes a whole number of cell times.
    let longer = |rng: &mut Stream| match rng.below(3) {
        0 => least + u64::from(rng.below(4_000_000)),
        1 => least + 1_000_000 * u64::from(rng.below(200)),
        _ => least + 2_726_337 * u64::from(rng.below(20)),
    };
    changes.delay = match rng.below(3) {
        0 => {
            let every = Duration { picoseconds: 1 + duration.picoseconds / u64::from(3 + rng.below(40)) };
            let (most, step) = (longer(rng), u64::from(rng.below(20_000_000)));
            Some(DelayChange::Walk(Walk { every, first: most, step, least, most }))
        }
        1 => None,
        _ => {
            let step = |at| (at, Duration { picoseconds: longer(rng) });
            let at = times(duration, &mut Stream::new(least, "times"));
            Some(DelayChange::Steps(at.into_iter().map(step).collect()))
        }
    };
    if changes.delay.is_none() || rng.below(2) == 0 {
        let distribution = [Distribution::Uniform, Distribution::Normal][rng.below(2) as usize];
        changes.jitter = Some(Jitter { by: Duration::from_microseconds(u64::from(1 + rng.below(40))), distribution });
    }
    if delimits && rng.below(3) == 0 {
        changes.reordering = Some(Reordering { probability: 0.4, gap: u64::from(1 + rng.below(3)) });
    }
}

/// Returns some times in a run, in ascending order.
fn times(duration: Duration, rng: &mut Stream) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..=rng.below(6))
        .map(|_| Duration { picoseconds: duration.picoseconds / 1000 * u64::from(rng.below(1000)) })
        .collect();
    times.sort_unstable();
    times.dedup();
    times
}
