//! The recorded history of a buffer, in columns.

use super::SharedMemory;

/// Kind of event at a buffer, with its name in [`STEPS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A frame arrives, and all of its cells are refused.
    Refused,
    /// A frame loses a cell, so that the frame can no longer be delivered.
    Cut,
    /// A cell enters the buffer.
    Admitted,
    /// An arriving cell is lost because the buffer is full.
    Lost,
    /// The policy discards an arriving cell, with its whole frame or as part of a damaged frame.
    Discarded,
    /// A waiting cell is pushed out to make room for another cell.
    PushedOut,
    /// A cell waiting at an edge device is dropped with its packet, because the rate fell.
    Dropped,
    /// A cell leaves the buffer when its transmission begins.
    Departed,
}

/// The names of the kinds of steps, in the order of [`Step`].
pub const STEPS: [&str; 8] = ["refused", "cut", "admitted", "lost", "discarded", "pushed_out", "dropped", "departed"];

/// Value of a missing index in a column.
pub(super) const NONE: i32 = -1;

/// Events at the buffer of a port in a time window, in columns.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Name of the observed port.
    pub port: String,
    /// Capacity of the buffer in cells; `None` if unlimited.
    pub capacity: Option<u32>,
    /// Names of the VCs at the port.
    pub vcs: Vec<String>,
    /// Number of cells that each VC has sent over the link before the window.
    pub sent_before: Vec<f64>,
    /// Cells that are waiting when the time window begins, in queue order, followed by cells that arrive in the window.
    pub cells: Cells,
    /// Frames to which the cells belong.
    pub frames: Frames,
    /// Decisions of the policy about frames.
    pub judgements: Judgements,
    /// Events at the buffer, in order of time.
    pub steps: Steps,
    /// Names of the ports to which [`Frames::damaged_at`] refers.
    pub ports: Vec<String>,
    /// The memory to which the port belongs, if any.
    pub memory: Option<SharedMemory>,
    /// True if the history ends before the time window, because the maximum number of steps was reached.
    pub cut_short: bool,
}

/// Cells of the history, one per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// Index into [`History::vcs`].
    pub vc: Vec<i32>,
    /// Index into [`History::frames`]; -1 for an RM cell.
    pub frame: Vec<i32>,
    /// Index of the cell, from 0, among the cells of its frame that arrived at the port; -1 for an RM cell.
    pub index: Vec<i32>,
    /// 1 if the cell is the last cell of its frame.
    pub last: Vec<i8>,
    /// Number of completed steps of the history when the cell starts to wait.
    pub from: Vec<i32>,
    /// Number of completed steps of the history when the cell stops waiting; the largest `i32` if the cell still waits
    /// when the history ends.
    pub until: Vec<i32>,
}

/// Frames of the history, one per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frames {
    /// Index into [`History::vcs`].
    pub vc: Vec<i32>,
    /// Number of the frame within the VC on which it was sent, as in the event tables.
    pub number: Vec<i32>,
    /// Time of the port's decision about the frame in seconds; NaN if the port decided before the time window.
    pub arrived_s: Vec<f64>,
    /// Time at which the frame was damaged, in seconds; NaN if the frame is intact.
    pub damaged_s: Vec<f64>,
    /// Port that damaged the frame, an index into [`History::ports`]; -1 if the frame is undamaged, or if the receiver
    /// will join it to the previous frame because that frame's last cell was lost.
    pub damaged_at: Vec<i32>,
    /// Outcome of the frame at this port: `admitted`, `refused`, `cut`, `joined` or `dropped`.
    pub fate: Vec<&'static str>,
    /// Stream offset of the first byte of the segment in the frame; NaN for an ACK.
    pub sequence: Vec<f64>,
    /// Payload bytes of the segment in the frame; NaN for an ACK.
    pub length: Vec<f64>,
}

/// Decisions of the policy about frames, one per row. A number that the policy does not use is NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgements {
    /// Index into [`History::frames`].
    pub frame: Vec<i32>,
    /// Seconds.
    pub time_s: Vec<f64>,
    /// 1 if the frame may enter the buffer.
    pub admitted: Vec<i8>,
    /// Reason for refusing the frame: the policy's rule, or a full buffer; empty if the frame is admitted.
    pub reason: Vec<&'static str>,
    /// X: number of cells waiting at the port.
    pub occupancy: Vec<f64>,
    /// `Y_i`: number of cells of the frame's VC waiting at the port.
    pub vc_cells: Vec<f64>,
    /// `N_a`: number of VCs with cells waiting at the port.
    pub active_vcs: Vec<f64>,
    /// Threshold with which the policy compared X.
    pub threshold_cells: Vec<f64>,
    /// Maximum number of cells that the policy allows the VC.
    pub share_cells: Vec<f64>,
    /// Number of cells that the policy compared with the VC's share, if it did not compare `Y_i`.
    pub held_cells: Vec<f64>,
    /// Probability of refusal in a random decision of the policy.
    pub drop_probability: Vec<f64>,
    /// 1 if the frame is tagged.
    pub tagged: Vec<i8>,
}

/// Events at the buffer, one per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// Seconds.
    pub time_s: Vec<f64>,
    /// Index into [`STEPS`].
    pub kind: Vec<i8>,
    /// Row in [`History::cells`]; -1 if the step concerns a whole frame.
    pub cell: Vec<i32>,
    /// Index into [`History::vcs`].
    pub vc: Vec<i32>,
    /// Index into [`History::frames`]; -1 for an RM cell.
    pub frame: Vec<i32>,
    /// Number of cells waiting at the port after the step.
    pub occupancy: Vec<i32>,
    /// Decision that caused the step, an index into [`History::judgements`]; -1 if no decision caused it.
    pub judgement: Vec<i32>,
    /// Refusal by the shared memory that caused the step, an index into [`SharedMemory::refusals`]; -1 if no refusal
    /// caused it.
    pub refusal: Vec<i32>,
}
