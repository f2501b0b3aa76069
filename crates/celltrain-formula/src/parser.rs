//! Parses source text into a tree.

use std::ops::Range;

use crate::MOST_TEXT;
use crate::fault::{Fault, nearest};
use crate::language::{FUNCTIONS, UNITS};
use crate::lexer::{Piece, Token, pieces, words};
use crate::tree::{Binary, Expression, MOST_DEPTH, Node};

/// Parses source text.
///
/// # Errors
/// Returns the first syntax error.
pub fn parse(text: &str) -> Result<Expression, Fault> {
    if text.len() > MOST_TEXT {
        let problem = format!(
            "is {} bytes long, but a formula can have at most {MOST_TEXT}; move parts of the formula into constants",
            text.len()
        );
        return Err(Fault::new(0..0, problem));
    }
    let tokens = pieces(text)?;
    let mut parser = Parser { tokens: &tokens, next: 0, depth: 0, language: Language::Formula };
    parser.text().map_err(|fault| parser.comma_in_number(text).unwrap_or(fault))
}

pub(crate) fn parse_measure(text: &str) -> Result<Expression, Fault> {
    let tokens = words(text)?;
    if tokens.iter().filter(|token| token.piece == Piece::Mark("(")).count() > MOST_PARENTHESES {
        return Err(Fault::new(0..0, "has more than 100 pairs of parentheses"));
    }
    if text.chars().count() > MOST_MEASURE {
        return Err(Fault::new(0..0, "has more than 10,000 characters"));
    }
    Parser { tokens: &tokens, next: 0, depth: 0, language: Language::Measure }.text()
}

/// Maximum number of characters in a measure, and maximum number of opening parentheses.
const MOST_MEASURE: usize = 10_000;
const MOST_PARENTHESES: usize = 100;

/// The kind of expression. It determines the limits and the wording of errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Formula,
    Measure,
}

impl Language {
    /// Returns the maximum depths of nesting in the text and of the tree. A measure may be a long chain, because
    /// nothing walks its tree recursively.
    fn most_depths(self) -> [usize; 2] {
        match self {
            Self::Formula => [MOST_DEPTH; 2],
            Self::Measure => [MOST_PARENTHESES + 1, MOST_MEASURE],
        }
    }
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    next: usize,
    depth: usize,
    language: Language,
}

const LOOSEST_FIRST: &[&[&str]] = &[&["or"], &["and"], &["<", "<=", ">", ">=", "==", "!="], &["+", "-"], &["*", "/"]];
/// Level of `not` in `LOOSEST_FIRST`, just before the comparisons.
const NOT: usize = 2;

fn is_comparison(mark: &str) -> bool {
    LOOSEST_FIRST[NOT].contains(&mark)
}

impl<'a> Parser<'a> {
    /// Parses the whole text as one expression.
    fn text(&mut self) -> Result<Expression, Fault> {
        let expression = self.expression()?;
        match self.peek() {
            Piece::End => Ok(expression),
            _ if self.language == Language::Measure => {
                Err(self.fault(format!("cannot be read: an operator is expected before {}", self.here())))
            }
            Piece::Mark(")") => Err(self.fault("closes a parenthesis that was never opened")),
            Piece::Mark("=") => Err(self.fault("has =; write == to compare, or let v = a; b to name a value")),
            Piece::Mark(";") => Err(self.fault("has a ; that belongs to no let; write let v = a; b")),
            Piece::Mark(mark) if is_comparison(mark) => Err(self.fault("compares twice; write a < b and b < c")),
            _ => Err(self.fault("continues where an operator or the end of the formula is expected")),
        }
    }

    /// Returns a fault for a number with a comma, such as 0,5 or 1,000, if the parser stopped at one.
    fn comma_in_number(&self, text: &str) -> Option<Fault> {
        let [before, comma, after] = self.tokens.get(self.next.checked_sub(1)?..=self.next + 1)? else { return None };
        let is_number = |token: &Token<'_>| matches!(token.piece, Piece::Number(_));
        let is_one_word = before.at.end == comma.at.start && comma.at.end == after.at.start;
        let at = before.at.start..after.at.end;
        let [whole, rest] = [&text[before.at.clone()], &text[after.at.clone()]];
        let are_digits = whole.bytes().all(|byte| byte.is_ascii_digit()) && !rest.starts_with('.');
        if comma.piece != Piece::Mark(",") || !is_number(before) || !is_number(after) || !is_one_word || !are_digits {
            return None;
        }
        let groups_digits = rest.len() == 3 && whole != "0";
        let meant = if groups_digits { format!("{whole}{rest}") } else { format!("{whole}.{rest}") };
        Some(Fault::new(at.clone(), format!("has a comma inside a number; write {meant}, not {}", &text[at])))
    }

