//! Compares runs with the reference traces of ns-2's validation suites for TCP, packet by packet.
//!
//! `tests.csv` describes the tests, one test per line, with ns-2's names of settings. The lines named `*` contain the
//! defaults of all suites or of one suite. `traces/` contains the reference traces, and `peers/ns2_traces.py` adds
//! further traces. The page `docs/ns2-traces.md` states for each trace which rules of ns-2 ([`rules`]) celltrain must
//! follow so that the run equals the trace. `CELLTRAIN_BLESS=1 cargo test -p celltrain-scenario --test integration
//! ns2:: -- --ignored` finds these rules and writes the page.

mod compare;
mod page;
mod rules;
mod suites;
mod traces;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compare::run;
use page::{PAGE, Verdict};
use rules::RULES;
use suites::{Test, tests};
use traces::{Trace, of_suite};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ns2")
}

/// Returns the tests that have a reference trace, with their traces.
fn traced() -> Vec<(Test, Trace)> {
    let mut of_suites = BTreeMap::new();
    let trace = |test: Test| {
        let traces = of_suites.entry(test.suite.clone()).or_insert_with(|| of_suite(&test.suite));
        traces.remove(&test.name).map(|trace| (test, trace))
    };
    tests().into_iter().filter_map(trace).collect()
}

#[test]
fn with_the_settings_on_the_documentation_page_every_run_equals_its_ns2_trace() {
    let tests = traced();
    let written = std::fs::read_to_string(PAGE).unwrap();
    let verdicts: Vec<_> = tests.iter().map(|(test, _)| page::verdict(&written, test)).collect();
    for ((test, trace), verdict) in tests.iter().zip(&verdicts) {
        match verdict {
            Verdict::Equal(rules) => {
                let result = run(test, rules, trace);
                assert!(result.is_ok(), "{} {}: {result:?}", test.suite, test.name);
            }
            Verdict::NotModelled(reason) => assert_eq!(test.missing(), Some(*reason), "{} {}", test.suite, test.name),
        }
    }
    let tests = tests.iter().map(|(test, _)| test);
    assert!(page::text(tests.zip(verdicts)) == written, "the page is out of date: see the beginning of this file");
}

#[test]
#[ignore = "slow; the nightly job runs this test"]
fn every_rule_that_the_page_lists_for_an_ns2_trace_is_necessary() {
    let tests = traced();
    let verdicts = tests.iter().map(|(test, trace)| {
        let verdict = test.missing().map_or_else(|| needed(test, trace), Verdict::NotModelled);
        (test, verdict)
    });
    let page = page::text(verdicts);
    if std::env::var_os("CELLTRAIN_BLESS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    assert!(page == std::fs::read_to_string(PAGE).unwrap(), "the page is out of date: see the beginning of this file");
}

/// Returns a minimal set of rules of ns-2 with which a run equals its trace.
fn needed(test: &Test, trace: &Trace) -> Verdict {
    let mut rules: Vec<_> = RULES.iter().filter(|rule| (rule.concerns)(test)).collect();
    let all = run(test, &rules, trace);
    assert!(all.is_ok(), "{} {} with all rules: {all:?}", test.suite, test.name);
    for rule in RULES.iter().rev() {
        let without: Vec<_> = rules.iter().copied().filter(|other| other.name != rule.name).collect();
        if without.len() < rules.len() && run(test, &without, trace).is_ok() {
            rules = without;
        }
    }
    Verdict::Equal(rules)
}
