//! The names that a formula may use.

use crate::fault::nearest;
use crate::language::{FUNCTIONS, RESERVED, UNITS};
use crate::parser::MOST_NAME;
use crate::units::Kind;

/// Checks that a string can be a user-defined name.
///
/// # Errors
/// Returns the problem and its remedy as a clause that follows the name.
pub fn is_name(text: &str) -> Result<(), String> {
    let mut letters = text.chars();
    let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err("is not a name; a name consists of letters, digits and _, and does not begin with a digit".into());
    }
    if text.len() > MOST_NAME {
        return Err(format!("has {} letters; a name can have at most {MOST_NAME}", text.len()));
    }
    if UNITS.iter().any(|(word, ..)| *word == text) {
        let unit = match text {
            "s" => "the unit of seconds",
            "ms" => "the unit of milliseconds",
            "us" => "the unit of microseconds",
            _ => "a unit",
        };
        return Err(format!("is {unit}, as in 3 {text}; choose another name"));
    }
    if RESERVED.contains(&text) || FUNCTIONS.iter().any(|word| word.name == text) {
        return Err("is a word of the language; choose another name".into());
    }
    Ok(())
}

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// The value that this register has at the start of a program.
    Register(u8),
    /// A fixed number.
    Constant(f64),
    /// A constant that differs between VCs.
    ByVc {
        /// Register that contains the value for the current VC.
        register: u8,
        /// The sum over all VCs.
        sum: f64,
    },
    /// A name that is known but not available in this formula, with the reason as a clause.
    NotHere(&'static str),
}

/// A name with its meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The name.
    pub name: String,
    /// Kind of the name's value, including the unit.
    pub kind: Kind,
    /// The source of the name's value.
    pub meaning: Meaning,
}

/// All names that a formula may use, and whether the formula may draw random numbers.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// The names.
    pub words: Vec<Word>,
    /// Reason why `random()` is not available, as a clause; `None` if it is available.
    pub no_random: Option<&'static str>,
}

impl Vocabulary {
    /// Returns the entry for a name.
    pub fn find(&self, name: &str) -> Option<&Word> {
        self.words.iter().find(|word| word.name == name)
    }

    /// Describes an unknown name in an error message, with suggestions.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let meant = nearest(name, self.words.iter().map(|word| word.name.as_str()));
        let all = || -> Vec<&str> { self.words.iter().map(|word| word.name.as_str()).take(SHOWN).collect() };
        let hint =
            meant.map_or_else(|| format!("choose from {}", all().join(", ")), |meant| format!("did you mean {meant}?"));
        format!("does not know {name:.40}; {hint}")
    }
}

/// Maximum number of names listed in the message about an unknown name.
const SHOWN: usize = 24;
