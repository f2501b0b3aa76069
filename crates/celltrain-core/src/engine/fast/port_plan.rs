//! Selects the implementation of each contended port, once before the run.

use super::ingress::MOST_INPUTS;
use super::timing::{Arrivals, Effects, Timing};
use crate::switching::PacketAdmission;
use crate::tie::TieOrder;

/// Rule by which the implementation of contended ports is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortMode {
    /// Selects the implementation that should be faster.
    #[default]
    Planned,
    /// Uses trains everywhere, for tests and measurements.
    Trains,
    /// Uses streams of cells wherever possible, for tests and measurements.
    Streams,
}

/// The implementation of a contended port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortPlan {
    /// [`TrainPort`](super::train_port::TrainPort): cells arrive and leave in trains.
    Trains,
    /// [`StreamPort`](super::stream_port::StreamPort): single cells, first in, first out.
    Stream,
    /// [`QueuePort`](super::queue_port::QueuePort): single cells, and queues whose order is determined later.
    Queues,
    /// [`AtOncePort`](super::egress::AtOncePort): single cells, each processed before it arrives.
    AtOnce,
    /// [`MemoryPorts`](super::memory_ports::MemoryPorts): single cells, together with the other ports of its memory.
    Memory,
}

/// The properties of a port that determine its implementation.
pub(super) struct PortProperties<'a> {
    pub(super) timing: &'a Timing,
    pub(super) vcs: usize,
    /// Number of links that feed the port.
    pub(super) inputs: usize,
    /// True if cells from another contended port arrive one by one, not in trains.
    pub(super) gets_single_cells: bool,
    /// The implementation for single cells: [`PortPlan::Stream`] if the port is first in, first out, and departure times
    /// are simple sums, otherwise [`PortPlan::Queues`].
    pub(super) single_cells: PortPlan,
    /// Order of cells that arrive at the same instant.
    pub(super) tie_order: TieOrder,
    /// True if no probe reads the port, and this partition simulates the ports that feed it.
    pub(super) may_run_ahead: bool,
    /// How the port admits packets, if it stores them whole.
    pub(super) stores: Option<PacketAdmission>,
}

/// Streams are used only if every cell needs at least this many cell times before it has an effect elsewhere. Otherwise
/// batches would contain too few cells.
const FAR: u64 = 8;
/// Minimum number of VCs for streams, because a few VCs often stay in step.
const MANY: usize = 5;

impl PortPlan {
    /// Selects the implementation of a port outside memories, and returns the reason. Single cells are faster if a
    /// contended port feeds or follows the port, because cells then arrive or leave one by one. Other ports keep trains
    /// whole.
    pub(super) fn select(mode: PortMode, port: &PortProperties<'_>) -> (Self, String) {
        let &PortProperties { timing, vcs, inputs, gets_single_cells, single_cells, tie_order, may_run_ahead, stores } =
            port;
        if let Some(admission) = stores {
            return match admission {
                PacketAdmission::Start if single_cells == Self::Stream && inputs <= MOST_INPUTS => {
                    (Self::Stream, "the port stores packets whole, first in, first out".into())
                }
                _ => (
                    Self::Memory,
                    "the port stores packets whole, and is simulated as a shared memory of one port".into(),
                ),
            };
        }
        let can_gain = timing.effects == Effects::EveryCell || gets_single_cells;
        let is_far = timing.least_lead.0 >= timing.cell_time.0.saturating_mul(FAR);
        let is_last_behind_one = timing.effects == Effects::FrameEnds && inputs == 1;
        let cells = match single_cells {
            Self::Stream if is_last_behind_one && gets_single_cells && may_run_ahead => Self::AtOnce,
            _ => single_cells,
        };
        match mode {
            _ if tie_order.follows_bursts() && inputs > 1 => {
                (cells, "the order of ties depends on earlier arrivals".into())
            }
            PortMode::Trains => (Self::Trains, "forced for a test".into()),
            _ if inputs > MOST_INPUTS => (Self::Trains, format!("more than {MOST_INPUTS} links feed the port")),
            PortMode::Streams => (cells, "forced for a test".into()),
            _ if !can_gain => (Self::Trains, "no neighbouring port is contended, so trains stay whole".into()),
            _ if is_last_behind_one && timing.arrivals == Arrivals::Unrecorded => {
                (cells, "the port has one input link, from a contended port, and sends all cells to hosts".into())
            }
            _ if !is_far => (Self::Trains, format!("the cells of the port affect other ports within {FAR} cell times")),
            _ if vcs < MANY => {
                (Self::Trains, format!("fewer than {MANY} VCs cross the port; few VCs often stay in step"))
            }
            PortMode::Planned => (cells, "a neighbouring port is contended, so single cells arrive or leave".into()),
        }
    }

    /// Returns whether the port reports the delay of a packet when the packet's last cell enters. `stores` says how it
    /// admits packets, if it stores them whole.
    pub(super) fn counts_entries(self, stores: Option<PacketAdmission>) -> bool {
        matches!(self, Self::Stream | Self::AtOnce) && stores.is_none()
    }
}
