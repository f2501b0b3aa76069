//! The words of the language. The parser uses these tables, and the reference page is generated from them.

use crate::arithmetic::{OfOne, OfTwo};
use crate::units::Unit;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// An operation on one number.
    One(OfOne),
    /// An operation on several numbers, from the first to the last.
    Several(OfTwo),
    /// A random number.
    Random,
    /// The sum of a per-VC constant over all VCs.
    Sum,
}

/// Name and description of a function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionWord {
    /// The function.
    pub function: Function,
    /// Its name.
    pub name: &'static str,
    /// Example of a call.
    pub usage: &'static str,
    /// Description of the result.
    pub about: &'static str,
    /// Minimum and maximum number of arguments.
    pub arguments: (usize, usize),
}

const fn word(
    function: Function,
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    arguments: (usize, usize),
) -> FunctionWord {
    FunctionWord { function, name, usage, about, arguments }
}

/// Every function.
pub const FUNCTIONS: &[FunctionWord] = &[
    word(
        Function::Several(OfTwo::Least),
        "min",
        "min(a, b, ...)",
        "smallest of 2 to 16 values, all with the same unit",
        (2, 16),
    ),
    word(
        Function::Several(OfTwo::Greatest),
        "max",
        "max(a, b, ...)",
        "largest of 2 to 16 values, all with the same unit",
        (2, 16),
    ),
    word(Function::One(OfOne::Absolute), "abs", "abs(a)", "absolute value of a", (1, 1)),
    word(
        Function::One(OfOne::Root),
        "sqrt",
        "sqrt(a)",
        "square root of a and its unit; 0 if a is negative, which is counted",
        (1, 1),
    ),
    word(Function::One(OfOne::Exponential), "exp", "exp(a)", "e to the power of a; a must have no unit", (1, 1)),
    word(
        Function::One(OfOne::Logarithm),
        "log",
        "log(a)",
        "natural logarithm of a; if a <= 0, the smallest number, which is counted",
        (1, 1),
    ),
    word(Function::One(OfOne::Floor), "floor", "floor(a)", "a rounded down to a whole number of its unit", (1, 1)),
    word(
        Function::Random,
        "random",
        "random()",
        "new random number of at least 0 and below 1, from the port's own stream",
        (0, 0),
    ),
    word(Function::Sum, "sum", "sum(W)", "sum of a per-VC constant over all VCs that cross the port", (1, 1)),
];

/// Unit words, as in `300 cells`: the word, its unit, and its size in that unit.
pub const UNITS: &[(&str, Unit, f64)] = &[
    ("cells", Unit::CELLS, 1.0),
    ("cell", Unit::CELLS, 1.0),
    ("s", Unit::SECONDS, 1.0),
    ("ms", Unit::SECONDS, 1e-3),
    ("us", Unit::SECONDS, 1e-6),
    ("bytes", Unit::BYTES, 1.0),
    ("byte", Unit::BYTES, 1.0),
];

/// Reserved words, which cannot be names.
pub const RESERVED: &[&str] = &["if", "then", "else", "and", "or", "not", "let", "true", "false"];

/// Operators in order of precedence, those that bind most loosely first, each with its meaning.
pub const OPERATORS: &[(&str, &str)] = &[
    ("let v = a; b", "value of b, in which v stands for the value of a"),
    ("if c then a else b", "a if c is true, otherwise b; only the chosen value is evaluated"),
    ("a or b", "true if a or b is true; b is evaluated only if a is false"),
    ("a and b", "true if a and b are true; b is evaluated only if a is true"),
    ("not a", "true if a is false"),
    ("a < b, <=, >, >=, ==, !=", "a comparison of numbers of the same unit"),
    ("a + b, a - b", "sum and difference of numbers of the same unit"),
    ("a * b, a / b", "product and quotient, also of units"),
    ("-a", "the negative"),
];
