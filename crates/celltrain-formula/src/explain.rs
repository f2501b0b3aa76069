//! Evaluates an expression by walking its tree, and explains why a condition does not hold.

use crate::arithmetic::Replaced;
use crate::code::Registers;
use crate::language::Function;
use crate::tree::{Binary, Expression, Node};
use crate::units::{Kind, Unit};
use crate::vocabulary::{Meaning, Vocabulary};

/// A part of a condition that decides the result, with the values compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// The part, as written: `Y * N < 1.2 * X`.
    pub text: String,
    /// The condition with its values, such as `0 < 0`; `false` if it compares no numbers.
    pub values: String,
    /// True if the part is false only because its comparison is strict and both sides are equal. With `<=` or `>=`, it
    /// would hold.
    pub is_strict_tie: bool,
}

/// Walks the tree of a checked expression with the values in registers, as its program would.
pub struct Evaluator<'a> {
    vocabulary: &'a Vocabulary,
    registers: &'a Registers,
    draw: &'a mut dyn FnMut() -> f64,
    /// Names defined in the expression, innermost last.
    named: Vec<(&'a str, f64)>,
    /// Number of replaced results.
    pub replaced: Replaced,
}

impl<'a> Evaluator<'a> {
    /// Creates an evaluator. `vocabulary` must be the vocabulary with which the expression was checked.
    pub fn new(vocabulary: &'a Vocabulary, registers: &'a Registers, draw: &'a mut dyn FnMut() -> f64) -> Self {
        Self { vocabulary, registers, draw, named: Vec::new(), replaced: 0 }
    }

    /// Evaluates an expression to a number, or to 1 for true and 0 for false.
    pub fn value(&mut self, of: &'a Expression) -> f64 {
        match &of.node {
            Node::Number(value, _) => *value,
            Node::Truth(holds) => truth(*holds),
            Node::Name(name) => self.name(name),
            Node::Negative(inner) => -self.value(inner),
            Node::Not(inner) => truth(self.value(inner) == 0.0),
            Node::Binary(operator, parts) => self.binary(*operator, &parts[0], &parts[1]),
            Node::If(parts) => {
                let branch = if self.value(&parts[0]) == 0.0 { &parts[2] } else { &parts[1] };
                self.value(branch)
            }
            Node::Let(name, parts) => {
                let value = self.value(&parts[0]);
                self.named.push((name, value));
                let body = self.value(&parts[1]);
                self.named.pop();
                body
            }
            Node::Call(function, parts) => self.call(*function, parts),
        }
    }

    /// Lists the clauses that make a condition false. The list is empty if the condition holds. `text` is the source
    /// text of the expression.
    pub fn why_not(&mut self, of: &'a Expression, text: &str) -> Vec<Clause> {
        let mut clauses = Vec::new();
        self.decide(of, false, text, &mut clauses);
        clauses
    }

    /// Collects the clauses that make a condition equal to `expected`. Returns whether the condition has that value.
    fn decide(&mut self, of: &'a Expression, expected: bool, text: &str, clauses: &mut Vec<Clause>) -> bool {
        match &of.node {
            Node::Not(inner) => self.decide(inner, !expected, text, clauses),
            Node::Binary(operator @ (Binary::And | Binary::Or), parts) => {
                let from = clauses.len();
                // One part is enough to make `and` false or `or` true. Otherwise all parts decide together.
                let one_is_enough = (*operator == Binary::And) != expected;
                for part in parts.iter() {
                    let is_so = self.decide(part, expected, text, clauses);
                    if is_so && one_is_enough {
                        return true;
                    }
                    if !is_so && !one_is_enough {
                        clauses.truncate(from);
                        return false;
                    }
                }
                !one_is_enough
            }
            Node::If(parts) => {
                let branch = if self.value(&parts[0]) == 0.0 { &parts[2] } else { &parts[1] };
                self.decide(branch, expected, text, clauses)
            }
            Node::Let(name, parts) => {
                let value = self.value(&parts[0]);
                self.named.push((name, value));
                let is_so = self.decide(&parts[1], expected, text, clauses);
                self.named.pop();
                is_so
            }
            Node::Binary(operator, parts) => {
                let [a, b] = [&parts[0], &parts[1]].map(|part| self.value(part));
                let is_so = compare(*operator, a, b) == expected;
                if is_so {
                    let seconds = Ok(Kind::Number(Some(Unit::SECONDS)));
                    let unit = if parts.iter().any(|part| self.vocabulary.check(part) == seconds) { " s" } else { "" };
                    clauses.push(Clause {
                        values: format!("{}{unit} {} {}{unit}", shown(a), operator.sign(), shown(b)),
                        is_strict_tie: !expected && a == b && matches!(operator, Binary::Less | Binary::Greater),
                        text: written(of, text),
                    });
                }
                is_so
            }
            _ => {
                let holds = self.value(of) != 0.0;
                if holds == expected {
                    clauses.push(Clause { text: written(of, text), values: holds.to_string(), is_strict_tie: false });
                }
                holds == expected
            }
        }
    }

    fn name(&self, name: &str) -> f64 {
        if let Some((_, value)) = self.named.iter().rev().find(|(named, _)| *named == name) {
            return *value;
        }
        match self.vocabulary.find(name).map(|word| word.meaning) {
            Some(Meaning::Constant(value)) => value,
            Some(Meaning::Register(register) | Meaning::ByVc { register, .. }) => self.registers[usize::from(register)],
            Some(Meaning::NotHere(_)) | None => unreachable!("a checked formula uses only known names"),
        }
    }

