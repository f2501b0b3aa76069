//! Adversarial tests: random scenarios with edge-case values are read, checked, and run if accepted.
//!
//! Nothing may panic or abort. The faults of a refused scenario name the file and the key. An accepted scenario is
//! unchanged after it is written and read again. If a run ends within its time limit, both engines give equal results.
//! Otherwise, the run stops soon after the limit. Overflow checks are on in every build of this test.
//!
//! `CELLTRAIN_ADVERSARY=20000` runs a campaign of 20,000 scenarios (`make campaign NAME=adversary`). In a campaign of
//! more than a thousand scenarios, a run must stop within a tenth of a second after its time limit.
//! `CELLTRAIN_ADVERSARY_SEED=7` starts with seed 7. Failing scenarios are saved as TOML.

#[path = "../../../celltrain-scenario/tests/differential/compare.rs"]
#[allow(dead_code, reason = "only some of the tests that include this file read series")]
mod compare;
#[path = "../../../celltrain-scenario/tests/differential/draw.rs"]
#[allow(dead_code, reason = "only some of the tests that include this file use all functions")]
mod draw;
#[path = "../../../celltrain-scenario/tests/formulas/drawn.rs"]
#[allow(dead_code, reason = "only some of the tests that include this file use all functions")]
mod drawn;
mod edges;
/// Makes the module `drawn` available under the same path as in the tests of the scenario crate.
mod formulas {
    pub(crate) use crate::drawn;
}
mod found;
#[path = "../../../celltrain-scenario/tests/differential/stand.rs"]
mod stand;
#[path = "../../../celltrain-scenario/tests/differential/text.rs"]
mod text;
mod times;
mod writer;

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::engine::Engine;
use celltrain_core::probe::Nothing;
use celltrain_run::memory::Machine;
use celltrain_run::reading::{Estimated, read};
use celltrain_scenario::{Reading, Scenario, build};

/// A machine with little memory, so that networks with a slow layout are refused.
const MACHINE: Machine = Machine { memory: Some(1 << 28) };
/// Maximum size of a scenario that is run.
const LARGEST: u64 = 1 << 26;
/// File name that must occur in every fault.
const FILE: &str = "adversary.toml";

#[test]
fn no_scenario_with_extreme_values_panics_or_hangs() {
    let cases = number("CELLTRAIN_ADVERSARY").unwrap_or(200);
    let first = number("CELLTRAIN_ADVERSARY_SEED").unwrap_or(1);
    // A campaign runs on an otherwise idle machine and checks that runs stop as soon as documented. In all other cases,
    // the test only checks that a run ends.
    let (limit, beyond) = if cases > 1_000 {
        (Duration::from_millis(100), Duration::from_millis(100))
    } else {
        (Duration::from_millis(5), Duration::from_secs(30))
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("adversary");
    fs::create_dir_all(&folder).unwrap();
    let next = AtomicU64::new(first);
    let day = Mutex::new(Day::default());
    let work = |worker: usize| {
        // File with the current scenario, so that a scenario that aborts the process or never ends can be found.
        let under_way = folder.join(format!("under-way-{worker}.toml"));
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + cases {
                break;
            }
            let written = writer::scenario(seed);
            fs::write(&under_way, format!("# seed {seed}\n{}", written.toml)).unwrap();
            let outcome = catch_unwind(AssertUnwindSafe(|| judge(&written, limit, beyond)));
            let mut day = day.lock().unwrap();
            match outcome.unwrap_or_else(|panic| Err(format!("it panics: {}", words(&*panic)))) {
                Ok(fate) => day.add(&fate, seed),
                Err(why) => {
                    let file = folder.join(format!("seed-{seed}.toml"));
                    fs::write(&file, &written.toml).unwrap();
                    day.failures.push(format!("seed {seed}, {}: {why}", file.display()));
                }
            }
        }
        fs::remove_file(under_way).unwrap();
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        for worker in workers {
            worker.join().expect("panics while a scenario is processed are caught");
        }
    });
    let day = day.into_inner().unwrap();
    println!("seeds {first} to {}: {}", first + cases - 1, day.told());
    assert!(day.failures.is_empty(), "{} fail:\n{}", day.failures.len(), day.failures.join("\n"));
    // Many scenarios must be accepted and many refused, so that the test covers both cases.
    if cases >= 200 {
        assert!(day.refused > cases / 10, "{}", day.told());
        assert!(day.compared > cases / 10, "{}", day.told());
        assert!(day.stopped > 0, "{}", day.told());
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} = {text:?} is not a number")))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

