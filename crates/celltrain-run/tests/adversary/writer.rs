//! Writes adversarial scenarios, whose keys and types come from the schema and whose values are edge cases.
//!
//! Most scenarios are valid scenarios of the differential test in which a few values are changed. The other scenarios
//! are drawn from the schema alone. New keys, policies and topologies need no change here.

use std::sync::LazyLock;

use celltrain_core::rng::Stream;
use celltrain_scenario::Scenario;
use celltrain_scenario::scenario::schema;
use celltrain_scenario::topology::Topology;
use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Map, Value, json};

use super::edges;
use crate::{draw, text};

pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(schema);

/// A scenario's text.
pub(crate) struct Written {
    pub(crate) toml: String,
    /// The scenario as JSON, if JSON can express it.
    pub(crate) json: Option<String>,
}

pub(crate) fn scenario(seed: u64) -> Written {
    let mut writer = Writer { rng: Stream::new(seed, "adversary"), names: Vec::new() };
    let mut document = match writer.rng.below(10) {
        0 => writer.any(&SCHEMA, 0),
        kind => Writer::sound(seed, kind),
    };
    writer.learn_names(&document);
    if writer.one_in(4) {
        writer.short_times(&mut document);
    }
    let changes = writer.pick(&[0, 1, 1, 1, 2, 2, 3, 5]);
    for _ in 0..changes {
        writer.change(&mut document, &SCHEMA, 0);
    }
    writer.written(&document)
}

struct Writer {
    rng: Stream,
    /// Names of hosts, links, flows and other items.
    names: Vec<String>,
}