    fn binary(&mut self, operator: Binary, left: &'a Expression, right: &'a Expression) -> f64 {
        let a = self.value(left);
        match operator {
            Binary::And if a == 0.0 => return 0.0,
            Binary::Or if a != 0.0 => return 1.0,
            _ => {}
        }
        let b = self.value(right);
        match operator {
            Binary::Arithmetic(operation) => operation.of(a, b, &mut self.replaced),
            Binary::And | Binary::Or => b,
            _ => truth(compare(operator, a, b)),
        }
    }

    fn call(&mut self, function: Function, parts: &'a [Expression]) -> f64 {
        match function {
            Function::One(operation) => {
                let a = self.value(&parts[0]);
                operation.of(a, &mut self.replaced)
            }
            Function::Several(operation) => {
                let values: Vec<f64> = parts.iter().map(|part| self.value(part)).collect();
                let replaced = &mut self.replaced;
                values.into_iter().reduce(|a, b| operation.of(a, b, replaced)).unwrap_or_default()
            }
            Function::Random => (self.draw)(),
            Function::Sum => {
                let Node::Name(name) = &parts[0].node else { unreachable!("a checked formula sums only a name") };
                let word = self.vocabulary.find(name);
                let Some(Meaning::ByVc { sum, .. }) = word.map(|word| word.meaning) else {
                    unreachable!("a checked formula sums only values by VC")
                };
                sum
            }
        }
    }
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn compare(operator: Binary, a: f64, b: f64) -> bool {
    match operator {
        Binary::Less => a < b,
        Binary::AtMost => a <= b,
        Binary::Greater => a > b,
        Binary::AtLeast => a >= b,
        Binary::Equal => a == b,
        _ => a != b,
    }
}

/// Returns the source text of an expression, on one line.
fn written(of: &Expression, text: &str) -> String {
    let words: Vec<&str> = text.get(of.place()).unwrap_or_default().split_whitespace().collect();
    words.join(" ")
}

/// Formats a value: four decimals, or four significant digits if it is very large or very small.
fn shown(value: f64) -> String {
    // Do not show the sign of a zero.
    let value = if value == 0.0 { 0.0 } else { value };
    if value.abs() >= 1e15 || (value != 0.0 && value.abs() < 1e-4) {
        return format!("{value:.3e}");
    }
    let rounded = format!("{value:.4}");
    rounded.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{REGISTERS, Vocabulary, Word, parse};

    /// Returns why a condition does not hold with these values of X, Y and N, and with K = 1000.
    fn why_not(text: &str, [x, y, n]: [f64; 3]) -> Vec<String> {
        let kind = crate::Kind::Number(None);
        let word = |name: &str, meaning| Word { name: name.into(), kind, meaning };
        let mut words: Vec<Word> =
            (0..).zip(["X", "Y", "N"]).map(|(register, name)| word(name, Meaning::Register(register))).collect();
        words.push(word("K", Meaning::Constant(1000.0)));
        let vocabulary = Vocabulary { words, no_random: None };
        let mut registers = [0.0; REGISTERS];
        registers[..3].copy_from_slice(&[x, y, n]);
        let tree = parse(text).unwrap();
        let clauses = Evaluator::new(&vocabulary, &registers, &mut || 0.5).why_not(&tree, text);
        let tie = |clause: &Clause| if clause.is_strict_tie { ", a tie" } else { "" };
        clauses.iter().map(|clause| format!("{} is {}{}", clause.text, clause.values, tie(clause))).collect()
    }

    #[test]
    fn the_explanation_of_a_false_condition_lists_the_false_subconditions_with_their_values() {
        let empty = [0.0; 3];
        for (text, expected) in [
            ("X < 0.8 * K and Y * N < 1.2 * X", &["Y * N < 1.2 * X is 0 < 0, a tie"][..]),
            ("X > 0.9 * K and Y < 1", &["X > 0.9 * K is 0 > 900"]),
            ("X > 0 or Y > 3", &["X > 0 is 0 > 0, a tie", "Y > 3 is 0 > 3"]),
            ("not (X <= 0 and Y <= 0)", &["X <= 0 is 0 <= 0", "Y <= 0 is 0 <= 0"]),
            ("not X <= 0", &["X <= 0 is 0 <= 0"]),
            ("not (X > 0 or Y == 0)", &["Y == 0 is 0 == 0"]),
            ("if N < 1 then Y > X else true", &["Y > X is 0 > 0, a tie"]),
            ("let share = X / max(N, 1); Y <\n  share", &["Y < share is 0 < 0, a tie"]),
            ("false", &["false is false"]),
            ("X < 0.00001 and random() < 0.1", &["random() < 0.1 is 0.5 < 0.1"]),
            ("X <= 0", &[]),
        ] {
            assert_eq!(why_not(text, empty), expected, "{text}");
        }
        assert_eq!(why_not("Y * N < X", [3.0, 1.5, 2.0]), ["Y * N < X is 3 < 3, a tie"]);
        assert_eq!(why_not("X / 3 < 0", [1.0, 0.0, 0.0]), ["X / 3 < 0 is 0.3333 < 0"]);
    }
}
