//! Tests that the probe of policies reports policies that deliver little or nothing, and no other policies.

use std::collections::BTreeMap;

use super::*;
use celltrain_core::aal5::Aal5Options;
use celltrain_core::policy::PerVc;
use celltrain_core::policy::formula::{Constant, Start, Table};
use celltrain_core::policy::{Configure, PolicyConfig, epd};
use celltrain_core::threshold::Threshold;
use celltrain_core::units::Clock;

const FACTS: PortInfo<'static> = PortInfo {
    name: "trial",
    capacity: Some(1000),
    cells_per_second: 353_207.5,
    clock: Clock::exact(1_000_000_000),
    aal5: &Aal5Options::ATM,
};

fn refusals_of(policy: Box<dyn BufferPolicy>) -> Vec<String> {
    let Probe { refusals, remark, .. } = probe(policy, &FACTS, &VCS, Time(10_000_000_000), ROUNDS);
    refusals.into_iter().chain(remark).collect()
}

fn table(admit: &str) -> Table {
    Table { admit: admit.into(), ..Table::default() }
}

fn refusals(table: Table) -> Vec<String> {
    let config = Box::new(table);
    assert_eq!(config.check(Some(1000), &[]), [], "{config:?}");
    assert_eq!(config.check(Some(1000), &VCS), [], "{config:?}");
    refusals_of(Box::new(config.build(1000, &VCS)))
}

fn texts(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, text)| ((*name).to_string(), (*text).to_string())).collect()
}

/// Each policy in this test passed all other checks, but delivered almost nothing, with a fairness of 1.
#[test]
fn a_policy_formula_that_admits_no_frame_is_reported_with_the_clause_that_causes_it() {
    const EMPTY: &str = "refuses every frame while the buffer is empty";
    for (admit, expected) in [
        (
            "X < 0.8 * K and Y * N < 1.2 * X",
            format!("{EMPTY}: Y * N < 1.2 * X is 0 < 0; add \"X <= ... or\""),
        ),
        ("Y < X / max(N, 1)", format!("{EMPTY}: Y < X / max(N, 1) is 0 < 0; add \"X <= ... or\"")),
        ("X > 0.9 * K", format!("{EMPTY}: X > 0.9 * K is 0 > 900")),
        ("X >= K", format!("{EMPTY}: X >= K is 0 >= 1000")),
        ("X < 0 * K", format!("{EMPTY}: X < 0 * K is 0 < 0; add \"X <= ... or\"")),
        ("X > 0 or Y > 3", format!("{EMPTY}: X > 0 is 0 > 0, and Y > 3 is 0 > 3; add \"X <= ... or\"")),
        ("false", format!("{EMPTY}: the condition is always false")),
        (
            "tagged and X < 800",
            "admits only tagged frames (CLP = 1) while the buffer is empty: tagged is false".into(),
        ),
        (
            "X <= 0",
            "refuses every frame while a single cell waits: X <= 0 is 1 <= 0".into(),
        ),
        (
            "N < 1 or Y > 0",
            "refuses every frame of a second VC while a single cell waits: N < 1 is 1 < 1, and Y > 0 is 0 > 0; add \"X <= ... or\""
                .into(),
        ),
        (
            "X <= 0 or Y * N < X",
            "refuses every frame of a VC while at least one cell of that VC waits: X <= 0 is 1 <= 0, and Y * N < X is 1 < 1; \
             add \"X <= ... or\""
                .into(),
        ),
        (
            "X < 0.8 * K and Y * N <= 1.2 * X",
            "refuses every frame of a VC while one frame of that VC (12 cells) and a single cell of another VC wait: Y * N <= \
             1.2 * X is 24 <= 15.6; add \"X <= ... or\""
                .into(),
        ),
        ("X < 2", "refuses every frame while one frame waits (12 cells): X < 2 is 12 < 2".into()),
        (
            "X < 2 or Y == 0",
            "refuses every frame of a VC while one frame of that VC waits (12 cells): X < 2 is 12 < 2, and Y == 0 is 12 == 0"
                .into(),
        ),
        (
            "now < 1 s",
            "refuses every frame while the buffer is empty, after the first 7 of 64 frames: now < 1 s is 1.25 s < 1 s".into(),
        ),
        ("random() < 0", format!("{EMPTY}: random() < 0 is 0.5 < 0")),
        ("random() < 0.05", "refuses 60 of 64 frames while the buffer is empty: random() < 0.05 is 0.5 < 0.05".into()),
    ] {
        assert_eq!(refusals(table(admit)), [expected], "{admit}");
    }
}

