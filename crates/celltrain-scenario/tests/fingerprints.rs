//! Checks that shipped scenarios give the recorded results on both engines, with and without a probe, and on one or two
//! threads. Other tests check that the results are right.
//!
//! After an intended change of results, update the table of fingerprints with `CELLTRAIN_BLESS=1 cargo test -p
//! celltrain-scenario --test integration fingerprints`. Commit the table alone, and explain the reason.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;

use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::{Nothing, Probe, Recorder, SeriesChoice};
use celltrain_core::units::Duration;
use celltrain_run::hosting::hosts;
use celltrain_scenario::{Scenario, build, read_toml};

use crate::scenarios_in;

/// The first simulated second is enough to distinguish runs, because it includes losses and timeouts.
const DURATION: &str = "1s";
/// Simulated time of the runs of networks with requests.
const OF_REQUESTS: &str = "60ms";

/// Runs every eighth scenario with seed 2, with all checks of this build. To write the table, runs all scenarios with
/// seeds 1 and 2. `python/tests/test_fingerprints.py` runs every second scenario with seed 1 on the optimised core.
#[test]
fn fingerprints_of_every_eighth_shipped_scenario_equal_the_recorded_fingerprints() {
    let mut runs = runs();
    runs.retain(|run| run.engine == Engine::Fast && !run.is_watched);
    if !writes_table() {
        runs = runs.into_iter().filter(|run| run.seed == 2).step_by(8).collect();
    }
    is_the_same_as_last_time(&runs, &on_threads(2, &runs));
}

#[test]
#[ignore = "slow; the nightly job runs this test"]
fn both_engines_agree_on_every_shipped_scenario_with_and_without_tracing() {
    // Runs of the reference engine come last and are not repeated.
    let runs = runs();
    let found = on_threads(2, &runs);
    let fast = runs.iter().take_while(|run| run.engine == Engine::Fast).count();
    assert!(
        on_threads(1, &runs[..fast]) == found[..fast],
        "runs on one thread and on two threads give the same result"
    );
    is_the_same_as_last_time(&runs, &found);
}

fn writes_table() -> bool {
    std::env::var_os("CELLTRAIN_BLESS").is_some()
}

fn is_the_same_as_last_time(runs: &[Run], found: &[RunResult]) {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints.csv");
    let mut now = BTreeMap::new();
    for (run, result) in runs.iter().zip(found) {
        let of_others = now.entry((&run.scenario, run.seed)).or_insert_with(|| result.clone());
        assert!(
            of_others == result,
            "{run:?}: the engines disagree, or tracing changes the result: {of_others:?} and {result:?}"
        );
    }
    let mut text = String::from("scenario,seed,fingerprint\n");
    for ((scenario, seed), result) in now {
        writeln!(text, "{scenario},{seed},{}", result.fingerprint).unwrap();
    }
    if writes_table() {
        std::fs::write(&table, &text).unwrap();
    }
    let rows = |text: &str| -> BTreeMap<String, String> {
        text.lines().filter_map(|line| line.rsplit_once(',')).map(|(k, v)| (k.to_string(), v.to_string())).collect()
    };
    let now = rows(&text);
    let mut then = rows(&std::fs::read_to_string(&table).unwrap());
    if runs.iter().all(|run| run.seed == 2) {
        then.retain(|run, _| now.contains_key(run));
    }
    assert_eq!(now, then, "the fingerprint of a run changed: see the beginning of this file");
}

#[derive(Debug)]
struct Run {
    scenario: String,
    text: String,
    seed: u64,
    engine: Engine,
    is_watched: bool,
}

fn runs() -> Vec<Run> {
    let texts = [scenarios_in("papers/af-96-1269/scenarios"), scenarios_in("scenarios")].concat();
    let mut runs = Vec::new();
    for (engine, is_watched) in [Engine::Fast, Engine::Reference].into_iter().flat_map(|e| [(e, false), (e, true)]) {
        for (scenario, text) in &texts {
            for seed in [1, 2] {
                runs.push(Run { scenario: scenario.clone(), text: text.clone(), seed, engine, is_watched });
            }
        }
    }
    runs
}

impl Run {
    fn result(&self) -> RunResult {
        let reading = read_toml(&self.text, &self.scenario);
        let mut scenario = reading.scenario.expect("every shipped scenario is valid");
        // Run networks with requests for a shorter time, because they are large and reach all rare situations early.
        let duration = if scenario.requests.is_empty() { DURATION } else { OF_REQUESTS };
        scenario.duration = duration.parse().unwrap();
        let network = build::network(&scenario, self.seed);
        if self.is_watched {
            self.hosted(&scenario, &network, &mut recorder(&network))
        } else {
            self.hosted(&scenario, &network, Nothing)
        }
    }

    fn hosted(&self, scenario: &Scenario, network: &Network, probe: impl Probe) -> RunResult {
        let run = match hosts(scenario, network).expect("this build includes all stacks") {
            Some(hosts) => {
                self.engine.run_hosted(network, probe, |_| true, |simulation| hosts.run(simulation, |_, _| ()))
            }
            None => self.engine.run(network, probe, |_| true).map_err(Into::into),
        };
        run.expect("nothing cancels this run")
    }
}

/// Creates a recorder of all series at all ports, which samples at instants without events.
fn recorder(network: &Network) -> Recorder {
    let choice = SeriesChoice {
        queue: true,
        occupancy: true,
        windows: true,
        delivered: true,
        rates: true,
        edges: true,
        memories: true,
    };
    let step = Duration { picoseconds: 1_234_567_891 };
    Recorder::new(choice, network.links.keys().collect(), step, network)
}

/// Executes the runs on `threads` threads. Returns the results of all runs.
fn on_threads(threads: usize, runs: &[Run]) -> Vec<RunResult> {
    let found = Mutex::new(vec![None; runs.len()]);
    let next = Mutex::new(0..runs.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(i) = next.lock().unwrap().next() else { break };
                    let result = runs[i].result();
                    found.lock().unwrap()[i] = Some(result);
                }
            });
        }
    });
    found.into_inner().unwrap().into_iter().map(|result| result.expect("every run has a result")).collect()
}
