//! The queue of a contended port as probes and results see it.

use typed_index_collections::{TiSlice, TiVec};

use crate::index::Label;
use crate::policy::BufferPolicy;
use crate::port::PortState;
use crate::queue_range::QueueRange;
use crate::units::Time;

/// The queue of a contended port, for probes and results. All methods require that the port is simulated up to the
/// present.
pub(super) trait PortQueue {
    /// Returns the queue as probes see it.
    fn view(&self) -> BufferView<'_>;

    /// Starts a new range for a sample.
    fn start_range(&mut self);

    /// Returns the state for the results.
    fn end(&self) -> PortEnd;

    /// Updates the counts to their state at `until`. All earlier events must have been simulated.
    fn look_at(&mut self, until: Time);

    /// Returns the number of cells waiting at `now`. All earlier events must have been simulated.
    fn waiting_at(&mut self, _now: Time) -> u32 {
        self.view().occupancy
    }

    /// Moves the horizon up to which the port can be simulated next.
    fn set_horizon(&mut self, _horizon: Time) {}

    /// Returns the choices made in addition to the type of the port, for `--explain-plan`.
    fn details(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A buffer as probes see it.
pub(super) struct BufferView<'a> {
    /// X, the number of waiting cells.
    pub(super) occupancy: u32,
    /// The minimum and maximum number of cells waiting since the latest sample.
    pub(super) range: QueueRange,
    /// `Y_i`, the waiting cells of each VC.
    pub(super) per_vc: &'a TiSlice<Label, u32>,
}

pub(super) struct PortEnd {
    pub(super) state: PortState,
    /// Number of waiting cells, by VC, whose departure is already known. Empty if no departure is known in advance.
    pub(super) leave_later: TiVec<Label, u32>,
}

impl PortEnd {
    /// Creates the state of a port at which all waiting cells leave in order of arrival.
    pub(super) fn in_order(state: PortState) -> Self {
        Self { leave_later: state.waiting.clone(), state }
    }
}

/// Selects when a port counts its waiting cells by VC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VcCounts {
    /// The port always counts cells by VC, because a policy reads the counts.
    Kept,
    /// The port counts cells by VC when a probe or the results need the counts.
    OnDemand,
}

impl VcCounts {
    pub(super) fn of(policy: &dyn BufferPolicy) -> Self {
        if policy.reads_counts() { Self::Kept } else { Self::OnDemand }
    }
}
