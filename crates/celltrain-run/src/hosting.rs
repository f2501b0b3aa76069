//! Real transport stacks at the ends of flows. This module builds the stacks from a scenario and runs them.

use celltrain_core::cancellation::Interrupted;
use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Flow, Network};
use celltrain_core::probe::{Probe, Recorder};
use celltrain_core::requests::RequestGroup;
use celltrain_core::rng::Stream;
use celltrain_core::traffic::Load;
use celltrain_core::traffic::bursts::Pauses;
use celltrain_core::units::{self, Clock};
use celltrain_hosts::{Application, Endpoint, HostedFlow, Hosts, HostsError, MakeStacks, Seen, Stack};
use celltrain_scenario::Scenario;
use celltrain_scenario::stack::StackConfig;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Unfinished;
use crate::requests::{GroupMeasures, Tally};

pub mod python;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "smoltcp")]
mod smoltcp;

/// Names and versions of the transport stacks in this build.
pub const VERSIONS: &[(&str, &str)] = &[
    #[cfg(feature = "smoltcp")]
    ("smoltcp", celltrain_hosts::smoltcp::VERSION),
    #[cfg(feature = "quic")]
    ("quic", celltrain_hosts::quic::VERSION),
];

/// Returns the name of a stack as results show it, with its version and the settings that differ from their defaults.
/// For a stack written in Python, returns the name of its class with its settings.
///
/// # Errors
/// If this build lacks the stack.
pub fn label(stack: &StackConfig) -> Result<String, String> {
    let (name, settings) = match stack {
        StackConfig::Python(own) => (own.class.clone(), json!(own.settings)),
        StackConfig::Smoltcp(own) => (version(stack.name())?, changed(own)),
        StackConfig::Quic(own) => (version(stack.name())?, changed(own)),
    };
    let written = |(key, value): (&String, &Value)| match value {
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}={other}"),
    };
    let settings: Vec<String> = settings.as_object().into_iter().flatten().map(written).collect();
    Ok(if settings.is_empty() { name } else { format!("{name} ({})", settings.join(", ")) })
}

/// Returns the settings that differ from their defaults.
fn changed<T: Default + Serialize>(settings: &T) -> Value {
    let (mut changed, defaults) = (json!(settings), json!(T::default()));
    if let Some(settings) = changed.as_object_mut() {
        settings.retain(|key, value| defaults[&**key] != *value);
    }
    changed
}

fn version(name: &str) -> Result<String, String> {
    match VERSIONS.iter().find(|(known, _)| *known == name) {
        Some((_, version)) => Ok(format!("{name} {version}")),
        None => Err(format!(
            "the stack {name} is not in this build of celltrain; use a wheel, or build the crate celltrain-run with its feature \
             {name}"
        )),
    }
}

/// Runs a network on one thread. If `hosts` contains real stacks, the stacks are at the ends of the network's flows.
///
/// # Errors
/// If the run is interrupted, or a stack sends a packet that its VC cannot carry.
pub(crate) fn run<P: Probe + Tap>(
    engine: Engine,
    network: &Network,
    probe: &mut P,
    hosts: Option<Hosts>,
    keep_going: impl FnMut(f64) -> bool,
) -> Result<RunResult, Unfinished> {
    let Some(hosts) = hosts else { return Ok(engine.run(network, probe, keep_going)?) };
    engine
        .run_hosted(network, probe, keep_going, |simulation| hosts.run(simulation, Tap::on_packet))
        .map_err(unfinished)
}

/// Runs a network up to `until` like [`run`], but only for the probe and without a result.
///
/// # Errors
/// Returns the same errors as [`run`].
pub(crate) fn observe<P: Probe + Tap>(
    engine: Engine,
    (network, until): (&Network, units::Duration),
    probe: &mut P,
    hosts: Option<Hosts>,
    keep_going: impl FnMut(f64) -> bool,
) -> Result<(), Unfinished> {
    let Some(hosts) = hosts else { return Ok(engine.observe(network, until, probe, keep_going)?) };
    engine
        .observe_hosted(network, until, probe, keep_going, |simulation| hosts.run(simulation, Tap::on_packet))
        .map_err(unfinished)
}

fn unfinished(error: HostsError) -> Unfinished {
    match error {
        HostsError::Interrupted => Interrupted.into(),
        HostsError::Wrong(problem) => Unfinished::Refused(problem),
    }
}

