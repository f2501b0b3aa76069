//! Checks the values of a scenario against the JSON Schema, and reports every fault in plain words.
//!
//! The schema is generated from the Rust types, so this module names no key. The checks support the schema features
//! that these types use, and three extensions: `x-quantity` (a number with a unit), `x-threshold` (a threshold of a
//! buffer) and `x-expect` (a description of the expected value). Malformed values are removed from the document, so
//! that the other values can still be read and checked.

use std::sync::LazyLock;

use celltrain_core::aal5::CELL_BYTES;
use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::memory::PauseResponse;
use celltrain_core::threshold::Threshold;
use celltrain_core::units::{BitRate, Bytes, Duration};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::document::join;
use crate::fault::{Faults, KeyFault, nearest};
use crate::scenario::schema;

/// Checks a document and removes malformed values.
///
/// # Errors
/// Returns [`Interrupted`] if the token is cancelled.
pub fn check(root: &mut Value, token: &CancellationToken<'_>) -> Result<Faults, Interrupted> {
    // The schema is generated only once, because a sweep reads thousands of scenarios.
    static SCHEMA: LazyLock<Value> = LazyLock::new(schema);
    let cell_bytes = root["cell"]["size"].as_str().and_then(|size| size.parse::<Bytes>().ok());
    let cell_bytes = cell_bytes.map_or(CELL_BYTES, |size| size.bytes).max(1);
    let definitions = &SCHEMA["$defs"];
    let mut form = Form { definitions, cell_bytes, faults: Faults::default(), token, stopped: Ok(()) };
    form.value(root, &SCHEMA, "");
    form.stopped.map(|()| form.faults)
}

/// Describes the value that a schema expects, in words that can follow "is not".
#[cfg(test)]
pub(crate) fn expectation(schema: &Value) -> String {
    let token = CancellationToken::never();
    let form = Form { definitions: schema, cell_bytes: 1, faults: Faults::default(), token: &token, stopped: Ok(()) };
    form.expectation(schema)
}

struct Form<'a> {
    definitions: &'a Value,
    /// Number of bytes in a cell.
    cell_bytes: u64,
    faults: Faults,
    token: &'a CancellationToken<'a>,
    /// An error if the check was cancelled. A cancelled check skips all remaining values.
    stopped: Result<(), Interrupted>,
}

