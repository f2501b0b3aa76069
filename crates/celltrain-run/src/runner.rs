//! Runs one scenario, or many on several threads. Each scenario is read, built, run and measured within its limit.

use std::io;
use std::num::NonZeroUsize;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::certificate::Certificate;
use celltrain_core::delay::DelayChoice;
use celltrain_core::engine::{Engine, ParallelOptions};
use celltrain_core::events::{self, Observer};
use celltrain_core::index::LinkIndex;
use celltrain_core::metrics::UnmetRule;
use celltrain_core::network::{Network, Recording};
use celltrain_core::probe::{NetworkView, Probe, Recorder};
use celltrain_core::units::{self, Time};

use crate::Unfinished;
use crate::answer::{self, Answer, Wanted};
use crate::buffer::Buffer;
pub use crate::captured::{Captured, Capturing};
use crate::clock::Instant;
use crate::events::{Block, Choice, Log};
use crate::expressions::{Figure, Measures, Source, Windows};
use crate::families::{Families, Known, Part};
use crate::hosting;
use crate::limit::Limit;
use crate::memory;
use crate::outside;
use crate::panics::caught;
use crate::requests::alone::{self, Unloaded};
use crate::requests::{self, Records, Tally};
use crate::scenario::Handle;
use crate::series::{Recorded, Trace};
use crate::tables::EndedRun;
use crate::threads::{self, Event};
use celltrain_capture::About;
use celltrain_capture::watch::{Destination, Ended};
use celltrain_hosts::Seen;
use celltrain_scenario::Scenario;
use serde_json::Value;

/// Options for runs.
#[derive(Clone, Copy, Default)]
pub struct How<'a> {
    /// Series to record.
    pub trace: Option<&'a Trace>,
    /// Engine to use.
    pub engine: Engine,
    /// Limit on a run's real time, including reading its scenario.
    pub limit: Option<Duration>,
    /// Measures of a row, in place of an answer.
    pub measures: Option<&'a Measures>,
    /// Maximum number of threads for a run without observers; one if `None`.
    pub threads: Option<NonZeroUsize>,
    /// Largest expected number of requests for which records are returned; 0 to return none.
    pub most_records: u64,
    /// True to measure the delays of packets even if no measure reads them.
    pub delays: bool,
    /// True to fill rows of a batch from other runs that are known to be the same.
    pub certificates: bool,
}

impl<'a> How<'a> {
    /// Returns the requested parts of the answer; `None` for all.
    fn wanted(&self) -> Option<&'a Wanted> {
        self.measures.map(Measures::wanted)
    }

    fn most_threads(&self) -> usize {
        self.threads.map_or(1, NonZeroUsize::get)
    }
}

/// Outputs created from the events of a run. Each sink returns whether to continue.
#[derive(Default)]
pub struct Watched<'a> {
    /// Tables.
    pub events: Option<EventOutput<'a>>,
    /// Captures.
    pub captures: Vec<Captured<'a>>,
    /// Engine that reports the events, if it differs from the run's engine. If all windows end before the run does,
    /// this engine stops there, and the run's engine computes the answer. Otherwise, this engine does the whole run.
    pub event_engine: Option<Engine>,
}

impl Watched<'_> {
    fn has_any(&self) -> bool {
        self.events.is_some() || !self.captures.is_empty()
    }

    /// Returns the time after which nothing is recorded; `None` if recording continues until the end of the run.
    fn until(&self, duration: units::Duration) -> Option<units::Duration> {
        let events = self.events.as_ref().map(|kept| kept.choice.until());
        // A packet is written together with its outcome, which may not be known until after the window.
        let captures = self.captures.iter();
        let captures = captures.map(|captured| captured.choice.until().filter(|_| captured.choice.of_cells()));
        let last = events
            .into_iter()
            .chain(captures)
            .try_fold(units::Duration::default(), |last, until| until.map(|until| last.max(until)))?;
        (last < duration).then_some(last)
    }
}

/// Events to record, and the sink that receives each full block.
pub struct EventOutput<'a> {
    /// Events to keep.
    pub choice: &'a Choice,
    /// Receiver of the blocks.
    pub sink: &'a mut dyn FnMut(Block) -> bool,
}

/// Result of a run.
#[derive(Debug, PartialEq)]
pub struct Finished {
    /// The answer's JSON; empty if a row was requested.
    pub answer: String,
    /// The row, if measures were requested.
    pub row: Option<Row>,
    /// The series, if any were requested.
    pub series: Option<Recorded>,
    /// The records of all requests, if they were requested and are not too many.
    pub records: Option<Records>,
    /// Rules of links that lost or delayed less than they should.
    pub captured: Vec<u64>,
    /// Rules of links that never met the packets or cells that they select.
    pub unmet: Vec<UnmetRule>,
}

