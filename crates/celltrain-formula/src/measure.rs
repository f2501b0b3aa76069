//! Measures of a run, such as `flows.sum(tcp1-3).goodput_mbps / goodput_mbps`: paths and numbers in the language's
//! arithmetic, with spaces around every operator.

use crate::fault::Fault;
use crate::parser;
use crate::tree::{Expression, Node};

/// A step in the evaluation of a measure.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Pushes a number.
    Number(f64),
    /// Pushes the number at a path, given by its steps: `flows`, `sum(tcp1-3)`, `goodput_mbps`.
    Path(Vec<String>),
    /// Replaces the last number with its negative.
    Negative,
    /// Replaces the last two numbers with the result of `+`, `-`, `*` or `/`.
    Operator(&'static str),
}

/// Parses a measure. Returns its tree in postfix order, so that a chain of any length can be evaluated without
/// recursion.
///
/// # Errors
/// Returns the first syntax error.
pub fn parse_measure(text: &str) -> Result<Vec<Step>, Fault> {
    let tree = parser::parse_measure(text)?;
    let mut steps = Vec::new();
    // The list is built in reverse: operators come before their operands, and the right operand comes first.
    let mut pending: Vec<&Expression> = vec![&tree];
    while let Some(next) = pending.pop() {
        steps.push(match &next.node {
            Node::Number(value, _) => Step::Number(*value),
            Node::Name(path) => Step::Path(split(path)),
            Node::Negative(inner) => {
                pending.push(inner);
                Step::Negative
            }
            Node::Binary(operator, parts) => {
                pending.extend(parts.iter());
                Step::Operator(operator.sign())
            }
            Node::Truth(_) | Node::Not(_) | Node::Call(..) | Node::If(_) | Node::Let(..) => {
                unreachable!("the tokens of measures contain no word of the formula language")
            }
        });
    }
    steps.reverse();
    Ok(steps)
}

/// Splits a path at dots, except inside parentheses.
fn split(path: &str) -> Vec<String> {
    let mut open = 0_usize;
    let at_dot = |character: char| {
        match character {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        character == '.' && open == 0
    };
    path.split(at_dot).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let step = |step: &Step| match step {
            Step::Number(value) => value.to_string(),
            Step::Path(steps) => steps.join("|"),
            Step::Negative => "neg".into(),
            Step::Operator(sign) => (*sign).to_string(),
        };
        parse_measure(text)
            .map_or_else(|fault| fault.shown(text), |steps| steps.iter().map(step).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_measure_expression_is_parsed_into_postfix_order() {
        for (text, expected) in [
            ("efficiency", "efficiency"),
            ("8e-6 * 91232", "0.000008 91232 *"),
            ("1 - a - b * 2", "1 a - b 2 * -"),
            ("( 1 - a ) / - b", "1 a - b neg /"),
            ("flows.sum(edge*->sw1).lost / tcp1-3", "flows|sum(edge*->sw1)|lost tcp1-3 /"),
            ("flows.mean(a.b*).x", "flows|mean(a.b*)|x"),
            // Without spaces, the text is a single path.
            ("1/0", "1/0"),
            ("a+b\u{a0}*\tif", "a+b if *"),
            ("", "lacks a path or a number before its end\n    \n    ^"),
            ("a * )", "lacks a path or a number before ')'\n    a * )\n        ^"),
            ("( a", "lacks a ')'\n    ( a\n       ^"),
            ("a 2", "cannot be read: an operator is expected before '2'\n    a 2\n      ^"),
            ("max ( a )", "cannot be read: an operator is expected before '('\n    max ( a )\n        ^"),
            ("a % a", "cannot be read: an operator is expected before '%'\n    a % a\n      ^"),
            ("2 * 1e400", "cannot be read: '1e400' is too large a number\n    2 * 1e400\n        ^^^^^"),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_or_deep_measure_expression_is_parsed_up_to_the_limits_and_refused_beyond_them() {
        assert_eq!(parse_measure(&format!("a{}", " + a".repeat(2499))).map(|steps| steps.len()), Ok(4999));
        let nested = |depth: usize| parse_measure(&format!("{}a{}", "( ".repeat(depth), " )".repeat(depth)));
        assert_eq!(nested(100).map(|steps| steps.len()), Ok(1));
        assert!(nested(101).is_err_and(|fault| fault.problem == "has more than 100 pairs of parentheses"));
        assert!(parse_measure(&"x".repeat(10_001)).is_err_and(|fault| fault.problem.contains("10,000 characters")));
        assert!(parse_measure(&"- ".repeat(5_000)).is_err());
    }
}