    fn peek(&self) -> &Piece<'a> {
        &self.tokens[self.next].piece
    }

    /// Returns the next token in quotes, for faults of measures.
    fn here(&self) -> String {
        match *self.peek() {
            Piece::Number(value) => format!("'{value}'"),
            Piece::Name(word) | Piece::Path(word) | Piece::Word(word) | Piece::Mark(word) => format!("'{word:.40}'"),
            Piece::End => "its end".into(),
        }
    }

    fn fault(&self, problem: impl Into<String>) -> Fault {
        Fault::new(self.tokens[self.next].at.clone(), problem)
    }

    fn start(&self) -> usize {
        self.tokens[self.next].at.start
    }

    /// Returns the end of the last token read.
    fn end(&self) -> usize {
        self.next.checked_sub(1).map_or(0, |last| self.tokens[last].at.end)
    }

    /// Consumes the next token if it is the given mark or word. Returns whether a token was consumed.
    fn takes(&mut self, text: &str) -> bool {
        let is_here = matches!(self.peek(), Piece::Mark(here) | Piece::Word(here) if *here == text);
        self.next += usize::from(is_here);
        is_here
    }

    fn needs(&mut self, text: &str, for_what: &str) -> Result<(), Fault> {
        if self.takes(text) {
            return Ok(());
        }
        if self.language == Language::Measure {
            return Err(self.fault(format!("lacks a '{text}'")));
        }
        let here = if *self.peek() == Piece::End { "ends" } else { "continues" };
        Err(self.fault(format!("{here} where {text} is expected{for_what}")))
    }

    fn node(&self, start: usize, node: Node, depth: usize) -> Result<Expression, Fault> {
        let at = start..self.end();
        let [_, most] = self.language.most_depths();
        if depth > most {
            let problem = format!(
                "is {depth} operations deep, but at most {most} are possible. Put parentheses around the parts of a \
                 long chain: (a + b) + (c + d)"
            );
            return Err(Fault::new(at, problem));
        }
        Ok(Expression { node, at, depth })
    }

    fn goes_deeper(&mut self, at: Range<usize>) -> Result<(), Fault> {
        self.depth += 1;
        let [most, _] = self.language.most_depths();
        if self.depth > most {
            let problem =
                format!("is nested more than {most} deep; name parts of it: let v = a; b, or make them constants");
            return Err(Fault::new(at, problem));
        }
        Ok(())
    }

    fn expression(&mut self) -> Result<Expression, Fault> {
        let start = self.start();
        self.goes_deeper(self.tokens[self.next].at.clone())?;
        let read = if self.takes("let") {
            self.named(start)
        } else if self.takes("if") {
            self.choice(start)
        } else {
            self.binary(0)
        };
        self.depth -= 1;
        read
    }

    fn named(&mut self, start: usize) -> Result<Expression, Fault> {
        let &Piece::Name(name) = self.peek() else {
            return Err(self.fault("needs a name after let: let v = a; b"));
        };
        if name.len() > MOST_NAME {
            return Err(
                self.fault(format!("has a name of {} letters; a name can have at most {MOST_NAME}", name.len()))
            );
        }
        self.next += 1;
        self.needs("=", ": let v = a; b")?;
        let value = self.expression()?;
        self.needs(";", ": let v = a; b")?;
        let body = self.expression()?;
        let depth = 1 + value.depth.max(body.depth);
        self.node(start, Node::Let(name.to_string(), Box::new([value, body])), depth)
    }

    fn choice(&mut self, start: usize) -> Result<Expression, Fault> {
        let condition = self.expression()?;
        self.needs("then", ": if c then a else b")?;
        let then = self.expression()?;
        self.needs("else", ": if c then a else b")?;
        let otherwise = self.expression()?;
        let depth = 1 + condition.depth.max(then.depth).max(otherwise.depth);
        self.node(start, Node::If(Box::new([condition, then, otherwise])), depth)
    }

    /// Parses operators of this level and of levels that bind more tightly. All operators are left-associative.
    fn binary(&mut self, level: usize) -> Result<Expression, Fault> {
        let start = self.start();
        if level == NOT && self.takes("not") {
            self.goes_deeper(start..self.end())?;
            let inner = self.binary(level)?;
            self.depth -= 1;
            let depth = inner.depth + 1;
            return self.node(start, Node::Not(Box::new(inner)), depth);
        }
        let Some(operators) = LOOSEST_FIRST.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Piece::Mark(mark) | Piece::Word(mark) = *self.peek() {
            if !operators.contains(&mark) {
                break;
            }
            self.next += 1;
            let right = self.binary(level + 1)?;
            let (_, operator) =
                Binary::ALL.iter().find(|(text, _)| *text == mark).expect("the list of operators is complete");
            let depth = 1 + left.depth.max(right.depth);
            left = self.node(start, Node::Binary(*operator, Box::new([left, right])), depth)?;
            if level == NOT {
                break;
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, Fault> {
        let start = self.start();
        if self.takes("-") {
            self.goes_deeper(start..self.end())?;
            let inner = self.unary()?;
            self.depth -= 1;
            let depth = inner.depth + 1;
            return self.node(start, Node::Negative(Box::new(inner)), depth);
        }
        self.primary(start)
    }

    fn primary(&mut self, start: usize) -> Result<Expression, Fault> {
        match *self.peek() {
            Piece::Number(value) => {
                self.next += 1;
                let unit = match *self.peek() {
                    Piece::Name(name) => UNITS.iter().find(|(word, ..)| *word == name),
                    _ => None,
                };
                self.next += usize::from(unit.is_some());
                let number =
                    unit.map_or(Node::Number(value, None), |&(_, unit, many)| Node::Number(value * many, Some(unit)));
                if let (None, &Piece::Name(name)) = (unit, self.peek()) {
                    let words: Vec<&str> = UNITS.iter().map(|(word, ..)| *word).collect();
                    let problem = format!(
                        "has {name} after a number; write * between the two, or use a unit ({})",
                        words.join(", ")
                    );
                    return Err(self.fault(problem));
                }
                self.node(start, number, 1)
            }
            Piece::Name(name) => {
                self.next += 1;
                if *self.peek() == Piece::Mark("(") {
                    return self.call(name, start);
                }
                self.node(start, Node::Name(name.to_string()), 1)
            }
            Piece::Word(word @ ("true" | "false")) => {
                self.next += 1;
                self.node(start, Node::Truth(word == "true"), 1)
            }
            Piece::Mark("(") => {
                self.next += 1;
                let mut inner = self.expression()?;
                self.needs(")", &format!(" for the ( at {}", start + 1))?;
                inner.at = start..self.end();
                Ok(inner)
            }
            Piece::Path(path) => {
                self.next += 1;
                self.node(start, Node::Name(path.to_string()), 1)
            }
            _ if self.language == Language::Measure => {
                Err(self.fault(format!("lacks a path or a number before {}", self.here())))
            }
            Piece::Word(word @ ("if" | "let" | "not")) => {
                Err(self.fault(format!("has {word} inside an operation; put this part into parentheses")))
            }
            Piece::End => Err(self.fault("ends where a number, a name or ( is expected")),
            Piece::Word(word) | Piece::Mark(word) => {
                Err(self.fault(format!("has {word} where a number, a name or ( is expected")))
            }
        }
    }

    fn call(&mut self, name: &str, start: usize) -> Result<Expression, Fault> {
        let Some(word) = FUNCTIONS.iter().find(|word| word.name == name) else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|word| word.name).collect();
            let hint = nearest(name, names.iter().copied());
            let hint = hint.map(|meant| format!("Did you mean {meant}? ")).unwrap_or_default();
            let problem = format!("does not know the function {name:.40}. {hint}Choose from {}", names.join(", "));
            return Err(Fault::new(start..self.end(), problem));
        };
        self.next += 1;
        let mut arguments = Vec::new();
        if *self.peek() != Piece::Mark(")") {
            loop {
                arguments.push(self.expression()?);
                if !self.takes(",") {
                    break;
                }
            }
        }
        self.needs(")", &format!(" for {}", word.usage))?;
        let (least, most) = word.arguments;
        if !(least..=most).contains(&arguments.len()) {
            let range = if most > least { format!(", {least} to {most} of them") } else { String::new() };
            let problem = format!("gives {} {}; write {}{range}", name, count(arguments.len()), word.usage);
            return Err(Fault::new(start..self.end(), problem));
        }
        // Several arguments are combined two at a time.
        let depth = arguments.len() + arguments.iter().map(|argument| argument.depth).max().unwrap_or(0);
        self.node(start, Node::Call(word.function, arguments), depth)
    }
}

fn count(arguments: usize) -> String {
    match arguments {
        0 => "no argument".to_string(),
        1 => "1 argument".to_string(),
        n => format!("{n} arguments"),
    }
}

pub(crate) const MOST_NAME: usize = 40;
