//! The models and their settings, as the schema of scenarios lists them.

use std::sync::LazyLock;

use celltrain_core::units::{BitRate, Bytes, Duration};
use celltrain_scenario::scenario::schema;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A random byte for each setting of a model, in schema order. A byte below [`DRAWN`] selects the default.
pub(super) type Drawn = [u8; 32];

pub(super) const DRAWN: u8 = 128;

pub(super) const PLAIN: Drawn = [0; 32];

pub(super) fn drawn() -> BoxedStrategy<Drawn> {
    any::<Drawn>().boxed()
}

pub(super) static POLICIES: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Policy"));
pub(super) static SCHEDULERS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Scheduler"));
pub(super) static ALLOCATORS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Allocator"));
pub(super) static DISCARDS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("EdgeDiscard"));
pub(super) static TCPS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Tcp"));
pub(super) static TRAFFIC: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Traffic"));

/// Creates the model of this name from a list of kinds, with some of its settings drawn.
pub(super) fn named<T: serde::de::DeserializeOwned>(kinds: &[Kind], name: &str, drawn: &Drawn, capacity: u32) -> T {
    let kind = kinds.iter().find(|kind| kind.name == name).expect("the schema lists this name");
    serde_json::from_value(json!({name: kind.settings(drawn, capacity)})).expect("the schema lists all settings")
}

/// A kind of policy, scheduler, TCP or traffic with its settings. The schema lists the kinds, so a new kind needs no
/// change in this file.
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) settings: Vec<Setting>,
}

pub(super) struct Setting {
    /// Key of the setting. A key in a group follows the name of the group and a dot.
    pub(super) key: String,
    pub(super) required: bool,
    pub(super) range: Range,
}

pub(super) enum Range {
    Words(Vec<Value>),
    Threshold,
    Cells,
    /// A number of cells for each VC. The sum over all VCs must be less than the buffer.
    CellsOfAVc,
    Number {
        least: f64,
        most: f64,
    },
    /// A share for each VC. The sum over all VCs must not exceed 1.
    ShareOfAVc,
    /// One number for all VCs, or a table with a number for each VC.
    NumberOfAVc,
    /// A small number of segments, packets or ticks.
    Few,
}

/// Returns the kinds in a schema definition that is a choice between tables.
pub(super) fn kinds(definition: &str) -> Vec<Kind> {
    let schema = schema();
    // The schema of an optional setting describes its values in the first of two choices.
    let resolve = |value: &Value| match value["$ref"].as_str().or(value["anyOf"][0]["$ref"].as_str()) {
        Some(reference) => schema["$defs"][reference.rsplit('/').next().unwrap()].clone(),
        None => value.clone(),
    };
    let kind = |choice: &Value| {
        let (name, table) = choice["properties"].as_object().unwrap().iter().next().unwrap();
        let table = resolve(table);
        let required: Vec<&str> =
            table["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let setting = |group: &str, (key, value): (&String, &Value)| {
            let resolved = resolve(value);
            let quantity =
                resolved["x-quantity"].as_str().filter(|_| ["Allocator", "Policy", "Traffic"].contains(&definition));
            let range = quantity.map(quantities).or_else(|| range(value, &resolved))?;
            Some(Setting { key: format!("{group}{key}"), required: required.contains(&key.as_str()), range })
        };
        let settings = table["properties"].as_object().into_iter().flatten().flat_map(|(key, value)| {
            let group = resolve(value);
            match group["properties"].as_object().filter(|_| definition == "Tcp" && value["$ref"].is_string()) {
                Some(keys) => keys.iter().filter_map(|one| setting(&format!("{key}."), one)).collect::<Vec<_>>(),
                None => setting("", (key, value)).into_iter().collect(),
            }
        });
        let settings = settings.collect();
        Kind { name: name.clone(), settings }
    };
    schema["$defs"][definition]["oneOf"].as_array().unwrap().iter().map(kind).collect()
}

