//! Tests of formula policies: admission, state, and faults of invalid formulas.

use super::*;
use crate::index::Label;
use crate::policy::bench::{Bench, asked, stream, view};
use crate::policy::{AtHead, Head};
use crate::units::{Clock, Span, Time};

fn table(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, text)| ((*name).to_string(), (*text).to_string())).collect()
}

fn state(entries: &[(&str, f64)]) -> BTreeMap<String, Start> {
    entries.iter().map(|(name, value)| ((*name).to_string(), Start::Number(*value))).collect()
}

fn number(value: f64) -> Constant {
    Constant::Value(PerVc::Same(value))
}

fn formula(admit: &str, constants: &[(&str, Constant)]) -> Config {
    let constants = constants.iter().map(|(name, constant)| ((*name).to_string(), constant.clone())).collect();
    Table { admit: admit.into(), constants, ..Table::default() }.into()
}

fn text(formula: &str) -> Constant {
    Constant::Formula(formula.into())
}

/// Checks that a formula and a built-in policy make the same decisions, in many states of the buffer and with the same
/// random draws.
fn is_the_same<C: Configure>(ours: &Config, theirs: &C, capacity: u32) {
    let names = ["vc0", "vc1", "vc2"];
    assert_eq!(ours.check(Some(capacity), &[]), [], "{ours:?}");
    assert_eq!(ours.check(Some(capacity), &names), [], "{ours:?}");
    let mut states = Stream::new(5, "states");
    let [mut rng, mut same] = [(); 2].map(|()| Stream::new(1, "bench"));
    let (mut ours, mut theirs) = (ours.build(capacity, &names), theirs.build(capacity, &names));
    let (mut admitted, rounds) = (0, 20_000);
    for _ in 0..rounds {
        let mut left = capacity;
        let per_vc = [(); 3].map(|()| {
            let cells = if states.below(4) == 0 { 0 } else { states.below(left + 1) };
            left -= cells;
            cells
        });
        let view = View { tagged: states.below(4) == 0, ..view(capacity, &per_vc) };
        let vc = Label::new(states.below(3));
        let answer = ours.admit_frame(&view, vc, &mut rng);
        assert_eq!(answer, theirs.admit_frame(&view, vc, &mut same), "{view:?} of {vc:?}");
        admitted += u32::from(answer);
    }
    assert_eq!(rng.next_u64(), same.next_u64(), "both policies draw the same random numbers");
    assert_eq!(ours.replaced_results(), 0);
    assert!(
        (rounds / 100..rounds * 99 / 100).contains(&admitted),
        "{admitted} of {rounds} frames are admitted, so both decisions have occurred"
    );
}

#[test]
fn an_average_in_a_policy_formula_is_updated_before_the_admission_decision() {
    let mut config = formula("average <= 3", &[]);
    config.state = state(&[("average", 0.0)]);
    config.on_frame = table(&[("average", "average + 0.5 * (X - average)")]);
    assert_eq!(config.check(Some(1000), &[]), []);
    let mut bench = Bench::new(&config, 1000, 1);
    // The averages are 0, 2 and 5, so the frame that finds 8 cells is refused. After that, the average falls together
    // with the queue.
    for expected in [4, 8, 8] {
        bench.offer_frame(0, 4);
        assert_eq!(bench.port.occupancy(), expected);
    }
    bench.take(8);
    bench.offer_frame(0, 1);
    assert_eq!(bench.port.occupancy(), 1, "(5 + 0) / 2 is at most 3");
}

#[test]
fn an_admission_decision_of_a_policy_formula_changes_only_the_state_of_the_vc_concerned() {
    let mut config = formula("taken < 2", &[]);
    config.vc_state = state(&[("taken", 0.0)]);
    config.on_admission = table(&[("taken", "taken + 1")]);
    config.on_refusal = table(&[("taken", "0")]);
    assert_eq!(config.check(Some(1000), &[]), []);
    let mut bench = Bench::new(&config, 1000, 2);
    let mut of_vc = [0, 0];
    for vc in [0, 0, 0, 1, 0, 1, 1, 1] {
        bench.offer_frame(vc, 1);
        of_vc[vc as usize] = bench.port.per_vc()[Label::new(vc)];
    }
    // The third of four frames of each VC is refused.
    assert_eq!(of_vc, [3, 3]);
}

