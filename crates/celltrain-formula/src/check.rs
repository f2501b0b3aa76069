//! Checks names and units.

use crate::arithmetic::{OfOne, OfTwo};
use crate::fault::Fault;
use crate::language::Function;
use crate::tree::{Binary, Expression, Node};
use crate::units::{Kind, Unit};
use crate::vocabulary::{Meaning, Vocabulary, Word};

impl Vocabulary {
    /// Returns the kind of an expression's value.
    ///
    /// # Errors
    /// Returns the first fault.
    pub fn check(&self, expression: &Expression) -> Result<Kind, Fault> {
        Checker { vocabulary: self, named: Vec::new(), hints: Vec::new(), certain: false }.kind(expression)
    }

    /// Infers the units of names whose unit is unknown: such a name gets the unit of the value that it is added to or
    /// compared with.
    ///
    /// If `certain`, a value gives a unit only if the units of all its names are known: the unit of `a / B` may still
    /// change while the unit of `a` is unknown.
    pub fn hints<'a>(&'a self, expression: &'a Expression, certain: bool) -> Vec<(&'a str, Unit)> {
        let mut checker = Checker { vocabulary: self, named: Vec::new(), hints: Vec::new(), certain };
        // Mismatches of units are reported later, when the units are known.
        let _ = checker.kind(expression);
        checker.hints
    }

    /// Checks that an expression is of the kind `wanted`. `what` is the role of the expression in messages, as in `the
    /// answer`.
    ///
    /// # Errors
    /// Returns the first fault.
    pub fn check_is(&self, expression: &Expression, wanted: Kind, what: &str) -> Result<(), Fault> {
        let kind = self.check(expression)?;
        match (kind, wanted) {
            (Kind::Truth, Kind::Truth) => Ok(()),
            (Kind::Number(_), Kind::Truth) => {
                let problem = format!("is {kind}; {what} must be a condition, such as X <= 900");
                Err(Fault::new(expression.at.clone(), problem))
            }
            (Kind::Truth, Kind::Number(_)) => {
                let problem = format!("is a condition; {what} must be a number, such as if c then 1 else 0");
                Err(Fault::new(expression.at.clone(), problem))
            }
            (Kind::Number(given), Kind::Number(wanted)) => match (given, wanted) {
                (Some(given), Some(wanted)) if given != wanted => {
                    let problem = format!("is {}; {what} is {}", kind, Kind::Number(Some(wanted)));
                    Err(Fault::new(expression.at.clone(), problem))
                }
                _ => Ok(()),
            },
        }
    }
}

