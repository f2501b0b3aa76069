//! Laws about the text of scenarios.

use celltrain_core::host::{HostOptions, ProcessingTimes};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::tcp::{Congestion, DelayedAcks, TcpConfig, TcpOptions, TickPhase};
use celltrain_core::tie::TieOrder;
use celltrain_core::traffic::{TrafficConfig, on_off};
use celltrain_core::units::{BitRate, Duration};
use celltrain_scenario::topology::Topology;
use celltrain_scenario::topology::network::{Config as GeneralNetwork, LinkConfig};
use celltrain_scenario::{Scenario, build};
use serde_json::Value;

use super::added::add_link;
use super::ports::tail_drop;
use super::same::{by_name, same};
use super::{Case, ties};

pub(super) fn seed(case: &mut Case) -> Result<bool, String> {
    without_draws(&mut case.scenario);
    let seeds = [case.scenario.seed, case.draws.next_u64()];
    let [original, changed] = seeds.map(|seed| case.run(&build::network(&case.scenario, seed)));
    same(&changed, &original)?;
    Ok(true)
}

/// A random stream is selected by the name of a part, so the network must not draw random numbers.
pub(super) fn names(case: &mut Case) -> Result<bool, String> {
    without_draws(&mut case.scenario);
    name_flows(&mut case.scenario);
    let renamed = with_texts(&case.scenario, &|text| each_name(text, &other_name));
    let changed = case.run(&build::network(&renamed, 1));
    same(&with_names(changed, &other_name), &case.run(&case.network()))?;
    Ok(true)
}

/// The links between switches are exchanged, so no cells may arrive simultaneously.
pub(super) fn mirror_image(case: &mut Case) -> Result<bool, String> {
    without_draws(&mut case.scenario);
    name_flows(&mut case.scenario);
    ties::prevent(general(&mut case.scenario), &mut case.draws);
    let switches = general(&mut case.scenario).switches.len();
    let opposite = |name: &str| {
        let number: usize = name.strip_prefix("sw")?.parse().ok()?;
        Some(format!("sw{}", switches + 1 - number))
    };
    let mut mirrored = with_texts(&case.scenario, &|text| each_name(text, &opposite));
    let network = general(&mut mirrored);
    network.switches.reverse();
    network.links[..switches - 1].reverse();
    for link in &mut network.links[..switches - 1] {
        *link = from_other_end(link);
    }
    let network = case.network();
    let changed = by_name(with_names(case.run_watched(&build::network(&mirrored, 1)), &opposite));
    let outcome = same(&changed, &by_name(case.run_watched(&network)));
    if outcome.is_err() && ties::occur(&network) { Ok(false) } else { outcome.map(|()| switches > 1) }
}

/// The units of the faster network's clock are half as long, so all times have the same number of units. The law
/// excludes networks whose clock would be so fine that it is rounded. The law removes delayed acknowledgements, CUBIC
/// and formulas, which contain constant times.
pub(super) fn faster(case: &mut Case) -> Result<bool, String> {
    let no_constants = |options: &mut TcpOptions| {
        options.delayed_acks = DelayedAcks::Off;
        if options.congestion != Congestion::Dctcp {
            options.congestion = Congestion::Jacobson;
        }
    };
    change_tcps(&mut case.scenario, no_constants);
    for port in case.scenario.port.values_mut() {
        without_formulas(&mut port.policy);
        if matches!(port.scheduler, SchedulerConfig::WfqFormula(_)) {
            port.scheduler = SchedulerConfig::default();
        }
    }
    let twice = |text: &str| {
        let rate = text.parse().map(|BitRate { bits_per_second }| BitRate::from_bits_per_second(2 * bits_per_second));
        let time = text.parse().map(|Duration { picoseconds }| Duration { picoseconds: picoseconds / 2 });
        rate.map(|rate| rate.to_string()).or(time.map(|time| time.to_string())).ok()
    };
    let scenarios = [case.scenario.clone(), with_texts(&case.scenario, &twice)];
    // The smallest delay that is divisible by 2048 on the clock, and half of this delay.
    let delays = [1 << 11, 1 << 12].map(|units| 1_000_000_000_000 / units);
    let mut networks = scenarios.map(|scenario| build::network(&scenario, scenario.seed));
    for (network, picoseconds) in networks.iter_mut().zip(delays) {
        add_link(network, BitRate::from_bits_per_second(424_000_000), Duration { picoseconds });
    }
    let clocks = networks.each_ref().map(Network::clock);
    if clocks[1].units_per_second != 2 * clocks[0].units_per_second {
        return Ok(false);
    }
    let [original, changed] = networks.map(|network| case.run_watched(&network));
    same(&slower(changed), &original)?;
    Ok(true)
}

/// Doubles the times in a result, and halves the rates.
fn slower(mut result: RunResult) -> RunResult {
    for time in [&mut result.duration_s, &mut result.measured_from_s, &mut result.measured_to_s] {
        *time *= 2.0;
    }
    result.goodput_mbps /= 2.0;
    for flow in &mut result.flows {
        for rate in [&mut flow.goodput_mbps, &mut flow.max_min_mbps, &mut flow.throughput_mbps] {
            *rate /= 2.0;
        }
        flow.completion_s = flow.completion_s.map(|time| 2.0 * time);
    }
    let delays = result.flows.iter_mut().filter_map(|flow| flow.file_delay.as_mut()).chain(&mut result.file_delay);
    for delay in delays {
        for time in [&mut delay.mean_ms, &mut delay.median_ms, &mut delay.p95_ms] {
            *time = time.map(|time| 2.0 * time);
        }
    }
    result.abr.iter_mut().for_each(|vc| vc.acr_mbps /= 2.0);
    result
}