/// A run as a row of a table.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// Its measures, in their order.
    pub figures: Vec<Figure>,
    /// Fingerprint of the result as 16 hex digits.
    pub fingerprint: String,
    /// Real time in seconds that the engine took.
    pub engine_seconds: f64,
    /// Number of cell transmissions over links.
    pub cell_hops: u64,
    /// Index of the run in its batch from which the row was filled; `None` if it was run.
    pub from: Option<usize>,
}

/// Progress of a run, from 0 to 1. Other threads can read it. Without threads, a callback receives it.
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

    /// Returns the completed fraction.
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

/// Runs a scenario like [`one`], and also delivers its events. An interrupted run delivers the output so far.
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
    let (limit, memory) = (Limit::new(how.limit), memory::Watch::default());
    // Clear an error left by an earlier run that panicked.
    drop(outside::take());
    let stops = || limit.has_passed() || stopped.load(Ordering::Relaxed) || outside::has_failed() || !memory.suffices();
    let go_on = || !stops();
    let run =
        Run { scenario, seed, how, part, memory: &memory, token: &CancellationToken::new(&go_on), stopped, progress };
    let finished = run.finished(watched);
    // If code outside the core exceeds the limit, it is interrupted. This counts as an error of the run.
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

/// Runs many scenarios on `threads` threads. Each run is an index into `scenarios` and a seed. Calls `on` on this
/// thread whenever a run ends. If a run panics, the panic is reported as its error.
///
/// # Errors
/// Returns the first error of `on`.
pub fn many<E: From<io::Error>>(
    scenarios: &[&Handle],
    (runs, threads): (&[(usize, u64)], usize),
    how: How<'_>,
    on: impl FnMut(Event<Result<Finished, Unfinished>>) -> Result<(), E>,
) -> Result<(), E> {
    let work = |index: usize, stopped: &AtomicBool| {
        let run = || (scenarios[runs[index].0], runs[index].1, how);
        one_of_many(run, None, stopped)
    };
    threads::over((runs.len(), threads), work, on)
}

/// Does a run of a batch. A panic is its error, even if its scenario does not exist.
fn one_of_many<'a>(
    run: impl FnOnce() -> (&'a Handle, u64, How<'a>),
    part: Option<Part<'_>>,
    stopped: &AtomicBool,
) -> Result<Finished, Unfinished> {
    let done = caught(|| {
        let (scenario, seed, how) = run();
        one_of_family(scenario, Some(seed), how, (Watched::default(), part), (stopped, &Progress::default()))
    });
    done.unwrap_or_else(|panic| Err(Unfinished::Panicked(panic)))
}

/// One run of a case.
#[derive(Clone, Copy, Debug)]
pub struct CaseRun {
    /// Index of the case.
    pub case: usize,
    /// The run's seed.
    pub seed: u64,
    /// Index of its measures.
    pub measures: usize,
}

/// Runs cases on `threads` threads as [`many`] does, with a row for each run instead of an answer. With
/// [`How::certificates`], fills rows from other runs of the batch that are known to be the same.
///
/// # Errors
/// Returns the first error of `on`.
pub fn rows<E: From<io::Error>>(
    cases: &[&Handle],
    measures: &[Measures],
    (runs, threads): (&[CaseRun], usize),
    how: How<'_>,
    mut on: impl FnMut(Event<Result<Finished, Unfinished>>) -> Result<(), E>,
) -> Result<(), E> {
    let families = if how.certificates && how.trace.is_none() {
        let numbers: Vec<_> = runs.iter().map(|run| (run.case, run.seed)).collect();
        Families::of(cases, &numbers)
    } else {
        Families::none(runs.len())
    };
    let work = |position: usize, stopped: &AtomicBool| {
        let CaseRun { case, seed, measures: set } = runs[families.run_at(position)];
        families.execute(position, stopped, |part| {
            one_of_many(|| (cases[case], seed, How { measures: Some(&measures[set]), ..how }), part, stopped)
        })
    };
    let on = |event| {
        on(match event {
            Event::Look => Event::Look,
            Event::Done(position, done) => Event::Done(families.run_at(position), done),
        })
    };
    threads::over((runs.len(), threads), work, on)
}

