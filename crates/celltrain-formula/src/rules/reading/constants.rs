//! Evaluates constants and the initial values of state.

use std::collections::BTreeMap;

use super::{ByVc, Reading, Started};
use crate::arithmetic::OfTwo;
use crate::rules::{Constant, On, Start};
use crate::{Compiler, Expression, Fault, Kind, Meaning, PerVc, Registers, SettingFault, Word};

/// Maximum number of per-VC constants and state variables together.
pub(super) const MOST_OWN: usize = 64;

impl<'a> Reading<'a> {
    /// Evaluates a constant, after the constants on which it depends. Returns `None` if one of them has a fault.
    pub(super) fn constant(&mut self, name: &'a str) -> Option<()> {
        if self.refused.contains(name) {
            return None;
        }
        if self.vocabulary.words.iter().any(|word| word.name == name) {
            return Some(());
        }
        let key = format!("constants.{name}");
        match &self.texts.constants[name] {
            Constant::Value(PerVc::Same(value)) => {
                if !value.is_finite() {
                    self.faults.push(SettingFault::new(key, in_toml(*value), NOT_FINITE));
                    self.refused.insert(name);
                    return None;
                }
                self.define(name, Kind::Number(None), Meaning::Constant(*value));
            }
            Constant::Value(table @ PerVc::ByName(_)) => {
                let faults = table.check(&key, f64::is_finite, NOT_FINITE);
                if !faults.is_empty() {
                    let faults =
                        faults.into_iter().map(|fault| SettingFault { value: fault.value.to_lowercase(), ..fault });
                    self.faults.extend(faults);
                    self.refused.insert(name);
                    return None;
                }
                // A different check reports a VC without a value, once the VCs are known.
                let value = |vc: &&str| table.of(vc).filter(|value| value.is_finite()).unwrap_or(0.0);
                let values = self.texts.vcs.map(|vcs| vcs.iter().map(value).collect()).unwrap_or_default();
                self.define_by_vc(name, Kind::Number(None), values);
            }
            Constant::Formula(text) => {
                let tree = self.trees[&key].clone();
                self.visiting.push(name);
                for needed in tree.names() {
                    let Some((needed, _)) = self.texts.constants.get_key_value(needed) else { continue };
                    if let Some(from) = self.visiting.iter().position(|visited| visited == needed) {
                        let circle = self.visiting[from..].join(", which needs ");
                        let problem = format!("is circular: {circle}, which needs {needed}");
                        self.refuse(&key, text, &Fault::new(tree.place(), problem));
                        self.refused.extend(&self.visiting);
                        return None;
                    }
                    self.constant(needed)?;
                }
                self.visiting.pop();
                let (kind, values) = self.worked_out(&key, text, &tree, None)?;
                if self.is_unsure(&tree) {
                    self.unsure.insert(name);
                }
                match values {
                    Values::Same(value) => self.define(name, kind, Meaning::Constant(value)),
                    Values::ByVc(values) => self.define_by_vc(name, kind, values),
                }
            }
        }
        Some(())
    }

    pub(super) fn define(&mut self, name: &str, kind: Kind, meaning: Meaning) {
        self.vocabulary.words.push(Word { name: name.into(), kind, meaning });
    }

