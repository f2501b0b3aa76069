//! Tracks the index of each cell within its frame, from the cell's arrival at a port until it leaves.

use std::collections::{BTreeMap, VecDeque};

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{CellEvent, CellStep};
use celltrain_core::index::{LinkIndex, VcIndex};

/// A cell's frame, and its index among the frame's cells that arrived at the port.
type Place = (FrameNumber, u32);

#[derive(Default)]
struct AtPort {
    /// Frame whose cells are arriving, and the number of its cells that have arrived so far.
    coming: Option<Place>,
    /// Cells that have arrived at the port but have not yet been admitted or lost.
    came: VecDeque<Place>,
    waiting: VecDeque<Place>,
}

/// Cells of all VCs at the observed ports. Cells of the same VC leave a port in the order of arrival.
#[derive(Default)]
pub(crate) struct Places {
    by_port: BTreeMap<(LinkIndex, VcIndex), AtPort>,
}

impl Places {
    /// Returns the index of the cell of this event; `None` for an RM cell, which belongs to no frame, and for a cell
    /// lost on a link.
    pub(crate) fn of(&mut self, event: &CellEvent) -> Option<u32> {
        if event.rm.is_some() {
            return None;
        }
        let CellEvent { link, vc, frame, step, .. } = *event;
        let AtPort { coming, came, waiting } = self.by_port.entry((link, vc)).or_default();
        let place = match step {
            // The network tags a cell just before its arrival at the port, and marks it when it leaves.
            CellStep::Tagged => coming.filter(|of| of.0 == frame).map_or(0, |of| of.1),
            CellStep::Marked => waiting.front().map(|place| place.1)?,
            CellStep::Arrived => {
                let place = coming.filter(|of| of.0 == frame).map_or(0, |of| of.1);
                *coming = Some((frame, place + 1));
                came.push_back((frame, place));
                place
            }
            CellStep::Admitted => {
                let place = came.pop_front()?;
                waiting.push_back(place);
                place.1
            }
            CellStep::Lost(_) => came.pop_front()?.1,
            CellStep::PushedOut | CellStep::Dropped | CellStep::DroppedAtHead => remove(waiting, frame)?.1,
            CellStep::Departed => waiting.pop_front()?.1,
            // Once a cell has left the port, its index in the frame is forgotten.
            CellStep::LostOnLink(_) => return None,
        };
        Some(place)
    }
}

fn remove(waiting: &mut VecDeque<Place>, frame: FrameNumber) -> Option<Place> {
    let at = waiting.iter().position(|place| place.0 == frame)?;
    waiting.remove(at)
}
