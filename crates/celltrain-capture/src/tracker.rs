//! Tracks the index of each cell within its frame at every port. The frame and the index determine the cell's content.
//!
//! The cells of a VC are followed from port to port. Each cell gets its index when it enters the network. Cells of a VC
//! never overtake each other, so cells arrive at a port in the order in which they left the previous port.

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{CellEvent, CellStep};
use celltrain_core::index::{LinkIndex, VcIndex};
use celltrain_core::network::Network;

/// Positions of the cells of all VCs in the network.
pub(crate) struct CellTracker(TiVec<VcIndex, TrackedVc>);

/// A cell, given by its frame and its index in the frame, from 0.
type Place = (FrameNumber, u32);

struct TrackedVc {
    path: Vec<LinkIndex>,
    /// The cells at each port of the VC's path, in the order of the path.
    hops: Vec<Hop>,
    /// Index in its frame of the next cell that enters the network.
    next: u32,
}

/// The cells of one VC at one port. Each list is in the order in which the cells left the previous port.
#[derive(Default)]
struct Hop {
    /// Cells that left the previous port but have not arrived yet.
    on_the_way: VecDeque<Place>,
    /// Cells that have arrived at the port, but that the port has not yet reported as admitted or lost.
    came: VecDeque<Place>,
    waiting: VecDeque<Place>,
}

/// Position of the cell of an event, as found by the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    /// The cell's index in its frame, from 0.
    pub(crate) index: u32,
    /// Index of the port in the VC's path.
    pub(crate) hop: usize,
    /// True if this event is the cell's last event, because the cell leaves the network or is lost.
    pub(crate) is_gone: bool,
}

impl CellTracker {
    /// Creates the tracker for a network that no cell has entered yet.
    pub(crate) fn of(network: &Network) -> Self {
        let hops = |links: &[LinkIndex]| links.iter().map(|_| Hop::default()).collect();
        let trail = |path: &Vec<LinkIndex>| TrackedVc { path: path.clone(), hops: hops(path), next: 0 };
        Self(network.vcs.iter().map(|vc| trail(&vc.path)).collect())
    }

    pub(crate) fn hop(&self, vc: VcIndex, link: LinkIndex) -> usize {
        self.0[vc].hop(link)
    }

    /// Follows the cell of this event, which must not be an RM cell. Returns `None` if the event does not move the
    /// cell. This function must be called for every event at every port of the VC.
    pub(crate) fn follow(&mut self, event: &CellEvent) -> Option<Followed> {
        let CellEvent { link, vc, frame, step, last, .. } = *event;
        let hop = self.hop(vc, link);
        let TrackedVc { hops, next, .. } = &mut self.0[vc];
        let Hop { on_the_way, came, waiting } = &mut hops[hop];
        let ((_, index), is_gone) = match step {
            CellStep::Arrived => {
                let place = if hop == 0 {
                    let index = std::mem::replace(next, if last { 0 } else { *next + 1 });
                    (frame, index)
                } else {
                    on_the_way.pop_front().expect("a cell leaves one port before it arrives at the next")
                };
                debug_assert_eq!(place.0, frame, "cells of a VC never overtake each other");
                came.push_back(place);
                (place, false)
            }
            CellStep::Admitted => {
                let place = came.pop_front().expect("a cell arrives before it is admitted");
                waiting.push_back(place);
                (place, false)
            }
            CellStep::Lost(_) => {
                let place = came.pop_front().expect("a cell arrives before it is lost");
                debug_assert_eq!(place.0, frame, "the policy decides about a cell on its arrival");
                (place, true)
            }
            CellStep::PushedOut | CellStep::Dropped | CellStep::DroppedAtHead => {
                (take_of(waiting, frame).expect("a removed cell was waiting"), true)
            }
            CellStep::Departed => {
                let place = waiting.pop_front().expect("a departing cell was waiting");
                debug_assert_eq!(place.0, frame, "cells of a VC never overtake each other");
                let behind = hops.get_mut(hop + 1);
                let is_gone = behind.is_none();
                if let Some(behind) = behind {
                    behind.on_the_way.push_back(place);
                }
                (place, is_gone)
            }
            CellStep::LostOnLink(_) => {
                // A cell is no longer tracked after it has left the last port of its VC's path.
                let behind = hops.get_mut(hop + 1)?;
                (behind.on_the_way.pop_front().expect("a cell lost on a link has left the port"), true)
            }
            CellStep::Marked | CellStep::Tagged => return None,
        };
        Some(Followed { index, hop, is_gone })
    }
}

