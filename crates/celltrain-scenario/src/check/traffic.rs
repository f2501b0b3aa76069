//! What connections send: traffic, files, and frames that AAL5 can carry.

use celltrain_core::stop::Interrupted;
use celltrain_core::tcp::scoreboard::MAX_OPTION_BYTES;
use celltrain_core::traffic::{Pattern, TrafficConfig};
use celltrain_core::units::Bytes;

use super::{Laid, MAX_DURATION, MAX_FILE, MAX_PACKET, MAX_RATE, MIN_BURST, MIN_RATE, quoted, tcps};
use crate::build;
use crate::document::join;
use crate::fault::KeyFault;
use crate::scenario::Scenario;

/// The packets of all flows that are not TCP's, and the keys they stand under.
pub(super) fn packets(scenario: &Scenario) -> impl Iterator<Item = (&str, String, Pattern<'_>)> {
    scenario.flow.iter().filter_map(|(name, options)| {
        let traffic = options.traffic.as_ref()?;
        Some((name.as_str(), join(&join(&join("flow", name), "traffic"), traffic.name()), traffic.packets()?))
    })
}

/// What flows have to send can be sent.
pub(super) fn traffic(scenario: &Scenario, faults: &mut Vec<KeyFault>) {
    for (name, path, pattern) in packets(scenario) {
        if pattern.rate < MIN_RATE || pattern.rate > MAX_RATE {
            let problem = format!("is not a positive rate from {MIN_RATE} to {MAX_RATE}");
            faults.push(KeyFault::of_value(join(&path, "rate"), quoted(pattern.rate), problem));
        }
        let most = scenario.aal5.max_cells();
        if !(1..=MAX_PACKET).contains(&pattern.packet.bytes) {
            let problem = format!("is outside 1B to {MAX_PACKET}B, what UDP and IP carry");
            faults.push(KeyFault::of_value(join(&path, "packet"), quoted(pattern.packet), problem));
        } else if scenario.aal5.packet_cells(pattern.packet.bytes) > most {
            let cells = scenario.aal5.packet_cells(pattern.packet.bytes);
            let problem =
                format!("makes frames of {cells} cells, more than aal5.max_sdu lets a receiver collect ({most})");
            faults.push(KeyFault::of_value(join(&path, "packet"), quoted(pattern.packet), problem));
        }
        for (key, time) in pattern.bursts.into_iter().flat_map(|bursts| [("on", bursts.on), ("off", bursts.off)]) {
            if time < MIN_BURST || time > MAX_DURATION {
                let problem = format!("is not a time from {MIN_BURST} to {MAX_DURATION}");
                faults.push(KeyFault::of_value(join(&path, key), quoted(time), problem));
            }
        }
        if let Some(tcp) = &scenario.flow[name].tcp {
            let key = join(&join(&join("flow", name), "tcp"), tcp.name());
            faults
                .push(KeyFault::of_key(key, "sends nothing: the flow's traffic is packets without TCP; leave it out"));
        }
    }
    for (name, options) in &scenario.flow {
        let Some(file) = options.traffic.as_ref().and_then(TrafficConfig::bytes) else { continue };
        if !(1..=MAX_FILE).contains(&file.bytes) {
            let problem = format!("is outside 1B to {}", Bytes { bytes: MAX_FILE });
            let kind = options.traffic.as_ref().map_or("", TrafficConfig::name);
            let key = join(&join(&join(&join("flow", name), "traffic"), kind), "bytes");
            faults.push(KeyFault::of_value(key, quoted(file), problem));
        }
    }
    for (name, options) in &scenario.flow {
        let Some(bursts) = options.traffic.as_ref().and_then(TrafficConfig::bursts) else { continue };
        if bursts.pause < MIN_BURST || bursts.pause > MAX_DURATION {
            let problem = format!("is not a time from {MIN_BURST} to {MAX_DURATION}");
            let key = join(&join(&join(&join("flow", name), "traffic"), "bursts"), "pause");
            faults.push(KeyFault::of_value(key, quoted(bursts.pause), problem));
        }
    }
}

/// The files of a measure hold a segment each at least: a smaller one takes as long as the segment it is in.
pub(super) fn file_size(scenario: &Scenario, faults: &mut Vec<KeyFault>) {
    let Some(size) = scenario.measure.file_size else { return };
    let longest = tcps(scenario).into_iter().map(|(_, tcp)| tcp.options().mss).max().expect("a scenario has a TCP");
    let least = longest.bytes.clamp(1, MAX_FILE);
    if !(least..=MAX_FILE).contains(&size.bytes) {
        let most = Bytes { bytes: MAX_FILE };
        let problem = format!("is outside one segment ({least}B) to {most}; the papers have 100kB");
        faults.push(KeyFault::of_value("measure.file_size", quoted(size), problem));
    }
}

/// There is a stream to cut into files.
pub(super) fn files(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    let Some(size) = scenario.measure.file_size else { return Ok(()) };
    let own_traffic = |flow: &build::Route| build::flow_options(scenario, &flow.name)?.traffic.as_ref();
    let mut streams = false;
    for flow in &layout.flows {
        stop.steps_of([1, scenario.flow.len()])?;
        streams |= own_traffic(flow).is_none_or(|traffic| traffic.packets().is_none());
        if streams {
            break;
        }
    }
    if !streams {
        let problem = "cuts no stream: the traffic of every flow is packets without TCP; leave it out";
        faults.push(KeyFault::of_value("measure.file_size", quoted(size), problem));
    }
    Ok(())
}

/// The cells of a flow's full segments or packets, and of its longest acknowledgements.
pub(super) fn frame_cells(scenario: &Scenario, flow: &str) -> [u32; 2] {
    let own = build::flow_options(scenario, flow);
    let packets = own.and_then(|own| own.traffic.as_ref()).and_then(TrafficConfig::packets);
    if let Some(pattern) = packets {
        return [scenario.aal5.packet_cells(pattern.packet.bytes), 0];
    }
    let tcp = own.and_then(|own| own.tcp.as_ref()).unwrap_or(&scenario.tcp);
    let ack_options = if tcp.selective() { MAX_OPTION_BYTES } else { 0 };
    [tcp.options().mss.bytes, ack_options].map(|bytes| scenario.aal5.segment_cells(bytes))
}

/// A segment must fit a frame the receiver collects.
pub(super) fn frames(scenario: &Scenario, faults: &mut Vec<KeyFault>) {
    for (key, tcp) in tcps(scenario) {
        let mss = tcp.options().mss;
        let cells = scenario.aal5.segment_cells(mss.bytes);
        let most = scenario.aal5.max_cells();
        if cells > most {
            let problem =
                format!("makes frames of {cells} cells, more than aal5.max_sdu lets a receiver collect ({most})");
            faults.push(KeyFault::of_value(join(&key, "mss"), quoted(mss), problem));
        }
    }
}