impl<'a> Form<'a> {
    /// Checks a value. Returns false if the value is malformed and must be removed.
    fn value(&mut self, value: &mut Value, schema: &'a Value, path: &str) -> bool {
        self.stopped = self.stopped.and_then(|()| self.token.tick(1));
        if self.stopped.is_err() {
            return true;
        }
        let schema = self.resolve(schema);
        if schema["x-threshold"] == true {
            return self.threshold(value, schema, path);
        }
        if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            return self.choice(value, schema, choices, path);
        }
        if value.is_null() && allows(schema, "null") {
            return true;
        }
        if let Some(quantity) = schema["x-quantity"].as_str() {
            return self.quantity(value, quantity, path);
        }
        match value {
            Value::Object(map) if allows(schema, "object") => {
                self.object(map, schema, path);
                true
            }
            Value::Array(items) if allows(schema, "array") => self.array(items, schema, path),
            _ if fits(value, schema) => true,
            Value::String(text) if schema["x-unit"] == "cells" && in_cells(text, self.cell_bytes).is_some() => {
                let problem = in_cells(text, self.cell_bytes).unwrap_or_default();
                self.refuse(value, problem, path)
            }
            Value::String(text) if is_text_for_a_number(text, schema) => {
                let problem = format!("is a text; write a number without quotes, such as {}", example(text, schema));
                self.refuse(value, problem, path)
            }
            _ => self.refuse(value, format!("is not {}", self.expectation(schema)), path),
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, schema: &'a Value, path: &str) {
        let properties = schema["properties"].as_object();
        let known: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        // If a required key is misspelt, do not also report the key as missing.
        let mut meant = Vec::new();
        let before = self.faults.len();
        map.retain(|key, value| {
            let path = join(path, key);
            if let Some(property) = schema["properties"].get(key) {
                return self.value(value, property, &path);
            }
            match &schema["additionalProperties"] {
                Value::Bool(false) => {
                    if let Some(place) = schema["x-moved"][key.as_str()].as_str() {
                        let table = path.strip_suffix(key.as_str()).unwrap_or_default();
                        self.faults.push(KeyFault::of_value(&path, shown(value), format!("is now {table}{place}")));
                        return false;
                    }
                    meant.extend(nearest(key, known.iter().copied()));
                    self.faults.push(KeyFault::of_key(&path, unknown_key(key, &known)));
                    false
                }
                // In addition to the known keys, users may add tables of their own, but no other values.
                Value::Object(_) if !known.is_empty() && !value.is_object() => {
                    self.faults.push(KeyFault::of_key(&path, unknown_key(key, &known)));
                    false
                }
                Value::Object(_) => self.value(value, &schema["additionalProperties"], &path),
                _ => true,
            }
        });
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let path = join(path, required);
            let within = |fault: &KeyFault| {
                fault.key.strip_prefix(&path).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            };
            let already_refused = meant.contains(&required) || self.faults[before..].iter().any(within);
            if !map.contains_key(required) && !already_refused {
                let expectation = self.expectation(&schema["properties"][required]);
                self.faults.push(KeyFault::of_key(path, format!("is missing; it must be {expectation}")));
            }
        }
    }

    fn array(&mut self, items: &mut [Value], schema: &'a Value, path: &str) -> bool {
        let exactly = schema["prefixItems"].as_array();
        if let Some(exactly) = exactly.filter(|exactly| exactly.len() != items.len()) {
            let problem = format!("has {} items; it must have {}", items.len(), exactly.len());
            self.faults.push(KeyFault::of_key(path, problem));
            return false;
        }
        if let Some(most) = schema["maxItems"].as_u64().filter(|&most| items.len() as u64 > most) {
            let problem = format!("has {} items; at most {most} are possible", items.len());
            self.faults.push(KeyFault::of_key(path, problem));
            return false;
        }
        let mut good = true;
        for (i, item) in items.iter_mut().enumerate() {
            let schema = exactly.map_or(&schema["items"], |exactly| &exactly[i]);
            good &= self.value(item, schema, &format!("{path}[{i}]"));
        }
        good
    }

    fn choice(&mut self, value: &mut Value, schema: &'a Value, choices: &'a [Value], path: &str) -> bool {
        let keys: Vec<&str> = choices.iter().filter_map(only_key).collect();
        if keys.len() == choices.len() {
            return self.keyed_choice(value, choices, &keys, path);
        }
        if choices.iter().any(|choice| self.fits_quietly(value, choice)) {
            return true;
        }
        if schema["x-unit"] == "cells"
            && let Some(problem) = value.as_str().and_then(|text| in_cells(text, self.cell_bytes))
        {
            return self.refuse(value, problem, path);
        }
        let words: Vec<&str> = choices.iter().flat_map(constants).collect();
        let meant = value.as_str().and_then(|given| nearest(given, words.iter().copied()));
        let hint = meant.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        // If the value is optional, report the requirements that apply to a value that is present.
        let present: Vec<&Value> = choices.iter().filter(|choice| choice["type"] != "null").collect();
        if let ([only], None) = (present.as_slice(), schema.get("x-expect")) {
            return self.value(value, only, path);
        }
        // If the value is a table and only one choice is a table, the fault must be inside the table.
        let tables: Vec<&Value> =
            present.iter().copied().filter(|choice| allows(self.resolve(choice), "object")).collect();
        if let (true, &[table]) = (value.is_object(), tables.as_slice()) {
            return self.value(value, table, path);
        }
        self.refuse(value, format!("is not {}{hint}", self.expectation(schema)), path)
    }

    /// Checks a choice written as a table whose only key is its name, such as a policy, a TCP variant or a topology.
    fn keyed_choice(&mut self, value: &mut Value, choices: &'a [Value], keys: &[&str], path: &str) -> bool {
        let list = keys.join(", ");
        let Value::Object(map) = value else {
            let example = keys[0];
            let problem = match value.as_str() {
                Some(given) if keys.contains(&given) => format!("is not a table; write the table [{path}.{given}]"),
                _ => format!("is not a table; write a table such as [{path}.{example}], one of {list}"),
            };
            return self.refuse(value, problem, path);
        };
        let mut good = true;
        for (key, inner) in map.iter_mut() {
            let path = join(path, key);
            if let Some(i) = keys.iter().position(|known| known == key) {
                good &= self.value(inner, &choices[i]["properties"][key.as_str()], &path);
            } else {
                let meant = nearest(key, keys.iter().copied());
                let problem = match meant {
                    Some(name) => format!("is unknown; did you mean {name}? It must be one of {list}"),
                    None => format!("is unknown; it must be one of {list}"),
                };
                self.faults.push(KeyFault::of_key(path, problem));
                good = false;
            }
        }
        if map.len() != 1 && good {
            let named: Vec<&str> = map.keys().map(String::as_str).collect();
            let problem = match named.as_slice() {
                [] => format!("is empty; it must be one of {list}"),
                named => format!("names {} ({}); choose exactly one", named.len(), named.join(", ")),
            };
            self.faults.push(KeyFault::of_key(path, problem));
            good = false;
        }
        good
    }

    fn quantity(&mut self, value: &Value, quantity: &str, path: &str) -> bool {
        let text = match value {
            Value::String(text) => text.clone(),
            // The error of the parser of quantities also explains that a bare number lacks a unit.
            Value::Number(number) => number.to_string(),
            _ => "?".to_string(),
        };
        let error = match quantity {
            "rate" => text.parse::<BitRate>().err(),
            "time" => text.parse::<Duration>().err(),
            PauseResponse::KIND => text.parse::<PauseResponse>().err(),
            _ => text.parse::<Bytes>().err(),
        };
        let Some(error) = error else {
            return value.is_string();
        };
        self.refuse(value, format!("is not {error}"), path)
    }

    fn threshold(&mut self, value: &Value, schema: &Value, path: &str) -> bool {
        if !value.is_number() && !value.is_string() {
            return self.refuse(value, format!("is not {}", self.expectation(schema)), path);
        }
        match Threshold::deserialize(value) {
            Ok(_) => true,
            Err(problem) => self.refuse(value, problem.to_string(), path),
        }
    }

    fn refuse(&mut self, value: &Value, problem: String, path: &str) -> bool {
        self.faults.push(KeyFault::of_value(path, shown(value), problem));
        false
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => {
                &self.definitions[reference.rsplit('/').next().expect("splitting a text gives at least one part")]
            }
            None => schema,
        }
    }

    /// Returns whether a value matches a schema, without reporting faults.
    fn fits_quietly(&mut self, value: &Value, schema: &'a Value) -> bool {
        let mut trial = Form { faults: Faults::default(), ..*self };
        let fits = trial.value(&mut value.clone(), schema, "") && trial.faults.is_empty();
        self.stopped = trial.stopped;
        fits
    }

    /// Describes the expected value, in words that can follow "is not" or "must be".
    fn expectation(&self, schema: &'a Value) -> String {
        let own = &schema["x-expect"];
        let schema = self.resolve(schema);
        if let Some(expect) = own.as_str().or_else(|| schema["x-expect"].as_str()) {
            return expect.to_string();
        }
        if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            let keys: Vec<&str> = choices.iter().filter_map(only_key).collect();
            if keys.len() == choices.len() {
                return format!("a table named after one of {}", keys.join(", "));
            }
            let each: Vec<String> = choices.iter().map(|choice| self.expectation(choice)).collect();
            return if each.iter().all(|e| e.starts_with('"')) {
                format!("one of {}", each.join(", "))
            } else {
                each.join(" or ")
            };
        }
        if let Some(quantity) = schema["x-quantity"].as_str() {
            return format!("a {quantity} such as {}", schema["examples"][0]);
        }
        if let Some(words) = words(schema) {
            let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            return quoted.join(", ");
        }
        let most = schema["maximum"].as_f64().map(|most| most.to_string()).or_else(|| largest(schema));
        let range = match (schema["minimum"].as_f64(), most) {
            (Some(least), Some(most)) => format!(" ({least} to {most})"),
            (Some(least), None) => format!(" ({least} or more)"),
            _ => String::new(),
        };
        // Describe an optional value in the same words as a required value.
        let present = schema["type"].as_array().and_then(|types| types.iter().find(|&kind| kind != "null"));
        let kind = match present.unwrap_or(&schema["type"]).as_str() {
            Some("integer") => "a whole number",
            Some("number") => "a number",
            Some("boolean") => "true or false",
            Some("string") => "a text",
            Some("array") => "a list",
            Some("null") => "absent",
            _ => "a table",
        };
        format!("{kind}{range}")
    }
}

