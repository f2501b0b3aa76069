//! A campaign runs many networks of all trials, and counts how many networks reach each rare situation of the engines.
//! The archive contains small networks that reach these situations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use celltrain_core::coverage;
use proptest::prelude::*;

use super::packets;
use super::trials::{Drawn, FOLDER, TRIALS, Trial, drawn};

/// Runs the archive and `CELLTRAIN_CAMPAIGN` new networks (`make campaign NAME=differential`). Fails if the engines
/// differ on a network, or if no network reaches a situation. With `CELLTRAIN_BLESS=1`, writes the archive. With
/// `CELLTRAIN_CAMPAIGN_TRIALS`, runs only the trials whose names contain the variable's text, and accepts that some
/// situations are not reached.
#[test]
#[ignore = "slow; run make campaign NAME=differential"]
fn both_engines_agree_on_every_network_of_a_campaign() {
    let number =
        |name: &str, default: u64| std::env::var(name).map_or(default, |n| n.parse().expect("the value is a number"));
    let (count, seed) = (number("CELLTRAIN_CAMPAIGN", 2_000), number("CELLTRAIN_CAMPAIGN_SEED", 1));
    let only = std::env::var("CELLTRAIN_CAMPAIGN_TRIALS").unwrap_or_default();
    let trials: Vec<&Trial> = TRIALS.iter().filter(|trial| trial.name.contains(&only)).collect();
    // Do not print panics, because shrinking a network causes the same panic many times.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = run(&archive().chain(plan(&trials, count, seed)).collect::<Vec<_>>());
    std::panic::set_hook(hook);
    let Outcome { reached, kinds } = outcome.unwrap_or_else(|difference| panic!("{difference}"));
    println!("networks  framing");
    for (kind, networks) in &kinds {
        println!("{networks:>8}  {kind}");
    }
    println!("{:>9} {:>12}  situation", "networks", "times");
    for (name, times) in coverage::counts() {
        println!("{:>9} {times:>12}  {name}", reached.get(name).map_or(0, |reached| reached.networks));
    }
    let never: Vec<_> = coverage::counts().filter(|&(_, times)| times == 0).map(|(name, _)| name).collect();
    if std::env::var_os("CELLTRAIN_BLESS").is_some() {
        write_archive(reached);
    }
    assert!(never.is_empty() || !only.is_empty(), "{count} networks never reach {never:?}");
}

#[test]
fn both_engines_agree_on_archived_networks_that_reach_at_least_half_of_the_coverage_points() {
    let mut reached = BTreeSet::new();
    for (trial, seed) in archive() {
        coverage::take_reached_here();
        trial.run(&trial.networks(), seed).unwrap_or_else(|difference| panic!("{difference}"));
        reached.extend(coverage::take_reached_here());
    }
    let (all, reached) = (coverage::counts().count(), reached.len());
    assert!(
        2 * reached >= all,
        "the archive reaches {reached} of {all} situations: write it again with \
         CELLTRAIN_BLESS=1 make campaign NAME=differential COUNT=5000"
    );
}

const HEADER: &str = "trial,network";

/// Returns the networks of the archive.
fn archive() -> impl Iterator<Item = Case> {
    let case = |line: &str| {
        let (trial, network) = line.split_once(',').unwrap_or_else(|| panic!("archive.csv: {line}: not {HEADER}"));
        (Trial::named(trial), network.parse().expect("the value is a number"))
    };
    include_str!("archive.csv").lines().skip(1).map(case)
}

/// Writes the archive. Repeatedly selects the network that reaches the most situations that are still missing, per
/// second of its run.
fn write_archive(reached: BTreeMap<&'static str, Reached>) {
    let mut missing: BTreeSet<&str> = reached.keys().copied().collect();
    let examples: Vec<Example> = reached.into_values().flat_map(|reached| reached.fastest).collect();
    let mut lines = BTreeSet::new();
    while !missing.is_empty() {
        let rank =
            |example: &Example| example.reached.intersection(&missing).count() as f64 / example.took.as_secs_f64();
        let best = examples
            .iter()
            .max_by(|a, b| rank(a).total_cmp(&rank(b)))
            .expect("every rare situation has at least one example network");
        lines.insert(format!("{},{}\n", best.case.0.name, best.case.1));
        missing.retain(|name| !best.reached.contains(name));
    }
    let text = lines.into_iter().collect::<String>();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER).join("archive.csv");
    std::fs::write(path, format!("{HEADER}\n{text}")).expect("the archive file can be written");
}

