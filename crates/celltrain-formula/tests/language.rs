//! Results of valid expressions, and messages for invalid expressions.

use celltrain_formula::arithmetic;
use celltrain_formula::{Compiler, Fault, Kind, Meaning, Unit, Vocabulary, Word, parse};

const NAMES: [(&str, Kind, f64); 5] = [
    ("X", Kind::Number(Some(Unit::CELLS)), 950.0),
    ("K", Kind::Number(Some(Unit::CELLS)), 1000.0),
    ("N", Kind::Number(Some(Unit::NONE)), 5.0),
    ("tagged", Kind::Truth, 1.0),
    ("now", Kind::Number(Some(Unit::SECONDS)), 2.5),
];

fn vocabulary() -> Vocabulary {
    let word = |(register, (name, kind, _)): (u8, &(&str, Kind, f64))| Word {
        name: (*name).to_string(),
        kind: *kind,
        meaning: Meaning::Register(register),
    };
    let mut words: Vec<Word> = (0..).zip(&NAMES).map(word).collect();
    let cells = Kind::Number(Some(Unit::CELLS));
    words.push(Word { name: "R".into(), kind: cells, meaning: Meaning::Constant(900.0) });
    words.push(Word { name: "W".into(), kind: Kind::Number(None), meaning: Meaning::ByVc { register: 5, sum: 12.0 } });
    words.push(Word { name: "Y".into(), kind: cells, meaning: Meaning::NotHere("departures have no such value") });
    Vocabulary { words, no_random: None }
}

/// Runs an expression. Returns its value, the number of replaced results, and the number of random numbers drawn.
fn run(text: &str) -> Result<(f64, u64, u32), Fault> {
    let vocabulary = vocabulary();
    let tree = parse(text)?;
    vocabulary.check(&tree)?;
    let mut compiler = Compiler::new(6);
    let program = compiler.compile(&tree, &vocabulary)?;
    let mut registers = compiler.registers();
    for (register, (_, _, value)) in NAMES.iter().enumerate() {
        registers[register] = *value;
    }
    registers[5] = 3.0;
    let (mut drawn, mut replaced) = (0, 0);
    let draw = &mut || {
        drawn += 1;
        f64::from(drawn) / 8.0
    };
    let value = program.run(&mut registers, draw, &mut replaced);
    assert_eq!(drawn > 0, drawn > 0 && program.draws());
    Ok((value, replaced, drawn))
}

fn value(text: &str) -> f64 {
    run(text).unwrap_or_else(|fault| panic!("{}", fault.shown(text))).0
}

fn fault(text: &str) -> String {
    run(text).map(|(value, ..)| panic!("{text} gives {value}")).unwrap_err().shown(text)
}

#[test]
fn operators_in_formulas_have_arithmetic_precedence_and_are_evaluated_from_left_to_right() {
    assert_eq!(value("1 + 2 * 3 - 4 / 8"), 6.5);
    assert_eq!(value("10 - 3 - 2"), 5.0);
    assert_eq!(value("100 / 10 / 5"), 2.0);
    assert_eq!(value("-2 * -3"), 6.0);
    assert_eq!(value("2 - -3"), 5.0);
    assert_eq!(value("(1 + 2) * 3"), 9.0);
    assert_eq!(value("not 1 < 2 or 2 < 3 and 3 < 4"), 1.0);
    assert_eq!(value("not (1 < 2 or 2 < 3)"), 0.0);
}

#[test]
fn variables_in_a_formula_have_the_values_of_the_quantities_that_they_name() {
    assert_eq!(value("X - R"), 50.0);
    assert_eq!(value("N * W / sum(W)"), 1.25);
    assert_eq!(value("X <= R or tagged"), 1.0);
    assert_eq!(value("X <= R or not tagged"), 0.0);
    assert_eq!(value("now + 500 ms"), 3.0);
}

