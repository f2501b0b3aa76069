//! Weighted fair queuing with weights from a formula.
//!
//! Source: the scenario gives the weights. The scheduler is [`wfq`] (`docs/mechanisms.md` 2.15). Differences from the
//! source: none known.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use std::collections::BTreeMap;

use celltrain_formula::rules::{Constant, Host, Name, On, Start, Texts, constants_by_vc};
use celltrain_formula::{Kind, Meaning, Unit, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Service, VcKind, wfq};
use crate::error::Fault;
use crate::policy::PerVc;

/// Weighted fair queuing in which a formula of constants gives the weight of each VC.
///
/// Source: the scenario for the weights; Golestani, A self-clocked fair queueing scheme for broadband applications,
/// 1994.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WfqFormula")]
pub struct Table {
    /// `w_v`: the weight of a VC, computed once per VC when the run starts: `G + (1 - sum(G)) / V`. Only the ratios of
    /// the weights count.
    #[schemars(extend("x-expect" = "a formula, such as \"G + (1 - sum(G)) / V\""))]
    pub weight: String,
    /// Constants by name: each one is a number, a formula of constants, or a table of numbers keyed by VC name.
    #[serde(default)]
    pub constants: BTreeMap<String, Constant>,
}

/// The table of a scenario. It is boxed because every port stores an enum of the size of its largest variant.
pub type Config = Box<Table>;

impl Configure for Config {
    fn check(&self) -> Vec<Fault> {
        self.weights(None).err().unwrap_or_default()
    }

    fn constants_by_vc(&self) -> Vec<(&str, &PerVc)> {
        constants_by_vc(&self.constants)
    }

    fn counts_vcs(&self) -> bool {
        true
    }

    fn unused(&self) -> Vec<String> {
        let (state, questions) = (BTreeMap::new(), [("weight", self.weight.as_str(), Kind::Number(None))]);
        Texts { questions: &questions, ..self.texts(&state, None) }.unused()
    }

    fn check_vcs(&self, vcs: &[&str]) -> Vec<Fault> {
        // Faults that do not depend on the VCs are reported once, for the scheduler. A port without VCs has no weights.
        if vcs.is_empty() || !self.check().is_empty() {
            return Vec::new();
        }
        let weights = match self.weights(Some(vcs)) {
            Ok(weights) => weights,
            Err(faults) => return faults,
        };
        let wrong = vcs.iter().zip(weights).find(|(_, weight)| !is_weight(*weight));
        let fault = wrong.map(|(vc, weight)| {
            let problem = format!("gives {weight} for the VC {vc}; a weight must be a number above 0");
            Fault::new("weight", format!("\"{}\"", self.weight), problem)
        });
        fault.into_iter().collect()
    }

    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service> {
        let names: Vec<&str> = vcs.iter().map(|vc| vc.name).collect();
        // Scenario checks refuse formulas that cannot be parsed or give no weight.
        let weights = self.weights(Some(&names)).ok().filter(|weights| weights.iter().copied().all(is_weight));
        debug_assert!(
            weights.is_some() || names.is_empty(),
            "the formulas of a checked scenario give valid weights: \
            {self:?}"
        );
        Some(wfq::service(&weights.unwrap_or_else(|| vec![1.0; names.len()])))
    }
}

impl Table {
    /// Returns the constants of the table, without any state, for compilation.
    fn texts<'a>(&'a self, state: &'a BTreeMap<String, Start>, vcs: Option<&'a [&'a str]>) -> Texts<'a> {
        Texts { constants: &self.constants, state, vc_state: state, questions: &[], events: &[], vcs, first: 0 }
    }

    /// Returns the weights of these VCs, by label; `None` if the VCs are not known.
    fn weights(&self, vcs: Option<&[&str]>) -> Result<Vec<f64>, Vec<Fault>> {
        let state = BTreeMap::new();
        self.texts(&state, vcs).at_start(&Vcs(vcs.map(<[&str]>::len)), ("weight", &self.weight))
    }
}

fn is_weight(weight: f64) -> bool {
    weight > 0.0 && weight.is_finite()
}

/// Number of VCs that cross the port; `None` if not known.
struct Vcs(Option<usize>);

/// All names, besides constants, that a weight's formula may use.
pub const NAMES: &[Name] = &[Name::number("V", Unit::NONE, "VCs that cross the port")];

impl Host for Vcs {
    fn words(&self, _on: On) -> Vec<Word> {
        let meaning = Meaning::Constant(self.0.map_or(1.0, |vcs| vcs as f64));
        NAMES.iter().map(|name| Word { name: name.name.into(), kind: name.kind, meaning }).collect()
    }

