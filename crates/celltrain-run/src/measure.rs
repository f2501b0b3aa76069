//! Definition of a measure: its name, unit, meaning, and how to read it from a row.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// One measure of a row of type `T`. A table defines each measure in one line.
pub struct Measure<T> {
    /// Name of the measure. A dot separates a group from its member: `cells.lost`.
    pub name: &'static str,
    /// Unit of the measure; empty for strings, `1` for pure numbers.
    pub unit: &'static str,
    /// Meaning of the measure, in one line.
    pub meaning: &'static str,
    /// How the measure is shown in printed tables.
    pub printed: Printed,
    /// True if an answer contains the measure only on request.
    pub on_request: bool,
    /// Accessor that reads the measure's value from a row.
    pub value: Accessor<T>,
}

/// Reads a measure from a row. There is one variant for each type of value.
pub enum Accessor<T> {
    /// A text.
    Text(fn(&T) -> &str),
    /// A whole number; `None` if the row has no such value.
    Count(fn(&T) -> Option<u64>),
    /// A number; `None` if the row has no such value.
    Number(fn(&T) -> Option<f64>),
    /// True or false; `None` if the row has no such value.
    Flag(fn(&T) -> Option<bool>),
}

/// Rule that decides whether printed tables show a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Printed tables omit the measure; only the JSON answer has it.
    Never,
    /// Every printed table shows the measure.
    Always,
    /// The measure is shown if its value differs between rows.
    Differs,
    /// The measure is shown if at least one row has a value. A number counts only if it is above zero.
    Present,
}

/// How a measure is shown in printed tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Printed {
    /// Heading of the measure's column, or label of its line.
    pub heading: &'static str,
    /// Rule that decides when printed tables show the measure.
    pub when: When,
}

impl<T> Measure<T> {
    /// Creates a measure whose values are texts.
    pub const fn text(name: &'static str, meaning: &'static str, of: fn(&T) -> &str) -> Self {
        Self::new(name, "", meaning, Accessor::Text(of))
    }

    /// Creates a measure whose values are whole numbers.
    pub const fn count(
        name: &'static str,
        unit: &'static str,
        meaning: &'static str,
        of: fn(&T) -> Option<u64>,
    ) -> Self {
        Self::new(name, unit, meaning, Accessor::Count(of))
    }

    /// Creates a measure whose values are numbers.
    pub const fn number(
        name: &'static str,
        unit: &'static str,
        meaning: &'static str,
        of: fn(&T) -> Option<f64>,
    ) -> Self {
        Self::new(name, unit, meaning, Accessor::Number(of))
    }

    /// Creates a measure whose values are true or false.
    pub const fn flag(name: &'static str, meaning: &'static str, of: fn(&T) -> Option<bool>) -> Self {
        Self::new(name, "", meaning, Accessor::Flag(of))
    }

    const fn new(name: &'static str, unit: &'static str, meaning: &'static str, value: Accessor<T>) -> Self {
        Self { name, unit, meaning, printed: Printed { heading: "", when: When::Never }, on_request: false, value }
    }

    /// Makes printed tables show the measure, with this heading and rule.
    #[must_use]
    pub const fn printed(mut self, heading: &'static str, when: When) -> Self {
        self.printed = Printed { heading, when };
        self
    }

    /// Omits the measure from answers that do not request it.
    #[must_use]
    pub const fn on_request(mut self) -> Self {
        self.on_request = true;
        self
    }

    /// Returns the name of the Arrow type of the measure's column.
    pub const fn kind(&self) -> &'static str {
        match self.value {
            Accessor::Text(_) => "string",
            Accessor::Count(_) => "int64",
            Accessor::Number(_) => "float64",
            Accessor::Flag(_) => "bool",
        }
    }

    /// Returns the measure's value in a row; null if the row has no value of the measure.
    pub fn of(&self, row: &T) -> Value {
        match self.value {
            Accessor::Text(of) => json!(of(row)),
            Accessor::Count(of) => json!(of(row)),
            Accessor::Number(of) => json!(of(row)),
            Accessor::Flag(of) => json!(of(row)),
        }
    }

    /// Returns the measure's description as JSON.
    pub fn described(&self) -> Value {
        let Printed { heading, when } = self.printed;
        let mut description = json!({
            "name": self.name,
            "kind": self.kind(),
            "unit": self.unit,
            "meaning": self.meaning,
            "heading": heading,
            "printed": when,
        });
        if self.on_request {
            description["on_request"] = json!(true);
        }
        description
    }
}

