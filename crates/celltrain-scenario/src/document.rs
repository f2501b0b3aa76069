//! Parses the text of a scenario into values with line numbers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::{Fault, KeyFault};

/// The values in the text of a scenario, and the line of each key.
#[derive(Clone, Debug)]
pub struct Document {
    /// The values in the text.
    pub root: Value,
    lines: BTreeMap<String, usize>,
    from_text: bool,
}

/// A syntax error that prevents a text from being parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxFault {
    line: Option<usize>,
    problem: String,
}

impl SyntaxFault {
    /// Converts the error to a fault in the file called `source`.
    pub fn reported(self, source: &str) -> Fault {
        KeyFault::of_key("", self.problem).reported(source, self.line)
    }
}

/// Maximum size of a scenario in TOML. Even scenarios that list networks of ten thousand nodes are smaller, so a larger
/// file cannot be a scenario.
const MAX_BYTES: usize = 16 << 20;
/// Maximum size of a scenario in JSON. This limit is higher than that of TOML, because programs write every default
/// value.
const MAX_JSON_BYTES: usize = 4 * MAX_BYTES;
/// Maximum length of a quotation from the text in a message. Messages also contain the line number, so longer
/// quotations are not needed.
const MAX_QUOTED: usize = 60;
/// Maximum number of syntax errors reported for a text.
const MAX_SYNTAX_FAULTS: usize = 20;

impl Document {
    /// Reads a text in TOML.
    ///
    /// # Errors
    /// Returns the syntax errors of the text, each with its line.
    pub fn from_toml(text: &str) -> Result<Self, Vec<SyntaxFault>> {
        refuse_large(text, MAX_BYTES)?;
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let mut faults: Vec<SyntaxFault> = Vec::new();
            let lines = LineIndex::new(text);
            for fault in errors.iter().map(|error| syntax_fault(text, &lines, error)) {
                // If the nesting is too deep, all further errors of the parser are meaningless.
                let is_too_deep = fault.problem.contains("recurse");
                if faults.last() != Some(&fault) {
                    faults.push(fault);
                }
                if is_too_deep || faults.len() == MAX_SYNTAX_FAULTS {
                    break;
                }
            }
            return Err(faults);
        }
        let mut document = Self { root: Value::Null, lines: BTreeMap::new(), from_text: true };
        let lines = LineIndex::new(text);
        document.root = document.table(table.get_ref(), "", &lines);
        Ok(document)
    }

    /// Reads a text in JSON.
    ///
    /// # Errors
    /// Returns the syntax error of the text, with its line.
    pub fn from_json(text: &str) -> Result<Self, Vec<SyntaxFault>> {
        refuse_large(text, MAX_JSON_BYTES)?;
        match serde_json::from_str(text) {
            Ok(root) => Ok(Self { root, lines: BTreeMap::new(), from_text: false }),
            Err(error) => Err(vec![SyntaxFault { line: Some(error.line()), problem: format!("is not JSON: {error}") }]),
        }
    }

    /// Returns the line of a key, or of the nearest enclosing table in the text; `None` for a scenario in JSON.
    pub fn line(&self, key: &str) -> Option<usize> {
        if !self.from_text {
            return None;
        }
        let mut key = key;
        loop {
            if let Some(&line) = self.lines.get(key) {
                return Some(line);
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => return Some(1),
            }
        }
    }

    /// Returns the line of every key in the text, keyed by path.
    pub fn lines(&self) -> &BTreeMap<String, usize> {
        &self.lines
    }

    fn table(&mut self, table: &DeTable<'_>, path: &str, lines: &LineIndex) -> Value {
        let mut map = Map::new();
        for (key, value) in table {
            let name = key.get_ref().to_string();
            let path = join(path, &name);
            self.lines.insert(path.clone(), lines.line(key.span().start));
            let value = self.value(value, &path, lines);
            map.insert(name, value);
        }
        Value::Object(map)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, path: &str, lines: &LineIndex) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::from(text.as_ref()),
            DeValue::Integer(integer) => {
                let digits = integer.as_str();
                i128::from_str_radix(digits, integer.radix()).ok().map_or_else(
                    || Value::from(digits),
                    |n| {
                        u64::try_from(n)
                            .map(Value::from)
                            .or_else(|_| i64::try_from(n).map(Value::from))
                            .unwrap_or(Value::from(n as f64))
                    },
                )
            }
            DeValue::Float(float) => {
                let number = float.as_str().parse::<f64>().ok().and_then(serde_json::Number::from_f64);
                // JSON has neither inf nor nan. They are represented as strings, so that the check refuses them like
                // other wrong values.
                number.map_or_else(|| Value::from(float.as_str()), Value::Number)
            }
            DeValue::Boolean(truth) => Value::from(*truth),
            DeValue::Datetime(time) => Value::from(time.to_string()),
            DeValue::Array(items) => {
                let item = |(i, item): (usize, &Spanned<DeValue<'_>>)| {
                    let path = format!("{path}[{i}]");
                    self.lines.insert(path.clone(), lines.line(item.span().start));
                    self.value(item, &path, lines)
                };
                Value::Array(items.iter().enumerate().map(item).collect())
            }
            DeValue::Table(table) => self.table(table, path, lines),
        }
    }
}

/// Returns the path of a key inside a table.
pub fn join(path: &str, key: &str) -> String {
    // A key that is not a bare key is quoted as in TOML.
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let key = if bare { key.to_string() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Returns the path of a setting of a table. `setting` may be a path inside the table, such as `timer.maximum_rto`.
pub fn join_setting(path: &str, setting: &str) -> String {
    setting.split('.').fold(path.to_string(), |path, key| join(&path, key))
}

fn refuse_large(text: &str, most: usize) -> Result<(), Vec<SyntaxFault>> {
    if text.len() <= most {
        return Ok(());
    }
    let problem =
        format!("has {:.1} MB of text; a scenario can have at most {} MiB", text.len() as f64 / 1e6, most >> 20);
    Err(vec![SyntaxFault { line: None, problem }])
}

fn syntax_fault(text: &str, lines: &LineIndex, error: &toml::de::Error) -> SyntaxFault {
    let line = error.span().map(|span| lines.line(span.start));
    let message = error.message().trim().replace('\n', "; ");
    let quoted = error.span().and_then(|span| text.get(span)).and_then(|quoted| quoted.lines().next());
    let at = match quoted.map(str::trim) {
        Some(quoted) if shows_well(quoted) => format!(" at `{quoted}`"),
        _ => String::new(),
    };
    SyntaxFault { line, problem: format!("is not TOML: {message}{at}") }
}

fn shows_well(quoted: &str) -> bool {
    !quoted.is_empty() && quoted.len() <= MAX_QUOTED && !quoted.contains(char::is_control)
}

/// Start offset of each line of a text.
struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i.saturating_add(1));
        Self { starts: std::iter::once(0).chain(ends).collect() }
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }
}