impl TrackedVc {
    fn hop(&self, link: LinkIndex) -> usize {
        self.path.iter().position(|&on_path| on_path == link).expect("every cell is on the path of its VC")
    }
}

fn take_of(waiting: &mut VecDeque<Place>, frame: FrameNumber) -> Option<Place> {
    let at = waiting.iter().position(|place| place.0 == frame)?;
    waiting.remove(at)
}

#[cfg(test)]
mod tests {
    use celltrain_core::events::Loss;

    use super::*;

    /// Returns a tracker for one VC that crosses two ports.
    fn tracker() -> CellTracker {
        let path = vec![LinkIndex::new(0), LinkIndex::new(1)];
        let hops = path.iter().map(|_| Hop::default()).collect();
        CellTracker(vec![TrackedVc { path, hops, next: 0 }].into())
    }

    /// Passes events to a tracker. Each event consists of a port, a frame, whether the cell is the last cell of the
    /// frame, and a step. Returns for each event the cell's index and whether the cell has left the network.
    fn followed(tracker: &mut CellTracker, told: &[(u32, u32, bool, CellStep)]) -> Vec<(u32, bool)> {
        let event = |&(link, frame, last, step): &(u32, u32, bool, CellStep)| CellEvent {
            link: LinkIndex::new(link),
            vc: VcIndex::new(0),
            frame: FrameNumber::new(frame),
            last,
            tagged: false,
            efci: false,
            rm: None,
            step,
        };
        let place = |of: Followed| (of.index, of.is_gone);
        told.iter().map(|told| tracker.follow(&event(told)).map_or((9, false), place)).collect()
    }

    use CellStep::{Admitted, Arrived, Departed, Dropped, Lost, Marked, PushedOut};

    const NO_ROOM: CellStep = Lost(Loss::NoRoom { cuts: true });

    #[test]
    fn the_cells_after_a_lost_cell_keep_their_positions_within_the_frame() {
        let mut tracker = tracker();
        let put_in = [false, false, true].into_iter().flat_map(|last| [(last, Arrived), (last, Admitted)]);
        let put_in: Vec<_> = put_in.map(|(last, step)| (0, 7, last, step)).collect();
        assert_eq!(followed(&mut tracker, &put_in), [0, 0, 1, 1, 2, 2].map(|index| (index, false)));
        let on: Vec<_> = [false, false, true].map(|last| (0, 7, last, Departed)).into();
        assert_eq!(followed(&mut tracker, &on), [0, 1, 2].map(|index| (index, false)));
        let at_second =
            [(1, 7, false, Arrived), (1, 7, false, Admitted), (1, 7, false, Arrived), (1, 7, false, NO_ROOM)];
        assert_eq!(followed(&mut tracker, &at_second), [(0, false), (0, false), (1, false), (1, true)]);
        let last = [(1, 7, true, Arrived), (1, 7, true, Admitted), (1, 7, false, Departed), (1, 7, true, Marked)];
        assert_eq!(followed(&mut tracker, &last), [(2, false), (2, false), (0, true), (9, false)]);
        assert_eq!(followed(&mut tracker, &[(1, 7, true, Departed)]), [(2, true)]);
        assert_eq!(
            followed(&mut tracker, &[(0, 8, true, Arrived)]),
            [(0, false)],
            "after a lost frame, counting restarts with the first cell"
        );
    }

    #[test]
    fn the_cell_tracker_follows_queues_in_which_arriving_cells_push_out_waiting_cells() {
        let mut tracker = tracker();
        let waits = [(0, 1, false), (0, 1, true), (0, 2, false)].into_iter();
        let waits: Vec<_> = waits
            .flat_map(|(link, frame, last)| [(link, frame, last, Arrived), (link, frame, last, Admitted)])
            .collect();
        followed(&mut tracker, &waits);
        // A cell of frame 2 arrives at an edge device, which drops frame 1.
        let told = [(0, 2, true, Arrived), (0, 1, false, Dropped), (0, 1, true, PushedOut)];
        assert_eq!(followed(&mut tracker, &told), [(1, false), (0, true), (1, true)]);
        let rest = [(0, 2, true, Admitted), (0, 2, false, Departed), (0, 2, true, Departed)];
        assert_eq!(followed(&mut tracker, &rest), [(1, false), (0, false), (1, false)]);
    }
}
