//! Max-min fair shares of a network: no flow can gain rate without taking it from a flow with an equal or smaller rate.
//!
//! Source: Bertsekas and Gallager, *Data Networks*, section 6.5.2 (progressive filling); with minimum rates and weights
//! as in ATM Forum TM 4.0. All rates rise together from zero, each in proportion to its weight, but never below its
//! minimum. Once a link is full, the rates of the VCs that cross it stay fixed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::abr::cells_per_second;
use crate::cancellation::{CancellationToken, Interrupted};
use crate::index::{LinkIndex, VcIndex};
use crate::network::{Flow, Network};
use crate::scheduler::Class;
use crate::traffic::Pattern;
use crate::units::CELL_BITS;

/// Minimum rates and weights of the VCs; slices indexed by VC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// MCR: the minimum of each VC, in the unit of the capacities; 0 if the slice is empty.
    pub minimums: &'a [f64],
    /// Weight of each VC's share, above 0. If the slice is empty, all weights are 1.
    pub weights: &'a [f64],
}

/// Computes the max-min fair rate of each VC, in the unit of the capacities. `paths` has the links that each VC
/// crosses, as indices into `capacities`. The rate of a VC that crosses no link is infinite. Let r be a VC's rate, and
/// m and w its minimum and weight in [`Terms`]. Every VC with r > m crosses a full link on which no other VC with r > m
/// has a larger r / w. On a link that the minimums alone overload, every VC gets exactly its minimum.
pub fn shares(capacities: &TiSlice<LinkIndex, f64>, paths: &[Vec<LinkIndex>], terms: Terms<'_>) -> Vec<f64> {
    filled(capacities, paths, terms, &CancellationToken::never()).expect("no test cancels a run")
}

/// Computes [`shares`], unless cancelled.
fn filled(
    capacities: &TiSlice<LinkIndex, f64>,
    paths: &[Vec<LinkIndex>],
    terms: Terms<'_>,
    token: &CancellationToken<'_>,
) -> Result<Vec<f64>, Interrupted> {
    let Terms { minimums, weights } = terms;
    let vcs: Vec<Vc> = (0..paths.len())
        .map(|vc| Vc {
            minimum: minimums.get(vc).copied().unwrap_or(0.0),
            weight: weights.get(vc).copied().unwrap_or(1.0),
        })
        .collect();
    assert!(
        vcs.iter().all(|vc| vc.weight > 0.0 && vc.minimum >= 0.0),
        "weights are above 0 and minimums are not \
        negative"
    );
    let mut crossing: TiVec<LinkIndex, Vec<usize>> = ti_vec![Vec::new(); capacities.len()];
    for (vc, path) in paths.iter().enumerate() {
        token.tick(path.len())?;
        for &link in path {
            crossing[link].push(vc);
        }
    }
    // With VCs in this order, one pass finds the level at which a link is full.
    for on in &mut crossing {
        token.tick(on.len())?;
        on.sort_by(|&a, &b| vcs[a].leaves_minimum().total_cmp(&vcs[b].leaves_minimum()));
    }

    let mut rates = vec![f64::INFINITY; paths.len()];
    let level_of = |link: LinkIndex, rates: &[f64]| Level(level(capacities[link], &crossing[link], &vcs, rates));
    // Links are processed in the order in which they fill. Levels only rise as other links fill, so an outdated level
    // is detected when its link is processed.
    let mut next = BinaryHeap::with_capacity(capacities.len());
    for (link, on) in crossing.iter_enumerated() {
        token.tick(on.len())?;
        next.push(Reverse((level_of(link, &rates), link)));
    }
    let mut stale: TiVec<LinkIndex, bool> = ti_vec![false; capacities.len()];
    while let Some(Reverse((level, link))) = next.pop() {
        if level.0 == f64::INFINITY {
            break;
        }
        token.tick(crossing[link].len())?;
        if stale[link] {
            stale[link] = false;
            next.push(Reverse((level_of(link, &rates), link)));
            continue;
        }
        for &vc in &crossing[link] {
            if rates[vc] == f64::INFINITY {
                rates[vc] = vcs[vc].rate_at(level.0);
                for &crossed in &paths[vc] {
                    stale[crossed] = true;
                }
            }
        }
    }
    Ok(rates)
}

