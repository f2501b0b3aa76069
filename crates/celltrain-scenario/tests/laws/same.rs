//! Compares the results of two networks, which must be equal.

use celltrain_core::metrics::{CellTotals, RunResult};
use celltrain_core::timeouts::Timeouts;

/// Returns an error that describes the first difference between the results of a changed and the original network.
pub(super) fn same(changed: &RunResult, original: &RunResult) -> Result<(), String> {
    if changed == original {
        return Ok(());
    }
    let [changed, original] = [changed, original].map(|result| format!("{result:#?}"));
    let mut part = "the run";
    for (changed, original) in changed.lines().zip(original.lines()) {
        if original.trim_start().starts_with("name:") {
            part = original.trim();
        }
        if changed != original {
            return Err(format!("{part}: {}, originally {}", changed.trim(), original.trim()));
        }
    }
    Err("one of the results has more parts than the other".into())
}

/// Sorts the parts of a result by name. Removes rates, whose last digits depend on the order of additions, and timeouts,
/// which contain numbers of flows.
pub(super) fn by_name(mut result: RunResult) -> RunResult {
    result.flows.sort_by(|a, b| a.name.cmp(&b.name));
    result.ports.sort_by(|a, b| a.name.cmp(&b.name));
    result.contracts.sort_by(|a, b| a.name.cmp(&b.name));
    result.abr.sort_by(|a, b| a.name.cmp(&b.name));
    result.flows.iter_mut().for_each(|flow| flow.max_min_mbps = 0.0);
    let timeouts = Timeouts::default();
    RunResult { efficiency: 0.0, fairness: None, fairness_max_min: None, goodput_mbps: 0.0, timeouts, ..result }
}

/// Removes totals over all cells and links from a result.
pub(super) fn without_totals(result: RunResult) -> RunResult {
    RunResult { cells: CellTotals::default(), cell_hops: 0, ..result }
}

/// Removes durations and rates from a result, so that only counts and the order of parts remain.
pub(super) fn counts(mut result: RunResult) -> RunResult {
    for flow in &mut result.flows {
        (flow.goodput_mbps, flow.max_min_mbps, flow.throughput_mbps) = (0.0, 0.0, 0.0);
    }
    result.ports.iter_mut().for_each(|port| port.utilisation = 0.0);
    let (duration_s, measured_from_s, measured_to_s) = (0.0, 0.0, 0.0);
    RunResult { duration_s, measured_from_s, measured_to_s, ..by_name(result) }
}
