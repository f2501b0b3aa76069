//! Rare situations of the models, and how often a process has reached them.
//!
//! `reached!` marks a branch that is rare, but must happen in tests (a "sometimes assertion"). A campaign fails if its
//! random networks never reach one of these situations (`docs/design/testing.md`). Situations are counted only in builds
//! with debug assertions. In other builds, the marks compile to nothing.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Defines the situations and their names.
macro_rules! situations {
    ($($(#[$about:meta])+ $name:ident,)+) => {
        /// A rare situation. Each one is marked by [`reached!`] somewhere in the models or engines.
        #[derive(Clone, Copy)]
        pub(crate) enum Situation {
            $($(#[$about])+ $name,)+
        }

        /// The names of all situations, in the order of the list.
        const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

situations! {
    // TCP: sender.
    /// The retransmission timer expires during fast recovery.
    TimeoutInRecovery,
    /// The timer expires although the first hole was already sent again in this recovery.
    ResentSegmentLost,
    /// The timer expires again before a valid round-trip sample.
    TimeoutAgain,
    /// The timer expires after an acknowledgement that reports a mark.
    TimeoutAfterMark,
    /// Duplicate acknowledgements start a retransmission.
    FastRetransmit,
    /// Three duplicates do not start a recovery, because they may belong to an earlier loss.
    DuplicatesOfOldLoss,
    /// An acknowledgement covers part of the data that was outstanding when the recovery began.
    PartialAck,
    /// A recovery gets another partial acknowledgement, which does not restart the timer.
    PartialAckAgain,
    /// RFC 6675: a segment counts as lost before the third duplicate.
    LossBeforeThirdDuplicate,
    /// RFC 6675: a duplicate allows a new segment before the recovery begins.
    LimitedTransmit,
    /// RFC 6675: a hole that is not yet lost is sent again.
    HoleSentEarly,
    /// RFC 6675: the last segment is sent again to get acknowledgements.
    RescueRetransmission,
    /// After a timeout, the sender skips data that the receiver has reported.
    ReportedDataSkipped,
    /// After a timeout, an acknowledgement covers data that the sender was about to send again.
    AckBeyondNextSegment,
    /// The receiver's window closes, and the persist timer starts.
    WindowClosed,
    /// A second window probe in a row.
    WindowProbedAgain,
    /// A closed window opens.
    WindowReopened,
    /// An acknowledgement changes only the window.
    WindowUpdate,
    /// A segment fits the window, but waits for the pace.
    SegmentWaitsForPace,
    /// A pause as long as a timeout resets cwnd.
    IdleRestart,
    /// A mark reduces the window.
    WindowReducedByMark,
    /// A mark does not reduce the window again.
    MarkIgnoredInWindow,
    /// DCTCP reduces the window by less than half.
    DctcpReducesByShare,
    /// The retransmission timer of a SYN expires.
    SynTimeout,
    /// A repeated SYN gets a second answer.
    SynAckRepeated,
    /// A frame arrives after its connection has closed.
    FrameAfterClose,
    /// Another copy of a segment is acknowledged during the pause between two bursts.
    AckDuringPause,
    /// The estimate of the round-trip time is discarded at a timeout.
    EstimateForgotten,
    /// The estimate is discarded at the first sample after four timeouts.
    EstimateForgottenAfterFour,
    /// ssthresh stays at two segments.
    SsthreshAtLeastTwo,
    /// The receiver's window stops the growth of cwnd.
    CwndCappedByReceiver,
    /// CUBIC: cwnd does not grow beyond the receiver's window.
    CubicStopsAtReceiver,
    /// ECN: a packet that cannot be marked is dropped.
    DroppedInsteadOfMarked,
    /// CUBIC: its time stops while the sender does not fill the window.
    CubicPauses,
    /// TCP: a sign of congestion on data for which the windows are already reduced.
    CongestionRepeatedInWindow,
    /// CUBIC: the estimate of Reno's window is larger than the cubic.
    CubicFollowsReno,
    /// CUBIC: a loss below the previous window at a loss.
    CubicConvergesFast,
    /// A segment is damaged on purpose at a certain window.
    SegmentDamaged,
    // TCP: receiver.
    /// A segment beyond a gap is discarded.
    SegmentDiscardedOutOfOrder,
    /// A segment fills a gap.
    GapFilled,
    /// A segment brings nothing new.
    SegmentRepeated,
    /// The delayed-acknowledgement timer sends an acknowledgement.
    DelayedAckByTimer,
    /// An acknowledgement is sent early, because the next segment differs in its mark.
    AckBeforeMark,
    /// The receiver keeps more ranges than an acknowledgement has blocks.
    BlocksDoNotFit,
    // AAL5 and hosts.
    /// A frame is joined with the next one, because its last cell was lost.
    FrameJoined,
    /// The last cell arrives, but other cells of the frame are missing.
    FrameIncomplete,
    /// A packet that delimits itself ends without its last cell, because a cell of the next packet arrives.
    PacketWithoutLastCell,
    /// A cell of an admitted packet enters the shared part of its pool, because the headroom of its group is used up.
    RestBeyondHeadroom,
    /// A packet starts at a port although the packet before it has lost its last cell.
    PacketStartsUnannounced,
    /// Joined frames are longer than the longest frame.
    FrameTooLong,
    /// A packet waits until its host has processed another.
    PacketWaitsAtHost,
    // Ports and admission.
    /// Several cells arrive together at a port that has no room for all of them.
    TieAtFullBuffer,
    /// A cell arrives at a full port at the instant at which the port finishes another cell.
    ArrivalAsOneLeaves,
    /// Cells of a frame are pushed out after its first cells have been sent.
    FrameInServicePushedOut,
    /// A frame is pushed out by its own next cell.
    FramePushesOutItself,
    /// A frame is pushed out while its rest is still arriving.
    ArrivingFramePushedOut,
    /// A last cell is pushed out, because only last cells wait.
    LastCellPushedOut,
    /// A cell cannot be pushed out, because only RM cells wait.
    PushOutFindsNothing,
    /// The last cell of a cut frame enters.
    LastCellKept,
    /// The last cell of a cut frame finds no room.
    LastCellLostToo,
    /// A frame that waits to be complete is discarded, because its next cell finds no room.
    AwaitingFrameDiscarded,
    /// An RM cell finds no room.
    RmCellLost,
    // Policies.
    /// EPD: the occupancy is exactly the threshold.
    EpdAtThreshold,
    /// Double EPD: a tagged frame is refused where an untagged one would enter.
    OnlyTaggedRefused,
    /// Selective Drop and FBA: the load ratio is exactly the bound.
    LoadRatioAtBound,
    /// Per-VC accounting: a frame enters above the threshold.
    WithinShareAboveThreshold,
    /// Virtual queuing: a frame enters above the threshold.
    WithinVirtualShare,
    /// Single drop: a second frame above the threshold enters.
    SecondFrameSpared,
    /// DFBA: a VC has exactly its threshold.
    DfbaAtThreshold,
    /// DFBA: a VC is above its ceiling.
    DfbaAboveCeiling,
    /// DFBA: the buffer is congested.
    DfbaCongested,
    /// DFBA: a draw refuses a frame.
    DfbaRefusedByChance,
    /// DFBA: a draw admits a frame.
    DfbaAdmittedByChance,
    /// DFBA of 1998: a VC within its share enters above the low threshold.
    Dfba1998WithinShare,
    /// DFBA of 1998: a draw refuses a frame.
    Dfba1998RefusedByChance,
    // Marking.
    /// A draw marks a packet between the thresholds.
    MarkedByChance,
    /// A packet is marked because of the average, although the queue is short.
    MarkedByAverage,
    // Shared memories.
    /// The memory is full, although the pool is not.
    MemoryFull,
    /// A cell has a reserved place, but the memory is full.
    ReserveWithoutMemory,
    /// A pool is at its limit.
    PoolFull,
    /// A cell fits on the ingress side, but not on the egress side.
    EgressRefusesAfterIngress,
    /// A cell enters a headroom.
    HeadroomUsed,
    /// The headroom of a group is used up.
    HeadroomUsedUp,
    /// The headroom that the groups of a pool share is used up.
    PoolHeadroomUsedUp,
    /// A group pauses at its threshold.
    PausedAtThreshold,
    /// A group resumes because it is below its threshold by the offset, not below its fixed limit.
    ResumedByOffset,
    /// A pause frame stops a port that has cells.
    PausedPortWaits,
    /// A cell overtakes cells of a paused priority.
    PausedPriorityOvertaken,
    /// An arriving cell pushes out a cell of its own frame, and then is not wanted.
    FrameCutByOwnPushOut,
    /// A memory removes a cell of a frame that is still arriving.
    ArrivingFrameLosesCell,
    /// A memory refuses a frame whole.
    WholeFrameRefused,
    /// Longest Queue Drop: several queues are longest.
    LongestQueueTie,
    /// Longest Queue Drop: the arriving cell belongs to the longest queue, and is refused.
    ArrivalAtLongestQueue,
    /// Credence: a cell within its virtual queue is refused because of a prediction.
    PredictedLoss,
    /// Credence: a prediction is flipped.
    PredictionFlipped,
    /// ABM: a queue drains more slowly than its least share.
    DrainRateAtLeast,
    // Edge devices.
    /// Front drop: a packet of another VC makes room.
    PacketDroppedForOther,
    /// Front drop: a packet cannot fit, because the packets under way stay.
    PacketCannotFit,
    /// Adaptive discard: a packet at the front is dropped, because the rate has fallen.
    AdaDropsAtRateFall,
    /// Adaptive discard: a packet at the front is dropped, because the queue is full.
    AdaDropsWhenFull,
    /// Adaptive discard: the only packet is under way and cannot be dropped.
    AdaCannotDrop,
    /// Adaptive discard: the algorithm returns to phase 0.
    AdaReturnsToPhaseZero,
    // ABR.
    /// Rule 6: unanswered RM cells reduce ACR.
    CrmCutOff,
    /// Rule 5: ACR falls to ICR after an idle time.
    AcrResetWhenIdle,
    /// ACR stays at MCR, although an RM cell asks for less.
    AcrHeldAtMcr,
    /// A forward RM cell is due because of Trm, not of Nrm.
    RmDueByTime,
    /// An RM cell is sent out of rate.
    OutOfRateRmSent,
    /// A waiting backward RM cell is overwritten by the next one.
    WaitingRmOverwritten,
    /// ERICA: the load factor is above 1 + delta.
    EricaOverload,
    /// ERICA: an interval had no ABR cell.
    EricaIdleInterval,
    /// ERICA+: the queue control is at its floor.
    QueueControlAtFloor,
    // Contracts and schedulers.
    /// A frame is tagged, because its VC sends more than its contract guarantees.
    FrameTagged,
    /// A cell arrives faster than the peak rate allows.
    CellTooFast,
    /// Guaranteed rate: UBR is served before other classes.
    GuaranteedRateUsed,
    /// Minimum rate: a VC is served because its minimum share is due.
    MinimumShareDue,
    // Links.
    /// A delayed packet waits until the packet that leaves the delay line ends.
    DelayedPacketWaits,
    /// A delayed packet comes to the delay line without its last cell.
    DelayedPacketCut,
    // The fast engine.
    /// A tie splits a train.
    TrainSplitByTie,
    /// A cell of another train splits a train.
    TrainSplitByOther,
    /// Trains in step lose cells in rounds.
    CellsLostInRounds,
    /// Overlapping trains are admitted one after the other.
    StretchAdmitted,
    /// Tied trains are interleaved with others.
    TieInterleaved,
    /// A queue runs empty while a train that was admitted at once arrives.
    QueueRunsEmptyInTrain,
    /// A train would overflow the buffer, so its cells are handled one by one.
    TrainOverflows,
    /// Shaped cells that were sent ahead of time are taken back.
    CellsTakenBack,
    /// Cells of a train arrive partly before and partly after the horizon.
    TrainSplitByHorizon,
    /// A port that was free starts twice in an instant.
    PortStartsTwice,
}

const SITUATIONS: usize = NAMES.len();
const _: () = assert!(SITUATIONS <= u128::BITS as usize, "a set of situations is stored in 128 bits");

static COUNTS: [AtomicU64; SITUATIONS] = [const { AtomicU64::new(0) }; SITUATIONS];

thread_local! {
    /// Set of the situations that this thread has reached, one bit each.
    static REACHED_HERE: Cell<u128> = const { Cell::new(0) };
}

/// Counts a situation. Called by [`reached!`].
pub(crate) fn count(situation: Situation) {
    let number = situation as usize;
    COUNTS[number].fetch_add(1, Ordering::Relaxed);
    REACHED_HERE.set(REACHED_HERE.get() | 1 << number);
}

/// Returns each situation's name, and how often all threads together have reached it. In builds without debug
/// assertions, all counts are 0.
pub fn counts() -> impl Iterator<Item = (&'static str, u64)> {
    NAMES.iter().copied().zip(COUNTS.iter().map(|count| count.load(Ordering::Relaxed)))
}

/// Returns the names of the situations that the calling thread has reached since its last call.
pub fn take_reached_here() -> Vec<&'static str> {
    let reached = REACHED_HERE.take();
    NAMES.iter().enumerate().filter(|(number, _)| reached & 1 << number != 0).map(|(_, &name)| name).collect()
}

/// Marks a rare situation, optionally if a condition holds: `reached!(EpdAtThreshold if x == r)`. The condition is
/// evaluated only in builds with debug assertions.
macro_rules! reached {
    ($situation:ident) => {
        if cfg!(debug_assertions) {
            $crate::coverage::count($crate::coverage::Situation::$situation);
        }
    };
    ($situation:ident if $condition:expr) => {
        if cfg!(debug_assertions) && $condition {
            $crate::coverage::count($crate::coverage::Situation::$situation);
        }
    };
}
pub(crate) use reached;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_situation_that_a_run_reaches_is_counted_globally_and_for_its_thread() {
        let count_of = |name: &str| counts().find(|&(other, _)| other == name).unwrap().1;
        let before = count_of("PoolFull");
        take_reached_here();
        let there = std::thread::spawn(|| {
            reached!(PoolFull);
            reached!(RmCellLost if false);
            take_reached_here()
        });
        assert_eq!(there.join().unwrap(), ["PoolFull"]);
        assert!(take_reached_here().is_empty());
        reached!(PoolFull);
        reached!(PoolFull);
        assert_eq!(take_reached_here(), ["PoolFull"]);
        assert!(take_reached_here().is_empty(), "the set of situations is empty after a call of take");
        assert!(count_of("PoolFull") >= before + 3);
    }
}
