//! Tail drop: a packet that finds no room is refused.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, sections 3 and 4.2 (its ABR-ER without a name for the algorithm); `MECHANISMS` 5.
//! Departures: none known. Packets are refused whole, as an IP queue does, not cell by cell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Discard, Packets};
use crate::cell::Label;

/// Tail drop: a packet is refused if the cells that wait and its own are more than the buffer. It has no parameters.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 4.2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EdgeTailDrop")]
pub struct Config {}

/// The algorithm; the buffer does what it needs.
#[derive(Debug)]
pub struct TailDrop;

impl Configure for Config {
    type Discard = TailDrop;

    fn build(&self, _packets: &Packets) -> TailDrop {
        TailDrop
    }
}

impl Discard for TailDrop {
    fn on_arrival(&mut self, _packets: &mut Packets, _vc: Label, _cells: u32) {}
}
