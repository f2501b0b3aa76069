//! Runs one scenario, or many scenarios on several threads. Each run has a time limit, which includes reading the
//! scenario, building its network and measuring the result.

mod batch;
mod observers;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::certificate::{Certificate, Uncertified};
use celltrain_core::delay::DelayChoice;
use celltrain_core::engine::{Engine, ParallelOptions};
use celltrain_core::metrics::{RunResult, UnmetRule};
use celltrain_core::network::{Network, Recording};
use celltrain_core::probe::Recorder;
use celltrain_core::units;

use crate::Unfinished;
use crate::answer::{self, Answer, Wanted};
pub use crate::captured::{Captured, Capturing};
use crate::clock::Instant;
use crate::events::Log;
use crate::expressions::{Figure, Measures, Source, Windows};
use crate::families::{Known, Part};
use crate::hosting;
use crate::limit::Limit;
use crate::memory;
use crate::outside;
use crate::requests::alone::{self, Unloaded};
use crate::requests::{self, Records, Tally};
use crate::scenario::{Checked, Handle};
use crate::series::{Recorded, Trace};
use crate::tables::EndedRun;
use crate::threads;
use celltrain_capture::About;
use celltrain_capture::watch::{Destination, Ended};
use celltrain_hosts::Hosts;
use serde_json::Value;

pub use batch::{CaseRun, first_duration, many, read_all, rows};
pub use observers::{EventOutput, Observers, Watched};

/// Options for runs.
#[derive(Clone, Copy, Default)]
pub struct How<'a> {
    /// Time series to record.
    pub trace: Option<&'a Trace>,
    /// Engine that executes the run.
    pub engine: Engine,
    /// Limit on the real time of a run, including the time for reading its scenario.
    pub limit: Option<Duration>,
    /// Measures to return as a row, instead of an answer in JSON.
    pub measures: Option<&'a Measures>,
    /// Maximum number of threads for a run without observers; one thread if `None`.
    pub threads: Option<NonZeroUsize>,
    /// Records of requests are returned only if the expected number of requests is at most this number; 0 to return no
    /// records.
    pub most_records: u64,
    /// True to measure the delays of packets even if no measure reads them.
    pub delays: bool,
    /// True to copy results between runs of a batch whose results are known to be equal.
    pub certificates: bool,
}

impl<'a> How<'a> {
    /// Returns the requested parts of the answer; `None` for all parts.
    fn wanted(&self) -> Option<&'a Wanted> {
        self.measures.map(Measures::wanted)
    }

    fn most_threads(&self) -> usize {
        self.threads.map_or(1, NonZeroUsize::get)
    }
}

/// Result of a run.
#[derive(Debug, PartialEq)]
pub struct Finished {
    /// The answer's JSON; empty if a row was requested.
    pub answer: String,
    /// Row with the values of the measures, if measures were requested.
    pub row: Option<Row>,
    /// Recorded series, if series were requested.
    pub series: Option<Recorded>,
    /// Records of all requests, if records were requested and there are not too many requests.
    pub records: Option<Records>,
    /// Number of packets or cells in each capture.
    pub captured: Vec<u64>,
    /// Rules of links that lost or delayed fewer packets or cells than the scenario specifies.
    pub unmet: Vec<UnmetRule>,
}

/// A run as a row of a table.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// Values of the measures, in the order of the measures.
    pub figures: Vec<Figure>,
    /// Fingerprint of the result as 16 hex digits.
    pub fingerprint: String,
    /// Real time in seconds that the engine took.
    pub engine_seconds: f64,
    /// Number of transmissions of cells over links.
    pub cell_hops: u64,
    /// Index, in the batch, of the run whose result was copied to this run; `None` if this run was simulated.
    pub from: Option<usize>,
    /// Reason why the result of this run cannot be copied to other runs of its family; `None` if it can be copied, or
    /// if the family has no other runs.
    pub uncertified: Option<&'static str>,
}

