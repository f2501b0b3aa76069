//! Splits source text into tokens.

use std::ops::Range;

use crate::fault::Fault;
use crate::language::RESERVED;

/// The content of a token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece<'a> {
    Number(f64),
    Name(&'a str),
    /// A path into the result of a run; only in measures.
    Path(&'a str),
    Word(&'static str),
    /// An operator or a punctuation mark.
    Mark(&'static str),
    End,
}

/// A token and its position in the source text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token<'a> {
    pub(crate) piece: Piece<'a>,
    pub(crate) at: Range<usize>,
}

/// Operators and punctuation; longer tokens are listed before their prefixes.
const MARKS: &[&str] = &["<=", ">=", "==", "!=", "<", ">", "=", "+", "-", "*", "/", "(", ")", ",", ";"];

/// Notations of other languages, each with its equivalent in this language.
const ELSEWHERE: &[(&str, &str)] = &[
    ("&&", "write and"),
    ("||", "write or"),
    ("!", "write not"),
    ("**", "write x * x, or exp(y * log(x))"),
    ("^", "write x * x, or exp(y * log(x))"),
    ("%", "write 0.9 for 90 %"),
    ("?", "write if c then a else b"),
    ("{", "write if c then a else b"),
    ("\u{2264}", "write <="),
    ("\u{2265}", "write >="),
];

/// Splits source text into tokens, with [`Piece::End`] as the last.
pub(crate) fn pieces(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        }
        let (piece, length) = if first.is_ascii_digit() || first == '.' {
            number(rest, start)?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let name = &rest[..length];
            let word = RESERVED.iter().find(|word| **word == name);
            (word.map_or(Piece::Name(name), |word| Piece::Word(word)), length)
        } else {
            let elsewhere = ELSEWHERE.iter().find(|(mark, _)| rest.starts_with(mark) && !rest.starts_with("!="));
            if let Some((mark, here)) = elsewhere {
                return Err(Fault::new(
                    start..start + mark.len(),
                    format!("has {mark}, which is not part of the language; {here}"),
                ));
            }
            let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) else {
                let problem = format!("has {first:?}, which is not part of the language");
                return Err(Fault::new(start..start + first.len_utf8(), problem));
            };
            (Piece::Mark(mark), mark.len())
        };
        tokens.push(Token { piece, at: start..start + length });
        start += length;
    }
    tokens.push(Token { piece: Piece::End, at: text.len()..text.len() });
    Ok(tokens)
}

/// Operators and punctuation in measures.
const SIGNS: &[&str] = &["+", "-", "*", "/", "(", ")"];

/// Splits a measure into tokens, with [`Piece::End`] as the last. Tokens are separated by spaces, because the names in
/// a path may contain any character: `ports.sum(edge*->sw1).lost_cells`.
pub(crate) fn words(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    let mut tokens = Vec::new();
    let mut start = 0;
    for word in text.split(char::is_whitespace) {
        let at = start..start + word.len();
        start = at.end + text[at.end..].chars().next().map_or(0, char::len_utf8);
        if word.is_empty() {
            continue;
        }
        let piece = if let Some(mark) = SIGNS.iter().find(|mark| **mark == word) {
            Piece::Mark(mark)
        } else if word.starts_with(|first: char| first.is_ascii_digit()) {
            match number(word, at.start) {
                Ok((piece, length)) if length == word.len() => piece,
                Ok(_) => Piece::Path(word),
                Err(fault) => {
                    let problem = format!("cannot be read: '{word:.40}' is too large a number");
                    return Err(Fault::new(fault.at, problem));
                }
            }
        } else {
            Piece::Path(word)
        };
        tokens.push(Token { piece, at });
    }
    tokens.push(Token { piece: Piece::End, at: text.len()..text.len() });
    Ok(tokens)
}

/// Reads a number, such as 3, 0.8 or 1e-3. Returns the number and its length.
fn number(rest: &str, start: usize) -> Result<(Piece<'_>, usize), Fault> {
    let digits = |from: usize| rest[from..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| from + n);
    let mut end = digits(0);
    if rest[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
        let power = digits(end + 1 + sign);
        if power > end + 1 + sign {
            end = power;
        }
    }
    match rest[..end].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Piece::Number(value), end)),
        Ok(_) => Err(Fault::new(start..start + end, "has a number above the largest possible one (1.8e308)")),
        Err(_) => Err(Fault::new(start..start + end.max(1), "has an invalid number; write one such as 3, 0.8 or 1e-3")),
    }
}
