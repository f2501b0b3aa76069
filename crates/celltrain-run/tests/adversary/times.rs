//! Tests values of every parameter that is a time, from a picosecond to the duration of the run, in the shipped
//! scenarios.
//!
//! The schema lists the parameters, so a new parameter is tested without a change here. A run that ends within its time
//! limit gives the same fingerprint on both engines. Any other run stops soon after its limit. The test fails if a
//! parameter occurs in no accepted scenario.
//!
//! `CELLTRAIN_TIMES=10000` runs a campaign (`make campaign NAME=times`), `CELLTRAIN_TIMES_SEED=7` starts with seed 7,
//! and `CELLTRAIN_TIMES_FOLDER` names a folder for the scenarios that reached their time limit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::Engine;
use celltrain_core::rng::Stream;
use celltrain_run::Unfinished;
use celltrain_run::reading::read;
use celltrain_run::runner::{How, Progress, one};
use celltrain_run::scenario::Handle;
use celltrain_run::series::Trace;
use serde_json::{Map, Value, json};

use super::writer::{SCHEMA, choices, resolved};
use super::{FILE, MACHINE, number, whole, words};

/// Limit of the real time of a run.
const LIMIT: Duration = Duration::from_millis(10);
/// Longest simulated time of a run, in picoseconds: a million seconds.
const LONGEST: u64 = 1_000_000_000_000_000_000;
/// Maximum number of attempts to draw an accepted scenario for a seed.
const MOST_DRAWS: u32 = 60;

/// A parameter: the name of its table's type, and its key.
type Parameter = (String, String);