#[test]
fn every_comparison_operator_is_correct_for_smaller_equal_and_larger_operands() {
    for (sign, expected) in
        [("<", [1, 0, 0]), ("<=", [1, 1, 0]), (">", [0, 0, 1]), (">=", [0, 1, 1]), ("==", [0, 1, 0]), ("!=", [1, 0, 1])]
    {
        for (left, holds) in [949, 950, 951].into_iter().zip(expected) {
            assert_eq!(value(&format!("{left} {sign} X")), f64::from(holds), "{left} {sign} X");
            assert_eq!(value(&format!("not ({left} {sign} X)")), f64::from(1 - holds), "not {left} {sign} X");
        }
    }
}

#[test]
fn formula_conditions_are_evaluated_with_short_circuiting() {
    assert_eq!(run("X > R or random() < 0.5").unwrap(), (1.0, 0, 0));
    assert_eq!(run("X < R and random() < 0.5").unwrap(), (0.0, 0, 0));
    assert_eq!(run("if tagged then 1 else random()").unwrap(), (1.0, 0, 0));
    assert_eq!(run("random() < 0.125 or random() < 0.3").unwrap(), (1.0, 0, 2));
    assert_eq!(run("let p = random(); p + p").unwrap(), (0.25, 0, 1));
}

#[test]
fn a_let_binding_in_a_formula_is_visible_only_in_the_body_of_the_let_expression() {
    assert_eq!(value("let a = 2; let b = a * 3; a + b"), 8.0);
    assert_eq!(value("(let a = X; a - R) / (let a = K; a - R)"), 0.5);
    assert_eq!(value("if tagged then (let a = 1; a) else (let b = 2; b)"), 1.0);
    assert!(fault("(let a = 2; a) + a").contains("does not know a;"));
    assert!(fault("let X = 2; X").contains("already exists"));
    assert!(fault("let min = 2; min").contains("a word of the language"));
}

#[test]
fn functions_in_formulas_return_the_documented_values() {
    assert_eq!(value("min(3, 1, 2) + max(3, 1, 2)"), 4.0);
    assert_eq!(value("max(X, K, R) - min(X, K, R)"), 100.0);
    assert_eq!(value("abs(R - X)"), 50.0);
    assert_eq!(value("floor(X / 100) + floor(-1.5) + floor(7)"), 14.0);
    assert_eq!(value("sqrt(X * X)"), 950.0);
    assert_eq!(value("exp(log(X / K))"), arithmetic::exponential(arithmetic::logarithm(0.95, &mut 0), &mut 0));
}

#[test]
fn a_formula_whose_result_is_nan_or_infinite_returns_the_replacement_and_counts_it() {
    assert_eq!(run("X / (X - X) > 1e300").unwrap(), (1.0, 1, 0));
    assert_eq!(run("(X - X) / (X - X)").unwrap(), (0.0, 1, 0));
    assert_eq!(run("sqrt((0 - X) * X)").unwrap(), (0.0, 1, 0));
    // A constant expression is not folded if its result is replaced, so that each evaluation counts the replacement.
    assert_eq!(run("1 / 0 > 2").unwrap(), (1.0, 1, 0));
}