#[test]
fn departing_cells_and_every_nth_arrival_update_the_state_of_a_policy_formula() {
    let mut config = formula("gone < 3 and twice < 2", &[]);
    config.state = state(&[("gone", 0.0), ("twice", 0.0)]);
    config.on_departure = table(&[("gone", "gone + 1")]);
    config.on_cells = table(&[("twice", "if X >= 4 then twice + 1 else twice")]);
    config.every = Some(2);
    assert_eq!(config.check(Some(1000), &[]), []);
    let mut bench = Bench::new(&config, 1000, 1);
    bench.offer_frame(0, 3);
    bench.take(2);
    bench.offer_frame(0, 3);
    assert_eq!(bench.port.occupancy(), 4, "the state after two departures and six arrivals is wrong");
    bench.offer_frame(0, 1);
    assert_eq!(bench.port.occupancy(), 5);
    bench.take(1);
    bench.offer_frame(0, 1);
    assert_eq!(bench.port.occupancy(), 4, "three have gone");
}

/// Creates a policy at a port with a clock of microseconds.
fn in_microseconds(config: &Config) -> Formula {
    assert_eq!(config.check(Some(1000), &[]), []);
    let mut policy = config.build(1000, &["vc0", "vc1"]);
    policy.at_port(&PortInfo { clock: Clock::exact(1_000_000), ..PortInfo::unknown() });
    policy
}

fn at_head(policy: &mut Formula, vc: u32, now: u64, waited: u64, behind: u32) -> AtHead {
    let head = Head { now: Time(now), vc: Label::new(vc), waited: Span(waited), behind, capable: false };
    policy.head_policy().expect("the policy decides at the head").on_head(&head, &mut stream())
}

#[test]
fn a_policy_formula_can_drop_frames_at_the_head_by_their_waiting_time() {
    let mut config = formula("true", &[]);
    config.vc_state = state(&[("dropped", 0.0), ("sent", 0.0)]);
    config.drop_head = Some("sojourn > 5 ms and X > 10 and dropped < 2 and now >= 1 s and sent > 0".into());
    config.on_drop = table(&[("dropped", "dropped + 1")]);
    config.on_send = table(&[("sent", "sent + 1")]);
    let policy = &mut in_microseconds(&config);
    for (vc, now, waited, behind, drops) in [
        (0, 1_000_000, 5001, 11, false),
        (0, 1_000_000, 5001, 11, true),
        (0, 1_000_000, 5000, 11, false),
        (0, 1_000_000, 5001, 10, false),
        (0, 999_999, 5001, 11, false),
        (1, 1_000_000, 5001, 11, false),
        (0, 1_000_000, 5001, 11, true),
        // Two frames of this VC have been dropped.
        (0, 1_000_000, 5001, 11, false),
        (1, 1_000_000, 5001, 11, true),
    ] {
        let expected = if drops { AtHead::Drop } else { AtHead::Send };
        assert_eq!(
            at_head(policy, vc, now, waited, behind),
            expected,
            "vc{vc} at {now} us, {waited} us, {behind} cells"
        );
    }
    assert_eq!(policy.admits_up_to(), None);
    assert!(!policy.reads_own_view() && policy.follower().is_none());
}

#[test]
fn periodic_updates_of_a_policy_formula_are_made_in_order_before_the_next_frame_or_cell() {
    let mut config = formula("area < 1e9 s", &[]);
    config.state = state(&[("level", 1.0), ("area", 0.0)]);
    config.period = Some(Duration::from_milliseconds(1));
    config.on_period = table(&[("level", "level / 2 + X / K"), ("area", "area + level * now")]);
    let [late, prompt] = [1000, 1].map(|each| {
        let mut policy = in_microseconds(&config);
        for ms in (0..1000).step_by(each) {
            policy.head_policy().expect("there are periodic updates").on_enter(7, Time(1000 * ms));
        }
        policy.head_policy().expect("there are periodic updates").on_enter(3, Time(1_000_000));
        policy.running().registers_of(Label::new(0))[usize::from(names::FIRST_OWN)..][..2].to_vec()
    });
    assert_eq!(late, prompt);
    assert!(late[1] > 0.0);
}