impl Writer {
    fn one_in(&mut self, bound: u32) -> bool {
        self.rng.below(bound) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.below(u32::try_from(from.len()).expect("the length of this list fits in 32 bits")) as usize]
            .clone()
    }

    /// Draws a valid scenario of the differential test, with the keys that a user would write.
    fn sound(seed: u64, kind: u32) -> Value {
        let config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let mut drawn = |strategy: BoxedStrategy<Scenario>| {
            strategy.new_tree(&mut runner).expect("the random generator rejects no values").current()
        };
        let scenario = match kind {
            1..=3 => drawn(draw::any_network()),
            4..=5 => drawn(draw::crowded()),
            6 => drawn(draw::in_step()),
            _ => {
                let topology = draw::any_topology()
                    .new_tree(&mut runner)
                    .expect("the random generator rejects no values")
                    .current();
                return in_numbers(&topology);
            }
        };
        toml::from_str(&text::text(&scenario)).expect("the text is valid TOML")
    }

    fn learn_names(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.len() < 30 => self.names.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| self.learn_names(item)),
            Value::Object(map) => {
                for (key, value) in map {
                    self.names.push(key.clone());
                    self.learn_names(value);
                }
            }
            _ => {}
        }
    }

    /// Draws times whose smallest values once took unlimited memory or time: averaging intervals of ERICA from 1 ps to
    /// 1 s, and retransmission timeouts from 1 us.
    fn short_times(&mut self, document: &mut Value) {
        let Some(document) = document.as_object_mut() else { return };
        for port in document.get_mut("port").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            let kind = self.pick(&["erica", "erica_plus"]);
            let interval = self.time(1);
            if let Some(port) = port.as_object_mut().filter(|_| !self.one_in(3)) {
                port.insert("allocator".into(), json!({kind: {"interval": interval}}));
            }
        }
        let tcp = document.entry("tcp").or_insert_with(|| json!({"reno": {}}));
        for options in tcp.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let Some(options) = options.as_object_mut() else { continue };
            options.insert("timer_granularity".into(), self.time(1_000_000).into());
            options.insert("minimum_rto".into(), self.pick(&[1, 2]).into());
            for key in ["maximum_rto", "initial_rto"] {
                let rto =
                    if self.one_in(2) { options["timer_granularity"].clone() } else { self.time(1_000_000).into() };
                let timer = options.entry("timer").or_insert_with(|| json!({}));
                if let Some(timer) = timer.as_object_mut() {
                    timer.insert(key.into(), rto);
                }
            }
        }
    }

    /// Draws a time between `least` picoseconds and a second.
    fn time(&mut self, least: u64) -> String {
        const SECOND: u64 = 1_000_000_000_000;
        let power = 10u64.pow(self.rng.below((SECOND / least).ilog10() + 1));
        let digit = 1 + u64::from(self.rng.below(9));
        format!("{}ps", SECOND.min(digit * power * least))
    }

    /// Changes the given value, or a value that it contains.
    fn change(&mut self, value: &mut Value, schema: &'static Value, depth: u32) {
        let schema = resolved(schema);
        if depth > 0 && self.one_in(8) {
            *value = self.any(schema, depth);
            return;
        }
        if let Some(choices) = choices(schema) {
            let inner = choices.iter().map(resolved).find(|choice| match value.as_object() {
                Some(map) => map.keys().any(|key| choice["properties"].get(key).is_some()),
                None => value.is_array() && allows(choice, "array"),
            });
            match inner {
                Some(choice) => self.change(value, choice, depth + 1),
                None => *value = self.any(schema, depth),
            }
            return;
        }
        match value {
            Value::Object(map) => self.change_table(map, schema, depth),
            Value::Array(items) => self.change_list(items, schema, depth),
            _ => *value = self.any(schema, depth),
        }
    }

    fn change_table(&mut self, map: &mut Map<String, Value>, schema: &'static Value, depth: u32) {
        if let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) {
            let keys: Vec<&String> = properties.keys().collect();
            let key = self.pick(&keys);
            match map.get_mut(key) {
                Some(_) if self.one_in(25) => {
                    map.remove(key);
                }
                Some(value) => self.change(value, &properties[key], depth + 1),
                None if self.one_in(60) => {
                    let (name, value) = (self.name(), self.any(&properties[key], depth + 1));
                    map.insert(name, value);
                }
                None => {
                    let value = self.any(&properties[key], depth + 1);
                    map.insert(key.clone(), value);
                }
            }
        } else if schema["additionalProperties"].is_object() {
            let keys: Vec<String> = map.keys().cloned().collect();
            if keys.is_empty() || self.one_in(3) {
                let (name, value) = (self.name(), self.any(&schema["additionalProperties"], depth + 1));
                map.insert(name, value);
            } else {
                let key = self.pick(&keys);
                self.change(&mut map[&key], &schema["additionalProperties"], depth + 1);
            }
        }
    }

    fn change_list(&mut self, items: &mut Vec<Value>, schema: &'static Value, depth: u32) {
        let at = if items.is_empty() {
            0
        } else {
            self.rng.below(u32::try_from(items.len()).expect("the length of this list fits in 32 bits")) as usize
        };
        let of_item = schema["prefixItems"].get(at).unwrap_or(&schema["items"]);
        match self.rng.below(8) {
            0 => items.push(self.any(of_item, depth + 1)),
            1 if !items.is_empty() => items.push(items[at].clone()),
            2 if !items.is_empty() => {
                items.remove(at);
            }
            _ if !items.is_empty() => self.change(&mut items[at], of_item, depth + 1),
            _ => {}
        }
    }

    /// Draws any value that matches a schema, or almost matches it.
    fn any(&mut self, schema: &'static Value, depth: u32) -> Value {
        if depth > 0 && self.one_in(150) {
            return edges::of_another_kind(&mut self.rng);
        }
        let own = schema;
        let schema = resolved(schema);
        if schema["x-threshold"] == true && self.one_in(2) {
            let texts = ["90%", "33.3%", "0%", "100.1%", "7 cells", "1 cell", "buffer - 7 cells", "buffer", "7"];
            return self.pick(&texts).into();
        }
        if let Some(choices) = choices(schema) {
            let present: Vec<&'static Value> = choices.iter().filter(|choice| choice["type"] != "null").collect();
            let choice = self.pick(&present);
            return self.any(choice, depth + 1);
        }
        if let Some(quantity) = schema["x-quantity"].as_str() {
            return edges::quantity(&mut self.rng, quantity).into();
        }
        if let Some(words) = schema["enum"].as_array() {
            return self.pick(words);
        }
        if let Some(word) = schema.get("const") {
            return word.clone();
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect(),
            kind => kind.as_str().into_iter().collect(),
        };
        if types.is_empty() {
            // The schema allows anything, or only null.
            return edges::of_another_kind(&mut self.rng);
        }
        match self.pick(&types) {
            "integer" => edges::integer(&mut self.rng, own, schema),
            "number" => edges::number(&mut self.rng, own, schema),
            "boolean" => json!(self.one_in(2)),
            "string" => self.name().into(),
            "array" => {
                let items = schema["prefixItems"].as_array();
                let many = items.map_or_else(|| self.pick(&[0, 1, 1, 2, 3]), Vec::len);
                let of_item = |at: usize| items.map_or(&schema["items"], |items| &items[at]);
                (0..many).map(|at| self.any(of_item(at), depth + 1)).collect()
            }
            _ => self.table(schema, depth),
        }
    }

    fn table(&mut self, schema: &'static Value, depth: u32) -> Value {
        let mut map = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_drawn = if required.contains(&key.as_str()) { !self.one_in(60) } else { self.one_in(4 + depth) };
            if is_drawn {
                map.insert(key.clone(), self.any(property, depth + 1));
            }
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..self.pick(&[0, 1, 1, 2]) {
                let name = self.name();
                map.insert(name, self.any(&schema["additionalProperties"], depth + 1));
            }
        }
        Value::Object(map)
    }

    fn name(&mut self) -> String {
        if self.names.is_empty() || self.one_in(3) {
            return edges::name(&mut self.rng);
        }
        let names = std::mem::take(&mut self.names);
        let name = self.pick(&names);
        self.names = names;
        name
    }

    fn written(&mut self, document: &Value) -> Written {
        let mut toml = String::new();
        let mut is_plain = document.is_object();
        for (key, value) in document.as_object().into_iter().flatten() {
            let line = format!("{} = {}\n", quoted(key), inline(value, &mut is_plain));
            if self.one_in(400) {
                is_plain = false;
                toml.push_str(&line);
            }
            toml.push_str(&line);
        }
        Written { toml, json: is_plain.then(|| document.to_string()) }
    }
}

