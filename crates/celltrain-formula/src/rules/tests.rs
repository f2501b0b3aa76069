use super::*;
use crate::{Meaning, SettingFault};

/// A host that provides names to the formulas of a queue.
struct Queue;

/// Register of X; the user's own names follow.
const X: u8 = 0;

impl Host for Queue {
    fn words(&self, on: On) -> Vec<Word> {
        let x =
            if on == On::Start { Meaning::NotHere("this value changes during the run") } else { Meaning::Register(X) };
        let names = [
            ("X", Unit::CELLS, x),
            ("K", Unit::CELLS, Meaning::Constant(1000.0)),
            ("C", Unit::RATE, Meaning::Constant(5.0)),
        ];
        let word = |(name, unit, meaning): (&str, _, _)| Word {
            name: name.into(),
            kind: Name::number("", unit, "").kind,
            meaning,
        };
        names.map(word).into()
    }

    fn is_open(&self, name: &str) -> bool {
        name == "C"
    }

    fn no_random(&self, on: On) -> Option<&'static str> {
        (on == On::Event("on_cell")).then_some("random numbers are available only in formulas about frames")
    }

    fn no_vc(&self, on: On) -> Option<[&'static str; 2]> {
        (on == On::Event("on_cell")).then_some(["this value differs between VCs", "is state of a VC, not of the port"])
    }

    fn taken(&self) -> [&'static str; 2] {
        ["the queue's", "its page"]
    }

    fn settable(&self) -> &'static [&'static str] {
        &["X"]
    }

    fn targets(&self) -> &'static str {
        "X or the name of a variable in state"
    }
}

/// The formulas of a queue in a scenario.
#[derive(Default)]
struct Table {
    admit: &'static str,
    constants: BTreeMap<String, Constant>,
    state: BTreeMap<String, Start>,
    vc_state: BTreeMap<String, Start>,
    on_frame: BTreeMap<String, String>,
    on_cell: BTreeMap<String, String>,
}

const VCS: &[&str] = &["vc0", "vc1"];

impl Table {
    fn new(admit: &'static str, constants: &[(&str, Constant)]) -> Self {
        let constants = constants.iter().map(|(name, constant)| ((*name).to_string(), constant.clone())).collect();
        Self { admit, constants, ..Self::default() }
    }

    fn with_texts<T>(&self, vcs: Option<&[&str]>, then: impl FnOnce(Texts<'_>) -> T) -> T {
        let Self { admit, constants, state, vc_state, on_frame, on_cell } = self;
        let questions = [("admit", *admit, Kind::Truth)];
        let events = [("on_frame", on_frame), ("on_cell", on_cell)];
        then(Texts { constants, state, vc_state, questions: &questions, events: &events, vcs, first: X + 1 })
    }

    fn compile(&self, vcs: Option<&[&str]>) -> Result<Rules, Vec<SettingFault>> {
        self.with_texts(vcs, |texts| texts.compile(&Queue))
    }

    /// Returns the faults found before the VCs are known, and the faults found for two given VCs.
    fn faults(&self) -> [Vec<SettingFault>; 2] {
        [None, Some(VCS)].map(|vcs| self.compile(vcs).err().unwrap_or_default())
    }
}

fn number(value: f64) -> Constant {
    Constant::Value(PerVc::Same(value))
}

fn text(formula: &str) -> Constant {
    Constant::Formula(formula.into())
}

fn start(entries: &[(&str, f64)]) -> BTreeMap<String, Start> {
    entries.iter().map(|(name, value)| ((*name).to_string(), Start::Number(*value))).collect()
}

fn updates(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, text)| ((*name).to_string(), (*text).to_string())).collect()
}

