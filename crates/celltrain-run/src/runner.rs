//! Runs, one or many: read, built, run and measured on threads, each within its limit.

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use celltrain_core::engine::{Engine, Sharing};
use celltrain_core::events::{self, Watcher};
use celltrain_core::index::LinkIndex;
use celltrain_core::network::Network;
use celltrain_core::probe::{NetworkView, Nothing, Probe, Recorder};
use celltrain_core::stop::{Interrupted, Stop};
use celltrain_core::units::{self, Time};

use crate::Unfinished;
use crate::answer::{Answer, Wanted};
use crate::buffer::Buffer;
use crate::capture::{About, CaptureChoice, Watch, watch};
use crate::clock::Instant;
use crate::events::{Block, Choice, Log};
use crate::limit::Limit;
use crate::memory;
use crate::outside;
use crate::panics::caught;
use crate::scenario::Handle;
use crate::series::{Recorded, Trace};
use crate::tables::EndedRun;
use crate::threads::{self, Event};

/// How runs are done.
#[derive(Clone, Copy, Default)]
pub struct How<'a> {
    /// What is recorded.
    pub trace: Option<&'a Trace>,
    /// What runs them.
    pub engine: Engine,
    /// What a run may take in real time, from the reading of its scenario on.
    pub limit: Option<Duration>,
    /// What of the answers is wanted; all of it when None.
    pub wanted: Option<&'a Wanted>,
    /// Among how many threads a run is shared out at most, where nobody looks on; one when None.
    pub threads: Option<NonZeroUsize>,
}

impl How<'_> {
    fn most_threads(&self) -> usize {
        self.threads.map_or(1, NonZeroUsize::get)
    }
}

/// What is made of the events of a run. Who takes it says whether to go on.
#[derive(Default)]
pub struct Watched<'a> {
    /// Tables.
    pub events: Option<Kept<'a>>,
    /// A capture.
    pub capture: Option<Captured<'a>>,
    /// The engine that tells of them, where it need not be the run's. If all windows end before the run does, it goes no
    /// further than there, and the answer is that of the run's engine; if not, the run is on this one.
    pub told_by: Option<Engine>,
}

impl Watched<'_> {
    fn has_any(&self) -> bool {
        self.events.is_some() || self.capture.is_some()
    }

    /// From when on nothing is kept; None where something is until the end of the run.
    fn until(&self, duration: units::Duration) -> Option<units::Duration> {
        let events = self.events.as_ref().map(|kept| kept.choice.until());
        // A packet is written with what becomes of it, which may come later.
        let capture =
            self.capture.as_ref().map(|captured| captured.choice.until().filter(|_| captured.choice.of_cells()));
        let last = [events, capture]
            .into_iter()
            .flatten()
            .try_fold(units::Duration::default(), |last, until| until.map(|until| last.max(until)))?;
        (last < duration).then_some(last)
    }
}

/// Which events are kept, and who takes them: blocks as they are full.
pub struct Kept<'a> {
    /// Which.
    pub choice: &'a Choice,
    /// Who takes them.
    pub sink: &'a mut dyn FnMut(Block) -> bool,
}

/// What is captured, and who takes the bytes.
pub struct Captured<'a> {
    /// What.
    pub choice: &'a CaptureChoice,
    /// Who takes them.
    pub sink: &'a mut dyn FnMut(&[u8]) -> bool,
}

/// What came of a run.
#[derive(Debug, PartialEq)]
pub struct Finished {
    /// The answer's JSON.
    pub answer: String,
    /// The series, if any were asked for.
    pub series: Option<Recorded>,
}

/// How much of a run is done, 0 to 1, for another thread to see; or for whom it is told, where there are no threads.
#[derive(Debug, Default)]
pub struct Share {
    done: AtomicU64,
    tell: Option<fn(f64)>,
}

impl Share {
    /// A share that is told, every few milliseconds of work, on the thread of the run.
    pub fn telling(tell: fn(f64)) -> Self {
        Self { tell: Some(tell), ..Self::default() }
    }

    /// How much is done.
    pub fn done(&self) -> f64 {
        f64::from_bits(self.done.load(Ordering::Relaxed))
    }

    fn set(&self, done: f64) {
        self.done.store(done.to_bits(), Ordering::Relaxed);
        if let Some(tell) = self.tell {
            tell(done);
        }
    }
}

/// Runs a scenario with a seed, or with its own, on this thread, until `stopped` says so.
///
/// # Errors
/// Why it has no result.
pub fn one(
    scenario: &Handle,
    seed: Option<u64>,
    how: How<'_>,
    stopped: &AtomicBool,
    share: &Share,
) -> Result<Finished, Unfinished> {
    one_watched(scenario, seed, how, Watched::default(), (stopped, share))
}

