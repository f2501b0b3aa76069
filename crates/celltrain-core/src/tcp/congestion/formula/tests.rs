use std::collections::BTreeMap;

use celltrain_formula::rules::Start;

use super::table::NAMES;
use super::*;
use crate::tcp::congestion::windows::full;
use crate::tcp::congestion::{Congestion, Windows};
use crate::tcp::recovery::Flight;
use crate::tcp::{WindowGrowth, WindowOptions};
use crate::units::Bytes;

const MILLISECOND: Clock = Clock::exact(1000);

type Updates<'a> = &'a [(&'a str, &'a str)];

fn table([on_ack, on_loss, on_timeout]: [Updates<'_>; 3], state: &[(&str, f64)]) -> Table {
    let updates = |of: Updates<'_>| of.iter().map(|(name, text)| ((*name).to_string(), (*text).to_string())).collect();
    Table {
        on_ack: updates(on_ack),
        on_loss: updates(on_loss),
        on_timeout: updates(on_timeout),
        constants: BTreeMap::new(),
        state: state.iter().map(|(name, value)| ((*name).to_string(), Start::Number(*value))).collect(),
    }
}

fn options(table: Table) -> TcpOptions {
    TcpOptions {
        congestion: Congestion::Formula,
        formula: Some(table.into()),
        receive_window: Bytes { bytes: 200 * 512 },
        ..TcpOptions::default()
    }
}

fn windows(table: Table) -> Windows {
    let options = options(table);
    assert_eq!([options.check(), options.check_formula()], [[], []]);
    Windows::new(&options, MILLISECOND)
}

#[test]
fn a_congestion_formula_for_an_event_sets_the_congestion_window_when_the_event_occurs() {
    let mut w = windows(table(
        [
            &[("cwnd", "if cwnd < ssthresh then cwnd + acked else cwnd + 1 / cwnd")],
            &[("ssthresh", "0.7 * cwnd"), ("cwnd", "0.7 * cwnd + 1")],
            &[("ssthresh", "flight / 4"), ("cwnd", "2")],
        ],
        &[],
    ));
    w.ssthresh = 8.0;
    w.on_new_ack(Time(0), 3.0, true);
    assert_eq!(w.cwnd, 4.0);
    w.cwnd = 8.0;
    w.on_new_ack(Time(0), 3.0, true);
    assert_eq!(w.cwnd, 8.125);
    w.cwnd = 10.0;
    w.on_fast_retransmit(&full(8));
    // Afterwards the variant itself changes cwnd, as in Reno.
    w.cwnd = w.ssthresh + 3.0;
    w.after_loss();
    assert_eq!((w.ssthresh, w.cwnd), (7.0, 8.0));
    w.after_loss();
    assert_eq!(w.cwnd, 8.0, "once");
    w.at(Time(0), 20.0);
    w.on_timeout(20.0, false);
    assert_eq!((w.ssthresh, w.cwnd), (5.0, 2.0));
}

/// Regression: the cwnd that `on_loss` had computed at the mark raised cwnd at a loss of the same window.
#[test]
fn a_loss_soon_after_a_mark_does_not_apply_the_on_loss_formulas_again() {
    let mut w = windows(table([&[], &[("ssthresh", "cwnd / 2"), ("cwnd", "cwnd / 2 + 3")], &[]], &[]));
    w.cwnd = 20.0;
    w.on_mark(20.0);
    assert_eq!((w.cwnd, w.ssthresh), (10.0, 10.0));
    w.on_fast_retransmit(&Flight { reduced: true, ..full(20) });
    w.cwnd = w.in_recovery();
    w.after_loss();
    assert_eq!((w.cwnd, w.ssthresh), (10.0, 10.0));
}

#[test]
fn on_an_event_without_a_formula_the_window_changes_as_in_jacobsons_algorithm() {
    let mut ours = windows(table([&[], &[("kept", "kept + 1")], &[]], &[("kept", 0.0)]));
    let receive_window = Bytes { bytes: 200 * 512 };
    let mut theirs = Windows::new(&TcpOptions { receive_window, ..TcpOptions::default() }, MILLISECOND);
    for step in 0..2000 {
        for w in [&mut ours, &mut theirs] {
            match step % 300 {
                250 => {
                    w.on_fast_retransmit(&full(8));
                    w.cwnd = w.ssthresh;
                    w.after_loss();
                }
                299 => w.on_timeout(17.0, false),
                _ => w.on_new_ack(Time(step), 1.0, true),
            }
        }
        assert_eq!((ours.cwnd, ours.ssthresh), (theirs.cwnd, theirs.ssthresh), "step {step}");
    }
}

#[test]
fn windows_set_by_congestion_formulas_stay_between_the_minimum_and_the_configured_limit() {
    let shrinking =
        || table([&[("cwnd", "cwnd - 7")], &[("ssthresh", "0")], &[("ssthresh", "-1"), ("cwnd", "0")]], &[]);
    let mut w = windows(shrinking());
    w.cwnd = 12.0;
    w.on_new_ack(Time(0), 1.0, true);
    assert_eq!(w.cwnd, 5.0, "a congestion formula may shrink cwnd");
    w.on_new_ack(Time(0), 1.0, true);
    assert_eq!(w.cwnd, 1.0);
    w.on_fast_retransmit(&full(8));
    assert_eq!(w.ssthresh, 2.0);
    w.on_timeout(3.0, false);
    assert_eq!((w.cwnd, w.ssthresh), (1.0, 2.0));

    let growing = options(table([&[("cwnd", "cwnd + 100")], &[], &[]], &[]));
    let windows = WindowOptions { growth: Some(WindowGrowth::Capped), ..WindowOptions::default() };
    let capped = TcpOptions { windows, ..growing };
    let mut w = Windows::new(&capped, MILLISECOND);
    (0..4).for_each(|_| w.on_new_ack(Time(0), 1.0, true));
    assert_eq!(w.cwnd, 200.0);
}

#[test]
fn a_congestion_formula_can_read_its_state_variables_the_time_and_round_trip_times() {
    let average = table(
        [
            &[("cwnd", "srtt / 1 ms"), ("ssthresh", "min_rtt / 1 ms + 100"), ("last", "now"), ("since", "now - last")],
            &[],
            &[("cwnd", "rtt / 1 ms + since / 1 ms")],
        ],
        &[("last", 0.0), ("since", 0.0)],
    );
    let mut w = windows(average);
    w.cwnd = 500.0;
    for took in [80, 160, 40] {
        w.on_round_trip(Span(took));
    }
    // srtt is 80, then 80 + 80 / 8 = 90, and then 90 - 50 / 8 = 83.75.
    for now in [10, 35] {
        w.at(Time(now), 0.0);
        w.on_new_ack(Time(now), 1.0, true);
        assert!((w.cwnd - 83.75).abs() < 1e-9 && (w.ssthresh - 140.0).abs() < 1e-9, "{} {}", w.cwnd, w.ssthresh);
    }
    w.on_timeout(3.0, false);
    assert!((w.cwnd - 65.0).abs() < 1e-9, "the window is {} after round trips from 25 to 40 ms", w.cwnd);
}

#[test]
fn non_finite_results_of_a_congestion_formula_are_counted() {
    let mut w = windows(table([&[("cwnd", "cwnd / 0 * 0")], &[], &[]], &[]));
    w.on_new_ack(Time(0), 1.0, true);
    assert_eq!(
        (w.cwnd, w.replaced_results()),
        (1.0, 1),
        "the invalid result is replaced, so the window is at least one segment"
    );
}

#[test]
fn a_message_about_an_error_in_a_congestion_formula_shows_the_position_of_the_error() {
    let told = |table: Table, key: &str, words: &str| {
        let options = options(table);
        let faults = [options.check(), options.check_formula()].concat();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].key, key);
        assert!(faults[0].problem.contains(words), "{faults:?}");
        faults[0].excerpt.clone()
    };
    let on_ack = |name, text| table([&[(name, text)], &[], &[]], &[]);
    assert_eq!(
        told(on_ack("cwnd", "cwnd + 1 / cwmd"), "on_ack.cwnd", "does not know cwmd; did you mean cwnd?"),
        ["cwnd + 1 / cwmd", "           ^^^^"]
    );
    told(on_ack("cwnd", "cwnd + mss"), "on_ack.cwnd", "and the other is in bytes");
    told(on_ack("cwnd", "random()"), "on_ack.cwnd", "a sender draws no random numbers");
    told(
        on_ack("swnd", "1"),
        "on_ack.swnd",
        "did you mean cwnd? It must be cwnd, ssthresh or the name of a variable in state",
    );
    told(on_ack("rwnd", "1"), "on_ack.rwnd", "It must be cwnd, ssthresh or the name of a variable in state");
    let on_loss = table([&[], &[("cwnd", "acked")], &[]], &[]);
    told(on_loss, "on_loss.cwnd", "this value is available only in on_ack");
    told(
        table([&[("cwnd", "1")], &[], &[]], &[("srtt", 0.0)]),
        "state.srtt",
        "is already one of the sender's variables",
    );
    told(Table::default(), "formula", "has no formula for cwnd or ssthresh");
    let start = Table { constants: [("a".into(), Start::Formula("cwnd".into()))].into(), ..on_ack("cwnd", "a") };
    told(start, "constants.a", "this value changes during the run, but this formula is evaluated only once");

    let without = TcpOptions { congestion: Congestion::Formula, ..TcpOptions::default() };
    assert!(without.check()[0].problem.contains("is missing"));
    let idle = TcpOptions { congestion: Congestion::Cubic, ..options(on_ack("cwnd", "1")) };
    assert!(idle.check()[0].problem.contains("has no effect, as congestion is \"cubic\""));
}

#[test]
fn the_page_about_formulas_lists_every_variable_of_congestion_formulas() {
    let rows: Vec<String> = NAMES
        .iter()
        .map(|(name, _)| {
            let celltrain_formula::Kind::Number(Some(unit)) = name.kind else { unreachable!("all are numbers") };
            format!("| `{}` | {}; {unit} |\n", name.name, name.about)
        })
        .collect();
    let rows = rows.concat();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models/congestion_formula.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&format!("| name | meaning |\n|---|---|\n{rows}\n")),
        "the table of the page should be\n{rows}"
    );
}
