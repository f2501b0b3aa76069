//! Every choice of `docs/mechanisms.md` section 3 as a named option with a documented default.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::formula::table;
use super::{Congestion, window_scale};
use crate::error::Fault;
use crate::units::{BitRate, Bytes, Duration};

/// Options of the two ends of a connection. The defaults are those of ATM Forum 96-1269, LAN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpOptions {
    /// Profile that provides the default of absent keys that depend on it.
    pub rules: Rules,
    /// MSS: payload bytes of a full segment.
    pub mss: Bytes,
    /// rwnd: the receive window that the receiver advertises. The sender uses only whole segments. Above 65535 bytes,
    /// window scaling is used.
    pub receive_window: Bytes,
    /// The retransmission timer's tick: timeouts and round-trip times are measured in ticks.
    pub timer_granularity: Duration,
    /// Interval at which timers are checked, a whole fraction of `timer_granularity`. Short intervals allow timers of
    /// any length, as in ns-2. If absent, timers are checked at every tick.
    pub timer_resolution: Option<Duration>,
    /// MIN: the smallest retransmission timeout, in ticks.
    #[schemars(range(min = 1), extend("x-unit" = "ticks"))]
    pub minimum_rto: u32,
    /// MAX: the largest retransmission timeout.
    pub maximum_rto: Duration,
    /// The retransmission timeout before the first round-trip sample.
    pub initial_rto: Duration,
    /// Phases of the ticks of all connections.
    pub tick_phase: TickPhase,
    /// The initial ssthresh in bytes; the receive window when absent.
    pub initial_ssthresh: Option<Bytes>,
    /// ssthresh after a timeout. Determined by `rules` if absent.
    pub ssthresh_rule: Option<SsthreshRule>,
    /// Arithmetic of ssthresh after a loss.
    pub ssthresh_arithmetic: SsthreshArithmetic,
    /// Growth of cwnd beyond the receive window. Determined by `rules` if absent.
    pub window_growth: Option<WindowGrowth>,
    /// Effect on cwnd of an acknowledgement of data that did not fill the window. Determined by `rules` if absent.
    pub unused_window: Option<UnusedWindow>,
    /// Effect on ssthresh of a second sign of congestion in a window of data. Determined by `rules` if absent.
    pub repeated_congestion: Option<RepeatedCongestion>,
    /// Earliest expiry of a retransmission timer of n ticks. Determined by `rules` if absent.
    pub timer_expiry: Option<TimerExpiry>,
    /// The largest cwnd at which slow start still continues.
    pub slow_start: SlowStart,
    /// Effect on cwnd of a pause without outstanding data. Default: determined by `rules`.
    pub after_idle: Option<AfterIdle>,
    /// The receiver's treatment of segments beyond a gap.
    pub out_of_order: OutOfOrder,
    /// When the receiver acknowledges segments that arrive in order.
    pub delayed_acks: DelayedAcks,
    /// Delay of an acknowledgement with `delayed_acks = "timer"`.
    pub delayed_ack_time: Duration,
    /// When the receiver acknowledges a segment that fills a part of a gap (RFC 5681, 4.2).
    pub gap_acks: GapAcks,
    /// Acknowledgement of a repetition of the last segment in order (RFC 5681, 4.2).
    pub repeated_acks: RepeatedAcks,
    /// Round-trip time samples of retransmitted segments.
    pub rtt_sampling: RttSampling,
    /// Growth of the retransmission timeout after repeated timeouts.
    pub backoff: Backoff,
    /// Condition under which an acknowledgement of new data restarts the running retransmission timer.
    pub timer_restart: TimerRestart,
    /// Arithmetic of the growth of cwnd in congestion avoidance.
    pub window_arithmetic: WindowArithmetic,
    /// Effect of a duplicate acknowledgement on cwnd.
    pub duplicate_acks: DuplicateAcks,
    /// Effect of a partial acknowledgement on the window that `NewReno`'s fast recovery has inflated.
    pub partial_acks: PartialAcks,
    /// Which partial acknowledgements restart the retransmission timer. Only `newreno` uses this key.
    pub partial_ack_timer: PartialAckTimer,
    /// cwnd after the acknowledgement that ends `newreno`'s fast recovery.
    pub full_acks: FullAcks,
    /// cwnd during fast recovery, without inflation.
    pub recovery_window: RecoveryWindow,
    /// Effect on cwnd of the acknowledgement that ends fast recovery.
    pub recovery_end: RecoveryEnd,
    /// Condition under which duplicate acknowledgements start a fast retransmit before all data sent before the last
    /// loss is acknowledged.
    pub fast_retransmit: FastRetransmit,
    /// Segments that the two duplicate acknowledgements before a fast retransmit send beyond cwnd. `sack` always sends
    /// unsent segments (RFC 6675, 5, step 3).
    pub limited_transmit: LimitedTransmit,
    /// Largest number of segments sent after an acknowledgement or a timeout, without a fast retransmit, as in ns-2's
    /// `maxburst_`. Unlimited if absent.
    #[schemars(range(min = 1))]
    pub max_burst: Option<u32>,
    /// Largest number of segments sent after an acknowledgement during `newreno`'s fast recovery, as in ns-2.
    /// `max_burst` if absent.
    #[schemars(range(min = 1))]
    pub recovery_burst: Option<u32>,
    /// Rules by which `sack_pipe` estimates the data in flight.
    pub pipe: PipeRules,
    /// Arithmetic of the round-trip time estimate.
    pub rtt_arithmetic: RttArithmetic,
    /// After which timeouts the sender discards its estimate of the round-trip time.
    pub estimate_forgotten: EstimateForgotten,
    /// The window that the receiver advertises while it keeps out-of-order segments.
    pub offered_window: OfferedWindow,
    /// Growth of cwnd in congestion avoidance, and its reduction after congestion.
    pub congestion: Congestion,
    /// Formulas for cwnd and ssthresh, used by `congestion = "formula"`.
    pub formula: Option<table::Config>,
    /// Rate at which the sender is paced: segments are at least as far apart as one segment takes at this rate,
    /// including cell headers. Default: not paced.
    pub pacing_rate: Option<BitRate>,
    /// cwnd of a connection that has sent nothing, in segments.
    #[schemars(range(min = 1, max = 1_073_741_823), extend("x-expect" = "a number of segments (1 or more)"))]
    pub initial_window: u32,
    /// Reaction to marked packets (explicit congestion notification).
    pub ecn: Ecn,
    /// g: weight of the newest window in DCTCP's estimate of the share of marked segments.
    #[schemars(range(min = 0.0001, max = 1.0))]
    pub dctcp_gain: f64,
    /// For experiments: damages a segment in transit each time the window, min(cwnd, rwnd), reaches this many bytes.
    /// When absent, no segment is damaged.
    pub lose_at_window: Option<Bytes>,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            mss: Bytes { bytes: 512 },
            receive_window: Bytes { bytes: 65535 },
            timer_granularity: Duration::from_milliseconds(100),
            timer_resolution: None,
            minimum_rto: 2,
            maximum_rto: Duration::from_milliseconds(64_000),
            initial_rto: Duration::from_milliseconds(3_000),
            tick_phase: TickPhase::default(),
            initial_ssthresh: None,
            ssthresh_rule: None,
            ssthresh_arithmetic: SsthreshArithmetic::default(),
            window_growth: None,
            unused_window: None,
            repeated_congestion: None,
            timer_expiry: None,
            slow_start: SlowStart::default(),
            after_idle: None,
            out_of_order: OutOfOrder::default(),
            delayed_acks: DelayedAcks::default(),
            delayed_ack_time: Duration::from_milliseconds(200),
            gap_acks: GapAcks::default(),
            repeated_acks: RepeatedAcks::default(),
            rtt_sampling: RttSampling::default(),
            backoff: Backoff::default(),
            timer_restart: TimerRestart::default(),
            window_arithmetic: WindowArithmetic::default(),
            duplicate_acks: DuplicateAcks::default(),
            partial_acks: PartialAcks::default(),
            partial_ack_timer: PartialAckTimer::default(),
            full_acks: FullAcks::default(),
            recovery_window: RecoveryWindow::default(),
            recovery_end: RecoveryEnd::default(),
            fast_retransmit: FastRetransmit::default(),
            limited_transmit: LimitedTransmit::default(),
            max_burst: None,
            recovery_burst: None,
            pipe: PipeRules::default(),
            rtt_arithmetic: RttArithmetic::default(),
            estimate_forgotten: EstimateForgotten::default(),
            offered_window: OfferedWindow::default(),
            congestion: Congestion::default(),
            formula: None,
            pacing_rate: None,
            initial_window: 1,
            ecn: Ecn::default(),
            // RFC 8257, 3.3.
            dctcp_gain: 1.0 / 16.0,
            lose_at_window: None,
        }
    }
}

