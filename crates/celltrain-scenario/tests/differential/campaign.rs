//! A campaign: many networks of all trials, and how often they reach each rare situation.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use celltrain_core::coverage;

use super::trials::{TRIALS, Trial};

/// Runs `CELLTRAIN_CAMPAIGN` networks (`make campaign NAME=differential`). Fails if the engines differ on one of them, or
/// if none of them reaches one of the situations.
#[test]
#[ignore = "a campaign: make campaign NAME=differential"]
fn campaign() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |n| n.parse().expect("a number"));
    let (count, seed) = (number("CELLTRAIN_CAMPAIGN", 2_000), number("CELLTRAIN_CAMPAIGN_SEED", 1));
    let reached = run(&plan(count, seed)).unwrap_or_else(|difference| panic!("{difference}"));
    println!("{:>9} {:>12}  situation", "networks", "times");
    for (name, times) in coverage::counts() {
        println!("{:>9} {times:>12}  {name}", reached.get(name).copied().unwrap_or(0));
    }
    let never: Vec<_> = coverage::counts().filter(|&(_, times)| times == 0).map(|(name, _)| name).collect();
    assert!(never.is_empty(), "{count} networks never reach {never:?}");
}

/// A network of a trial, by its seed.
type Case = (&'static Trial, u64);

/// Returns about `count` networks, distributed over the trials by their weights and in random order.
fn plan(count: u64, seed: u64) -> Vec<Case> {
    let all: f64 = TRIALS.iter().map(Trial::weight).sum();
    let mut cases: Vec<(f64, Case)> = Vec::new();
    for trial in TRIALS {
        let own = (count as f64 * trial.weight() / all).ceil().max(1.0);
        // The networks of each trial are evenly distributed over the campaign.
        cases.extend((0..u32::MAX).take_while(|&i| f64::from(i) < own).map(|i| {
            let place = (f64::from(i) + 0.5) / own;
            (place, (trial, seed << 32 | u64::from(i)))
        }));
    }
    cases.sort_by(|a, b| a.0.total_cmp(&b.0));
    cases.into_iter().map(|(_, case)| case).collect()
}

/// Runs all networks on all processors. Returns, by situation, the number of networks that reach it.
fn run(cases: &[Case]) -> Result<BTreeMap<&'static str, u64>, String> {
    let (next, difference) = (Mutex::new(cases.iter()), Mutex::new(None));
    let worker = || {
        let networks: BTreeMap<_, _> = TRIALS.iter().map(|trial| (trial.name, trial.networks())).collect();
        let mut reached: BTreeMap<&'static str, u64> = BTreeMap::new();
        while difference.lock().unwrap().is_none() {
            let Some(&(trial, seed)) = next.lock().unwrap().next() else { break };
            coverage::take_reached_here();
            if let Err(differs) = trial.run(&networks[trial.name], seed) {
                difference.lock().unwrap().get_or_insert(differs);
            }
            for name in coverage::take_reached_here() {
                *reached.entry(name).or_default() += 1;
            }
        }
        reached
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let all = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("differences are returned")).collect::<Vec<_>>()
    });
    if let Some(difference) = difference.into_inner().unwrap() {
        return Err(difference);
    }
    let mut sum = BTreeMap::new();
    for (name, networks) in all.into_iter().flatten() {
        *sum.entry(name).or_default() += networks;
    }
    Ok(sum)
}