#[test]
fn a_run_can_be_stopped_for_every_value_of_a_time_setting() {
    let cases = number("CELLTRAIN_TIMES").unwrap_or(30);
    let first = number("CELLTRAIN_TIMES_SEED").unwrap_or(1);
    // Only a campaign checks how soon runs stop, because tests that run at the same time delay each other.
    let beyond = Duration::from_millis(if cases > 1_000 { 100 } else { 30_000 });
    let kept = std::env::var_os("CELLTRAIN_TIMES_FOLDER").map(PathBuf::from);
    if let Some(kept) = &kept {
        fs::create_dir_all(kept).unwrap();
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("times");
    fs::create_dir_all(&folder).unwrap();
    let bases = shipped();
    let parameters: Vec<_> = parameters().into_iter().collect();
    let next = AtomicU64::new(first);
    let day = Mutex::new(Day::default());
    let work = |worker: usize| {
        // File with the current scenario, so that a scenario that never ends can be found.
        let under_way = folder.join(format!("under-way-{worker}.json"));
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + cases {
                break;
            }
            let mut attempts = 0;
            let (drawn, outcome) = loop {
                let drawn = Drawn::new(seed, attempts, &bases, &parameters);
                attempts += 1;
                fs::write(&under_way, drawn.json()).unwrap();
                let outcome = catch_unwind(AssertUnwindSafe(|| judge(&drawn, beyond)));
                // If the scenario is refused, draw another scenario.
                match outcome {
                    Ok(Ok(Outcome::Refused(key))) if attempts < MOST_DRAWS => day.lock().unwrap().refuse(key),
                    outcome => break (drawn, outcome),
                }
            };
            let mut day = day.lock().unwrap();
            match outcome.unwrap_or_else(|panic| Err(format!("it panics: {}", words(&*panic)))) {
                Ok(outcome) => {
                    if let (Outcome::Stopped(_), Some(kept)) = (&outcome, &kept) {
                        fs::write(kept.join(format!("seed-{seed}.json")), drawn.json()).unwrap();
                    }
                    day.add(outcome, seed, drawn.parameters);
                }
                Err(why) => {
                    let file = folder.join(format!("seed-{seed}.json"));
                    fs::write(&file, drawn.json()).unwrap();
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
    println!("seeds {first} to {}: {}", first + cases - 1, day.in_words());
    assert!(day.failures.is_empty(), "{} fail:\n{}", day.failures.len(), day.failures.join("\n"));
    if cases >= 100 {
        let never: Vec<_> = parameters.iter().filter(|one| !day.parameters.contains(*one)).collect();
        assert!(never.is_empty(), "no accepted scenario has {never:?}; refused: {:?}", day.reasons);
        assert!(day.compared > cases / 10 && day.stopped > cases / 10, "{}", day.in_words());
    }
}

/// Returns the shipped scenarios, which together use every model, and a scenario with a delay of single packets, which
/// no shipped scenario has.
fn shipped() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let of_files = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    of_files.chain([DELAYED.to_string()]).map(|text| toml::from_str(&text).expect("the text is valid TOML")).collect()
}

const DELAYED: &str = r#"
duration = "1s"
topology.n_source = { sources = 2, link_delay = "5us" }
port.bottleneck = { buffer = 100, policy.tail_drop = {} }
link."source1->sw1".delay = [{ flow = "tcp1", packets = [14], by = "50ms" }]
"#;

/// Returns all parameters that are times.
fn parameters() -> BTreeSet<Parameter> {
    let mut found = BTreeSet::new();
    let types = SCHEMA["$defs"].as_object().unwrap().iter().map(|(name, schema)| (name.as_str(), schema));
    for (name, schema) in types.chain([(ROOT, &*SCHEMA)]) {
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            if is_time(property) || is_time(&property["additionalProperties"]) {
                found.insert((name.to_string(), key.clone()));
            }
        }
    }
    found
}

const ROOT: &str = "scenario";

fn is_time(schema: &Value) -> bool {
    schema["x-quantity"] == "time" || schema["anyOf"].as_array().is_some_and(|any| any.iter().any(is_time))
}

fn name_of(schema: &'static Value) -> &'static str {
    schema["$ref"]
        .as_str()
        .map_or(ROOT, |reference| reference.rsplit('/').next().expect("splitting a text gives at least one part"))
}

struct Drawn {
    document: Value,
    duration: u64,
    /// The sampling step, if series are recorded.
    step: Option<String>,
    parameters: BTreeSet<Parameter>,
}

impl Drawn {
    /// Draws a scenario. The seed selects one parameter whose value is certainly changed.
    fn new(seed: u64, draw: u32, bases: &[Value], parameters: &[Parameter]) -> Self {
        let wanted =
            &parameters[usize::try_from(seed).expect("the seed fits into an index of this machine") % parameters.len()];
        let mut tries =
            (0..10_000).map(|attempt| Self::random(&format!("times/{draw}/{attempt}"), seed, bases, wanted));
        let drawn = tries.find(|drawn| drawn.parameters.contains(wanted));
        drawn.unwrap_or_else(|| panic!("no shipped scenario can have {wanted:?}"))
    }

    fn random(stream: &str, seed: u64, bases: &[Value], wanted: &Parameter) -> Self {
        let mut rng = Stream::new(seed, stream);
        let base = rng.below(u32::try_from(bases.len()).expect("the number of shipped scenarios fits in 32 bits"));
        let mut document = bases[base as usize].clone();
        // The durations are chosen so that about half of the runs end within their time limit.
        let duration = if rng.below(2) == 0 { LONGEST } else { 1_000_000_000 };
        let duration = time(&mut rng, duration).max(1_000_000);
        let mut writer = Writer { rng, duration, wanted, parameters: BTreeSet::new(), some_in: 1 };
        // Change only a few parameters in some scenarios, so that each change has an effect on the run.
        writer.some_in = writer.pick(&[4, 40, 1_000]);
        writer.fill(&mut document, &SCHEMA);
        document["duration"] = format!("{duration}ps").into();
        let step = (writer.rng.below(4) == 0).then(|| format!("{}ps", time(&mut writer.rng, duration)));
        Self { document, duration, step, parameters: writer.parameters }
    }

    fn json(&self) -> String {
        self.document.to_string()
    }
}

/// Draws a time between a picosecond and `longest` whose logarithm is distributed uniformly. Half of the times are
/// powers of ten, because some times must be multiples of others.
fn time(rng: &mut Stream, longest: u64) -> u64 {
    if rng.below(2) == 0 {
        return 10u64.pow(rng.below(longest.ilog10() + 1));
    }
    let bits = rng.below(longest.ilog2() + 1);
    let more = (u64::from(rng.below(u32::MAX)) << 32 | u64::from(rng.below(u32::MAX))) & ((1 << bits) - 1);
    ((1 << bits) + more).min(longest)
}

struct Writer<'a> {
    rng: Stream,
    duration: u64,
    /// Parameter whose value is changed in any case.
    wanted: &'a Parameter,
    parameters: BTreeSet<Parameter>,
    /// On average, one parameter in this number is drawn.
    some_in: u32,
}

impl Writer<'_> {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.below(u32::try_from(from.len()).expect("the length of this list fits in 32 bits")) as usize]
    }

    fn time(&mut self) -> Value {
        format!("{}ps", time(&mut self.rng, self.duration)).into()
    }

    /// Draws values for the times in a table or list, and in the tables and lists that it contains.
    fn fill(&mut self, value: &mut Value, schema: &'static Value) {
        let name = name_of(schema);
        let schema = resolved(schema);
        if let Some(choices) = choices(schema) {
            self.fill_choice(value, choices);
        } else if let Value::Array(items) = value {
            for item in items {
                self.fill(item, &schema["items"]);
            }
        } else if let Value::Object(map) = value {
            self.fill_table(map, name, schema);
        }
    }

    /// Draws values for the times in a table that is one of several choices, or replaces the table by another choice.
    fn fill_choice(&mut self, value: &mut Value, choices: &'static [Value]) {
        let Some(map) = value.as_object() else { return };
        let mut choice = choices.iter().find(|choice| {
            let properties = &resolved(choice)["properties"];
            choices.len() == 1 || map.keys().next().is_some_and(|key| properties.get(key).is_some())
        });
        // If one of two choices is null, only the other choice can contain times.
        if choice.is_none() {
            choice = choices.iter().find(|choice| choice.get("$ref").is_some());
        }
        let models: Vec<_> = choices.iter().filter(|choice| has_time_in_model(choice)).collect();
        if !models.is_empty() && self.rng.below(6) == 0 {
            let other = self.pick(&models);
            let (key, model) = other["properties"]
                .as_object()
                .and_then(|all| all.iter().next())
                .expect("the table has exactly one key");
            let mut table = Map::new();
            require(&mut table, resolved(model));
            *value = json!({key: table});
            choice = Some(other);
        }
        if let Some(choice) = choice {
            self.fill(value, choice);
        }
    }

    fn fill_table(&mut self, map: &mut Map<String, Value>, name: &str, schema: &'static Value) {
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_wanted = (name, key) == (&self.wanted.0, &self.wanted.1);
            let is_chosen = is_wanted || self.rng.below(self.some_in) == 0;
            if is_time(property) {
                if is_chosen {
                    map.insert(key.clone(), self.time());
                    self.parameters.insert((name.to_string(), key.clone()));
                }
            } else if is_time(&property["additionalProperties"]) {
                for value in map.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
                    *value = self.time();
                    self.parameters.insert((name.to_string(), key.clone()));
                }
            } else if let Some(value) = map.get_mut(key) {
                self.fill(value, property);
            } else if is_optional_table(property) && self.rng.below(8) == 0 {
                let mut table = json!({});
                self.fill(&mut table, property);
                map.insert(key.clone(), table);
            }
        }
        if schema["additionalProperties"].is_object() {
            map.values_mut().for_each(|value| self.fill(value, &schema["additionalProperties"]));
        }
    }
}