/// A profile of behaviours, which provides the defaults of six options. An option that is set overrides the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rules {
    /// Behaves as RFC 3168, 5681, 6298, 6675 and 9438 specify. Also covers rules without an option: the start of a
    /// pause, the loss of a retransmission, and the timeout after a repeated SYN.
    #[default]
    Rfc,
    /// Behaves as ATM Forum 96-1269 and 97-0831 state, with BSD's timers. All packets of DCTCP are ECN-capable, and a
    /// mark leaves at least two segments, as in Linux.
    Paper,
}

/// The options that a profile gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// ssthresh after a loss.
    pub ssthresh_rule: SsthreshRule,
    /// Limit on the growth of cwnd.
    pub window_growth: WindowGrowth,
    /// Growth of cwnd while the sender does not fill the window.
    pub unused_window: UnusedWindow,
    /// Second sign of congestion in a window of data.
    pub repeated_congestion: RepeatedCongestion,
    /// cwnd after a pause.
    pub after_idle: AfterIdle,
    /// Earliest expiry of a timer.
    pub timer_expiry: TimerExpiry,
}

impl Rules {
    /// Returns the defaults of the profile.
    pub const fn behaviour(self) -> Behaviour {
        match self {
            Self::Rfc => Behaviour {
                ssthresh_rule: SsthreshRule::HalfOfUsed,
                window_growth: WindowGrowth::Capped,
                unused_window: UnusedWindow::Hold,
                repeated_congestion: RepeatedCongestion::OncePerWindow,
                after_idle: AfterIdle::SlowStart,
                timer_expiry: TimerExpiry::AfterRto,
            },
            Self::Paper => Behaviour {
                ssthresh_rule: SsthreshRule::HalfOfCwnd,
                window_growth: WindowGrowth::Uncapped,
                unused_window: UnusedWindow::Grow,
                repeated_congestion: RepeatedCongestion::EverySign,
                after_idle: AfterIdle::KeepWindow,
                timer_expiry: TimerExpiry::AtTick,
            },
        }
    }
}

