//! Lengths of queues in scenarios: a number of cells, or a size such as `"28kB"`.
//!
//! Publications give most lengths in bytes. A scenario with lengths in bytes holds for any cell size.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::aal5::CellFormat;
use crate::error::Fault;
use crate::units::Bytes;

/// Length of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-expect" = "a whole number of cells (1 or more), or a size such as \"28kB\""))]
pub enum Length {
    /// A number of cells.
    Cells(u32),
    /// Bytes of packets, rounded up to whole cells.
    Bytes(Bytes),
}

impl Length {
    /// Returns the number of cells, at least 1.
    pub fn cells(self, cell: CellFormat) -> u32 {
        match self {
            Length::Cells(cells) => cells,
            Length::Bytes(bytes) => cell.cells_of(bytes.bytes),
        }
        .max(1)
    }

    /// Returns a fault if the length is zero.
    pub(crate) fn check(self, key: &str) -> Option<Fault> {
        let problem = "must be at least one cell";
        match self {
            Length::Cells(0) => Some(Fault::new(key, 0, problem)),
            Length::Bytes(Bytes { bytes: 0 }) => Some(Fault::new(key, "\"0B\"", problem)),
            Length::Cells(_) | Length::Bytes(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_given_in_bytes_does_not_depend_on_the_cell_size() {
        for cell in [CellFormat::ATM, CellFormat::of_memory(208), CellFormat::of_memory(250)] {
            let bytes = u64::from(Length::Bytes(Bytes { bytes: 28_000 }).cells(cell)) * cell.payload;
            assert!((28_000..28_000 + cell.payload).contains(&bytes), "{bytes}");
            assert_eq!(Length::Cells(584).cells(cell), 584);
        }
    }
}
