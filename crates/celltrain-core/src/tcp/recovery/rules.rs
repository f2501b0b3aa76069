//! Rules of loss recovery.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tcp::Rules;
use crate::tcp::profile::rules;

rules! {
    /// Rules of loss recovery, beyond the variant's own.
    pub struct RecoveryRules, RecoveryOptions {
        /// Condition under which duplicate acknowledgements start a fast retransmit before all data sent before the last
        /// loss is acknowledged.
        fast_retransmit: FastRetransmit,
        /// Segments that the two duplicate acknowledgements before a fast retransmit send beyond cwnd. `sack` always sends
        /// unsent segments (RFC 6675, 5, step 3).
        limited_transmit: LimitedTransmit,
        /// Effect of a partial acknowledgement on the window that `NewReno`'s fast recovery has inflated.
        partial_acks: PartialAcks,
        /// Which partial acknowledgements restart the retransmission timer. Only `newreno` uses this key.
        partial_ack_timer: PartialAckTimer,
        /// cwnd after the acknowledgement that ends `newreno`'s fast recovery.
        full_acks: FullAcks,
        /// cwnd during fast recovery, without inflation.
        window: RecoveryWindow,
        /// Effect on cwnd of the acknowledgement that ends fast recovery.
        end: RecoveryEnd,
        /// Rules by which `sack_pipe` estimates the data in flight.
        pipe: PipeRules,
        /// Which losses `sack` detects in addition to those that three reports above a segment indicate.
        loss_detection: LossDetection,
        /// How `sack` reduces the window during fast recovery.
        reduction: Reduction,
    }

    optional {
        /// Largest number of segments sent after an acknowledgement during `newreno`'s fast recovery, as in ns-2.
        /// `windows.max_burst` if absent.
        #[schemars(range(min = 1))]
        burst: u32,
    }
}

impl RecoveryRules {
    /// Returns the rules of a profile.
    pub fn of(rules: Rules) -> Self {
        let usual = Self {
            fast_retransmit: FastRetransmit::ByVariant,
            limited_transmit: LimitedTransmit::Off,
            partial_acks: PartialAcks::Deflate,
            partial_ack_timer: PartialAckTimer::First,
            full_acks: FullAcks::Ssthresh,
            window: RecoveryWindow::Ssthresh,
            end: RecoveryEnd::Hold,
            pipe: PipeRules::Paper,
            loss_detection: LossDetection::DuplicateAcks,
            reduction: Reduction::AtOnce,
            burst: None,
        };
        match rules {
            Rules::Rfc | Rules::Paper => usual,
            // Linux 6.12: tcp_recovery = 1 and tcp_early_retrans = 3 in net/ipv4/tcp_ipv4.c; tcp_cwnd_reduction.
            Rules::Today => Self { loss_detection: LossDetection::RackTlp, reduction: Reduction::Prr, ..usual },
            Rules::Bsd => Self { end: RecoveryEnd::Bsd, ..usual },
            Rules::Ns2 => Self {
                fast_retransmit: FastRetransmit::Careful,
                limited_transmit: LimitedTransmit::Any,
                partial_acks: PartialAcks::DropInflation,
                partial_ack_timer: PartialAckTimer::Every,
                full_acks: FullAcks::Deflated,
                window: RecoveryWindow::Half,
                end: RecoveryEnd::Grow,
                pipe: PipeRules::Ns2,
                ..usual
            },
        }
    }
}

/// Condition under which duplicate acknowledgements start a fast retransmit before all data sent before the last loss
/// is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FastRetransmit {
    /// The variant decides: `tahoe` and `reno` use `always`, `newreno` uses `careful`, and the others use
    /// `less_careful`.
    #[default]
    ByVariant,
    /// Always.
    Always,
    /// A fast retransmit requires that more than all data sent before the last loss is acknowledged (RFC 6582, 3.2,
    /// step 2).
    Careful,
    /// A fast retransmit requires that all data sent before the last loss is acknowledged (RFC 2582, 5).
    LessCareful,
    /// Like `careful`, but also allowed if cwnd exceeds a segment and the last acknowledgement of new data covers at
    /// most four segments (RFC 6582, 4.1).
    AckHeuristic,
    /// Like `ack_heuristic`, but with at most three segments, as in ns-2.
    AckHeuristicOfThree,
}

