//! Columns of the events of a run, formed by concatenating the blocks of an event log.

use std::cell::Cell;
use std::collections::BTreeMap;

use celltrain_run::events::{Block, Kind, Values, described, name_of};
use serde_json::{Map, Value, json};

use crate::answer::Columns;

pub(crate) struct Tables<'a> {
    grown: BTreeMap<Kind, Vec<Growing>>,
    rows: BTreeMap<Kind, usize>,
    /// Maximum number of rows stored for each kind of event.
    most: usize,
    /// Flag that is set when a table was truncated because it had too many rows.
    full: &'a Cell<bool>,
}

/// A column of a table of events under construction.
enum Growing {
    Numbers(Vec<f64>),
    Words(Vec<i32>, Vec<String>),
    Flags(Vec<i8>),
}

impl<'a> Tables<'a> {
    pub(crate) fn new(most: usize, full: &'a Cell<bool>) -> Self {
        Self { grown: BTreeMap::new(), rows: BTreeMap::new(), most, full }
    }

    /// Appends a block of events. Returns whether there is room for more blocks.
    pub(crate) fn take(&mut self, block: Block) -> bool {
        let rows = self.rows.entry(block.kind).or_default();
        let room = self.most.saturating_sub(*rows);
        let length = block.columns.first().map_or(0, length_of);
        if length > room {
            self.full.set(true);
        }
        *rows += length.min(room);
        let columns = self.grown.entry(block.kind).or_insert_with(|| block.columns.iter().map(Growing::like).collect());
        for (column, values) in columns.iter_mut().zip(block.columns) {
            column.append(values, length.min(room));
        }
        !self.full.get()
    }

    /// Returns the number of rows and the columns of each kind of event.
    pub(crate) fn json(self, kinds: &[Kind], columns: &mut Columns) -> Value {
        let lines = described();
        let Self { mut grown, rows, .. } = self;
        let mut all = Map::new();
        for &kind in kinds {
            let names = lines[kind as usize]["columns"].as_array().expect("every table of events has columns");
            let of_kind = grown.remove(&kind).unwrap_or_else(|| names.iter().map(Growing::empty).collect());
            let mut table = Map::new();
            for (name, column) in names.iter().zip(of_kind) {
                let shown = match column {
                    Growing::Numbers(values) => columns.put(values),
                    Growing::Flags(values) => columns.put(values),
                    Growing::Words(places, words) => json!({"at": columns.put(places), "words": words}),
                };
                table.insert(name["name"].as_str().expect("every column has a name").to_owned(), shown);
            }
            let rows = rows.get(&kind).copied().unwrap_or(0);
            all.insert(name_of(kind).to_owned(), json!({"rows": rows, "columns": table}));
        }
        Value::Object(all)
    }
}

impl Growing {
    fn like(values: &Values) -> Self {
        match values {
            Values::Numbers(_) | Values::Counts(_) => Self::Numbers(Vec::new()),
            Values::Words(..) => Self::Words(Vec::new(), Vec::new()),
            Values::Flags(_) => Self::Flags(Vec::new()),
        }
    }

    /// Creates an empty column for a table without rows.
    fn empty(line: &Value) -> Self {
        match line["kind"].as_str() {
            Some("name") => Self::Words(Vec::new(), Vec::new()),
            Some("bool") => Self::Flags(Vec::new()),
            _ => Self::Numbers(Vec::new()),
        }
    }

    fn append(&mut self, values: Values, most: usize) {
        match (self, values) {
            (Self::Numbers(into), Values::Numbers(values)) => into.extend_from_slice(&values[..most]),
            (Self::Numbers(into), Values::Counts(values)) => {
                // Converting counts to f64 is exact, because counts are far below 2^53. A missing count is -1.
                into.extend(values[..most].iter().map(|&count| if count < 0 { f64::NAN } else { count as f64 }));
            }
            (Self::Flags(into), Values::Flags(values)) => into.extend_from_slice(&values[..most]),
            (Self::Words(into, known), Values::Words(places, words)) => {
                // Each block has a separate list of words, but all blocks share the lists of names.
                let of_block: Vec<i32> = if known.as_slice() == &*words {
                    (0..).take(words.len()).collect()
                } else {
                    words.iter().map(|word| place_of(known, word)).collect()
                };
                let place = |&at: &i32| usize::try_from(at).map_or(-1, |at| of_block[at]);
                into.extend(places[..most].iter().map(place));
            }
            _ => unreachable!("all blocks of a kind have the same columns"),
        }
    }
}

fn place_of(known: &mut Vec<String>, word: &str) -> i32 {
    let place = known.iter().position(|other| other == word).unwrap_or_else(|| {
        known.push(word.to_owned());
        known.len() - 1
    });
    i32::try_from(place).expect("the parts of a network are fewer than 2^31")
}

fn length_of(values: &Values) -> usize {
    match values {
        Values::Numbers(values) => values.len(),
        Values::Counts(values) => values.len(),
        Values::Words(places, _) => places.len(),
        Values::Flags(values) => values.len(),
    }
}
