//! A small language for a switch's rules, such as which frames may enter a buffer and how an average is updated.
//!
//! [`parse`], [`check`](Vocabulary::check) and [`Compiler::compile`] turn source text into a [`Program`]: bytecode over
//! 256 registers that cannot crash, hang or allocate, no matter what the source text is. Jumps only go forward, a
//! register number is one byte, and every operation has a finite result for any operands ([`arithmetic`]).
//!
//! [`parse_measure`] reads measures of a run with the same parser; measures contain paths instead of names, and are not
//! compiled. [`rules`] reads several formulas with their constants and state, as in a scenario.
//!
//! The crate is independent of policies. The caller defines the names that a rule may use, with their units and
//! registers ([`Vocabulary`], [`rules::Host`]). `docs/design/formulas.md` explains the design.

pub mod arithmetic;
mod check;
mod code;
mod compile;
mod explain;
mod fault;
pub mod language;
mod lexer;
mod limit;
mod measure;
pub mod names;
mod parser;
mod per_vc;
pub mod rules;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod tree;
mod units;
mod vocabulary;

pub use code::{Program, REGISTERS, Registers};
pub use compile::Compiler;
pub use explain::{Clause, Evaluator};
pub use fault::{Fault, SettingFault, nearest};
pub use limit::Limit;
pub use measure::{Step, parse_measure};
pub use parser::parse;
pub use per_vc::PerVc;
pub use tree::{Expression, MOST_DEPTH};
pub use units::{Kind, Unit};
pub use vocabulary::{Meaning, Vocabulary, Word, is_name};

/// Maximum length of source text in bytes; longer text is rejected before it is read.
pub const MOST_TEXT: usize = 4000;

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