/// Segments sent beyond cwnd on the two duplicate acknowledgements before a fast retransmit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitedTransmit {
    /// Nothing.
    #[default]
    Off,
    /// Each of the two duplicates sends a new segment (RFC 3042).
    On,
    /// Each of the two duplicates sends the next segment, even if it was sent before a timeout, as in ns-2.
    Any,
}

/// Effect of a partial acknowledgement on the window that `NewReno`'s fast recovery has inflated. Only `newreno`
/// uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartialAcks {
    /// A partial acknowledgement shrinks the window by the amount it acknowledges, less a segment (RFC 6582, 3.2, step
    /// 3).
    #[default]
    Deflate,
    /// A partial acknowledgement does not change the window, which is kept when the recovery ends. Only a later text,
    /// of 1999, requires a change.
    KeepWindow,
    /// A partial acknowledgement removes the whole inflation, as in ns-2 before RFC 2582 was its default.
    DropInflation,
}

/// Which partial acknowledgements restart the retransmission timer. Only `newreno` uses this key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartialAckTimer {
    /// The first partial acknowledgement of each recovery restarts the timer (RFC 6582, 3.2, step 3; "impatient").
    #[default]
    First,
    /// Every partial acknowledgement restarts the timer (RFC 6582, 4; "slow-but-steady").
    Every,
}

/// cwnd after the acknowledgement that ends `newreno`'s fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FullAcks {
    /// cwnd becomes ssthresh (RFC 6582, 3.2, step 3, second choice).
    #[default]
    Ssthresh,
    /// cwnd becomes at most one segment more than the outstanding data (RFC 2582, 3, step 5, first choice).
    Flight,
    /// cwnd stays as partial acknowledgements have left it, but without the inflation, as in ns-2.
    Deflated,
}

/// cwnd during fast recovery, without inflation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryWindow {
    /// cwnd becomes ssthresh, which is at least two segments (RFC 5681, 3.2).
    #[default]
    Ssthresh,
    /// cwnd becomes half of the window, computed like ssthresh but possibly below two segments, as in ns-2.
    Half,
}

/// Effect on cwnd of the acknowledgement that ends fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryEnd {
    /// The acknowledgement itself does not increase cwnd (RFC 5681, 3.2, step 6).
    #[default]
    Hold,
    /// The acknowledgement increases cwnd like any acknowledgement of new data, as in ns-2.
    Grow,
    /// Like `grow`. In `reno`, cwnd also keeps its inflation if only three duplicates have arrived, as in 4.3BSD-Reno and
    /// 4.4BSD.
    Bsd,
}

/// Rules by which `sack_pipe` estimates the data in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PipeRules {
    /// The estimate follows the paper.
    #[default]
    Paper,
    /// The estimate follows ns-2's Sack1: the retransmission that starts a recovery is sent alone and not counted;
    /// duplicates count only if they report new data; and a timeout resends even reported data.
    Ns2,
}

/// Loss detection of `sack`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossDetection {
    /// A segment is lost if three segments or ranges above it are reported (RFC 6675, 4).
    #[default]
    DuplicateAcks,
    /// A segment is lost if a segment sent later is delivered and the reordering window has passed (RFC 8985, 6).
    Rack,
    /// Like `rack`. If acknowledgements stay away for two round trips, a probe asks for one (RFC 8985, 7).
    RackTlp,
}

/// Reduction of `sack`'s window during fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// The recovery begins with a cwnd of ssthresh (RFC 6675, 5, step 4.2).
    #[default]
    AtOnce,
    /// cwnd falls to ssthresh in proportion to the data delivered (RFC 9937).
    Prr,
}
