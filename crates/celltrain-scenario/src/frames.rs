//! The sizes of frames on the VCs of a network.

use celltrain_core::index::VcIndex;
use celltrain_core::requests::Requests;
use celltrain_core::tcp::scoreboard::MAX_OPTION_BYTES;
use celltrain_core::traffic::TrafficConfig;
use typed_index_collections::{TiVec, ti_vec};

use crate::channels::Channels;
use crate::scenario::{FlowOptions, Scenario};
use crate::tables::Tables;

/// Returns the number of cells of the longest frame that flows and requests send over each VC.
pub(crate) fn longest(
    scenario: &Scenario,
    channels: &Channels,
    tables: &Tables<'_>,
    requests: &Requests,
) -> TiVec<VcIndex, u32> {
    let framing = scenario.framing();
    let mut longest: TiVec<VcIndex, u32> = ti_vec![0; channels.vcs.len()];
    for (vcs, &own) in channels.of_flow.iter().zip(&tables.flows) {
        for (&vc, cells) in vcs.iter().zip(of_flow(scenario, own)) {
            longest[vc] = cells.max(longest[vc]);
        }
    }
    for group in &requests.groups {
        let options = group.tcp.options();
        let acks = if group.tcp.selective() || group.outside { MAX_OPTION_BYTES } else { 0 };
        let [data, acks] = [options.mss.bytes, acks].map(|bytes| framing.segment_cells(bytes));
        for pair in group.pairs() {
            let pair = &requests.pairs[pair];
            for (vcs, cells) in [(&pair.vcs, data), (&requests.pairs[pair.back].vcs, acks)] {
                for &vc in vcs {
                    longest[vc] = cells.max(longest[vc]);
                }
            }
        }
    }
    longest
}

/// Returns the numbers of cells of a flow's full segments (or packets) and of its longest acknowledgements.
fn of_flow(scenario: &Scenario, own: Option<&FlowOptions>) -> [u32; 2] {
    let packets = own.and_then(|own| own.traffic.as_ref()).and_then(TrafficConfig::packets);
    if let Some(pattern) = packets {
        return [scenario.framing().packet_cells(pattern.packet.bytes), 0];
    }
    if let Some(stack) = scenario.stack_with(own) {
        return [stack.sizes().mss, MAX_OPTION_BYTES].map(|bytes| scenario.framing().segment_cells(bytes));
    }
    let tcp = own.and_then(|own| own.tcp.as_ref()).unwrap_or(&scenario.tcp);
    let ack_options = if tcp.selective() { MAX_OPTION_BYTES } else { 0 };
    [tcp.options().mss.bytes, ack_options].map(|bytes| scenario.framing().segment_cells(bytes))
}