/// Progress of a run, from 0 to 1. Other threads can read the progress. In a program without threads, a callback
/// receives it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    callback: Option<fn(f64)>,
}

impl Progress {
    /// Creates a progress counter that calls `callback` every few milliseconds, on the thread of the run.
    pub fn with_callback(callback: fn(f64)) -> Self {
        Self { callback: Some(callback), ..Self::default() }
    }

    /// Returns the completed fraction of the run.
    pub fn done(&self) -> f64 {
        f64::from_bits(self.done.load(Ordering::Relaxed))
    }

    fn set(&self, done: f64) {
        self.done.store(done.to_bits(), Ordering::Relaxed);
        if let Some(callback) = self.callback {
            callback(done);
        }
    }
}

/// Runs a scenario on this thread until `stopped` is set. If `seed` is `None`, uses the scenario's own seed.
///
/// # Errors
/// Returns the reason why the run has no result.
pub fn one(
    scenario: &Handle,
    seed: Option<u64>,
    how: How<'_>,
    stopped: &AtomicBool,
    progress: &Progress,
) -> Result<Finished, Unfinished> {
    one_watched(scenario, seed, how, Watched::default(), (stopped, progress))
}

/// Runs a scenario like [`one`], and also writes its events and captures. If the run is interrupted, the output
/// contains the events before the interruption.
///
/// # Errors
/// Returns the reason why the run has no result.
pub fn one_watched(
    scenario: &Handle,
    seed: Option<u64>,
    how: How<'_>,
    watched: Watched<'_>,
    control: (&AtomicBool, &Progress),
) -> Result<Finished, Unfinished> {
    one_of_family(scenario, seed, how, (watched, None), control)
}

/// Runs a scenario like [`one_watched`]. `part` is the task of the run in its family.
fn one_of_family(
    scenario: &Handle,
    seed: Option<u64>,
    how: How<'_>,
    (watched, part): (Watched<'_>, Option<Part<'_>>),
    (stopped, progress): (&AtomicBool, &Progress),
) -> Result<Finished, Unfinished> {
    let (limit, memory) = (Limit::new(how.limit, scenario.took()), memory::Watch::default());
    // Clear an error that an earlier run on this thread left when it panicked.
    drop(outside::take());
    let stops = || limit.has_passed() || stopped.load(Ordering::Relaxed) || outside::has_failed() || !memory.suffices();
    let go_on = || !stops();
    let run =
        Run { scenario, seed, how, part, memory: &memory, token: &CancellationToken::new(&go_on), stopped, progress };
    let finished = run.finished(watched);
    // If a user's code exceeds the time limit, the code is interrupted, which it reports as an error of the run.
    if let Some(problem) = outside::take()
        && !limit.has_passed()
    {
        return Err(Unfinished::Refused(problem));
    }
    finished.map_err(|unfinished| match (&unfinished, memory.outgrown(), limit.found_passed()) {
        (Unfinished::Interrupted, Some(words), _) => Unfinished::TooLarge(words),
        (Unfinished::Interrupted, None, Some(most)) => Unfinished::TookTooLong(most),
        _ => unfinished,
    })
}

/// The network and seed of a run, and the engines that execute it.
#[derive(Clone, Copy)]
struct Plan<'a> {
    network: &'a Network,
    /// Name of the scenario.
    name: &'a str,
    seed: u64,
    engine: Engine,
    /// Engine that reports the events.
    event_engine: Engine,
    /// Time at which the second run ends, if the event engine runs only to report events.
    until: Option<units::Duration>,
}

/// Evaluates the measures of a run and returns its row.
fn row(
    measures: &Measures,
    checked: &Checked,
    answer: &Answer<'_>,
    series: Option<&Recorded>,
) -> Result<Row, Interrupted> {
    let mut value = answer.value()?;
    value["scenario"] = if measures.need_scenario() { checked.case() } else { Value::Null };
    let source = Source { answer: &value, windows: series.and_then(Windows::of) };
    let EndedRun { engine_seconds, result, .. } = answer.run;
    Ok(Row {
        figures: measures.figures(source),
        fingerprint: result.fingerprint.to_string(),
        engine_seconds: *engine_seconds,
        cell_hops: result.cell_hops,
        from: None,
        uncertified: None,
    })
}

