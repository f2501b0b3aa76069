//! The calls that the lab page makes, with their requests and answers. The corresponding TypeScript types are in
//! `lab/src/engine/api.ts`.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::engine::Engine;
use celltrain_core::network::Network;
use celltrain_core::units::Duration;
use celltrain_run::answer::Build;
use celltrain_run::buffer::Buffer;
use celltrain_run::events::{Choice, Log};
use celltrain_run::memory::Watch;
use celltrain_run::requests::Records;
use celltrain_run::runner::{self, How, Observers, Progress};
use celltrain_run::scenario::{Checked, Handle};
use celltrain_run::series::{Array, Over, Recorded, SERIES, Trace};
use celltrain_run::{Unfinished, describe};
use celltrain_scenario::document::Document;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Columns};
use crate::reading::{Deadline, Limits, Refusal, accepted, read};
use crate::{buffer, edit, events, network};

#[derive(Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// The first request of the page. The JSON Schema of scenarios is passed as a text, so that JavaScript does not
    /// change its numbers.
    Start {
        schema: String,
    },
    Check {
        toml: String,
        limits: Limits,
    },
    Document {
        toml: String,
    },
    Edit {
        toml: String,
        path: Vec<String>,
        value: Option<Value>,
    },
    Run {
        toml: String,
        seed: Option<u64>,
        engine: Option<String>,
        series: Option<SeriesAsked>,
        /// True to return a row for each simulated request.
        #[serde(default)]
        requests: bool,
        /// True to measure the delays of packets.
        #[serde(default)]
        delays: bool,
        limits: Limits,
    },
    Events {
        toml: String,
        seed: Option<u64>,
        chosen: EventsAsked,
        limits: Limits,
    },
    Buffer {
        toml: String,
        seed: Option<u64>,
        port: String,
        from: f64,
        to: f64,
        most_steps: usize,
        limits: Limits,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesAsked {
    names: Vec<String>,
    ports: Option<Ports>,
    step: Option<String>,
}

/// Names of ports, or the word `all`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Ports {
    These(Vec<String>),
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsAsked {
    kinds: Vec<String>,
    from: Option<f64>,
    to: Option<f64>,
    ports: Option<Vec<String>>,
    flows: Option<Vec<String>>,
    most_rows: usize,
}

/// Answers a request, which is JSON in UTF-8. Calls `on_progress` with the completed fraction of a run.
pub fn answer(request: &[u8], on_progress: fn(f64)) -> Answer {
    let mut columns = Columns::default();
    let answered = match serde_json::from_slice(request) {
        Ok(request) => answered(request, on_progress, &mut columns),
        Err(error) => Err(Refusal::new("broken", format!("the request is not valid: {error}"))),
    };
    let text = match answered {
        Ok(ok) => json!({"ok": ok}).to_string(),
        Err(refusal) => json!({"error": refusal.json()}).to_string(),
    };
    Answer { text, columns: columns.0 }
}

fn answered(request: Request, on_progress: fn(f64), columns: &mut Columns) -> Result<Value, Refusal> {
    match request {
        Request::Start { schema } => {
            let schema: Value = serde_json::from_str(&schema)
                .map_err(|error| Refusal::new("broken", format!("the schema is not JSON: {error}")))?;
            #[cfg(target_family = "wasm")]
            celltrain_scenario::scenario::provide_schema(schema);
            #[cfg(not(target_family = "wasm"))]
            drop(schema);
            Ok(json!(Build::this()))
        }
        Request::Check { toml, limits } => checked(&toml, limits.deadline()),
        Request::Document { toml } => Ok(describe::document(Document::from_toml(&toml), "scenario")),
        Request::Edit { toml, path, value } => Ok(json!(edit::edited(&toml, &path, value.as_ref())?)),
        Request::Run { toml, seed, engine, series, requests, delays, limits } => {
            let deadline = limits.deadline();
            let engine = engine.as_deref().map_or(Ok(Engine::Fast), engine_named)?;
            let measured = (series, requests, delays);
            run(&accepted(&toml, &deadline)?, (seed, engine), measured, deadline, on_progress, columns)
        }
        Request::Events { toml, seed, chosen, limits } => {
            let deadline = limits.deadline();
            let (full, most) = (Cell::new(false), chosen.most_rows);
            let mut tables = events::Tables::new(most, &full);
            let under = Under { handle: &accepted(&toml, &deadline)?, seed, deadline, on_progress, full: &full };
            let (choice, until) = under.choice(&chosen)?;
            let engine = if choice.needs_reference().is_some() { Engine::Reference } else { Engine::Fast };
            let mut sink = |block| tables.take(block);
            under.observe(engine, until, |network, go_on| {
                let log = Log::new(&choice, network, &mut sink).map_err(|wrong| Refusal::of(&wrong.into()))?;
                let mut observers = Observers { log: Some(log), ..Observers::default() };
                go_on(&mut observers)?;
                observers.log.expect("the observer is still installed").finish();
                Ok(())
            })?;
            let shown = tables.json(choice.kinds(), columns);
            Ok(json!({"tables": shown, "cut_short": full.get()}))
        }
        Request::Buffer { toml, seed, port, from, to, most_steps, limits } => {
            let deadline = limits.deadline();
            let full = Cell::new(false);
            let under = Under { handle: &accepted(&toml, &deadline)?, seed, deadline, on_progress, full: &full };
            let chosen = EventsAsked {
                kinds: vec!["cells".into()],
                from: Some(from),
                to: Some(to),
                ports: None,
                flows: None,
                most_rows: 0,
            };
            // Check the times like the time window of a request for events.
            let (_, until) = under.choice(&chosen)?;
            let window = [seconds(from), until.unwrap_or(Duration { picoseconds: u64::MAX })];
            let mut history = None;
            under.observe(Engine::Reference, until, |network, go_on| {
                let buffer = Buffer::new(network, &port, window, (most_steps, &full))
                    .map_err(|wrong| Refusal::of(&wrong.into()))?;
                let mut observers = Observers { buffer: Some(buffer), ..Observers::default() };
                go_on(&mut observers)?;
                history = observers.buffer.map(Buffer::history);
                Ok(())
            })?;
            Ok(buffer::json(history.expect("the buffer was recorded"), columns))
        }
    }
}

fn engine_named(name: &str) -> Result<Engine, Refusal> {
    Engine::named(name).ok_or_else(|| Refusal::new("refused", format!("{name:?} is not an engine")))
}

/// Converts seconds to a duration of whole picoseconds. A negative number becomes 0, and a number that is too large
/// becomes the longest duration.
fn seconds(number: f64) -> Duration {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the values fit the type of the cast")]
    Duration { picoseconds: (number * 1e12).round() as u64 }
}

fn checked(toml: &str, deadline: Deadline) -> Result<Value, Refusal> {
    let (handle, rest) = read(toml, &deadline)?;
    let go_on = || deadline.is_ahead();
    let token = CancellationToken::new(&go_on);
    let mut answer = describe::reading(&rest);
    [answer["network"], answer["defaults"]] = [Value::Null, Value::Null];
    if let Some(handle) = handle {
        let checked = looked(&handle, &token)?;
        let shown = checked.with_network(&token, |network| network::described(checked.scenario(), network, &token));
        answer["network"] = shown.map_err(|Interrupted| deadline.passed())?;
        answer["defaults"] = checked.json();
    }
    Ok(answer)
}

fn looked(handle: &Handle, token: &CancellationToken<'_>) -> Result<std::sync::Arc<Checked>, Refusal> {
    handle.checked(token).map_err(|unfinished| Refusal::of(&unfinished))
}

fn run(
    handle: &Handle,
    (seed, engine): (Option<u64>, Engine),
    (series, records, delays): (Option<SeriesAsked>, bool, bool),
    deadline: Deadline,
    on_progress: fn(f64),
    columns: &mut Columns,
) -> Result<Value, Refusal> {
    let go_on = || deadline.is_ahead();
    let token = CancellationToken::new(&go_on);
    let checked = looked(handle, &token)?;
    let refused = |unfinished: Unfinished| match unfinished {
        Unfinished::Interrupted | Unfinished::TookTooLong(_) => deadline.passed(),
        other => Refusal::of(&other),
    };
    let trace = match series {
        None => None,
        Some(SeriesAsked { names, ports, step }) => {
            let ports = match ports {
                None => None,
                Some(Ports::These(ports)) => Some(ports),
                Some(Ports::Word(word)) if word == "all" => Some(
                    checked
                        .with_network(&token, |network| {
                            Ok(network.links.iter().map(|link| link.name.clone()).collect())
                        })
                        .map_err(refused)?,
                ),
                Some(Ports::Word(word)) => Some(vec![word]),
            };
            let duration = checked.scenario().duration;
            let trace = Trace::new(duration, &names, step.as_deref(), ports);
            trace.map_err(|words| Refusal::new("refused", words))?
        }
    };
    let most_records = if records { u64::MAX } else { 0 };
    let limit = Some(deadline.left());
    let how = How { trace: trace.as_ref(), engine, limit, most_records, delays, ..How::default() };
    if let Some(trace) = &trace {
        checked.with_network(&token, |network| Ok::<_, Unfinished>(trace.refuse_empty(network)?)).map_err(refused)?;
    }
    let (stopped, progress) = (AtomicBool::new(false), Progress::with_callback(on_progress));
    let finished = runner::one(handle, seed, how, &stopped, &progress).map_err(refused)?;
    let answer: Value = serde_json::from_str(&finished.answer).expect("the answer is valid JSON");
    let series = finished.series.map(|recorded| recorded_json(recorded, columns));
    let requests = finished.records.map(|records| requests_json(records, columns));
    let unmet = finished.unmet.iter().map(|rule| json!({"rule": rule.number, "text": rule.text}));
    Ok(json!({"answer": answer, "series": series, "requests": requests, "unmet": unmet.collect::<Vec<_>>()}))
}

/// Returns the requests of a run as columns: their groups, sizes, completion times and slowdowns.
fn requests_json(records: Records, columns: &mut Columns) -> Value {
    let Records { groups, group, bytes, opened_s, completed_s, slowdown, .. } = records;
    let completion_ms: Vec<f64> = completed_s.iter().zip(opened_s).map(|(end, start)| (end - start) * 1e3).collect();
    let bytes: Vec<f64> = bytes.into_iter().map(|bytes| bytes as f64).collect();
    json!({
        "group": {"at": columns.put(group), "words": groups},
        "bytes": columns.put(bytes),
        "completion_ms": columns.put(completion_ms),
        "slowdown": columns.put(slowdown),
    })
}

/// Returns recorded series by measure, each measure with the names of its columns. A series of connections at ports
/// also lists the port of each column.
fn recorded_json(recorded: Recorded, columns: &mut Columns) -> Value {
    let Recorded { time_s, names, occupancy_columns, arrays } = recorded;
    let over = |measure: &str| {
        let of = SERIES.iter().find(|series| series.columns.iter().any(|column| column.name == measure));
        of.expect("recorded series are in the table").over
    };
    let mut measures = Map::new();
    for (name, array) in arrays {
        let values: Vec<f64> = match array {
            Array::Counts(values) => values.into_iter().map(f64::from).collect(),
            Array::Bytes(values) => values.into_iter().map(|bytes| bytes as f64).collect(),
            Array::Numbers(values) => values,
        };
        let (names, ports): (Vec<&String>, Option<Vec<&String>>) = match over(name) {
            Over::PortFlows => (
                occupancy_columns.iter().map(|of| &of.1).collect(),
                Some(occupancy_columns.iter().map(|of| &of.0).collect()),
            ),
            over => {
                let found = names.iter().find(|(list, _)| *list == over.name());
                (found.map(|(_, names)| names.iter().collect()).unwrap_or_default(), None)
            }
        };
        measures.insert(name.to_owned(), json!({"values": columns.put(values), "names": names, "ports": ports}));
    }
    json!({"time_s": columns.put(time_s), "measures": measures})
}

/// A run whose result is not used, but only the records of its observers.
struct Under<'a> {
    handle: &'a Handle,
    seed: Option<u64>,
    deadline: Deadline,
    on_progress: fn(f64),
    /// Flag that is set when the observers need no more events.
    full: &'a Cell<bool>,
}

