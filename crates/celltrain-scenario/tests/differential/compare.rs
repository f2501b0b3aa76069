//! Both engines on one scenario.

use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::{Nothing, Probe, Recorder, SeriesChoice};
use celltrain_core::units::Duration;
use celltrain_scenario::{Scenario, build};

/// The first thing the engines differ in, with and without a probe.
pub(crate) fn compare(scenario: &Scenario) -> Result<(), String> {
    let network = build::network(scenario, scenario.seed);
    let (mut by_fast, mut by_reference) = (recorder(&network), recorder(&network));
    let reference = run(Engine::Reference, &network, &mut by_reference);
    let fast = run(Engine::Fast, &network, &mut by_fast);
    same_results(&fast, &reference)?;
    same("times of the samples", &by_fast.times, &by_reference.times)?;
    same("queues", &by_fast.queue_cells, &by_reference.queue_cells)?;
    same("occupancies", &by_fast.occupancy_cells, &by_reference.occupancy_cells)?;
    same("cwnd", &by_fast.cwnd_segments, &by_reference.cwnd_segments)?;
    same("ssthresh", &by_fast.ssthresh_segments, &by_reference.ssthresh_segments)?;
    same("delivered bytes", &by_fast.delivered_bytes, &by_reference.delivered_bytes)?;
    same("ACRs", &by_fast.acr_mbps, &by_reference.acr_mbps)?;
    same("packets at edges", &by_fast.edge_packets, &by_reference.edge_packets)?;
    same("phases", &by_fast.edge_phase, &by_reference.edge_phase)?;
    same("LD_ACRs", &by_fast.edge_ld_acr_mbps, &by_reference.edge_ld_acr_mbps)?;
    same("P_CTRs", &by_fast.edge_p_ctr, &by_reference.edge_p_ctr)?;
    let unwatched = run(Engine::Fast, &network, &mut Nothing);
    same_results(&unwatched, &reference).map_err(|difference| format!("without a probe: {difference}"))
}

pub(crate) fn run(engine: Engine, network: &Network, probe: &mut impl Probe) -> RunResult {
    engine.run(network, probe, |_| true).expect("nothing interrupts it")
}

/// Records all there is, at all ports.
fn recorder(network: &Network) -> Recorder {
    let choice =
        SeriesChoice { queue: true, occupancy: true, windows: true, delivered: true, rates: true, edges: true };
    let step = Duration { picoseconds: (network.duration.picoseconds / 50).max(1) };
    Recorder::new(choice, (0..network.links.len()).collect(), step, network)
}

/// The first thing two results differ in.
pub(crate) fn same_results(fast: &RunResult, reference: &RunResult) -> Result<(), String> {
    same("flows", &fast.flows, &reference.flows)?;
    same("ports", &fast.ports, &reference.ports)?;
    // The rest, none of which is long.
    if fast != reference {
        let shown =
            |result: &RunResult| format!("{:?}, {} cell-hops, {}", result.cells, result.cell_hops, result.fingerprint);
        return Err(format!("totals: fast {}; reference {}", shown(fast), shown(reference)));
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, fast: &[T], reference: &[T]) -> Result<(), String> {
    let differs = fast.iter().zip(reference).position(|(fast, reference)| fast != reference);
    match differs {
        Some(i) => Err(format!("{what}[{i}]:\n  fast      {:?}\n  reference {:?}", fast[i], reference[i])),
        None if fast.len() != reference.len() => Err(format!("{what}: {} and {} of them", fast.len(), reference.len())),
        None => Ok(()),
    }
}
