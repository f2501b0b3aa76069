//! Compares the results of the two engines on a network.

use celltrain_core::engine::{Engine, ParallelOptions, PortMode};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::{Nothing, Recorder, SeriesChoice};
use celltrain_core::units::Duration;
use typed_index_collections::TiVec;

/// Returns an error that describes the first difference between the engines, with and without a probe.
pub(crate) fn compare(network: &Network) -> Result<(), String> {
    let step = Duration { picoseconds: (network.duration.picoseconds / SAMPLES).max(1) };
    let (mut by_fast, mut by_reference) = (recorder(network, step), recorder(network, step));
    let reference = Engine::Reference.record(network, &mut by_reference);
    let fast = Engine::Fast.record(network, &mut by_fast);
    same_results(&fast, &reference)?;
    is_possible(&fast, network)?;
    same_series(&by_fast, &by_reference)?;
    ranges_fit(&by_fast, &fast, network)?;
    let unwatched = Engine::Fast.run_to_end(network);
    same_results(&unwatched, &reference).map_err(|difference| format!("without a probe: {difference}"))?;
    same_in_all_ways(network, step, (&reference, &by_reference))
}

/// Returns an error that describes the first difference between the series of two runs.
pub(crate) fn same_series(fast: &Recorder, reference: &Recorder) -> Result<(), String> {
    same("sample times of the series", &fast.times, &reference.times)?;
    same_queues(fast, reference)?;
    same("occupancies", &fast.occupancy_cells, &reference.occupancy_cells)?;
    same("cwnd", &fast.cwnd_segments, &reference.cwnd_segments)?;
    same("ssthresh", &fast.ssthresh_segments, &reference.ssthresh_segments)?;
    same("delivered bytes", &fast.delivered_bytes, &reference.delivered_bytes)?;
    same("ACRs", &fast.acr_mbps, &reference.acr_mbps)?;
    same("packets at edges", &fast.edge_packets, &reference.edge_packets)?;
    same("phases", &fast.edge_phase, &reference.edge_phase)?;
    same("LD_ACRs", &fast.edge_ld_acr_mbps, &reference.edge_ld_acr_mbps)?;
    same("P_CTRs", &fast.edge_p_ctr, &reference.edge_p_ctr)?;
    same_memories(fast, reference)
}

/// Checks that the fast engine gives the same result and queues as the reference engine in every mode of contended
/// ports, where the mode is forced at each port that supports it.
fn same_in_all_ways(
    network: &Network,
    step: Duration,
    (reference, by_reference): (&RunResult, &Recorder),
) -> Result<(), String> {
    for ways in [PortMode::Trains, PortMode::Streams] {
        let in_that_way = |difference: String| format!("{ways:?}: {difference}");
        let forced = |probe: &mut Recorder| Engine::Fast.run_by(ways, network, probe, |_| true);
        let mut watched = recorder(network, step);
        same_results(&forced(&mut watched).expect("nothing cancels this run"), reference).map_err(in_that_way)?;
        same_series(&watched, by_reference).map_err(in_that_way)?;
        let unwatched = Engine::Fast.run_by(ways, network, Nothing, |_| true).expect("nothing cancels this run");
        same_results(&unwatched, reference).map_err(in_that_way)?;
    }
    for (ways, threads) in ON_THREADS {
        if let Some(shared) = on_threads(ways, threads, network) {
            let on_them = |difference| format!("{threads} threads, {ways:?}: {difference}");
            same_results(&shared, reference).map_err(on_them)?;
        }
    }
    Ok(())
}

fn same_queues(fast: &Recorder, reference: &Recorder) -> Result<(), String> {
    same("queues", &fast.queue_cells, &reference.queue_cells)?;
    same("fewest waiting", &fast.queue_cells_least, &reference.queue_cells_least)?;
    same("most waiting", &fast.queue_cells_largest, &reference.queue_cells_largest)
}

fn same_memories(fast: &Recorder, reference: &Recorder) -> Result<(), String> {
    // Compare bits, because the threshold of a queue without a threshold is NaN.
    let thresholds = |of: &Recorder| of.memory_threshold_cells.iter().map(|cells| cells.to_bits()).collect::<Vec<_>>();
    same("cells in memories", &fast.memory_cells, &reference.memory_cells)?;
    same("cells in the shared parts of memories", &fast.memory_shared_cells, &reference.memory_shared_cells)?;
    same("bits of thresholds", &thresholds(fast), &thresholds(reference))
}

