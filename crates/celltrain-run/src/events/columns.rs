//! Columns of events: their meaning, and the values in a block of rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use celltrain_core::index::{FlowIndex, LinkIndex, MergeIndex, VcIndex};
use celltrain_core::requests::GroupIndex;
use celltrain_core::units::CELL_BITS;
use typed_index_collections::TiVec;

use super::Kind;

/// A column of one kind of event. A table defines each column in one line.
pub struct Column<E: 'static> {
    /// Name of the column.
    pub name: &'static str,
    /// Unit of the column's values; empty for names and words, `1` for pure numbers.
    pub unit: &'static str,
    /// Meaning of the column, in one line.
    pub meaning: &'static str,
    /// Accessor that reads the column's value from an event.
    pub value: Accessor<E>,
}

/// Reads a value from an event. There is one variant for each type of value. An accessor returns `None` if the event
/// has no value in its column.
pub enum Accessor<E: 'static> {
    /// The instant of the event, in seconds.
    Time,
    /// The name of a connection: the name of a flow, looked up by index, or the name of a request.
    Flow(fn(&Row<E>) -> Option<ConnectionName>),
    /// A VC's name, looked up by index.
    Vc(fn(&Row<E>) -> Option<VcIndex>),
    /// The name of a VC at a port: the VC's own name, or the name of the merge to which it belongs.
    PortVc(fn(&Row<E>) -> Option<PortVc>),
    /// A port's name, looked up by the index of its link.
    Port(fn(&Row<E>) -> Option<LinkIndex>),
    /// A pool's name, looked up by its index among the pools of all memories.
    Pool(fn(&Row<E>) -> u32),
    /// A word from a fixed list; empty if the event has no word in this column.
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

/// A VC at a port: the VC itself, or the merged VC to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortVc {
    /// A VC that has not merged with other VCs at the port.
    Own(VcIndex),
    /// The VC that results from a merge.
    Merged(MergeIndex),
}

/// Name of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionName {
    /// The name of a flow.
    Flow(FlowIndex),
    /// The name of a group of requests and the number of a request in the group, such as `web7`.
    Request(GroupIndex, u32),
}

/// An event, with values derived from the event and the network.
pub struct Row<E> {
    /// The event.
    pub event: E,
    /// Instant of the event, in seconds.
    pub time_s: f64,
    /// The connection of the event, or the flow to which its VC belongs.
    pub flow: Option<ConnectionName>,
    /// Length of a tick of the connection's retransmission clock, in seconds.
    pub tick_s: f64,
    /// Number of the frame or RM cell within its VC, without the bits that identify the branch of a merge.
    pub number: u32,
    /// VC of the event at the port; `None` for an event at a host.
    pub port_vc: Option<PortVc>,
    /// Index of the cell, from 0, among the cells of its frame that arrived at the port.
    pub index: Option<u32>,
}

impl<E> Column<E> {
    /// Returns the name of the column's Arrow type; `name` for strings that occur in many rows.
    pub const fn kind(&self) -> &'static str {
        match self.value {
            Accessor::Time | Accessor::Number(_) | Accessor::Rate(_) => "float64",
            Accessor::Flow(_)
            | Accessor::Vc(_)
            | Accessor::PortVc(_)
            | Accessor::Port(_)
            | Accessor::Pool(_)
            | Accessor::Word(_) => "name",
            Accessor::Count(_) => "int64",
            Accessor::Flag(_) => "bool",
        }
    }
}

/// Values of a column. A missing value is NaN in a column of numbers, and -1 in any other column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Whole numbers.
    Counts(Vec<i64>),
    /// Indices into a list of words.
    Words(Vec<i32>, Arc<[String]>),
    /// Values of yes or no: 1 for yes, 0 for no.
    Flags(Vec<i8>),
}

/// Rows of events of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Kind of event in the rows.
    pub kind: Kind,
    /// Columns in the order of the table.
    pub columns: Vec<Values>,
}

/// The names to which columns refer by index.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) flows: Arc<[String]>,
    pub(super) groups: TiVec<GroupIndex, String>,
    pub(super) vcs: Arc<[String]>,
    /// Names of VCs, followed by names of merges.
    pub(super) port_vcs: Arc<[String]>,
    pub(super) ports: Arc<[String]>,
    /// Names of all pools, in the form `memory/pool`.
    pub(super) pools: Arc<[String]>,
}

