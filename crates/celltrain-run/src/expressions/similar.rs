//! Suggestions for misspelled names.
//!
//! Source: Python's `difflib`, after Ratcliff and Metzener (1988), so that suggestions are the same in Rust and Python.

use std::collections::HashMap;

/// Minimum similarity of a suggested name.
const CUTOFF: f64 = 0.6;

/// Returns the known name that a user probably meant; `None` if no known name is similar.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = joined(name);
    // Users may abbreviate policies as papers do, for example LQD or DT.
    let initials = |one: &str| one.split('_').filter_map(|part| part.chars().next()).collect::<String>();
    if let Some(one) = known.iter().find(|one| one.contains('_') && written == initials(one)) {
        return Some(one);
    }
    let index = Index::of(name);
    let close = known.iter().map(|one| (index.similarity(one), *one)).filter(|(ratio, _)| *ratio >= CUTOFF);
    close.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1))).map(|(_, one)| one)
}

/// Returns a name in lower case, with an underscore for each run of hyphens, underscores and spaces.
fn joined(name: &str) -> String {
    let mut joined = String::new();
    for c in name.to_lowercase().chars() {
        match c {
            '-' | '_' | ' ' if joined.ends_with('_') => {}
            '-' | '_' | ' ' => joined.push('_'),
            c => joined.push(c),
        }
    }
    joined
}

/// A name with the positions of its characters.
struct Index {
    name: Vec<char>,
    places: HashMap<char, Vec<usize>>,
}

impl Index {
    fn of(name: &str) -> Self {
        let name: Vec<char> = name.chars().collect();
        let mut places: HashMap<char, Vec<usize>> = HashMap::new();
        for (place, &c) in name.iter().enumerate() {
            places.entry(c).or_default().push(place);
        }
        // In long names, no match begins with a frequent character.
        if name.len() >= 200 {
            let most = name.len() / 100 + 1;
            places.retain(|_, places| places.len() <= most);
        }
        Self { name, places }
    }

    /// Returns twice the number of characters in blocks that occur in both names, divided by the sum of the names'
    /// lengths.
    fn similarity(&self, other: &str) -> f64 {
        let other: Vec<char> = other.chars().collect();
        let all = self.name.len() + other.len();
        if all == 0 {
            return 1.0;
        }
        let mut pending = vec![(0, other.len(), 0, self.name.len())];
        let mut common = 0;
        while let Some((from, to, own_from, own_to)) = pending.pop() {
            let (start, own_start, length) = self.longest(&other, (from, to), (own_from, own_to));
            if length > 0 {
                common += length;
                pending.push((from, start, own_from, own_start));
                pending.push((start + length, to, own_start + length, own_to));
            }
        }
        2.0 * common as f64 / all as f64
    }

    /// Returns the longest block of characters that occurs in both names: its start in `other`, its start in this name,
    /// and its length. Of several longest blocks, returns the first in `other`, and among those the first in this name.
    fn longest(
        &self,
        other: &[char],
        (from, to): (usize, usize),
        (own_from, own_to): (usize, usize),
    ) -> (usize, usize, usize) {
        let (mut start, mut own_start, mut length) = (from, own_from, 0);
        // Length of the block that ends at the previous character of `other`, by its end in this name.
        let mut ending: HashMap<usize, usize> = HashMap::new();
        for (at, c) in other.iter().enumerate().take(to).skip(from) {
            let mut next = HashMap::new();
            for &place in self.places.get(c).map_or(&[][..], Vec::as_slice) {
                if (own_from..own_to).contains(&place) {
                    let before = place.checked_sub(1).and_then(|before| ending.get(&before)).copied().unwrap_or(0);
                    next.insert(place, before + 1);
                    if before + 1 > length {
                        (start, own_start, length) = (at - before, place - before, before + 1);
                    }
                }
            }
            ending = next;
        }
        // Frequent characters next to the block are added to it.
        while start > from && own_start > own_from && other[start - 1] == self.name[own_start - 1] {
            (start, own_start, length) = (start - 1, own_start - 1, length + 1);
        }
        while start + length < to
            && own_start + length < own_to
            && other[start + length] == self.name[own_start + length]
        {
            length += 1;
        }
        (start, own_start, length)
    }
}