/// The same, with files made of its events. What there is when it is interrupted is handed over.
///
/// # Errors
/// Why it has no result.
pub fn one_watched(
    scenario: &Handle,
    seed: Option<u64>,
    how: How<'_>,
    watched: Watched<'_>,
    (stopped, share): (&AtomicBool, &Share),
) -> Result<Finished, Unfinished> {
    let (limit, memory) = (Limit::new(how.limit), memory::Watch::default());
    // Of a run before that panicked.
    drop(outside::take());
    let stops = || limit.has_passed() || stopped.load(Ordering::Relaxed) || outside::has_failed() || !memory.suffices();
    let go_on = || !stops();
    let run = Run { scenario, seed, how, limit: &limit, memory: &memory, stop: &Stop::new(&go_on), stopped, share };
    let finished = run.finished(watched);
    if let Some(problem) = outside::take() {
        return Err(Unfinished::Refused(problem));
    }
    finished.map_err(|unfinished| match (&unfinished, memory.outgrown(), limit.found_passed()) {
        (Unfinished::Interrupted, Some(words), _) => Unfinished::TooLarge(words),
        (Unfinished::Interrupted, None, Some(most)) => Unfinished::TookTooLong(most),
        _ => unfinished,
    })
}

/// Runs many, each a scenario's place and a seed, on `threads` threads. Results are handed over on this thread, in the
/// order in which runs end; a run that panics has that as its error.
///
/// # Errors
/// The first of `on`.
pub fn many<E: From<io::Error>>(
    scenarios: &[&Handle],
    (runs, threads): (&[(usize, u64)], usize),
    how: How<'_>,
    on: impl FnMut(Event<Result<Finished, Unfinished>>) -> Result<(), E>,
) -> Result<(), E> {
    let work = |index: usize, stopped: &AtomicBool| {
        let (scenario, seed) = runs[index];
        let done = caught(|| one(scenarios[scenario], Some(seed), how, stopped, &Share::default()));
        done.unwrap_or_else(|panic| Err(Unfinished::Panicked(panic)))
    };
    threads::over((runs.len(), threads), work, on)
}

/// Reads scenarios on several threads. `look` is called on this thread now and then.
///
/// # Errors
/// Those of `look`.
pub fn read_all<E: From<io::Error>>(
    scenarios: &[&Handle],
    threads: usize,
    mut look: impl FnMut() -> Result<(), E>,
) -> Result<Result<(), Unfinished>, E> {
    let work = |index: usize, stopped: &AtomicBool| {
        let checked = scenarios[index].checked(&Stop::new(&|| !stopped.load(Ordering::Relaxed)))?;
        // All networks at once would take more memory than the runs.
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
        look()
    };
    threads::over((scenarios.len(), threads), work, note)?;
    Ok(refused.map_or(Ok(()), |(_, unfinished)| Err(unfinished)))
}