/// Adds the required keys of a table, with the examples in the schema as values.
fn require(table: &mut Map<String, Value>, schema: &'static Value) {
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if let Some(example) = schema["properties"][key]["examples"].get(0) {
            table.insert(key.to_string(), example.clone());
        }
    }
}

/// Returns whether a choice of the schema is a model, such as a policy, with a setting that is a time.
fn has_time_in_model(choice: &'static Value) -> bool {
    let model = choice["properties"].as_object().and_then(|all| all.values().next()).map(resolved);
    let properties = model.and_then(|model| model["properties"].as_object());
    properties.is_some_and(|properties| properties.values().any(is_time))
}

/// Returns whether a property is an optional table without required keys that contains a time.
fn is_optional_table(property: &'static Value) -> bool {
    let schema = resolved(property);
    let is_free = schema.get("required").is_none() && schema["type"] == "object";
    is_free && schema["properties"].as_object().is_some_and(|properties| properties.values().any(is_time))
}

#[derive(Default)]
struct Day {
    refused: u64,
    too_large: u64,
    compared: u64,
    stopped: u64,
    /// The longest time by which a run exceeded its limit, and the seed of that run.
    late: (Duration, u64),
    parameters: BTreeSet<Parameter>,
    reasons: BTreeMap<String, u64>,
    failures: Vec<String>,
}

