//! Settings by name, in tables whose keys are names of flows or VCs, or ranges of such names.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Looks up a name in a table: first the name itself, then the first range that contains it.
pub fn by_name<'a, T>(table: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let in_range = || table.iter().find(|(key, _)| is_in_range(key, name)).map(|(_, value)| value);
    table.get(name).or_else(in_range)
}

/// Returns whether a key such as `tcp2-4` includes a name such as `tcp3`.
pub fn is_in_range(key: &str, name: &str) -> bool {
    number_in_range(key, name).is_some()
}

/// Returns the number of a name in the range of a key: 3 for `tcp3` in `tcp2-4`. `None` if the name is outside the
/// range.
pub fn number_in_range(key: &str, name: &str) -> Option<u32> {
    let (stem, numbers) = range(key)?;
    number(name.strip_prefix(stem)?).filter(|number| numbers.contains(number))
}

/// Returns the stem and the numbers of a range of names: `tcp` and 2 to 4 for `tcp2-4`. `None` if the key is a single
/// name.
pub fn range(key: &str) -> Option<(&str, RangeInclusive<u32>)> {
    let (first, last) = key.split_once('-')?;
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, number(&first[stem.len()..])?..=number(last)?))
}

/// Parses a number that consists of digits only. A preceding sign belongs to the name.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_range_such_as_tcp1_to_5_is_parsed_into_a_stem_and_two_numbers() {
        assert_eq!(range("tcp2-4"), Some(("tcp", 2..=4)));
        assert_eq!(range("2-4294967295"), Some(("", 2..=u32::MAX)));
        for name in
            ["tcp", "tcp2", "tcp2-", "tcp-4", "tcp2-4-6", "tcp2-+4", "tcp2-4294967296", "long-source1", "-", "tcp²-4"]
        {
            assert_eq!(range(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_range_contains_a_name_with_the_same_stem_and_a_final_number_between_its_ends() {
        assert_eq!(number_in_range("tcp2-4", "tcp3"), Some(3));
        // Regression: the sign was read as part of the number.
        for name in ["tcp1", "tcp5", "tcp+3", "tcp", "tcp3x", "3", "tcp4294967298"] {
            assert!(!is_in_range("tcp2-4", name), "{name}");
        }
    }
}
