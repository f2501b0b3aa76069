use std::cell::RefCell;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use celltrain_scenario::read_toml;
use serde_json::Value;

use super::*;
use crate::reading::Estimated;
use crate::threads::Event;

fn text(sources: u32, duration: &str, buffer: u32) -> String {
    let toml = format!(
        r#"
        name = "sources"
        duration = "{duration}"
        seed = 7
        [topology.n_source]
        sources = {sources}
        link_delay = "5us"
        [port.bottleneck]
        buffer = {buffer}
        [port.bottleneck.policy.epd]
        threshold = 80
        "#
    );
    let (handle, Estimated { reading, .. }) = Handle::of_reading(read_toml(&toml, "sources.toml"));
    handle.unwrap_or_else(|| panic!("{:?}", reading.faults)).json()
}

fn small() -> Handle {
    Handle::of_text(text(2, "10ms", 100))
}

#[test]
fn results_can_be_restricted_to_a_measuring_window_of_the_run() {
    let of = |measure: &str| {
        let mut text: Value = serde_json::from_str(&text(2, "10ms", 100)).unwrap();
        text["measure"] = serde_json::from_str(measure).unwrap();
        answer(&run(&Handle::of_text(text.to_string()), None, How::default()).unwrap())
    };
    let [whole, first, last] = ["{}", r#"{"to":"100us"}"#, r#"{"from":"100us"}"#].map(of);
    let window = |answer: &Value| [&answer["measured_from_s"], &answer["measured_to_s"]].map(|s| s.as_f64().unwrap());
    assert_eq!([&whole, &first, &last].map(window), [[0.0, 0.01], [0.0, 0.0001], [0.0001, 0.01]]);
    let sent = |answer: &Value| answer["flows"][0]["segments_sent"].as_u64().unwrap();
    assert_eq!(sent(&first) + sent(&last), sent(&whole));
    assert!(sent(&first) > 0 && sent(&last) > 0, "{first} {last}");
    assert_eq!([&first, &last].map(|answer| &answer["fingerprint"]), [&whole["fingerprint"]; 2]);
    let goodput = |answer: &Value| answer["goodput_mbps"].as_f64().unwrap();
    assert!((0.01 * goodput(&first) + 0.99 * goodput(&last) - goodput(&whole)).abs() < 1e-9);
}

/// Returns a scenario whose run is too long to finish.
fn long() -> Handle {
    Handle::of_text(text(2, "100000s", 100))
}

fn refused() -> Handle {
    Handle::of_text(text(2, "10ms", 100).replace(r#""buffer":100"#, r#""buffer":10"#))
}

fn run(scenario: &Handle, seed: Option<u64>, how: How<'_>) -> Result<Finished, Unfinished> {
    one(scenario, seed, how, &AtomicBool::new(false), &Progress::default())
}

fn answer(finished: &Finished) -> Value {
    serde_json::from_str(&finished.answer).expect("the answer is valid JSON")
}

fn outcomes(scenarios: &[&Handle], runs: &[(usize, u64)], how: How<'_>) -> Vec<Result<Finished, Unfinished>> {
    let mut outcomes: Vec<_> = runs.iter().map(|_| None).collect();
    let on = |event| {
        if let Event::Done(index, outcome) = event {
            assert!(outcomes[index].replace(outcome).is_none(), "run {index} ends once");
        }
        Ok::<_, io::Error>(())
    };
    many(scenarios, (runs, 2), how, on).expect("no test cancels a run");
    outcomes
        .into_iter()
        .map(|outcome| outcome.expect("each run of the batch has either a result or an error"))
        .collect()
}

#[test]
fn a_run_uses_the_given_seed_or_the_seed_of_the_scenario_and_is_reproducible() {
    let scenario = small();
    let [own, again] = [None, Some(7)].map(|seed| answer(&run(&scenario, seed, How::default()).unwrap()));
    assert_eq!(own["seed"], 7);
    assert_eq!(own["fingerprint"], again["fingerprint"], "the network was built again");
    let other = answer(&run(&scenario, Some(8), How::default()).unwrap());
    assert_ne!(own["fingerprint"], other["fingerprint"]);
    let fresh = answer(&run(&small(), Some(8), How::default()).unwrap());
    assert_eq!(other["fingerprint"], fresh["fingerprint"], "the network built by the checks has the seed of the run");
}

#[test]
fn recording_series_changes_no_other_result_of_a_run() {
    let scenario = small();
    let checked = scenario.checked(&CancellationToken::never()).unwrap();
    let trace = Trace::new(checked.scenario().duration, &["queue".into()], Some("1ms"), None).unwrap();
    let traced = run(&scenario, None, How { trace: trace.as_ref(), ..How::default() }).unwrap();
    let bare = run(&scenario, None, How::default()).unwrap();
    assert_eq!(answer(&traced)["fingerprint"], answer(&bare)["fingerprint"]);
    assert_eq!(traced.series.expect("the run records a series").time_s.len(), 11);
    assert_eq!(bare.series, None);
}

#[test]
fn a_run_that_reaches_its_time_limit_ends_with_an_error() {
    let limit = Duration::from_millis(50);
    let begun = Instant::now();
    let ended = run(&long(), None, How { limit: Some(limit), ..How::default() });
    assert_eq!(ended, Err(Unfinished::TookTooLong(limit)));
    assert_eq!(ended.unwrap_err().to_string(), "took longer than 0.05 s of real time");
    assert!(begun.elapsed() >= limit);
}

#[test]
fn the_time_spent_reading_the_scenario_counts_towards_the_time_limit_of_a_run() {
    // If the time limit did not include reading, the scenario would be read before the limit is first checked.
    let scenario = small();
    let ended = run(&scenario, None, How { limit: Some(Duration::ZERO), ..How::default() });
    assert_eq!(ended, Err(Unfinished::TookTooLong(Duration::ZERO)));
    assert_eq!(scenario.took(), Duration::ZERO);
}

#[test]
fn a_cancelled_run_has_no_result_and_reports_its_progress() {
    let (stopped, progress, scenario) = (AtomicBool::new(false), Progress::default(), long());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| one(&scenario, None, How::default(), &stopped, &progress));
        while progress.done() == 0.0 {
            std::thread::yield_now();
        }
        stopped.store(true, Ordering::Relaxed);
        assert_eq!(run.join().unwrap(), Err(Unfinished::Interrupted));
    });
    assert!(progress.done() < 1.0);
}

