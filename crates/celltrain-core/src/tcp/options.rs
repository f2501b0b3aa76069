//! Options of a connection, and checks of their values.
//!
//! Each group of rules is declared in the file of the code that follows it. `docs/mechanisms.md` section 3 explains the
//! choices.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::formula::table;
use super::congestion::rules::{WindowOptions, WindowRules};
use super::receiver::{DelayedAcks, ReceiverOptions, ReceiverRules};
use super::recovery::rules::{RecoveryOptions, RecoveryRules};
use super::start::{StartOptions, StartRules};
use super::timers::{Backoff, TimerOptions, TimerRules};
use super::{Congestion, Pacing, Rules, window_scale};
use crate::error::Fault;
use crate::units::{BitRate, Bytes, Duration};

/// Options of the two ends of a connection. Sizes and the tick default to those of ATM Forum 96-1269, LAN, and `rules`
/// gives the defaults of the groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-moved" = moved(), "x-profiles" = Rules::top()))]
pub struct TcpOptions {
    /// Named set of rules, which supplies the keys that the groups omit.
    pub rules: Rules,
    /// MSS: payload bytes of a full segment.
    pub mss: Bytes,
    /// rwnd: the receive window that the receiver advertises. The sender uses only whole segments. Above 65535 bytes,
    /// window scaling is used.
    pub receive_window: Bytes,
    /// Initial cwnd of a connection, in segments.
    #[schemars(range(min = 1, max = 1_073_741_823), extend("x-expect" = "a number of segments (1 to 1073741823)"))]
    pub initial_window: u32,
    /// Growth of cwnd in congestion avoidance, and its reduction after congestion.
    pub congestion: Congestion,
    /// Formulas for cwnd and ssthresh, used by `congestion = "formula"`.
    pub formula: Option<table::Config>,
    /// Reaction to marked packets (explicit congestion notification).
    pub ecn: Ecn,
    /// When the receiver acknowledges segments that arrive in order.
    pub delayed_acks: DelayedAcks,
    /// The retransmission timer's tick: timeouts and round-trip times are measured in ticks.
    pub timer_granularity: Duration,
    /// MIN: the smallest retransmission timeout, in ticks.
    #[schemars(range(min = 1), extend("x-unit" = "ticks"))]
    pub minimum_rto: u32,
    /// Rate at which the sender is paced: segments are at least as far apart as one segment takes at this rate,
    /// including cell headers. Default: not paced.
    pub pacing_rate: Option<BitRate>,
    /// Rules of loss recovery.
    pub recovery: RecoveryOptions,
    /// Rules of the receiver.
    pub receiver: ReceiverOptions,
    /// Rules of the retransmission timer.
    pub timer: TimerOptions,
    /// Rules of slow start.
    pub start: StartOptions,
    /// Rules of cwnd and ssthresh.
    pub windows: WindowOptions,
}

/// Keys that used to be at the top of a TCP's table, each with its new path.
const MOVED: &[(&str, &str)] = &[
    ("timer_resolution", "timer.resolution"),
    ("maximum_rto", "timer.maximum_rto"),
    ("initial_rto", "timer.initial_rto"),
    ("tick_phase", "timer.tick_phase"),
    ("timer_expiry", "timer.expiry"),
    ("timer_restart", "timer.restart"),
    ("backoff", "timer.backoff"),
    ("rtt_sampling", "timer.rtt_sampling"),
    ("rtt_arithmetic", "timer.rtt_arithmetic"),
    ("estimate_forgotten", "timer.estimate_forgotten"),
    ("initial_ssthresh", "start.initial_ssthresh"),
    ("slow_start", "start.slow_start"),
    ("after_idle", "start.after_idle"),
    ("ssthresh_rule", "windows.ssthresh_rule"),
    ("ssthresh_arithmetic", "windows.ssthresh_arithmetic"),
    ("window_growth", "windows.growth"),
    ("window_arithmetic", "windows.arithmetic"),
    ("unused_window", "windows.unused_window"),
    ("repeated_congestion", "windows.repeated_congestion"),
    ("duplicate_acks", "windows.duplicate_acks"),
    ("dctcp_gain", "windows.dctcp_gain"),
    ("max_burst", "windows.max_burst"),
    ("lose_at_window", "windows.lose_at_window"),
    ("out_of_order", "receiver.out_of_order"),
    ("delayed_ack_time", "receiver.delayed_ack_time"),
    ("gap_acks", "receiver.gap_acks"),
    ("repeated_acks", "receiver.repeated_acks"),
    ("offered_window", "receiver.offered_window"),
    ("fast_retransmit", "recovery.fast_retransmit"),
    ("limited_transmit", "recovery.limited_transmit"),
    ("partial_acks", "recovery.partial_acks"),
    ("partial_ack_timer", "recovery.partial_ack_timer"),
    ("full_acks", "recovery.full_acks"),
    ("recovery_window", "recovery.window"),
    ("recovery_end", "recovery.end"),
    ("recovery_burst", "recovery.burst"),
    ("pipe", "recovery.pipe"),
];

