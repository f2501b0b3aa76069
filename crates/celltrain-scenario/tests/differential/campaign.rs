//! A campaign: many networks of all trials, and how often they reach each rare situation. The archive keeps small networks
//! that reach them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use celltrain_core::coverage;
use proptest::prelude::*;

use super::trials::{Drawn, FOLDER, TRIALS, Trial};

/// Runs `CELLTRAIN_CAMPAIGN` networks (`make campaign NAME=differential`). Fails if the engines differ on one of them, or
/// if none of them reaches one of the situations. With `CELLTRAIN_BLESS=1`, adds networks to the archive for the
/// situations that it lacks.
#[test]
#[ignore = "a campaign: make campaign NAME=differential"]
fn campaign() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |n| n.parse().expect("a number"));
    let (count, seed) = (number("CELLTRAIN_CAMPAIGN", 2_000), number("CELLTRAIN_CAMPAIGN_SEED", 1));
    // Shrinking meets the same panic many times.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = run(&plan(count, seed));
    std::panic::set_hook(hook);
    let reached = outcome.unwrap_or_else(|difference| panic!("{difference}"));
    println!("{:>9} {:>12}  situation", "networks", "times");
    for (name, times) in coverage::counts() {
        println!("{:>9} {times:>12}  {name}", reached.get(name).map_or(0, |reached| reached.networks));
    }
    if std::env::var_os("CELLTRAIN_BLESS").is_some() {
        extend_archive(reached);
    }
    let never: Vec<_> = coverage::counts().filter(|&(_, times)| times == 0).map(|(name, _)| name).collect();
    assert!(never.is_empty(), "{count} networks never reach {never:?}");
}

#[test]
fn archived_networks_reach_their_situations() {
    let mut by_network: BTreeMap<(String, u64), Vec<&str>> = BTreeMap::new();
    for (name, trial, seed) in archive() {
        by_network.entry((trial.to_string(), seed)).or_default().push(name);
    }
    assert!(!by_network.is_empty(), "there is an archive");
    for ((trial, seed), names) in by_network {
        let trial = Trial::named(&trial);
        coverage::take_reached_here();
        trial.run(&trial.networks(), seed).unwrap_or_else(|difference| panic!("{difference}"));
        let reached = coverage::take_reached_here();
        let missed: Vec<_> = names.into_iter().filter(|name| !reached.contains(name)).collect();
        assert!(missed.is_empty(), "network {seed} of {} no longer reaches {missed:?}: {ADVICE}", trial.name);
    }
}

const ADVICE: &str = "after a change of the models or of what is drawn, delete these lines of archive.csv, and add others \
                      with make campaign NAME=differential COUNT=2000 ARGS=--bless";
const HEADER: &str = "situation,trial,network";

/// Returns the lines of the archive: situations, and for each a network that reaches it.
fn archive() -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    let parts = |line: &'static str| {
        let (name, rest) = line.split_once(',')?;
        let (trial, network) = rest.split_once(',')?;
        Some((name, trial, network.parse().ok()?))
    };
    include_str!("archive.csv")
        .lines()
        .skip(1)
        .map(move |line| parts(line).unwrap_or_else(|| panic!("{line}: {HEADER}")))
}

/// Adds lines for situations that the archive lacks: again and again the network that reaches most of them in the
/// shortest time.
fn extend_archive(reached: BTreeMap<&'static str, Reached>) {
    let mut lines: BTreeSet<String> = archive().map(|(name, trial, seed)| format!("{name},{trial},{seed}")).collect();
    let known: BTreeSet<&str> = archive().map(|(name, ..)| name).collect();
    let mut lacking: BTreeSet<&str> = reached.keys().filter(|&name| !known.contains(name)).copied().collect();
    let examples: Vec<Example> = reached.into_values().flat_map(|reached| reached.fastest).collect();
    let new =
        |example: &Example, lacking: &BTreeSet<&'static str>| example.reached.intersection(lacking).count() as f64;
    let rank = |example: &Example, lacking: &_| new(example, lacking) / example.took.as_secs_f64();
    while let Some(best) = examples.iter().max_by(|a, b| rank(a, &lacking).total_cmp(&rank(b, &lacking)))
        && new(best, &lacking) > 0.0
    {
        let (trial, seed) = best.case;
        for name in &best.reached {
            if lacking.remove(name) {
                lines.insert(format!("{name},{},{seed}", trial.name));
            }
        }
    }
    let mut text = format!("{HEADER}\n");
    for line in lines {
        writeln!(text, "{line}").unwrap();
    }
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER).join("archive.csv"), text).unwrap();
}

/// A network of a trial, by its seed.
type Case = (&'static Trial, u64);

/// Returns about `count` networks, distributed over the trials by their weights.
fn plan(count: u64, seed: u64) -> Vec<Case> {
    let all: f64 = TRIALS.iter().map(Trial::weight).sum();
    let mut cases: Vec<(f64, Case)> = Vec::new();
    for trial in TRIALS {
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
    /// The fastest of them, fastest first.
    fastest: Vec<Example>,
}

/// A network, how long it takes, and all that it reaches.
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

/// Runs all networks on all processors. Returns the networks that reach each situation.
fn run(cases: &[Case]) -> Result<BTreeMap<&'static str, Reached>, String> {
    let (next, found) = (Mutex::new(cases.iter()), AtomicBool::new(false));
    let worker = || {
        let networks: BTreeMap<&str, BoxedStrategy<Drawn>> =
            TRIALS.iter().map(|trial| (trial.name, trial.networks())).collect();
        let mut all: BTreeMap<&'static str, Reached> = BTreeMap::new();
        while !found.load(Ordering::Relaxed) {
            let Some(&case) = next.lock().unwrap().next() else { break };
            let (trial, seed) = case;
            coverage::take_reached_here();
            let start = Instant::now();
            let differs = !trial.agrees(&networks[trial.name], seed);
            let took = start.elapsed();
            let reached: BTreeSet<_> = coverage::take_reached_here().into_iter().collect();
            for name in &reached {
                all.entry(name).or_default().add([Example { case, took, reached: reached.clone() }], 1);
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
        workers.into_iter().map(|worker| worker.join().expect("differences are returned")).collect::<Vec<_>>()
    });
    let mut sum: BTreeMap<&'static str, Reached> = BTreeMap::new();
    for (reached, outcome) in workers {
        outcome?;
        for (name, Reached { networks, fastest }) in reached {
            sum.entry(name).or_default().add(fastest, networks);
        }
    }
    Ok(sum)
}