/// Returns whether a plain value has the type, range and spelling that a schema requires.
fn fits(value: &Value, schema: &Value) -> bool {
    let typed = match value {
        Value::Null => allows(schema, "null"),
        Value::Bool(_) => allows(schema, "boolean"),
        Value::String(text) => {
            allows(schema, "string") && words(schema).is_none_or(|words| words.contains(&text.as_str()))
        }
        Value::Number(number) => {
            allows(schema, "number") || (allows(schema, "integer") && (number.is_u64() || number.is_i64()))
        }
        Value::Array(_) | Value::Object(_) => false,
    };
    let number = value.as_f64().unwrap_or(0.0);
    typed
        && schema["minimum"].as_f64().is_none_or(|least| number >= least)
        && schema["maximum"].as_f64().is_none_or(|most| number <= most)
        && (schema["format"] != "uint32" || number <= f64::from(u32::MAX))
}

/// Returns the largest value of the integer type that the schema names; `None` if it names no integer type.
fn largest(schema: &Value) -> Option<String> {
    match schema["format"].as_str()? {
        "uint8" => Some(u8::MAX.to_string()),
        "uint16" => Some(u16::MAX.to_string()),
        "uint32" => Some(u32::MAX.to_string()),
        "uint64" => Some("2^64 - 1".to_string()),
        _ => None,
    }
}