/// Returns a scenario with this topology, and with settings that suit every topology.
fn in_numbers(topology: &Topology) -> Value {
    json!({
        "duration": "5ms",
        "topology": topology,
        "port": {"default": {"buffer": 60, "policy": {"epd": {"threshold": 30}}}},
    })
}

pub(crate) fn resolved(schema: &'static Value) -> &'static Value {
    match schema["$ref"].as_str() {
        Some(reference) => {
            &SCHEMA["$defs"][reference.rsplit('/').next().expect("splitting a text gives at least one part")]
        }
        None => schema,
    }
}

pub(crate) fn choices(schema: &'static Value) -> Option<&'static Vec<Value>> {
    schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array())
}

fn allows(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|types| types.iter().any(|one| one == kind))
}

/// Formats a value as a line of TOML. Sets `is_plain` to false if JSON or TOML cannot express the value.
fn inline(value: &Value, is_plain: &mut bool) -> String {
    match value {
        Value::Null => {
            *is_plain = false;
            "\"\"".to_string()
        }
        Value::String(text) => {
            if let Some(raw) = text.strip_prefix(edges::RAW) {
                *is_plain = false;
                return raw.to_string();
            }
            quoted(text)
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(item, is_plain)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let mut keys = Vec::new();
            for (key, value) in map {
                // Serialized topologies contain nulls.
                if !value.is_null() {
                    keys.push(format!("{} = {}", quoted(key), inline(value, is_plain)));
                }
            }
            format!("{{ {} }}", keys.join(", "))
        }
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
        }
        other => other.to_string(),
    }
}

/// Quotes a string for TOML, whose escapes are the same as in JSON except for one character.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
