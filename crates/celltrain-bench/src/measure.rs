//! Result of one run of a scenario: its time, cells and memory.

use std::time::Instant;

use celltrain_core::engine::{Engine, ParallelOptions, PortMode};
use celltrain_core::probe::Nothing;
use serde::{Deserialize, Serialize};

use crate::Case;

/// Cost of a run, with the keys of `celltrain bench --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The case's name.
    pub scenario: String,
    /// The engine that executed the case.
    pub engine: String,
    /// Simulated seconds.
    pub duration_s: f64,
    /// Cells that crossed a link, counted once per link.
    pub cell_hops: u64,
    /// Wall-clock seconds from the built network to the result.
    pub engine_seconds: f64,
    /// Cell-hops per second.
    pub cell_hops_per_second: f64,
    /// Peak memory of this process so far, in MiB; `None` if the system does not report it.
    pub peak_rss_mib: Option<f64>,
}

impl Measured {
    /// Returns the nanoseconds per cell-hop.
    pub fn ns_per_cell_hop(&self) -> f64 {
        1e9 / self.cell_hops_per_second
    }
}

/// Runs a case `times` times, at least once. Reports the time of the fastest run, since other load on the machine can
/// only slow a run down. To measure the peak memory of a single case, use a separate process.
pub fn measure(case: &Case, engine: Engine, (mode, threads): (PortMode, usize), times: u32) -> Measured {
    let network = case.network();
    let run = |_| {
        let begun = Instant::now();
        let outcome = match threads {
            1 => engine.run_by(mode, &network, Nothing, |_| true),
            threads => engine.run_parallel(ParallelOptions::up_to(threads), &network, |_| true),
        };
        let result = outcome.expect("nothing interrupts a benchmark");
        (begun.elapsed().as_secs_f64(), result)
    };
    let (engine_seconds, result) =
        (0..times).map(run).min_by(|a, b| a.0.total_cmp(&b.0)).expect("every case of a benchmark runs at least once");
    Measured {
        scenario: case.name.clone(),
        engine: engine.name().into(),
        duration_s: result.duration_s,
        cell_hops: result.cell_hops,
        engine_seconds,
        cell_hops_per_second: result.cell_hops as f64 / engine_seconds,
        peak_rss_mib: peak_rss_mib(),
    }
}

/// Returns the peak memory of this process so far, in MiB; `None` if the system does not report it.
pub fn peak_rss_mib() -> Option<f64> {
    // The peak from getrusage is not used, because on Linux a child process starts with its parent's peak.
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