/// Effect on cwnd of an acknowledgement of data that was sent while the window had room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnusedWindow {
    /// The acknowledgement increases cwnd like any other acknowledgement.
    Grow,
    /// cwnd does not grow, and CUBIC's time does not pass (RFC 7661, 3; RFC 9438, 5.8).
    Hold,
}

/// Effect of a sign of congestion (a mark, a fast retransmit or a timeout) on data that was sent before an earlier sign
/// reduced the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepeatedCongestion {
    /// Every fast retransmit and every timeout sets ssthresh.
    EverySign,
    /// A window of data lowers ssthresh at most once (RFC 3168, 6.1.2; RFC 5681, 3.1 and 4.3). A timeout still reduces
    /// cwnd to one segment.
    OncePerWindow,
}

/// Earliest expiry of a retransmission or persist timer of n ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimerExpiry {
    /// A timer expires at the n-th tick, after n - 1 to n ticks, as in BSD.
    AtTick,
    /// A timer expires at the first check after n whole ticks (RFC 6298, 5).
    AfterRto,
}

/// Phases of the timer ticks of all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TickPhase {
    /// All ticks occur at multiples of the granularity.
    #[default]
    Common,
    /// All connections tick together, and faster by up to 100 millionths. One value for the whole run, drawn from the
    /// seed.
    Drifting,
    /// Each connection's ticks have a random phase, drawn from the seed.
    Random,
}