#[test]
fn periodic_updates_of_a_formula_that_no_longer_change_any_value_are_skipped() {
    let mut config = formula("level < 2", &[]);
    config.state = state(&[("level", 1.0)]);
    config.period = Some(Duration::from_microseconds(1));
    config.on_period = table(&[("level", "level / 2")]);
    let policy = &mut in_microseconds(&config);
    policy.head_policy().expect("there are periodic updates").on_departure(Label::new(0), 0, Time(1 << 60));
    assert_eq!(policy.running().registers_of(Label::new(0))[usize::from(names::FIRST_OWN)], 0.0);
}

#[test]
fn time_dependent_periodic_updates_continue_after_an_update_that_changes_no_value() {
    let mut config = formula("late < 1", &[]);
    config.state = state(&[("late", 0.0)]);
    config.period = Some(Duration::from_milliseconds(1));
    config.on_period = table(&[("late", "min(1, max(0, now - 5 s))")]);
    let policy = &mut in_microseconds(&config);
    policy.head_policy().expect("there are periodic updates").on_departure(Label::new(0), 0, Time(10_000_000));
    assert_eq!(policy.running().registers_of(Label::new(0))[usize::from(names::FIRST_OWN)], 1.0);
}

#[test]
fn non_finite_results_of_a_policy_formula_are_counted() {
    let config = formula("Y / X < 2", &[]);
    let mut bench = Bench::new(&config, 1000, 1);
    bench.offer_frame(0, 2);
    bench.offer_frame(0, 2);
    // For the first frame, the formula gives 0 / 0, which is replaced by 0. For the second frame, it gives 2 / 2 = 1.
    assert_eq!(bench.port.occupancy(), 4);
    assert_eq!(bench.port.state().replaced_results, 1);
}

#[test]
fn the_engine_does_not_call_a_policy_formula_while_it_would_certainly_admit_every_frame() {
    let empty = |config: &Config, vcs: &[&str]| config.build(1000, vcs).admits_up_to().is_some();
    assert!(empty(&formula("X <= 0.9 * K", &[]), &[]));
    assert!(!empty(&formula("X > 3", &[]), &[]));
    assert!(!empty(&formula("not tagged", &[]), &[]));
    assert!(!empty(&formula("X <= 3 or random() < 0.5", &[]), &[]), "other frames do not skip their random numbers");
    assert!(!empty(&formula("Y / X < 2", &[]), &[]), "replaced results of formulas are counted");
    assert!(!empty(&formula("X <= C * 1 ms", &[]), &[]), "ports differ");
    assert!(!empty(&formula("now < 1 or X < 3", &[]), &[]));
    assert!(!empty(&sample(1000), &["vc0"]), "it has state");
    let mut config = formula("X <= share", &[("share", text("K / sum(W)"))]);
    config.constants.insert("W".into(), Constant::Value(PerVc::from([("default", 2.0)])));
    assert!(!empty(&config, &[]), "a formula with V cannot be read without VCs");
    assert_eq!(formula("true", &[]).build(1000, &[]).admits_up_to(), Some(u32::MAX));
    assert_eq!(formula("X < 3", &[]).build(1000, &[]).admits_up_to(), Some(0));
    assert!(!formula("X < 3", &[]).build(1000, &[]).reads_counts());
    assert!(formula("X < 3 or Y < 3", &[]).build(1000, &[]).reads_counts());
}

#[test]
fn a_policy_formula_can_use_the_rate_of_the_port_and_the_time() {
    let config = formula("X <= C * 10 ms and now < 2 s", &[]);
    let mut policy = config.build(1000, &["vc0"]);
    policy.at_port(&PortInfo { cells_per_second: 5000.0, clock: Clock::exact(1_000_000), ..PortInfo::unknown() });
    let mut admits = |x: u32, now: u64| {
        policy.admit_frame(&View { now: Time(now), ..view(1000, &[x]) }, Label::new(0), &mut Stream::new(1, "bench"))
    };
    assert!(admits(50, 1_999_999) && !admits(51, 0) && !admits(50, 2_000_000));
}