    fn is_open(&self, name: &str) -> bool {
        name == "V" && self.0.is_none()
    }

    fn no_random(&self, _on: On) -> Option<&'static str> {
        None
    }

    fn taken(&self) -> [&'static str; 2] {
        ["the port's", "docs/models/wfq_formula.md"]
    }

    fn targets(&self) -> &'static str {
        "nothing"
    }
}

#[cfg(test)]
#[expect(clippy::unnecessary_box_returns, reason = "settings are always stored in a box")]
pub(super) fn sample() -> Config {
    let table = Table {
        weight: "G + (9 - sum(G)) / V".into(),
        constants: [("G".to_string(), Constant::Value(PerVc::from([("default", 0.5)])))].into(),
    };
    table.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::CellQueues;
    use crate::scheduler::Class;
    use crate::scheduler::conformance::{kinds, sent};

    #[expect(clippy::unnecessary_box_returns, reason = "settings are always stored in a box")]
    fn config(weight: &str, constants: &[(&str, Constant)]) -> Config {
        let constants = constants.iter().map(|(name, constant)| ((*name).to_string(), constant.clone())).collect();
        Table { weight: weight.into(), constants }.into()
    }

    fn by_name(entries: &[(&str, f64)]) -> Constant {
        Constant::Value(PerVc::ByName(entries.iter().map(|(vc, value)| ((*vc).to_string(), *value)).collect()))
    }

    #[test]
    fn wfq_uses_the_weight_that_the_formula_computes_for_each_vc() {
        let rest = config("G + (1 - sum(G)) / V", &[("G", by_name(&[("a", 0.5), ("b", 0.2), ("default", 0.0)]))]);
        assert_eq!(rest.check(), []);
        let weights = rest.weights(Some(&["a", "b", "c"])).unwrap();
        let part = (1.0 - 0.7) / 3.0;
        assert_eq!(weights, [0.5 + part, 0.2 + part, part]);
        let product = config("a * W * W", &[("W", by_name(&[("default", 3.0)])), ("a", Constant::Formula("2".into()))]);
        assert_eq!(product.weights(Some(&["a", "b"])).unwrap(), [18.0, 18.0]);
        assert_eq!(config("V", &[]).weights(Some(&["a", "b"])).unwrap(), [2.0, 2.0]);
    }

    #[test]
    fn a_weight_formula_with_constant_results_schedules_cells_exactly_as_constant_weights_do() {
        let formula = config("2 * W + 1", &[("W", by_name(&[("vc0", 1.0), ("default", 0.0)]))]);
        let vcs = kinds(&[Class::Ubr; 2]);
        let written = wfq::Config { weights: PerVc::from([("vc0", 3.0), ("default", 1.0)]) };
        let arrivals = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1];
        let [ours, theirs] = [formula.build(&vcs).unwrap(), written.build(&vcs).unwrap()]
            .map(|service| sent(&mut CellQueues::new(service), &arrivals, 10));
        assert_eq!(ours, theirs);
        assert_eq!(ours[..8], [0, 0, 0, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn a_message_about_an_error_in_a_weight_formula_shows_the_position_of_the_error() {
        let told = |config: &Config, words: &str| {
            let faults = [config.check(), config.check_vcs(&["a", "b"])].concat();
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].problem.contains(words), "{faults:?}");
            faults[0].clone()
        };
        let w = || ("W", by_name(&[("a", 1.0), ("default", 0.0)]));
        assert_eq!(told(&config("w + 1", &[w()]), "does not know w; did you mean W?").excerpt, ["w + 1", "^"]);
        told(&config("W > 1", &[w()]), "is a condition, but must be a number");
        told(&config("W", &[w()]), "gives 0 for the VC b; a weight must be a number above 0");
        told(&config("1 / W", &[w()]), "gives no number");
        told(&config("W - 2", &[w()]), "gives -1 for the VC a");
        told(&config("random()", &[]), "has random(): this formula is evaluated only once");
        told(&config("1", &[("V", by_name(&[("default", 1.0)]))]), "is already one of the port's variables");
        told(&config("X", &[]), "does not know X");
    }
}