/// Rows of events of one kind that have not been delivered to the sink yet. They are converted to columns in chunks, so
/// that filling each column is one loop over rows that are still in the L1 cache.
pub(super) struct Rows<E: 'static> {
    kind: Kind,
    table: &'static [Column<E>],
    vcs: u32,
    chunk: Vec<Row<E>>,
    block: Vec<Filling>,
    /// Number of rows in the block so far.
    filled: usize,
}

/// A column of an unfinished block. A missing value is NaN in a column of numbers, and -1 in any other column.
enum Filling {
    Numbers(Vec<f64>),
    Counts(Vec<i64>),
    Names(Vec<i32>),
    /// Connections: a flow as its index, and a request as -2 minus its index in the block's list.
    Connections(Vec<i32>, BlockRequests),
    Words(Vec<i32>, Vec<&'static str>),
    Flags(Vec<i8>),
}

/// The requests that occur in a block. Their names are stored only for the block, because a run can have millions of
/// requests.
#[derive(Default)]
struct BlockRequests {
    places: BTreeMap<(GroupIndex, u32), i32>,
    list: Vec<(GroupIndex, u32)>,
}

impl BlockRequests {
    /// Returns the number that stands for a request until the block is complete.
    fn value(&mut self, group: GroupIndex, number: u32) -> i32 {
        let place = *self.places.entry((group, number)).or_insert_with(|| {
            self.list.push((group, number));
            i32::try_from(self.list.len() - 1).expect("a block has fewer rows than 2^31")
        });
        -2 - place
    }

    /// Returns the values as indices into a list of names: first the names of flows, then the names of the block's
    /// requests.
    fn resolve(self, values: Vec<i32>, names: &Names) -> Values {
        if self.list.is_empty() {
            return Values::Words(values, Arc::clone(&names.flows));
        }
        let first = i32::try_from(names.flows.len()).expect("a network has fewer than 2^31 parts");
        let values = values.into_iter().map(|value| if value < -1 { first - 2 - value } else { value }).collect();
        let requests = self.list.iter().map(|&(group, number)| format!("{}{number}", names.groups[group]));
        Values::Words(values, names.flows.iter().cloned().chain(requests).collect())
    }
}

/// Number of rows per block. A block takes a few megabytes.
pub(super) const ROWS: usize = 1 << 16;
/// Number of rows converted to columns at a time.
const CHUNK: usize = 1 << 8;

impl<E> Rows<E> {
    pub(super) fn new(kind: Kind, table: &'static [Column<E>], vcs: u32) -> Self {
        let block = table.iter().map(Column::filling).collect();
        Self { kind, table, vcs, chunk: Vec::with_capacity(CHUNK), block, filled: 0 }
    }

    /// Adds a row. Returns the block if this row has filled the block.
    #[inline]
    pub(super) fn push(&mut self, row: Row<E>, names: &Names) -> Option<Block> {
        self.chunk.push(row);
        if self.chunk.len() == CHUNK && self.fill() { self.take(names) } else { None }
    }

    /// Converts the chunk to columns. Returns whether the block is full.
    fn fill(&mut self) -> bool {
        for (column, filling) in self.table.iter().zip(&mut self.block) {
            column.fill(&self.chunk, self.vcs, filling);
        }
        self.filled += self.chunk.len();
        self.chunk.clear();
        self.filled == ROWS
    }

    /// Removes the rows added so far and returns them as a block; `None` if there are no rows.
    pub(super) fn take(&mut self, names: &Names) -> Option<Block> {
        self.fill();
        if std::mem::take(&mut self.filled) == 0 {
            return None;
        }
        let columns = self.table.iter().zip(&mut self.block);
        let columns =
            columns.map(|(column, filling)| column.values(std::mem::replace(filling, column.filling()), names));
        Some(Block { kind: self.kind, columns: columns.collect() })
    }
}

impl<E> Column<E> {
    fn filling(&self) -> Filling {
        match self.value {
            Accessor::Time | Accessor::Number(_) | Accessor::Rate(_) => Filling::Numbers(Vec::new()),
            Accessor::Count(_) => Filling::Counts(Vec::new()),
            Accessor::Flag(_) => Filling::Flags(Vec::new()),
            Accessor::Flow(_) => Filling::Connections(Vec::new(), BlockRequests::default()),
            Accessor::Vc(_) | Accessor::PortVc(_) | Accessor::Port(_) | Accessor::Pool(_) => Filling::Names(Vec::new()),
            Accessor::Word(_) => Filling::Words(Vec::new(), Vec::new()),
        }
    }