/// A function that executes the run with the given observers.
type Drive<'a> = dyn FnMut(&mut Observers<'_>) -> Result<(), Refusal> + 'a;

impl Under<'_> {
    /// Returns the selection of events, and the time after which the run may stop; `None` instead of a time if the run
    /// must not stop early.
    fn choice(&self, chosen: &EventsAsked) -> Result<(Choice, Option<Duration>), Refusal> {
        let duration = looked(self.handle, &CancellationToken::never())?.scenario().duration;
        let bound = |at: Option<f64>| match at {
            Some(at) if !(0.0..=1e9).contains(&at) => {
                Err(Refusal::new("refused", format!("{at} is not a time since the start, in seconds")))
            }
            at => Ok(at.map(seconds)),
        };
        let (from, to) = (bound(chosen.from)?, bound(chosen.to)?.map(|to| to.min(duration)));
        let text = |at: Option<Duration>| at.map_or_else(String::new, |at| at.to_string());
        let window = format!("{}:{}", text(from), text(to));
        let window = (from.is_some() || to.is_some()).then_some(window.as_str());
        let of = [chosen.ports.clone(), None, chosen.flows.clone()];
        let choice = Choice::new(duration, &chosen.kinds, of, window).map_err(|wrong| Refusal::of(&wrong.into()))?;
        Ok((choice, to.filter(|&to| to < duration)))
    }

    /// Runs the scenario up to `until` with the observers that `with` provides.
    fn observe(
        &self,
        engine: Engine,
        until: Option<Duration>,
        with: impl FnOnce(&Network, &mut Drive<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Self { deadline, on_progress, .. } = *self;
        let in_time = || deadline.is_ahead();
        let token = CancellationToken::new(&in_time);
        let checked = looked(self.handle, &token)?;
        let memory = Watch::default();
        let too_large = |words| Refusal::of(&Unfinished::TooLarge(words));
        memory.begin(checked.memory()).map_err(too_large)?;
        let seed = self.seed.unwrap_or(checked.scenario().seed);
        let network = checked.network(seed, &token).map_err(|Interrupted| deadline.passed())?;
        let until = until.unwrap_or(network.duration);
        let mut go_on = |done: f64| {
            on_progress(done);
            deadline.is_ahead() && !self.full.get() && memory.suffices()
        };
        let scenario = checked.scenario();
        with(&network, &mut |observers| match observers.observe(engine, scenario, (&network, until), &mut go_on) {
            Err(Unfinished::Interrupted) if !self.full.get() => {
                Err(memory.outgrown().map_or_else(|| deadline.passed(), too_large))
            }
            Err(unfinished) if unfinished != Unfinished::Interrupted => Err(Refusal::of(&unfinished)),
            _ => Ok(()),
        })
    }
}
