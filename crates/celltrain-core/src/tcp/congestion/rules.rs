//! Rules of cwnd and ssthresh.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tcp::profile::rules;
use crate::tcp::{Pacing, Rules};
use crate::units::Bytes;

rules! {
    /// Rules of cwnd and ssthresh.
    pub struct WindowRules, WindowOptions {
        /// ssthresh after a timeout.
        ssthresh_rule: SsthreshRule,
        /// Arithmetic of ssthresh after a loss.
        ssthresh_arithmetic: SsthreshArithmetic,
        /// Growth of cwnd beyond the receive window.
        growth: WindowGrowth,
        /// Arithmetic of the growth of cwnd in congestion avoidance.
        arithmetic: WindowArithmetic,
        /// Effect on cwnd of an acknowledgement of data that did not fill the window.
        unused_window: UnusedWindow,
        /// Effect on ssthresh of a second sign of congestion in a window of data.
        repeated_congestion: RepeatedCongestion,
        /// Effect of a duplicate acknowledgement on cwnd.
        duplicate_acks: DuplicateAcks,
        /// g: weight of the newest window in DCTCP's estimate of the share of marked segments.
        #[schemars(range(min = 0.0001, max = 1.0))]
        dctcp_gain: f64,
        /// Rate at which the sender is paced, in addition to `pacing_rate`.
        pacing: Pacing,
    }

    optional {
        /// Largest number of segments sent after an acknowledgement or a timeout, without a fast retransmit, as in ns-2's
        /// `maxburst_`. Unlimited if absent.
        #[schemars(range(min = 1))]
        max_burst: u32,
        /// For experiments: damages a segment in transit each time the window, min(cwnd, rwnd), reaches this many bytes.
        /// When absent, no segment is damaged.
        lose_at_window: Bytes,
    }
}

impl WindowRules {
    /// Returns the rules of a profile.
    pub fn of(rules: Rules) -> Self {
        let of_papers = Self {
            ssthresh_rule: SsthreshRule::HalfOfCwnd,
            ssthresh_arithmetic: SsthreshArithmetic::Fractions,
            growth: WindowGrowth::Uncapped,
            arithmetic: WindowArithmetic::Fractions,
            unused_window: UnusedWindow::Grow,
            repeated_congestion: RepeatedCongestion::EverySign,
            duplicate_acks: DuplicateAcks::Ignored,
            // RFC 8257, 3.3.
            dctcp_gain: 1.0 / 16.0,
            pacing: Pacing::None,
            max_burst: None,
            lose_at_window: None,
        };
        match rules {
            Rules::Rfc | Rules::Today => Self {
                // Linux 6.12, cubictcp_recalc_ssthresh: a share of cwnd.
                ssthresh_rule: if rules == Rules::Today {
                    SsthreshRule::HalfOfWindow
                } else {
                    SsthreshRule::HalfOfUsed
                },
                growth: WindowGrowth::Capped,
                unused_window: UnusedWindow::Hold,
                repeated_congestion: RepeatedCongestion::OncePerWindow,
                ..of_papers
            },
            Rules::Bsd => Self {
                ssthresh_rule: SsthreshRule::HalfOfWindow,
                ssthresh_arithmetic: SsthreshArithmetic::WholeSegments,
                // tcp_input, header prediction: an acknowledgement does not open cwnd if `snd_cwnd >= snd_wnd`.
                growth: WindowGrowth::Capped,
                arithmetic: WindowArithmetic::WholeBytesAndAnEighth,
                ..of_papers
            },
            Rules::Ns2 => Self {
                ssthresh_rule: SsthreshRule::HalfOfDeflatedWindow,
                ssthresh_arithmetic: SsthreshArithmetic::WholeSegments,
                ..of_papers
            },
            Rules::Paper => of_papers,
        }
    }
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
    /// receiver's window: 2 with a full window outstanding.
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
    /// cwnd stops at the largest window that could be advertised, 65535 bytes shifted by the window scale, as in
    /// 4.3BSD-Tahoe.
    CappedByField,
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
