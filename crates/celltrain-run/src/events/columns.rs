//! Columns of events: what each holds, and the numbers of a block of rows.

use std::sync::Arc;

use celltrain_core::events::Kind;

use super::tables::mbps;

/// One column of a kind of event: one line of a table.
pub struct Column<E: 'static> {
    /// Its name.
    pub name: &'static str,
    /// The unit; empty for names and words, `1` for pure numbers.
    pub unit: &'static str,
    /// What it is, in one line.
    pub meaning: &'static str,
    /// Where an event has it.
    pub value: Accessor<E>,
}

/// Where an event has a value, and of which kind that is. None where it has no such thing.
pub enum Accessor<E: 'static> {
    /// The instant, in seconds.
    Time,
    /// A flow's name, by its index.
    Flow(fn(&Row<'_, E>) -> Option<u32>),
    /// A VC's name, by its index.
    Vc(fn(&Row<'_, E>) -> Option<u32>),
    /// A port's name, by the index of its link.
    Port(fn(&Row<'_, E>) -> Option<u32>),
    /// A word; empty where there is none.
    Word(fn(&Row<'_, E>) -> &'static str),
    /// A whole number.
    Count(fn(&Row<'_, E>) -> Option<u64>),
    /// A rate in cells per second, shown in megabits per second.
    Rate(fn(&Row<'_, E>) -> Option<f64>),
    /// A number.
    Number(fn(&Row<'_, E>) -> Option<f64>),
    /// Yes or no.
    Flag(fn(&Row<'_, E>) -> Option<bool>),
}

/// An event with what is known beside it.
pub struct Row<'a, E> {
    /// The event.
    pub event: &'a E,
    /// Its instant, in seconds.
    pub time_s: f64,
    /// The flow of its VC, or its own.
    pub flow: Option<u32>,
    /// Seconds between two ticks of its flow's retransmission clock.
    pub tick_s: f64,
    /// Which of its frame's cells that came to the port it is, from 0.
    pub index: Option<u32>,
}

impl<E> Column<E> {
    /// The name of the Arrow type of its column; `name` for a text that repeats.
    pub const fn kind(&self) -> &'static str {
        match self.value {
            Accessor::Time | Accessor::Number(_) | Accessor::Rate(_) => "float64",
            Accessor::Flow(_) | Accessor::Vc(_) | Accessor::Port(_) | Accessor::Word(_) => "name",
            Accessor::Count(_) => "int64",
            Accessor::Flag(_) => "bool",
        }
    }

    /// Whether a row may lack it.
    pub const fn is_optional(&self) -> bool {
        !matches!(self.value, Accessor::Time)
    }
}

/// The values of a column. What a row lacks is NaN, or -1.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Whole numbers.
    Counts(Vec<i64>),
    /// Places in a list of words.
    Words(Vec<i32>, Arc<[String]>),
    /// 1 for yes, 0 for no.
    Flags(Vec<i8>),
}

/// Rows of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Of which kind.
    pub kind: Kind,
    /// By column, in the order of the table.
    pub columns: Vec<Values>,
}

/// The names that columns refer to, by index.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) flows: Arc<[String]>,
    pub(super) vcs: Arc<[String]>,
    pub(super) ports: Arc<[String]>,
}

/// Rows of one kind under way.
pub(super) struct Rows<E: 'static> {
    kind: Kind,
    table: &'static [Column<E>],
    columns: Vec<Values>,
    /// By column of words: each word there was, by its address.
    words: Vec<Vec<&'static str>>,
    rows: usize,
}

/// Rows that are handed over at a time: a few megabytes.
pub(super) const ROWS: usize = 1 << 16;

impl<E> Rows<E> {
    pub(super) fn new(kind: Kind, table: &'static [Column<E>], names: &Names) -> Self {
        let words = table.iter().map(|_| Vec::new()).collect();
        Self { kind, table, columns: empty(table, names), words, rows: 0 }
    }

    /// Adds a row; whether the block is full.
    pub(super) fn push(&mut self, row: &Row<'_, E>) -> bool {
        for ((column, values), words) in self.table.iter().zip(&mut self.columns).zip(&mut self.words) {
            match (&column.value, values) {
                (Accessor::Time, Values::Numbers(values)) => values.push(row.time_s),
                (Accessor::Number(of), Values::Numbers(values)) => values.push(of(row).unwrap_or(f64::NAN)),
                (Accessor::Rate(of), Values::Numbers(values)) => values.push(of(row).map_or(f64::NAN, mbps)),
                (Accessor::Count(of), Values::Counts(values)) => {
                    values.push(of(row).map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX)));
                }
                (Accessor::Flag(of), Values::Flags(values)) => values.push(of(row).map_or(-1, i8::from)),
                (Accessor::Flow(of) | Accessor::Vc(of) | Accessor::Port(of), Values::Words(values, _)) => {
                    values.push(of(row).map_or(-1, place));
                }
                (Accessor::Word(of), Values::Words(values, _)) => values.push(word(words, of(row))),
                _ => unreachable!("a column's values are of its kind"),
            }
        }
        self.rows += 1;
        self.rows == ROWS
    }

    /// The rows so far; none remain.
    pub(super) fn take(&mut self, names: &Names) -> Option<Block> {
        if std::mem::take(&mut self.rows) == 0 {
            return None;
        }
        let mut columns = std::mem::replace(&mut self.columns, empty(self.table, names));
        for ((column, values), words) in self.table.iter().zip(&mut columns).zip(&self.words) {
            if let (Accessor::Word(_), Values::Words(_, list)) = (&column.value, values) {
                *list = words.iter().map(|&word| word.to_owned()).collect();
            }
        }
        Some(Block { kind: self.kind, columns })
    }
}

fn empty<E>(table: &[Column<E>], names: &Names) -> Vec<Values> {
    let column = |column: &Column<E>| match column.value {
        Accessor::Time | Accessor::Number(_) | Accessor::Rate(_) => Values::Numbers(Vec::new()),
        Accessor::Count(_) => Values::Counts(Vec::new()),
        Accessor::Flag(_) => Values::Flags(Vec::new()),
        Accessor::Flow(_) => Values::Words(Vec::new(), Arc::clone(&names.flows)),
        Accessor::Vc(_) => Values::Words(Vec::new(), Arc::clone(&names.vcs)),
        Accessor::Port(_) => Values::Words(Vec::new(), Arc::clone(&names.ports)),
        Accessor::Word(_) => Values::Words(Vec::new(), Arc::from([])),
    };
    table.iter().map(column).collect()
}

fn place(index: u32) -> i32 {
    i32::try_from(index).expect("a network has fewer parts than 2^31")
}

/// The place of a word among those there were. A word is told by its address first: it is one of a few in the program.
fn word(words: &mut Vec<&'static str>, word: &'static str) -> i32 {
    if word.is_empty() {
        return -1;
    }
    let known = words.iter().position(|known| std::ptr::eq(*known, word));
    let at = known.or_else(|| words.iter().position(|known| *known == word)).unwrap_or_else(|| {
        words.push(word);
        words.len() - 1
    });
    i32::try_from(at).expect("there are a few words")
}