/// Returns a row as a JSON object with the measures for which `keep` returns true. `keep` receives the measure, and the
/// name of its group, or its own name if it belongs to no group. A group without values is null.
pub fn object<T>(measures: &[Measure<T>], row: &T, keep: impl Fn(&Measure<T>, &str) -> bool) -> Map<String, Value> {
    object_of(measures, |measure| measure.of(row), keep)
}

/// Returns an outline of a row, with every measure: numbers are 1, flags are true, and strings are empty, except that
/// the first string is `name`.
pub fn outline<T>(measures: &[Measure<T>], name: &str) -> Map<String, Value> {
    let value = |measure: &Measure<T>| match measure.value {
        Accessor::Text(_) if measure.name == measures[0].name => json!(name),
        Accessor::Text(_) => json!(""),
        Accessor::Count(_) | Accessor::Number(_) => json!(1),
        Accessor::Flag(_) => json!(true),
    };
    object_of(measures, value, |_, _| true)
}

fn object_of<T>(
    measures: &[Measure<T>],
    value: impl Fn(&Measure<T>) -> Value,
    keep: impl Fn(&Measure<T>, &str) -> bool,
) -> Map<String, Value> {
    let mut object = Map::new();
    for measure in measures {
        let (group, member) = match measure.name.split_once('.') {
            Some((group, member)) => (group, Some(member)),
            None => (measure.name, None),
        };
        if keep(measure, group) {
            insert(&mut object, group, member, value(measure));
        }
    }
    omit_empty_groups(&mut object);
    object
}

fn omit_empty_groups(object: &mut Map<String, Value>) {
    for value in object.values_mut() {
        if value.as_object().is_some_and(|members| members.values().all(Value::is_null)) {
            *value = Value::Null;
        }
    }
}

/// Inserts a measure's value, if need be as a member of a group.
fn insert(object: &mut Map<String, Value>, group: &str, member: Option<&str>, value: Value) {
    let Some(member) = member else {
        object.insert(group.to_owned(), value);
        return;
    };
    let members = object.entry(group).or_insert_with(|| json!({}));
    let members = members.as_object_mut().expect("a group and a measure have different names");
    members.insert(member.to_owned(), value);
}

/// Returns the descriptions of a table's measures.
pub fn described<T>(measures: &[Measure<T>]) -> Value {
    measures.iter().map(Measure::described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        name: String,
        waits: Option<[f64; 2]>,
    }

    const MEASURES: &[Measure<Row>] = &[
        Measure::text("name", "whose", |row| &row.name),
        Measure::number("wait.mean", "ms", "how long", |row| row.waits.map(|waits| waits[0])),
        Measure::number("wait.most", "ms", "the longest", |row| row.waits.map(|waits| waits[1])),
        Measure::count("bytes", "B", "in all", |_| Some(u64::MAX)).printed("bytes in all", When::Present),
    ];

    fn row(waits: Option<[f64; 2]>) -> Row {
        Row { name: "tcp1".into(), waits }
    }

    #[test]
    fn a_group_of_measures_is_a_nested_json_object_or_null_if_it_has_no_values() {
        let with = Value::Object(object(MEASURES, &row(Some([1.5, 2.0])), |_, _| true));
        assert_eq!(with, json!({"name": "tcp1", "wait": {"mean": 1.5, "most": 2.0}, "bytes": u64::MAX}));
        let without = Value::Object(object(MEASURES, &row(None), |_, _| true));
        assert_eq!(without, json!({"name": "tcp1", "wait": null, "bytes": u64::MAX}));
    }

    #[test]
    fn the_result_omits_measures_that_were_not_requested() {
        let kept = object(MEASURES, &row(Some([1.5, 2.0])), |_, name| name == "wait");
        assert_eq!(Value::Object(kept), json!({"wait": {"mean": 1.5, "most": 2.0}}));
    }

    #[test]
    fn the_list_of_measures_gives_the_kind_unit_and_meaning_of_each() {
        let lines = described(MEASURES);
        assert_eq!(lines[1]["kind"], "float64");
        assert_eq!(
            lines[3],
            json!({"name": "bytes", "kind": "int64", "unit": "B", "meaning": "in all", "heading": "bytes in all",
                   "printed": "present"})
        );
    }
}
