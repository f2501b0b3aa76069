//! Description of the network of a scenario, which the lab page draws.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::Network;
use celltrain_run::describe;
use celltrain_scenario::Scenario;
use serde_json::{Value, json};

/// Describes the nodes, links, ports and VCs of a network that the lab page draws.
pub(crate) fn described(
    scenario: &Scenario,
    network: &Network,
    token: &CancellationToken<'_>,
) -> Result<Value, Interrupted> {
    let mut described = describe::network(scenario, network, token)?;
    let is_source = |link| network.vcs.iter().any(|vc| vc.abr.is_some() && vc.path.first() == Some(&link));
    let merges = |link| network.vcs.iter().any(|vc| vc.merge.is_some() && vc.path.contains(&link));
    for (shown, (number, link)) in
        described["links"].as_array_mut().expect("the value is a list").iter_mut().zip(network.links.iter_enumerated())
    {
        token.tick(1)?;
        shown["buffer_cells"] = json!(link.buffer);
        shown["policy"] = json!(link.policy.name());
        let is_fifo = link.is_fifo();
        shown["in_order"] = json!(is_fifo && !merges(number));
        shown["shaped"] = json!(link.edge.is_some() || is_source(number));
    }
    let mut flow_of = vec![None; network.vcs.len()];
    for (number, flow) in network.flows.iter().enumerate() {
        for (vc, is_data) in [(flow.data_vc, true), (flow.ack_vc, false)] {
            flow_of[usize::from(vc)].get_or_insert((number, is_data));
        }
    }
    let vcs = network.vcs.iter().zip(flow_of).map(|(vc, of)| {
        let links: Vec<u32> = vc.path.iter().map(|link| link.number()).collect();
        json!({
            "name": vc.name,
            "flow": of.map(|(flow, _)| flow),
            "is_data": of.is_some_and(|(_, is_data)| is_data),
            "links": links,
        })
    });
    described["vcs"] = vcs.collect::<Vec<_>>().into();
    described["duration_s"] = json!(network.duration.seconds());
    Ok(described)
}