#[test]
fn an_error_in_a_formula_is_reported_with_its_position_and_a_suggested_correction() {
    let faults = [
        ("X <= Q", "does not know Q; choose from X, K, N, tagged, now, R, W, Y\n    X <= Q\n         ^"),
        ("X <= k", "does not know k; did you mean K?\n    X <= k\n         ^"),
        (
            "X <= N",
            "mixes units: <= compares values in the same unit, but one is in cells and the other is a number without unit",
        ),
        (
            "X + now < K",
            "mixes units: + takes values in the same unit, but one is in cells and the other is in s\n    X + now < K\n    ^^^^^^^",
        ),
        ("X <", "ends where a number, a name or ( is expected\n    X <\n       ^"),
        ("(X < K", "ends where ) is expected for the ( at 1"),
        ("X < K)", "closes a parenthesis that was never opened"),
        ("0 < X < K", "compares twice; write a < b and b < c"),
        ("X = K", "has =; write == to compare"),
        ("X < K && tagged", "has &&, which is not part of the language; write and"),
        ("!tagged", "has !, which is not part of the language; write not"),
        ("X^2", "has ^, which is not part of the language; write x * x"),
        ("X < 90%", "has %, which is not part of the language; write 0.9 for 90 %"),
        (
            "2X < K",
            "has X after a number; write * between the two, or use a unit (cells, cell, s, ms, us, bytes, byte)",
        ),
        ("X < 1e999", "has a number above the largest possible one"),
        ("X < 1.2.3", "continues where an operator or the end of the formula is expected"),
        ("X < 0,5 * K", "has a comma inside a number; write 0.5, not 0,5\n    X < 0,5 * K\n        ^^^"),
        ("(X < 12,25 * K) and tagged", "write 12.25, not 12,25"),
        ("X < 1,000 cells", "write 1000, not 1,000"),
        ("X < 0,125 * K", "write 0.125, not 0,125"),
        ("X < 0, 5 * K", "continues where an operator or the end of the formula is expected"),
        ("X < K,5", "continues where an operator or the end of the formula is expected"),
        ("mim(X, K) < K", "does not know the function mim. Did you mean min? Choose from min, max,"),
        ("min(X) < K", "gives min 1 argument; write min(a, b, ...), 2 to 16 of them"),
        ("let s = 2; s < X", "names a value s, which is the unit of seconds, as in 3 s; choose another name"),
        ("random(1) < 1", "gives random 1 argument; write random()"),
        ("X + 512 bytes < K", "one is in cells and the other is in bytes"),
        ("exp(X) < 1", "is in cells; exp takes a number without unit, such as X / K"),
        ("sqrt(X) < 1", "is in cells, but sqrt needs the square of a unit"),
        ("sum(X) < 1", "is not a constant by VC"),
        ("tagged + 1 < X", "is a condition; + takes a number, such as if c then 1 else 0"),
        ("X and tagged", "is in cells; and takes a condition, such as X > 0"),
        ("if tagged then X else tagged", "both must be of the same kind"),
        ("if tagged then X else N", "the two branches of if give values in the same unit"),
        ("if X < K then 1", "ends where else is expected: if c then a else b"),
        ("X < Y", "has Y: departures have no such value"),
        ("", "ends where a number, a name or ( is expected"),
        ("X < \u{e9}", "is not part of the language"),
        ("1 + let a = 2; a", "has let inside an operation; put this part into parentheses"),
        ("X; K", "has a ; that belongs to no let; write let v = a; b"),
    ];
    for (text, expected) in faults {
        let found = fault(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn formulas_longer_or_deeper_than_the_limits_are_refused() {
    let sum = vec!["X"; 200].join(" + ");
    // The message suggests parentheses for a long chain, but not for an expression that already has too many
    // parentheses.
    let chain = fault(&format!("{sum} < K"));
    assert!(
        chain.contains("is 101 operations deep, but at most 100 are possible. Put parentheses around the parts"),
        "{chain}"
    );
    assert_eq!(value(&format!("({}) + ({})", vec!["1"; 90].join(" + "), vec!["1"; 90].join(" + "))), 180.0);
    let nested = fault(&format!("{}1{}", "(".repeat(1000), ")".repeat(1000)));
    assert!(nested.contains("is nested more than 100 deep; name parts of it"), "{nested}");
    assert!(fault(&"-".repeat(1000)).contains("is nested more than 100 deep"));
    assert!(fault(&"not ".repeat(900)).contains("is nested more than 100 deep"));
    assert!(fault(&"x".repeat(1 << 20)).contains("is 1048576 bytes long, but a formula can have at most 4000"));
    let many: Vec<String> = (0..200).map(|i| format!("X * {i}.5")).collect();
    let many = many.chunks(50).map(|part| format!("({})", part.join(" + "))).collect::<Vec<_>>().join(" + ");
    let many = fault(&many);
    let places = "names use 6 of 128 places, so only 122 are left for the different numbers of all formulas";
    assert!(many.contains(&format!("has too many numbers: {places}")), "{many}");
    assert_eq!(value(&format!("min({}) + X", ["X"; 16].join(", "))), 1900.0);
    assert!(
        fault(&format!("min({})", ["X"; 17].join(", "))).contains("17 arguments; write min(a, b, ...), 2 to 16 of")
    );
}

#[test]
fn a_formula_whose_unit_has_too_high_an_exponent_is_refused() {
    let power = vec!["X"; 20].join(" * ");
    assert!(fault(&power).contains("has a unit with too high an exponent"));
}