/// Replaces settings that cause random draws during a run.
fn without_draws(scenario: &mut Scenario) {
    if scenario.switch.tie_order == TieOrder::Random {
        scenario.switch.tie_order = TieOrder::Fixed;
    }
    let HostOptions { processing, .. } = scenario.host;
    let processing_times = ProcessingTimes::Fixed;
    scenario.host = HostOptions { processing, processing_times, ..HostOptions::default() };
    change_tcps(scenario, |options| options.timer.tick_phase = Some(TickPhase::Common));
    for traffic in scenario.flow.values_mut().filter_map(|flow| flow.traffic.as_mut()) {
        match traffic {
            TrafficConfig::Bursts(bursts) => bursts.times = on_off::Times::Fixed,
            TrafficConfig::OnOff(bursts) => bursts.times = on_off::Times::Fixed,
            _ => {}
        }
    }
    for port in scenario.port.values_mut() {
        without_formulas(&mut port.policy);
        if matches!(port.policy, PolicyConfig::Dfba(_) | PolicyConfig::Dfba1998(_)) {
            port.policy = tail_drop();
        }
    }
}

fn without_formulas(policy: &mut PolicyConfig) {
    if matches!(policy, PolicyConfig::Formula(_) | PolicyConfig::Python(_)) {
        *policy = tail_drop();
    }
}

fn change_tcps(scenario: &mut Scenario, change: impl Fn(&mut TcpOptions)) {
    let own = scenario.flow.values_mut().filter_map(|flow| flow.tcp.as_mut());
    for tcp in own.chain([&mut scenario.tcp]) {
        let mut options = tcp.options().clone();
        change(&mut options);
        *tcp = TcpConfig::named(tcp.name(), options).expect("the name is that of a TCP variant");
    }
}

pub(super) fn general(scenario: &mut Scenario) -> &mut GeneralNetwork {
    let Topology::Network(network) = &mut scenario.topology else {
        panic!(
            "the random networks include general \
        topologies"
        )
    };
    network
}

/// Writes the default names of flows into the scenario.
fn name_flows(scenario: &mut Scenario) {
    for (flow, number) in general(scenario).flows.iter_mut().zip(1..) {
        flow.name.get_or_insert(format!("tcp{number}"));
    }
}

/// Returns the same link with its two nodes exchanged.
fn from_other_end(link: &LinkConfig) -> LinkConfig {
    let (a, b) = link.between.clone();
    LinkConfig {
        between: (b, a),
        rate: link.rate_back.unwrap_or(link.rate),
        delay: link.delay_back.unwrap_or(link.delay),
        rate_back: Some(link.rate),
        delay_back: Some(link.delay),
    }
}

/// Replaces texts and keys of a scenario. `other` returns the replacement of a text.
fn with_texts(scenario: &Scenario, other: &impl Fn(&str) -> Option<String>) -> Scenario {
    fn replace(value: &mut Value, other: &impl Fn(&str) -> Option<String>) {
        match value {
            Value::String(text) => *text = other(text).unwrap_or_else(|| std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| replace(item, other)),
            Value::Object(table) => {
                let entries = std::mem::take(table).into_iter().map(|(key, mut value)| {
                    replace(&mut value, other);
                    (other(&key).unwrap_or(key), value)
                });
                table.extend(entries);
            }
            _ => {}
        }
    }
    let mut value = serde_json::to_value(scenario).expect("a scenario can be written");
    replace(&mut value, other);
    serde_json::from_value(value).expect("all remaining texts are valid scenarios")
}

/// Replaces all names that a text contains. Returns `None` if the text contains no name.
fn each_name(text: &str, other: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let parts = |separator: &str, parts: (&str, &str)| {
        let names = [parts.0, parts.1].map(|part| each_name(part, other));
        let is_other = names.iter().any(Option::is_some);
        let [a, b] = names;
        is_other.then(|| format!("{}{separator}{}", a.unwrap_or(parts.0.into()), b.unwrap_or(parts.1.into())))
    };
    match (text.split_once("->"), text.split_once('-')) {
        (Some(ends), _) => parts("->", ends),
        (_, Some(ends)) => parts("-", ends),
        _ => other(text),
    }
}

/// Returns a new name for the name of a node or flow, and the original name for a new name. The alphabetical order of
/// the new names is the reverse.
fn other_name(name: &str) -> Option<String> {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number: u32 = name[kind.len()..].parse().ok()?;
    ["h", "sw", "e", "tcp"].contains(&kind).then(|| format!("{kind}{}", 99 - number))
}

fn with_names(mut result: RunResult, other: &impl Fn(&str) -> Option<String>) -> RunResult {
    let names = (result.flows.iter_mut().map(|flow| &mut flow.name))
        .chain(result.ports.iter_mut().map(|port| &mut port.name))
        .chain(result.contracts.iter_mut().map(|contract| &mut contract.name))
        .chain(result.abr.iter_mut().map(|vc| &mut vc.name));
    for name in names {
        *name = each_name(name, other).unwrap_or_else(|| std::mem::take(name));
    }
    result
}