#[test]
fn every_kind_of_mistake_in_a_formula_is_reported_with_its_key_and_position() {
    let with = |change: fn(&mut Table)| {
        let mut table = Table::new("X <= 3", &[]);
        change(&mut table);
        table
    };
    let many = |entries| (0..entries).map(|name| (format!("n{name}"), Start::Number(0.0))).collect();
    let cases: Vec<(Table, &str, &str)> = vec![
        (Table::new("X <= Q", &[("R", number(1.0))]), "admit", "does not know Q; choose from R, X, K, C"),
        (Table::new("X <= rate", &[("Rate", number(1.0))]), "admit", "does not know rate; did you mean Rate?"),
        (Table::new("X + 1", &[]), "admit", "is in cells; admit must be a condition, such as X <= 900"),
        (Table::new("X <= R", &[("R", text("X * 0.9"))]), "constants.R", "has X: this value changes during the run"),
        (Table::new("X <= R", &[("R", text("0.9 * (K"))]), "constants.R", "ends where ) is expected"),
        (
            Table::new("X <= R", &[("R", text("S")), ("S", text("R"))]),
            "constants.S",
            "is circular: R, which needs S, which needs R",
        ),
        (Table::new("X <= R", &[("R", text("K / (K - K)"))]), "constants.R", "gives no number: it divides by zero"),
        (Table::new("X <= R", &[("R", text("random()"))]), "constants.R", "this formula is evaluated only once"),
        (Table::new("X <= R", &[("R", number(f64::NAN))]), "constants.R", "is not a finite number"),
        (Table::new("X <= R", &[("R", text("-inf"))]), "constants.R", "is not a finite number"),
        (
            Table::new("X <= R", &[("R", Constant::Value(PerVc::from([("vc0", f64::INFINITY)])))]),
            "constants.R.vc0",
            "is not a finite number",
        ),
        (with(|t| t.state = start(&[("sum_of", f64::INFINITY)])), "state.sum_of", "is not a finite number"),
        (Table::new("X <= 3", &[("K", number(3.0))]), "constants.K", "is already one of the queue's variables"),
        (with(|t| t.state = start(&[("X", 3.0)])), "state.X", "is already one of the queue's variables"),
        (Table::new("X <= 3", &[("if", number(3.0))]), "constants.if", "is a word of the language"),
        (Table::new("X <= 3", &[("a b", number(3.0))]), "constants.a b", "is not a name"),
        (
            with(|t| t.on_frame = updates(&[("avg", "X")])),
            "on_frame.avg",
            "it must be X or the name of a variable in \
            state",
        ),
        (
            with(|t| t.on_frame = updates(&[("x", "X")])),
            "on_frame.x",
            "did you mean X? It must be X or the name of a variable in state",
        ),
        (
            with(|t| (t.vc_state, t.on_cell) = (start(&[("mine", 0.0)]), updates(&[("mine", "1")]))),
            "on_cell.mine",
            "is state of a VC, not of the port",
        ),
        (
            with(|t| {
                (t.state, t.vc_state) = (start(&[("all", 0.0)]), start(&[("mine", 0.0)]));
                t.on_cell = updates(&[("all", "mine")]);
            }),
            "on_cell.all",
            "has mine: this value differs between VCs",
        ),
        (
            with(|t| (t.state, t.on_cell) = (start(&[("sum_of", 0.0)]), updates(&[("sum_of", "sum_of + random()")]))),
            "on_cell.sum_of",
            "has random(): random numbers are available only in formulas about frames",
        ),
        (
            with(|t| {
                t.constants.insert("W".into(), Constant::Value(PerVc::from([("default", 1.0)])));
                t.state.insert("sum_of".into(), Start::Formula("W".into()));
            }),
            "state.sum_of",
            "this state belongs to the port; use vc_state",
        ),
        (
            with(|t| (t.state, t.vc_state) = (start(&[("sum_of", 0.0)]), start(&[("sum_of", 0.0)]))),
            "vc_state.sum_of",
            "is the name of another constant or state",
        ),
        (Table { state: many(33), ..with(|_| ()) }, "state", "and vc_state have 33 names; at most 32 are possible"),
    ];
    for (table, key, problem) in cases {
        let [faults, _] = table.faults();
        let found = faults.iter().any(|fault| fault.key == key && fault.problem.contains(problem));
        assert!(found, "{key} {problem}: {faults:#?}");
    }
    let [faults, _] = Table::new("X <= R or Q", &[("R", number(1.0))]).faults();
    assert_eq!((faults.len(), &faults[0].excerpt[..]), (1, &["X <= R or Q", "          ^"].map(String::from)[..]));
}