/// The outcomes of all scenarios.
#[derive(Default)]
struct Day {
    refused: u64,
    too_large: u64,
    /// Scenarios that both engines ran to the end.
    compared: u64,
    /// Scenarios that reached the time limit.
    stopped: u64,
    /// The longest time by which a run exceeded its time limit, and the seed of this run.
    late: (Duration, u64),
    failures: Vec<String>,
}

impl Day {
    fn add(&mut self, fate: &Outcome, seed: u64) {
        match *fate {
            Outcome::Refused => self.refused += 1,
            Outcome::TooLarge => self.too_large += 1,
            Outcome::Compared => self.compared += 1,
            Outcome::Stopped(late) => {
                self.stopped += 1;
                self.late = self.late.max((late, seed));
            }
        }
    }

    fn told(&self) -> String {
        let Self { refused, too_large, compared, stopped, late: (late, seed), .. } = self;
        let late = late.as_secs_f64() * 1e3;
        format!(
            "{refused} refused, {compared} ran on both engines, {stopped} reached the time limit, {too_large} too \
             large to run; at most {late:.1} ms over the limit (seed {seed})"
        )
    }
}

enum Outcome {
    Refused,
    TooLarge,
    Compared,
    /// The run stopped after its time limit. The value is the time between the limit and the stop.
    Stopped(Duration),
}

fn judge(written: &writer::Written, limit: Duration, beyond: Duration) -> Result<Outcome, String> {
    let Estimated { reading, memory, .. } =
        whole(read(FILE, MACHINE, &CancellationToken::never(), |reader| reader.toml(&written.toml)));
    is_in_words(&reading)?;
    if let Some(json) = &written.json {
        let by_json = whole(read(FILE, MACHINE, &CancellationToken::never(), |reader| reader.json(json))).reading;
        is_in_words(&by_json)?;
        if by_json.scenario != reading.scenario {
            return Err("the scenario differs after conversion to JSON".into());
        }
    }
    let Some(scenario) = reading.scenario else { return Ok(Outcome::Refused) };
    let again = serde_json::to_string(&scenario).map_err(|error| error.to_string())?;
    let again = whole(read(FILE, MACHINE, &CancellationToken::never(), |reader| reader.json(&again))).reading;
    if again.scenario.as_ref() != Some(&scenario) {
        return Err(format!("the scenario differs after writing and reading: {:?}", again.faults));
    }
    let network = build::network(&scenario, scenario.seed);
    if memory.is_none_or(|memory| memory.likely > LARGEST) {
        return Ok(Outcome::TooLarge);
    }
    let mut results = Vec::new();
    for (engine, limit) in [(Engine::Fast, limit), (Engine::Reference, 20 * limit)] {
        let start = Instant::now();
        let Ok(result) = engine.run(&network, Nothing, |_| start.elapsed() < limit) else {
            let late = start.elapsed().saturating_sub(limit);
            let told = format!("the {} engine stops {late:?} after its limit of {limit:?}", engine.name());
            return if late > beyond { Err(told) } else { Ok(Outcome::Stopped(late)) };
        };
        results.push(result);
    }
    compare::is_possible(&results[0], &network)?;
    compare::same_results(&results[0], &results[1])?;
    Ok(Outcome::Compared)
}

/// Checks that reading a text results in either a scenario, or faults that name their file and key.
fn is_in_words(reading: &Reading) -> Result<(), String> {
    if reading.scenario.is_some() != reading.faults.is_empty() {
        return Err("the scenario is neither accepted nor refused".into());
    }
    for fault in &reading.faults {
        let is_of_all = fault.problem.contains("is not TOML") || fault.problem.contains("more faults");
        let has_place = fault.file == FILE && fault.message.starts_with(FILE);
        if !has_place || fault.problem.is_empty() || (fault.key.is_empty() && !is_of_all) {
            return Err(format!("the message of a fault is too short: {fault:?}"));
        }
    }
    Ok(())
}

fn whole(read: Result<Estimated, Interrupted>) -> Estimated {
    read.expect("no test cancels a run")
}

fn scenario(text: &str) -> Scenario {
    let reading = whole(read(FILE, MACHINE, &CancellationToken::never(), |reader| reader.toml(text))).reading;
    reading.scenario.unwrap_or_else(|| panic!("{:?}\n{text}", reading.faults))
}

/// Returns the keys that the faults in a text refer to.
fn keys(text: &str) -> Vec<String> {
    let reading = whole(read(FILE, MACHINE, &CancellationToken::never(), |reader| reader.toml(text))).reading;
    assert!(reading.scenario.is_none(), "{text}");
    reading.faults.into_iter().map(|fault| fault.key).collect()
}