/// ssthresh after a timeout, in segments and never below 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SsthreshRule {
    /// ssthresh becomes min(cwnd/2, rwnd), as ATM Forum 96-1269 states.
    HalfOfCwnd,
    /// ssthresh becomes min(cwnd, rwnd)/2, as BSD computes it.
    HalfOfWindow,
    /// ssthresh becomes min(cwnd, rwnd)/2, without the segments by which fast recovery has inflated cwnd, as in ns-2.
    HalfOfDeflatedWindow,
    /// ssthresh becomes half of the outstanding data, as in RFC 5681 (3.1, equation 4).
    HalfOfFlight,
    /// ssthresh becomes half of the smaller of the data in flight and min(cwnd, rwnd) without inflation, also after
    /// fast retransmits (RFC 5681, 3.1, equation 4, is an upper bound).
    HalfOfUsed,
    /// ssthresh becomes min(cwnd/2, rwnd - outstanding), the formula of 96-1269 if RCVWND is the unused part of the
    /// receiver's window.
    OpenWindow,
}

/// Arithmetic of ssthresh after a loss: a timeout, by any rule, or a fast retransmit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SsthreshArithmetic {
    /// ssthresh may contain a fraction of a segment.
    #[default]
    Fractions,
    /// ssthresh is rounded down to whole segments, as in BSD.
    WholeSegments,
}

/// Growth of cwnd beyond the receive window. The usable window never exceeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowGrowth {
    /// cwnd grows beyond the receive window, as in ATM Forum 96-1269.
    Uncapped,
    /// cwnd stops at the receive window.
    Capped,
    /// cwnd stops at the largest window that could be advertised, 65535 bytes shifted by the window scale, as in BSD.
    CappedByField,
}

/// The largest cwnd at which slow start still continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlowStart {
    /// A cwnd equal to ssthresh is in congestion avoidance, as in ATM Forum 96-1269.
    #[default]
    BelowSsthresh,
    /// If cwnd equals ssthresh, it still grows by a segment, as in BSD and RFC 2001.
    UpToSsthresh,
}

/// Effect on cwnd of a pause without outstanding data. Only `bursts` traffic pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AfterIdle {
    /// cwnd is kept.
    KeepWindow,
    /// cwnd is at most `initial_window` if the pause lasted a retransmission timeout or longer (RFC 5681, 4.1).
    SlowStart,
}

/// The receiver's treatment of segments beyond a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutOfOrder {
    /// Keeps segments beyond a gap until the gap is filled.
    #[default]
    Keep,
    /// Discards segments beyond a gap, so the sender sends them again.
    Discard,
}

/// When the receiver acknowledges segments that arrive in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelayedAcks {
    /// Acknowledges each segment at once.
    #[default]
    Off,
    /// Acknowledges every other segment at once, and a single segment at the next tick of the 200 ms timer (RFC 1122,
    /// 4.2.3.2). Acknowledges segments out of order and segments that fill a gap at once (RFC 5681, 4.2).
    #[serde(rename = "200ms")]
    #[schemars(rename = "200ms")]
    On,
    /// Like `200ms`, but the arrival of a single segment starts a timer of `delayed_ack_time`, as in ns-2.
    Timer,
}

/// When the receiver acknowledges a segment that fills a part of a gap (RFC 5681, 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapAcks {
    /// The acknowledgement is sent at once, as the RFC recommends.
    #[default]
    AtOnce,
    /// The acknowledgement may be delayed, unless the segment closes the gap to segments that the receiver kept.
    Delayed,
}

/// Acknowledgement of a repetition of the last segment in order (RFC 5681, 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepeatedAcks {
    /// The acknowledgement is sent at once, as the RFC recommends.
    #[default]
    AtOnce,
    /// The acknowledgement may be delayed, as in ns-2.
    Delayed,
}

/// Round-trip time samples of retransmitted segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RttSampling {
    /// A segment that was sent more than once gives no sample (Karn and Partridge 1987).
    #[default]
    Karn,
    /// Retransmissions also give samples.
    IncludeRetransmissions,
}

/// Growth of the retransmission timeout after repeated timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The timeout doubles up to six times, until a valid round-trip sample.
    #[default]
    Double,
    /// Every timeout follows only the estimate.
    None,
}

/// Condition under which an acknowledgement of new data restarts the running retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimerRestart {
    /// The timer restarts if data is still outstanding, as in BSD.
    #[default]
    EveryNewAck,
    /// The timer never restarts: it expires unless all outstanding data is acknowledged first.
    WhenAllAcked,
    /// Each segment has its own timer, which runs from its last transmission until its acknowledgement. Timeouts of
    /// other segments do not stop it.
    PerSegment,
}

