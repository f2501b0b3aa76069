//! The syntax tree of an expression.

use std::ops::Range;

use crate::arithmetic::OfTwo;
use crate::language::Function;
use crate::units::Unit;

/// Maximum depth of a tree; it bounds the stack that a recursive walk needs.
pub const MOST_DEPTH: usize = 100;

/// An expression with its position in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub(crate) node: Node,
    /// Position in the text, in bytes.
    pub(crate) at: Range<usize>,
    pub(crate) depth: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// A number, with its unit if the text gives one.
    Number(f64, Option<Unit>),
    Truth(bool),
    Name(String),
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Binary(Binary, Box<[Expression; 2]>),
    Call(Function, Vec<Expression>),
    /// A condition, the value if it is true, and the value if it is false.
    If(Box<[Expression; 3]>),
    /// The definition of a name: its value, and the expression in which the name is valid.
    Let(String, Box<[Expression; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Arithmetic(OfTwo),
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Unequal,
    And,
    Or,
}

impl Binary {
    pub(crate) const ALL: &[(&str, Binary)] = &[
        ("+", Binary::Arithmetic(OfTwo::Sum)),
        ("-", Binary::Arithmetic(OfTwo::Difference)),
        ("*", Binary::Arithmetic(OfTwo::Product)),
        ("/", Binary::Arithmetic(OfTwo::Quotient)),
        ("<", Binary::Less),
        ("<=", Binary::AtMost),
        (">", Binary::Greater),
        (">=", Binary::AtLeast),
        ("==", Binary::Equal),
        ("!=", Binary::Unequal),
        ("and", Binary::And),
        ("or", Binary::Or),
    ];

    pub(crate) fn sign(self) -> &'static str {
        let of_this = Self::ALL.iter().find(|(_, operator)| *operator == self);
        of_this.expect("the list of operators is complete").0
    }
}

impl Expression {
    /// Returns the names that the expression uses but does not define, in order of appearance.
    pub fn names(&self) -> Vec<&str> {
        fn walk<'a>(of: &'a Expression, made: &mut Vec<&'a str>, found: &mut Vec<&'a str>) {
            match &of.node {
                Node::Number(..) | Node::Truth(_) => {}
                Node::Name(name) => {
                    if !made.contains(&name.as_str()) {
                        found.push(name);
                    }
                }
                Node::Negative(inner) | Node::Not(inner) => walk(inner, made, found),
                Node::Binary(_, parts) => parts.iter().for_each(|part| walk(part, made, found)),
                Node::Call(_, parts) => parts.iter().for_each(|part| walk(part, made, found)),
                Node::If(parts) => parts.iter().for_each(|part| walk(part, made, found)),
                Node::Let(name, parts) => {
                    walk(&parts[0], made, found);
                    made.push(name);
                    walk(&parts[1], made, found);
                    made.pop();
                }
            }
        }
        let mut found = Vec::new();
        walk(self, &mut Vec::new(), &mut found);
        found
    }

    /// Returns the position in the text, in bytes.
    pub fn place(&self) -> Range<usize> {
        self.at.clone()
    }
}