/// The duration of the first of these scenarios that is not refused; None where all are.
///
/// # Errors
/// When reading them is told to stop.
pub fn first_duration(scenarios: &[&Handle], stop: &Stop<'_>) -> Result<Option<units::Duration>, Interrupted> {
    for scenario in scenarios {
        match scenario.checked(stop) {
            Ok(checked) => return Ok(Some(checked.scenario().duration)),
            Err(Unfinished::Interrupted) => return Err(Interrupted),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// A run under way.
struct Run<'a> {
    scenario: &'a Handle,
    seed: Option<u64>,
    how: How<'a>,
    limit: &'a Limit,
    memory: &'a memory::Watch,
    stop: &'a Stop<'a>,
    stopped: &'a AtomicBool,
    share: &'a Share,
}

impl Run<'_> {
    fn finished(&self, watched: Watched<'_>) -> Result<Finished, Unfinished> {
        let Self { how, stop, .. } = *self;
        let checked = self.scenario.checked(stop)?;
        let scenario = checked.scenario();
        let seed = self.seed.unwrap_or(scenario.seed);
        let network = checked.network(seed, stop)?;
        let teller = watched.told_by.unwrap_or(how.engine);
        let until = watched.until(scenario.duration).filter(|_| teller != how.engine);
        let how = How { engine: if until.is_some() { how.engine } else { teller }, ..how };
        let mut recorder = how.trace.map(|trace| trace.recorder(&network, stop)).transpose()?;
        let values = how.trace.zip(recorder.as_ref()).map(|(trace, recorder)| trace.values(&network, recorder, stop));
        let needed = checked.memory().with_series(values.transpose()?.unwrap_or(0));
        let waited = Instant::now();
        if !self.memory.reserve(needed, self.stopped).map_err(Unfinished::TooLarge)? {
            return Err(Unfinished::Interrupted);
        }
        self.limit.put_off(waited.elapsed());
        let begun = Instant::now();
        let keep_going = |done: f64| {
            self.share.set(done);
            stop.ask().is_ok()
        };
        let result = if watched.has_any() && until.is_none() {
            let mut lookers_on = self.lookers_on((&network, &scenario.name, seed), teller, watched)?;
            lookers_on.recorder = recorder.as_mut();
            let result = how.engine.run(&network, &mut lookers_on, keep_going);
            lookers_on.finish()?;
            result
        } else {
            if let Some(until) = until {
                let mut lookers_on = self.lookers_on((&network, &scenario.name, seed), teller, watched)?;
                // An interrupted run hands over what it has.
                let watched = teller.watch(&network, until, &mut lookers_on, |_| stop.ask().is_ok());
                lookers_on.finish()?;
                watched?;
            }
            match &mut recorder {
                Some(recorder) => how.engine.run(&network, recorder, keep_going),
                None => match how.most_threads() {
                    1 => how.engine.run(&network, &mut Nothing, keep_going),
                    threads => how.engine.run_shared(Sharing::among(threads), &network, keep_going),
                },
            }
        }?;
        let engine_seconds = begun.elapsed().as_secs_f64();
        let bottleneck = network.links[network.bottleneck].name.clone();
        let run = EndedRun::new(scenario.name.clone(), seed, how.engine, bottleneck, engine_seconds, result);
        let answer = Answer { run: &run, wanted: how.wanted, stop }.text()?;
        let series = how.trace.zip(recorder).map(|(trace, recorder)| Recorded::of(&network, trace, recorder, stop));
        let series = series.transpose()?;
        // What passed its limit in the end has passed it.
        stop.ask()?;
        Ok(Finished { answer, series })
    }

    /// What makes files of the events of a run of this network and seed, told by this engine.
    fn lookers_on<'a, 'w: 'a>(
        &'a self,
        (network, name, seed): (&Network, &str, u64),
        teller: Engine,
        Watched { events, capture, .. }: Watched<'w>,
    ) -> Result<LookersOn<'a>, Unfinished> {
        let log = events.map(|Kept { choice, sink }| Log::new(choice, network, sink)).transpose()?;
        let capture = capture.map(|Captured { choice, sink }| {
            let about = about(name, seed, teller);
            let tells_fates = teller == Engine::Reference;
            let into = watch::Destination { sink, about, tells_fates, stopped: self.stopped };
            Watch::new(choice, network, into, self.stop)
        });
        Ok(LookersOn { log, capture: capture.transpose()?, ..LookersOn::default() })
    }
}

/// What a capture says of its run.
fn about(scenario: &str, seed: u64, teller: Engine) -> About {
    let name = if scenario.is_empty() { "a scenario" } else { scenario };
    let silent = match teller {
        Engine::Reference => "",
        Engine::Fast => "; of the fast engine, so packets do not say where they were lost",
    };
    About {
        application: format!("celltrain {}", env!("CARGO_PKG_VERSION")),
        comment: format!("{name}, seed {seed}{silent}"),
    }
}

/// All that looks on where events are asked for. It is one type, as engines are compiled for each.
#[derive(Default)]
pub struct LookersOn<'a> {
    /// Records series.
    pub recorder: Option<&'a mut Recorder>,
    /// Keeps events.
    pub log: Option<Log<'a>>,
    /// Makes a capture.
    pub capture: Option<Watch<'a>>,
    /// Keeps the history of a port's buffer.
    pub buffer: Option<Buffer<'a>>,
}

impl LookersOn<'_> {
    /// Runs the network up to `until` for their sake; nothing else is made of it.
    ///
    /// # Errors
    /// When `keep_going` says no, as in [`Engine::run`].
    pub fn watch(
        &mut self,
        engine: Engine,
        (network, until): (&Network, units::Duration),
        keep_going: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(), Interrupted> {
        engine.watch(network, until, self, keep_going)
    }

    /// Hands over what is left.
    fn finish(self) -> Result<(), String> {
        if let Some(mut log) = self.log {
            log.finish();
        }
        self.capture.map_or(Ok(()), Watch::finish)
    }
}

impl Probe for LookersOn<'_> {
    fn next_look(&self) -> Option<Time> {
        self.recorder.as_ref().and_then(Probe::next_look)
    }

    fn traced_ports(&self) -> &[LinkIndex] {
        self.recorder.as_ref().map_or(&[], |recorder| recorder.traced_ports())
    }

    fn look(&mut self, now: Time, view: &NetworkView<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.look(now, view);
        }
    }
}

impl Watcher for LookersOn<'_> {
    const WATCHES: bool = true;

    fn on_event(&mut self, now: Time, event: events::Event) {
        if let Some(log) = &mut self.log {
            log.on_event(now, event);
        }
        if let Some(capture) = &mut self.capture {
            capture.on_event(now, event);
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.on_event(now, event);
        }
    }
}

#[cfg(test)]
#[path = "runner/tests.rs"]
mod tests;
