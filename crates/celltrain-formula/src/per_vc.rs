//! A setting that may differ from VC to VC.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SettingFault;
use crate::names::{by_name, is_in_range};

/// One number for all VCs, or a table keyed by VC name: `{ tcp1 = 305, "tcp2-4" = 611, default = 100 }`. A range covers
/// all names with numbers from the first to the last, and `default` all VCs that the table does not name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-expect" = "a number, or a table of numbers keyed by VC name"))]
pub enum PerVc {
    /// One value for all VCs.
    Same(f64),
    /// By name.
    ByName(BTreeMap<String, f64>),
}

impl<const N: usize> From<[(&str, f64); N]> for PerVc {
    fn from(values: [(&str, f64); N]) -> Self {
        Self::ByName(values.map(|(name, value)| (name.to_string(), value)).into())
    }
}

/// Key of the value for all VCs that a table does not name.
const DEFAULT: &str = "default";

impl PerVc {
    /// Returns the value for the VC with this name: under its name, in the first range that contains it, or the
    /// default.
    pub fn of(&self, name: &str) -> Option<f64> {
        match self {
            PerVc::Same(value) => Some(*value),
            PerVc::ByName(table) => by_name(table, name).or_else(|| table.get(DEFAULT)).copied(),
        }
    }

    /// Returns the value of each of the VCs with these names.
    ///
    /// # Panics
    ///
    /// If a VC has no value. The scenario's checks refuse this case.
    pub fn resolve(&self, names: &[&str]) -> Vec<f64> {
        names.iter().map(|name| self.of(name).expect("every VC has a value for every setting of its ports")).collect()
    }

    /// Returns a fault for every invalid value; `key` is the key of the setting.
    pub fn check(&self, key: &str, is_right: impl Fn(f64) -> bool, problem: &str) -> Vec<SettingFault> {
        match self {
            PerVc::Same(value) if is_right(*value) => Vec::new(),
            PerVc::Same(value) => vec![SettingFault::new(key, value, problem)],
            PerVc::ByName(table) => {
                let wrong = table.iter().filter(|(_, value)| !is_right(**value));
                wrong.map(|(name, value)| SettingFault::new(format!("{key}.{name}"), value, problem)).collect()
            }
        }
    }

    /// Returns a fault for every invalid weight: only the ratios of weights count, so any positive number is valid.
    pub fn check_weights(&self) -> Vec<SettingFault> {
        let problem = "is not a weight; it must be a number above 0 (only the ratios of the weights count)";
        self.check("weights", |w| w > 0.0 && w.is_finite(), problem)
    }

    /// Returns the keys that match none of the given VCs.
    pub fn unknown<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = &'a str> {
        let keys = match self {
            PerVc::Same(_) => None,
            PerVc::ByName(table) => Some(table.keys()),
        };
        let known = |key: &str| key == DEFAULT || names.iter().any(|name| name == key || is_in_range(key, name));
        keys.into_iter().flatten().map(String::as_str).filter(move |key| !known(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_for_one_vc_overrides_a_range_and_a_range_overrides_the_default() {
        let setting = PerVc::from([("tcp2", 7.0), ("tcp1-3", 5.0), ("default", 1.0)]);
        assert_eq!(setting.resolve(&["tcp1", "tcp2", "tcp3", "tcp4", "tcp1-acks"]), [5.0, 7.0, 5.0, 1.0, 1.0]);
        assert_eq!(PerVc::Same(2.0).resolve(&["x", "y"]), [2.0, 2.0]);
    }

    #[test]
    fn an_invalid_per_vc_value_is_reported_with_its_key() {
        let faults = PerVc::from([("tcp1", 1.0), ("tcp2-3", 0.0), ("default", f64::NAN)]).check_weights();
        let told: Vec<_> = faults.iter().map(|fault| (fault.key.as_str(), fault.value.as_str())).collect();
        assert_eq!(told, [("weights.default", "NaN"), ("weights.tcp2-3", "0")]);
        assert_eq!(PerVc::Same(-1.0).check_weights()[0].key, "weights");
        assert!(PerVc::Same(149.76).check_weights().is_empty());
    }

    #[test]
    fn a_vc_has_no_value_if_neither_the_vc_nor_a_default_is_listed() {
        assert_eq!(PerVc::from([("tcp1-3", 5.0)]).of("tcp13"), None);
    }

    #[test]
    fn keys_for_nonexistent_vcs_are_reported() {
        let names: Vec<String> = ["tcp1", "tcp2"].map(String::from).into();
        let setting = PerVc::from([("tcp1-9", 1.0), ("tpc2", 2.0), ("default", 1.0), ("tcp3", 1.0)]);
        assert_eq!(setting.unknown(&names).collect::<Vec<_>>(), ["tcp3", "tpc2"]);
    }
}