    /// Appends the column's values for the given rows; `vcs` is the number of VCs.
    fn fill(&self, rows: &[Row<E>], vcs: u32, into: &mut Filling) {
        match (into, &self.value) {
            (Filling::Numbers(into), Accessor::Time) => into.extend(rows.iter().map(|row| row.time_s)),
            (Filling::Numbers(into), Accessor::Number(of)) => {
                into.extend(rows.iter().map(|row| of(row).unwrap_or(f64::NAN)));
            }
            (Filling::Numbers(into), Accessor::Rate(of)) => {
                into.extend(rows.iter().map(|row| of(row).map_or(f64::NAN, mbps)));
            }
            (Filling::Counts(into), Accessor::Count(of)) => {
                let count = |row| of(row).map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX));
                into.extend(rows.iter().map(count));
            }
            (Filling::Flags(into), Accessor::Flag(of)) => {
                into.extend(rows.iter().map(|row| of(row).map_or(-1, i8::from)));
            }
            (Filling::Connections(into, requests), Accessor::Flow(of)) => {
                into.extend(rows.iter().map(|row| match of(row) {
                    None => -1,
                    Some(ConnectionName::Flow(flow)) => place(flow.number()),
                    Some(ConnectionName::Request(group, number)) => requests.value(group, number),
                }));
            }
            (Filling::Names(into), Accessor::Vc(of)) => {
                into.extend(rows.iter().map(|row| of(row).map_or(-1, |vc| place(vc.number()))));
            }
            (Filling::Names(into), Accessor::PortVc(of)) => {
                let at = |row| match of(row) {
                    None => -1,
                    Some(PortVc::Own(vc)) => place(vc.number()),
                    Some(PortVc::Merged(merge)) => place(vcs) + place(merge.number()),
                };
                into.extend(rows.iter().map(at));
            }
            (Filling::Names(into), Accessor::Port(of)) => {
                into.extend(rows.iter().map(|row| of(row).map_or(-1, |link| place(link.number()))));
            }
            (Filling::Names(into), Accessor::Pool(of)) => into.extend(rows.iter().map(|row| place(of(row)))),
            (Filling::Words(into, words), Accessor::Word(of)) => {
                into.extend(rows.iter().map(|row| word(words, of(row))));
            }
            _ => unreachable!("a column receives only values of its own type"),
        }
    }

    /// Returns the values of a filled column, with the words to which the values refer.
    fn values(&self, filled: Filling, names: &Names) -> Values {
        match filled {
            Filling::Numbers(values) => Values::Numbers(values),
            Filling::Counts(values) => Values::Counts(values),
            Filling::Flags(values) => Values::Flags(values),
            Filling::Words(values, words) => Values::Words(values, words.iter().map(|&word| word.to_owned()).collect()),
            Filling::Connections(values, requests) => requests.resolve(values, names),
            Filling::Names(values) => {
                let names = match self.value {
                    Accessor::Vc(_) => &names.vcs,
                    Accessor::PortVc(_) => &names.port_vcs,
                    Accessor::Pool(_) => &names.pools,
                    _ => &names.ports,
                };
                Values::Words(values, Arc::clone(names))
            }
        }
    }
}

fn mbps(cells_per_second: f64) -> f64 {
    cells_per_second * CELL_BITS as f64 / 1e6
}

fn place(index: u32) -> i32 {
    i32::try_from(index).expect("a network has fewer than 2^31 parts")
}

/// Returns the index of a word. Adds the word if it is new. Compares addresses before contents, since all words are
/// constants of the program.
fn word(words: &mut Vec<&'static str>, word: &'static str) -> i32 {
    if word.is_empty() {
        return -1;
    }
    let known = words.iter().position(|known| std::ptr::eq(*known, word));
    let at = known.or_else(|| words.iter().position(|known| *known == word)).unwrap_or_else(|| {
        words.push(word);
        words.len() - 1
    });
    i32::try_from(at).expect("the number of different words fits in 32 bits")
}