/// A network of a trial, given by its seed.
type Case = (&'static Trial, u64);

/// Returns about `count` networks, distributed over the trials by the weights of the trials.
fn plan(trials: &[&'static Trial], count: u64, seed: u64) -> Vec<Case> {
    let all: f64 = trials.iter().map(|trial| trial.weight()).sum();
    let mut cases: Vec<(f64, Case)> = Vec::new();
    for &trial in trials {
        let own = (count as f64 * trial.weight() / all).ceil();
        // The networks of each trial are evenly distributed over the campaign.
        cases.extend((0..u32::MAX).take_while(|&i| f64::from(i) < own).map(|i| {
            let place = (f64::from(i) + 0.5) / own;
            (place, (trial, seed << 32 | u64::from(i)))
        }));
    }
    cases.sort_by(|a, b| a.0.total_cmp(&b.0));
    cases.into_iter().map(|(_, case)| case).collect()
}

/// The networks that reach a situation.
#[derive(Default)]
struct Reached {
    networks: u64,
    /// The networks whose runs are fastest, in the order of their times.
    fastest: Vec<Example>,
}

/// A network, the time that its run takes, and the situations that it reaches.
#[derive(Clone)]
struct Example {
    case: Case,
    took: Duration,
    reached: BTreeSet<&'static str>,
}

const EXAMPLES: usize = 5;

impl Reached {
    fn add(&mut self, examples: impl IntoIterator<Item = Example>, networks: u64) {
        self.networks += networks;
        self.fastest.extend(examples);
        self.fastest.sort_by_key(|example| example.took);
        self.fastest.truncate(EXAMPLES);
    }
}

/// The result of a campaign.
#[derive(Default)]
struct Outcome {
    /// The networks that reach each situation.
    reached: BTreeMap<&'static str, Reached>,
    /// Number of networks of each kind of framing.
    kinds: BTreeMap<&'static str, u64>,
}

/// Runs all networks on all processors.
fn run(cases: &[Case]) -> Result<Outcome, String> {
    let (next, found) = (Mutex::new(cases.iter()), AtomicBool::new(false));
    let worker = || {
        let networks: BTreeMap<&str, BoxedStrategy<Drawn>> =
            TRIALS.iter().map(|trial| (trial.name, trial.networks())).collect();
        let mut all = Outcome::default();
        while !found.load(Ordering::Relaxed) {
            let Some(&case) = next.lock().unwrap().next() else { break };
            let (trial, seed) = case;
            for kind in packets::kinds(&drawn(&networks[trial.name], seed).network()) {
                *all.kinds.entry(kind).or_default() += 1;
            }
            coverage::take_reached_here();
            let start = Instant::now();
            let differs = !trial.agrees(&networks[trial.name], seed);
            let took = start.elapsed();
            let reached: BTreeSet<_> = coverage::take_reached_here().into_iter().collect();
            for name in &reached {
                all.reached.entry(name).or_default().add([Example { case, took, reached: reached.clone() }], 1);
            }
            if differs && !found.swap(true, Ordering::Relaxed) {
                return (all, trial.run(&networks[trial.name], seed));
            }
        }
        (all, Ok(()))
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let workers = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("worker threads do not panic")).collect::<Vec<_>>()
    });
    let mut sum = Outcome::default();
    for (Outcome { reached, kinds }, outcome) in workers {
        outcome?;
        for (name, Reached { networks, fastest }) in reached {
            sum.reached.entry(name).or_default().add(fastest, networks);
        }
        for (kind, networks) in kinds {
            *sum.kinds.entry(kind).or_default() += networks;
        }
    }
    Ok(sum)
}
