//! Answers to requests: JSON, and the numeric columns to which the JSON refers.

use serde_json::{Value, json};

/// An answer to a request. `{"$column": 3}` in the JSON of the answer refers to the fourth column.
#[derive(Debug, Default)]
pub struct Answer {
    /// JSON text of the answer: `{"ok": ...}` or `{"error": {"kind", "message", "faults"}}`.
    pub text: String,
    /// Columns to which the JSON refers.
    pub columns: Vec<Column>,
}

/// A column of numbers of one type.
#[derive(Debug, PartialEq)]
pub enum Column {
    /// Numbers of any kind. A missing number is NaN.
    Numbers(Vec<f64>),
    /// Indices into a list. A missing index is -1.
    Places(Vec<i32>),
    /// Small whole numbers, such as flags.
    Small(Vec<i8>),
}

impl From<Vec<f64>> for Column {
    fn from(values: Vec<f64>) -> Self {
        Self::Numbers(values)
    }
}

impl From<Vec<i32>> for Column {
    fn from(values: Vec<i32>) -> Self {
        Self::Places(values)
    }
}

impl From<Vec<i8>> for Column {
    fn from(values: Vec<i8>) -> Self {
        Self::Small(values)
    }
}

/// The columns of an answer under construction.
#[derive(Default)]
pub(crate) struct Columns(pub(crate) Vec<Column>);

impl Columns {
    /// Adds a column. Returns the JSON that refers to the column.
    pub(crate) fn put(&mut self, column: impl Into<Column>) -> Value {
        self.0.push(column.into());
        json!({"$column": self.0.len() - 1})
    }

    /// Adds a column of words. Each different word is stored once. An empty word stands for a missing value.
    pub(crate) fn put_words(&mut self, values: &[&'static str]) -> Value {
        let mut words: Vec<&str> = Vec::new();
        let places = values.iter().map(|value| {
            if value.is_empty() {
                return -1;
            }
            let known = words.iter().position(|word| word == value).unwrap_or_else(|| {
                words.push(value);
                words.len() - 1
            });
            i32::try_from(known).expect("the number of different words fits in 32 bits")
        });
        let places: Vec<i32> = places.collect();
        json!({"at": self.put(places), "words": words})
    }
}