/// Creates the stacks of a scenario's network; `None` if all flows and requests use simulated TCP.
///
/// # Errors
/// If this build lacks a stack.
pub fn hosts(scenario: &Scenario, network: &Network) -> Result<Option<Hosts>, String> {
    let mut flows = Vec::new();
    for (index, flow) in network.flows.iter_enumerated().filter(|(_, flow)| flow.outside) {
        let stack = scenario.stack_of(&flow.name).expect("flows outside of the simulation have a stack");
        label(stack)?;
        let stacks = stacks(stack, &flow.name, Endpoint::pair(network, index), application(network, flow));
        flows.push(HostedFlow { flow: index, stacks });
    }
    let makers = network.requests.groups.iter().map(|group| maker(scenario, group)).collect::<Result<Vec<_>, _>>()?;
    if flows.is_empty() && makers.iter().all(Option::is_none) {
        return Ok(None);
    }
    Ok(Some(Hosts::with_requests(network, flows, makers.into())))
}

/// Returns the factory for the stacks of a group's requests; `None` if the requests use simulated TCP.
///
/// # Errors
/// If this build lacks the stack.
pub(crate) fn maker(scenario: &Scenario, group: &RequestGroup) -> Result<Option<MakeStacks>, String> {
    if !group.outside {
        return Ok(None);
    }
    let stack = scenario.stack_of_group(&group.name).expect("requests outside of the simulation have a stack").clone();
    label(&stack)?;
    Ok(Some(Box::new(move |name, ends, application| stacks(&stack, name, ends, application))))
}

/// Checks that at least one flow reports its congestion window.
///
/// # Errors
///
/// Returns an error if no flow has a stack that reports its window.
pub(crate) fn check_windows(scenario: &Scenario, network: &Network) -> Result<(), String> {
    let is_shown = |flow: &Flow| !flow.outside || matches!(scenario.stack_of(&flow.name), Some(StackConfig::Quic(_)));
    if network.flows.is_empty() || network.flows.iter().any(is_shown) {
        return Ok(());
    }
    Err("cwnd cannot be recorded: the stacks of all flows hide their windows; choose other series".to_owned())
}

/// Writes the name and version of each flow's stack into the flow's results.
pub(crate) fn name_stacks(scenario: &Scenario, network: &Network, result: &mut RunResult) {
    for (flow, own) in network.flows.iter().zip(&mut result.flows).filter(|(flow, _)| flow.outside) {
        own.stack = scenario.stack_of(&flow.name).and_then(|stack| label(stack).ok()).unwrap_or_default();
    }
}

/// Writes the name and version of each group's stack into the measures of the group's requests.
pub(crate) fn name_stacks_of_requests(scenario: &Scenario, groups: &mut [GroupMeasures]) {
    for group in groups {
        group.stack = scenario.stack_of_group(&group.name).and_then(|stack| label(stack).ok()).unwrap_or_default();
    }
}

fn stacks(stack: &StackConfig, flow: &str, ends: [Endpoint; 2], application: Application) -> [Box<dyn Stack>; 2] {
    match stack {
        #[cfg(feature = "smoltcp")]
        StackConfig::Smoltcp(own) => smoltcp::stacks(own, stack.sizes(), ends, application),
        #[cfg(feature = "quic")]
        StackConfig::Quic(own) => quic::stacks(own, stack.sizes(), ends, application),
        #[cfg(not(feature = "smoltcp"))]
        StackConfig::Smoltcp(_) => unreachable!("{} was refused", stack.name()),
        #[cfg(not(feature = "quic"))]
        StackConfig::Quic(_) => unreachable!("{} was refused", stack.name()),
        StackConfig::Python(own) => ends.map(|endpoint| python::stack(own, flow, endpoint, &application)),
    }
}

fn application(network: &Network, flow: &Flow) -> Application {
    match flow.traffic.load() {
        Load::Stream(None) => Application::Bulk,
        Load::Stream(Some(file)) => Application::File(file.bytes),
        Load::Bursts(config) => {
            let stream = Stream::new(network.seed, &format!("flow/{}/bursts", flow.name));
            let mut pauses = Pauses::new(config, NANOSECONDS, stream);
            let pause = move || std::time::Duration::from_nanos(pauses.next_pause().0);
            Application::Bursts { bytes: config.bytes.bytes, pause: Box::new(pause) }
        }
        Load::Packets(_) => unreachable!("packets without a stack are sent by the simulation"),
    }
}

const NANOSECONDS: Clock = Clock::exact(1_000_000_000);

/// A probe that also observes the packets that real stacks send and receive.
pub(crate) trait Tap {
    fn on_packet(&mut self, seen: &Seen<'_>);
}

impl Tap for Tally<'_> {
    fn on_packet(&mut self, _: &Seen<'_>) {}
}

impl Tap for Recorder {
    fn on_packet(&mut self, _: &Seen<'_>) {}
}

impl<T: Tap> Tap for &mut T {
    fn on_packet(&mut self, seen: &Seen<'_>) {
        (**self).on_packet(seen);
    }
}

#[cfg(test)]
mod tests;
