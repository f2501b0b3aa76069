//! Laws about TCP.

use celltrain_core::edge_device::DiscardConfig;
use celltrain_core::tcp::{TcpConfig, TcpOptions};
use celltrain_core::units::Duration;

use super::Case;
use super::ports::{without_abr, without_limits};
use super::same::same;

/// TCP variants differ only in their reactions to losses.
pub(super) fn variants(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    without_abr(&mut network);
    without_limits(&mut network);
    for edge in network.links.iter_mut().filter_map(|link| link.edge.as_mut()) {
        (edge.buffer, edge.discard) = (None, DiscardConfig::default());
    }
    let mut change = |name: Option<&str>| {
        for flow in &mut network.flows {
            let mut options = flow.tcp.options().clone();
            options.windows.lose_at_window = None;
            // Choose a tick and timeouts that are longer than the round trip of any segment.
            options.timer_granularity = Duration::from_milliseconds(100);
            options.timer.initial_rto = Some(Duration::from_milliseconds(3_000));
            options.timer.maximum_rto = TcpOptions::default().timer.maximum_rto;
            let name = name.unwrap_or(flow.tcp.name());
            flow.tcp = TcpConfig::named(name, options).expect("the name is that of a TCP variant");
        }
        network.clone()
    };
    let original = change(None);
    let name = TcpConfig::NAMES[case.below(TcpConfig::NAMES.len())];
    same(&case.run(&change(Some(name))), &case.run(&original))?;
    Ok(original.flows.iter().any(|flow| flow.tcp.name() != name))
}