#[test]
fn a_number_without_a_unit_in_a_formula_takes_the_unit_of_the_other_operand() {
    let mut table = Table::new("X <= sum_of", &[("w", number(0.25)), ("R", text("2 * w"))]);
    table.state = start(&[("sum_of", 0.0)]);
    table.on_frame = updates(&[("sum_of", "sum_of + w")]);
    assert_eq!(table.faults(), [vec![], vec![]]);
    table.on_frame = updates(&[("sum_of", "sum_of + X / C")]);
    assert!(table.faults()[0][0].problem.contains("the other is in s"), "the constant is compared with X");
}

/// Regression: `mean / K` was in 1/cells while the unit of `mean` was unknown, and `high` got this unit.
#[test]
fn a_number_without_a_unit_takes_its_unit_from_an_operand_with_a_known_unit() {
    let mut table =
        Table::new("X <= (high - (high - low) * mean / K) * K", &[("high", number(2.0)), ("low", number(0.5))]);
    table.state = start(&[("mean", 0.0)]);
    table.on_frame = updates(&[("mean", "mean + 0.01 * (X - mean)")]);
    assert_eq!(table.faults(), [vec![], vec![]]);
    table.on_frame = updates(&[("mean", "0.9 * mean + 0.1 * X")]);
    assert_eq!(table.faults(), [vec![], vec![]]);
}

#[test]
fn formulas_with_unknown_units_are_checked_once_the_units_are_known() {
    let rate = [("a", text("C * 1 s - 5 cells")), ("b", text("K / a")), ("c", text("b * 0.5 cells"))];
    let table = Table::new("X <= c", &rate);
    assert_eq!(table.faults(), [vec![], vec![]]);
    assert_eq!(
        table.compile(Some(VCS)).unwrap().replaced,
        1,
        "the rate is unknown, so the invalid result is counted at run time"
    );
    let weights = Constant::Value(PerVc::from([("vc0", 1.0), ("default", 0.0)]));
    let table = Table::new("X <= share", &[("W", weights), ("share", text("K / W / sum(W)"))]);
    let [unknown, known] = table.faults();
    assert_eq!(unknown, []);
    assert!(known[0].problem.contains("gives no number"), "{known:?}");
}

/// Regression: a sum beyond the largest number became infinite, although the arithmetic has no infinities.
#[test]
fn a_sum_of_formula_constants_that_exceeds_the_largest_number_is_refused() {
    let most = || Constant::Value(PerVc::from([("default", 1e308)]));
    let [unknown, known] = Table::new("X <= sum(W)", &[("W", most())]).faults();
    assert_eq!((unknown.len(), known.len()), (0, 1), "{known:?}");
    assert_eq!(known[0].excerpt, ["X <= sum(W)", "     ^^^^^^"]);
    assert!(known[0].problem.contains("exceeds 1.8e308"), "{known:?}");
    assert_eq!(Table::new("X <= W", &[("W", most())]).faults()[1], [], "no formula uses the sum of this constant");
    // A value that depends on a rate is computed when the run starts. If it is replaced, this is counted then.
    let table = Table::new("X <= sum(w) * 1 s", &[("W", most()), ("w", text("W / 5 * C"))]);
    assert_eq!(table.compile(Some(VCS)).unwrap().replaced, 1);
}

