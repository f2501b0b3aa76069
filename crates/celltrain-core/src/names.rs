//! Settings by name: a table's keys are names of flows or VCs, or ranges of them.

use std::collections::BTreeMap;

/// What a table has for a name: under the name itself, or under the first range it is in.
pub fn by_name<'a, T>(table: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let in_range = || table.iter().find(|(key, _)| is_in_range(key, name)).map(|(_, value)| value);
    table.get(name).or_else(in_range)
}

/// Whether a key such as `tcp2-4` stands for a name such as `tcp3`.
pub fn is_in_range(key: &str, name: &str) -> bool {
    let Some((first, last)) = key.split_once('-') else { return false };
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = |text: &str| text.parse::<u32>().ok();
    let (Some(first), Some(last)) = (number(&first[stem.len()..]), number(last)) else { return false };
    name.strip_prefix(stem).and_then(number).is_some_and(|n| (first..=last).contains(&n))
}