/// Returns the problem of a size in bytes that is given where a number of cells is required; `None` if the text is not
/// a size.
fn in_cells(text: &str, cell_bytes: u64) -> Option<String> {
    let size: Bytes = text.parse().ok()?;
    let cells = size.bytes.div_ceil(cell_bytes);
    Some(format!(
        "is a size, but this key takes a number of cells: {size} are {cells} cells of {cell_bytes} B; write \
                  {cells}"
    ))
}

/// Returns whether the value is a text although a number is required. TOML's `nan`, `inf` and integers beyond 128 bits
/// count as numbers, although the parser represents them as text.
fn is_text_for_a_number(text: &str, schema: &Value) -> bool {
    let is_number = text.parse::<f64>().is_ok_and(|number| number.is_nan() || number.abs() > i128::MAX as f64);
    (allows(schema, "number") || allows(schema, "integer")) && !is_number
}

/// Returns the number that a text such as `32` or `1/32` represents, if the schema accepts this number. Otherwise
/// returns any number that the schema accepts.
fn example(text: &str, schema: &Value) -> Value {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    let quotient = number(above).zip(number(below)).map(|(above, below)| above / below);
    let whole = text.trim().parse::<u64>().ok().map(Value::from);
    let meant = whole.or_else(|| quotient.filter(|number| number.is_finite()).map(Value::from));
    let own = [&schema["default"], &schema["minimum"]].into_iter().find(|own| own.is_number());
    meant.filter(|number| fits(number, schema)).or_else(|| own.cloned()).unwrap_or(Value::from(1))
}

fn allows(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

fn words(schema: &Value) -> Option<Vec<&str>> {
    let listed = schema["enum"].as_array().map(|words| words.iter().filter_map(Value::as_str).collect());
    listed.or_else(|| schema["const"].as_str().map(|word| vec![word]))
}

fn constants(schema: &Value) -> Vec<&str> {
    words(schema).unwrap_or_default()
}

/// Returns the key of a choice written as a table with one key.
fn only_key(schema: &Value) -> Option<&str> {
    let required = schema["required"].as_array()?;
    (required.len() == 1 && schema["properties"].as_object()?.len() == 1).then(|| required[0].as_str())?
}

fn unknown_key(key: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return "is unknown; this table has no keys".to_string();
    }
    let keys = known.join(", ");
    match nearest(key, known.iter().copied()) {
        Some(name) => format!("is unknown; did you mean {name}? Known keys: {keys}"),
        None => format!("is unknown; known keys: {keys}"),
    }
}

/// Formats a value for a message, as in TOML.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "{...}".to_string(),
        Value::Array(items) => format!("[{} item{}]", items.len(), if items.len() == 1 { "" } else { "s" }),
        // The parser represents an integer beyond 64 bits as a float.
        Value::Number(number) if number.as_f64().is_some_and(|it| it.abs() >= u64::MAX as f64 && it.abs() < 1e40) => {
            format!("{:.0}", number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}
