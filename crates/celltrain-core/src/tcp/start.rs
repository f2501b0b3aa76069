//! Rules of slow start, of a new connection and after a pause.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Rules;
use super::hystart::Hystart;
use super::profile::rules;
use crate::units::Bytes;

rules! {
    /// Rules of slow start, of a new connection and after a pause.
    pub struct StartRules, StartOptions {
        /// The largest cwnd at which slow start still continues.
        slow_start: SlowStart,
        /// Effect on cwnd of a pause without outstanding data.
        after_idle: AfterIdle,
        /// Whether growing round-trip times end the first slow start (RFC 9406).
        hystart: Hystart,
    }

    optional {
        /// The initial ssthresh in bytes; the receive window when absent.
        initial_ssthresh: Bytes,
    }
}

impl StartRules {
    /// Returns the rules of a profile.
    pub fn of(rules: Rules) -> Self {
        let (slow_start, after_idle) = match rules {
            Rules::Rfc | Rules::Today => (SlowStart::BelowSsthresh, AfterIdle::SlowStart),
            Rules::Bsd => (SlowStart::UpToSsthresh, AfterIdle::SlowStart),
            Rules::Ns2 | Rules::Paper => (SlowStart::BelowSsthresh, AfterIdle::KeepWindow),
        };
        Self { slow_start, after_idle, hystart: Hystart::Off, initial_ssthresh: None }
    }
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
