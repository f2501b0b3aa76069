//! A small language for rules of a switch: which frame may enter a buffer, how an average is carried on.
//!
//! A text goes through [`parse`], [`check`](Vocabulary::check) and [`Compiler::compile`], and becomes a [`Program`]:
//! bytecode over 256 registers that no text can make crash, hang or allocate. Jumps only go forward, registers are
//! named by a byte, and every operation has a finite result, whatever it is handed ([`arithmetic`]).
//!
//! The crate knows no policy. Who has a rule to write says which names it may use, in which units and registers
//! ([`Vocabulary`]); `docs/design/formulas.md` says why it is as it is.

pub mod arithmetic;
mod check;
mod code;
mod compile;
mod explain;
mod fault;
pub mod language;
mod lexer;
mod parser;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod tree;
mod units;
mod vocabulary;

pub use code::{Program, REGISTERS, Registers};
pub use compile::Compiler;
pub use explain::{Clause, Evaluator};
pub use fault::{Fault, nearest};
pub use parser::parse;
pub use tree::{Expression, MOST_DEPTH};
pub use units::{Kind, Unit};
pub use vocabulary::{Meaning, Vocabulary, Word, is_name};

/// Bytes of a text; a longer one is refused unread.
pub const MOST_TEXT: usize = 4000;

#[cfg(test)]
mod tests;