/// Returns the largest goodput that each flow's application can receive if the links' rates are divided max-min fairly
/// among the flows' data, in megabits per second. This is the flow's share of the line times the payload's share of its
/// full frames. `efficiency` divides by this ceiling, so if all flows have an efficiency of 1, every link that limits
/// them is full.
///
/// All flows have the same weight. TCP demands as much as it can get, up to its pacing rate; packets without TCP demand
/// their mean rate; no flow demands more than its PCR. Rates include all cells: an ABR VC gets the same as any other,
/// including its forward RM cells. Acknowledgements, and the backward RM cells sent with them, demand nothing.
///
/// # Errors
/// Returns [`Interrupted`] if the work is cancelled.
pub fn goodputs_mbps(network: &Network, token: &CancellationToken<'_>) -> Result<Vec<f64>, Interrupted> {
    let mbps = |bits_per_second: u64| bits_per_second as f64 / 1e6;
    let whole_run = [0.0, network.duration.seconds()];
    let mut capacities: TiVec<LinkIndex, f64> =
        network.links.keys().map(|link| network.mean_rate(link, whole_run) / 1e6).collect();
    let mut paths = Vec::with_capacity(network.flows.len());
    for flow in token.each(&network.flows) {
        let flow = flow?;
        let mut path = network.vcs[flow.data_vc].path.clone();
        let pcr = network.vcs[flow.data_vc].abr.as_ref().and_then(|abr| abr.pcr);
        let wanted = wanted_mbps(flow).map(|wanted| wanted / network.data_share(flow));
        // A demand limits a flow like an additional link of that capacity.
        for most in wanted.into_iter().chain(pcr.map(|pcr| mbps(pcr.bits_per_second))) {
            path.push(capacities.push_and_get_key(most));
        }
        paths.push(path);
    }
    let shares = filled(&capacities, &paths, Terms::default(), token)?;
    token.map(network.flows.iter().zip(shares), |(flow, share)| share * network.payload_share(flow))
}

/// Returns, by VC, the rate in cells per second that the ideal allocator gives ABR sources. The rate is infinite for
/// VCs that carry no data, because they do not use it.
///
/// CBR and VBR get their demand first: the mean rate of their packets on the line. All other VCs share equally. An ABR
/// VC gets at least its MCR and at most its PCR, whether or not it has data to send. Other VCs get at most their flows'
/// demand, and at least the MCR of a guaranteed frame rate.
pub(crate) fn ideal_rates(
    network: &Network,
    token: &CancellationToken<'_>,
) -> Result<TiVec<VcIndex, f64>, Interrupted> {
    let mut capacities: TiVec<LinkIndex, f64> = network.links.iter().map(|link| cells_per_second(link.rate)).collect();
    let mut data: Vec<VcIndex> = network.flows.iter().map(|flow| flow.data_vc).collect();
    data.sort_unstable();
    data.dedup();
    let mut wanted: TiVec<VcIndex, _> = ti_vec![Some(0.0); network.vcs.len()];
    for flow in token.each(&network.flows) {
        let flow = flow?;
        let of_vc = &mut wanted[flow.data_vc];
        *of_vc = of_vc.zip(wanted_mbps(flow)).map(|(sum, mbps)| sum + mbps * 1e6 / CELL_BITS as f64);
    }
    let (mut paths, mut minimums) = (Vec::with_capacity(data.len()), Vec::with_capacity(data.len()));
    for &number in &data {
        token.tick(1)?;
        let vc = &network.vcs[number];
        let (least, most) = match (&vc.abr, wanted[number]) {
            (Some(abr), _) => (cells_per_second(abr.mcr), abr.pcr.map(cells_per_second)),
            (None, wanted) if vc.class < Class::Ubr => (wanted.unwrap_or(0.0), wanted),
            (None, wanted) => {
                let guaranteed = vc.contract.as_ref().map_or(0.0, |contract| cells_per_second(contract.mcr));
                (guaranteed.min(wanted.unwrap_or(f64::INFINITY)), wanted)
            }
        };
        let mut path = vc.path.clone();
        if let Some(most) = most {
            path.push(capacities.push_and_get_key(most));
        }
        paths.push(path);
        minimums.push(least);
    }
    let mut ideal: TiVec<VcIndex, f64> = ti_vec![f64::INFINITY; network.vcs.len()];
    let shares = filled(&capacities, &paths, Terms { minimums: &minimums, weights: &[] }, token)?;
    for (vc, share) in data.iter().zip(shares) {
        ideal[*vc] = share;
    }
    Ok(ideal)
}

