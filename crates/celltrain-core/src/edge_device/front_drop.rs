//! Front drop: packets at the head of the queue make room for the one that arrives.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, section 4.2 (ABR-ER with FD), after Lakshman, Neidhardt and Ott 1996;
//! `MECHANISMS` 5, A-10. TCP learns of the loss one queue earlier.
//! Departures: in a shared memory, of which the source says nothing, the arriving packet's own VC loses packets first,
//! then the one with most cells waiting. A packet that cannot be helped in this way is refused, and nothing dropped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cause, Configure, Discard, Memory, Packets};
use crate::cell::Label;

/// Front drop: whole packets are dropped from the head of the queue, the one under way excepted, until the arriving one
/// fits. It has no parameters.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 4.2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EdgeFrontDrop")]
pub struct Config {}

/// The algorithm; it has no state.
#[derive(Debug)]
pub struct FrontDrop;

impl Configure for Config {
    type Discard = FrontDrop;

    fn build(&self, _packets: &Packets) -> FrontDrop {
        FrontDrop
    }
}

impl Discard for FrontDrop {
    fn on_arrival(&mut self, packets: &mut Packets, vc: Label, cells: u32) {
        if !packets.can_fit(vc, cells) {
            return;
        }
        while !packets.fits(vc, cells) {
            if !packets.drop_front(vc, Cause::NoRoom) {
                let longest = longest_other(packets).expect("a packet that can fit finds others to drop");
                packets.drop_front(longest, Cause::NoRoom);
            }
        }
    }
}

/// The VC with most cells waiting of those that can lose a packet; the first of equals.
fn longest_other(packets: &Packets) -> Option<Label> {
    debug_assert_eq!(packets.memory(), Memory::Shared, "in a buffer of its own a VC has no others");
    packets.vcs().filter(|&vc| packets.can_drop(vc)).min_by_key(|&vc| std::cmp::Reverse(packets.cells(vc)))
}