struct Checker<'a> {
    vocabulary: &'a Vocabulary,
    named: Vec<(&'a str, Kind)>,
    hints: Vec<(&'a str, Unit)>,
    /// True if only operands whose names all have known units give hints.
    certain: bool,
}

impl<'a> Checker<'a> {
    fn kind(&mut self, expression: &'a Expression) -> Result<Kind, Fault> {
        let at = || expression.at.clone();
        match &expression.node {
            Node::Number(_, unit) => Ok(Kind::Number(*unit)),
            Node::Truth(_) => Ok(Kind::Truth),
            Node::Name(name) => {
                if let Some((_, kind)) = self.named.iter().rev().find(|(named, _)| named == name) {
                    return Ok(*kind);
                }
                match self.vocabulary.find(name) {
                    Some(Word { meaning: Meaning::NotHere(why), .. }) => {
                        Err(Fault::new(at(), format!("has {name}: {why}")))
                    }
                    Some(word) => Ok(word.kind),
                    None => Err(Fault::new(at(), self.vocabulary.unknown(name))),
                }
            }
            Node::Negative(inner) => Ok(Kind::Number(self.number(inner, "-")?)),
            Node::Not(inner) => self.truth(inner, "not"),
            Node::Binary(operator, parts) => self.binary(*operator, &parts[0], &parts[1], expression),
            Node::Call(function, parts) => self.call(*function, parts, expression),
            Node::If(parts) => {
                self.truth(&parts[0], "if")?;
                match (self.kind(&parts[1])?, self.kind(&parts[2])?) {
                    (Kind::Truth, Kind::Truth) => Ok(Kind::Truth),
                    (Kind::Number(a), Kind::Number(b)) => {
                        Ok(Kind::Number(alike(a, b, &parts[2], "the two branches of if give")?))
                    }
                    (a, b) => {
                        let problem = format!("is {b}, but the value after then is {a}; both must be of the same kind");
                        Err(Fault::new(parts[2].at.clone(), problem))
                    }
                }
            }
            Node::Let(name, parts) => {
                let value = self.kind(&parts[0])?;
                let is_known =
                    self.vocabulary.find(name).is_some() || self.named.iter().any(|(named, _)| named == name);
                if is_known {
                    return Err(Fault::new(
                        at(),
                        format!("names a value {name}, but this name already exists; choose another"),
                    ));
                }
                if let Err(problem) = crate::is_name(name) {
                    return Err(Fault::new(at(), format!("names a value {name}, which {problem}")));
                }
                self.named.push((name, value));
                let body = self.kind(&parts[1]);
                self.named.pop();
                body
            }
        }
    }

    /// Records a unit hint for a name without a unit that is combined with an operand that has one.
    fn hint(&mut self, (left, a): (&'a Expression, Option<Unit>), (right, b): (&'a Expression, Option<Unit>)) {
        for (of, own, (operand, beside)) in [(left, a, (right, b)), (right, b, (left, a))] {
            let (Node::Name(name), None, Some(unit)) = (&of.node, own, beside) else { continue };
            let is_hint = !self.certain || operand.names().into_iter().all(|name| self.is_known(name));
            if is_hint && self.named.iter().all(|(named, _)| named != name) {
                self.hints.push((name, unit));
            }
        }
    }

    /// Returns whether the unit of a name is known.
    fn is_known(&self, name: &str) -> bool {
        let own = self.named.iter().rev().find(|(named, _)| *named == name).map(|(_, kind)| *kind);
        own.or_else(|| Some(self.vocabulary.find(name)?.kind)) != Some(Kind::Number(None))
    }

    fn number(&mut self, of: &'a Expression, for_what: &str) -> Result<Option<Unit>, Fault> {
        match self.kind(of)? {
            Kind::Number(unit) => Ok(unit),
            Kind::Truth => Err(Fault::new(
                of.at.clone(),
                format!(
                    "is a condition; {for_what} takes a number, such as if c then 1 \
                                                       else 0"
                ),
            )),
        }
    }

    fn truth(&mut self, of: &'a Expression, for_what: &str) -> Result<Kind, Fault> {
        match self.kind(of)? {
            Kind::Truth => Ok(Kind::Truth),
            kind @ Kind::Number(_) => {
                Err(Fault::new(of.at.clone(), format!("is {kind}; {for_what} takes a condition, such as X > 0")))
            }
        }
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: &'a Expression,
        right: &'a Expression,
        all: &Expression,
    ) -> Result<Kind, Fault> {
        let sign = operator.sign();
        if matches!(operator, Binary::And | Binary::Or) {
            self.truth(left, sign)?;
            return self.truth(right, sign);
        }
        let (a, b) = (self.number(left, sign)?, self.number(right, sign)?);
        let too_high = || Fault::new(all.at.clone(), "has a unit with too high an exponent");
        match operator {
            Binary::Arithmetic(OfTwo::Sum | OfTwo::Difference) => {
                self.hint((left, a), (right, b));
                Ok(Kind::Number(alike(a, b, all, &format!("{sign} takes"))?))
            }
            Binary::Arithmetic(OfTwo::Product) => match (a, b) {
                (None, unit) | (unit, None) => Ok(Kind::Number(unit)),
                (Some(a), Some(b)) => a.times(b).map(|unit| Kind::Number(Some(unit))).ok_or_else(too_high),
            },
            Binary::Arithmetic(_) => match (a, b) {
                (unit, None) => Ok(Kind::Number(unit)),
                (a, Some(b)) => {
                    let unit = a.unwrap_or_default().per(b).ok_or_else(too_high)?;
                    Ok(Kind::Number(Some(unit)))
                }
            },
            _ => {
                self.hint((left, a), (right, b));
                alike(a, b, all, &format!("{sign} compares")).map(|_| Kind::Truth)
            }
        }
    }

    fn call(&mut self, function: Function, parts: &'a [Expression], all: &Expression) -> Result<Kind, Fault> {
        match function {
            Function::Random => match self.vocabulary.no_random {
                Some(why) => Err(Fault::new(all.at.clone(), format!("has random(): {why}"))),
                None => Ok(Kind::Number(Some(Unit::NONE))),
            },
            Function::Sum => {
                let word = match &parts[0].node {
                    Node::Name(name) if self.named.iter().all(|(named, _)| named != name) => self.vocabulary.find(name),
                    _ => None,
                };
                if let Some(Word { meaning: Meaning::ByVc { sum, .. }, kind, .. }) = word {
                    if !sum.is_finite() {
                        let problem = "is too large: the sum over the VCs of the port exceeds 1.8e308";
                        return Err(Fault::new(all.at.clone(), problem));
                    }
                    return Ok(*kind);
                }
                self.kind(&parts[0])?;
                let problem = "is not a constant by VC; sum() adds up only constants by VC";
                Err(Fault::new(parts[0].at.clone(), problem))
            }
            Function::One(operation @ (OfOne::Absolute | OfOne::Floor | OfOne::Negative)) => {
                let name = if operation == OfOne::Floor { "floor" } else { "abs" };
                Ok(Kind::Number(self.number(&parts[0], name)?))
            }
            Function::One(OfOne::Root) => match self.number(&parts[0], "sqrt")? {
                None => Ok(Kind::Number(None)),
                Some(unit) => unit.root().map(|unit| Kind::Number(Some(unit))).ok_or_else(|| {
                    Fault::new(parts[0].at.clone(), format!("is in {unit}, but sqrt needs the square of a unit"))
                }),
            },
            Function::One(operation @ (OfOne::Exponential | OfOne::Logarithm)) => {
                let name = if operation == OfOne::Exponential { "exp" } else { "log" };
                match self.number(&parts[0], name)? {
                    None | Some(Unit::NONE) => Ok(Kind::Number(Some(Unit::NONE))),
                    Some(unit) => {
                        let problem = format!("is in {unit}; {name} takes a number without unit, such as X / K");
                        Err(Fault::new(parts[0].at.clone(), problem))
                    }
                }
            }
            Function::Several(operation) => {
                let name = if operation == OfTwo::Least { "min" } else { "max" };
                let mut unit = None;
                for part in parts {
                    let next = self.number(part, name)?;
                    self.hint((&parts[0], unit), (part, next));
                    unit = alike(unit, next, part, &format!("{name} takes"))?;
                }
                Ok(Kind::Number(unit))
            }
        }
    }
}

/// Returns the common unit of two numbers, or a fault if their units differ.
fn alike(a: Option<Unit>, b: Option<Unit>, at: &Expression, what: &str) -> Result<Option<Unit>, Fault> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => {
            let (a, b) = (Kind::Number(Some(a)), Kind::Number(Some(b)));
            let problem = format!("mixes units: {what} values in the same unit, but one is {a} and the other is {b}");
            Err(Fault::new(at.at.clone(), problem))
        }
        (None, unit) | (unit, _) => Ok(unit),
    }
}
