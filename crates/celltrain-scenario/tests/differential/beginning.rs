//! Checks of parts of runs: snapshots during a run, and counters for a part of a run.

use celltrain_core::engine::{Engine, Simulation};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::{Recorder, SeriesChoice};
use celltrain_core::units::Duration;

/// Checks that a snapshot after two fifths of a run has the same delivered bytes, queues and windows as a recorder at
/// the same instant, and that the counters of three parts of a run add up to the counters of the whole run.
pub(crate) fn is_the_same(network: &Network) -> Result<(), String> {
    let fifth = Duration { picoseconds: network.duration.picoseconds / 5 };
    if fifth == Duration::default() {
        return Ok(());
    }
    let choice = SeriesChoice { queue: true, windows: true, delivered: true, ..SeriesChoice::default() };
    let mut recorder = Recorder::new(choice, network.links.keys().collect(), fifth, network);
    let whole = Engine::Fast.record(network, &mut recorder);
    let mut simulation = Simulation::new(Engine::Fast, network);
    let [first, second] = [2, 4].map(|fifths| {
        let until = simulation.clock().time(Duration { picoseconds: fifths * fifth.picoseconds });
        simulation.advance(until).and_then(|()| simulation.snapshot()).expect("the target time is not in the past")
    });
    let same = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what} of the beginning")) };
    let (flows, links) = (network.flows.len(), network.links.len());
    let row = |row: usize, of: usize| row * of..(row + 1) * of;
    let delivered = first.flows.iter().map(|flow| flow.delivered_bytes);
    same(recorder.delivered_bytes[row(2, flows)].iter().copied().eq(delivered), "bytes delivered")?;
    let windows = first.flows.iter().map(|flow| flow.cwnd_segments.to_bits());
    same(recorder.cwnd_segments[row(2, flows)].iter().map(|cwnd| cwnd.to_bits()).eq(windows), "windows")?;
    // At an edge device, the snapshot also counts the cells of an incomplete packet.
    let seen = recorder.queue_cells[row(2, links)].iter().zip(&first.ports).zip(&network.links);
    let mut queues = seen.filter(|(_, link)| link.edge.is_none()).map(|((&seen, port), _)| seen == port.queue_cells);
    same(queues.all(|equal| equal), "queues")?;
    let part = |before: Option<&RunResult>, until: &RunResult| whole.clone().over(before, until, network);
    let parts = [part(None, &first), part(Some(&first), &second), part(Some(&second), &whole)];
    let sum = |of: fn(&RunResult) -> u64| parts.iter().map(of).sum::<u64>() == of(&whole);
    same(sum(|run| run.cells.offered), "the offered cells of all parts of a run add up to those of the whole run")?;
    same(sum(|run| run.flows.iter().map(|flow| flow.segments_sent).sum()), "segments in parts")?;
    same(
        sum(|run| run.ports.iter().map(|port| port.counters.forwarded).sum()),
        "the forwarded cells of all parts of a run add up to those of the whole run",
    )?;
    let seconds = |run: &RunResult| run.measured_to_s - run.measured_from_s;
    let bits: f64 = parts.iter().map(|run| run.goodput_mbps * seconds(run)).sum();
    let all = whole.goodput_mbps * whole.duration_s;
    same((bits - all).abs() <= 1e-9 * all, "goodput in parts")?;
    same(
        parts.iter().all(|run| run.fingerprint == whole.fingerprint),
        "all parts have the fingerprint of the whole \
        run",
    )
}