#[test]
fn a_policy_formula_can_set_the_action_on_buffer_overflow() {
    let overflow = |when_full| {
        let mut config = formula("true", &[]);
        config.when_full = when_full;
        config.build(10, &[]).overflow()
    };
    assert_eq!(overflow(WhenFull::LoseCell), Overflow::LoseCell);
    assert_eq!(overflow(WhenFull::LoseRestOfFrame), Overflow::LoseRestOfFrame { keep_last_cell: true });
    assert_eq!(overflow(WhenFull::PushOutFront), Overflow::PushOutFront);
    let mut config = formula("gone < 3", &[]);
    config.when_full = WhenFull::PushOutFront;
    config.state = state(&[("gone", 0.0)]);
    config.on_departure = table(&[("gone", "gone + 1")]);
    assert_eq!(config.check(Some(10), &[])[0].key, "when_full");
}

#[test]
fn a_policy_formula_that_uses_a_quantity_unknown_at_the_port_is_refused_with_its_key() {
    let with = |change: fn(&mut Config)| {
        let mut config = formula("X <= 3", &[]);
        config.state = state(&[("sum_of", 0.0)]);
        change(&mut config);
        config
    };
    let cases: Vec<(Config, &str, &str)> = vec![
        (
            formula("X <= R", &[("R", text("X * 0.9"))]),
            "constants.R",
            "has X: this value changes during the run, but this formula is evaluated only once",
        ),
        (formula("X <= 3", &[("K", number(3.0))]), "constants.K", "is already one of the port's variables"),
        (
            with(|c| c.on_frame = table(&[("avg", "X")])),
            "on_frame.avg",
            "must be the name of a variable in state or vc_state",
        ),
        (with(|c| c.on_cells = table(&[("sum_of", "X")])), "every", "is missing"),
        (with(|c| c.every = Some(3)), "every", "sets how often on_cells is evaluated, but there is no on_cells"),
        (
            with(|c| c.on_departure = table(&[("sum_of", "Y")])),
            "on_departure.sum_of",
            "has Y: only arriving frames have this value",
        ),
        (
            with(|c| c.on_departure = table(&[("sum_of", "sum_of + random()")])),
            "on_departure.sum_of",
            "has random(): random numbers are available only in formulas about frames",
        ),
        (with(|c| c.on_frame = table(&[("sum_of", "now + X / C + X")])), "on_frame.sum_of", "one is in s"),
        (
            formula("sojourn < 5 ms", &[]),
            "admit",
            "has sojourn: only the frame at the head of the queue has this value; use it in drop_head, on_head",
        ),
        (with(|c| c.drop_head = Some("sojourn > 5 cells".into())), "drop_head", "one is in s"),
        (
            with(|c| c.drop_head = Some("Y > 3".into())),
            "drop_head",
            "has Y: only arriving frames have this value, but this formula is evaluated at the head of the queue",
        ),
        (with(|c| c.on_period = table(&[("sum_of", "X")])), "period", "is missing"),
        (
            with(|c| {
                c.on_period = table(&[("sum_of", "sum_of + random()")]);
                c.period = Some(Duration::from_milliseconds(1));
            }),
            "on_period.sum_of",
            "random numbers are available only in formulas about frames",
        ),
        (
            with(|c| {
                c.on_period = table(&[("sum_of", "X")]);
                c.period = Some(Duration { picoseconds: 999_999 });
            }),
            "period",
            "is too short; it must be at least 1us",
        ),
        (
            with(|c| c.period = Some(Duration::from_milliseconds(1))),
            "period",
            "sets how often on_period is evaluated, but there is no on_period",
        ),
        (with(|c| c.on_drop = table(&[("sum_of", "X")])), "on_drop", "needs drop_head"),
        (
            with(|c| {
                c.drop_head = Some("X > 3".into());
                c.when_full = WhenFull::PushOutFront;
            }),
            "when_full",
            "takes cells out of the queue",
        ),
    ];
    for (config, key, problem) in cases {
        let faults = config.check(Some(1000), &[]);
        let found = faults.iter().any(|fault| fault.key == key && fault.problem.contains(problem));
        assert!(found, "{key} {problem}: {faults:#?}");
    }
    let unlimited = formula("X <= 0.9 * K", &[]).check(None, &[]);
    assert!(unlimited[0].problem.contains("must be a number of cells and not \"infinite\""), "{unlimited:?}");
    assert_eq!(formula("X <= 900", &[]).check(None, &[]), []);
}