    pub(super) fn define_by_vc(&mut self, name: &str, kind: Kind, values: Vec<f64>) {
        let register = self.take_register(&format!("constants.{name}"));
        // An infinite sum is refused if `sum()` uses it. If the sum depends on an unknown rate, the sum is replaced
        // instead.
        let mut sum = values.iter().sum();
        if self.unsure.contains(name) {
            sum = values.iter().fold(0.0, |sum, value| OfTwo::Sum.of(sum, *value, &mut self.replaced));
        }
        self.started.push(Started { register, of_vc: true, values: values.clone() });
        self.by_vc.push(ByVc { register, values });
        self.define(name, kind, Meaning::ByVc { register, sum });
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a formula has at most 255 names")]
    pub(super) fn take_register(&mut self, key: &str) -> u8 {
        let taken = usize::from(self.next - self.texts.first);
        if taken >= MOST_OWN {
            let problem = format!(
                "is one name too many: constants by VC and state variables can have at most \
                                   {MOST_OWN} names in all"
            );
            self.faults.push(SettingFault::new(key, "", problem));
            return self.next;
        }
        self.next += 1;
        self.next - 1
    }

    /// Evaluates a formula of constants.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a formula has at most 255 names")]
    pub(super) fn worked_out(
        &mut self,
        key: &str,
        text: &str,
        tree: &Expression,
        must_be_same: Option<&'static str>,
    ) -> Option<(Kind, Values)> {
        let mut vocabulary = self.vocabulary(On::Start);
        if let Some(why) = must_be_same {
            for word in &mut vocabulary.words {
                if let Meaning::ByVc { .. } = word.meaning {
                    word.meaning = Meaning::NotHere(why);
                }
            }
        }
        let mut compiler = Compiler::new(self.next);
        let made = vocabulary.check(tree).and_then(|kind| Ok((kind, compiler.compile(tree, &vocabulary)?)));
        let (kind, program) = match made {
            Ok(made) => made,
            Err(fault) => {
                self.refuse(key, text, &fault);
                return None;
            }
        };
        let differs = self.by_vc.iter().any(|constant| program.reads(constant.register));
        let vcs = self.texts.vcs.map_or(0, <[&str]>::len);
        let mut registers = compiler.registers();
        let mut replaced = 0;
        let mut run = |registers: &mut Registers| program.run(registers, &mut || 0.0, &mut replaced);
        let values = if differs {
            let of_vc = |vc: usize| {
                for constant in &self.by_vc {
                    registers[usize::from(constant.register)] = constant.values[vc];
                }
                run(&mut registers)
            };
            Values::ByVc((0..vcs).map(of_vc).collect())
        } else {
            Values::Same(run(&mut registers))
        };
        if replaced > 0 && !self.is_unsure(tree) {
            let problem = "gives no number: it divides by zero, takes the root of a negative number or the logarithm \
                           of a number that is not positive, or exceeds 1.8e308";
            self.refuse(key, text, &Fault::new(tree.place(), problem));
            return None;
        }
        self.replaced += replaced;
        Some((kind, values))
    }

    /// Returns whether a formula depends on values that are unknown before the run, or on per-VC values before the VCs
    /// are known.
    pub(super) fn is_unsure(&self, tree: &Expression) -> bool {
        let by_vc =
            |name: &str| self.vocabulary.find(name).is_some_and(|word| matches!(word.meaning, Meaning::ByVc { .. }));
        let is_open = |name: &str| self.host.is_open(name) || self.unsure.contains(name);
        let names = tree.names();
        names.into_iter().any(|name| is_open(name) || (self.texts.vcs.is_none() && by_vc(name)))
    }

    /// Allocates registers for state variables and computes their initial values.
    pub(super) fn state(&mut self, table: &'a BTreeMap<String, Start>, key: &str, by_vc: bool) {
        let mut words = Vec::new();
        for (name, start) in table {
            let key = format!("{key}.{name}");
            let must_be_same =
                (!by_vc).then_some("this value differs between VCs, but this state belongs to the port; use vc_state");
            let (kind, values) = match start {
                Start::Number(value) if value.is_finite() => (Kind::Number(None), Values::Same(*value)),
                Start::Number(value) => {
                    self.faults.push(SettingFault::new(&*key, in_toml(*value), NOT_FINITE));
                    continue;
                }
                Start::Formula(text) => {
                    let tree = self.trees[&key].clone();
                    // A fault of a constant is reported for the constant only.
                    if tree.names().into_iter().any(|name| self.refused.contains(name)) {
                        continue;
                    }
                    let Some(worked_out) = self.worked_out(&key, text, &tree, must_be_same) else { continue };
                    worked_out
                }
            };
            words.push((name, key, kind, values));
        }
        for (name, key, kind, values) in words {
            let register = self.take_register(&key);
            self.define(name, kind, Meaning::Register(register));
            let vcs = self.texts.vcs.map_or(0, <[&str]>::len);
            let values = match values {
                Values::Same(value) if by_vc => vec![value; vcs],
                Values::Same(value) => vec![value],
                Values::ByVc(values) => values,
            };
            self.started.push(Started { register, of_vc: by_vc, values });
        }
    }
}

/// Describes a number that TOML allows but formulas do not.
pub(super) const NOT_FINITE: &str =
    "is not a finite number; write one such as 0.8, or 1e300 for a limit that is never reached";

/// Formats a number as in a TOML file.
fn in_toml(value: f64) -> String {
    value.to_string().to_lowercase()
}

pub(super) enum Values {
    Same(f64),
    ByVc(Vec<f64>),
}