struct Run<'a> {
    scenario: &'a Handle,
    seed: Option<u64>,
    how: How<'a>,
    part: Option<Part<'a>>,
    memory: &'a memory::Watch,
    token: &'a CancellationToken<'a>,
    stopped: &'a AtomicBool,
    progress: &'a Progress,
}

impl Run<'_> {
    fn finished(&self, watched: Watched<'_>) -> Result<Finished, Unfinished> {
        let Self { how, token, .. } = *self;
        let checked = self.scenario.checked(token)?;
        let scenario = checked.scenario();
        let seed = self.seed.unwrap_or(scenario.seed);
        let mut network = checked.network(seed, token)?;
        network.delays = match how.wanted() {
            _ if how.delays => DelayChoice::All,
            wanted => wanted.map_or(DelayChoice::None, answer::delays),
        };
        let hosts = hosting::hosts(scenario, &network)?;
        let has_requests = !network.requests.groups.is_empty();
        let has_slowdowns = |column: &String| requests::WITH_SLOWDOWNS.contains(&column.as_str());
        let of_requests = |wanted: &Wanted| wanted.get("requests").is_some_and(|own| own.iter().any(has_slowdowns));
        let with_slowdowns = how.wanted().is_none_or(of_requests);
        let uncertified = match Uncertified::before(&network) {
            _ if hosts.is_some() => Some(Uncertified::OutsideCode),
            _ if has_requests && with_slowdowns => Some(Uncertified::Slowdowns),
            reason => reason,
        };
        let part = self.part.filter(|_| uncertified.is_none());
        let leads = part.and_then(|part| part.leads);
        for known in part.iter().flat_map(|part| part.follows) {
            let Some(finished) = self.filled(known, &network, &checked)? else { continue };
            if let Some(slot) = leads {
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(known));
            }
            return Ok(finished);
        }
        network.recording = leads.map(|_| Recording::default());
        let event_engine = watched.event_engine.unwrap_or(how.engine);
        // Real stacks can be run only once, so a run with real stacks is never repeated to report events.
        let until = watched.until(scenario.duration).filter(|_| event_engine != how.engine && hosts.is_none());
        let how = How { engine: if until.is_some() { how.engine } else { event_engine }, ..how };
        if how.trace.is_some_and(Trace::has_windows) {
            hosting::check_windows(scenario, &network)?;
        }
        let mut recorder = how.trace.map(|trace| trace.recorder(&network)).transpose()?;
        let values = how.trace.zip(recorder.as_ref()).map(|(trace, recorder)| trace.values(&network, recorder));
        let needed = checked.memory().with_series(values.transpose()?.unwrap_or(0));
        let with_records = (1..=how.most_records).contains(&needed.requests);
        let keeps = with_records || recorder.is_some() || watched.has_any() && until.is_none();
        let drops_closed = std::mem::replace(&mut network.requests.drops_closed, !keeps);
        let needed = if keeps { needed.with_records() } else { needed };
        let needed = if with_records { needed.with_rows() } else { needed };
        self.memory.begin(needed).map_err(Unfinished::TooLarge)?;
        let _limited = how.limit.and_then(threads::limited);
        let begun = Instant::now();
        let mut tally = Tally::new(&network, &scenario.measure, (with_slowdowns || with_records) && has_requests);
        let plan = Plan { network: &network, name: &scenario.name, seed, engine: how.engine, event_engine, until };
        let simulate = || self.simulate(plan, hosts, watched, recorder.as_mut(), &mut tally);
        let (mut result, captured) = match &network.recording {
            Some(recording) if how.most_threads() == 1 => recording.watch_draws(simulate)?,
            _ => simulate()?,
        };
        hosting::name_stacks(scenario, &network, &mut result);
        let unmet = result.unmet_rules(&network);
        let engine_seconds = begun.elapsed().as_secs_f64();
        let bottleneck = network.links[network.bottleneck].name.clone();
        let run_alone = |network: &Network, recorder: &mut alone::Recorder| {
            let mut observers = Observers { alone: Some(recorder), ..Observers::default() };
            let hosts = hosting::hosts(scenario, network)?;
            hosting::observe(how.engine, (network, network.duration), &mut observers, hosts, |_| token.check().is_ok())
        };
        tally.add_records(&result.requests, token)?;
        let alone = tally.take_paths().map(|paths| Unloaded::simulate(paths, run_alone)).transpose()?;
        let mut requests = requests::measure(&network, &result, &tally, alone.as_ref(), token)?;
        hosting::name_stacks_of_requests(scenario, &mut requests);
        let records = alone.as_ref().filter(|_| with_records);
        let records = records.map(|alone| Records::of(&network, &result, alone, token)).transpose()?;
        let mut run = EndedRun::new(
            scenario.name.clone(),
            seed,
            how.engine.for_network(&network),
            bottleneck,
            engine_seconds,
            result,
        );
        run.requests = requests;
        let series = how.trace.zip(recorder).map(|(trace, recorder)| Recorded::of(&network, trace, recorder));
        let answer = Answer { run: &run, wanted: how.wanted(), token };
        // The lab never requests measures, so its build leaves out the code that evaluates measures.
        let (answer, mut row) = match how.measures.filter(|_| cfg!(not(target_family = "wasm"))) {
            None => (answer.text()?, None),
            Some(measures) => (String::new(), Some(row(measures, &checked, &answer, series.as_ref())?)),
        };
        // The time limit may have been exceeded after the engine's last check.
        token.check()?;
        let mut uncertified = uncertified.filter(|_| self.part.is_some_and(|part| part.leads.is_some()));
        if let Some((recording, part)) = network.recording.take().zip(part) {
            network.requests.drops_closed = drops_closed;
            match (Certificate::new(&network, &recording, &run.result), leads) {
                (Ok(certificate), Some(slot)) => {
                    let known = Known { index: part.index, certificate, run, unmet: unmet.clone() };
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(known));
                }
                (certificate, _) => uncertified = certificate.err(),
            }
        }
        if let Some(row) = &mut row {
            row.uncertified = uncertified.map(Uncertified::reason);
        }
        Ok(Finished { answer, row, series, records, captured, unmet })
    }

    /// Returns the row of a run whose result is known to equal that of the finished run `known`; `None` if the results
    /// may differ.
    fn filled(&self, known: &Known, network: &Network, checked: &Checked) -> Result<Option<Finished>, Unfinished> {
        let begun = Instant::now();
        let Some(measures) = self.how.measures.filter(|_| known.certificate.covers(network)) else { return Ok(None) };
        let result = known.run.result.clone().with_settings_of(network);
        let bottleneck = known.run.bottleneck.clone();
        let engine_seconds = begun.elapsed().as_secs_f64();
        let mut run = EndedRun::new(
            known.run.scenario.clone(),
            network.seed,
            known.run.engine,
            bottleneck,
            engine_seconds,
            result,
        );
        run.requests.clone_from(&known.run.requests);
        let answer = Answer { run: &run, wanted: self.how.wanted(), token: self.token };
        let row = Some(Row { from: Some(known.index), ..row(measures, checked, &answer, None)? });
        let (answer, series, records, captured) = Default::default();
        Ok(Some(Finished { answer, row, series, records, captured, unmet: known.unmet.clone() }))
    }

    /// Executes the run on its engines. Returns the result, and the number of packets or cells in each capture.
    fn simulate(
        &self,
        plan: Plan<'_>,
        hosts: Option<Hosts>,
        watched: Watched<'_>,
        recorder: Option<&mut Recorder>,
        tally: &mut Tally,
    ) -> Result<(RunResult, Vec<u64>), Unfinished> {
        let Plan { network, engine, until, .. } = plan;
        let keep_going = |done: f64| {
            self.progress.set(done);
            self.token.check().is_ok()
        };
        if watched.has_any() && until.is_none() {
            let mut observers = self.observers(plan, watched)?;
            observers.recorder = recorder;
            let result = hosting::run(engine, network, &mut observers, hosts, keep_going);
            let ended = observers.finish()?;
            return Ok((result?, packets(ended)?));
        }
        let captured = match until {
            Some(until) => self.watch_until(until, plan, watched)?,
            None => Vec::new(),
        };
        let result = match recorder {
            Some(recorder) => hosting::run(engine, network, recorder, hosts, keep_going)?,
            None => match self.how.most_threads() {
                threads if threads > 1 && hosts.is_none() && network.requests.groups.is_empty() => {
                    engine.run_parallel(ParallelOptions::up_to(threads), network, keep_going)?
                }
                _ => hosting::run(engine, network, tally, hosts, keep_going)?,
            },
        };
        Ok((result, captured))
    }

    /// Writes the events that `event_engine` reports in a run of this network up to `until`. Returns the number of packets or
    /// cells in each capture.
    fn watch_until(
        &self,
        until: units::Duration,
        plan: Plan<'_>,
        watched: Watched<'_>,
    ) -> Result<Vec<u64>, Unfinished> {
        let Plan { network, event_engine, .. } = plan;
        let observe = |watched: Watched<'_>, until| {
            let mut observers = self.observers(plan, watched)?;
            // Finish the output even if the run was interrupted.
            let done = event_engine.observe(network, until, &mut observers, |_| self.token.check().is_ok());
            let ended = observers.finish()?;
            done.map(|()| ended).map_err(Unfinished::from)
        };
        let choices: Vec<_> = watched.captures.iter().map(|one| (one.choice, one.start)).collect();
        let mut ended = observe(watched, until)?;
        if ended.iter().any(Ended::is_empty) {
            // The error for an empty capture names the times of traffic outside the capture's window, so observe the
            // whole run.
            let mut ignore: Vec<_> = choices.iter().map(|_| |_: &[u8]| true).collect();
            let sinks = choices.iter().zip(&mut ignore);
            let captures = sinks.map(|(&(choice, start), sink)| Captured { choice, sink, start }).collect();
            ended = observe(Watched { captures, ..Watched::default() }, network.duration)?;
        }
        Ok(packets(ended)?)
    }

    /// Creates the observers that write the events reported by `event_engine` in a run of this network.
    fn observers<'a, 'w: 'a>(
        &'a self,
        Plan { network, name, seed, event_engine, .. }: Plan<'_>,
        Watched { events, captures, .. }: Watched<'w>,
    ) -> Result<Observers<'a>, Unfinished> {
        let log = events.map(|EventOutput { choice, sink }| Log::new(choice, network, sink)).transpose()?;
        let captures = captures.into_iter().map(|Captured { choice, sink, start }| {
            let about = about(name, seed, event_engine);
            let has_outcomes = event_engine == Engine::Reference;
            start(choice, network, Destination { sink, about, has_outcomes, stopped: self.stopped })
        });
        Ok(Observers { log, captures: captures.collect::<Result<_, _>>()?, ..Observers::default() })
    }
}

/// Returns the number of packets or cells in each capture, or an error if one of them is empty.
fn packets(ended: Vec<Ended>) -> Result<Vec<u64>, String> {
    ended.into_iter().map(Ended::packets).collect()
}

/// Returns the description of the run to be written into a capture.
fn about(scenario: &str, seed: u64, event_engine: Engine) -> About {
    let name = if scenario.is_empty() { "a scenario" } else { scenario };
    let comment = match event_engine {
        Engine::Reference => format!("{name}, seed {seed}"),
        Engine::Fast => format!("{name}, seed {seed}; the fast engine does not report where packets were lost"),
    };
    About { application: format!("celltrain {}", crate::answer::Build::this().version), comment }
}

#[cfg(test)]
mod tests;