#[test]
fn formula_bytecode_reads_the_values_and_the_state_of_a_vc_from_the_correct_registers() {
    let mut table =
        Table::new("X <= W + mine + all", &[("W", Constant::Value(PerVc::from([("vc0", 2.0), ("vc1", 3.0)])))]);
    table.vc_state.insert("mine".into(), Start::Formula("10 * W".into()));
    table.state = start(&[("all", 7.0)]);
    table.on_frame = updates(&[("all", "mine"), ("mine", "all")]);
    let Rules { answers, updates, mut registers, by_vc, per_vc, has_constants_by_vc, names, .. } =
        table.compile(Some(VCS)).unwrap();
    assert_eq!((by_vc.as_slice(), per_vc, has_constants_by_vc), (&[2.0, 20.0, 3.0, 30.0][..], 2, true));
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["W", "X", "all", "mine"]);
    let own = usize::from(X) + 1;
    registers[own..own + per_vc].copy_from_slice(&by_vc[per_vc..]);
    let mut draw = || 0.5;
    for (x, admitted) in [(40.0, 1.0), (41.0, 0.0)] {
        registers[usize::from(X)] = x;
        assert_eq!(answers[0].run(&mut registers, &mut draw, &mut 0), admitted, "3 + 30 + 7 are 40");
    }
    // New values are computed from the old values.
    update(&updates[0], &mut registers, &mut draw, &mut 0);
    assert_eq!(registers[own..own + 3], [3.0, 7.0, 30.0]);
    update(&updates[1], &mut registers, &mut draw, &mut 0);
    assert_eq!(registers[own..own + 3], [3.0, 7.0, 30.0], "the table has no formula for the other event");
}

#[test]
#[expect(clippy::redundant_closure_for_method_calls, reason = "the type of the method has exactly one lifetime")]
fn a_warning_lists_the_defined_names_that_no_formula_uses() {
    let mut table = Table::new("X <= R", &[("R", text("0.5 * K")), ("S", number(1.0)), ("T", text("T"))]);
    table.state = start(&[("seen", 0.0)]);
    table.on_frame = updates(&[("seen", "seen + 1")]);
    assert_eq!(table.with_texts(None, |texts| texts.unused()), ["constants.S", "constants.T", "state.seen"]);
    assert_eq!(["K", "R", "S"].map(|name| table.with_texts(None, |texts| texts.use_name(name))), [true, true, false]);
}

#[test]
fn a_formula_of_an_initial_value_is_evaluated_once_when_the_run_starts() {
    let by_vc = [("W", Constant::Value(PerVc::from([("vc0", 1.0), ("vc1", 3.0)])))];
    let at_start =
        |text: &str, vcs| Table::new("true", &by_vc).with_texts(vcs, |texts| texts.at_start(&Queue, ("weight", text)));
    assert_eq!(at_start("W / sum(W)", Some(VCS)), Ok(vec![0.25, 0.75]));
    assert_eq!(at_start("2 + 1", Some(VCS)), Ok(vec![3.0, 3.0]));
    assert_eq!(at_start("W", None), Ok(vec![]));
    for (text, problem) in [("W > 1", "is a condition, but must be a number"), ("w", "did you mean W?")] {
        let faults = at_start(text, None).unwrap_err();
        assert!(faults[0].key == "weight" && faults[0].problem.contains(problem), "{faults:?}");
    }
    let table = Table::new("X <= R or W < 2", &by_vc);
    assert!(table.with_texts(None, |texts| texts.question(&Queue, "admit")).is_err(), "R is unknown");
    let (tree, vocabulary) =
        Table::new("X < 2", &[]).with_texts(None, |texts| texts.question(&Queue, "admit")).unwrap();
    assert_eq!((tree.names().into_iter().collect::<Vec<_>>(), vocabulary.words.len()), (vec!["X"], 3));
}

#[test]
fn formula_constants_given_as_tables_have_one_value_per_vc() {
    let table = Table::new(
        "true",
        &[("a", number(1.0)), ("b", Constant::Value(PerVc::from([("default", 1.0)]))), ("c", text("b"))],
    );
    assert_eq!(constants_by_vc(&table.constants), [("b", &PerVc::from([("default", 1.0)]))]);
    assert_eq!([Start::Number(2.0), Start::Formula("a".into())].map(Constant::from), [number(2.0), text("a")]);
}