#[test]
fn a_policy_formula_that_drops_every_frame_at_the_head_is_reported() {
    let expected = "drops every frame at the head of the queue, even if it has not waited";
    for (drop_head, refused) in
        [("sojourn >= 0", true), ("X < 100", true), ("random() < 0.8", false), ("sojourn > 0", false)]
    {
        let drops = Table { drop_head: Some(drop_head.into()), ..table("X < 0.8 * K") };
        assert_eq!(refusals(drops), if refused { vec![expected] } else { vec![] }, "{drop_head}");
    }
}

#[test]
fn a_policy_that_stops_admitting_frames_forever_is_reported() {
    let open = || [("open".to_string(), Start::Number(0.0))].into();
    let closed = Table { state: open(), on_admission: texts(&[("open", "1")]), ..table("open > 0") };
    let expected = "refuses every frame while the buffer is empty: open > 0 is 0 > 0; add \"X <= ... or\"";
    assert_eq!(refusals(closed), [expected]);

    let count = [("sent".to_string(), Start::Number(0.0))].into();
    let closing = Table { state: count, on_admission: texts(&[("sent", "sent + 1")]), ..table("sent < 40") };
    let expected = "refuses every frame while the buffer is empty, after the first 6 of 64 frames: sent < 40 is 40 < 40; add \"X <= ... or\"";
    assert_eq!(refusals(closing), [expected]);

    // The policy `opens` begins to admit frames after its first refusal, and never stops admitting frames.
    let opens = Table { state: open(), on_refusal: texts(&[("open", "1")]), ..table("open > 0") };
    assert_eq!(refusals(opens), [""; 0]);
}

#[test]
fn a_vc_whose_frames_a_policy_never_admits_is_reported() {
    let by_vc = |values: [f64; 4]| {
        let values = VCS.iter().zip(values).map(|(name, value)| ((*name).to_string(), value)).collect();
        [("w".to_string(), Constant::Value(PerVc::ByName(values)))].into()
    };
    let weighted = |weights| Table { constants: by_vc(weights), ..table("Y < w * K") };
    let expected = "refuses every frame of tcp3 while the buffer is empty: Y < w * K is 0 < 0; add \"X <= ... or\"";
    assert_eq!(refusals(weighted([0.3, 0.3, 0.0, 0.4])), [expected]);
    let two = refusals(weighted([0.3, 0.0, 0.0, 0.4]));
    assert!(two[0].starts_with("refuses every frame of tcp2 and another VC while"), "{two:?}");
    assert_eq!(refusals(weighted([0.3, 0.1, 0.2, 0.4])), [""; 0]);
}

#[test]
fn a_policy_that_admits_frames_into_an_empty_buffer_gives_no_warning() {
    for admit in [
        "true",
        "X < 0.8 * K and (X <= 0.5 * K or Y * N < 1.2 * X)",
        "X < 0.8 * K and Y * N <= 2 * X",
        "X <= 0.02 * K or Y * N <= 1.2 * X",
        "Y < K - X",
        "X <= 0.9 * K or Y * N / X <= 0.8",
        "not tagged",
        "X <= 0.5 * K or random() < 0.3",
        "random() < 0.6",
        "random() < 0.35",
    ] {
        assert_eq!(refusals(table(admit)), [""; 0], "{admit}");
    }
    for config in PolicyConfig::samples(1000) {
        assert_eq!(refusals_of(config.build(Some(1000), &VCS)), [""; 0], "{}", config.name());
    }
}

#[test]
fn a_policy_threshold_of_zero_cells_is_reported() {
    let policy = epd::Config { threshold: Threshold::Cells(0) };
    assert_eq!(refusals_of(Box::new(policy.build(1000, &VCS))), ["refuses every frame while a single cell waits"]);
}

/// In a buffer of one cell, the probe cannot offer a frame while a cell is waiting.
#[test]
fn for_a_small_buffer_the_check_of_a_policy_uses_frames_that_fit_into_it() {
    let found = |admit: &str, capacity| {
        let port_info = PortInfo { capacity: Some(capacity), ..FACTS };
        let policy = Box::new(table(admit)).build(capacity, &VCS);
        probe(Box::new(policy), &port_info, &VCS, Time(1000), ROUNDS).refusals
    };
    assert_eq!(found("X <= 0", 1), [""; 0]);
    // A buffer of less than 120 cells is not probed with frames of 12 cells, because a frame takes up a large part of
    // it.
    assert_eq!(found("X < 10", 119), [""; 0]);
    assert_eq!(found("X < 10", 120).len(), 1);
    assert_eq!(found("X < 0", 1).len(), 1);
    assert_eq!(found("X < 0", 0), [""; 0]);
}
