//! Warnings about settings that have an effect only together with another setting, which is missing.

use celltrain_core::host::{HostOptions, ProcessingTimes};
use celltrain_core::tcp::{Congestion, DelayedAcks, GapAcks, RepeatedAcks, TcpOptions};
use celltrain_core::traffic::on_off::Times;

use crate::document::{join, join_setting};
use crate::fault::Warning;
use crate::request_options::IncastOptions;
use crate::requests::{Table, each_tcp};
use crate::scenario::Scenario;

/// Warns of settings without effect because another setting is missing. A setting equal to its default is not reported.
pub(super) fn without_effect(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let mut warn = |table: &str, key: &str, reason: &str| {
        let key = join_setting(table, key);
        warnings.push(Warning { message: format!("{key} {reason}"), key });
    };
    for (table, tcp) in each_tcp(scenario) {
        for (key, reason) in of_tcp(tcp.options()) {
            warn(&join(&table, tcp.name()), key, reason);
        }
    }
    for (name, port) in &scenario.port {
        if port.marking.as_ref().is_some_and(|marking| marking.k_max.is_none() && marking.p_max < 1.0) {
            let table = join(&join("port", name), "marking");
            warn(
                &table,
                "p_max",
                "has no effect without k_max, because every packet above k_min is marked; write k_max too",
            );
        }
    }
    let HostOptions { processing_times, .. } = scenario.host;
    if processing_times != ProcessingTimes::default() && !scenario.host.process() {
        warn("host", "processing_times", "has no effect without a processing time; write host.processing");
    }
    if !scenario.has_requests() {
        let measure = &scenario.measure;
        for (key, size) in [("short_requests", measure.short_requests), ("long_requests", measure.long_requests)] {
            if size.is_some() {
                warn("measure", key, "has no effect without requests; write a table [requests.NAME] or [incast.NAME]");
            }
        }
    }
    let has_memory = scenario.switch.own.values().any(|switch| switch.memory.is_some() || !switch.memories.is_empty());
    if !has_memory {
        for (name, _) in scenario.vc.iter().filter(|(_, vc)| vc.priority > 0) {
            warn(
                &join("vc", name),
                "priority",
                "has no effect without a memory that ports share; write [switch.NAME.memory]",
            );
        }
    }
    for (name, flow) in &scenario.flow {
        if let Some(start) = flow.start.filter(|&start| start >= scenario.duration) {
            let end = scenario.duration;
            let message =
                format!("flow.{name}.start = \"{start}\": the flow sends nothing, because the run ends at {end}");
            warnings.push(Warning { key: join(&join("flow", name), "start"), message });
        }
    }
    queries(scenario, warnings);
}

/// Returns the TCP settings that have no effect because of another setting, each with the reason.
fn of_tcp(tcp: &TcpOptions) -> Vec<(&'static str, &'static str)> {
    let (receiver, default) = (tcp.receiver_rules(), TcpOptions::default());
    let acks_at_once = "has no effect with delayed_acks = \"off\"";
    let mut found = Vec::new();
    let mut add = |has_no_effect: bool, key, reason| {
        if has_no_effect {
            found.push((key, reason));
        }
    };
    #[expect(clippy::float_cmp, reason = "the setting is compared with its exact default")]
    let has_gain = tcp.window_rules().dctcp_gain != default.window_rules().dctcp_gain;
    add(
        has_gain && tcp.congestion != Congestion::Dctcp,
        "windows.dctcp_gain",
        "has no effect without congestion = \"dctcp\"",
    );
    let has_time = receiver.delayed_ack_time != default.receiver_rules().delayed_ack_time;
    add(
        has_time && tcp.delayed_acks != DelayedAcks::Timer,
        "receiver.delayed_ack_time",
        "has no effect without delayed_acks = \"timer\"",
    );
    let is_off = tcp.delayed_acks == DelayedAcks::Off;
    let is_set = tcp.receiver.gap_acks == Some(GapAcks::Delayed);
    add(is_off && is_set, "receiver.gap_acks", acks_at_once);
    let is_set = tcp.receiver.repeated_acks == Some(RepeatedAcks::Delayed);
    add(is_off && is_set, "receiver.repeated_acks", acks_at_once);
    found
}

/// Warns of incasts without a query during the run.
fn queries(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let end = scenario.duration;
    for (kind, name, table) in Table::all(scenario) {
        let Table::Incast(IncastOptions { interval, times, .. }) = table else { continue };
        if *interval < end {
            continue;
        }
        let key = join(&join(kind, name), "interval");
        let first = if *times == Times::Fixed { "the first query arrives" } else { "most first queries arrive" };
        let message =
            format!("{key} = \"{interval}\": {first} after the end of the run at {end}; write a shorter interval");
        warnings.push(Warning { key, message });
    }
}