/// Checks that each range of a queue contains the samples at its start and its end, and that the maximum of a port's
/// ranges is the port's largest queue.
fn ranges_fit(recorder: &Recorder, result: &RunResult, network: &Network) -> Result<(), String> {
    let ports = network.links.len();
    let ranges = || recorder.queue_cells_least.iter().zip(&recorder.queue_cells_largest);
    let contains = |(i, (&least, &largest)): (usize, (&u32, &u32))| {
        let before = i.checked_sub(ports).map_or(0, |before| recorder.queue_cells[before]);
        [before, recorder.queue_cells[i]].iter().all(|cells| (least..=largest).contains(cells))
    };
    if let Some((i, range)) = ranges().enumerate().find(|&range| !contains(range)) {
        return Err(format!("range {i} is {range:?}, and does not contain the samples at its ends"));
    }
    for (port, found) in result.ports.iter().enumerate() {
        let largest = recorder.queue_cells_largest.iter().skip(port).step_by(ports).max();
        // The queue may grow after the last sample, unless this sample is taken at the end of the run.
        let is_whole = network.duration.picoseconds.is_multiple_of(SAMPLES);
        let fits = |&largest: &u32| largest == found.max_queue_cells || (!is_whole && largest < found.max_queue_cells);
        if !largest.is_some_and(fits) {
            return Err(format!("port {port}: most waiting {largest:?}, largest queue {}", found.max_queue_cells));
        }
    }
    Ok(())
}

pub(crate) const ON_THREADS: [(PortMode, usize); 3] =
    [(PortMode::Streams, 2), (PortMode::Streams, 3), (PortMode::Planned, 2)];

/// Runs a network on several threads even if several threads are no faster. Returns `None` if the network cannot be
/// partitioned.
pub(crate) fn on_threads(ways: PortMode, threads: usize, network: &Network) -> Option<RunResult> {
    let options = ParallelOptions::if_possible(threads);
    Engine::run_in_partitions(ways, options, network, |_| true).expect("nothing cancels this run")
}

/// Number of samples in a run, without the sample at the start of the run.
const SAMPLES: u64 = 50;

/// Creates a recorder of all series at all ports.
pub(crate) fn recorder(network: &Network, step: Duration) -> Recorder {
    let choice = SeriesChoice {
        queue: true,
        occupancy: true,
        windows: true,
        delivered: true,
        rates: true,
        edges: true,
        memories: true,
    };
    Recorder::new(choice, network.links.keys().collect(), step, network)
}

pub(crate) fn same_results(fast: &RunResult, reference: &RunResult) -> Result<(), String> {
    same("flows", &fast.flows.raw, &reference.flows.raw)?;
    for (fast, reference) in fast.requests.iter().zip(&reference.requests) {
        same("requests", &fast.records, &reference.records)?;
        same("queries", &fast.queries, &reference.queries)?;
    }
    same("memories", &fast.memories.raw, &reference.memories.raw)?;
    same("deadlocks", fast.deadlock.as_slice(), reference.deadlock.as_slice())?;
    same("ports", &fast.ports.raw, &reference.ports.raw)?;
    same("losses", &fast.losses.raw, &reference.losses.raw)?;
    same("contracts", &fast.contracts, &reference.contracts)?;
    same("ABR", &fast.abr, &reference.abr)?;
    // Compare the texts of the remaining fields, which have few values.
    if fast != reference {
        let shown = |result: &RunResult| {
            let (flows, ports, memories) = (TiVec::new(), TiVec::new(), TiVec::new());
            let (contracts, abr, mut requests) = (Vec::new(), Vec::new(), result.requests.clone());
            requests.iter_mut().for_each(|group| group.records.clear());
            format!("{:?}", RunResult { flows, ports, memories, contracts, abr, requests, ..result.clone() })
        };
        return Err(format!("totals: fast {}; reference {}", shown(fast), shown(reference)));
    }
    Ok(())
}