/// Reads scenarios on several threads, while regularly calling `check` on this thread.
///
/// # Errors
/// Returns the first error of `check`.
pub fn read_all<E: From<io::Error>>(
    scenarios: &[&Handle],
    threads: usize,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<Result<(), Unfinished>, E> {
    let work = |index: usize, stopped: &AtomicBool| {
        let checked = scenarios[index].checked(&CancellationToken::new(&|| !stopped.load(Ordering::Relaxed)))?;
        // Keeping all networks in memory would take more memory than the runs.
        checked.forget_network();
        Ok(())
    };
    let mut refused: Option<(usize, Unfinished)> = None;
    let note = |event| {
        if let Event::Done(index, Err(unfinished)) = event
            && refused.as_ref().is_none_or(|(first, _)| index < *first)
        {
            refused = Some((index, unfinished));
        }
        check()
    };
    threads::over((scenarios.len(), threads), work, note)?;
    Ok(refused.map_or(Ok(()), |(_, unfinished)| Err(unfinished)))
}

/// Returns the duration of the first scenario that is not refused; `None` if all are refused.
///
/// # Errors
/// Returns an error if reading is interrupted.
pub fn first_duration(
    scenarios: &[&Handle],
    token: &CancellationToken<'_>,
) -> Result<Option<units::Duration>, Interrupted> {
    for scenario in scenarios {
        match scenario.checked(token) {
            Ok(checked) => return Ok(Some(checked.scenario().duration)),
            Err(Unfinished::Interrupted) => return Err(Interrupted),
            Err(_) => {}
        }
    }
    Ok(None)
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
        // Slowdowns compare requests with runs of their own, which meet other queues.
        let part = self.part.filter(|_| hosts.is_none() && !(has_requests && with_slowdowns));
        if let Some(Part::Follows(known)) = part
            && let Some(finished) = self.filled(known, &network)?
        {
            return Ok(finished);
        }
        if let Some(Part::Leads(..)) = part {
            network.recording = Some(Recording::default());
        }
        let event_engine = watched.event_engine.unwrap_or(how.engine);
        // Stacks can be run only once.
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
        let keep_going = |done: f64| {
            self.progress.set(done);
            token.check().is_ok()
        };
        let mut tally = Tally::new(&network, &scenario.measure, (with_slowdowns || with_records) && has_requests);
        let mut captured = Vec::new();
        let mut result = if watched.has_any() && until.is_none() {
            let mut observers = self.observers((&network, &scenario.name, seed), event_engine, watched)?;
            observers.recorder = recorder.as_mut();
            let result = hosting::run(how.engine, &network, &mut observers, hosts, keep_going);
            let ended = observers.finish()?;
            let result = result?;
            captured = packets(ended)?;
            Ok(result)
        } else {
            if let Some(until) = until {
                captured = self.watch_until(until, (&network, &scenario.name, seed), event_engine, watched)?;
            }
            match &mut recorder {
                Some(recorder) => hosting::run(how.engine, &network, recorder, hosts, keep_going),
                None => match how.most_threads() {
                    threads if threads > 1 && hosts.is_none() && !has_requests => {
                        let options = ParallelOptions::up_to(threads);
                        Ok(how.engine.run_parallel(options, &network, keep_going)?)
                    }
                    _ => hosting::run(how.engine, &network, &mut tally, hosts, keep_going),
                },
            }
        }?;
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
        // The lab asks for no measures, and leaves their code out.
        let (answer, row) = match how.measures.filter(|_| cfg!(not(target_family = "wasm"))) {
            None => (answer.text()?, None),
            Some(measures) => (String::new(), Some(self.row(measures, &answer, series.as_ref())?)),
        };
        // The limit may have been exceeded during the last steps.
        token.check()?;
        if let Some(Part::Leads(slot, index)) = part {
            let recording = network.recording.take().unwrap_or_default();
            network.requests.drops_closed = drops_closed;
            let certificate = Certificate::new(&network, &recording, &run.result).ok();
            let known = certificate.map(|certificate| Known { index, certificate, run, unmet: unmet.clone() });
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = known;
        }
        Ok(Finished { answer, row, series, records, captured, unmet })
    }

    /// Returns the row of a run that is known to be the same as another; `None` if this is not known.
    fn filled(&self, known: &Known, network: &Network) -> Result<Option<Finished>, Unfinished> {
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
        let row = self.row(measures, &Answer { run: &run, wanted: self.how.wanted(), token: self.token }, None)?;
        let row = Some(Row { from: Some(known.index), ..row });
        let (answer, series, records, captured) = Default::default();
        Ok(Some(Finished { answer, row, series, records, captured, unmet: known.unmet.clone() }))
    }

    /// Evaluates measures of a run.
    fn row(&self, measures: &Measures, answer: &Answer<'_>, series: Option<&Recorded>) -> Result<Row, Interrupted> {
        let mut value = answer.value()?;
        value["scenario"] = if measures.need_scenario() { self.scenario.given() } else { Value::Null };
        let source = Source { answer: &value, windows: series.and_then(Windows::of) };
        let EndedRun { engine_seconds, result, .. } = answer.run;
        Ok(Row {
            figures: measures.figures(source),
            fingerprint: result.fingerprint.to_string(),
            engine_seconds: *engine_seconds,
            cell_hops: result.cell_hops,
            from: None,
        })
    }

    /// Writes the events that `event_engine` reports in a run of this network up to `until`. Returns the number of packets or
    /// cells in each capture.
    fn watch_until(
        &self,
        until: units::Duration,
        of: (&Network, &str, u64),
        event_engine: Engine,
        watched: Watched<'_>,
    ) -> Result<Vec<u64>, Unfinished> {
        let (network, ..) = of;
        let observe = |watched: Watched<'_>, until| {
            let mut observers = self.observers(of, event_engine, watched)?;
            // Finish the output even if the run was interrupted.
            let done = event_engine.observe(network, until, &mut observers, |_| self.token.check().is_ok());
            let ended = observers.finish()?;
            done.map(|()| ended).map_err(Unfinished::from)
        };
        let choices: Vec<_> = watched.captures.iter().map(|one| (one.choice, one.start)).collect();
        let mut ended = observe(watched, until)?;
        if ended.iter().any(Ended::is_empty) {
            // Only the whole run shows what can be captured.
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
        (network, name, seed): (&Network, &str, u64),
        event_engine: Engine,
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

/// All observers of a run with events. They form one type, because engines are compiled once for each observer type.
#[derive(Default)]
pub struct Observers<'a> {
    /// Recorder of series.
    pub recorder: Option<&'a mut Recorder>,
    /// Log of events.
    pub log: Option<Log<'a>>,
    /// Captures of the run.
    pub captures: Vec<Box<dyn Capturing + 'a>>,
    /// History of a port's buffer.
    pub buffer: Option<Buffer<'a>>,
    /// Observer of the arrival times of a connection that is alone on its path.
    pub alone: Option<&'a mut alone::Recorder>,
}

impl hosting::Tap for Observers<'_> {
    fn on_packet(&mut self, seen: &Seen<'_>) {
        let &Seen { time, flow, vc, frame, segment, bytes, .. } = seen;
        if let (Some(log), Some(step)) = (&mut self.log, segment) {
            let ecn = celltrain_hosts::ecn::bits(bytes);
            let event = events::SegmentEvent { flow, vc, frame, step, sender: None, ecn };
            log.on_event(time, events::Event::Segment(event));
        }
        if let Some(packet) = seen.captured() {
            self.captures.iter_mut().for_each(|capture| capture.on_packet(time, &packet));
        }
    }
}

