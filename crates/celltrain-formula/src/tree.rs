//! What a text says, as a tree.

use std::ops::Range;

use crate::language::Function;
use crate::units::Unit;

/// How deep a tree may be, so that what walks it needs little of the stack.
pub const MOST_DEPTH: usize = 100;

/// An expression, as it stands in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub(crate) node: Node,
    /// Where it stands, in bytes.
    pub(crate) at: Range<usize>,
    pub(crate) depth: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// A number as written, perhaps with a unit.
    Number(f64, Option<Unit>),
    Truth(bool),
    Name(String),
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Binary(Binary, Box<[Expression; 2]>),
    Call(Function, Vec<Expression>),
    /// Condition, then, else.
    If(Box<[Expression; 3]>),
    /// A name for a value, and where it holds.
    Let(String, Box<[Expression; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
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
        ("+", Binary::Add),
        ("-", Binary::Subtract),
        ("*", Binary::Multiply),
        ("/", Binary::Divide),
        ("<", Binary::Less),
        ("<=", Binary::AtMost),
        (">", Binary::Greater),
        (">=", Binary::AtLeast),
        ("==", Binary::Equal),
        ("!=", Binary::Unequal),
        ("and", Binary::And),
        ("or", Binary::Or),
    ];
}

impl Expression {
    /// The names in it that it does not make itself, in the order of the text.
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

    /// Where it is, in bytes of its text.
    pub fn place(&self) -> Range<usize> {
        self.at.clone()
    }
}
