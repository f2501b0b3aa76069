//! Columns of events: what each holds, and the numbers of a block of rows.

use std::sync::Arc;

use celltrain_core::events::Kind;
use celltrain_core::index::{FlowIndex, LinkIndex, VcIndex};

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
    Flow(fn(&Row<E>) -> Option<FlowIndex>),
    /// A VC's name, by its index.
    Vc(fn(&Row<E>) -> Option<VcIndex>),
    /// A port's name, by the index of its link.
    Port(fn(&Row<E>) -> Option<LinkIndex>),
    /// A word; empty where there is none.
    Word(fn(&Row<E>) -> &'static str),
    /// A whole number.
    Count(fn(&Row<E>) -> Option<u64>),
    /// A rate in cells per second, shown in megabits per second.
    Rate(fn(&Row<E>) -> Option<f64>),
    /// A number.
    Number(fn(&Row<E>) -> Option<f64>),
    /// Yes or no.
    Flag(fn(&Row<E>) -> Option<bool>),
}

/// An event with what is known beside it.
pub struct Row<E> {
    /// The event.
    pub event: E,
    /// Its instant, in seconds.
    pub time_s: f64,
    /// The flow of its VC, or its own.
    pub flow: Option<FlowIndex>,
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

/// Rows of one kind under way. They become columns a block at a time: a column is then one loop.
pub(super) struct Rows<E: 'static> {
    kind: Kind,
    table: &'static [Column<E>],
    under_way: Vec<Row<E>>,
}

/// Rows that are handed over at a time: a few megabytes.
pub(super) const ROWS: usize = 1 << 15;

impl<E> Rows<E> {
    pub(super) fn new(kind: Kind, table: &'static [Column<E>]) -> Self {
        Self { kind, table, under_way: Vec::new() }
    }

    /// Adds a row; whether the block is full.
    #[inline]
    pub(super) fn push(&mut self, row: Row<E>) -> bool {
        self.under_way.push(row);
        self.under_way.len() == ROWS
    }

    /// The rows so far; none remain.
    pub(super) fn take(&mut self, names: &Names) -> Option<Block> {
        if self.under_way.is_empty() {
            return None;
        }
        let columns = self.table.iter().map(|column| column.values(&self.under_way, names)).collect();
        self.under_way.clear();
        Some(Block { kind: self.kind, columns })
    }
}

impl<E> Column<E> {
    /// Its values of these rows.
    fn values(&self, rows: &[Row<E>], names: &Names) -> Values {
        let numbers = |of: &dyn Fn(&Row<E>) -> f64| Values::Numbers(rows.iter().map(of).collect());
        let by_index = |of: &dyn Fn(&Row<E>) -> Option<u32>, names: &Arc<[String]>| {
            Values::Words(rows.iter().map(|row| of(row).map_or(-1, place)).collect(), Arc::clone(names))
        };
        match self.value {
            Accessor::Time => numbers(&|row| row.time_s),
            Accessor::Number(of) => numbers(&|row| of(row).unwrap_or(f64::NAN)),
            Accessor::Rate(of) => numbers(&|row| of(row).map_or(f64::NAN, mbps)),
            Accessor::Count(of) => {
                let count = |row| of(row).map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX));
                Values::Counts(rows.iter().map(count).collect())
            }
            Accessor::Flag(of) => Values::Flags(rows.iter().map(|row| of(row).map_or(-1, i8::from)).collect()),
            Accessor::Flow(of) => by_index(&|row| of(row).map(FlowIndex::number), &names.flows),
            Accessor::Vc(of) => by_index(&|row| of(row).map(VcIndex::number), &names.vcs),
            Accessor::Port(of) => by_index(&|row| of(row).map(LinkIndex::number), &names.ports),
            Accessor::Word(of) => {
                let mut words = Vec::new();
                let places = rows.iter().map(|row| word(&mut words, of(row))).collect();
                Values::Words(places, words.iter().map(|&word| word.to_owned()).collect())
            }
        }
    }
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
