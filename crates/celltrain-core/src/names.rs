//! Settings by name: a table's keys are names of flows or VCs, or ranges of them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What a table has for a name: under the name itself, or under the first range it is in.
pub fn by_name<'a, T>(table: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let in_range = || table.iter().find(|(key, _)| is_in_range(key, name)).map(|(_, value)| value);
    table.get(name).or_else(in_range)
}

/// Whether a key such as `tcp2-4` stands for a name such as `tcp3`.
pub fn is_in_range(key: &str, name: &str) -> bool {
    number_in_range(key, name).is_some()
}

/// The number of a name in the range a key stands for: 3 of `tcp3` in `tcp2-4`. None outside it.
pub fn number_in_range(key: &str, name: &str) -> Option<u32> {
    let (stem, numbers) = range(key)?;
    name.strip_prefix(stem)?.parse().ok().filter(|number| numbers.contains(number))
}

/// The stem and the numbers of a range of names: `tcp` and 2 to 4 of `tcp2-4`. None for a name.
pub fn range(key: &str) -> Option<(&str, RangeInclusive<u32>)> {
    let (first, last) = key.split_once('-')?;
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, first[stem.len()..].parse().ok()?..=last.parse().ok()?))
}