#[test]
fn a_batch_gives_the_results_of_single_runs_and_an_invalid_scenario_affects_no_other_run() {
    let (first, bad, second) = (small(), refused(), Handle::of_text(text(3, "10ms", 200)));
    let scenarios = [&first, &bad, &second];
    let runs = [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)];
    for ((scenario, seed), outcome) in runs.into_iter().zip(outcomes(&scenarios, &runs, How::default())) {
        match (run(scenarios[scenario], Some(seed), How::default()), outcome) {
            (Ok(alone), Ok(with_others)) => {
                assert_eq!(answer(&alone)["fingerprint"], answer(&with_others)["fingerprint"]);
                assert_eq!(answer(&with_others)["seed"], seed);
            }
            (Err(alone), Err(with_others)) => {
                assert_eq!(scenario, 1);
                assert!(alone.to_string().contains("port.bottleneck.policy.epd.threshold"), "{alone}");
                assert_eq!(alone, with_others);
            }
            others => panic!("run of scenario {scenario}: {others:?}"),
        }
    }
}

#[test]
fn in_a_batch_the_time_limit_applies_to_each_run_and_each_run_may_have_different_measures() {
    let (quick, slow) = (small(), long());
    let limit = Some(Duration::from_millis(500));
    let mut texts = [vec!["efficiency", "flows.sum(*).segments_sent"], vec!["scenario.topology.n_source.sources"]];
    let measures = texts.each_mut().map(|texts| Measures::new(texts.drain(..)));
    let runs = [(0, 1, 0), (0, 1, 1), (1, 1, 0)].map(|(case, seed, measures)| CaseRun { case, seed, measures });
    let mut rows: [_; 3] = std::array::from_fn(|_| None);
    let on = |event: Event<Result<Finished, Unfinished>>| {
        if let Event::Done(index, outcome) = event {
            rows[index] = Some(outcome.map(|finished| finished.row.expect("the run has measures")));
        }
        Ok::<_, io::Error>(())
    };
    super::rows(&[&quick, &slow], &measures, (&runs, 2), How { limit, ..How::default() }, on)
        .expect("no test cancels a run");
    let [Some(Ok(first)), Some(Ok(second)), Some(ended)] = rows else { panic!("two of three runs have a result") };
    let whole = answer(&run(&quick, Some(1), How::default()).unwrap());
    let flows = whole["flows"].as_array().expect("an answer has flows");
    let sent: f64 = flows.iter().filter_map(|flow| flow["segments_sent"].as_f64()).sum();
    let values = |row: &Row| row.figures.iter().map(|figure| figure.value).collect::<Vec<_>>();
    assert_eq!(values(&first), [whole["efficiency"].as_f64(), Some(sent)]);
    assert_eq!(values(&second), [Some(2.0)]);
    assert_eq!(first.fingerprint, second.fingerprint);
    assert_eq!(Some(first.fingerprint.as_str()), whole["fingerprint"].as_str());
    assert_eq!(Some(first.cell_hops), whole["cell_hops"].as_u64());
    assert_eq!(ended, Err(Unfinished::TookTooLong(Duration::from_millis(500))));
}