/// Returns the limit of a flow's demand on the line; `None` if the demand is unlimited.
fn wanted_mbps(flow: &Flow) -> Option<f64> {
    if flow.outside {
        return None;
    }
    let Some(Pattern { rate, bursts, .. }) = flow.traffic.packets() else {
        return flow.tcp.options().pacing_rate.map(|rate| rate.bits_per_second as f64 / 1e6);
    };
    let on = bursts.map_or(1.0, |bursts| {
        let [on, off] = [bursts.on, bursts.off].map(|time| time.picoseconds as f64);
        on / (on + off)
    });
    Some(rate.bits_per_second as f64 / 1e6 * on)
}

#[derive(Clone, Copy)]
struct Vc {
    minimum: f64,
    weight: f64,
}

impl Vc {
    fn rate_at(self, level: f64) -> f64 {
        self.minimum.max(self.weight * level)
    }

    /// Returns the level above which the VC's rate exceeds its minimum.
    fn leaves_minimum(self) -> f64 {
        self.minimum / self.weight
    }
}

/// Returns the level at which a link is full, given the rates that are already fixed. The level is infinite if no rate
/// can rise. `on` lists the VCs in the order in which their rates exceed their minimums.
fn level(capacity: f64, on: &[usize], vcs: &[Vc], rates: &[f64]) -> f64 {
    let rising = || on.iter().filter(|&&vc| rates[vc] == f64::INFINITY).map(|&vc| vcs[vc]);
    // At level 0, all VCs have their minimum rates.
    let fixed: f64 = on.iter().map(|&vc| if rates[vc] == f64::INFINITY { vcs[vc].minimum } else { rates[vc] }).sum();
    let (mut left, mut weights, mut level) = (capacity - fixed, 0.0, f64::INFINITY);
    for vc in rising() {
        if level <= vc.leaves_minimum() {
            break;
        }
        left += vc.minimum;
        weights += vc.weight;
        level = (left / weights).max(0.0);
    }
    level
}

/// A level, as a float with a total order.
#[derive(Clone, Copy, PartialEq)]
struct Level(f64);

