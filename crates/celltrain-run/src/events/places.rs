//! Which cell of its frame a cell is that comes to a port, waits there and leaves.

use std::collections::{BTreeMap, VecDeque};

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{CellEvent, CellStep};
use celltrain_core::index::{LinkIndex, VcIndex};

/// A cell's frame, and its place among the frame's cells that came to the port.
type Place = (FrameNumber, u32);

/// The cells of one VC at one port.
#[derive(Default)]
struct AtPort {
    /// The frame whose cells come, and how many have.
    coming: Option<Place>,
    /// Came, and no more is told of them yet.
    came: VecDeque<Place>,
    /// Wait.
    waiting: VecDeque<Place>,
}

/// The cells of all VCs at the ports that are asked for. Cells of one VC leave a port in the order they came in.
#[derive(Default)]
pub(crate) struct Places {
    by_port: BTreeMap<(LinkIndex, VcIndex), AtPort>,
}

impl Places {
    /// The place of the cell that this is about; None of an RM cell, which is of no frame.
    pub(crate) fn of(&mut self, event: &CellEvent) -> Option<u32> {
        if event.rm.is_some() {
            return None;
        }
        let CellEvent { link, vc, frame, step, .. } = *event;
        let AtPort { coming, came, waiting } = self.by_port.entry((link, vc)).or_default();
        let place = match step {
            // The network tags a cell just before it comes, or marks it as it leaves.
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
            CellStep::PushedOut | CellStep::Dropped => remove(waiting, frame)?.1,
            CellStep::Departed => waiting.pop_front()?.1,
        };
        Some(place)
    }
}

/// Takes the first waiting cell of a frame.
fn remove(waiting: &mut VecDeque<Place>, frame: FrameNumber) -> Option<Place> {
    let at = waiting.iter().position(|place| place.0 == frame)?;
    waiting.remove(at)
}