fn moved() -> serde_json::Value {
    MOVED.iter().map(|&(old, new)| (old, new)).collect()
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            mss: Bytes { bytes: 512 },
            receive_window: Bytes { bytes: 65535 },
            initial_window: 1,
            congestion: Congestion::default(),
            formula: None,
            ecn: Ecn::default(),
            delayed_acks: DelayedAcks::default(),
            timer_granularity: Duration::from_milliseconds(100),
            minimum_rto: 2,
            pacing_rate: None,
            recovery: RecoveryOptions::default(),
            receiver: ReceiverOptions::default(),
            timer: TimerOptions::default(),
            start: StartOptions::default(),
            windows: WindowOptions::default(),
        }
    }
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
    /// Returns the rules of loss recovery.
    pub fn recovery_rules(&self) -> RecoveryRules {
        self.recovery.by(self.rules)
    }

    /// Returns the rules of the receiver.
    pub fn receiver_rules(&self) -> ReceiverRules {
        self.receiver.by(self.rules)
    }

    /// Returns the rules of the retransmission timer.
    pub fn timer_rules(&self) -> TimerRules {
        self.timer.by(self.rules)
    }

    /// Returns the rules of slow start.
    pub fn start_rules(&self) -> StartRules {
        self.start.by(self.rules)
    }

    /// Returns the rules of cwnd and ssthresh.
    pub fn window_rules(&self) -> WindowRules {
        self.windows.by(self.rules)
    }

    /// Returns the inconsistencies between options. The key of a group's rule begins with the name of the group.
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = self.check_sizes();
        faults.extend(self.check_control());
        faults.extend(self.check_timer());
        faults
    }

    fn check_sizes(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut refuse = |key, value: String, problem: String| faults.push(Fault::new(key, value, problem));
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
        let (start, windows) = (self.start_rules(), self.window_rules());
        for (key, size) in
            [("start.initial_ssthresh", start.initial_ssthresh), ("windows.lose_at_window", windows.lose_at_window)]
        {
            if let Some(size) = size.filter(|size| *size < least) {
                refuse(key, quoted(&size), format!("must be at least two segments ({least})"));
            }
        }
        let delay = self.receiver_rules().delayed_ack_time;
        if delay < MIN_TICK || delay > MAX_TICK {
            refuse("receiver.delayed_ack_time", quoted(&delay), format!("is outside {MIN_TICK} to {MAX_TICK}"));
        }
        if let Some(rate) = self.pacing_rate.filter(|rate| !(MIN_PACE..=MAX_PACE).contains(rate)) {
            refuse("pacing_rate", quoted(&rate), format!("is outside {MIN_PACE} to {MAX_PACE}"));
        }
        if !(1..=MAX_INITIAL_WINDOW).contains(&self.initial_window) {
            let problem = format!("is outside 1 to {MAX_INITIAL_WINDOW} segments");
            refuse("initial_window", self.initial_window.to_string(), problem);
        }
        for (key, segments) in
            [("windows.max_burst", windows.max_burst), ("recovery.burst", self.recovery_rules().burst)]
        {
            if segments == Some(0) {
                refuse(key, "0".into(), "must be at least 1 segment".into());
            }
        }
        faults
    }

    fn check_control(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut refuse = |key, value: String, problem: String| faults.push(Fault::new(key, value, problem));
        let gain = self.window_rules().dctcp_gain;
        if !(0.0001..=1.0).contains(&gain) {
            refuse("windows.dctcp_gain", format!("{gain:?}"), "is outside 0.0001 to 1".into());
        }
        if self.congestion.needs_exact_echo() && self.ecn == Ecn::Off {
            let problem = format!(
                "disables marks, which this congestion control needs; write ecn = \"on\" for congestion = \"{}\"",
                self.congestion.name()
            );
            refuse("ecn", "\"off\"".into(), problem);
        }
        if let Some(rate) = self.pacing_rate.filter(|_| self.congestion.paces()) {
            let name = self.congestion.name();
            let problem = format!(
                "has no effect, as \"{name}\" sets the pace itself; leave pacing_rate out, or choose another congestion"
            );
            refuse("pacing_rate", quoted(&rate), problem);
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
        faults
    }

    fn check_timer(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut refuse = |key, value: String, problem: String| faults.push(Fault::new(key, value, problem));
        let TimerRules { maximum_rto, initial_rto, .. } = self.timer_rules();
        let tick = self.timer_granularity;
        let resolution = self.resolution();
        if tick < MIN_TICK || tick > MAX_TICK {
            refuse("timer_granularity", quoted(&tick), format!("is outside {MIN_TICK} to {MAX_TICK}"));
        } else if resolution < MIN_TICK || !tick.picoseconds.is_multiple_of(resolution.picoseconds) {
            let problem = format!("is not a whole fraction of timer_granularity = \"{tick}\", at least {MIN_TICK}");
            refuse("timer.resolution", quoted(&resolution), problem);
        } else {
            for (key, rto) in [("timer.maximum_rto", maximum_rto), ("timer.initial_rto", initial_rto)] {
                if rto < tick || rto > MAX_RTO {
                    refuse(key, quoted(&rto), format!("must be from one tick ({tick}) to {MAX_RTO}"));
                }
            }
            if self.minimum_rto > self.ticks(maximum_rto) {
                let problem = format!("ticks of {tick} are more than timer.maximum_rto = \"{maximum_rto}\"");
                refuse("minimum_rto", self.minimum_rto.to_string(), problem);
            }
        }
        faults
    }

    /// Returns the faults of the window formulas, each with its key in their table.
    pub fn check_formula(&self) -> Vec<Fault> {
        self.formula.as_ref().map(|formula| formula.check(self.mss.bytes)).unwrap_or_default()
    }

    /// Returns whether the intervals between segments are computed during a run.
    pub fn computes_pace(&self) -> bool {
        self.congestion.paces() || self.window_rules().pacing == Pacing::Window
    }

    /// Returns whether the sender is paced.
    pub fn is_paced(&self) -> bool {
        self.pacing_rate.is_some() || self.computes_pace()
    }

    /// Returns the interval at which timers are checked.
    pub fn resolution(&self) -> Duration {
        self.timer_rules().resolution.unwrap_or(self.timer_granularity)
    }

    /// Converts a duration to ticks, rounded up.
    pub fn ticks(&self, duration: Duration) -> u32 {
        let ticks = duration.picoseconds.div_ceil(self.timer_granularity.picoseconds.max(1));
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Returns the shortest time between fully backed-off timeouts of a connection that gets no acknowledgements, and
    /// the setting that limits it.
    pub fn repeated_timeout(&self) -> (Duration, &'static str) {
        let TimerRules { backoff, maximum_rto, .. } = self.timer_rules();
        let least = u64::from(self.minimum_rto) << if backoff == Backoff::Double { MAX_DOUBLINGS } else { 0 };
        let most = u64::from(self.ticks(maximum_rto));
        let (ticks, key) = if least < most { (least, "minimum_rto") } else { (most, "timer.maximum_rto") };
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

/// Formats a quantity as in a scenario.
fn quoted(quantity: &dyn std::fmt::Display) -> String {
    format!("\"{quantity}\"")
}

/// The doubling in BSD's `tcp_backoff` table ends at 64.
pub(super) const MAX_DOUBLINGS: u32 = 6;
/// RFC 7323 (2.3): a window is below 2^30 bytes, and a segment has at least one.
const MAX_INITIAL_WINDOW: u32 = (1 << 30) - 1;
/// The largest IPv4 datagram, 65535 bytes, less both headers.
const MAX_MSS: u64 = 65_495;
/// RFC 7323 (2.3): a window is below 2^30 bytes.
const MAX_RECEIVE_WINDOW: u64 = (1 << 30) - 1;
/// The lowest pacing rate: one cell per second.
const MIN_PACE: BitRate = BitRate::from_bits_per_second(424);
const MAX_PACE: BitRate = BitRate::from_bits_per_second(10_000_000_000_000);
const MIN_TICK: Duration = Duration::from_microseconds(1);
const MAX_TICK: Duration = Duration::from_milliseconds(10_000);
const MAX_RTO: Duration = Duration::from_milliseconds(3_600_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::WindowGrowth;

    #[test]
    fn receive_windows_default_to_127_segments_on_the_lan_and_1171_on_the_wan() {
        let lan = TcpOptions::default();
        assert_eq!(lan.window_segments(), 127);
        let wan = TcpOptions { receive_window: Bytes { bytes: 600_000 }, ..lan };
        assert_eq!(wan.window_segments(), 1171);
    }

    #[test]
    fn default_tcp_options_are_valid_and_values_out_of_range_are_refused_with_their_key() {
        type Change = fn(&mut TcpOptions);
        let least = |bytes| Some(Bytes { bytes });
        let refused: [(&[&str], Change); 12] = [
            (&[], |_| {}),
            (&["receive_window"], |o| o.receive_window = Bytes { bytes: 500 }),
            (&["pacing_rate"], |o| o.pacing_rate = Some(BitRate::from_bits_per_second(423))),
            (&["pacing_rate"], |o| {
                o.congestion = Congestion::Bbr;
                o.pacing_rate = Some(BitRate::from_bits_per_second(1_000_000));
            }),
            (&["windows.lose_at_window"], |o| o.windows.lose_at_window = Some(Bytes { bytes: 1023 })),
            (&["minimum_rto"], |o| o.minimum_rto = 1000),
            (&["start.initial_ssthresh"], |o| o.start.initial_ssthresh = Some(Bytes { bytes: 1023 })),
            (&["windows.max_burst"], |o| o.windows.max_burst = Some(0)),
            (&["recovery.burst"], |o| o.recovery.burst = Some(0)),
            (&["receiver.delayed_ack_time"], |o| o.receiver.delayed_ack_time = Some(Duration::default())),
            (&["timer.resolution"], |o| o.timer.resolution = Some(Duration::from_milliseconds(30))),
            (&["timer.resolution"], |o| o.timer.resolution = Some(Duration::default())),
        ];
        for (expected, change) in refused {
            let mut options = TcpOptions::default();
            change(&mut options);
            assert_eq!(options.check().into_iter().map(|fault| fault.key).collect::<Vec<_>>(), expected);
        }
        let mut at_least = TcpOptions::default();
        at_least.windows.lose_at_window = least(1024);
        at_least.start.initial_ssthresh = least(1024);
        assert_eq!(at_least.check(), [], "two segments");
    }

    #[test]
    fn a_tcp_profile_sets_absent_keys_and_never_overrides_a_key_that_is_present() {
        for (_, rules) in Rules::ALL {
            let options = TcpOptions { rules, ..TcpOptions::default() };
            assert_eq!(options.recovery_rules(), RecoveryRules::of(rules));
            assert_eq!(options.receiver_rules(), ReceiverRules::of(rules));
            assert_eq!(options.timer_rules(), TimerRules::of(rules));
            assert_eq!(options.start_rules(), StartRules::of(rules));
            assert_eq!(options.window_rules(), WindowRules::of(rules));
            let windows = WindowOptions { growth: Some(WindowGrowth::Uncapped), ..WindowOptions::default() };
            let expected = WindowRules { growth: WindowGrowth::Uncapped, ..WindowRules::of(rules) };
            assert_eq!(TcpOptions { windows, ..options }.window_rules(), expected);
        }
    }

    #[test]
    fn a_tcp_variant_has_16_keys_of_which_5_are_tables_of_further_keys() {
        let schema = serde_json::to_value(schemars::schema_for!(TcpOptions)).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), 16);
        let keys_of = |group: &str| {
            let name = properties[group]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            schema["$defs"][name]["properties"].as_object().unwrap().clone()
        };
        for (old, new) in MOVED {
            let (group, key) = new.split_once('.').unwrap();
            assert!(keys_of(group).contains_key(key), "{new}");
            assert!(!properties.contains_key(*old), "{old}");
        }
        let every: usize =
            ["recovery", "receiver", "timer", "start", "windows"].map(|group| keys_of(group).len()).iter().sum();
        let added = [
            "recovery.loss_detection", "recovery.reduction", "receiver.duplicate_sack", "windows.pacing",
            "start.hystart",
        ];
        assert_eq!(every, MOVED.len() + added.len());
        assert_eq!(keys_of("recovery")["end"]["x-rules"]["ns2"], "grow");
    }
}