enum Outcome {
    /// The scenario was refused because of this key.
    Refused(String),
    TooLarge,
    /// Both engines ran to the end of the simulation.
    Compared,
    /// An engine stopped after the time limit. The value is the time between the limit and the stop.
    Stopped(Duration),
}

impl Day {
    fn refuse(&mut self, key: String) {
        self.refused += 1;
        *self.reasons.entry(key).or_default() += 1;
    }

    fn add(&mut self, outcome: Outcome, seed: u64, parameters: BTreeSet<Parameter>) {
        match outcome {
            Outcome::Refused(key) => return self.refuse(key),
            Outcome::TooLarge => self.too_large += 1,
            Outcome::Compared => self.compared += 1,
            Outcome::Stopped(late) => {
                self.stopped += 1;
                self.late = self.late.max((late, seed));
            }
        }
        self.parameters.extend(parameters);
    }

    fn in_words(&self) -> String {
        let Self { refused, too_large, compared, stopped, late: (late, seed), .. } = self;
        let late = late.as_secs_f64() * 1e3;
        format!(
            "{refused} refused, {compared} ran on both engines, {stopped} reached the time limit, {too_large} too \
             large to run; at most {late:.1} ms over the limit (seed {seed})"
        )
    }
}

fn judge(drawn: &Drawn, beyond: Duration) -> Result<Outcome, String> {
    let json = drawn.json();
    let estimated = whole(read(FILE, MACHINE, &CancellationToken::never(), |reader| reader.json(&json)));
    let (handle, estimated) = Handle::of_reading(estimated);
    let Some(handle) = handle else {
        let faults = estimated.reading.faults;
        let first = faults.first().ok_or("the scenario is refused without a message")?;
        return Ok(Outcome::Refused(first.key.clone()));
    };
    let duration = celltrain_core::units::Duration { picoseconds: drawn.duration };
    let trace = match &drawn.step {
        // If the sampling step is too short, the trace is refused and no series is recorded.
        Some(step) => Trace::new(duration, &["queue".into()], Some(step), None).unwrap_or_default(),
        None => None,
    };
    let mut fingerprints = Vec::new();
    let mut latest = None;
    for engine in [Engine::Fast, Engine::Reference] {
        let how = How { trace: trace.as_ref(), engine, limit: Some(LIMIT), ..How::default() };
        let mut runs = 0;
        loop {
            let start = Instant::now();
            match one(&handle, None, how, &AtomicBool::new(false), &Progress::default()) {
                Ok(finished) => {
                    let answer: Value = serde_json::from_str(&finished.answer).expect("the answer is valid JSON");
                    fingerprints.push(answer["fingerprint"].clone());
                    break;
                }
                Err(Unfinished::TookTooLong(_)) => {
                    let late = start.elapsed().saturating_sub(LIMIT);
                    // Measure again if the run stopped late, because the machine may have been busy with other work.
                    runs += 1;
                    if late <= beyond {
                        latest = latest.max(Some(late));
                        break;
                    }
                    if runs == 3 {
                        return Err(format!(
                            "the {} engine stops {late:?} after its limit of {LIMIT:?}",
                            engine.name()
                        ));
                    }
                }
                Err(Unfinished::TooLarge(_)) => return Ok(Outcome::TooLarge),
                Err(Unfinished::Refused(why)) => return Ok(Outcome::Refused(why)),
                Err(other) => return Err(format!("the {} engine: {other:?}", engine.name())),
            }
        }
    }
    if let [fast, reference] = &fingerprints[..]
        && fast != reference
    {
        return Err(format!("the fingerprints are {fast} and {reference}"));
    }
    Ok(latest.map_or(Outcome::Compared, Outcome::Stopped))
}