/// Arithmetic of the growth of cwnd in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowArithmetic {
    /// cwnd grows by exactly 1/cwnd of a segment.
    #[default]
    Fractions,
    /// cwnd grows by MSS * MSS / cwnd bytes, rounded down but at least one byte, as in 4.3BSD-Tahoe.
    WholeBytes,
    /// cwnd grows by MSS * MSS / cwnd + MSS / 8 whole bytes, each rounded down, as in 4.3BSD-Reno. RFC 2581 (3.1)
    /// forbids the second term.
    WholeBytesAndAnEighth,
}

/// Effect of a duplicate acknowledgement on cwnd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DuplicateAcks {
    /// The acknowledgement has no effect.
    #[default]
    Ignored,
    /// The acknowledgement increases cwnd like an acknowledgement of new data, before the variant reacts.
    GrowWindow,
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
    /// The acknowledgement increases cwnd like any acknowledgement of new data, as in 4.3BSD-Reno and ns-2.
    Grow,
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

/// Arithmetic of the round-trip time estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RttArithmetic {
    /// Integers as in BSD (eighths and quarters of a tick), with samples counted from 1; the timeout is srtt + 4
    /// rttvar.
    #[default]
    BsdIntegers,
    /// The same integers, with the timeout of 4.3BSD-Tahoe, srtt + 2 rttvar.
    TahoeIntegers,
    /// BSD's integers with samples counted from 0, at least 1, as in ns-2.
    IntegersFromZero,
    /// Fractions of a tick, with samples counted from 0. The timeout, srtt + 4 rttvar, is rounded up to ticks.
    Fractions,
}

/// After which timeouts the sender discards its estimate of the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EstimateForgotten {
    /// The sender never forgets its estimate.
    #[default]
    Never,
    /// The sender forgets its estimate at the fourth timeout without a sample: the timeout stays, and the next sample
    /// counts as the first, as in BSD.
    AtFourthTimeout,
    /// The sender forgets its estimate at each timeout: `initial_rto` applies until the next sample.
    AtEachTimeout,
}

/// The window that the receiver advertises while it keeps out-of-order segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OfferedWindow {
    /// The advertised window is the whole window, counted from the next byte expected, as in RFC 793.
    #[default]
    Whole,
    /// The advertised window is reduced by the bytes that the receiver keeps.
    LessKept,
}

/// Reaction to marked packets (explicit congestion notification).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    /// Marks have no effect.
    #[default]
    Off,
    /// The receiver reports marks, and the sender reduces cwnd at most once per window (RFC 3168); `congestion =
    /// "dctcp"` by the share of marked segments (RFC 8257).
    On,
}

impl TcpOptions {
    /// Returns all options: values that are set, and defaults from `rules` for the others.
    pub fn behaviour(&self) -> Behaviour {
        let by_rules = self.rules.behaviour();
        Behaviour {
            ssthresh_rule: self.ssthresh_rule.unwrap_or(by_rules.ssthresh_rule),
            window_growth: self.window_growth.unwrap_or(by_rules.window_growth),
            unused_window: self.unused_window.unwrap_or(by_rules.unused_window),
            repeated_congestion: self.repeated_congestion.unwrap_or(by_rules.repeated_congestion),
            after_idle: self.after_idle.unwrap_or(by_rules.after_idle),
            timer_expiry: self.timer_expiry.unwrap_or(by_rules.timer_expiry),
        }
    }

