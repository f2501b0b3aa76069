//! Tests that the reading of a scenario can be cancelled at any check for cancellation.

use std::cell::Cell;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_scenario::{Reader, Reading};

/// Runs work that checks for cancellation, and cancels it after `most` checks. Returns the number of checks and the
/// outcome.
fn asked<T>(
    most: usize,
    work: impl FnOnce(&CancellationToken<'_>) -> Result<T, Interrupted>,
) -> (usize, Result<T, Interrupted>) {
    let asked = Cell::new(0);
    let go_on = || {
        asked.set(asked.get() + 1);
        asked.get() <= most
    };
    let outcome = work(&CancellationToken::every(1, &go_on));
    (asked.get(), outcome)
}

fn read(text: &str, token: &CancellationToken<'_>) -> Result<Reading, Interrupted> {
    Reader { source: "here.toml", fits: &|_| Ok(()), token }.toml(text)
}

#[test]
fn reading_a_scenario_ends_as_soon_as_the_cancellation_callback_returns_stop() {
    // Together, these scenarios contain every topology, policy, scheduler, allocator and kind of traffic.
    let all = crate::scenarios_in("scenarios");
    assert!(all.len() > 20);
    for (name, text) in all {
        let (questions, whole) = asked(usize::MAX, |token| read(&text, token));
        assert!(whole.unwrap().scenario.is_some(), "{name}");
        // Cancel the reading at some of the checks, which are evenly distributed. The nightly job tests about a hundred
        // checks.
        let tried = (crate::differential::cases() / 2).clamp(1, 100) as usize;
        for most in (0..questions).step_by(1 + questions / tried) {
            let (told, outcome) = asked(most, |token| read(&text, token));
            assert!(outcome.is_err(), "{name}: question {most} of {questions}");
            assert_eq!(told, most + 1, "{name}: no further call");
        }
    }
}

#[test]
fn reading_an_invalid_scenario_ends_as_soon_as_the_cancellation_callback_returns_stop() {
    let faulty = r#"
        duration = "1s"
        [topology.network]
        hosts = ["a", "b", "c"]
        switches = ["s"]
        links = [{ between = ["a", "s"], delay = "0s" }, { between = ["s", "q"], delay = "0s" }]
        flows = [{ from = "a", to = "b" }, { from = "a", to = "z", path = ["a", "x", "z"] }]
        [flow.tcp9]
        start = "1s"
        [vc.tcp8]
        tagged = true
        [port.nowhere]
        buffer = 10
        policy = { tail_drop = {} }
    "#;
    let (questions, whole) = asked(usize::MAX, |token| read(faulty, token));
    assert!(whole.unwrap().faults.len() > 3);
    for most in 0..questions {
        assert!(asked(most, |token| read(faulty, token)).1.is_err(), "question {most} of {questions}");
    }
}