impl Observers<'_> {
    /// Runs the network of a scenario up to `until` for these observers only. The run has no result.
    ///
    /// # Errors
    /// If `keep_going` returns false, as in [`Engine::run`], or the scenario has a stack that is not in this build.
    pub fn observe(
        &mut self,
        engine: Engine,
        scenario: &Scenario,
        (network, until): (&Network, units::Duration),
        keep_going: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(), Unfinished> {
        let hosts = hosting::hosts(scenario, network)?;
        hosting::observe(engine, (network, until), self, hosts, keep_going)
    }

    /// Delivers the remaining output. Returns the contents of each capture.
    fn finish(self) -> Result<Vec<Ended>, String> {
        if let Some(mut log) = self.log {
            log.finish();
        }
        self.captures.into_iter().map(Capturing::finish).collect()
    }
}

impl Probe for Observers<'_> {
    fn next_snapshot(&self) -> Option<Time> {
        let recorder = self.recorder.as_ref().and_then(Probe::next_snapshot);
        recorder.into_iter().chain(self.buffer.as_ref().and_then(Probe::next_snapshot)).min()
    }

    fn traced_ports(&self) -> &[LinkIndex] {
        self.recorder.as_ref().map_or(&[], |recorder| recorder.traced_ports())
    }

    fn snapshot(&mut self, now: Time, view: &NetworkView<'_>) {
        if let Some(recorder) = &mut self.recorder
            && recorder.next_snapshot() == Some(now)
        {
            recorder.snapshot(now, view);
        }
        if let Some(buffer) = &mut self.buffer
            && buffer.next_snapshot() == Some(now)
        {
            buffer.snapshot(now, view);
        }
    }
}

impl Observer for Observers<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: events::Event) {
        if let Some(log) = &mut self.log {
            log.on_event(now, event);
        }
        self.captures.iter_mut().for_each(|capture| capture.on_event(now, event));
        if let Some(buffer) = &mut self.buffer {
            buffer.on_event(now, event);
        }
        if let Some(alone) = &mut self.alone {
            alone.on_event(now, event);
        }
    }
}

#[cfg(test)]
#[path = "runner/tests.rs"]
mod tests;