    /// Returns the inconsistencies between options.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut refuse = |key, value: String, problem: String| faults.push(Fault::new(key, value, problem));
        // Formats a quantity as in a scenario.
        let quoted = |quantity: &dyn std::fmt::Display| format!("\"{quantity}\"");
        let ranges = [("mss", self.mss, 1, MAX_MSS), ("receive_window", self.receive_window, 1, MAX_RECEIVE_WINDOW)];
        for (key, size, least, most) in ranges {
            if !(least..=most).contains(&size.bytes) {
                refuse(key, quoted(&size), format!("is outside {least}B to {most}B"));
            }
        }
        if self.receive_window.bytes < self.mss.bytes {
            let problem = format!("is smaller than one segment of {}; the sender could never send", self.mss);
            refuse("receive_window", quoted(&self.receive_window), problem);
        }
        let least = Bytes { bytes: self.mss.bytes.min(MAX_MSS).saturating_mul(2) };
        if let Some(ssthresh) = self.initial_ssthresh.filter(|ssthresh| *ssthresh < least) {
            refuse("initial_ssthresh", quoted(&ssthresh), format!("must be at least two segments ({least})"));
        }
        if let Some(window) = self.lose_at_window.filter(|window| *window < least) {
            refuse("lose_at_window", quoted(&window), format!("must be at least two segments ({least})"));
        }
        if self.delayed_ack_time < MIN_TICK || self.delayed_ack_time > MAX_TICK {
            let problem = format!("is outside {MIN_TICK} to {MAX_TICK}");
            refuse("delayed_ack_time", quoted(&self.delayed_ack_time), problem);
        }
        if let Some(rate) = self.pacing_rate.filter(|rate| !(MIN_PACE..=MAX_PACE).contains(rate)) {
            refuse("pacing_rate", quoted(&rate), format!("is outside {MIN_PACE} to {MAX_PACE}"));
        }
        if !(1..=MAX_INITIAL_WINDOW).contains(&self.initial_window) {
            let problem = format!("is outside 1 to {MAX_INITIAL_WINDOW} segments");
            refuse("initial_window", self.initial_window.to_string(), problem);
        }
        if !(0.0001..=1.0).contains(&self.dctcp_gain) {
            refuse("dctcp_gain", format!("{:?}", self.dctcp_gain), "is outside 0.0001 to 1".into());
        }
        if self.congestion.needs_exact_echo() && self.ecn == Ecn::Off {
            let problem = format!("sees no marks; write ecn = \"on\" for congestion = \"{}\"", self.congestion.name());
            refuse("ecn", "\"off\"".into(), problem);
        }
        match (self.congestion, &self.formula) {
            (Congestion::Formula, None) => {
                refuse("formula", String::new(), "is missing; congestion = \"formula\" needs it".into());
            }
            (Congestion::Formula, Some(formula)) if formula.is_empty() => {
                let problem = "has no formula for cwnd or ssthresh; write on_ack, on_loss or on_timeout";
                refuse("formula", String::new(), problem.into());
            }
            (Congestion::Formula, Some(_)) | (_, None) => {}
            (other, Some(_)) => {
                let problem = format!(
                    "has no effect, as congestion is \"{}\"; write congestion = \"formula\", or leave the formulas out",
                    other.name()
                );
                refuse("formula", String::new(), problem);
            }
        }
        for (key, segments) in [("max_burst", self.max_burst), ("recovery_burst", self.recovery_burst)] {
            if segments == Some(0) {
                refuse(key, "0".into(), "must be at least 1 segment".into());
            }
        }
        let tick = self.timer_granularity;
        let resolution = self.resolution();
        if tick < MIN_TICK || tick > MAX_TICK {
            refuse("timer_granularity", quoted(&tick), format!("is outside {MIN_TICK} to {MAX_TICK}"));
        } else if resolution < MIN_TICK || !tick.picoseconds.is_multiple_of(resolution.picoseconds) {
            let problem = format!("is not a whole fraction of timer_granularity = \"{tick}\", at least {MIN_TICK}");
            refuse("timer_resolution", quoted(&resolution), problem);
        } else {
            for (key, rto) in [("maximum_rto", self.maximum_rto), ("initial_rto", self.initial_rto)] {
                if rto < tick || rto > MAX_RTO {
                    refuse(key, quoted(&rto), format!("must be from one tick ({tick}) to {MAX_RTO}"));
                }
            }
            if self.minimum_rto > self.ticks(self.maximum_rto) {
                let problem = format!("ticks of {tick} are more than maximum_rto = \"{}\"", self.maximum_rto);
                refuse("minimum_rto", self.minimum_rto.to_string(), problem);
            }
        }
        faults
    }

    /// Returns the faults of the window formulas, each with its key in their table.
    pub fn check_formula(&self) -> Vec<Fault> {
        self.formula.as_ref().map(|formula| formula.check(self.mss.bytes)).unwrap_or_default()
    }

    /// Returns the interval at which timers are checked.
    pub fn resolution(&self) -> Duration {
        self.timer_resolution.unwrap_or(self.timer_granularity)
    }

    /// Converts a duration to ticks, rounded up.
    pub fn ticks(&self, duration: Duration) -> u32 {
        let ticks = duration.picoseconds.div_ceil(self.timer_granularity.picoseconds.max(1));
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Returns the shortest time between fully backed-off timeouts of a connection that gets no acknowledgements, and
    /// the setting that limits it.
    pub fn repeated_timeout(&self) -> (Duration, &'static str) {
        let least = u64::from(self.minimum_rto) << if self.backoff == Backoff::Double { MAX_DOUBLINGS } else { 0 };
        let most = u64::from(self.ticks(self.maximum_rto));
        let (ticks, key) = if least < most { (least, "minimum_rto") } else { (most, "maximum_rto") };
        (Duration { picoseconds: self.timer_granularity.picoseconds.saturating_mul(ticks) }, key)
    }

    /// Returns the receive window in whole segments: `floor(rwnd / MSS)` (section 3.1), of the window as advertised,
    /// without the bits below the window scale.
    pub fn window_segments(&self) -> u64 {
        let scale = window_scale(self.receive_window.bytes);
        let advertised = self.receive_window.bytes >> scale << scale;
        advertised.checked_div(self.mss.bytes).expect("scenario checks refuse an empty segment")
    }
}

