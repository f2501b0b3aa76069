//! Sets or removes one key in a TOML text. The rest of the text, including comments, remains unchanged.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use crate::reading::Refusal;

/// Returns the text with the new value at the path, or without the last key of the path if `value` is `None`. A new
/// table replaces the old table at the same position, with each key on a separate line.
pub(crate) fn edited(toml: &str, path: &[String], value: Option<&Json>) -> Result<String, Refusal> {
    let refused = |words: String| Refusal::new("refused", words);
    let mut document: DocumentMut =
        toml.parse().map_err(|error: toml_edit::TomlError| refused(error.message().to_owned()))?;
    let Some((key, parents)) = path.split_last() else {
        return Err(refused("a path has at least one key".to_owned()));
    };
    let mut at: &mut dyn TableLike = document.as_table_mut();
    for (depth, parent) in parents.iter().enumerate() {
        if value.is_none() && at.get(parent).is_none() {
            return Ok(toml.to_owned());
        }
        let new = || {
            let mut table = Table::new();
            // Write the header of the new table only if the table has keys that are not tables.
            table.set_implicit(true);
            Item::Table(table)
        };
        let place = || path[..=depth].join(".");
        at = at
            .entry(parent)
            .or_insert_with(new)
            .as_table_like_mut()
            .ok_or_else(|| refused(format!("{} is not a table", place())))?;
    }
    let Some(value) = value else {
        at.remove(key);
        return Ok(document.to_string());
    };
    let before = at.get(key);
    let mut item = item_of(value).ok_or_else(|| refused(format!("{value} cannot be written in TOML")))?;
    match (before, &mut item) {
        (Some(Item::Value(before)), Item::Value(after)) => *after.decor_mut() = before.decor().clone(),
        // A table that replaces a value becomes an inline table, which cannot contain tables on several lines.
        (Some(Item::Value(before)), Item::Table(after)) => {
            let mut after = after.clone().into_inline_table();
            *after.decor_mut() = before.decor().clone();
            item = Item::Value(Value::InlineTable(after));
        }
        (Some(Item::Table(before)), Item::Table(after)) => {
            if let Some(first) = first_header(before) {
                let (position, decor) = (first.position(), first.decor().clone());
                let header = first_header_mut(after);
                header.set_position(position);
                *header.decor_mut() = decor;
            }
        }
        _ => {}
    }
    // The key keeps its position and the text around the key.
    match at.get_mut(key) {
        Some(place) => *place = item,
        None => drop(at.insert(key, item)),
    }
    Ok(document.to_string())
}

/// Returns the first table with a header in the text, among a table and its inner tables.
fn first_header(table: &Table) -> Option<&Table> {
    let inner = table.iter().filter_map(|(_, item)| item.as_table()).filter_map(first_header);
    let own = (!table.is_implicit()).then_some(table);
    own.into_iter().chain(inner).min_by_key(|table| table.position())
}

/// Returns the table itself if it has a header, or else the first inner table with a header.
fn first_header_mut(table: &mut Table) -> &mut Table {
    let has_header = !table.is_implicit();
    let inner = table.iter().find(|(_, item)| item.is_table()).map(|(key, _)| key.to_owned());
    match inner {
        Some(key) if !has_header => first_header_mut(table[&key].as_table_mut().expect("the value is a table")),
        _ => table,
    }
}

/// Converts a JSON value to TOML; `None` for null.
fn item_of(value: &Json) -> Option<Item> {
    let Json::Object(members) = value else { return value_of(value).map(Item::Value) };
    let mut table = Table::new();
    for (key, member) in members {
        if !member.is_null() {
            table.insert(key, item_of(member)?);
        }
    }
    // A table that contains only tables needs no header.
    table.set_implicit(!table.is_empty() && table.iter().all(|(_, item)| item.is_table()));
    Some(Item::Table(table))
}

fn value_of(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(value) => (*value).into(),
        Json::String(value) => value.as_str().into(),
        Json::Number(value) => match value.as_i64() {
            Some(whole) => whole.into(),
            None => value.as_f64()?.into(),
        },
        Json::Array(values) => Value::Array(values.iter().map(value_of).collect::<Option<Array>>()?),
        Json::Object(_) => Value::InlineTable(item_of(value)?.into_table().ok()?.into_inline_table()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "\
# Mine.
name = \"two\"  # of them

[topology.n_source]
sources = 2

# The policy.
[port.bottleneck.policy.epd]
threshold = 80   # cells

[port.other]
buffer = 7
";

    fn set(path: &str, value: &Json) -> String {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        edited(TEXT, &path, Some(value).filter(|value| !value.is_null())).expect("the value can be written")
    }

    #[test]
    fn replacing_a_value_in_a_scenario_file_keeps_its_position_and_comments() {
        assert_eq!(
            set("port.bottleneck.policy.epd.threshold", &json!(90)),
            TEXT.replace("threshold = 80   # cells", "threshold = 90   # cells")
        );
        assert_eq!(set("name", &json!("three")), TEXT.replace("\"two\"  # of them", "\"three\"  # of them"));
    }

    #[test]
    fn replacing_a_table_in_a_scenario_file_keeps_its_position_and_comment() {
        assert_eq!(
            set("port.bottleneck.policy", &json!({"fba": {"threshold": 0.9, "z": 0.8}})),
            TEXT.replace("policy.epd]\nthreshold = 80   # cells\n", "policy.fba]\nthreshold = 0.9\nz = 0.8\n")
        );
        assert_eq!(
            set("port.bottleneck.policy", &json!({"tail_drop": {}})),
            TEXT.replace("policy.epd]\nthreshold = 80   # cells\n", "policy.tail_drop]\n")
        );
    }

    #[test]
    fn adding_or_removing_a_key_leaves_the_rest_of_the_scenario_file_unchanged() {
        assert_eq!(
            set("topology.n_source.link_delay", &json!("5us")),
            TEXT.replace("sources = 2\n", "sources = 2\nlink_delay = \"5us\"\n")
        );
        assert_eq!(set("port.other.buffer", &Json::Null), TEXT.replace("buffer = 7\n", ""));
        assert_eq!(set("tcp.reno.mss", &Json::Null), TEXT);
        assert!(set("tcp.reno.mss", &json!("512B")).contains("[tcp.reno]\nmss = \"512B\"\n"));
    }

    #[test]
    fn editing_refuses_invalid_toml_and_paths_through_values_that_are_not_tables() {
        let path = ["name", "first"].map(str::to_owned);
        assert!(edited(TEXT, &path, Some(&json!(1))).is_err());
        assert!(edited("name = ", &path[..1], Some(&json!(1))).is_err());
        assert!(edited(TEXT, &[], Some(&json!(1))).is_err());
    }
}
