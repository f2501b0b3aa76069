//! Profiles, which give default values to rules, and the macro that declares groups of rules.
//!
//! A group is declared in the file of the code that reads it. If a scenario omits a key of a group, the profile named
//! by `rules` gives the value.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A profile of rules, which gives values to the keys of the groups that are left out. A key that is set wins over the
/// profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rules {
    /// Behaves as RFC 3168, 5681, 6298, 6675 and 9438 specify. Also covers rules without a key: the start of a pause,
    /// the loss of a retransmission, and the timeout after a repeated SYN.
    #[default]
    Rfc,
    /// Behaves as 4.3BSD-Reno does: windows in whole bytes, ssthresh in whole segments, and timers of whole ticks.
    /// Source: its `tcp_input.c` 7.25 and `tcp_timer.c` 7.18 of June 1990.
    Bsd,
    /// Behaves as ns-2's one-way TCP agents do in the reference traces of most of its tests.
    Ns2,
    /// Behaves as ATM Forum 96-1269 and 97-0831 state, with BSD's timers. All packets of DCTCP are ECN-capable, and a
    /// mark leaves at least two segments, as in Linux.
    Paper,
    /// Behaves as Linux 6.12 does, with `sack`: CUBIC, an initial window of ten segments, delayed acknowledgements, PRR,
    /// RACK-TLP and a minimum timeout of 200 ms. Otherwise like `rfc`.
    Today,
}

impl Rules {
    /// All profiles, with their names in scenarios.
    pub const ALL: [(&'static str, Self); 5] =
        [("rfc", Self::Rfc), ("bsd", Self::Bsd), ("ns2", Self::Ns2), ("paper", Self::Paper), ("today", Self::Today)];

    /// Returns whether the profile follows the RFCs.
    #[inline]
    pub fn is_rfc(self) -> bool {
        matches!(self, Self::Rfc | Self::Today)
    }

    /// Returns the profile's values for keys at the top of a TCP's table, if they differ from the usual defaults.
    pub fn top() -> Value {
        // Linux 6.12: CONFIG_DEFAULT_CUBIC (net/ipv4/Kconfig); TCP_INIT_CWND, TCP_DELACK_MIN and TCP_RTO_MIN
        // (include/net/tcp.h), with timers of 1 ms (CONFIG_HZ_1000).
        json!({ "today": {
            "congestion": "cubic",
            "initial_window": 10,
            "delayed_acks": "timer",
            "timer_granularity": "1ms",
            "minimum_rto": 200,
        } })
    }

    /// Adds the profile's values for the absent keys at the top of a TCP's table.
    pub fn complete(table: &mut Map<String, Value>) {
        let profile = table.get("rules").and_then(Value::as_str);
        let Some(Value::Object(values)) = profile.map(|name| Self::top()[name].take()) else { return };
        for (key, value) in values {
            table.entry(key).or_insert(value);
        }
    }
}

/// Adds the value of each profile to the schema of each key in a group, as `x-rules`.
pub(super) fn add_profiles(schema: &mut Schema, values: impl Fn(Rules) -> Value) {
    let profiles = Rules::ALL.map(|(name, rules)| (name, values(rules)));
    let properties = schema.pointer_mut("/properties").and_then(Value::as_object_mut);
    for (key, property) in properties.into_iter().flatten() {
        let value = |(name, values): &(&str, Value)| Some((String::from(*name), values.get(key)?.clone()));
        let of_rules: Map<_, _> = profiles.iter().filter_map(value).filter(|(_, value)| !value.is_null()).collect();
        if !of_rules.is_empty() {
            property["x-rules"] = of_rules.into();
        }
    }
}

/// Declares a group of rules: `$Rules` with the values in effect, and `$Options` with the group's keys in a scenario.
macro_rules! rules {
    (
        $(#[doc = $about:literal])*
        pub struct $Rules:ident, $Options:ident {
            $(
                $(#[doc = $doc:literal])*
                $(#[schemars($($check:tt)*)])?
                $key:ident: $Value:ty,
            )*
        }

        optional {
            $(
                $(#[doc = $own_doc:literal])*
                $(#[schemars($($own_check:tt)*)])?
                $own:ident: $Own:ty,
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, ::serde::Serialize)]
        pub struct $Rules {
            $($(#[doc = $doc])* pub $key: $Value,)*
            $($(#[doc = $own_doc])* pub $own: Option<$Own>,)*
        }

        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(transform = $Options::add_profiles)]
        pub struct $Options {
            $($(#[doc = $doc])* $(#[schemars($($check)*)])? pub $key: Option<$Value>,)*
            $($(#[doc = $own_doc])* $(#[schemars($($own_check)*)])? pub $own: Option<$Own>,)*
        }

        impl $Options {
            /// Returns the rules in effect: the options that are set, and the profile's values for the others.
            pub fn by(&self, rules: $crate::tcp::Rules) -> $Rules {
                let profile = $Rules::of(rules);
                $Rules {
                    $($key: self.$key.unwrap_or(profile.$key),)*
                    $($own: self.$own.or(profile.$own),)*
                }
            }

            fn add_profiles(schema: &mut ::schemars::Schema) {
                $crate::tcp::profile::add_profiles(schema, |rules| {
                    ::serde_json::to_value($Rules::of(rules)).expect("every value of a profile can be written as JSON")
                });
            }
        }
    };
}

pub(super) use rules;
