//! Rare situations of the models, with counts of how often a process has reached them.
//!
//! `reached!` marks a rare branch that tests must reach (a "sometimes assertion"). A campaign fails if its random
//! networks never reach one of these situations (`docs/design/testing.md`). Only builds with debug assertions count
//! situations; in other builds, the marks compile to nothing.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Defines the situations and their names.
macro_rules! situations {
    ($($(#[$about:meta])+ $name:ident,)+) => {
        /// A rare situation. [`reached!`] marks each situation somewhere in the models or engines.
        #[derive(Clone, Copy)]
        pub(crate) enum Situation {
            $($(#[$about])+ $name,)+
        }

        /// The names of all situations, in the order of the list.
        const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

situations! {
    /// The retransmission timer of a TCP sender expires during fast recovery.
    TimeoutInRecovery,
    /// The retransmission timer expires although this recovery has already retransmitted the first hole.
    ResentSegmentLost,
    /// The retransmission timer expires a second time before a valid round-trip sample.
    TimeoutAgain,
    /// The retransmission timer expires after an acknowledgement that reports a mark.
    TimeoutAfterMark,
    /// Duplicate acknowledgements trigger a retransmission.
    FastRetransmit,
    /// The reordering timer expires (RFC 8985).
    ReorderingTimerExpires,
    /// A probe is sent because acknowledgements stay away (RFC 8985).
    TailProbeSent,
    /// A probe has repaired the loss of the last segment (RFC 8985).
    ProbeRepairsLoss,
    /// Three duplicate acknowledgements do not start a recovery, because an earlier loss may have caused them.
    DuplicatesOfOldLoss,
    /// An acknowledgement covers part of the data that was outstanding when the recovery began.
    PartialAck,
    /// A further partial acknowledgement arrives, which does not restart the timer.
    PartialAckAgain,
    /// RFC 6675: a segment counts as lost before the third duplicate acknowledgement.
    LossBeforeThirdDuplicate,
    /// RFC 6675: a duplicate acknowledgement allows a new segment before the recovery begins.
    LimitedTransmit,
    /// RFC 6675: the sender retransmits a hole that does not count as lost yet.
    HoleSentEarly,
    /// RFC 6675: the sender retransmits the last segment to trigger acknowledgements.
    RescueRetransmission,
    /// After a timeout, the sender skips data that the receiver has already reported in SACK blocks.
    ReportedDataSkipped,
    /// After a timeout, an acknowledgement covers data that the sender was about to retransmit.
    AckBeyondNextSegment,
    /// The receiver's window closes, and the persist timer starts.
    WindowClosed,
    /// The sender sends a second window probe in a row.
    WindowProbedAgain,
    /// A closed receive window opens again.
    WindowReopened,
    /// An acknowledgement changes only the receive window.
    WindowUpdate,
    /// A segment fits the window, but must wait because of pacing.
    SegmentWaitsForPace,
    /// A pause at least as long as a timeout resets cwnd.
    IdleRestart,
    /// A mark (ECN) reduces the window.
    WindowReducedByMark,
    /// A mark does not reduce the window, because an earlier mark already did.
    MarkIgnoredInWindow,
    /// DCTCP reduces the window by less than half.
    DctcpReducesByShare,
    /// The retransmission timer of a SYN expires.
    SynTimeout,
    /// A repeated SYN gets a second SYN-ACK.
    SynAckRepeated,
    /// A frame arrives after its connection has closed.
    FrameAfterClose,
    /// The sender receives an acknowledgement of a repeated segment during the pause between two bursts.
    AckDuringPause,
    /// A timeout discards the estimate of the round-trip time.
    EstimateForgotten,
    /// The first sample after four timeouts discards the estimate of the round-trip time.
    EstimateForgottenAfterFour,
    /// ssthresh stays at its minimum of two segments.
    SsthreshAtLeastTwo,
    /// The receiver's window stops the growth of cwnd.
    CwndCappedByReceiver,
    /// CUBIC: cwnd does not grow beyond the receive window.
    CubicStopsAtReceiver,
    /// ECN: a port drops a packet that it cannot mark.
    DroppedInsteadOfMarked,
    /// CUBIC: its clock stops while the sender does not use its whole window.
    CubicPauses,
    /// A TCP sender learns of congestion, but has already reduced its windows for that data.
    CongestionRepeatedInWindow,
    /// CUBIC: the estimate of Reno's window is larger than the cubic window.
    CubicFollowsReno,
    /// CUBIC: a loss occurs at a smaller window than the previous loss.
    CubicConvergesFast,
    /// A segment is deliberately damaged at a certain window size.
    SegmentDamaged,
    /// A TCP receiver discards a segment beyond a gap.
    SegmentDiscardedOutOfOrder,
    /// A segment fills a gap in the received data.
    GapFilled,
    /// A TCP segment contains no new data.
    SegmentRepeated,
    /// The delayed-acknowledgement timer sends an acknowledgement.
    DelayedAckByTimer,
    /// The receiver sends an acknowledgement early because the mark of the next segment differs.
    AckBeforeMark,
    /// The receiver has more SACK ranges than fit into an acknowledgement.
    BlocksDoNotFit,
    /// AAL5 joins a frame with the next one because its last cell was lost.
    FrameJoined,
    /// The last cell arrives, but other cells of the frame are missing.
    FrameIncomplete,
    /// With packet framing, a packet ends without its last cell, because a cell of the next packet arrives.
    PacketWithoutLastCell,
    /// A cell of an admitted packet uses the shared part of its pool, because the headroom of its group is full.
    RestBeyondHeadroom,
    /// A packet starts at a port after the last cell of the previous packet was lost.
    PacketStartsUnannounced,
    /// A cell in the middle of an admitted packet finds no room, at a port that only counts such cells.
    NoRoomInsidePacket,
    /// The stored cells of a packet whose last cell is missing are freed when the next packet starts.
    UnfinishedPacketFreed,
    /// The stored cells of a packet are freed because one of its cells finds no room.
    StoredPacketCut,
    /// The policy refuses a packet when its last cell arrives.
    StoredPacketRefused,
    /// A packet that is still arriving is pushed out.
    ArrivingPacketRemoved,
    /// A policy selects a queue all of whose packets have begun to leave.
    NoPacketToRemove,
    /// A packet has reserved places for cells that never arrive.
    PlacesNeverUsed,
    /// Joined frames are longer than the longest frame.
    FrameTooLong,
    /// A packet waits until its host has processed an earlier packet.
    PacketWaitsAtHost,
    /// Several cells arrive together at a port without room for all of them.
    TieAtFullBuffer,
    /// A cell arrives at a full port at the instant when the port finishes sending another cell.
    ArrivalAsOneLeaves,
    /// A policy pushes out cells of a frame whose first cells have already been sent.
    FrameInServicePushedOut,
    /// A frame is pushed out to make room for its own next cell.
    FramePushesOutItself,
    /// A frame is pushed out while its remaining cells are still arriving.
    ArrivingFramePushedOut,
    /// The last cell of a frame is pushed out because only last cells are waiting.
    LastCellPushedOut,
    /// A frame is dropped at the head of the queue before its last cell has arrived.
    ArrivingFrameDroppedAtHead,
    /// The longest queue loses frames to make room.
    LongestQueueLosesFrames,
    /// The longest queue has no frame that can make room.
    LongestQueueLosesNothing,
    /// Controlled delay marks a frame instead of dropping it.
    CoDelMarks,
    /// Controlled delay drops several frames at the same instant.
    CoDelDropsAgain,
    /// Controlled delay starts to drop again at about the rate at which it stopped.
    CoDelResumes,
    /// The policy `dualpi2` marks a frame of the queue C instead of dropping it.
    DualPi2MarksInC,
    /// The policy `dualpi2` drops a frame of the queue L in overload.
    DualPi2DropsInL,
    /// PIE marks a frame instead of refusing it.
    PieMarks,
    /// PIE limits the increase of its probability.
    PieCapsAdjustment,
    /// RED marks a frame instead of refusing it.
    RedMarks,
    /// Adaptive RED changes its largest probability.
    RedAdapts,
    /// No cell can be pushed out because only RM cells are in the queue.
    PushOutFindsNothing,
    /// The last cell of a damaged frame enters the buffer.
    LastCellKept,
    /// The last cell of a damaged frame finds the buffer full.
    LastCellLostToo,
    /// A frame that is not yet complete is discarded because its next cell finds the buffer full.
    AwaitingFrameDiscarded,
    /// An RM cell finds the buffer full.
    RmCellLost,
    /// EPD: the occupancy equals the threshold.
    EpdAtThreshold,
    /// Double EPD refuses a tagged frame at a queue length at which it admits untagged frames.
    OnlyTaggedRefused,
    /// Selective Drop and FBA: the load ratio is exactly at its bound.
    LoadRatioAtBound,
    /// Per-VC accounting admits a frame above the threshold.
    WithinShareAboveThreshold,
    /// Virtual queuing admits a frame above the threshold.
    WithinVirtualShare,
    /// Single drop admits a second frame above the threshold.
    SecondFrameSpared,
    /// DFBA: a VC's occupancy is exactly at its threshold.
    DfbaAtThreshold,
    /// DFBA: a VC's occupancy exceeds its ceiling.
    DfbaAboveCeiling,
    /// DFBA: the buffer is congested.
    DfbaCongested,
    /// DFBA refuses a frame because of a random number.
    DfbaRefusedByChance,
    /// DFBA admits a frame because of a random number.
    DfbaAdmittedByChance,
    /// DFBA of 1998 admits a frame above the low threshold, because the VC is within its share.
    Dfba1998WithinShare,
    /// DFBA of 1998 refuses a frame because of a random number.
    Dfba1998RefusedByChance,
    /// A packet is marked at random between the marking thresholds.
    MarkedByChance,
    /// A packet is marked because of the average, although the queue is short.
    MarkedByAverage,
    /// A shared memory is full although the pool is not.
    MemoryFull,
    /// A cell has a reserved place, although the shared memory is full.
    ReserveWithoutMemory,
    /// A pool of a shared memory is at its limit.
    PoolFull,
    /// A cell fits on the ingress side, but not on the egress side.
    EgressRefusesAfterIngress,
    /// A cell enters the headroom of a lossless group.
    HeadroomUsed,
    /// The headroom of a lossless group is exhausted.
    HeadroomUsedUp,
    /// The headroom shared by the groups of a pool is exhausted.
    PoolHeadroomUsedUp,
    /// A lossless group pauses its link because the group reaches its threshold.
    PausedAtThreshold,
    /// A lossless group lets its link resume because it is below its threshold by the configured offset, not because it
    /// is below its fixed limit.
    ResumedByOffset,
    /// A pause frame stops a port that still has cells to send.
    PausedPortWaits,
    /// A cell overtakes cells of a paused priority.
    PausedPriorityOvertaken,
    /// To admit a cell, a cell of its own frame is pushed out, so the arriving cell is refused.
    FrameCutByOwnPushOut,
    /// A memory policy removes a cell of a frame that is still arriving.
    ArrivingFrameLosesCell,
    /// A shared memory refuses a whole frame.
    WholeFrameRefused,
    /// Longest Queue Drop: several queues share the greatest length.
    LongestQueueTie,
    /// Longest Queue Drop: the arriving cell belongs to the longest queue, and is refused.
    ArrivalAtLongestQueue,
    /// Credence refuses a cell that fits in its virtual queue, because of a prediction.
    PredictedLoss,
    /// Credence: a prediction is flipped at random.
    PredictionFlipped,
    /// ABM: a queue drains at less than its minimum share.
    DrainRateAtLeast,
    /// Front drop at an edge device removes a packet of another VC.
    PacketDroppedForOther,
    /// Front drop cannot make enough room, because packets in transmission cannot be dropped.
    PacketCannotFit,
    /// Adaptive discard drops a packet from the front of a queue because the rate has fallen.
    AdaDropsAtRateFall,
    /// Adaptive discard drops a packet from the front because the queue is full.
    AdaDropsWhenFull,
    /// Adaptive discard cannot drop the only packet, because it is being transmitted.
    AdaCannotDrop,
    /// Adaptive discard: the algorithm returns to phase 0.
    AdaReturnsToPhaseZero,
    /// ABR rule 6: unanswered RM cells reduce ACR.
    CrmCutOff,
    /// ABR rule 5: ACR falls to ICR after an idle time.
    AcrResetWhenIdle,
    /// ACR stays at MCR although an RM cell carries a lower rate.
    AcrHeldAtMcr,
    /// A forward RM cell is due because of Trm instead of Nrm.
    RmDueByTime,
    /// An RM cell is sent out of rate.
    OutOfRateRmSent,
    /// A waiting backward RM cell is overwritten by the next one.
    WaitingRmOverwritten,
    /// ERICA: the load factor is above 1 + delta.
    EricaOverload,
    /// ERICA: no ABR cell arrived in an interval.
    EricaIdleInterval,
    /// ERICA+: the queue control function is at its minimum.
    QueueControlAtFloor,
    /// A frame is tagged because its VC exceeds its contract.
    FrameTagged,
    /// A cell arrives faster than the peak rate allows.
    CellTooFast,
    /// Guaranteed rate: UBR is served before other classes, to give UBR its rate.
    GuaranteedRateUsed,
    /// Minimum rate: a VC is served because its minimum share is due.
    MinimumShareDue,
    /// A delayed packet waits because the delay line is sending another packet of its VC.
    DelayedPacketWaits,
    /// A delayed packet reaches the delay line without its last cell.
    DelayedPacketCut,
    /// A tie of cells splits a train in the fast engine.
    TrainSplitByTie,
    /// A cell of another train splits a train.
    TrainSplitByOther,
    /// Trains of equal period lose cells, which the engine computes in rounds.
    CellsLostInRounds,
    /// The engine admits overlapping trains one after the other.
    StretchAdmitted,
    /// Trains whose cells coincide are merged with other trains, cell by cell.
    TieInterleaved,
    /// All cells of a train were admitted at once, and the queue becomes empty while they arrive.
    QueueRunsEmptyInTrain,
    /// A train would overflow the buffer, so the engine processes its cells one by one.
    TrainOverflows,
    /// A shaped port takes back cells that it sent ahead of time.
    CellsTakenBack,
    /// Cells of a train arrive partly before and partly after the horizon.
    TrainSplitByHorizon,
    /// An idle port starts to send twice at the same instant.
    PortStartsTwice,
}

const SITUATIONS: usize = NAMES.len();
/// Number of 64-bit words in a set of situations.
const WORDS: usize = SITUATIONS.div_ceil(u64::BITS as usize);

static COUNTS: [AtomicU64; SITUATIONS] = [const { AtomicU64::new(0) }; SITUATIONS];

thread_local! {
    /// Bit set of the situations that this thread has reached.
    static REACHED_HERE: Cell<[u64; WORDS]> = const { Cell::new([0; WORDS]) };
}

/// Counts a situation; [`reached!`] calls this function.
pub(crate) fn count(situation: Situation) {
    let number = situation as usize;
    COUNTS[number].fetch_add(1, Ordering::Relaxed);
    let mut reached = REACHED_HERE.get();
    reached[number / 64] |= 1 << (number % 64);
    REACHED_HERE.set(reached);
}

/// Returns each situation's name, and how often all threads together have reached it. In builds without debug
/// assertions, all counts are 0.
pub fn counts() -> impl Iterator<Item = (&'static str, u64)> {
    NAMES.iter().copied().zip(COUNTS.iter().map(|count| count.load(Ordering::Relaxed)))
}

/// Returns the names of the situations that the calling thread has reached since the previous call.
pub fn take_reached_here() -> Vec<&'static str> {
    let reached = REACHED_HERE.take();
    NAMES
        .iter()
        .enumerate()
        .filter(|(number, _)| reached[number / 64] & 1 << (number % 64) != 0)
        .map(|(_, &name)| name)
        .collect()
}

/// Marks a rare situation, optionally only if a condition holds: `reached!(EpdAtThreshold if x == r)`. The condition is
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
    fn a_coverage_point_reached_by_a_run_is_counted_both_per_process_and_per_thread() {
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