#[test]
fn a_measure_that_refers_to_a_time_series_is_computed_from_the_series_that_the_run_recorded() {
    let scenario = Handle::of_text(text(2, "2s", 100));
    let texts = ["series.mean_window.largest(*)", "series.climb.tcp1", "series.climb.tcp9"];
    let measures = Measures::new(texts);
    let trace =
        Trace::new(celltrain_core::units::Duration::default(), &["cwnd".into()], Some("10ms"), Some(Vec::new()));
    let trace = trace.expect("the choice is valid");
    let how = How { trace: trace.as_ref(), measures: Some(&measures), ..How::default() };
    let [window, climb, unknown] = &run(&scenario, None, how).unwrap().row.expect("there is a row").figures[..] else {
        panic!("there are three measures")
    };
    assert!(window.value.is_some_and(|segments| segments > 1.0), "{window:?}");
    assert_eq!((climb.value, &climb.note), (Some(0.0), &None), "no growth phase is long enough");
    assert!(unknown.note.as_ref().is_some_and(|note| note.text.contains("there is no 'tcp9'; did you mean tcp2?")));
}

#[test]
fn an_error_in_a_user_callback_stops_all_runs_of_a_batch() {
    let (quick, slow) = (small(), long());
    let ended = RefCell::new(0);
    let on = |event| match event {
        Event::Done(..) => {
            *ended.borrow_mut() += 1;
            Err(io::Error::other("enough"))
        }
        Event::Look => Ok(()),
    };
    let runs = [(0, 1), (1, 1), (1, 2), (1, 3)];
    assert_eq!(many(&[&quick, &slow], (&runs, 2), How::default(), on).unwrap_err().to_string(), "enough");
    assert_eq!(ended.into_inner(), 1, "no result is returned for runs that were stopped");
}

#[test]
fn a_panic_in_a_run_of_a_batch_is_an_error_of_that_run_only() {
    let good = small();
    // No scenario panics, so use an index out of range.
    let runs = [(0, 1), (5, 1), (0, 1)];
    let outcomes = outcomes(&[&good], &runs, How::default());
    let Err(Unfinished::Panicked(words)) = &outcomes[1] else { panic!("{outcomes:?}") };
    assert!(words.contains("index out of bounds"), "{words}");
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
}

#[test]
fn checking_a_batch_reports_its_first_invalid_scenario_and_keeps_no_network_in_memory() {
    let (good, bad) = (small(), refused());
    let worse = Handle::of_text("{}".into());
    let all = |scenarios: &[&Handle]| read_all(scenarios, 2, || Ok::<_, io::Error>(())).expect("no test cancels a run");
    assert_eq!(all(&[&good]), Ok(()));
    assert!(good.took() > Duration::ZERO);
    assert!(!good.checked(&CancellationToken::never()).unwrap().holds_a_network());
    let refusal = all(&[&good, &bad, &worse]).unwrap_err();
    assert_eq!(Err(refusal), run(&bad, None, How::default()));
}

#[test]
fn the_progress_of_a_batch_refers_to_the_duration_of_its_first_valid_scenario() {
    let (bad, good, longer) = (refused(), small(), long());
    let duration =
        |scenarios: &[&Handle]| first_duration(scenarios, &CancellationToken::never()).expect("no test cancels a run");
    assert_eq!(duration(&[&bad, &good, &longer]), Some(units::Duration::from_milliseconds(10)));
    assert_eq!(duration(&[&bad]), None);
}

#[test]
fn progress_is_reported_on_the_calling_thread_and_ends_at_1() {
    thread_local! {
        static TOLD: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
    }
    let (stopped, progress) =
        (AtomicBool::new(false), Progress::with_callback(|done| TOLD.with_borrow_mut(|told| told.push(done))));
    one(&small(), None, How::default(), &stopped, &progress).expect("no test cancels a run");
    let told = TOLD.take();
    assert!(told.is_sorted() && told.last() == Some(&progress.done()), "{told:?}");
}
