//! Random inputs for tests, either well-typed or with plausible mistakes.

use crate::language::{FUNCTIONS, OPERATORS, RESERVED, UNITS};
use crate::units::{Kind, Unit};

/// A name that an input may use, and its kind.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The name.
    pub name: String,
    /// The kind of the name's value.
    pub kind: Kind,
    /// True for a per-VC constant, which `sum()` accepts.
    pub by_vc: bool,
}

/// Generator of random inputs.
pub struct Texts<'a> {
    /// Draws a whole number below its argument.
    pub below: &'a mut dyn FnMut(u32) -> u32,
    /// The known names.
    pub names: &'a [Sample],
    /// True if inputs may use `random()`.
    pub random: bool,
}

impl Texts<'_> {
    /// Generates a well-typed expression of this kind, nested to at most `depth` levels.
    pub fn of(&mut self, kind: Kind, depth: u32) -> String {
        match kind {
            Kind::Truth => self.truth(depth),
            Kind::Number(unit) => self.number(unit.unwrap_or_default(), depth),
        }
    }

    /// Generates a well-typed input with one to three pieces changed, or an input of random pieces.
    pub fn mistaken(&mut self, depth: u32) -> String {
        let mut pieces: Vec<String> =
            if (self.below)(4) == 0 { Vec::new() } else { self.truth(depth).split(' ').map(String::from).collect() };
        let changes = if pieces.is_empty() { 1 + (self.below)(12) } else { 1 + (self.below)(3) };
        for _ in 0..changes {
            let at = self.index(pieces.len() + 1);
            match (self.below)(4) {
                0 if at < pieces.len() => drop(pieces.remove(at)),
                1 if at < pieces.len() => pieces[at] = self.piece(),
                2 if at < pieces.len() => {
                    let cut =
                        pieces[at].char_indices().map(|(i, _)| i).nth(self.index(pieces[at].chars().count().max(1)));
                    pieces[at].truncate(cut.unwrap_or(0));
                }
                _ => {
                    let piece = self.piece();
                    pieces.insert(at, piece);
                }
            }
        }
        pieces.join(if (self.below)(8) == 0 { "" } else { " " })
    }

    fn index(&mut self, below: usize) -> usize {
        (self.below)(u32::try_from(below).unwrap_or(u32::MAX).max(1)) as usize
    }

    fn piece(&mut self) -> String {
        const ODD: &[&str] = &[
            "(", ")", ",", ";", "=", "+", "-", "*", "/", "<", "<=", ">", "==", "!=", "1e400", ".", "1.2.3", "\u{e9}",
            "\u{2264}", "&&", "^", "%", "\n", "\t", "\"", "0", "1e308", "300 cells", "10 ms", "5e-324",
        ];
        match (self.below)(5) {
            0 => RESERVED[self.index(RESERVED.len())].to_string(),
            1 => FUNCTIONS[self.index(FUNCTIONS.len())].name.to_string(),
            2 if !self.names.is_empty() => self.names[self.index(self.names.len())].name.clone(),
            3 => OPERATORS[self.index(OPERATORS.len())].0.split(' ').nth(1).unwrap_or("x").to_string(),
            _ => ODD[self.index(ODD.len())].to_string(),
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match (self.below)(6) {
                0 => "true".into(),
                1 => "false".into(),
                _ => self.name(Kind::Truth).unwrap_or_else(|| "true".into()),
            };
        }
        let d = depth - 1;
        match (self.below)(9) {
            0 => format!("{} and {}", self.enclosed(d), self.enclosed(d)),
            1 => format!("{} or {}", self.enclosed(d), self.enclosed(d)),
            2 => format!("not {}", self.enclosed(d)),
            3 => format!("if {} then {} else {}", self.truth(d), self.truth(d), self.truth(d)),
            4 => {
                let (name, unit) = (self.fresh(), self.unit());
                format!("let {name} = {} ; {}", self.number(unit, d), self.truth(d))
            }
            _ => {
                let (unit, sign) = (self.unit(), ["<", "<=", ">", ">=", "==", "!="][self.index(6)]);
                let left = self.operand(unit, d);
                // A number without a unit is compatible with every unit.
                let right = if (self.below)(4) == 0 { self.bare().into() } else { self.operand(unit, d) };
                format!("{left} {sign} {right}")
            }
        }
    }

    fn enclosed(&mut self, depth: u32) -> String {
        format!("( {} )", self.truth(depth))
    }

    fn operand(&mut self, unit: Unit, depth: u32) -> String {
        let text = self.number(unit, depth);
        if text.contains(' ') { format!("( {text} )") } else { text }
    }

    fn unit(&mut self) -> Unit {
        [Unit::CELLS, Unit::CELLS, Unit::NONE, Unit::SECONDS, Unit::RATE][self.index(5)]
    }

    fn number(&mut self, unit: Unit, depth: u32) -> String {
        if depth == 0 {
            let named = if (self.below)(3) > 0 { self.name(Kind::Number(Some(unit))) } else { None };
            return named.unwrap_or_else(|| self.literal(unit));
        }
        let d = depth - 1;
        match (self.below)(13) {
            0 | 1 => format!("{} + {}", self.operand(unit, d), self.operand(unit, d)),
            2 | 3 => format!("{} - {}", self.operand(unit, d), self.operand(unit, d)),
            4 => format!("{} * {}", self.operand(unit, d), self.operand(Unit::NONE, d)),
            5 => format!("{} / {}", self.operand(unit, d), self.operand(Unit::NONE, d)),
            6 => {
                let other = self.unit();
                format!("{} * {} / {}", self.operand(unit, d), self.operand(other, d), self.operand(other, d))
            }
            7 => format!("- {}", self.operand(unit, d)),
            8 => {
                let name = ["min", "max"][self.index(2)];
                format!("{name} ( {} , {} )", self.number(unit, d), self.number(unit, d))
            }
            9 => {
                let of = match (self.below)(2) {
                    0 => self.operand(unit, d),
                    _ => format!("sqrt ( {} * {} )", self.operand(unit, d), self.operand(unit, d)),
                };
                format!("{} ( {of} )", ["abs", "floor"][self.index(2)])
            }
            10 => format!("if {} then {} else {}", self.truth(d), self.number(unit, d), self.number(unit, d)),
            11 => {
                let (name, other) = (self.fresh(), self.unit());
                format!("let {name} = {} ; {}", self.number(other, d), self.number(unit, d))
            }
            _ if unit == Unit::NONE => match (self.below)(3) {
                0 => format!("exp ( {} )", self.number(Unit::NONE, d)),
                1 => format!("log ( {} )", self.number(Unit::NONE, d)),
                _ if self.random => "random ( )".into(),
                _ => self.number(unit, d),
            },
            _ => self.number(unit, d),
        }
    }

    /// Generates a name that is almost certainly unique.
    fn fresh(&mut self) -> String {
        format!("v{}", (self.below)(1_000_000))
    }

    fn name(&mut self, kind: Kind) -> Option<String> {
        let fitting: Vec<&Sample> = self.names.iter().filter(|sample| sample.kind == kind).collect();
        if fitting.is_empty() {
            return None;
        }
        let sample = fitting[(self.below)(u32::try_from(fitting.len()).unwrap_or(1)) as usize];
        let sums = sample.by_vc && (self.below)(3) == 0;
        Some(if sums { format!("sum ( {} )", sample.name) } else { sample.name.clone() })
    }

    fn literal(&mut self, unit: Unit) -> String {
        let number = self.bare();
        if unit == Unit::RATE {
            return format!("( {number} cells / 1 s )");
        }
        let words: Vec<&str> = UNITS.iter().filter(|(_, of, _)| *of == unit).map(|(word, ..)| *word).collect();
        if words.is_empty() { number.into() } else { format!("{number} {}", words[self.index(words.len())]) }
    }

    fn bare(&mut self) -> &'static str {
        const NUMBERS: &[&str] =
            &["0", "1", "2", "0.5", "0.9", "3", "10", "100", "300", "1e-3", "1e9", "1e300", "0.002"];
        NUMBERS[self.index(NUMBERS.len())]
    }
}