/// The doubling in BSD's `tcp_backoff` table ends at 64.
pub(super) const MAX_DOUBLINGS: u32 = 6;
/// RFC 7323 (2.3): a window is below 2^30 bytes, and a segment has at least one.
const MAX_INITIAL_WINDOW: u32 = (1 << 30) - 1;
/// The largest IPv4 datagram, 65535 bytes, less both headers.
const MAX_MSS: u64 = 65_495;
/// RFC 7323 (2.3): a window is below 2^30 bytes.
const MAX_RECEIVE_WINDOW: u64 = (1 << 30) - 1;
/// One cell per second.
const MIN_PACE: BitRate = BitRate::from_bits_per_second(424);
const MAX_PACE: BitRate = BitRate::from_bits_per_second(10_000_000_000_000);
const MIN_TICK: Duration = Duration::from_microseconds(1);
const MAX_TICK: Duration = Duration::from_milliseconds(10_000);
const MAX_RTO: Duration = Duration::from_milliseconds(3_600_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_windows_are_the_127_and_1171_segments_of_the_paper() {
        let lan = TcpOptions::default();
        assert_eq!(lan.window_segments(), 127);
        let wan = TcpOptions { receive_window: Bytes { bytes: 600_000 }, ..lan };
        assert_eq!(wan.window_segments(), 1171);
    }

    #[test]
    fn default_tcp_options_are_valid_and_values_out_of_range_are_refused_with_their_key() {
        type Change = fn(&mut TcpOptions);
        let least = |bytes| Some(Bytes { bytes });
        let refused: [(&[&str], Change); 11] = [
            (&[], |_| {}),
            (&["receive_window"], |o| o.receive_window = Bytes { bytes: 500 }),
            (&["pacing_rate"], |o| o.pacing_rate = Some(BitRate::from_bits_per_second(423))),
            (&["lose_at_window"], |o| o.lose_at_window = Some(Bytes { bytes: 1023 })),
            (&["minimum_rto"], |o| o.minimum_rto = 1000),
            (&["initial_ssthresh"], |o| o.initial_ssthresh = Some(Bytes { bytes: 1023 })),
            (&["max_burst"], |o| o.max_burst = Some(0)),
            (&["recovery_burst"], |o| o.recovery_burst = Some(0)),
            (&["delayed_ack_time"], |o| o.delayed_ack_time = Duration::default()),
            (&["timer_resolution"], |o| o.timer_resolution = Some(Duration::from_milliseconds(30))),
            (&["timer_resolution"], |o| o.timer_resolution = Some(Duration::default())),
        ];
        for (expected, change) in refused {
            let mut options = TcpOptions::default();
            change(&mut options);
            assert_eq!(options.check().into_iter().map(|fault| fault.key).collect::<Vec<_>>(), expected);
        }
        let at_least =
            TcpOptions { lose_at_window: least(1024), initial_ssthresh: least(1024), ..TcpOptions::default() };
        assert_eq!(at_least.check(), [], "two segments");
    }
}