/// Returns an error that describes the first impossible value in a result. These checks do not rely on an engine,
/// because the two engines might share a mistake.
pub(crate) fn is_possible(result: &RunResult, network: &Network) -> Result<(), String> {
    let must = |holds: bool, what: &str, found: &dyn std::fmt::Debug| {
        if holds { Ok(()) } else { Err(format!("{what}: {found:?}")) }
    };
    let bytes = |mbps: f64| mbps * 1e6 * (result.measured_to_s - result.measured_from_s) / 8.0;
    // In a measuring window shorter than the run, more data may arrive than is sent.
    let is_whole = result.measured_from_s <= 0.0 && result.measured_to_s >= result.duration_s;
    for (flow, found) in network.flows.iter().zip(&result.flows) {
        let (payload, _) = flow.frame(&network.aal5);
        let (arrived, delivered) = (bytes(found.throughput_mbps), found.delivered_bytes as f64);
        let sent = (found.segments_sent + found.packets_sent) * payload;
        must(
            (bytes(found.goodput_mbps) - delivered).abs() < 0.1,
            "the goodput follows from the number of delivered \
            bytes",
            found,
        )?;
        if !is_whole {
            continue;
        }
        must(arrived > delivered - 0.1, "data is delivered only after its arrival", found)?;
        must(arrived < sent as f64 + 0.1, "data arrives only after it was sent", found)?;
        must(
            found.repeated_segments == 0 || arrived > delivered + 0.9,
            "repeated segments count as additional \
            arrivals",
            found,
        )?;
        let is_once = found.packets_sent == 0 || arrived < delivered + 0.1;
        must(is_once, "packets without acknowledgements arrive once", found)?;
    }
    for (found, group) in result.requests.iter().zip(&network.requests.groups) {
        must(found.opened == found.records.len() as u64, "a record for each", found)?;
        let numbers = found.records.iter().map(|record| record.number);
        must(numbers.eq((0..).skip(found.first as usize).take(found.records.len())), "in order", found)?;
        for record in &found.records {
            let (from, to) = (network.requests.pairs[record.pair].from, network.requests.pairs[record.pair].to);
            let (data_vc, ack_vc) = (record.data_vc(&network.requests), record.ack_vc(&network.requests));
            must((network.source(data_vc), network.destination(data_vc)) == (from, to), "data goes there", record)?;
            must((network.source(ack_vc), network.destination(ack_vc)) == (to, from), "answers come back", record)?;
            let segments = record.bytes.div_ceil(group.tcp.options().mss.bytes);
            let new = u64::from(record.segments_sent - record.retransmitted_segments);
            let is_complete = record.completed().is_some();
            must(!is_complete || new >= segments, "all bytes of complete files were sent", record)?;
            must(record.completed().is_none_or(|completed| completed > record.opened), "it takes time", record)?;
        }
    }
    let names = network.vcs.iter().filter(|vc| vc.contract.is_some()).map(|vc| vc.name.as_str());
    must(names.eq(result.contracts.iter().map(|found| found.name.as_str())), "every contract", &result.contracts)?;
    let with_contracts = network.vcs.iter_enumerated().filter(|(_, vc)| vc.contract.is_some());
    for (found, (number, vc)) in result.contracts.iter().zip(with_contracts).filter(|_| is_whole) {
        let edge = found.edge;
        let is_tagged = vc.contract.as_ref().is_some_and(|contract| contract.tagging) && !vc.tagged;
        let judged = if is_tagged { edge.frames } else { edge.eligible_frames };
        must(
            edge.eligible_frames + edge.tagged_frames == judged,
            "frames become eligible or tagged only at the edge switch",
            found,
        )?;
        must(!vc.tagged || edge.eligible_frames == 0, "tagged frames are not eligible", found)?;
        let of_vc = network.flows.iter().zip(&result.flows).filter(|(flow, _)| flow.data_vc == number);
        let frames: Vec<[u64; 2]> =
            of_vc.map(|(_, flow)| [flow.segments_sent + flow.packets_sent, flow.packets_delivered]).collect();
        let [sent, came] = [0, 1].map(|i| frames.iter().map(|of_flow| of_flow[i]).sum::<u64>());
        // A VC that carries only acknowledgements has as many frames as its receiver sends.
        must(frames.is_empty() || edge.frames <= sent, "frames that reach the edge were sent before", found)?;
        must(edge.frames >= came, "frames that arrive have passed the edge before", found)?;
    }
    for found in &result.ports {
        must((0.0..=1.0).contains(&found.utilisation), "the value is a share from 0 to 1", found)?;
        must((found.utilisation > 0.0) == (found.counters.forwarded > 0), "a port that forwards cells is busy", found)?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, fast: &[T], reference: &[T]) -> Result<(), String> {
    let differs = fast.iter().zip(reference).position(|(fast, reference)| fast != reference);
    match differs {
        Some(i) => Err(format!("{what}[{i}]:\n  fast      {:?}\n  reference {:?}", fast[i], reference[i])),
        None if fast.len() != reference.len() => {
            Err(format!("{what}: the fast engine has {}, the reference engine {}", fast.len(), reference.len()))
        }
        None => Ok(()),
    }
}
