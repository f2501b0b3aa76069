//! Many runs on several threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::units;

use super::{Finished, How, Progress, Watched, one_of_family};
use crate::Unfinished;
use crate::expressions::Measures;
use crate::families::{Families, Part};
use crate::panics::caught;
use crate::scenario::Handle;
use crate::threads::{self, Event};

/// Runs many scenarios on `threads` threads. A run is given as an index into `scenarios` and a seed. Calls `on` on this
/// thread whenever a run ends. If a run panics, the panic is reported as the run's error.
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

/// Executes one run of a batch. A panic, for example at an index without a scenario, becomes the run's error.
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

/// One run of a case in a batch.
#[derive(Clone, Copy, Debug)]
pub struct CaseRun {
    /// Index of the case.
    pub case: usize,
    /// The run's seed.
    pub seed: u64,
    /// Index of the run's list of measures.
    pub measures: usize,
}

/// Runs cases on `threads` threads as [`many`] does, and returns a row instead of an answer for each run. With
/// [`How::certificates`], copies results between runs of the batch whose results are known to be equal.
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
        // Drop the network of the scenario, because the networks of all scenarios would take more memory than the runs.
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

/// Returns the duration of the first scenario that is not refused; `None` if all scenarios are refused.
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
