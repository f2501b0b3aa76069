//! Finds the limit in a condition such as `q_i + 1 <= alpha * (B - Q)`: the expression with which a quantity is compared.

use crate::arithmetic::OfTwo;
use crate::parse;
use crate::tree::{Binary, Expression, Node};

/// The largest value that a condition allows for a quantity that grows by one, or by `arriving`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Formula of the number with which the condition compares the quantity.
    pub text: String,
    /// Number added to the quantity in the condition, besides the growth.
    offset: f64,
    /// True if the quantity must stay below the number.
    is_strict: bool,
}

impl Limit {
    /// Reads a condition. Returns `None` if it is not a single comparison of the quantity with an expression that does not
    /// depend on the quantity or on its growth.
    ///
    /// ```
    /// let limit = celltrain_formula::Limit::of("q_i + 1 <= 2 * (B - Q)", "q_i", "arriving").unwrap();
    /// assert_eq!((limit.text.as_str(), limit.largest(4.5)), ("2 * (B - Q)", 4.5));
    /// ```
    pub fn of(condition: &str, quantity: &str, arriving: &str) -> Option<Self> {
        let tree = parse(condition).ok()?;
        let mut comparison = &tree;
        while let Node::Let(_, parts) = &comparison.node {
            comparison = &parts[1];
        }
        let Node::Binary(operator, parts) = &comparison.node else { return None };
        let ([left, right], is_strict) = match operator {
            Binary::AtMost => ([&parts[0], &parts[1]], false),
            Binary::Less => ([&parts[0], &parts[1]], true),
            Binary::AtLeast => ([&parts[1], &parts[0]], false),
            Binary::Greater => ([&parts[1], &parts[0]], true),
            _ => return None,
        };
        let offset = offset(left, quantity, arriving)?;
        let [whole, own] = [comparison, right].map(Expression::place);
        let text = [&condition[..whole.start], &condition[own], &condition[whole.end..]].concat();
        let depends = |name: &str| name == quantity || name == arriving;
        let is_fixed = !parse(&text).ok()?.names().into_iter().any(depends);
        is_fixed.then_some(Self { text, offset, is_strict })
    }

    /// Returns the largest quantity after growth for which the condition holds, if the formula of the limit has this value.
    pub fn largest(&self, value: f64) -> f64 {
        let most = value - self.offset;
        if self.is_strict { most.ceil() - 1.0 } else { most }
    }
}

/// Returns the number that is added to the grown quantity in `quantity`, `quantity + 3` or `quantity + arriving`.
fn offset(of: &Expression, quantity: &str, arriving: &str) -> Option<f64> {
    let is = |of: &Expression, name: &str| matches!(&of.node, Node::Name(own) if own == name);
    if is(of, quantity) {
        return Some(-1.0);
    }
    let Node::Binary(Binary::Arithmetic(OfTwo::Sum), parts) = &of.node else { return None };
    let added = parts.iter().position(|part| is(part, quantity)).map(|place| &parts[1 - place])?;
    match &added.node {
        Node::Number(value, _) => Some(value - 1.0),
        _ => is(added, arriving).then_some(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_queue_length_is_derived_from_a_condition_that_compares_the_queue_with_an_expression() {
        for (condition, text, value, largest) in [
            ("q_i + 1 <= alpha * (B - Q)", "alpha * (B - Q)", 7.5, 7.5),
            ("q_i <= 9", "9", 9.0, 10.0),
            ("q_i < 9", "9", 9.0, 9.0),
            ("q_i < B / N", "B / N", 8.2, 9.0),
            ("1 cell + q_i < 9", "9", 9.0, 8.0),
            ("q_i + arriving <= B - Q", "B - Q", 7.0, 7.0),
            ("(B - Q) * 2 >= q_i + 3", "(B - Q) * 2", 9.0, 7.0),
            ("B - Q > (q_i)", "B - Q", 9.0, 9.0),
            ("(let share = B / N; (q_i + 1 <= share))", "(let share = B / N; share)", 4.0, 4.0),
        ] {
            let limit = Limit::of(condition, "q_i", "arriving").unwrap();
            assert_eq!((limit.text.as_str(), limit.largest(value)), (text, largest), "{condition}");
        }
    }

    #[test]
    fn no_maximum_queue_length_is_derived_from_a_condition_other_than_one_comparison_of_the_queue() {
        for condition in [
            "true", "q_i + 1 <= 9 or Q < 3", "not (q_i > 9)", "Q + 1 <= 9", "2 * q_i <= 9", "q_i == 9",
            "q_i + 1 <= B - q_i", "q_i + arriving <= B - arriving", "let own = q_i; q_i <= 9 + own", "q_i <= ",
        ] {
            assert_eq!(Limit::of(condition, "q_i", "arriving"), None, "{condition}");
        }
    }
}
