//! Events of a run as tables. Each kind of event is a table, and one line defines each column
//! (`docs/design/events.md`).
//!
//! A [`Log`] is a probe that observes events. It records the events selected by a [`Choice`] in numeric columns, and
//! delivers the columns block by block. Names and words are indices into lists, which are part of each block.

mod choice;
mod columns;
pub(crate) mod log;
pub(crate) mod places;
pub mod tables;

pub use celltrain_capture::selection::Wrong;
pub use choice::Choice;
pub use columns::{Accessor, Block, Column, PortVc, Values};
pub use log::Log;

use serde_json::{Value, json};

/// Kind of event, used by observers as a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Segments and acknowledgements at the ends of connections, and packets without TCP.
    Segments,
    /// Timers of connections.
    Timers,
    /// Frames at ports and at their destination hosts.
    Frames,
    /// Individual cells at ports.
    Cells,
    /// Rates of ABR VCs.
    Rates,
    /// Refusals and pauses of memories shared by ports.
    Memories,
}

impl Kind {
    /// Returns whether the fast engine reports events of this kind. The reference engine reports all kinds of events.
    pub fn of_end_systems(self) -> bool {
        matches!(self, Kind::Segments | Kind::Timers)
    }
}

/// Every kind of event with its name and meaning, in the order of the files.
pub const KINDS: [(Kind, &str, &str); 6] = [
    (Kind::Segments, "segments", "segments and acknowledgements at the ends of connections"),
    (Kind::Timers, "timers", "timers of connections"),
    (Kind::Frames, "frames", "frames at ports and at their destination hosts"),
    (Kind::Cells, "cells", "single cells at the chosen ports"),
    (Kind::Rates, "rates", "rates of ABR VCs"),
    (Kind::Memories, "memories", "refusals and pauses of shared memories"),
];

/// Returns the name of a kind of event.
pub fn name_of(kind: Kind) -> &'static str {
    KINDS[kind as usize].1
}

/// Returns the columns of each kind of event, as JSON.
pub fn described() -> Value {
    let of = |(kind, name, meaning): (Kind, &str, &str)| {
        let columns = match kind {
            Kind::Segments => described_columns(tables::SEGMENTS),
            Kind::Timers => described_columns(tables::TIMERS),
            Kind::Frames => described_columns(tables::FRAMES),
            Kind::Cells => described_columns(tables::CELLS),
            Kind::Rates => described_columns(tables::RATES),
            Kind::Memories => described_columns(tables::MEMORIES),
        };
        let engines = if kind.of_end_systems() { &["fast", "reference"][..] } else { &["reference"] };
        json!({"name": name, "meaning": meaning, "engines": engines, "columns": columns})
    };
    KINDS.into_iter().map(of).collect()
}

fn described_columns<E>(columns: &[Column<E>]) -> Value {
    let line = |column: &Column<E>| {
        json!({
            "name": column.name,
            "kind": column.kind(),
            "unit": column.unit,
            "meaning": column.meaning,
        })
    };
    columns.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
