//! The names a rule may use.

use crate::fault::nearest;
use crate::language::{FUNCTIONS, RESERVED, UNITS};
use crate::parser::MOST_NAME;
use crate::units::Kind;

/// Whether a text can be a name of a user's own.
///
/// # Errors
/// With what would be right: a clause that follows the name.
pub fn is_name(text: &str) -> Result<(), String> {
    let mut letters = text.chars();
    let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !starts || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err("is not a name; a name is letters, digits and _, and begins with no digit".into());
    }
    if text.len() > MOST_NAME {
        return Err(format!("has {} letters; a name has {MOST_NAME} at most", text.len()));
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

/// What stands for a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// What is in this register when a program starts.
    Register(u8),
    /// This number.
    Constant(f64),
    /// A constant that differs from VC to VC: this VC's is in the register, and all together are the sum.
    ByVc {
        /// Where this VC's is.
        register: u8,
        /// The sum over all VCs.
        sum: f64,
    },
    /// It is known, and not here: a clause that says why.
    NotHere(&'static str),
}

/// A name with what it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The name.
    pub name: String,
    /// What it is, and in which unit.
    pub kind: Kind,
    /// What stands for it.
    pub meaning: Meaning,
}

/// All names that a rule may use, and whether it may draw random numbers.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// The names.
    pub words: Vec<Word>,
    /// Why there are no random numbers: a clause; none where there are.
    pub no_random: Option<&'static str>,
}

impl Vocabulary {
    /// What a name stands for.
    pub fn find(&self, name: &str) -> Option<&Word> {
        self.words.iter().find(|word| word.name == name)
    }

    /// What is wrong with a name it does not know.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let meant = nearest(name, self.words.iter().map(|word| word.name.as_str()));
        let all = || -> Vec<&str> { self.words.iter().map(|word| word.name.as_str()).take(SHOWN).collect() };
        let hint =
            meant.map_or_else(|| format!("there are {}", all().join(", ")), |meant| format!("did you mean {meant}?"));
        format!("does not know {name:.40}; {hint}")
    }
}

/// Names that are listed where one is unknown.
const SHOWN: usize = 24;