pub(super) fn range(own: &Value, schema: &Value) -> Option<Range> {
    let constants = |choices: &Value| -> Option<Vec<Value>> {
        choices.as_array()?.iter().map(|choice| choice.get("const").cloned()).collect()
    };
    if let Some(words) = schema["enum"].as_array().cloned().or_else(|| constants(&schema["oneOf"])) {
        return Some(Range::Words(words));
    }
    let is_in_cells = own["x-unit"] == "cells";
    if schema["x-threshold"] == true || schema["anyOf"][0]["x-threshold"] == true {
        return Some(Range::Threshold);
    }
    // The value is one number for all VCs, or a table with a number for each VC.
    let is_number = |choice: &Value| choice["type"] == "number";
    if schema["anyOf"].as_array().is_some_and(|choices| choices.iter().any(is_number)) {
        let is_share = own["x-expect"].as_str().is_some_and(|expect| expect.starts_with("a share of the link"));
        return Some(match (is_in_cells, is_share) {
            (true, _) => Range::CellsOfAVc,
            (_, true) => Range::ShareOfAVc,
            _ => Range::NumberOfAVc,
        });
    }
    if is_in_cells {
        return Some(Range::Cells);
    }
    match schema["type"].as_str().or(own["x-rules"].as_object().and(schema["type"][0].as_str())) {
        Some("boolean") => Some(Range::Words(vec![json!(false), json!(true)])),
        Some("number") => {
            let least = own["minimum"].as_f64().unwrap_or(0.0);
            Some(Range::Number { least, most: own["maximum"].as_f64().unwrap_or(least + 2.0) })
        }
        Some("integer") => Some(Range::Few),
        // All other settings are set when the scenario is assembled, or not at all.
        _ => None,
    }
}

/// Returns values of a quantity of traffic or of an allocator: rates, sizes or times.
pub(super) fn quantities(quantity: &str) -> Range {
    Range::Words(match quantity {
        "rate" => [10_000_000, 34_368_000, 124_416_000, 155_520_000, 200_000_000, 7_777_777]
            .map(|rate| json!(BitRate::from_bits_per_second(rate)))
            .into(),
        "size" => [512, 1, 64, 1_472, 9_140, 50_000].map(|bytes| json!(Bytes { bytes })).into(),
        "time" => [1, 333, 1_000, 5_000].map(|time| json!(Duration::from_microseconds(time))).into(),
        _ => panic!("{quantity} is not a known kind of quantity"),
    })
}

/// Sets a key of a table, or a key of a group in the table.
pub(super) fn put(table: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        Some((group, key)) => {
            let group = table.entry(group).or_insert_with(|| json!({}));
            group.as_object_mut().expect("a group is a table").insert(key.into(), value);
        }
        None => _ = table.insert(key.into(), value),
    }
}

impl Kind {
    /// Returns some settings of the kind with random values. Shares of the buffer refer to `capacity` cells.
    pub(super) fn settings(&self, drawn: &Drawn, capacity: u32) -> Map<String, Value> {
        let quarters = |share: f64| json!((8.0 * share).ceil().max(1.0) / 4.0);
        let mut settings = Map::new();
        for (setting, &byte) in self.settings.iter().zip(drawn.iter().cycle()) {
            // If no value was drawn for a required setting, use four fifths of its range.
            let (part, of) = if byte < DRAWN { (4, 5) } else { (byte - DRAWN, u8::MAX - DRAWN) };
            let share = f64::from(part) / f64::from(of);
            let value = match &setting.range {
                _ if byte < DRAWN && !setting.required => continue,
                Range::Words(words) => words[usize::from(byte) % words.len()].clone(),
                Range::Threshold if byte % 2 == 0 => json!((share * 100.0).round() / 100.0),
                Range::Threshold => {
                    json!(format!("{} cells", u64::from(capacity) * u64::from(part) / u64::from(of)))
                }
                Range::Cells => json!(u64::from(capacity) * u64::from(part) / u64::from(of)),
                Range::Few => json!(1 + byte % 4),
                // Use multiples of a quarter, so that some values are multiples of other values.
                Range::NumberOfAVc if byte % 2 == 0 => quarters(share),
                Range::NumberOfAVc => json!({"tcp1": quarters(share), "tcp2": quarters(1.0 - share), "default": 1}),
                Range::CellsOfAVc => json!((share * f64::from(capacity) / 50.0).ceil()),
                // At most about forty VCs share a link.
                Range::ShareOfAVc if byte % 2 == 0 => json!((share * 20.0).round() / 1000.0),
                Range::ShareOfAVc => json!({"tcp1": share / 4.0, "tcp2": (1.0 - share) / 4.0, "default": 0.01}),
                Range::Number { least, most } => {
                    json!((((least + share * (most - least)) * 100.0).round() / 100.0).max(*least))
                }
            };
            put(&mut settings, &setting.key, value);
        }
        settings
    }
}

pub(super) fn seed(drawn: &Drawn) -> u64 {
    drawn.iter().fold(0u64, |seed, &byte| seed.wrapping_mul(257).wrapping_add(byte.into()))
}