#[test]
fn a_policy_formula_that_uses_the_port_rate_is_checked_when_the_rate_is_known() {
    let config =
        formula("X <= c", &[("a", text("C * 1 s - 1 cells")), ("b", text("K / a")), ("c", text("b * 0.5 cells"))]);
    assert_eq!(config.check(Some(10), &[]), []);
    assert_eq!(config.check(Some(10), &["vc0"]), []);
    let mut policy = config.build(10, &["vc0"]);
    policy.at_port(&PortInfo {
        name: "sw1->sw2",
        cells_per_second: 1.0,
        clock: Clock::exact(1),
        ..PortInfo::unknown()
    });
    assert_eq!(policy.replaced_results(), 1);
}

#[test]
fn a_policy_formula_can_read_whether_a_frame_is_tagged() {
    let config = formula("X < 3 or not tagged", &[]);
    let asks = |tagged| asked(&config, &View { tagged, ..view(10, &[5]) }, 0, &mut Stream::new(1, "bench"));
    assert!(asks(false) && !asks(true));
}

/// The policy of `docs/adding-a-policy.md`.
struct DynamicThreshold(f64);

impl BufferPolicy for DynamicThreshold {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        f64::from(buffer.per_vc[vc]) < self.0 * f64::from(buffer.capacity - buffer.occupancy)
    }
}

struct DynamicThresholdConfig(f64);

impl Configure for DynamicThresholdConfig {
    type Policy = DynamicThreshold;

    fn build(&self, _capacity: u32, _vcs: &[&str]) -> DynamicThreshold {
        DynamicThreshold(self.0)
    }
}

#[test]
fn dynamic_threshold_can_be_written_as_a_formula() {
    for alpha in [1.0, 0.5, 0.1, 2.7, 1.0 / 3.0] {
        let ours = formula("Y < alpha * (K - X)", &[("alpha", number(alpha))]);
        is_the_same(&ours, &DynamicThresholdConfig(alpha), 1000);
    }
}

#[test]
fn the_page_about_formulas_lists_every_variable_and_function_of_the_formula_language() {
    use celltrain_formula::language::{FUNCTIONS, OPERATORS};
    let rows = |head: &str, rows: Vec<[String; 2]>| {
        let rows = rows.into_iter().map(|[word, about]| format!("| `{word}` | {about} |\n"));
        format!("| {head} | meaning |\n|---|---|\n{}", rows.collect::<String>())
    };
    let unit = |name: &celltrain_formula::rules::Name| match name.kind {
        celltrain_formula::Kind::Number(Some(unit)) => unit.to_string(),
        kind => kind.to_string(),
    };
    let names =
        PORT_NAMES.iter().map(|(name, _)| [name.name.into(), format!("{}; {}", name.about, unit(name))]).collect();
    let functions = FUNCTIONS.iter().map(|word| [word.usage.into(), word.about.into()]).collect();
    let operators = OPERATORS.iter().map(|(word, about)| [(*word).to_string(), (*about).to_string()]).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models/formula.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut written = page.clone();
    for (table, text) in [
        ("names", rows("name", names)),
        ("functions", rows("function", functions)),
        ("operators", rows("operator", operators)),
    ] {
        let begin = format!("<!-- table: {table} -->\n");
        let start = written.find(&begin).expect("the page has the comment that begins the table") + begin.len();
        let end = start + written[start..].find("<!-- end -->").expect("the page has the comment that ends the table");
        written.replace_range(start..end, &text);
    }
    if std::env::var_os("CELLTRAIN_BLESS").is_some() {
        std::fs::write(path, &written).unwrap();
    }
    assert!(
        page == written,
        "the page is out of date: CELLTRAIN_BLESS=1 cargo test -p celltrain-core --lib the_page_about_formulas updates it"
    );
}
