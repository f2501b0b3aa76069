//! Checks whether the flows of a scenario are in lock-step: several flows start at the same instant, and nothing but
//! the order of ties is random. One of the flows may then starve in every run.
//!
//! Source: `docs/design/lock-step.md`.

use std::collections::BTreeMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::host::ProcessingTimes;
use celltrain_core::max_min;
use celltrain_core::network::Network;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::tcp::{TcpConfig, TcpOptions, TickPhase};
use celltrain_core::tie::TieOrder;
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::Duration;
use celltrain_scenario::Scenario;
use serde::Serialize;
use serde_json::Value;

/// Bytes added to a segment in its frame: TCP header, IP header, LLC/SNAP header and AAL5 trailer.
const HEADERS: u64 = 20 + 20 + 8 + 8;

/// A scenario whose flows are in lock-step.
#[derive(Debug, PartialEq, Serialize)]
pub struct LockStep {
    /// Largest number of flows that start at the same instant.
    together: usize,
    /// The smallest max-min fair share of any flow, as goodput in megabits per second.
    fair_mbps: f64,
    /// The smallest max-min fair share over the whole run, in segments of the largest size.
    fair_segments: f64,
    /// Transmission time of the largest segment at the bottleneck, as in Floyd and Jacobson's random time.
    processing: String,
    /// The longest tick of the retransmission timers in the scenario.
    tick: String,
    /// True if the order of ties differs from seed to seed.
    ties_drawn: bool,
    /// True if all ticks drift at a common rate, which differs from seed to seed.
    ticks_drift: bool,
}

/// Returns a description of the flows in lock-step; `None` if anything besides the order of ties is random, or if
/// starvation may have other causes.
///
/// # Errors
/// Returns an error if the token is cancelled.
pub fn in_step(
    scenario: &Scenario,
    network: &Network,
    token: &CancellationToken<'_>,
) -> Result<Option<LockStep>, Interrupted> {
    let mut starts: BTreeMap<Duration, usize> = BTreeMap::new();
    for flow in &network.flows {
        *starts.entry(flow.start).or_insert(0) += 1;
    }
    let together = starts.values().copied().max().unwrap_or_default();
    let last = starts.keys().next_back().copied().unwrap_or_default();
    let is_late = last.picoseconds.saturating_mul(2) > scenario.duration.picoseconds;
    if together < 2 || is_late || !drawn(scenario).is_empty() || !are_alike(scenario) {
        return Ok(None);
    }
    let options = || tcps(scenario).map(TcpConfig::options);
    let segment = options().map(|tcp| tcp.mss.bytes).max().unwrap_or_default();
    let cells = (segment + HEADERS).div_ceil(48);
    let rate_mbps = network.links[network.bottleneck].rate.bits_per_second as f64 / 1e6;
    let fair_mbps = max_min::goodputs_mbps(network, token)?.into_iter().fold(f64::INFINITY, f64::min);
    let tick = options().map(|tcp| tcp.timer_granularity).max().unwrap_or_default();
    Ok(Some(LockStep {
        together,
        fair_mbps,
        fair_segments: fair_mbps * 1e6 / 8.0 * scenario.duration.seconds() / segment as f64,
        processing: format!("{}ns", (cells as f64 * 424e3 / rate_mbps).round_ties_even()),
        tick: tick.to_string(),
        ties_drawn: scenario.switch.tie_order == TieOrder::Random,
        ticks_drift: options().any(|tcp| tick_phase(tcp) == TickPhase::Drifting),
    }))
}

/// Returns the paths of settings, other than the order of ties, that make flows differ at random.
pub fn drawn(scenario: &Scenario) -> Vec<String> {
    let host = &scenario.host;
    let none = Duration::default();
    let mut found = Vec::new();
    let mut add = |is_random: bool, path: &str| {
        if is_random {
            found.push(path.to_owned());
        }
    };
    add(host.processing > none && host.processing_times == ProcessingTimes::Uniform, "host.processing_times");
    add(host.clock_offset > none, "host.clock_offset");
    add(host.start_spread > none, "host.start_spread");
    add(host.clock_skew > 0.0, "host.clock_skew");
    let has_phases = tcps(scenario).any(|tcp| tick_phase(tcp.options()) == TickPhase::Random);
    add(has_phases, "tcp.timer.tick_phase");
    add(!scenario.requests.is_empty(), "requests");
    add(!scenario.incast.is_empty(), "incast");
    for (name, flow) in &scenario.flow {
        let times = flow.traffic.as_ref().map(|traffic| setting(traffic, traffic.name(), "times"));
        add(times.is_some_and(|times| times == "exponential"), &format!("flow.{name}.traffic"));
    }
    for (name, port) in &scenario.port {
        let is_random = matches!(port.policy, PolicyConfig::Dfba(_) | PolicyConfig::Dfba1998(_));
        add(is_random, &format!("port.{name}.policy"));
    }
    found
}

/// Returns whether all flows are simulated TCP with data from the start, and no port prefers one VC to another.
fn are_alike(scenario: &Scenario) -> bool {
    let has_data = |traffic: &TrafficConfig| matches!(traffic, TrafficConfig::Greedy(_) | TrafficConfig::File(_));
    let is_even = |scheduler: &SchedulerConfig| ["fifo", "round_robin"].contains(&scheduler.name());
    // A policy with a table among its settings has a separate value for each VC.
    let is_by_vc = |policy: &PolicyConfig| match serde_json::to_value(policy).unwrap_or_default().get(policy.name()) {
        Some(Value::Object(settings)) => settings.values().any(Value::is_object),
        _ => false,
    };
    scenario.stack.is_none()
        && scenario.vc.is_empty()
        && scenario.flow.values().all(|flow| flow.stack.is_none() && flow.traffic.as_ref().is_none_or(has_data))
        && scenario.port.values().all(|port| is_even(&port.scheduler) && !is_by_vc(&port.policy))
}

/// Returns the setting `key` of a model, from a table whose only key is the model's `name`; null if the model has no
/// such setting.
fn setting(table: &impl Serialize, name: &str, key: &str) -> Value {
    serde_json::to_value(table).map(|mut table| table[name][key].take()).unwrap_or_default()
}

/// Returns the TCP settings for all flows, and those of individual flows.
fn tcps(scenario: &Scenario) -> impl Iterator<Item = &TcpConfig> {
    scenario.flow.values().filter_map(|flow| flow.tcp.as_ref()).chain([&scenario.tcp])
}

fn tick_phase(tcp: &TcpOptions) -> TickPhase {
    tcp.timer_rules().tick_phase
}