impl Eq for Level {}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::{FIRST, SECOND, simple_network};
    use crate::traffic::{TrafficConfig, constant_rate};
    use crate::units::Bytes;
    use proptest::prelude::*;

    /// Returns the shares, with links as plain numbers.
    fn shares_of(capacities: &[f64], paths: &[Vec<u32>], terms: Terms<'_>) -> Vec<f64> {
        let paths: Vec<Vec<_>> = paths.iter().map(|path| path.iter().copied().map(LinkIndex::new).collect()).collect();
        shares(TiSlice::from_ref(capacities), &paths, terms)
    }

    #[test]
    fn in_a_parking_lot_the_long_vc_gets_its_share_of_the_most_loaded_link() {
        // The links have capacities of 100, 60 and 100. VC 0 crosses all of them, and VCs 1 and 2 also cross the
        // second, so each of the three gets 20. VC 3 gets the rest of the first link; VCs 4 and 5 share the rest of the
        // third.
        let paths = [vec![0, 1, 2], vec![1], vec![1], vec![0], vec![2], vec![2]];
        let rates = shares_of(&[100.0, 60.0, 100.0], &paths, Terms::default());
        assert_eq!(rates, [20.0, 20.0, 20.0, 80.0, 40.0, 40.0]);
    }

    #[test]
    fn after_minimum_rates_are_granted_the_remaining_rate_is_divided_by_weight() {
        let paths = vec![vec![0]; 3];
        let weighted = |weights: &[f64]| shares_of(&[90.0], &paths, Terms { weights, ..Terms::default() });
        assert_eq!(weighted(&[1.0, 2.0, 6.0]), [10.0, 20.0, 60.0]);
        let with_minimum = |minimums: &[f64]| shares_of(&[90.0], &paths, Terms { minimums, ..Terms::default() });
        // A minimum of 20 does not change an equal share of 30. A minimum of 50 leaves 20 to each of the other VCs.
        assert_eq!(with_minimum(&[20.0, 0.0, 0.0]), [30.0, 30.0, 30.0]);
        assert_eq!(with_minimum(&[50.0, 0.0, 10.0]), [50.0, 20.0, 20.0]);
        // The sum of the minimums exceeds the capacity.
        assert_eq!(with_minimum(&[80.0, 0.0, 30.0]), [80.0, 0.0, 30.0]);
    }

    #[test]
    fn a_vc_without_links_has_an_unlimited_rate_and_a_link_without_vcs_limits_no_vc() {
        assert_eq!(shares_of(&[5.0, 7.0], &[vec![], vec![1]], Terms::default()), [f64::INFINITY, 7.0]);
        assert!(shares_of(&[5.0], &[], Terms::default()).is_empty());
    }

    /// Input: capacities, paths without repeated links, minimums that fit every link, and weights.
    type Drawn = (TiVec<LinkIndex, f64>, Vec<Vec<LinkIndex>>, Vec<f64>, Vec<f64>);

    fn networks() -> impl Strategy<Value = Drawn> {
        let capacities = prop::collection::vec(prop_oneof![Just(100.0), 1.0..1000.0], 1..8);
        let vcs = prop::collection::vec((any::<u8>(), 0.0..1.0f64, prop_oneof![Just(1.0), 0.1..10.0]), 1..20);
        (capacities, vcs).prop_map(|(capacities, vcs)| {
            let capacities = TiVec::from(capacities);
            let crosses = |links: u8| -> Vec<LinkIndex> {
                let path: Vec<LinkIndex> =
                    capacities.keys().filter(|link: &LinkIndex| links >> link.number() & 1 == 1).collect();
                if path.is_empty() { vec![LinkIndex::new(0)] } else { path }
            };
            let paths: Vec<_> = vcs.iter().map(|&(links, ..)| crosses(links)).collect();
            let smallest = capacities.iter().copied().fold(f64::INFINITY, f64::min);
            let minimums = vcs.iter().map(|&(_, part, _)| part * smallest / vcs.len() as f64).collect();
            let weights = vcs.iter().map(|&(.., weight)| weight).collect();
            (capacities, paths, minimums, weights)
        })
    }

    /// Checks the definition of the rates: no link is overloaded, no VC has less than its minimum, and every VC above
    /// its minimum crosses a full link on which no other VC above its own minimum has a higher rate relative to its
    /// weight.
    fn is_max_min(
        capacities: &TiSlice<LinkIndex, f64>,
        paths: &[Vec<LinkIndex>],
        terms: Terms<'_>,
        rates: &[f64],
    ) -> Result<(), String> {
        let near = 1e-9;
        let minimum = |vc: usize| terms.minimums.get(vc).copied().unwrap_or(0.0);
        let level = |vc: usize| rates[vc] / terms.weights.get(vc).copied().unwrap_or(1.0);
        let on = |link: LinkIndex| (0..paths.len()).filter(move |&vc| paths[vc].contains(&link));
        let load = |link: LinkIndex| on(link).map(|vc| rates[vc]).sum::<f64>();
        for (link, &capacity) in capacities.iter_enumerated() {
            if load(link) > capacity * (1.0 + near) {
                return Err(format!("{link:?} carries {} of {capacity}", load(link)));
            }
        }
        for vc in 0..paths.len() {
            if rates[vc] < minimum(vc) {
                return Err(format!("VC {vc} has {} of {}", rates[vc], minimum(vc)));
            }
            let has_most = |link: LinkIndex| {
                on(link).all(|other| {
                    level(other) <= level(vc) * (1.0 + near) || rates[other] <= minimum(other) * (1.0 + near)
                })
            };
            let bottleneck = |&link: &LinkIndex| load(link) >= capacities[link] * (1.0 - near) && has_most(link);
            // If a VC is at its minimum, it need not have the highest rate, but it still needs a full link.
            let full = |&link: &LinkIndex| load(link) >= capacities[link] * (1.0 - near);
            let at_minimum = rates[vc] <= minimum(vc) * (1.0 + near);
            if !paths[vc].iter().any(|link| if at_minimum { full(link) } else { bottleneck(link) }) {
                return Err(format!("VC {vc} at {} has no bottleneck", rates[vc]));
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..crate::rng::proptest_seeded(23) })]

        #[test]
        fn every_vc_has_a_bottleneck_link_on_which_no_other_vc_has_a_higher_rate((capacities, paths, minimums, weights) in networks()) {
            for minimums in [&[], &minimums[..]] {
                for weights in [&[], &weights[..]] {
                    let terms = Terms { minimums, weights };
                    let rates = shares(&capacities, &paths, terms);
                    prop_assert_eq!(is_max_min(&capacities, &paths, terms, &rates), Ok(()), "{:?}", rates);
                }
            }
        }
    }

    #[test]
    fn the_demand_of_a_vc_is_the_sum_of_the_demands_of_its_flows() {
        let mut network = simple_network(3, "1ms");
        let packets = |rate: &str| {
            let (rate, packet) = (rate.parse().unwrap(), Bytes { bytes: 512 });
            TrafficConfig::ConstantRate(constant_rate::Config { rate, packet })
        };
        // The first two flows share the first VC. They demand 21.2 and 31.8 Mbps, or 50,000 and 75,000 cells a second.
        network.flows[SECOND].data_vc = VcIndex::new(0);
        (network.flows[FIRST].traffic, network.flows[SECOND].traffic) = (packets("21.2Mbps"), packets("31.8Mbps"));
        let ideal = ideal_rates(&network, &CancellationToken::never()).unwrap();
        // 155.52 Mbps are 366,792.45 cells a second. VC 4, of the third flow, gets what the first two flows leave.
        let (link, near) = (155.52e6 / 424.0, |rate: f64, expected: f64| (rate / expected - 1.0).abs() < 1e-12);
        assert!(near(ideal[VcIndex::new(0)], 125_000.0), "{}", ideal[VcIndex::new(0)]);
        assert!(near(ideal[VcIndex::new(4)], link - 125_000.0), "{}", ideal[VcIndex::new(4)]);
        assert!(
            [1, 2, 3, 5].iter().all(|&vc| ideal[VcIndex::new(vc)] == f64::INFINITY),
            "a VC without data has no limit: {ideal:?}"
        );
        // A VC of a higher-priority class gets its whole demand. If the demand exceeds the link's rate, no capacity is
        // left.
        for (rate, left) in [("31.8Mbps", link - 125_000.0), ("155.52Mbps", 0.0)] {
            let mut network = network.clone();
            network.flows[SECOND].traffic = packets(rate);
            network.vcs[VcIndex::new(0)].class = Class::Cbr;
            let ideal = ideal_rates(&network, &CancellationToken::never()).unwrap();
            assert!((ideal[VcIndex::new(4)] - left).abs() < 1e-6, "{rate}: {}", ideal[VcIndex::new(4)]);
        }
        // If one of the VC's two flows wants the whole link, the VC wants the whole link. So each of the two VCs gets
        // half.
        for greedy in [FIRST, SECOND] {
            let mut network = network.clone();
            network.flows[greedy].traffic = TrafficConfig::default();
            let ideal = ideal_rates(&network, &CancellationToken::never()).unwrap();
            assert!(near(ideal[VcIndex::new(0)], link / 2.0) && near(ideal[VcIndex::new(4)], link / 2.0), "{ideal:?}");
        }
    }

    #[test]
    fn the_rates_of_a_thousand_vcs_on_a_thousand_links_are_max_min_fair() {
        let mut rng = crate::rng::Stream::new(29, "test");
        let capacities: TiVec<LinkIndex, f64> = (0..1000).map(|_| 1.0 + 999.0 * rng.unit()).collect();
        let paths: Vec<Vec<LinkIndex>> = (0..1000)
            .map(|_| {
                let (first, hops) = (rng.below(1000), 1 + rng.below(20));
                (0..hops).map(|hop| LinkIndex::new((first + 7 * hop) % 1000)).collect()
            })
            .collect();
        let rates = shares(&capacities, &paths, Terms::default());
        is_max_min(&capacities, &paths, Terms::default(), &rates).unwrap();
    }
}
